"""Rows of the pool room."""

from itertools import product
from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import Sample, integers, normal, row


def _spread(value: Any, d: int) -> tuple:
    return tuple(value) if isinstance(value, tuple) else (value,) * d


def _window_sizes(size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple,
                  ceil: bool) -> list:
    out = []
    for s, k, st, p, t in zip(size, kernel, stride, padding, dilation):
        span = s + 2 * p - t * (k - 1) - 1
        n = (-(-span // st) if ceil else span // st) + 1
        out.append(n - 1 if ceil and (n - 1) * st >= s + p else n)
    return out


def max_reference(x: Any, d: int, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                  ceil_mode: bool = False) -> tuple:
    """Largest elements and their places, one window at a time."""
    kernel, padding, dilation = _spread(kernel_size, d), _spread(padding, d), _spread(dilation, d)
    stride = kernel if stride is None else _spread(stride, d)
    size = x.shape[x.ndim - d:]
    out = _window_sizes(size, kernel, stride, padding, dilation, ceil_mode)
    lead = x.shape[:x.ndim - d]
    rows = x.reshape(-1, *size)
    y, index = np.zeros((len(rows), *out), x.dtype), np.zeros((len(rows), *out), np.int64)
    for r, at in product(range(len(rows)), product(*map(range, out))):
        best = None
        for k in product(*map(range, kernel)):
            place = tuple(i * s - p + j * t for i, s, p, j, t in zip(at, stride, padding, k, dilation))
            inside = all(0 <= q < s for q, s in zip(place, size))
            if inside and (best is None or rows[(r, *place)] > rows[(r, *best)]):
                best = place
        y[(r, *at)], index[(r, *at)] = rows[(r, *best)], np.ravel_multi_index(best, size)
    return y.reshape(*lead, *out), index.reshape(*lead, *out)


def mean_reference(x: Any, d: int, kernel_size: Any, stride: Any = None, padding: Any = 0,
                   ceil_mode: bool = False, count_include_pad: bool = True,
                   divisor_override: int | None = None) -> Any:
    """Means, one window at a time."""
    kernel, padding = _spread(kernel_size, d), _spread(padding, d)
    stride = kernel if stride is None else _spread(stride, d)
    size = x.shape[x.ndim - d:]
    out = _window_sizes(size, kernel, stride, padding, (1,) * d, ceil_mode)
    y = np.zeros((*x.shape[:x.ndim - d], *out))
    for at in product(*map(range, out)):
        start = [i * s - p for i, s, p in zip(at, stride, padding)]
        stop = [min(a + k, s + p) for a, k, s, p in zip(start, kernel, size, padding)]
        inner = [(max(a, 0), min(b, s)) for a, b, s in zip(start, stop, size)]
        count = np.prod([b - a for a, b in (zip(start, stop) if count_include_pad else inner)])
        part = x[(Ellipsis, *(slice(a, b) for a, b in inner))].sum(tuple(range(-d, 0)))
        y[(Ellipsis, *at)] = part / (divisor_override or count)
    return y


def _max(d: int, label: str, shape: tuple, kernel: Any, indices: bool = False, **settings: Any) -> Sample:
    def call(M: Any, x: Any) -> Any:
        more = {"return_indices": True} if indices else {}
        return getattr(M.nn.functional, f"max_pool{d}d")(x, kernel, **settings, **more)

    def reference(x: Any) -> Any:
        y, index = max_reference(x, d, kernel, **settings)
        return (y, index) if indices else y
    return Sample(label, call, (normal(*shape),), reference)


def _avg(d: int, label: str, shape: tuple, kernel: Any, **settings: Any) -> Sample:
    def call(M: Any, x: Any) -> Any:
        return getattr(M.nn.functional, f"avg_pool{d}d")(x, kernel, **settings)
    return Sample(label, call, (normal(*shape),), lambda x: mean_reference(x, d, kernel, **settings))


row("max_pool1d",
    _max(1, "plain", (2, 2, 6), 2), _max(1, "overlap", (1, 2, 6), 3, stride=1),
    _max(1, "padding, dilation", (1, 2, 7), 3, stride=2, padding=1, dilation=2),
    _max(1, "ceil", (1, 1, 6), 2, stride=3, ceil_mode=True),
    _max(1, "ceil, long", (1, 1, 7), 3, ceil_mode=True),
    _max(1, "indices", (2, 1, 6), 3, True, stride=2, padding=1), _max(1, "no batch", (2, 5), 2),
    _max(1, "rest left over", (1, 1, 5), 2), _max(1, "no batch elements", (0, 2, 5), 2),
    _max(1, "kernel 1", (1, 1, 4), 1, stride=2),
    Sample("ties", lambda M, x: M.nn.functional.max_pool1d(x, 3, return_indices=True),
           (np.array([[[1.0, 2.0, 2.0, 0.0, 0.0, 0.0]]]),),
           lambda x: (np.array([[[2.0, 0.0]]]), np.array([[[1, 3]]])), grad=False),
    Sample("nan", lambda M, x: M.nn.functional.max_pool1d(x, 2, return_indices=True),
           (np.array([[1.0, np.nan, np.nan, 0.0]]),),
           lambda x: (np.array([[np.nan, np.nan]]), np.array([[1, 2]])), grad=False),
    namespace="nn.functional",
    errors=[("too large", lambda M: M.nn.functional.max_pool1d(M.ones(1, 1, 2), 3), ShapeError,
             "does not fit"),
            ("padding", lambda M: M.nn.functional.max_pool1d(M.ones(1, 1, 4), 2, padding=2), ValueError,
             "half"),
            ("stride", lambda M: M.nn.functional.max_pool1d(M.ones(1, 1, 4), 2, stride=0), ValueError,
             "stride must be at least 1"),
            ("kernel", lambda M: M.nn.functional.max_pool1d(M.ones(1, 1, 4), "2"), TypeError, "kernel_size"),
            ("dimensions", lambda M: M.nn.functional.max_pool1d(M.ones(4), 2), ShapeError, "3 dimensions")])
row("max_pool2d",
    Sample("channels last", lambda M, x: M.nn.functional.max_pool2d(
        x.contiguous(memory_format=M.channels_last), 2), (normal(1, 2, 4, 4),),
           lambda x: max_reference(x, 2, 2)[0]),
    _max(2, "plain", (2, 2, 4, 2), 2), _max(2, "uneven", (1, 1, 4, 5), (2, 3), stride=(2, 1), padding=(1, 0)),
    _max(2, "overlap, dilation", (1, 1, 5, 5), 2, stride=1, dilation=2),
    _max(2, "ceil", (1, 1, 5, 5), 2, ceil_mode=True), _max(2, "no batch", (1, 3, 4), 2),
    _max(2, "indices", (1, 2, 4, 5), 2, True, stride=(1, 2), padding=1),
    Sample("ints", lambda M, x: M.nn.functional.max_pool2d(x, 2), (integers(1, 1, 4, 4),),
           lambda x: max_reference(x, 2, 2)[0], grad=False),
    namespace="nn.functional",
    errors=[("too large", lambda M: M.nn.functional.max_pool2d(M.ones(1, 1, 2, 2), 3), ShapeError,
             "does not fit")])
row("max_pool3d",
    _max(3, "plain", (1, 1, 2, 4, 2), 2), _max(3, "indices", (1, 2, 3, 3, 2), 2, True, stride=1, padding=1),
    namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.max_pool3d(M.ones(4), 2), ShapeError, "5 dimensions")])
