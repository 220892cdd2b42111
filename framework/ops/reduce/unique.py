"""Elements without repetition."""

from typing import Any

import numpy as np

from ...backends import about_to_read
from ...backends.native import native_or
from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import one_dim, tensor_arg
from ..record.op import Op
from ..record.public import public

_sorted = native_or("sort", lambda x, dim, descending: NotImplemented)  # with places
_NEAR = 4  # numbers that may lie between whole numbers, for each of these, where those in use are counted
_FEW = 256  # elements: below, sorting takes as long


def _counted(x: Any, alone: bool) -> tuple | None:
    """The same of whole numbers that lie near each other, without sorting; None for others."""
    if x.dtype.kind not in "iu" or x.size < _FEW:
        return None
    least, most = int(x.min()), int(x.max())
    if most - least > max(_NEAR * x.size, 1 << 10):
        return None
    if least < np.iinfo(np.int64).min // 2 or most > np.iinfo(np.int64).max // 2:
        return None
    places = x.reshape(-1).astype(np.int64, copy=False) - least
    counts = np.bincount(places)
    values = counts.nonzero()[0]
    found = (values + least).astype(x.dtype)
    if alone:
        return found, _NOTHING, _NOTHING
    order = np.zeros(counts.size, np.int64)
    order[values] = np.arange(values.size)
    return found, order[places].reshape(x.shape), counts[values].astype(np.int64, copy=False)


def _unique_kernel(xp: Any, x: Any, *, dim: int | None, alone: bool) -> tuple:
    """``alone``: without where each element went, and how often each occurs."""
    if dim is None and xp is np and (near := _counted(x, alone)) is not None:
        return near
    if dim is None and xp is np and x.size:
        row, places = x.reshape(-1), None
        if (ordered := _sorted(row, dim=0, descending=False)) is not NotImplemented:
            row, places = ordered
        elif alone:
            row = np.sort(row)
        new = np.append(True, row[1:] != row[:-1])
        if alone:
            return row[new], _NOTHING, _NOTHING
        if places is not None:
            inverse = np.empty(row.size, np.int64)
            inverse[places] = np.cumsum(new) - 1
            return row[new], inverse.reshape(x.shape), np.bincount(inverse).astype(np.int64, copy=False)
    about_to_read(x, "unique")
    values, inverse, counts = xp.unique(x, return_inverse=True, return_counts=True, axis=dim,
                                        equal_nan=False)
    shape = x.shape if dim is None else (x.shape[dim],)
    return values, inverse.reshape(shape).astype("int64"), counts.astype("int64")


_NOTHING = np.zeros(0, np.int64)
# no shape rule can tell how many elements differ: the record is private
unique_op = Op("_unique", "x", kernel=_unique_kernel, outputs="values inverse counts", differentiable=1,
               vjp="undefined")


@public(method=True, op=unique_op)
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The different elements, sorted; with ``dim``, the different slices along it.

    return_inverse: also, for each element, where its value is in the result. return_counts: also how
    often each occurs. Every nan counts as different. Backward through it raises.

    >>> fw.unique(fw.tensor([3, 1, 3]))
    tensor([1, 3])
    >>> fw.unique(fw.tensor([3, 1, 3]), return_counts=True)[1]
    tensor([1, 2])
    """
    at = None if dim is None else one_dim(dim, tensor_arg(input, "unique").ndim, "unique")
    if at is not None and not input.ndim:
        raise ShapeError("unique: dim is for a tensor with dimensions, this one is 0-dim")
    values, inverse, counts = unique_op.run(input, dim=at, alone=not (return_inverse or return_counts))
    result = (values,) + ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return values if len(result) == 1 else result


def _runs_kernel(xp: Any, x: Any, *, dim: int | None, inverse: bool, counts: bool) -> tuple:
    """What is not asked for is empty."""
    shape, at = x.shape, dim or 0
    x = x.reshape(-1) if dim is None else x
    n = x.shape[at]
    new = xp.ones(n, bool)
    if n > 1 and x.size:
        rows = x if x.ndim == 1 else xp.moveaxis(x, at, 0).reshape(n, x.size // n)
        other = rows[1:] != rows[:-1]
        new[1:] = other if other.ndim == 1 else other.any(axis=1)
    elif n:
        new[1:] = False
    about_to_read(x, "unique_consecutive")
    first = new.nonzero()[0]
    nothing = first[:0].astype("int64")
    group = xp.cumsum(new, dtype="int64") - 1 if inverse else nothing
    return (xp.take(x, first, at), group.reshape(shape) if inverse and dim is None else group,
            xp.diff(first, append=n).astype("int64") if counts else nothing)


runs_op = Op("_unique_consecutive", "x", vjp="undefined", moves=True, kernel=_runs_kernel, native="runs",
             outputs="values inverse counts", differentiable=1)


@public(method=True)
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The elements (or slices along ``dim``) without those that equal the one before them.

    return_inverse: also where each went; return_counts: also how many each stands for. Backward
    through it raises.

    >>> fw.unique_consecutive(fw.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    x: Any = tensor_arg(input, "unique_consecutive")
    at = None if dim is None else one_dim(dim, x.ndim, "unique_consecutive")
    values, inverse, counts = runs_op.run(x, dim=at, inverse=return_inverse, counts=return_counts)
    result = (values,) + ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return values if len(result) == 1 else result
