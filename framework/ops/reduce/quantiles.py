"""Quantiles, medians that ignore nan, modes."""

from typing import Any

import numpy as np

from ...backends import device_code, device_flags
from ...dtypes import FLOATING
from ...errors import ShapeError
from ...quiet import quiet
from ...tensor import Tensor
from ..convert.cast import from_array
from ..index.scatter import gather, gather_op
from ..language.elementwise import Elementwise
from ..record import return_types
from ..record.args import floating, one_dim, real_arg, tensor_arg
from ..record.batched import along, innermost
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.alone import flattened, in_any_order
from ..shape.view import take_shape
from . import cuda
from .along import kept_shape
from .extremes import chosen_infer, chosen_vjp, need_elements
from .sort import median, sort

NEAREST = ("linear", "lower", "higher", "nearest", "midpoint")


def _quantile(x: Any, q: Any, dim: Any, keepdim: bool, how: str, name: str, ignore: bool) -> Tensor:
    x = real_arg(x, name)
    floating(x, name)
    if how not in NEAREST:
        raise ValueError(f"{name}: interpolation must be one of {', '.join(NEAREST)}, got {how!r}")
    if not isinstance(q, Tensor):
        if not isinstance(q, (int, float)):
            raise TypeError(f"{name}: argument 'q' must be a number or a Tensor, got {type(q).__name__}; "
                            f"convert it with framework.tensor(...)")
        q = from_array(np.asarray(q, x.dtype.numpy), x)
    if q.ndim > 1:
        raise ShapeError(f"{name}: q must be a number or have 1 dimension, got shape {list(q.shape)}")
    if q.dtype is not x.dtype:
        raise TypeError(f"{name}: q must be {x.dtype} like input, got {q.dtype}; convert it")
    asked, wrong = innermost(q._array), f"{name}: every q must lie in [0, 1], got "
    if not device_flags.check_reals(asked, 0, 1, wrong + "{real}"):
        outside = asked[(asked < 0) | (asked > 1)]
        if outside.size:
            raise ValueError(f"{wrong}{float(outside[0]):g}")
    if not x.numel():
        raise ShapeError(f"{name}: input of shape {list(x.shape)} has no elements")
    ndim, at = x.ndim, 0 if dim is None else one_dim(dim, x.ndim, name)
    shape = kept_shape(x.shape, tuple(range(ndim)) if dim is None else (at,) if ndim else ())
    if dim is None or not ndim:
        x = flattened(x) if ndim else x.reshape(-1)  # type: ignore[attr-defined]
    elif at != ndim - 1:
        x = x.movedim(at, -1)  # type: ignore[attr-defined]
    if x._node is q._node is None and type(x._array) is np.ndarray and quiet.run is not None \
            and x._array.dtype.kind in FLOATING and x._array.shape[-1] <= _SHORT:
        out: Any = quantile_op.run(x, flattened(q) if q.ndim else take_shape(q, (1,)), how=how, ignore=ignore)
        if dim is None and not q.ndim and not keepdim:
            return take_shape(out, ())
    else:
        out = _interpolate(sort(x, -1)[0], q.reshape(-1), how, ignore)  # type: ignore[attr-defined]
    out = out.movedim(-1, 0).reshape(q.numel(), *shape)  # type: ignore[attr-defined]
    if not keepdim and ndim:
        every = tuple(range(1, ndim + 1)) if dim is None else (at + 1,)
        out = out.squeeze(every)
    return out if q.ndim else out.squeeze(0)


_SHORT = 512  # numbers of a row; longer ones are sorted as others are


