"""Sums, means, extremes, quantiles, running totals, order: NumPy's functions on tensors."""

from typing import Any

import numpy as np

from ..creation import ones_like
from ..ops.record.args import many_dims
from ..tensor import Tensor
from . import ufuncs
from .table import NO_VALUE, T, Unsupported, floating, implements, masked, operand, store, tensor


def _axes(x: Tensor, axis: Any, name: str) -> tuple[int, ...]:
    return () if axis == () else many_dims(axis, x.ndim, name, "axis")


def _keep(keepdims: Any) -> bool:
    return keepdims is not NO_VALUE and bool(keepdims)


def _by_ufunc(function: Any, ufunc: np.ufunc) -> None:
    """The reductions that NumPy defines as ``ufunc.reduce`` over all axes by default."""
    def reduced(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
                initial: Any = NO_VALUE, where: Any = NO_VALUE) -> Any:
        return ufuncs.reduce(ufunc, a, axis, dtype, out, _keep(keepdims), initial,
                             True if where is NO_VALUE else where)

    def without_dtype(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE,
                      initial: Any = NO_VALUE, where: Any = NO_VALUE) -> Any:
        return reduced(a, axis, None, out, keepdims, initial, where)

    def truth(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *,
              where: Any = NO_VALUE) -> Any:
        return reduced(T.ne(tensor(a), 0), axis, None, out, keepdims, NO_VALUE, where)
    forms: dict[Any, Any] = {np.add: reduced, np.multiply: reduced,
                             np.maximum: without_dtype, np.minimum: without_dtype}
    implements(function)(forms.get(ufunc, truth))


for _function, _ufunc in (
        (np.sum, np.add), (np.prod, np.multiply), (np.max, np.maximum), (np.amax, np.maximum),
        (np.min, np.minimum), (np.amin, np.minimum), (np.all, np.logical_and), (np.any, np.logical_or)):
    _by_ufunc(_function, _ufunc)


def _count(x: Tensor, axes: tuple, where: Any) -> Any:
    return T.sum(T.broadcast_to(tensor(where), x.shape).to(x.dtype), axes, True)


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *,
         where: Any = NO_VALUE) -> Any:
    x = floating(a) if dtype is None else tensor(a).to(dtype=dtype)  # type: ignore[attr-defined]
    axes = _axes(x, axis, "mean")
    if where is NO_VALUE or where is True:
        result = T.mean(x, axes, _keep(keepdims)) if axes or not x.ndim else x
    else:
        result = T.sum(masked(x, where, 0), axes, True) / _count(x, axes, where)  # type: ignore[operator]
        result = result if _keep(keepdims) else T.squeeze(result, axes)
    return store(result, out, "mean")


def _spread(name: str, op: Any) -> Any:
    def spread(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
               keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE, mean: Any = NO_VALUE,
               correction: Any = NO_VALUE) -> Any:
        if where is not NO_VALUE or mean is not NO_VALUE:
            raise Unsupported(f"np.{name}: where= and mean= are not supported for tensors; select the "
                            f"elements first")
        x = floating(a) if dtype is None else tensor(a).to(dtype=dtype)  # type: ignore[attr-defined]
        n = ddof if correction is NO_VALUE else correction
        return store(op(x, _axes(x, axis, name), correction=n, keepdim=_keep(keepdims)), out, name)
    return spread


implements(np.var)(_spread("var", T.var))
implements(np.std)(_spread("std", T.std))


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Any:
    x = tensor(a)
    axes, keep = _axes(x, axis, "ptp"), _keep(keepdims)
    return store(T.amax(x, axes, keep) - T.amin(x, axes, keep), out, "ptp")