row("avg_pool1d",
    _avg(1, "plain", (2, 2, 6), 2), _avg(1, "overlap", (1, 2, 6), 3, stride=1),
    _avg(1, "padding", (1, 2, 5), 3, stride=2, padding=1),
    _avg(1, "padding not counted", (1, 2, 5), 3, stride=2, padding=1, count_include_pad=False),
    _avg(1, "ceil", (1, 1, 6), 3, stride=2, ceil_mode=True), _avg(1, "no batch", (2, 5), 2),
    _avg(1, "ceil, padding", (1, 1, 6), 3, stride=2, padding=1, ceil_mode=True),
    _avg(1, "long", (1, 1, 20), 10), _avg(1, "no batch elements", (0, 2, 5), 2), _avg(1, "one", (1, 1, 4), 1),
    namespace="nn.functional",
    errors=[("ints", lambda M: M.nn.functional.avg_pool1d(M.ones(1, 1, 4).long(), 2), DTypeError, "floating"),
            ("too large", lambda M: M.nn.functional.avg_pool1d(M.ones(1, 1, 2), 3), ShapeError,
             "does not fit")])
row("avg_pool2d",
    _avg(2, "plain", (2, 1, 4, 2), 2), _avg(2, "uneven", (1, 1, 4, 5), (2, 3), stride=(2, 1), padding=(1, 0)),
    _avg(2, "not counted", (1, 1, 4, 4), 3, stride=2, padding=1, count_include_pad=False),
    _avg(2, "divisor", (1, 1, 4, 4), 2, divisor_override=3), _avg(2, "no batch", (1, 3, 4), 2),
    _avg(2, "ceil", (1, 1, 5, 5), 2, ceil_mode=True),
    namespace="nn.functional",
    errors=[("divisor", lambda M: M.nn.functional.avg_pool2d(M.ones(1, 1, 2, 2), 2, divisor_override=0),
             ValueError, "divisor_override")])
row("avg_pool3d",
    _avg(3, "plain", (1, 1, 2, 4, 2), 2), _avg(3, "settings", (1, 1, 3, 3, 2), 2, stride=1, padding=1),
    namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.avg_pool3d(M.ones(4), 2), ShapeError, "5 dimensions")])
