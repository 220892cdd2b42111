"""Places in sorted sequences."""

import math
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast, from_array
from ..record.args import real_arg, tensor_arg
from ..record.batched import call, everywhere
from ..record.op import Meta, Op
from ..record.public import public
from . import cuda
from .along import take_along


def _searchsorted_kernel(xp: Any, a: Any, x: Any, *, right: bool) -> Any:
    side = "right" if right else "left"
    if a.ndim == 1:
        return xp.searchsorted(a, x, side=side).astype("int64")
    rows, keys = a.reshape(-1, a.shape[-1]), x.reshape(-1, x.shape[-1])
    out = xp.empty(keys.shape, "int64")
    for i in range(len(rows)):
        out[i] = xp.searchsorted(rows[i], keys[i], side=side)
    return out.reshape(x.shape)


def batch_searchsorted(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: one row that all share takes keys of any shape, else there are rows of keys."""
    (a, x), (rows, _) = arrays, batched
    if not rows and a.ndim == 1:
        return call(op, a, x, **settings)
    alone = a.ndim - rows == 1
    a, x = everywhere(size, arrays, batched)
    shape = x.shape
    if not math.prod(shape):
        return np.zeros(shape, np.int64)
    out = call(op, a, x.reshape((size, math.prod(shape[1:]))) if alone else x, **settings)
    return out.reshape(shape)


searchsorted_op = Op("searchsorted", "sorted_sequence input", batch=batch_searchsorted, native="searchsorted",
                     device=cuda.searchsorted,
                     kernel=_searchsorted_kernel, infer=lambda a, x, *, right: Meta(x.shape, dtypes.int64))


@public(op=searchsorted_op, out=True)
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Tensor | None = None) -> Tensor:
    """Where to insert the numbers of ``input`` to keep the last dimension of the sequence sorted.

    The index i has ``sequence[i-1] < input <= sequence[i]``; with ``right`` (or ``side="right"``),
    ``sequence[i-1] <= input < sequence[i]``. The sequence is a vector, or has the shape of ``input``
    but for the last dimension. sorter: indices that sort the sequence. Raises ShapeError if the shapes
    do not fit.

    >>> fw.searchsorted(fw.tensor([1, 3, 5]), fw.tensor([3, 4]))
    tensor([1, 2])
    >>> fw.searchsorted(fw.tensor([1, 3, 5]), 3, right=True)
    tensor(2)
    """
    if side is sorter is None and not out_int32 and _are_usual(sorted_sequence, input):
        return searchsorted_op.run(sorted_sequence, input, right=bool(right))
    a = real_arg(sorted_sequence, "searchsorted", "sorted_sequence").detach()
    x = _as_keys(input, a, "searchsorted")
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ValueError(f"searchsorted: side must be 'left' or 'right' and agree with right={right}, "
                         f"got {side!r}")
    if sorter is not None:
        if tensor_arg(sorter, "searchsorted", "sorter").shape != a.shape:
            raise ShapeError(f"searchsorted: sorter of shape {list(sorter.shape)} for a sequence of "
                             f"shape {list(a.shape)}; they must be equal")
        a = take_along.run(a, cast.run(sorter, dtype=dtypes.int64), dim=a.ndim - 1, unique=False)
    if a.ndim == 0 or (a.ndim > 1 and a.shape[:-1] != x.shape[:-1]):
        raise ShapeError(f"searchsorted: a sequence of shape {list(a.shape)} does not fit input of shape "
                         f"{list(x.shape)}; it must be a vector or agree in all but the last dimension")
    result = searchsorted_op.run(a, x, right=right or side == "right")
    return cast.run(result, dtype=dtypes.int32) if out_int32 else result


def _are_usual(sequence: Any, keys: Any) -> bool:
    """Whether there is nothing to check: a vector and numbers of one real dtype."""
    if type(sequence) is not Tensor or type(keys) is not Tensor:
        return False
    a, x = sequence._array, keys._array
    return a.ndim == 1 and a.dtype is x.dtype and a.dtype.kind in "fiuV"


def _as_keys(input: Any, like: Tensor, op: str) -> Tensor:
    if isinstance(input, (int, float)):
        return from_array(np.asarray(input), like)
    return real_arg(input, op, "input").detach()


@public(op=searchsorted_op, out=True)
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False,
              right: bool = False) -> Tensor:
    """The number of the bucket, between sorted ``boundaries`` (a vector), of each element.

    Bucket i has ``boundaries[i-1] < input <= boundaries[i]``; with ``right``,
    ``boundaries[i-1] <= input < boundaries[i]``.

    >>> fw.bucketize(fw.tensor([0.5, 1.0, 2.5]), fw.tensor([1.0, 2.0]))
    tensor([0, 0, 2])
    """
    if not out_int32 and _are_usual(boundaries, input):
        return searchsorted_op.run(boundaries, input, right=bool(right))
    if tensor_arg(boundaries, "bucketize", "boundaries").ndim != 1:
        raise ShapeError(f"bucketize: boundaries must be a vector, got shape {list(boundaries.shape)}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
