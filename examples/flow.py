"""A normalising flow learns the density of two moons.

Source: Dinh et al., Density estimation using Real NVP, ICLR 2017.
"""

import argparse
from pathlib import Path

from pictures import draw_points
from sklearn.datasets import make_moons
from tqdm import tqdm

import framework as fw
from framework import nn
from framework.distributions import Independent, Normal
from framework.models import MLP


class Coupling(nn.Module):
    """Scales and shifts one coordinate by functions of the other: it can be undone, its volume is known."""

    def __init__(self, kept: int, width: int = 32) -> None:
        super().__init__()
        self.kept = kept
        self.net = MLP(1, [width, width], 2, activation=nn.Tanh)

    def _numbers(self, other: fw.Tensor) -> tuple[fw.Tensor, fw.Tensor]:
        scale, shift = self.net(other[:, None]).unbind(1)
        return scale.tanh() * 2, shift

    def _joined(self, kept: fw.Tensor, changed: fw.Tensor) -> fw.Tensor:
        return fw.stack([kept, changed] if self.kept == 0 else [changed, kept], 1)

    def forward(self, x: fw.Tensor) -> tuple[fw.Tensor, fw.Tensor]:
        """(codes, logarithm of the volume's change)."""
        kept, changed = x[:, self.kept], x[:, 1 - self.kept]
        scale, shift = self._numbers(kept)
        return self._joined(kept, changed * scale.exp() + shift), scale

    def inverse(self, z: fw.Tensor) -> fw.Tensor:
        kept, changed = z[:, self.kept], z[:, 1 - self.kept]
        scale, shift = self._numbers(kept)
        return self._joined(kept, (changed - shift) * (-scale).exp())


class Flow(nn.Module):
    """Couplings one after the other, over a normal distribution."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Coupling(i % 2) for i in range(layers)])
        self.base = Independent(Normal(fw.zeros(2), fw.ones(2)), 1)

    def log_prob(self, x: fw.Tensor) -> fw.Tensor:
        total: fw.Tensor | float = 0.0
        for layer in self.layers:
            x, volume = layer(x)
            total = total + volume
        return self.base.log_prob(x) + total

    @fw.no_grad()
    def sample(self, count: int) -> fw.Tensor:
        z = self.base.sample((count,))
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def moons(count: int, seed: int) -> fw.Tensor:
    points, _ = make_moons(count, noise=0.05, random_state=seed)
    return fw.tensor(points).float()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of points")
    parser.add_argument("--quick", action="store_true", help="fewer steps, in seconds")
    args = parser.parse_args()
    steps = 250 if args.quick else args.steps
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    train, test = moons(4000, 0), moons(2000, 1)
    flow = Flow(args.layers)
    optimizer = fw.optim.Adam(flow.parameters(), lr=3e-3)
    schedule = fw.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in tqdm(range(steps)):
        optimizer.zero_grad()
        (-flow.log_prob(train[fw.randint(0, len(train), (256,))]).mean()).backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        schedule.step()
    normal = Independent(Normal(train.mean(0), train.std(0)), 1)
    with fw.no_grad():
        found, plain = -flow.log_prob(test).mean().item(), -normal.log_prob(test).mean().item()
        own = flow.sample(1000)
        near = (fw.cdist(own, test).amin(1) < 0.1).float().mean().item()
    if args.out:
        draw_points(args.out / "moons.png", real=test[:1000], drawn=own)
    print(f"held-out {found:.3f} nats per point (one normal distribution: {plain:.3f}); {near:.1%} of its "
          f"own points lie on the moons")


if __name__ == "__main__":
    main()
