# VAE, weight init, checkpoint dict, hooks
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc21 = nn.Linear(32, 4)
        self.fc22 = nn.Linear(32, 4)
        self.fc3 = nn.Linear(4, 32)
        self.fc4 = nn.Linear(32, 64)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        mu, lv = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, lv)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, lv


torch.manual_seed(1)
acc = torch.accelerator.is_available()
device = torch.accelerator.current_accelerator() if acc else torch.device("cpu")
m = VAE().to(device)
opt = optim.Adam(m.parameters(), lr=1e-3)
x = torch.rand(8, 1, 8, 8)
for _ in range(3):
    opt.zero_grad()
    r, mu, lv = m(x)
    BCE = F.binary_cross_entropy(r, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
    (BCE + KLD).backward()
    opt.step()
    print((BCE + KLD).item() / len(x))
h = m.fc1.register_forward_hook(lambda mod, i, o: print(type(mod).__name__, tuple(i[0].shape), o.shape))
m(x)
h.remove()
torch.save({"epoch": 1, "state_dict": m.state_dict(), "optimizer": opt.state_dict(), "loss": 0.5}, "c.tar")
c = torch.load("c.tar")
m.load_state_dict(c["state_dict"])
opt.load_state_dict(c["optimizer"])
print(torch.get_rng_state().shape, torch.initial_seed(), m)
with torch.random.fork_rng():
    torch.rand(1)
torch.save(m, "m.pt")
m2 = torch.load("m.pt", weights_only=False)
print(torch.equal(m2.fc1.weight, m.fc1.weight), isinstance(m.fc1.weight, torch.nn.parameter.Parameter))
