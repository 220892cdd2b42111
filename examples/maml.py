"""MAML: a start from which a network learns a new sine wave in a few steps from ten points.

The outer gradient goes through the inner steps, gradients of gradients of a model called with other weights.
Source: Finn et al., Model-agnostic meta-learning for fast adaptation of deep networks, ICML 2017.
"""

import argparse
from pathlib import Path

from tqdm import tqdm

import framework as fw
from framework import nn
from framework.func import functional_call
from framework.models import MLP
from framework.utils.training import History

Weights = dict[str, fw.Tensor]


def task(count: int) -> tuple[fw.Tensor, fw.Tensor]:
    """Points of a wave of random height and phase."""
    height, phase = 0.1 + 4.9 * fw.rand(()), fw.pi * fw.rand(())
    x = 10 * fw.rand(count, 1) - 5
    return x, height * (x + phase).sin()


def loss_of(model: nn.Module, weights: Weights, x: fw.Tensor, y: fw.Tensor) -> fw.Tensor:
    return nn.functional.mse_loss(functional_call(model, weights, (x,)), y)


def adapted(model: nn.Module, weights: Weights, x: fw.Tensor, y: fw.Tensor, steps: int, lr: float,
            create_graph: bool) -> Weights:
    """The weights after some steps of gradient descent on one task."""
    for _ in range(steps):
        loss = loss_of(model, weights, x, y)
        grads = fw.autograd.grad(loss, list(weights.values()), create_graph=create_graph)
        weights = {name: w - lr * g for (name, w), g in zip(weights.items(), grads)}
    return weights


def score(model: nn.Module, lr: float, tasks: int = 50) -> tuple[float, float]:
    """Mean squared error on new tasks before and after five steps on ten points."""
    before = after = 0.0
    for _ in range(tasks):
        x, y = task(30)
        start = {name: p.detach().requires_grad_() for name, p in model.named_parameters()}
        before += loss_of(model, start, x[10:], y[10:]).item() / tasks
        end = adapted(model, start, x[:10], y[:10], 5, lr, False)
        after += loss_of(model, end, x[10:], y[10:]).item() / tasks
    return before, after


def draw(folder: Path, model: nn.Module, lr: float) -> None:
    """A wave, the start, and the network after five steps on ten points of it."""
    wave = lambda x: 3 * (x + 1).sin()
    x, few = fw.linspace(-5, 5, 80)[:, None], 10 * fw.rand(10, 1) - 5
    start = {name: p.detach().requires_grad_() for name, p in model.named_parameters()}
    end, history = adapted(model, start, few, wave(few), 5, lr, False), History()
    lines = [wave(x), functional_call(model, start, (x,)), functional_call(model, end, (x,))]
    for place, *row in zip(x[:, 0], *(line[:, 0].detach() for line in lines)):
        history.add(x=place, **dict(zip(("wave", "start", "adapted"), row)))
    folder.mkdir(parents=True, exist_ok=True)
    history.plot(x="x", path=folder / "wave.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--tasks", type=int, default=8, help="tasks of one step")
    parser.add_argument("--inner-lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of one wave")
    parser.add_argument("--quick", action="store_true", help="fewer steps, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    model = MLP(1, [40, 40], 1, activation=nn.Tanh)
    optimizer = fw.optim.Adam(model.parameters(), lr=2e-3)
    untrained = score(model, args.inner_lr)[1]
    for _ in tqdm(range(150 if args.quick else args.steps)):
        optimizer.zero_grad()
        total = fw.zeros(())
        for _ in range(args.tasks):
            x, y = task(20)
            weights = adapted(model, dict(model.named_parameters()), x[:10], y[:10], 1, args.inner_lr, True)
            total = total + loss_of(model, weights, x[10:], y[10:])
        (total / args.tasks).backward()
        optimizer.step()
    if args.out:
        draw(args.out, model, args.inner_lr)
    before, after = score(model, args.inner_lr)
    print(f"new waves: error {before:.2f}, after five steps {after:.2f} (untrained start: {untrained:.2f})")


if __name__ == "__main__":
    main()
