"""A user's program."""
from pathlib import Path

import numpy as np

import framework as fw
import framework.nn.functional as F
from framework import Tensor, nn, optim
from framework.data import DataLoader, Dataset, random_split
from framework.nn.utils import clip_grad_norm_
from framework.optim.lr_scheduler import CosineAnnealingLR


class Squares(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        x = fw.tensor(float(i))
        return x, x ** 2


class Net(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, 1))
        self.scale = nn.Parameter(fw.ones(1))
        self.register_buffer("seen", fw.zeros(1))
        self.blocks = nn.ModuleList([nn.Linear(1, 1) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x) * self.scale
        for b in self.blocks:
            y = b(y)
        return F.relu(y).clamp(min=0)


class Double(fw.autograd.Function):
    @staticmethod
    def forward(ctx: fw.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: fw.autograd.function.FunctionCtx, g: Tensor) -> Tensor:
        return g * 2


def train(folder: Path) -> float:
    fw.manual_seed(0)
    device = fw.device("cuda" if fw.cuda.is_available() else "cpu")
    model = Net().to(device)
    opt = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    sched = CosineAnnealingLR(opt, T_max=10)
    train_set, test_set = random_split(Squares(64), [48, 16])
    loader = DataLoader(train_set, batch_size=8, shuffle=True, num_workers=0)
    total = 0.0
    for _ in range(2):
        model.train()
        for x, y in loader:
            opt.zero_grad()
            with fw.autocast("cpu", enabled=False):
                loss = F.mse_loss(model(x[:, None]), y[:, None])
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item()
        sched.step()
    with fw.no_grad():
        model.eval()
        out = model(fw.linspace(0, 1, 5)[:, None])
        best, at = out.max(dim=0)
        values, idx = fw.topk(out.flatten(), 2)
        n: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = out.numpy()
        shape: tuple[int, ...] = out.shape
        f: float = out.mean().item()
        k: int = int(at)
        z = fw.cat([out, out], dim=1) @ fw.randn(2, 3)
        z[0, :] = 1.0
        w = z.view(-1).sum().sqrt() + 1 - 2 * best[0]
        a, b = z.split([1, 2], dim=1)
    fw.save({"model": model.state_dict(), "opt": opt.state_dict()}, folder / "a.fw")
    state = fw.load(folder / "a.fw")
    model.load_state_dict(state["model"])
    for name, p in model.named_parameters():
        print(name, p.shape, p.grad is None, p.requires_grad, p.dtype == fw.float32)
    d = Double.apply(fw.ones(2, requires_grad=True))
    (g,) = fw.autograd.grad(d.sum(), [model.scale], allow_unused=True)
    lstm = nn.LSTM(3, 4, batch_first=True)
    o, (h, c) = lstm(fw.randn(2, 5, 3))
    step = fw.compile(model)
    step(fw.ones(2, 1))
    del g, o, h, c, w, a, b, values, idx, n, shape, f, k
    return total


if __name__ == "__main__":
    import tempfile
    print(train(Path(tempfile.mkdtemp())))