def _extreme_position(name: str, op: Any) -> Any:
    def position(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Any:
        return store(op(tensor(a), axis, _keep(keepdims)), out, name)
    return position


implements(np.argmax)(_extreme_position("argmax", T.argmax))
implements(np.argmin)(_extreme_position("argmin", T.argmin))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    x = tensor(a)
    return T.sum(T.ne(x, 0), _axes(x, axis, "count_nonzero"), keepdims)


# -- without nan -----------------------------------------------------------------------------------

def _nan_free(name: str, fill: Any, reduce: Any) -> Any:
    def reduced(a: Any, axis: Any = None, **settings: Any) -> Any:
        x = tensor(a)
        return reduce(T.where(T.isnan(x), fill, x), axis, **settings)
    return implements(getattr(np, name))(reduced)


_nan_free("nansum", 0.0, lambda x, axis, **s: ufuncs.reduce(np.add, x, axis, **s))
_nan_free("nanprod", 1.0, lambda x, axis, **s: ufuncs.reduce(np.multiply, x, axis, **s))
_nan_free("nancumsum", 0.0, lambda x, axis, **s: cumsum(x, axis, **s))
_nan_free("nancumprod", 1.0, lambda x, axis, **s: cumprod(x, axis, **s))


def _nan_extreme(name: str, ufunc: np.ufunc, fill: float) -> None:
    def extreme(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        x = tensor(a)
        missing, axes = T.isnan(x), _axes(x, axis, name)
        result = ufuncs.reduce(ufunc, T.where(missing, fill, x), axes, keepdims=keepdims)
        return store(T.where(T.all(missing, axes, keepdims), np.nan, result), out, name)
    implements(getattr(np, name))(extreme)


_nan_extreme("nanmax", np.maximum, -np.inf)
_nan_extreme("nanmin", np.minimum, np.inf)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    x = floating(a) if dtype is None else tensor(a).to(dtype=dtype)  # type: ignore[attr-defined]
    return store(T.nanmean(x, _axes(x, axis, "nanmean"), keepdims), out, "nanmean")


def _nan_spread(name: str, root: bool) -> None:
    def spread(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
               keepdims: bool = False) -> Any:
        x = floating(a) if dtype is None else tensor(a).to(dtype=dtype)  # type: ignore[attr-defined]
        axes = _axes(x, axis, name)
        there = ~T.isnan(x)
        far = T.where(there, x - T.nanmean(x, axes, True), 0.0)
        result = T.sum(far * far, axes, keepdims) / (T.sum(there, axes, keepdims) - ddof)
        return store(T.sqrt(result) if root else result, out, name)
    implements(getattr(np, name))(spread)


_nan_spread("nanvar", False)
_nan_spread("nanstd", True)


# -- quantiles, weights ----------------------------------------------------------------------------

def _quantile(name: str, op: Any, per: float) -> None:
    def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
                 method: str = "linear", keepdims: Any = False, *, weights: Any = None) -> Any:
        if weights is not None or method not in ("linear", "lower", "higher", "nearest", "midpoint"):
            raise Unsupported(f"np.{name}: weights= and method={method!r} are not supported for tensors; "
                            f"method must be linear, lower, higher, nearest or midpoint")
        x, q = floating(a), tensor(q)
        share = (q / per).to(x.dtype)  # type: ignore[operator, attr-defined]
        flat = share if share.ndim < 2 else share.reshape(-1)
        result = op(x, flat, axis, bool(keepdims), interpolation=method)
        return store(result.reshape(q.shape + result.shape[1:]) if share.ndim > 1 else result, out, name)
    implements(getattr(np, name))(quantile)


_quantile("quantile", T.quantile, 1)
_quantile("percentile", T.quantile, 100)
_quantile("nanquantile", T.nanquantile, 1)
_quantile("nanpercentile", T.nanquantile, 100)


def _median(name: str, op: Any) -> None:
    def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
               keepdims: Any = False) -> Any:
        x = floating(a)
        return store(op(x, 0.5, axis, bool(keepdims)), out, name)  # the mean of two middle ones
    implements(getattr(np, name))(median)


