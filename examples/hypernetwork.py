"""A hypernetwork: one network writes the weights of another, for each task those that fit it.

Source: Ha, Dai and Le, HyperNetworks, ICLR 2017. A task is a wave; the large network sees a few points of
it and gives the weights of a small network, which then answers for all other points, without a step of
training.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import framework as fw
from framework import nn
from framework.utils.training import History, progress

SHAPES = {"0.weight": (24, 1), "0.bias": (24,), "2.weight": (24, 24), "2.bias": (24,), "4.weight": (1, 24),
          "4.bias": (1,)}


class Hypernetwork(nn.Module):
    """Points (T, P, 2) of T tasks -> the weights of T small networks, by name, (T, ...) each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.points = nn.Sequential(nn.Linear(2, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.body = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.heads = nn.ModuleList(nn.Linear(width, fw.Size(shape).numel()) for shape in SHAPES.values())

    def forward(self, points: fw.Tensor) -> dict[str, fw.Tensor]:
        seen = self.body(self.points(points).mean(1))  # the order of points does not matter
        found = {}
        for head, (name, shape) in zip(self.heads, SHAPES.items()):
            scale = 1.0 if len(shape) == 1 else shape[-1] ** -0.5
            found[name] = scale * head(seen).reshape(-1, *shape)
        return found


def waves(tasks: int, points: int) -> tuple[fw.Tensor, fw.Tensor]:
    """Points x (T, P, 1) and the values y of as many sine waves of different height and phase."""
    height, phase = 0.5 + 1.5 * fw.rand(tasks, 1, 1), 3.14 * fw.rand(tasks, 1, 1)
    x = 6 * fw.rand(tasks, points, 1) - 3
    return x, height * fw.sin(x + phase)


@fw.no_grad()
def draw(folder: Path, large: nn.Module, answers: Callable, device: str) -> None:
    """A wave and what the written network says of it after ten points."""
    x = fw.cat([6 * fw.rand(10) - 3, fw.linspace(-3, 3, 60)])[None, :, None].to(device)
    y = 1.5 * fw.sin(x + 1)
    found, history = answers(large(fw.cat([x, y], 2)[:, :10]), x[:, 10:]), History()
    for place, wave, answer in zip(x[0, 10:, 0], y[0, 10:, 0], found[0, :, 0]):
        history.add(x=place, wave=wave, answer=answer)
    folder.mkdir(parents=True, exist_ok=True)
    history.plot("wave", "answer", x="x", path=folder / "wave.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of a wave and the answer")
    parser.add_argument("--quick", action="store_true", help="fewer steps, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    small = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
    large = Hypernetwork(args.width).to(args.device)
    # the small network's own weights are never used: each task brings some, and all tasks are one call
    answers = fw.func.vmap(lambda weights, x: fw.func.functional_call(small, weights, (x,)))
    steps = 300 if args.quick else args.steps
    optimizer = fw.optim.Adam(large.parameters(), lr=2e-3)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)

    def loss_on(tasks: int) -> fw.Tensor:
        x, y = (t.to(args.device) for t in waves(tasks, 30))
        weights = large(fw.cat([x, y], 2)[:, :10])
        return nn.functional.mse_loss(answers(weights, x[:, 10:]), y[:, 10:])

    with progress(range(steps)) as bar:
        for _ in bar:
            loss = loss_on(32)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.show(loss=loss.item())
    if args.out:
        draw(args.out, large, answers, args.device)
    with fw.no_grad():
        print(f"error {loss_on(500).item():.3f} on waves it never saw (always 0: 0.88)")


if __name__ == "__main__":
    main()
