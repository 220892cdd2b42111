"""Reading and writing by positions in ONNX."""

from typing import Any

import numpy as np

from ... import dtypes
from ..graph import Edge, Graph, Unsupported
from .reductions import as_dtype, shaped
from .words import where


def indexed(g: Graph, x: Edge, index: Edge, dims: tuple) -> Edge:
    """Choice by index tensors, stacked in the first dimension of ``index``, at these dimensions."""
    if len(dims) == 1:
        first = g.emit("Gather", (index, g.constant(np.int64(0))), {"axis": 0})
        return g.emit("Gather", (x, first), {"axis": dims[0]})
    together = dims == tuple(range(dims[0], dims[0] + len(dims)))
    if not together:
        raise Unsupported("indices at dimensions that are apart")
    order = [*dims, *[i for i in range(x.ndim) if i not in dims]]
    turned = x if order == list(range(x.ndim)) else g.emit("Transpose", (x,), {"perm": order})
    rank = index.ndim - 1
    places = g.emit("Transpose", (index,), {"perm": [*range(1, rank + 1), 0]})
    y = g.emit("GatherND", (turned, places))
    if dims[0] == 0:
        return y
    lead = dims[0]
    back = [*range(rank, rank + lead), *range(rank), *range(rank + lead, rank + x.ndim - len(dims))]
    return g.emit("Transpose", (y,), {"perm": back})


def placed(g: Graph, x: Edge, value: Any, index: Edge, dims: tuple, reduction: str = "none") -> Edge:
    """``x`` with a value at the positions of index tensors, or added there."""
    if dims != tuple(range(dims[0], dims[0] + len(dims))):
        raise Unsupported("indices at dimensions that are apart")
    order = [*dims, *[i for i in range(x.ndim) if i not in dims]]
    turned = x if order == list(range(x.ndim)) else g.emit("Transpose", (x,), {"perm": order})
    rank, lead, k = index.ndim - 1, dims[0], len(dims)
    places = g.emit("Transpose", (index,), {"perm": [*range(1, rank + 1), 0]})
    shape = (*index.shape[1:], *[x.shape[i] for i in order[k:]])
    updates = g.cast(g.like(value, x), x.dtype)
    if lead and updates.shape is not None and len(updates.shape) == len(shape):  # positions stand at ``lead``
        back = [*range(lead, lead + rank), *range(lead), *range(lead + rank, len(shape))]
        updates = g.emit("Transpose", (updates,), {"perm": back})
    elif lead and updates.shape not in ((), None):
        raise Unsupported("a value that broadcasts to what it is written to")
    updates = g.emit("Expand", (updates, g.sizes(shape)))
    y = g.emit("ScatterND", (turned, places, updates), {"reduction": reduction})
    if order == list(range(x.ndim)):
        return y
    return g.emit("Transpose", (y,), {"perm": [order.index(i) for i in range(x.ndim)]})


def scattered(g: Graph, x: Edge, index: Edge, src: Any, dim: int) -> Edge:
    source = g.like(src, x)
    if source.shape is None or tuple(source.shape) != tuple(index.shape):
        source = g.emit("Expand", (source, g.sizes(index.shape)))
    return g.emit("ScatterElements", (x, index, source), {"axis": dim})


def put_slice(g: Graph, x: Edge, key: tuple, shape: tuple) -> Edge:
    """Zeros with ``x`` in a slice: padding, where nothing is stepped over."""
    given = sum(k is not None and k is not Ellipsis for k in key)
    full: list[Any] = []
    for k in key:
        full += [slice(None)] * (len(shape) - given) if k is Ellipsis else [k]
    full += [slice(None)] * (len(shape) - len(full))
    low, high = [], []
    for k, n in zip(full, shape):
        if not isinstance(k, slice) or k.step not in (None, 1) or (
                isinstance(k.start, int) and k.start < 0 or isinstance(k.stop, int) and k.stop < 0):
            raise Unsupported("a slice that is stepped over or counted from the end, put back")
        low.append(k.start or 0)
        high.append(0 if k.stop is None else n - k.stop)
    return g.emit("Pad", (x, g.sizes(low + high)), {"mode": "constant"})


def picked(g: Graph, x: Edge, target: Edge, ignore: Any) -> Edge:
    """The score of each target's class, 0 for those ignored."""
    target = as_dtype(g, target, dtypes.int64)
    safe = target if ignore is None else where(g, target == ignore, 0, target)
    rows = g.emit("GatherElements", (x, g.emit("Unsqueeze", (safe, g.ints([1])))), {"axis": 1})
    scores = g.emit("Squeeze", (rows, g.ints([1])))
    return scores if ignore is None else where(g, target == ignore, 0.0, scores)


def one_hot(g: Graph, x: Edge, count: Any) -> Edge:
    if not x.ndim:
        row = one_hot(g, shaped(g.emit("Unsqueeze", (x, g.ints([0]))), (1,)), count)
        return g.emit("Squeeze", (row, g.ints([0])))
    return g.emit("OneHot", (x, g.size(count), g.ints([0, 1])), {"axis": -1}, dtype=dtypes.int64)


def selected(g: Graph, x: Edge, mask: Edge) -> Edge:
    """The elements where a mask holds; the mask covers the first dimensions."""
    lead = mask.ndim
    rest = x.shape[lead:]
    flat = x if lead == 1 else g.emit("Reshape", (x, g.sizes([-1, *rest])))
    return g.emit("Compress", (flat, g.emit("Reshape", (mask, g.ints([-1])))), {"axis": 0})
