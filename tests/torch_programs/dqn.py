# DQN / reinforce style
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

device = torch.device(
    "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
)
T = namedtuple("T", ("s", "a", "n", "r"))


class DQN(nn.Module):
    def __init__(s, n, a):
        super().__init__()
        s.l1 = nn.Linear(n, 16)
        s.l2 = nn.Linear(16, a)

    def forward(s, x):
        return s.l2(F.relu(s.l1(x)))


torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
p = DQN(4, 2).to(device)
t = DQN(4, 2).to(device)
t.load_state_dict(p.state_dict())
opt = optim.AdamW(p.parameters(), lr=1e-3, amsgrad=True)
mem = deque([], maxlen=100)
s = torch.tensor(np.random.randn(4), dtype=torch.float32, device=device).unsqueeze(0)
for i in range(20):
    with torch.no_grad():
        a = (
            p(s).max(1).indices.view(1, 1)
            if random.random() > 0.3
            else torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)
        )
    n = (
        None
        if i % 7 == 6
        else torch.tensor(np.random.randn(4), dtype=torch.float32, device=device).unsqueeze(0)
    )
    r = torch.tensor([float(a.item())], device=device)
    mem.append(T(s, a, n, r))
    s = n if n is not None else torch.zeros(1, 4)
b = T(*zip(*random.sample(mem, 16)))
mask = torch.tensor(tuple(x is not None for x in b.n), device=device, dtype=torch.bool)
nn_ = torch.cat([x for x in b.n if x is not None])
q = p(torch.cat(b.s)).gather(1, torch.cat(b.a))
v = torch.zeros(16, device=device)
with torch.no_grad():
    v[mask] = t(nn_).max(1).values
l = nn.SmoothL1Loss()(q, ((v * 0.99) + torch.cat(b.r)).unsqueeze(1))
opt.zero_grad()
l.backward()
torch.nn.utils.clip_grad_value_(p.parameters(), 100)
opt.step()
ts, ps = t.state_dict(), p.state_dict()
for k in ps:
    ts[k] = ps[k] * 0.005 + ts[k] * 0.995
t.load_state_dict(ts)
print(l.item())
probs = F.softmax(p(torch.randn(1, 4)), dim=1)
m = Categorical(probs)
a = m.sample()
(-m.log_prob(a)).sum().backward()
print(a.shape, m.entropy().shape)
