"""Shapes, views and new tensors in ONNX."""

from typing import Any

import numpy as np

from ... import dtypes
from ..graph import Edge, Graph, Unsupported
from ..sizes import Extent, Repeated, Varies
from .reductions import shaped


def permuted(g: Graph, x: Edge, dims: tuple) -> Edge:
    return g.emit("Transpose", (x,), {"perm": dims}) if dims else x


def reshaped(g: Graph, x: Edge, shape: Any) -> Edge:
    """Reshape; of what depends on dynamic axes at most one size is computed as such, the others are
    copied.
    """
    if isinstance(shape, (Repeated, Varies)):
        return g.emit("Reshape", (x, g.sizes(shape)))
    target: list[Any] = list(shape)
    if x.shape is not None:
        for i, n in enumerate(target):
            if isinstance(n, Extent) and i < len(x.shape) and x.shape[i] == n:
                target[i] = 0
    moving = [i for i, n in enumerate(target) if isinstance(n, Extent)]
    if len(moving) == 1 and -1 not in target and all(
            x.shape is not None and x.shape[i] != 0 for i, n in enumerate(target) if n == 0):
        target[moving[0]] = -1
    copies = [i for i, n in enumerate(target) if isinstance(n, int) and n == 0
              and isinstance(list(shape)[i], Extent)]
    if any(isinstance(n, int) and n == 0 and i not in copies for i, n in enumerate(target)):
        return g.emit("Reshape", (x, g.sizes(shape)), {"allowzero": 1})
    if -1 in target and not any(isinstance(n, Extent) for n in target):
        return g.emit("Reshape", (x, g.ints(target)))
    return g.emit("Reshape", (x, g.sizes(target)))


def sliced(g: Graph, x: Edge, key: tuple) -> Edge:
    """NumPy's basic indexing: Slice, then Squeeze or Gather for numbers, then Unsqueeze for None."""
    given = sum(k is not None and k is not Ellipsis for k in key)
    full: list[Any] = []
    for k in key:
        full += [slice(None)] * (x.ndim - given) if k is Ellipsis else [k]
    full += [slice(None)] * (x.ndim - sum(k is not None for k in full))
    starts: list[Any] = []
    ends: list[Any] = []
    axes: list[int] = []
    steps: list[int] = []
    numbers, new, axis, out = [], [], 0, 0
    for k in full:
        if k is None:
            new.append(out)
            out += 1
            continue
        if isinstance(k, slice):
            if k != slice(None):
                step = 1 if k.step is None else k.step
                if isinstance(step, (Extent, Varies)):
                    raise Unsupported("the step of a slice depends on the size of a dynamic axis")
                starts.append((0 if step > 0 else np.iinfo(np.int64).max) if k.start is None else k.start)
                ends.append((np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min)
                            if k.stop is None else k.stop)
                axes.append(axis)
                steps.append(step)
            out += 1
        else:
            numbers.append((axis, k))
        axis += 1
    for axis, k in numbers:
        starts.append(k)
        if isinstance(k, int):
            ends.append(np.iinfo(np.int64).max if k == -1 else k + 1)
        elif isinstance(k, Extent):
            ends.append(k + 1)
        else:
            raise Unsupported(f"an index that is {k}")
        axes.append(axis)
        steps.append(1)
    if axes:
        x = g.emit("Slice", (x, g.sizes(starts), g.sizes(ends), g.ints(axes), g.ints(steps)))
    if numbers:
        x = g.emit("Squeeze", (x, g.ints([axis for axis, _ in numbers])))
    if new:
        x = g.emit("Unsqueeze", (x, g.ints(new)))
    return x


def expanded(g: Graph, x: Edge, size: tuple) -> Edge:
    return g.emit("Expand", (x, g.sizes(size)))


def diagonal(g: Graph, x: Edge, offset: int, dims: tuple) -> Edge:
    """Diagonals of matrices of fixed size, gathered from them laid flat."""
    n, m = x.shape[dims[0]], x.shape[dims[1]]
    if isinstance(n, Extent) or isinstance(m, Extent):
        raise Unsupported("a diagonal of a matrix whose size is dynamic")
    rest = [i for i in range(x.ndim) if i not in dims]
    flat = g.emit("Transpose", (x,), {"perm": [*rest, *dims]})
    flat = g.emit("Reshape", (flat, g.sizes([*[x.shape[i] for i in rest], n * m])))
    return g.emit("Gather", (flat, g.ints(np.arange(n * m).reshape(n, m).diagonal(offset))), {"axis": -1})


