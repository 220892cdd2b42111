"""SciPy's optimisers drive a model: its parameters as one vector, its loss and gradient as arrays."""

import argparse

import numpy as np
from scipy.optimize import minimize
from tqdm import tqdm

import framework as fw
from framework import nn
from framework.models import MLP
from framework.nn.utils import parameters_to_vector, vector_to_parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", default="L-BFGS-B", help="any of scipy's that takes a gradient")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    x = fw.linspace(-2, 2, 100, dtype=fw.float64)[:, None]
    y = (3 * x).sin() * (-x * x).exp()
    model = MLP(1, [20, 20], 1, activation=nn.Tanh).double()

    def loss_and_gradient(vector: np.ndarray) -> tuple[float, np.ndarray]:
        vector_to_parameters(fw.from_numpy(vector.copy()).to(args.device), model.parameters())
        model.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss.item(), parameters_to_vector([p.grad for p in model.parameters()]).cpu().numpy()

    start = parameters_to_vector(model.parameters()).detach().cpu().numpy()
    first = loss_and_gradient(start)[0]
    steps = 100 if args.quick else args.steps
    with tqdm(total=steps) as bar:
        found = minimize(loss_and_gradient, start, jac=True, method=args.method,
                         callback=lambda _: bar.update(), options={"maxiter": steps})
    print(f"loss {found.fun:.2e} (at the start {first:.2e}) after {found.nfev} evaluations by {args.method}")


if __name__ == "__main__":
    main()
