"""Scattering that combines: sums, means, products and extremes of what lands on one place."""

from typing import Any

import numpy as np

from ...dtypes import FLOATING
from ...errors import DTypeError, ShapeError
from ...quiet import quiet
from ...tensor import Tensor
from ..pointwise.arithmetic import mul_op, over
from ..pointwise.choose import where_op
from ..record import autocast
from ..record.args import one_dim, real_arg, tensor_arg
from ..record.batched import along
from ..record.constants import like
from ..record.op import Op
from ..record.public import public
from ..shape.broadcast import expand
from ..shape.slices import slice_along
from . import cuda
from .index import positions
from .scatter import (
    _add,
    _at_least_1d,
    _check,
    _grid,
    _sources,
    gather_op,
    scatter,
    scatter_add,
    scatter_op,
    scattered_into,
    ungather,
)

WAYS = ("sum", "prod", "mean", "amax", "amin")


def _extreme_kernel(xp: Any, x: Any, src: Any, index: Any, *, dim: int, largest: bool) -> Any:
    out = xp.array(x, copy=True, order="C")
    best = xp.maximum if largest else xp.minimum
    for k in range(index.shape[dim]):  # within one slice no place is named twice
        part = (slice(None),) * dim + (slice(k, k + 1),)
        key = _grid(xp, index[part], dim)
        out[key] = best(out[key], src[part])
    return out


def _extreme_vjp(g: Any, x: Any, src: Any, index: Any, out: Any, dim: int) -> tuple:
    """Equal ones share the gradient."""
    ones, own = like(g, lambda xp, dtype: xp.ones(out.shape, dtype)), x == out
    won = src == gather_op(out, index, dim=dim)
    winners = where_op(own, ones, 0.0) + ungather(
        where_op(won, gather_op(ones, index, dim=dim), 0.0), index, dim=dim, shape=out.shape)
    share = over(g, winners)
    return where_op(own, share, 0.0), where_op(won, gather_op(share, index, dim=dim), 0.0)


extreme_op = Op("scatter_extreme", "x src index", kernel=_extreme_kernel, vjp=_extreme_vjp,
                batch=along("dim"),
                infer=lambda x, src, index, *, dim, largest: x, native="scatter_extreme",
                device=cuda.scatter_extreme)


def _emptied(x: Any, at: int, index: Any, neutral: Any) -> Any:
    """x with ``neutral`` at the places that the index names."""
    return scatter(x, at, index, value=neutral)


def _limit(x: Tensor, largest: bool) -> Any:
    if x.dtype.is_floating_point:
        return float("-inf" if largest else "inf")
    from_ = x.new_full((), 0)._array  # type: ignore[attr-defined]
    info = _integer_limits(from_.dtype)
    return info[0] if largest else info[1]


def _integer_limits(dtype: Any) -> tuple[int, int]:
    if dtype.kind == "b":
        return 0, 1
    bits = 8 * dtype.itemsize
    return (0, 2 ** bits - 1) if dtype.kind == "u" else (-2 ** (bits - 1), 2 ** (bits - 1) - 1)


_STRAIGHT = ("sum", "prod", "amax", "amin")


def _refuse_mean_of_truth(x: Any, reduce: str, op: str) -> None:
    if reduce == "mean" and x.dtype.category == 0:
        raise DTypeError(f"{op}: truth values have no mean; convert the tensors first, e.g. input.float()")


def _scatter_reduce_into(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
                         include_self: bool = True) -> Any:
    if reduce not in _STRAIGHT or include_self is not True or not isinstance(src, Tensor):
        return NotImplemented
    return scattered_into(input, dim, index, src, reduce, False, "scatter_reduce_")


@public(method=True, inplace=_scatter_reduce_into, out=True)
def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
                   include_self: bool = True) -> Tensor:
    """``input`` with what ``index`` sends to each place along ``dim`` combined with what was there.

    reduce: "sum", "prod", "mean", "amax" or "amin". include_self: whether the old element takes part.
    Equal extremes share the gradient. "prod" takes one step per position of the index along ``dim``.
    Raises ShapeError, or IndexError for a place out of range.

    >>> fw.scatter_reduce(fw.ones(2), 0, fw.tensor([0, 1, 1]), fw.tensor([5.0, 2.0, 3.0]), "sum")
    tensor([6., 6.])
    """
    if reduce not in WAYS:
        raise ValueError(f"scatter_reduce: reduce must be one of {', '.join(WAYS)}, got {reduce!r}")
    at, index = _check(input, dim, index, "scatter_reduce")
    tensor_arg(src, "scatter_reduce", "src")
    _refuse_mean_of_truth(input, reduce, "scatter_reduce")
    if reduce in ("amax", "amin"):
        real_arg(input, "scatter_reduce")
    if not index._array.size:
        return input.clone()  # type: ignore[attr-defined]
    src = _sources(input, src, index, "scatter_reduce")
    shape, index = input.shape, _at_least_1d(index)
    out = _combined(_at_least_1d(input), at, index, src, reduce, include_self)
    return out.reshape(shape) if not shape else out  # type: ignore[attr-defined]