_median("median", T.quantile)
_median("nanmedian", T.nanquantile)


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *,
            keepdims: Any = NO_VALUE) -> Any:
    x = tensor(a)
    axes = _axes(x, axis, "average")
    w = ones_like(x) if weights is None else tensor(weights)
    if w.shape != x.shape:
        w = T.reshape(w, tuple([x.shape[d] if d in axes else 1 for d in range(x.ndim)]))
    total = T.sum(T.broadcast_to(w, x.shape), axes, _keep(keepdims))
    result = T.sum(x * w, axes, _keep(keepdims)) / total  # type: ignore[operator]
    return (result, T.broadcast_to(total, result.shape)) if returned else result


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
        fweights: Any = None, aweights: Any = None, *, dtype: Any = None) -> Tensor:
    x = tensor(m) if dtype is None else tensor(m).to(dtype=dtype)  # type: ignore[attr-defined]
    x = x if rowvar or x.ndim < 2 else T.transpose(x, 0, 1)
    if y is not None:
        other = tensor(y) if rowvar or tensor(y).ndim < 2 else T.transpose(tensor(y), 0, 1)
        x = T.cat([T.atleast_2d(x), T.atleast_2d(other)])
    weights = [None if w is None else tensor(w) for w in (fweights, aweights)]
    return T.cov(x, correction=int(ddof) if ddof is not None else 0 if bias else 1, fweights=weights[0],
                 aweights=weights[1])


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    c: Any = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    scale = T.sqrt(T.diagonal(c))
    return c / scale[:, None] / scale[None, :]


# -- running ---------------------------------------------------------------------------------------

def _running(name: str, op: Any) -> Any:
    def running(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        x = tensor(a) if dtype is None else tensor(a).to(dtype=dtype)  # type: ignore[attr-defined]
        return store(op(T.reshape(x, -1) if axis is None else x, axis or 0), out, name)
    return running


cumsum = implements(np.cumsum)(_running("cumsum", T.cumsum))
cumprod = implements(np.cumprod)(_running("cumprod", T.cumprod))


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE) -> Tensor:
    x = tensor(a)
    ends = [None if v is NO_VALUE else tensor(v).to(x.dtype) for v in (prepend, append)]  # type: ignore[attr-defined]
    shape = list(x.shape)
    shape[axis] = 1
    ends = [T.broadcast_to(v, tuple(shape)) if v is not None and not v.ndim else v for v in ends]
    parts = [p for p in (ends[0], x, ends[1]) if p is not None]
    return T.diff(T.cat(parts, axis) if len(parts) > 1 else x, n, axis)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    parts = [None if v is None else T.reshape(tensor(v), -1) for v in (to_begin, to_end)]
    middle = T.diff(T.reshape(tensor(ary), -1))
    return T.cat([p for p in (parts[0], middle, parts[1]) if p is not None])


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = tensor(f)
    dims = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if any(np.ndim(v) for v in varargs):
        spacing: Any = [tensor(v) for v in varargs]
    else:
        spacing = [float(v) for v in varargs] if len(varargs) > 1 else float(varargs[0]) if varargs else 1
    parts = T.gradient(x, spacing=spacing, dim=dims, edge_order=edge_order)
    return parts[0] if len(dims) == 1 else tuple(parts)


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    if x is None:
        return T.trapezoid(tensor(y), dx=dx, dim=axis)
    return T.trapezoid(tensor(y), tensor(x), dim=axis)


# -- order -----------------------------------------------------------------------------------------

@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Tensor:
    x = tensor(a)
    return T.sort(T.reshape(x, -1) if axis is None else x, -1 if axis is None else axis, stable=True)[0]


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Tensor:
    x = tensor(a)
    return T.argsort(T.reshape(x, -1) if axis is None else x, -1 if axis is None else axis, stable=True)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    return T.searchsorted(tensor(a), tensor(v), side=side, sorter=None if sorter is None else tensor(sorter))


@implements(np.clip)
def clip(a: Any, a_min: Any = NO_VALUE, a_max: Any = NO_VALUE, out: Any = None, *, min: Any = NO_VALUE,
         max: Any = NO_VALUE) -> Any:
    bounds = [next((v for v in pair if v is not NO_VALUE), None) for pair in ((a_min, min), (a_max, max))]
    low, high = (None if v is None else operand(v) for v in bounds)
    result = tensor(a)
    if low is not None:
        result = T.maximum(result, low) if isinstance(low, Tensor) else T.clamp(result, low)
    if high is not None:
        result = T.minimum(result, high) if isinstance(high, Tensor) else T.clamp(result, max=high)
    return store(result, out, "clip")


@implements(np.round, np.around)
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    return store(T.round(tensor(a), decimals=decimals), out, "round")

