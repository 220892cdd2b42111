"""Order: sort, topk, kthvalue, median."""

import math
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import from_array
from ..record import return_types
from ..record.args import one_dim, real_arg
from ..record.batched import along, call
from ..record.op import Meta, Op
from ..record.public import public
from . import cuda
from .along import kept_shape, put_along
from .extremes import chosen_infer, chosen_vjp, evenly, need_elements

# -- sort ----------------------------------------------------------------------------------------


def _order(xp: Any, x: Any, dim: int, descending: bool) -> Any:
    """The indices that sort along ``dim``, equal elements in their order; nan is the largest."""
    if not descending:
        return xp.argsort(x, axis=dim, kind="stable")
    backward = xp.argsort(xp.flip(x, dim), axis=dim, kind="stable")
    return x.shape[dim] - 1 - xp.flip(backward, dim)


def _sort_kernel(xp: Any, x: Any, *, dim: int, descending: bool) -> tuple:
    if not x.ndim:
        return x.copy(), xp.zeros((), "int64")
    indices = _order(xp, x, dim, descending)
    return xp.take_along_axis(x, indices, axis=dim), indices


def _put_back(g: Any, indices: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    return put_along(g, indices, dim=dim, shape=x_shape, unique=True)


sort_op = Op("sort", "x", onnx="ordered(x, dim, descending)", runtime="ordered(x, dim, descending)",
             native="sort", device=cuda.sort, kernel=_sort_kernel, outputs="values indices", differentiable=1,
             batch=along("dim"),
             infer=lambda x, *, dim, descending: (x, Meta(x.shape, dtypes.int64)),
             vjp={"x": _put_back})


@public(method=True, op=sort_op, out=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """(values, indices) sorted along ``dim``. Equal elements keep their order, ``stable`` or not.

    nan counts as the largest.

    >>> fw.sort(fw.tensor([3.0, 1.0, 2.0])).values
    tensor([1., 2., 3.])
    >>> fw.sort(fw.tensor([3, 1, 2]), descending=True).indices
    tensor([0, 2, 1])
    """
    at = one_dim(dim, real_arg(input, "sort").ndim, "sort")
    return return_types.sort(*sort_op.run(input, dim=at, descending=bool(descending)))


@public(method=True, op=sort_op, out=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices (int64) that sort along ``dim``; see ``sort``.

    >>> fw.argsort(fw.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    return sort(real_arg(input, "argsort").detach(), dim, descending).indices


@public(method=True, op=sort_op, out=True)
def msort(input: Tensor) -> Tensor:
    """The values sorted along the first dimension.

    >>> fw.msort(fw.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    return sort(real_arg(input, "msort"), 0).values


# -- the k-th --------------------------------------------------------------------------------------


def _topk_kernel(xp: Any, x: Any, *, k: int, dim: int, largest: bool) -> tuple:
    if not x.ndim:
        return x.copy(), xp.zeros((), "int64")
    n = x.shape[dim]
    first = (slice(None),) * dim + (slice(k),)
    if not 0 < 8 * k < n:
        indices = _order(xp, x, dim, largest)[first]
        return xp.take_along_axis(x, indices, axis=dim), indices
    if largest:  # few of many: find them first, then sort only them
        found = xp.argpartition(x, n - k, axis=dim)[(slice(None),) * dim + (slice(n - k, None),)]
    else:
        found = xp.argpartition(x, k - 1, axis=dim)[first]
    values = xp.take_along_axis(x, found, axis=dim)
    order = _order(xp, values, dim, largest)
    return xp.take_along_axis(values, order, axis=dim), xp.take_along_axis(found, order, axis=dim)


def _topk_infer(x: Meta, *, k: int, dim: int, largest: bool) -> tuple[Meta, Meta]:
    shape = x.shape[:dim] + (k,) + x.shape[dim + 1:] if x.ndim else ()
    return Meta(shape, x.dtype), Meta(shape, dtypes.int64)


topk_op = Op("topk", "x", onnx="top(x, k, dim, largest)", runtime="top(x, k, dim, largest)",
             masks=True, native="topk", device=cuda.topk, kernel=_topk_kernel, infer=_topk_infer,
             batch=along("dim"),
             outputs="values indices", differentiable=1, vjp={"x": _put_back})


@public(method=True, op=topk_op, out=True)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """(values, indices) of the ``k`` largest elements along ``dim`` (or smallest), the best first.

    Raises ShapeError unless ``0 <= k <= input.size(dim)``.

    >>> fw.topk(fw.tensor([1.0, 4.0, 3.0]), 2).values
    tensor([4., 3.])
    """
    at = one_dim(dim, real_arg(input, "topk").ndim, "topk")
    n = input.shape[at] if input.ndim else 1
    if not (0 if input.ndim else 1) <= k <= n:
        raise ShapeError(f"topk: k={k} is out of range for dimension {at} of size {n}; it must be in "
                         f"[0, {n}]")
    return return_types.topk(*topk_op.run(input, k=int(k), dim=at, largest=bool(largest)))


def _kth(xp: Any, x: Any, k: int, dim: int, nan_wins: bool) -> Any:
    """The index, with ``dim`` kept at size 1, of the element that sorting puts at place ``k``."""
    order = xp.argpartition(x, k, axis=dim)
    indices = order[(slice(None),) * dim + (slice(k, k + 1),)]
    if nan_wins and x.dtype.kind == "f":
        missing = xp.isnan(x)
        indices = xp.where(missing.any(axis=dim, keepdims=True),
                           xp.expand_dims(missing.argmax(axis=dim), dim), indices)
    return indices


def _kth_kernel(xp: Any, x: Any, *, dim: int, keepdim: bool, k: int, nan_wins: bool) -> tuple:
    if not x.ndim:
        return x.copy(), xp.zeros((), "int64")
    indices = _kth(xp, x, k, dim, nan_wins)
    shape = kept_shape(x.shape, (dim,)) if keepdim else x.shape[:dim] + x.shape[dim + 1:]
    return xp.take_along_axis(x, indices, axis=dim).reshape(shape), indices.reshape(shape)


kthvalue_op = Op("kthvalue", "x", batch=along("dim"), masks=True, native="kthvalue", kernel=_kth_kernel,
                 device=cuda.kthvalue,
                 infer=chosen_infer("kthvalue"), outputs="values indices", differentiable=1,
                 vjp={"x": chosen_vjp})
def batch_median(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: along the only dimension behind the batch."""
    row = arrays[0].reshape((size, math.prod(arrays[0].shape[1:])))
    return call(kthvalue_op, row, dim=1, keepdim=False, k=(row.shape[1] - 1) // 2, nan_wins=True)[0]


median_all = Op("median", "x", masks=True, native="median", device=cuda.median,
                infer=lambda x: Meta((), x.dtype), batch=batch_median,
                kernel=lambda xp, x: _kth_kernel(xp, x.reshape(-1), dim=0, keepdim=False,
                                                 k=(x.size - 1) // 2, nan_wins=True)[0],
                vjp={"x": lambda g, x, out: evenly(g, x, out, tuple(range(len(x.shape))))})


@public(method=True, op=kthvalue_op, out=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """(values, indices) of the ``k``-th smallest element along ``dim``; ``k`` counts from 1.

    Raises ShapeError unless ``1 <= k <= input.size(dim)``.

    >>> fw.kthvalue(fw.tensor([3.0, 1.0, 2.0]), 2)
    kthvalue(values=tensor(2.), indices=tensor(2))
    """
    at = one_dim(dim, real_arg(input, "kthvalue").ndim, "kthvalue")
    n = input.shape[at] if input.ndim else 1
    if not 1 <= k <= n:
        raise ShapeError(f"kthvalue: k={k} is out of range for dimension {at} of size {n}; it counts "
                         f"from 1")
    return return_types.kthvalue(*kthvalue_op.run(input, dim=at, keepdim=keepdim, k=int(k) - 1,
                                                  nan_wins=False))


@public(method=True, op=median_all, out=True)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, of two middle ones the lower; along ``dim``: (values, indices). nan wins.

    Of all elements, equal ones share the gradient; along ``dim`` the element at the index gets it. The
    median of nothing is nan; along an empty dimension it raises ShapeError.

    >>> fw.median(fw.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.)
    >>> fw.median(fw.tensor([[1.0, 5.0, 3.0]]), dim=1).values
    tensor([3.])
    """
    real_arg(input, "median")
    if dim is None:
        if not input.numel():
            return from_array(np.asarray(_no_median(input), input.dtype.numpy), input)
        return median_all.run(input)
    at = one_dim(dim, input.ndim, "median")
    need_elements(input, (at,) if input.ndim else (), "median")
    middle = (input.shape[at] - 1) // 2 if input.ndim else 0
    return return_types.median(*kthvalue_op.run(input, dim=at, keepdim=keepdim, k=middle, nan_wins=True))


def _no_median(x: Tensor) -> float:
    if x.dtype.is_floating_point:
        return float("nan")
    return dtypes.iinfo(x.dtype).min if x.dtype.is_signed else 0