def _combined(x: Any, at: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    if reduce in ("amax", "amin"):
        base = x if include_self else _emptied(x, at, index, _limit(x, reduce == "amax"))
        return extreme_op.run(base, src, index, dim=at, largest=reduce == "amax")
    base = x if include_self else _emptied(x, at, index, 1 if reduce == "prod" else 0)
    if reduce == "prod":
        for k in range(index.shape[at]):
            part, values = slice_along(index, at, slice(k, k + 1)), slice_along(src, at, slice(k, k + 1))
            there = mul_op.run(gather_op.run(base, part, dim=at), values)
            base = scatter_op.run(base, there, part, dim=at)
        return base
    # index and src were looked at; a block of autocast has a say in scatter_add
    total: Any = scatter_add(base, at, index, src) if autocast.used else _add(base, at, index, src)
    if reduce == "sum":
        return total
    ones = x.new_ones(index.shape)
    count = scatter_add(x.new_ones(x.shape) if include_self else _emptied(
        x.new_ones(x.shape), at, index, 0), at, index, ones)
    return total / count if x.dtype.is_floating_point else total // count


_COMBINED = {"prod": "multiply", "mean": "add", "amax": "maximum", "amin": "minimum"}


def _index_reduce_kernel(xp: Any, x: Any, source: Any, index: Any, *, dim: int, way: str, own: bool) -> Any:
    out = xp.moveaxis(xp.array(x, copy=True, order="C"), dim, 0)
    if not own:
        low, high = _integer_limits(x.dtype) if x.dtype.kind in "iu" else (-xp.inf, xp.inf)
        out[index] = {"prod": 1, "mean": 0, "amax": low, "amin": high}[way]
    combine, counts = getattr(xp, _COMBINED[way]), xp.full(len(out), int(own))
    for place, part in zip(index.tolist(), xp.moveaxis(source, dim, 0)):
        out[place] = combine(out[place], part)
        counts[place] += 1
    if way == "mean":
        out[index] /= counts[index].reshape(-1, *(1,) * (x.ndim - 1)).astype(x.dtype)
    return xp.ascontiguousarray(xp.moveaxis(out, 0, dim))


# of numbers on the CPU, in no graph
index_reduce_op = Op("index_reduce", "x source index", kernel=_index_reduce_kernel, native="index_reduce",
                     infer=lambda x, *_, **__: x)


def _are_plain(x: Tensor, source: Tensor, way: str) -> bool:
    """Whether the record takes them: floating, or int64 of which no mean is wanted, in memory."""
    a, b = x._array, source._array
    if type(a) is not np.ndarray or type(b) is not np.ndarray or quiet.run is None:
        return False
    whole = a.dtype.char == "l" == b.dtype.char and way != "mean"
    return whole or a.dtype.kind in FLOATING and b.dtype.kind in FLOATING


def _index_reduce_into(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
                       include_self: bool = True) -> Any:
    if reduce not in _STRAIGHT[2:] or include_self is not True or not isinstance(source, Tensor):
        return NotImplemented
    return scattered_into(input, dim, index, source, reduce, True, "index_reduce_")


@public(method=True, inplace=_index_reduce_into, out=True)
def index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
                 include_self: bool = True) -> Tensor:
    """``input`` with slices of ``source`` combined into the slices that ``index`` (n) names along ``dim``.

    reduce: "prod", "mean", "amax" or "amin"; else as ``scatter_reduce``.

    >>> fw.index_reduce(fw.ones(2), 0, fw.tensor([0, 0]), fw.tensor([2.0, 3.0]), "prod")
    tensor([6., 1.])
    """
    if reduce not in WAYS[1:]:
        raise ValueError(f"index_reduce: reduce must be one of {', '.join(WAYS[1:])}, got {reduce!r}")
    at = one_dim(dim, tensor_arg(input, "index_reduce").ndim, "index_reduce")
    tensor_arg(source, "index_reduce", "source"), tensor_arg(index, "index_reduce", "index")
    _refuse_mean_of_truth(input, reduce, "index_reduce")
    wanted = (*input.shape[:at], index.numel(), *input.shape[at + 1:]) if input.ndim else source.shape
    if index.ndim > 1 or source.shape != wanted:
        raise ShapeError(f"index_reduce: index must be (n) and source {list(wanted)}, got shapes "
                         f"{list(index.shape)} and {list(source.shape)}")
    if input._node is source._node is None and index._array.ndim == 1 \
            and _are_plain(input, source, reduce):
        whole = positions(index, input._array.shape[at], "index_reduce", at)
        return index_reduce_op.run(input, source, whole, dim=at, way=reduce, own=bool(include_self))
    places: Any = index.reshape(-1, *(1,) * (source.ndim - 1 - at))  # type: ignore[attr-defined]
    places = expand.run(places, size=source.shape) if source.ndim else index
    return scatter_reduce(input, dim, places, source, reduce, include_self=include_self)
