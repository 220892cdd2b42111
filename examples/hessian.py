"""Second derivatives of a trained network: the sharpest directions of its loss, a picture of the landscape.

The Hessian is never built: power iteration needs only its products with vectors.
"""

import argparse
from pathlib import Path

from sklearn.datasets import load_iris
from tqdm import tqdm

import framework as fw
from framework import nn
from framework.autograd import grad
from framework.models import MLP
from framework.nn.utils import parameters_to_vector, vector_to_parameters


def hessian_product(loss: fw.Tensor, parameters: list[fw.Tensor], vector: fw.Tensor) -> fw.Tensor:
    """The Hessian of ``loss`` times ``vector``: the gradient of (gradient . vector)."""
    first = parameters_to_vector(grad(loss, parameters, create_graph=True))
    return parameters_to_vector(grad(first @ vector, parameters)).detach()


def sharpest(loss_of, parameters: list[fw.Tensor], count: int, steps: int) -> list[tuple[float, fw.Tensor]]:
    """The largest eigenvalues and their directions, by power iteration with those found taken out."""
    found: list[tuple[float, fw.Tensor]] = []
    for _ in range(count):
        v = fw.randn(sum(p.numel() for p in parameters), dtype=fw.float64)
        value = 0.0
        for _ in range(steps):
            for _, known in found:
                v = v - (v @ known) * known
            v = v / v.norm()
            product = hessian_product(loss_of(), parameters, v)
            value, v = (v @ product).item(), product
        found.append((value, v / v.norm()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400, help="steps of training")
    parser.add_argument("--grid", type=int, default=41)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/hessian"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="fewer steps and points")
    args = parser.parse_args()
    steps, grid = (150, 11) if args.quick else (args.steps, args.grid)
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    features, kinds = load_iris(return_X_y=True)
    x = fw.tensor(features)
    x, y = (x - x.mean(0)) / x.std(0), fw.tensor(kinds).long()
    model = MLP(4, [16], 3, activation=nn.Tanh).double()
    parameters = list(model.parameters())
    squares = lambda: sum((p * p).sum() for p in parameters)
    loss_of = lambda: nn.functional.cross_entropy(model(x), y) + 1e-3 * squares()
    optimizer = fw.optim.Adam(parameters, lr=0.02)
    for _ in tqdm(range(steps)):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()
    (a, one), (b, two) = sharpest(loss_of, parameters, 2, 30)
    residue = (hessian_product(loss_of(), parameters, one) - a * one).norm().item() / a

    here = parameters_to_vector(parameters).detach()
    heights = fw.zeros(grid, grid)
    with fw.no_grad():
        for i, s in enumerate(fw.linspace(-1, 1, grid).tolist()):
            for j, t in enumerate(fw.linspace(-1, 1, grid).tolist()):
                vector_to_parameters(here + s * one + t * two, parameters)
                heights[i, j] = loss_of()
        vector_to_parameters(here, parameters)
    try:
        from PIL import Image
        args.out.mkdir(parents=True, exist_ok=True)
        levels = heights.log()
        levels = (levels - levels.min()) / (levels.max() - levels.min())
        levels = (levels * 16).floor() / 16  # steps, to see heights
        picture = Image.fromarray((255 * levels).to(fw.uint8).cpu().numpy())
        picture.resize((400, 400), Image.Resampling.NEAREST).save(args.out / "landscape.png")
    except ImportError:
        print("install pillow to see the landscape")
    print(f"largest eigenvalues {a:.3f} and {b:.3f}; residue of the first {residue:.1e}")


if __name__ == "__main__":
    main()