def _quantile_kernel(xp: Any, x: Any, q: Any, *, how: str, ignore: bool) -> Any:
    x, n = xp.sort(x, axis=-1), x.shape[-1]
    missing = xp.isnan(x).sum(axis=-1, keepdims=True)
    known = xp.maximum(n - 1 - missing, 0) if ignore else xp.where(missing > 0, xp.nan, n - 1)
    ranks = (q * known).astype(x.dtype)
    whole = xp.isnan(ranks)
    ranks = xp.where(whole, n - 1, ranks)
    ends = {"higher": xp.ceil, "nearest": xp.round}.get(how, xp.floor), xp.ceil
    below, above = [xp.take_along_axis(x, end(ranks).astype("int64"), -1) for end in ends]
    if how not in ("linear", "midpoint"):
        return below
    weight = x.dtype.type(0.5) if how == "midpoint" else ranks - xp.floor(ranks)
    far = above - (1 - weight) * (above - below)
    return xp.where(weight < 0.5, below + weight * (above - below), far)


# along the last dimension, of what is in no graph on the CPU: (*, n), (k) -> (*, k)
quantile_op = Op("quantile", "x q", kernel=_quantile_kernel, native="quantile",
                 infer=lambda x, q, **_: Meta((*x.shape[:-1], q.shape[0]), x.dtype))


def _interpolate(x: Any, q: Any, how: str, ignore: bool) -> Any:
    """Values of x, sorted along its last dimension, at the ranks of every q: (*, n), (k) -> (*, k)."""
    if ignore:
        ranks = q * (x.shape[-1] - 1 - x.isnan().sum(-1, keepdim=True)).clamp(min=0).to(x.dtype)
    else:  # in order, nan are last
        last = x[..., -1:]
        ranks = _rank.run(q, last.detach(), n=float(x.shape[-1] - 1))
    fixed = ranks.detach()
    low = fixed.ceil() if how == "higher" else fixed.round() if how == "nearest" else fixed.floor()
    below = _at(x, low)
    if how in ("lower", "higher", "nearest"):
        return below
    above = _at(x, fixed.ceil())
    return below.lerp(above, 0.5 if how == "midpoint" else ranks - low)  # type: ignore[attr-defined]


_rank = Elementwise("quantile_rank", "x last", "where(isnan(last), n + 0 * x, x * n)", settings="n",
                    vjp={"x": "where(isnan(last), 0.0, g * n)"})


def _at(x: Any, ranks: Any) -> Any:
    """The elements at ranks; those of a wrong q, of which the host hears later, are at no place."""
    index = ranks.long()
    return gather_op.run(x, index, dim=x.ndim - 1) if device_code.is_device_array(x._array) else gather(
        x, -1, index)


@public(method=True, out=True, autocast="float32")
def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
             interpolation: str = "linear") -> Tensor:
    """The q-th quantiles along ``dim``, or of all elements: shape of q, then input's without ``dim``.

    q: a number or a tensor (k) in [0, 1]. interpolation between the two nearest elements: "linear",
    "lower", "higher", "nearest", "midpoint". A row with a nan gives nan. Raises ValueError for q.

    >>> fw.quantile(fw.tensor([0.0, 1.0, 2.0, 3.0]), 0.5)
    tensor(1.5000)
    """
    return _quantile(input, q, dim, keepdim, interpolation, "quantile", False)


@public(method=True, out=True, autocast="float32")
def nanquantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
                interpolation: str = "linear") -> Tensor:
    """``quantile`` of the elements that are not nan; nan only where there are none.

    >>> fw.nanquantile(fw.tensor([0.0, float("nan"), 1.0]), 0.5)
    tensor(0.5000)
    """
    return _quantile(input, q, dim, keepdim, interpolation, "nanquantile", True)


def _nanmedian_kernel(xp: Any, x: Any, *, dim: int, keepdim: bool) -> tuple:
    order = x.argsort(axis=dim, kind="stable")
    middle = xp.maximum((x == x).sum(axis=dim, keepdims=True) - 1, 0) // 2
    indices = xp.take_along_axis(order, middle, dim)
    found = xp.take_along_axis(x, indices, dim), indices
    return found if keepdim else tuple([a.squeeze(dim) for a in found])


