"""A neural differential equation learns the flow behind a spiral from a few points of it.

Gradients go through the steps of the solver (Runge-Kutta of fourth order).
Source: Chen et al., Neural ordinary differential equations, NeurIPS 2018.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from pictures import draw_points
from tqdm import tqdm

import framework as fw
from framework import nn
from framework.models import MLP


def solve(flow: Callable, start: fw.Tensor, times: fw.Tensor) -> fw.Tensor:
    """States (T, N, D) at ``times`` of dx/dt = flow(x), from ``start`` (N, D) at the first time."""
    states, x = [start], start
    for step in (times[1:] - times[:-1]).tolist():
        a = flow(x)
        b = flow(x + step / 2 * a)
        c = flow(x + step / 2 * b)
        d = flow(x + step * c)
        x = x + step / 6 * (a + 2 * b + 2 * c + d)
        states.append(x)
    return fw.stack(states)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of the spiral")
    parser.add_argument("--quick", action="store_true", help="fewer steps, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    turn = fw.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    times = fw.linspace(0, 5, 101)
    truth = solve(lambda x: x ** 3 @ turn, fw.tensor([[2.0, 0.0]]), times)[:, 0]
    net = MLP(2, [50], 2, activation=nn.Tanh)
    flow = lambda x: net(x ** 3)
    optimizer = fw.optim.Adam(net.parameters(), lr=5e-3)
    with fw.no_grad():
        before = (solve(flow, truth[:1], times)[:, 0] - truth).abs().mean().item()
    bar = tqdm(range(200 if args.quick else args.steps))
    for _ in bar:
        starts = fw.randint(0, 90, (32,))
        wanted = truth[starts[None, :] + fw.arange(8)[:, None]]
        optimizer.zero_grad()
        loss = (solve(flow, truth[starts], times[:8]) - wanted).abs().mean()
        loss.backward()
        optimizer.step()
        bar.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
    with fw.no_grad():
        found = solve(flow, truth[:1], times)[:, 0]
    if args.out:
        draw_points(args.out / "spiral.png", joined=True, real=truth, found=found)
    after = (found - truth).abs().mean().item()
    print(f"the whole spiral from its first point is off by {after:.3f} on average (untrained: {before:.3f})")


if __name__ == "__main__":
    main()
