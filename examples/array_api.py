"""One program for NumPy arrays and for tensors: written against the array API standard, fitted by gradients.

    python examples/array_api.py

``likelihood`` and ``standardise`` know neither NumPy nor this framework: they ask their arguments for the
namespace to compute in. With arrays they compute; with tensors they are recorded, so that ``backward`` finds
the gradient and an optimizer the maximum.
"""

import math

import numpy as np

import framework as fw


def namespace(x):
    """The functions that belong to an array."""
    return x.__array_namespace__()


def standardise(x):
    """Zero mean and unit deviation along the first axis."""
    xp = namespace(x)
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


def likelihood(samples, place, log_scale):
    """The mean log-likelihood of samples under a logistic distribution."""
    xp = namespace(samples)
    z = (samples - place) / xp.exp(log_scale)
    return xp.mean(-z - log_scale - 2 * xp.logaddexp(-z, xp.zeros_like(z)))


def main():
    samples = np.random.default_rng(0).logistic(3.0, 0.5, size=2000)
    print(f"NumPy: {likelihood(samples, np.asarray(3.0), np.asarray(math.log(0.5))):.4f} at the true values")
    ours = fw.from_numpy(samples)
    print(f"deviation after standardise: {float(fw.array_api.std(standardise(ours))):.4f}")

    place = fw.zeros((), dtype=fw.float64, requires_grad=True)
    log_scale = fw.zeros((), dtype=fw.float64, requires_grad=True)
    optimizer = fw.optim.Adam([place, log_scale], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        loss = -likelihood(ours, place, log_scale)
        loss.backward()
        optimizer.step()
    found = f"place {place.item():.2f}, scale {math.exp(log_scale.item()):.2f}"
    print(f"fitted: {found}, likelihood {-loss.item():.4f}")


if __name__ == "__main__":
    main()
