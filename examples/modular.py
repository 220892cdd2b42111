"""A modular network: the input says which modules are put together, another graph for every sample.

Samples are formulas such as plus(max(3, 8), 4), with a module for each operation (Andreas, Rohrbach,
Darrell and Klein, Neural module networks, CVPR 2016). Each is trained by every formula that it occurs in, and
formulas deeper than any in training are answered with the same modules.
"""

import argparse
import random

import framework as fw
from framework import nn
from framework.utils.training import progress, seed_everything

Tree = int | tuple  # a digit, or (name of an operation, tree, tree)
OPERATIONS = {"max": max, "min": min, "plus": lambda a, b: (a + b) % 10}


def formula(depth: int) -> Tree:
    """A random tree of at most this depth."""
    if depth == 0 or random.random() < 0.15:
        return random.randrange(10)
    return random.choice(list(OPERATIONS)), formula(depth - 1), formula(depth - 1)


def value(tree: Tree) -> int:
    """What it comes to."""
    return tree if isinstance(tree, int) else OPERATIONS[tree[0]](value(tree[1]), value(tree[2]))


class Modular(nn.Module):
    """A module for each operation; ``forward`` is plain recursion over the tree."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.digits = nn.Embedding(10, width)
        self.operations = nn.ModuleDict({name: nn.Sequential(
            nn.Linear(2 * width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width), nn.LayerNorm(width))
            for name in OPERATIONS})
        self.answer = nn.Linear(width, 10)

    def vector(self, tree: Tree) -> fw.Tensor:
        if isinstance(tree, int):
            return self.digits.weight[tree]
        name, left, right = tree
        return self.operations[name](fw.cat([self.vector(left), self.vector(right)]))

    def forward(self, trees: list[Tree]) -> fw.Tensor:
        return self.answer(fw.stack([self.vector(tree) for tree in trees]))


def right(model: Modular, trees: list[Tree]) -> float:
    with fw.no_grad():
        said = model(trees).argmax(1).tolist()
    return sum(s == value(t) for s, t in zip(said, trees)) / len(trees)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--depth", type=int, default=2, help="of the formulas in training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="fewer steps, flat formulas, in seconds")
    args = parser.parse_args()
    seed_everything(args.seed)
    steps, depth = (250, 1) if args.quick else (args.steps, args.depth)
    model = Modular(args.width).to(args.device)
    optimizer = fw.optim.Adam(model.parameters(), lr=5e-3)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
    with progress(range(steps)) as bar:
        for _ in bar:
            trees = [formula(depth) for _ in range(32)]
            target = fw.tensor([value(tree) for tree in trees], device=args.device)
            loss = nn.functional.cross_entropy(model(trees), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.show(loss=loss.item())
    same, deeper = ([formula(d) for _ in range(300)] for d in (depth, depth + 1))
    print(f"formulas of depth {depth} right {right(model, same):.1%}, one deeper {right(model, deeper):.1%} "
          f"(guessed: 10%)")


if __name__ == "__main__":
    main()
