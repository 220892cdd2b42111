"""An operation of one's own with its derivative: checked by differences, trained with, differentiable twice.

The operation is a bent identity, sqrt(x^2 + 1) - 1, whose slope is x / sqrt(x^2 + 1).
"""

import argparse

import framework as fw
from framework import nn
from framework.autograd import Function, gradcheck, gradgradcheck
from framework.utils.training import progress


class Bend(Function):
    """sqrt(x^2 + 1) - 1 of each element. Its rule consists of operations, so it has a derivative, too."""

    @staticmethod
    def forward(ctx, x: fw.Tensor) -> fw.Tensor:
        root = (x * x + 1).sqrt()
        ctx.save_for_backward(x)
        return root - 1

    @staticmethod
    def backward(ctx, grad: fw.Tensor) -> fw.Tensor:
        (x,) = ctx.saved_tensors
        return grad * x / (x * x + 1).sqrt()


class BendLayer(nn.Module):
    """The operation as a module."""

    def forward(self, x: fw.Tensor) -> fw.Tensor:
        return Bend.apply(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    x = fw.randn(3, 4, dtype=fw.float64, requires_grad=True)
    print("derivative right:", gradcheck(Bend.apply, (x,)))
    print("second derivative right:", gradgradcheck(Bend.apply, (x,)))
    points = fw.linspace(-3, 3, 200)[:, None]
    wanted = points.abs()
    model = nn.Sequential(nn.Linear(1, 16), BendLayer(), nn.Linear(16, 1))
    optimizer = fw.optim.Adam(model.parameters(), lr=0.02)
    with progress(range(150 if args.quick else args.steps)) as bar:
        for _ in bar:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(points), wanted)
            loss.backward()
            optimizer.step()
            bar.show(loss=loss.item())
    print(f"loss {loss.item():.5f} for |x| out of 16 bends")


if __name__ == "__main__":
    main()
