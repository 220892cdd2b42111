"""Rows of the adaptive_pool room."""

from itertools import product
from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import Sample, normal, row


def _windows(size: tuple, out: Any) -> tuple:
    given = out if isinstance(out, tuple) else (out,) * len(size)
    out = tuple(s if o is None else o for s, o in zip(size, given))
    return out, [(at, tuple(slice(i * s // o, -(-(i + 1) * s // o)) for i, s, o in zip(at, size, out)))
                 for at in product(*map(range, out))]


def mean_reference(x: Any, d: int, output_size: Any) -> Any:
    """Means, one window at a time."""
    out, windows = _windows(x.shape[x.ndim - d:], output_size)
    y = np.zeros((*x.shape[:x.ndim - d], *out))
    for at, window in windows:
        y[(Ellipsis, *at)] = x[(Ellipsis, *window)].mean(tuple(range(-d, 0)))
    return y


def max_reference(x: Any, d: int, output_size: Any) -> tuple:
    """Largest elements and their places, one window at a time."""
    size = x.shape[x.ndim - d:]
    out, windows = _windows(size, output_size)
    places = np.broadcast_to(np.arange(np.prod(size)).reshape(size), x.shape)
    y, index = (np.zeros((*x.shape[:x.ndim - d], *out), t) for t in (x.dtype, np.int64))
    for at, window in windows:
        part = x[(Ellipsis, *window)].reshape(*x.shape[:x.ndim - d], -1)
        best = part.argmax(-1)[..., None]
        y[(Ellipsis, *at)] = np.take_along_axis(part, best, -1)[..., 0]
        index[(Ellipsis, *at)] = np.take_along_axis(
            places[(Ellipsis, *window)].reshape(part.shape), best, -1)[..., 0]
    return y, index


def _avg(d: int, label: str, shape: tuple, out: Any) -> Sample:
    def call(M: Any, x: Any) -> Any:
        return getattr(M.nn.functional, f"adaptive_avg_pool{d}d")(x, out)
    return Sample(label, call, (normal(*shape),), lambda x: mean_reference(x, d, out))


def _max(d: int, label: str, shape: tuple, out: Any, indices: bool = False) -> Sample:
    def call(M: Any, x: Any) -> Any:
        return getattr(M.nn.functional, f"adaptive_max_pool{d}d")(x, out, indices)

    def reference(x: Any) -> Any:
        return max_reference(x, d, out) if indices else max_reference(x, d, out)[0]
    return Sample(label, call, (normal(*shape),), reference)


row("adaptive_avg_pool1d",
    _avg(1, "divides", (2, 2, 6), 3), _avg(1, "overlaps", (1, 2, 5), 3), _avg(1, "grows", (1, 1, 3), 5),
    _avg(1, "no batch", (2, 5), 2), _avg(1, "one", (2, 2, 5), 1), _avg(1, "no batch elements", (0, 2, 5), 2),
    namespace="nn.functional",
    errors=[("size", lambda M: M.nn.functional.adaptive_avg_pool1d(M.ones(1, 1, 4), 1.5), TypeError,
             "output_size"),
            ("ints", lambda M: M.nn.functional.adaptive_avg_pool1d(M.ones(1, 1, 4).long(), 2), DTypeError,
             "floating"),
            ("empty", lambda M: M.nn.functional.adaptive_avg_pool1d(M.ones(1, 1, 0), 2), ShapeError,
             "cannot pool")])
row("adaptive_avg_pool2d",
    _avg(2, "divides", (2, 1, 4, 6), (2, 3)), _avg(2, "overlaps", (1, 2, 5, 4), (3, 3)),
    _avg(2, "kept", (1, 2, 3, 4), (None, 2)), _avg(2, "one", (1, 2, 3, 4), 1),
    _avg(2, "no batch", (2, 3, 4), 2),
    namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.adaptive_avg_pool2d(M.ones(2), 2), ShapeError,
             "4 dimensions")])
row("adaptive_avg_pool3d", _avg(3, "overlaps", (1, 1, 3, 4, 2), (2, 3, 1)), namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.adaptive_avg_pool3d(M.ones(2), 2), ShapeError,
             "5 dimensions")])
row("adaptive_max_pool1d",
    _max(1, "divides", (2, 2, 6), 3), _max(1, "overlaps", (1, 2, 5), 3, True),
    _max(1, "no batch", (2, 5), 2, True),
    namespace="nn.functional",
    errors=[("size", lambda M: M.nn.functional.adaptive_max_pool1d(M.ones(1, 1, 4), "2"), TypeError,
             "output_size")])
row("adaptive_max_pool2d",
    _max(2, "divides", (2, 1, 4, 2), (2, 1)), _max(2, "overlaps", (1, 2, 5, 4), (3, 3), True),
    _max(2, "kept", (1, 2, 3, 4), (None, 2)), _max(2, "no batch", (2, 3, 4), 2, True),
    namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.adaptive_max_pool2d(M.ones(2), 2), ShapeError,
             "4 dimensions")])
V = normal(1, 2, 3, 2, 3)


def _pooled(x: Any) -> Any:
    out = np.empty((1, 2, 2, 1, 2))
    for i in range(2):
        for j in range(2):
            out[:, :, i, 0, j] = x[:, :, i:i + 2, :, j:j + 2].max((2, 3, 4))
    return out


row("adaptive_max_pool3d",
    Sample("plain", lambda M, x: M.nn.functional.adaptive_max_pool3d(x, (2, 1, 2)), (V,), _pooled),
    Sample("one", lambda M, x: M.nn.functional.adaptive_max_pool3d(x, 1), (V,),
           lambda x: x.max((2, 3, 4), keepdims=True)),
    namespace="nn.functional",
    errors=[("size", lambda M: M.nn.functional.adaptive_max_pool3d(M.ones(1, 1, 2, 2, 2), (1, 2)), TypeError,
             "3 ints")])
