# MNIST-tutorial style
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class D(Dataset):
    def __init__(s, n):
        s.x = torch.randn(n, 1, 8, 8)
        s.y = torch.randint(0, 10, (n,))

    def __len__(s):
        return len(s.x)

    def __getitem__(s, i):
        return s.x[i], s.y[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout2d(0.25)
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--no-cuda", action="store_true")
    p.add_argument("--epochs", type=int, default=1)
    args = p.parse_args()
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    use_mps = torch.backends.mps.is_available()
    torch.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = False
    device = torch.device("cuda" if use_cuda else "mps" if use_mps else "cpu")
    kw = {"num_workers": 0, "pin_memory": True, "shuffle": True} if use_cuda else {"shuffle": True}
    dl = DataLoader(D(64), batch_size=16, **kw)
    model = Net().to(device)
    opt = optim.Adadelta(model.parameters(), lr=1.0)
    sch = StepLR(opt, step_size=1, gamma=0.7)
    for e in range(args.epochs):
        model.train()
        for i, (d, t) in enumerate(dl):
            d, t = d.to(device), t.to(device, non_blocking=True)
            opt.zero_grad()
            l = F.nll_loss(model(d), t)
            l.backward()
            opt.step()
            print(f"Train Epoch: {e} [{i * len(d)}/{len(dl.dataset)}]\tLoss: {l.item():.6f}")
        model.eval()
        c = 0
        with torch.no_grad():
            for d, t in dl:
                o = model(d)
                c += o.argmax(dim=1, keepdim=True).eq(t.view_as(o.argmax(1, keepdim=True))).sum().item()
        sch.step()
    torch.save(model.state_dict(), "mnist.pt")
    model.load_state_dict(torch.load("mnist.pt", map_location=device))


if __name__ == "__main__":
    main()
