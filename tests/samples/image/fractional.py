"""Rows of ops/image/fractional.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, row

U2 = np.random.default_rng(0).uniform(size=(2, 3, 2))
U3 = np.random.default_rng(1).uniform(size=(1, 2, 3))
SPREAD = np.random.default_rng(2)


def apart(*shape: int) -> np.ndarray:
    """Numbers that differ enough for numerical gradients of maxima."""
    return SPREAD.permutation(np.prod(shape)).reshape(shape) / 10.0


def windows(u: float, size: int, out: int, kernel: int) -> list[int]:
    """Where they begin, by the definition."""
    if out == 1:
        return [size - kernel]
    step = (size - kernel) / (out - 1)
    return [int((i + u) * step) - int(u * step) for i in range(out - 1)] + [size - kernel]


def largest(x: Any, u: Any, out: tuple, kernel: tuple) -> Any:
    d = len(out)
    y = np.empty((*x.shape[:2], *out))
    for n, c in np.ndindex(x.shape[:2]):
        order = range(d) if d == 3 else (1, 0)
        starts = [windows(u[n, c, k], s, o, w) for k, s, o, w in zip(order, x.shape[2:], out, kernel)]
        for at in np.ndindex(*out):
            part = tuple(slice(starts[i][a], starts[i][a] + kernel[i]) for i, a in enumerate(at))
            y[(n, c, *at)] = x[(n, c, *part)].max()
    return y


def sample(d: int, label: str, x: Any, u: Any, out: tuple, kernel: tuple, **how: Any) -> Sample:
    return Sample(label, lambda M, x: getattr(M.nn.functional, f"fractional_max_pool{d}d")(
        x, kernel, _random_samples=M.tensor(u, dtype=x.dtype, device=x.device), **how), (x,),
        lambda x: largest(x, u, out, kernel))


X2, X3 = apart(2, 3, 6, 7), apart(1, 2, 4, 5, 7)
row("fractional_max_pool2d",
    sample(2, "size", X2, U2, (3, 4), (2, 3), output_size=(3, 4)),
    sample(2, "ratio", X2, U2, (3, 4), (2, 2), output_ratio=(0.5, 0.6)),
    sample(2, "one", X2, U2, (1, 1), (2, 2), output_size=1),
    Sample("drawn", lambda M, x: M.nn.functional.fractional_max_pool2d(x * 0.0, 2, 3), (X2,),
           lambda x: np.zeros((2, 3, 3, 3)), grad=False, why="the places differ between calls"),
    namespace="nn.functional", errors=[
        ("neither", lambda M: M.nn.functional.fractional_max_pool2d(M.ones(1, 1, 4, 4), 2), ValueError,
         "neither"),
        ("too large", lambda M: M.nn.functional.fractional_max_pool2d(M.ones(1, 1, 4, 4), 2, 4), ShapeError,
         "do not fit"),
        ("ratio", lambda M: M.nn.functional.fractional_max_pool2d(
            M.ones(1, 1, 4, 4), 2, output_ratio=(1.5, 0.5)), ValueError, "between 0 and 1"),
        ("samples", lambda M: M.nn.functional.fractional_max_pool2d(
            M.ones(1, 1, 4, 4), 2, 2, _random_samples=M.ones(1, 2, 2)), ShapeError, "_random_samples")])
row("fractional_max_pool3d",
    sample(3, "size", X3, U3, (2, 3, 4), (2, 2, 3), output_size=(2, 3, 4)),
    namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.fractional_max_pool3d(M.ones(4), 2, 2), ShapeError,
             "5 dimensions")])
for d, x, u, out in ((2, X2, U2, (3, 4)), (3, X3, U3, (2, 3, 4))):
    row(f"fractional_max_pool{d}d_with_indices", Sample(
        "places", lambda M, x, u=u, d=d, out=out: getattr(
            M.nn.functional, f"fractional_max_pool{d}d_with_indices")(
                x, 2, out, _random_samples=M.tensor(u, dtype=x.dtype, device=x.device))[0], (x,),
        lambda x, u=u, d=d, out=out: largest(x, u, out, (2,) * d)),
        namespace="nn.functional", errors=[
            ("list", lambda M, d=d: getattr(M.nn.functional, f"fractional_max_pool{d}d_with_indices")(
                [1.0], 2, 1), TypeError, "must be a Tensor")])