nanmedian_op = Op("nanmedian", "x", batch=along("dim"), masks=True, kernel=_nanmedian_kernel,
                  native="nanmedian", infer=chosen_infer("nanmedian"), outputs="values indices",
                  differentiable=1, vjp={"x": chosen_vjp})


@public(method=True, out=True)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle one of the elements that are not nan, of two middle ones the lower.

    Along ``dim``: (values, indices). nan only where there is nothing else.

    >>> fw.nanmedian(fw.tensor([4.0, float("nan"), 1.0, 3.0]))
    tensor(3.)
    """
    if dim is None and type(input) is Tensor and input._node is None:
        own = input._array
        if type(own) is np.ndarray and own.dtype.kind in FLOATING and own.size:  # nearly always
            return nanmedian_op.run(in_any_order(input), dim=0, keepdim=False)[0]  # type: ignore
    if not tensor_arg(input, "nanmedian").dtype.is_floating_point:
        return median(input) if dim is None else return_types.nanmedian(*median(input, dim, keepdim))
    if dim is None and device_code.is_device_array(input._array) and input.numel():
        return nanmedian(input.reshape(-1), 0)[0]  # type: ignore[attr-defined]
    own = type(input._array) is np.ndarray
    if dim is None:
        kept = input[~input.isnan()]  # type: ignore[attr-defined, index]
        return median(kept) if kept.numel() else median(input)
    at = one_dim(dim, input.ndim, "nanmedian")
    need_elements(input, (at,) if input.ndim else (), "nanmedian")
    if not input.ndim:
        return return_types.nanmedian(*median(input, dim, keepdim))
    if own:
        return return_types.nanmedian(*nanmedian_op.run(input, dim=at, keepdim=bool(keepdim)))
    values, indices = sort(input, at)
    count = (~values.isnan()).sum(at, keepdim=True)
    k = ((count - 1) // 2).clamp(min=0)
    found = gather(values, at, k), gather(indices, at, k)
    return return_types.nanmedian(*(t if keepdim else t.squeeze(at) for t in found))  # type: ignore[attr-defined]


def _mode_kernel(xp: Any, x: Any, *, dim: int, keepdim: bool) -> tuple:
    """Runs of equal elements of the sorted rows are counted; the first longest one wins."""
    if not x.ndim:
        return x.copy(), xp.zeros((), "int64")
    moved = xp.moveaxis(x, dim, -1)
    n = moved.shape[-1]
    rows = moved.reshape(-1, n)
    ordered = xp.sort(rows, axis=1)
    starts = xp.ones(rows.shape, dtype="int64")
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    group = xp.cumsum(starts, axis=1) - 1 + xp.arange(len(rows))[:, None] * n
    counts = xp.bincount(group.reshape(-1), minlength=max(rows.size, 1))[group]
    best = xp.argmax(counts, axis=1)[:, None]
    values = xp.take_along_axis(ordered, best, axis=1)
    same = (rows == values) | ((rows != rows) & (values != values))
    indices = n - 1 - xp.argmax(same[:, ::-1], axis=1)
    shape = kept_shape(x.shape, (dim,)) if keepdim else x.shape[:dim] + x.shape[dim + 1:]
    return values.reshape(shape), indices.astype("int64").reshape(shape)


mode_op = Op("mode", "x", batch=along("dim"), masks=True, kernel=_mode_kernel, native="mode",
             infer=chosen_infer("mode"), device=cuda.mode,
             outputs="values indices",
             differentiable=1, vjp={"x": chosen_vjp})


@public(method=True, op=mode_op, out=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """(values, indices) of the most frequent element along ``dim``, the smallest of several.

    The index is that of its last occurrence. Raises ShapeError for an empty dimension.

    >>> fw.mode(fw.tensor([3, 1, 3, 2])).values
    tensor(3)
    """
    at = one_dim(dim, real_arg(input, "mode").ndim, "mode")
    need_elements(input, (at,) if input.ndim else (), "mode")
    return return_types.mode(*mode_op.run(input, dim=at, keepdim=bool(keepdim)))
