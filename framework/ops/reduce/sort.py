"""Order: sort, topk, median, unique, and places in sorted sequences."""

from typing import Any

import numpy as np

from ... import dtypes
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast, from_array
from ..record import return_types
from ..record.args import one_dim, real_arg, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.join import cat
from .along import kept_shape, put_along, take_along
from .reduce import chosen_infer, chosen_vjp, evenly, need_elements

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


sort_op = Op("sort", "x", native="sort", kernel=_sort_kernel, outputs="values indices", differentiable=1,
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


topk_op = Op("topk", "x", masks=True, native="topk", kernel=_topk_kernel, infer=_topk_infer,
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


kthvalue_op = Op("kthvalue", "x", masks=True, native="kthvalue", kernel=_kth_kernel,
                 infer=chosen_infer("kthvalue"), outputs="values indices", differentiable=1,
                 vjp={"x": chosen_vjp})
median_all = Op("median", "x", masks=True, native="median", infer=lambda x: Meta((), x.dtype),
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


# -- unique ----------------------------------------------------------------------------------------


def _unique_kernel(xp: Any, x: Any, *, dim: int | None) -> tuple:
    values, inverse, counts = xp.unique(x, return_inverse=True, return_counts=True, axis=dim,
                                        equal_nan=False)
    shape = x.shape if dim is None else (x.shape[dim],)
    return values, inverse.reshape(shape).astype("int64"), counts.astype("int64")


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
    values, inverse, counts = unique_op.run(input, dim=at)
    result = (values,) + ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return values if len(result) == 1 else result


# -- places in sorted sequences --------------------------------------------------------------------


def _searchsorted_kernel(xp: Any, a: Any, x: Any, *, right: bool) -> Any:
    side = "right" if right else "left"
    if a.ndim == 1:
        return xp.searchsorted(a, x, side=side).astype("int64")
    rows, keys = a.reshape(-1, a.shape[-1]), x.reshape(-1, x.shape[-1])
    out = xp.empty(keys.shape, "int64")
    for i in range(len(rows)):
        out[i] = xp.searchsorted(rows[i], keys[i], side=side)
    return out.reshape(x.shape)


searchsorted_op = Op("searchsorted", "sorted_sequence input", native="searchsorted",
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
    if tensor_arg(boundaries, "bucketize", "boundaries").ndim != 1:
        raise ShapeError(f"bucketize: boundaries must be a vector, got shape {list(boundaries.shape)}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


firsts = Op("_unique_consecutive", "x index", vjp="undefined", moves=True,
            kernel=lambda xp, x, index, *, dim: xp.take(x, index, dim),
            infer=lambda x, index, *, dim: Meta(x.shape[:dim] + index.shape + x.shape[dim + 1:], x.dtype))


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
    at = 0 if dim is None else one_dim(dim, x.ndim, "unique_consecutive")
    shape = x.shape
    x = x.reshape(-1) if dim is None else x
    n = x.shape[at]
    rows = x.movedim(at, 0).reshape(n, -1) if x.numel() else x.new_zeros((n, 1))
    new = (rows[1:] != rows[:-1]).any(1).long()
    group = cat([new.new_zeros((min(n, 1),)), new.cumsum(0)], 0)
    first = cat([new.new_ones((min(n, 1),)), new], 0).nonzero().reshape(-1)
    found = [firsts.run(x, first, dim=at)]
    if return_inverse:
        found.append(group.reshape(shape) if dim is None else group)
    if return_counts:
        found.append(group.bincount() if n else group)
    return found[0] if len(found) == 1 else tuple(found)
