"""Reductions and running totals of the standard."""

from typing import Any

from .. import dtypes
from ..creation import full
from ..dtypes import DType
from ..ops.convert.cast import to
from ..ops.pointwise import compare
from ..ops.record.args import many_dims, one_dim
from ..ops.reduce import extremes, moments, scan, sums
from ..ops.shape import join
from ..tensor import Tensor
from .array import Array, array_arg, give


def _ready(x: Any, axis: Any, name: str) -> tuple[Tensor, tuple[int, ...]]:
    """The array and the axes to reduce: all for None, none for an empty tuple."""
    ndim = array_arg(x, name).ndim
    return x, () if axis == () else many_dims(axis, ndim, name, "axis")


def _total_dtype(x: Tensor, dtype: DType | None) -> DType:
    """The dtype of sums and products: integers become the widest of their kind."""
    if dtype is not None:
        return dtypes.as_dtype(dtype)
    if x.dtype.category > dtypes.INTEGER:
        return x.dtype
    return dtypes.int64 if x.dtype.is_signed or x.dtype is dtypes.bool_ else dtypes.uint64


def _reduced(name: str, op: Any, x: Any, axis: Any, keepdims: bool) -> Array:
    x, axes = _ready(x, axis, name)
    return give(op(x, axes, keepdims) if axes or not x.ndim else x, x)


def sum(x: Tensor, /, *, axis: Any = None, dtype: DType | None = None, keepdims: bool = False) -> Array:
    """The sum over axes; small integers are added up in 64 bits.

    >>> xp = fw.array_api
    >>> xp.sum(xp.asarray([200, 100], dtype=xp.uint8)).dtype
    framework.uint64
    """
    x, axes = _ready(x, axis, "sum")
    kind = _total_dtype(x, dtype)
    wide = to(x, kind)
    return give(sums.sum(wide, axes, keepdims, dtype=kind) if axes or not x.ndim else wide, x)


def prod(x: Tensor, /, *, axis: Any = None, dtype: DType | None = None, keepdims: bool = False) -> Array:
    """The product over axes; small integers are multiplied in 64 bits."""
    x, axes = _ready(x, axis, "prod")
    kind = _total_dtype(x, dtype)
    out = to(x, kind)
    for axis in axes:
        out = sums.prod(out, axis, True, dtype=kind)
    return give(out if keepdims or not axes else out.squeeze(axes), x)  # type: ignore[attr-defined]


def max(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The largest element over axes; nan wins."""
    return _reduced("max", extremes.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The smallest element over axes; nan wins."""
    return _reduced("min", extremes.amin, x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The arithmetic mean over axes."""
    return _reduced("mean", sums.mean, x, axis, keepdims)


def _spread(name: str, op: Any, x: Any, axis: Any, correction: float, keepdims: bool) -> Array:
    x, axes = _ready(x, axis, name)
    if not axes and x.ndim:  # over nothing: x - mean(x) is 0 where x is finite
        return give(op(x[..., None], -1, correction=correction))
    return give(op(x, axes, correction=correction, keepdim=keepdims))


def var(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance over axes, divided by n - correction."""
    return _spread("var", moments.var, x, axis, correction, keepdims)


def std(x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The standard deviation over axes: the root of ``var``."""
    return _spread("std", moments.std, x, axis, correction, keepdims)


def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether every element over axes is true; true of nothing."""
    return _reduced("all", sums.all, to(array_arg(x, "all"), dtypes.bool_), axis, keepdims)


def any(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether an element over axes is true; false of nothing."""
    return _reduced("any", sums.any, to(array_arg(x, "any"), dtypes.bool_), axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """How many elements over axes are not 0."""
    return sum(compare.ne(array_arg(x, "count_nonzero"), 0), axis=axis, dtype=dtypes.int64, keepdims=keepdims)


def _running(name: str, op: Any, first: int, x: Any, axis: int | None, dtype: Any, include: bool) -> Array:
    if axis is None:
        if array_arg(x, name).ndim != 1:
            raise ValueError(f"{name}: axis must be given for an array of {x.ndim} dimensions")
        axis = 0
    axis = one_dim(axis, array_arg(x, name).ndim, name, "axis")
    kind = _total_dtype(x, dtype)
    out = op(to(x, kind), axis, dtype=kind)
    if include:
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1:])
        out = join.cat([full(shape, first, dtype=kind, device=x.device), out], axis)
    return give(out, x)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                   include_initial: bool = False) -> Array:
    """The running sum along an axis; ``include_initial`` puts a 0 in front.

    >>> xp = fw.array_api
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    return _running("cumulative_sum", scan.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                    include_initial: bool = False) -> Array:
    """The running product along an axis; ``include_initial`` puts a 1 in front."""
    return _running("cumulative_prod", scan.cumprod, 1, x, axis, dtype, include_initial)


def diff(x: Tensor, /, n: int = 1, *, axis: int = -1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Array:
    """The n-th differences of neighbours along an axis."""
    parts = [p for p in (prepend, array_arg(x, "diff"), append) if p is not None]
    return give(scan.diff(join.cat(parts, axis) if len(parts) > 1 else x, n, axis), x)
