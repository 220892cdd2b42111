"""Sums, extremes, moments and order in ONNX."""

from typing import Any

import numpy as np

from ... import dtypes
from ..graph import Edge, Graph


def reduced(g: Graph, op: str, x: Edge, dims: Any, keepdim: bool) -> Edge:
    """Axes are an attribute of all but ReduceSum before opset 18."""
    axes = list(range(x.ndim)) if dims is None else [dims] if isinstance(dims, int) else list(dims)
    if not axes:
        return x
    if g.opset >= 18 or op == "ReduceSum":
        return g.emit(op, (x, g.ints(axes)), {"keepdims": int(keepdim)})
    return g.emit(op, (x,), {"axes": axes, "keepdims": int(keepdim)})


def total(g: Graph, x: Edge, dims: Any, keepdim: bool) -> Edge:
    if not x.dtype.is_floating_point:
        x = as_dtype(g, x, dtypes.int64)
    return reduced(g, "ReduceSum", x, dims, keepdim)


def as_dtype(g: Graph, x: Edge, dtype: Any) -> Edge:
    y = g.cast(x, dtype)
    y.shape = x.shape
    return y


def every(g: Graph, x: Edge, dims: Any, keepdim: bool, some: bool) -> Edge:
    """all, any: as the smallest or largest of 0 and 1."""
    x = x if x.dtype is dtypes.bool_ else shaped(x != 0, x.shape)
    x = as_dtype(g, x, dtypes.int32)
    return g.cast(reduced(g, "ReduceMax" if some else "ReduceMin", x, dims, keepdim), dtypes.bool_)


def shaped(x: Edge, shape: Any) -> Edge:
    x.shape = shape
    return x


def variance(g: Graph, x: Edge, dims: Any, correction: Any, keepdim: bool) -> Edge:
    axes = tuple(range(x.ndim)) if dims is None else tuple(dims)
    centred = shaped(x - reduced(g, "ReduceMean", x, axes, True), x.shape)
    square = shaped(centred * centred, x.shape)
    if not correction:
        return reduced(g, "ReduceMean", square, axes, keepdim)
    count: Any = 1
    for a in axes:
        count = x.shape[a] * count
    return reduced(g, "ReduceSum", square, axes, keepdim) / g.like(count - correction, x)


def distances(g: Graph, x: Edge, y: Edge, p: float) -> Edge:
    """Of all rows of x and all rows of y, p being 1 or 2."""
    n = x.ndim
    apart = g.emit("Unsqueeze", (x, g.ints([n - 1]))) - g.emit("Unsqueeze", (y, g.ints([n - 2])))
    apart = shaped(apart, (*x.shape[:-1], y.shape[-2], x.shape[-1]))
    return reduced(g, f"ReduceL{int(p)}", apart, (n,), False)


def norm(g: Graph, x: Edge, ord: float, dims: Any, keepdim: bool) -> Edge:
    if ord in (1, 2):
        return reduced(g, f"ReduceL{int(ord)}", x, dims, keepdim)
    power = shaped(g.operator("Pow")(g.emit("Abs", (x,)), float(ord)), x.shape)
    return g.operator("Pow")(reduced(g, "ReduceSum", power, dims, keepdim), 1 / ord)


def best(g: Graph, x: Edge, dim: int, keepdim: bool, largest: bool) -> tuple:
    """(values, indices) of ``max`` and ``min`` along a dimension."""
    if x.dtype is dtypes.bool_:
        values, places = best(g, as_dtype(g, x, dtypes.int32), dim, keepdim, largest)
        return g.cast(values, dtypes.bool_), places
    if not x.ndim:
        return x, g.constant(np.int64(0))
    kind = "Max" if largest else "Min"
    places = g.emit(f"Arg{kind}", (x,), {"axis": dim, "keepdims": int(keepdim)}, dtype=dtypes.int64)
    return reduced(g, f"Reduce{kind}", x, (dim,), keepdim), places


def top(g: Graph, x: Edge, k: Any, dim: int, largest: bool) -> tuple:
    values, places = g.emit("TopK", (x, g.size(k)), {"axis": dim, "largest": int(largest), "sorted": 1}, 2)
    places.dtype = dtypes.int64
    return values, places


def ordered(g: Graph, x: Edge, dim: int, descending: bool) -> tuple:
    if not x.ndim:
        return x, g.constant(np.int64(0))
    return top(g, x, x.shape[dim], dim, descending)


def summed(g: Graph, x: Edge, dim: int, reverse: bool) -> Edge:
    if not x.ndim:
        return x
    if not x.dtype.is_floating_point:
        x = g.cast(x, dtypes.int64)
    return g.emit("CumSum", (x, g.constant(np.int64(dim))), {"reverse": int(reverse)})


def counted(g: Graph, x: Edge, dims: Any) -> Edge:
    there = x if x.dtype is dtypes.bool_ else x != 0
    return reduced(g, "ReduceSum", shaped(g.cast(there, dtypes.int64), x.shape), dims, False)