def windows(g: Graph, x: Edge, dim: int, size: int, step: int) -> Edge:
    """``unfold``: windows along a dimension of fixed size, which becomes the last one."""
    n = x.shape[dim]
    if isinstance(n, Extent) or isinstance(size, Extent):
        raise Unsupported("windows along a dynamic axis")
    at = np.arange((n - size) // step + 1)[:, None] * step + np.arange(size)
    taken = g.emit("Gather", (x, g.constant(at)), {"axis": dim})
    order = [i for i in range(x.ndim + 1) if i != dim + 1]
    return g.emit("Transpose", (taken,), {"perm": [*order, dim + 1]})


def flipped(g: Graph, x: Edge, dims: tuple) -> Edge:
    most, least = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    n = len(dims)
    return x if not n else g.emit("Slice",
                                  (x, g.ints([most] * n), g.ints([least] * n), g.ints(dims),
                                   g.ints([-1] * n)))


def rolled(g: Graph, x: Edge, shifts: Any, dims: Any) -> Edge:
    pairs = zip(shifts, dims) if isinstance(shifts, tuple) else [(shifts, dims)]
    if dims is None:
        raise Unsupported("roll without dims")
    most = np.iinfo(np.int64).max
    for shift, dim in pairs:
        n = x.shape[dim] if x.shape is not None else None
        if isinstance(n, int) and isinstance(shift, int):
            shift %= max(n, 1)
        cut = g.size(-shift if isinstance(shift, Extent) else -int(shift))
        axis, shape, dtype = g.ints([dim]), x.shape, x.dtype
        back = g.emit("Slice", (x, cut, g.ints([most]), axis))
        front = g.emit("Slice", (x, g.ints([0]), cut, axis))
        if shift == 0:
            continue
        x = g.emit("Concat", (back, front), {"axis": dim})
        x.shape, x.dtype = shape, dtype
    return x


def tiled(g: Graph, x: Edge, reps: tuple) -> Edge:
    if len(reps) > x.ndim:
        x = g.emit("Unsqueeze", (x, g.ints(range(len(reps) - x.ndim))))
        return g.emit("Tile", (x, g.sizes(reps)))
    return g.emit("Tile", (x, g.sizes([*[1] * (x.ndim - len(reps)), *reps])))


def stacked(g: Graph, xs: tuple, dim: int) -> Edge:
    return g.emit("Concat", [g.emit("Unsqueeze", (x, g.ints([dim]))) for x in xs], {"axis": dim})


def triangle(g: Graph, x: Edge, k: Any, upper: int) -> Edge:
    if x.dtype is dtypes.bool_:  # not every runtime has it for bools
        return g.cast(triangle(g, g.cast(x, dtypes.int64), k, upper), dtypes.bool_)
    return g.emit("Trilu", (x, g.number(k)), {"upper": upper})


def converted(g: Graph, x: Edge, dtype: Any) -> Edge:
    return g.cast(x, dtype)


def filled(g: Graph, x: Edge, value: Any) -> Edge:
    """A value in the shape and dtype of ``x``."""
    value = g.like(value, x)
    value = g.cast(value, x.dtype)
    if value.shape is not None and x.shape is not None and tuple(value.shape) == tuple(x.shape):
        return value
    return g.emit("Expand", (value, g.sizes(x.shape)))


def full(g: Graph, value: Any, shape: tuple, dtype: Any) -> Edge:
    return g.emit("Expand", (g.like(value, Edge(g, "", dtype)), g.sizes(shape)))


def counting(g: Graph, start: Any, end: Any, step: Any, dtype: Any) -> Edge:
    if any(isinstance(n, (float, Varies)) for n in (start, end, step)):
        raise Unsupported("arange of fractions up to a dynamic size")
    return g.cast(g.emit("Range", [g.number(n) for n in (start, end, step)], dtype=dtypes.int64), dtype)


def identity(g: Graph, n: Any, m: Any, dtype: Any) -> Edge:
    rows, columns = [counting(g, 0, k, 1, dtypes.int64) for k in (n, n if m is None else m)]
    return g.cast(g.emit("Unsqueeze", (rows, g.ints([1]))) == columns, dtype)


def evenly_spaced(g: Graph, start: Any, end: Any, steps: Any, dtype: Any) -> Edge:
    if isinstance(start, Varies) or isinstance(end, Varies):
        raise Unsupported("evenly spaced numbers between ends that depend on a dynamic size")
    steps_before = g.cast(counting(g, 0, steps, 1, dtypes.int64), dtype)
    last = g.cast(g.number(steps - 1), dtype)
    return steps_before * (float(end) - float(start)) / last + float(start)


def zeros(g: Graph, shape: tuple, like: Edge) -> Edge:
    """Zeros of a shape, in the dtype of another edge."""
    return shaped(g.emit("Expand", (g.like(0, like), g.sizes(shape))), shape)
