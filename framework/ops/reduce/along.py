"""Two records that ops giving (values, indices) share: take along a dimension, and put back there."""

from typing import Any

import numpy as np

from ...backends.native import native_or
from ...backends.sums import add_at
from ..record.batched import along
from ..record.op import Meta, Op
from ..shape.view import reshape_op


def kept_shape(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after reducing ``dims`` with keepdim."""
    return tuple(1 if i in dims else s for i, s in enumerate(shape))


def _grid(xp: Any, indices: Any, dim: int) -> tuple:
    """Indices along ``dim`` as a full index: one integer array per dimension."""
    ndim = indices.ndim
    places = [xp.arange(s).reshape((1,) * i + (s,) + (1,) * (ndim - i - 1))
              for i, s in enumerate(indices.shape)]
    places[dim] = indices
    return tuple(places)


_gathered = native_or("gather", lambda x, index, dim: NotImplemented)
_added = native_or("ungather", lambda x, index, dim, shape: NotImplemented)


def _take_kernel(xp: Any, x: Any, indices: Any, *, dim: int, unique: bool) -> Any:
    if not x.ndim:
        return x.copy()
    out = _gathered(x, indices, dim) if xp is np else NotImplemented
    return x[_grid(xp, indices, dim)] if out is NotImplemented else out


def _put_kernel(xp: Any, x: Any, indices: Any, *, dim: int, shape: tuple[int, ...],
                unique: bool) -> Any:
    if not shape:
        return x.copy()
    out = _added(x, indices, dim, shape) if xp is np else NotImplemented
    if out is not NotImplemented:
        return out
    out = xp.zeros(shape, x.dtype)
    if unique:
        out[_grid(xp, indices, dim)] = x
    else:
        add_at(xp, out, _grid(xp, indices, dim), x)
    return out


# unique: no place is named twice, so putting need not add
take_along = Op("take_along", "x indices", onnx="GatherElements(x, indices, axis=dim)",
                runtime="gathered(x, indices, dim)",
                batch=along("dim"), masks=True, kernel=_take_kernel, jvp="linear",
                infer=lambda x, indices, *, dim, unique: Meta(indices.shape, x.dtype),
                vjp={"x": lambda g, indices, x_shape, dim, unique: put_along(
                    g, indices, dim=dim, shape=x_shape, unique=unique)})
put_along = Op("put_along", "x indices", batch=along("dim", shapes="shape"), kernel=_put_kernel, jvp="linear",
               infer=lambda x, indices, *, dim, shape, unique: Meta(shape, x.dtype),
               vjp={"x": lambda g, indices, dim, unique: take_along(
                   g, indices, dim=dim, unique=unique)})


def to_chosen(g: Any, indices: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    """The gradient of one chosen element per slice: it goes to that element."""
    kept = kept_shape(x_shape, (dim,))
    return put_along(reshape_op(g, shape=kept), reshape_op(indices, shape=kept), dim=dim,
                     shape=x_shape, unique=True)
