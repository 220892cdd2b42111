"""Shape ops that share memory: reshape, permute, basic slices and what is written with them."""

import math
from typing import Any

from ..errors import ShapeError
from ..tensor import Tensor
from .args import many_dims, one_dim, size_args, tensor_arg
from .op import Meta, Op
from .public import public


def _reshape_infer(x: Meta, *, shape: tuple[int, ...]) -> Meta:
    return Meta(full_shape(x.shape, shape, "reshape"), x.dtype)


def full_shape(old: tuple[int, ...], new: tuple[int, ...], op: str) -> tuple[int, ...]:
    """``new`` with its one -1 worked out; raises ShapeError if the element counts differ."""
    total, known = math.prod(old), math.prod(s for s in new if s != -1)
    if any(s < -1 for s in new) or new.count(-1) > 1:
        raise ShapeError(f"{op}: shape {list(new)} may hold one -1 and no other negative size")
    if -1 in new:
        if known == 0 or total % known:
            raise ShapeError(f"{op}: a tensor of shape {list(old)} ({total} elements) does not fit shape "
                             f"{list(new)}")
        return tuple(total // known if s == -1 else s for s in new)
    if known != total:
        raise ShapeError(f"{op}: a tensor of shape {list(old)} ({total} elements) does not fit shape "
                         f"{list(new)} ({known} elements)")
    return new


reshape_op = Op("reshape", "x", kernel=lambda xp, x, *, shape: x.reshape(shape), view="maybe",
                infer=_reshape_infer, jvp="linear",
                vjp={"x": lambda g, x_shape: reshape_op(g, shape=x_shape)})


def _permute_infer(x: Meta, *, dims: tuple[int, ...]) -> Meta:
    if len(dims) != x.ndim:
        raise ShapeError(f"permute: a tensor of {x.ndim} dimensions needs {x.ndim} dims, got {list(dims)}")
    return Meta(tuple(x.shape[d] for d in dims), x.dtype)


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    back = [0] * len(dims)
    for i, d in enumerate(dims):
        back[d] = i
    return tuple(back)


permute_op = Op("permute", "x", kernel=lambda xp, x, *, dims: x.transpose(dims), view=True,
                infer=_permute_infer, jvp="linear",
                vjp={"x": lambda g, dims: permute_op(g, dims=_inverse(dims))})


@public(method=True, op=reshape_op)
def reshape(x: Tensor, *shape: Any) -> Tensor:
    """The elements in another shape: a view where memory allows, else a copy. One size may be -1.

    Raises ShapeError if the number of elements differs.

    >>> fw.reshape(fw.arange(6), (2, -1))
    """
    return reshape_op.run(tensor_arg(x, "reshape"), shape=size_args(shape, "reshape", "shape"))


@public("", method=True)
def view(x: Tensor, *shape: Any) -> Tensor:
    """The same memory in another shape; raises ShapeError where that needs a copy (use reshape).

    ``x.view(dtype)`` reads the bytes as another dtype of the same size.

    >>> fw.arange(4).view(2, 2)
    """
    from ..dtypes import DType
    if len(shape) == 1 and isinstance(shape[0], DType):
        from ..tensor import counter_of, wrap
        out = wrap(x._array.view(shape[0].numpy))
        out._counter = counter_of(x)
        return out
    out = reshape_op.run(x, shape=size_args(shape, "view", "shape"))
    if out._base is None and out._array.size:
        raise ShapeError(f"view: a tensor of shape {list(x.shape)} and strides {list(x.stride())} cannot "
                         f"be seen as {list(out.shape)} without a copy; use reshape()")
    return out


@public("", method=True)
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of ``other``.

    >>> fw.arange(4).view_as(fw.ones(2, 2))
    """
    return view(x, other.shape)


@public("", method=True)
def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of ``other``.

    >>> fw.arange(4).reshape_as(fw.ones(2, 2))
    """
    return reshape(x, other.shape)


@public("", method=True)
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """The tensor expanded to the shape of ``other``, without copying.

    >>> fw.tensor([1.0]).expand_as(fw.ones(2))
    """
    return x.expand(other.shape)  # type: ignore[attr-defined]


@public(method=True, op=permute_op)
def permute(x: Tensor, *dims: Any) -> Tensor:
    """A view with the dimensions in another order.

    >>> fw.permute(fw.ones(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    tensor_arg(x, "permute")
    order = tuple(one_dim(d, x.ndim, "permute", "dims") for d in size_args(dims, "permute", "dims"))
    if len(set(order)) != len(order):
        raise ShapeError(f"permute: dims {list(order)} names a dimension twice")
    return permute_op.run(x, dims=order)


@public(method="transpose swapaxes swapdims", alias="swapaxes swapdims")
def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions swapped.

    >>> fw.transpose(fw.tensor([[1, 2], [3, 4]]), 0, 1)
    """
    tensor_arg(x, "transpose")
    a, b = one_dim(dim0, x.ndim, "transpose", "dim0"), one_dim(dim1, x.ndim, "transpose", "dim1")
    order = list(range(x.ndim))
    if order:
        order[a], order[b] = order[b], order[a]
    return permute_op.run(x, dims=tuple(order))


@public(method=True)
def t(x: Tensor) -> Tensor:
    """The transpose of a matrix, as a view; a vector or number is returned as it is.

    >>> fw.t(fw.tensor([[1, 2], [3, 4]]))
    """
    if tensor_arg(x, "t").ndim > 2:
        raise ShapeError(f"t: wanted at most 2 dimensions, got shape {list(x.shape)}; use transpose()")
    return permute_op.run(x, dims=tuple(range(x.ndim))[::-1])


@public("", method="T", as_property=True)
def T(x: Tensor) -> Tensor:
    """The transpose: all dimensions in reverse order."""
    return permute_op.run(x, dims=tuple(range(x.ndim))[::-1])


@public("", method="mT", as_property=True)
def mT(x: Tensor) -> Tensor:
    """The last two dimensions swapped: the transpose of every matrix of a batch."""
    if x.ndim < 2:
        raise ShapeError(f"mT: wanted at least 2 dimensions, got shape {list(x.shape)}")
    return transpose(x, -2, -1)


@public(method=True)
def movedim(x: Tensor, source: Any, destination: Any) -> Tensor:
    """A view with some dimensions moved to other places, the rest in order.

    >>> fw.movedim(fw.ones(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    tensor_arg(x, "movedim")
    given = [d if isinstance(d, (tuple, list)) else (d,) for d in (source, destination)]
    if len(given[0]) != len(given[1]):
        raise ShapeError(f"movedim: {len(given[0])} source dims but {len(given[1])} destinations")
    src = [one_dim(d, x.ndim, "movedim", "source") for d in given[0]]
    dst = [one_dim(d, x.ndim, "movedim", "destination") for d in given[1]]
    if len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise ShapeError("movedim: a dimension is named twice")
    order = [d for d in range(x.ndim) if d not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return permute_op.run(x, dims=tuple(order))


@public(method=True, inplace=False)
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of size 1 at ``dim``.

    >>> fw.unsqueeze(fw.ones(3), 0).shape
    (1, 3)
    """
    at = one_dim(dim, tensor_arg(x, "unsqueeze").ndim + 1, "unsqueeze")
    return reshape_op.run(x, shape=x.shape[:at] + (1,) + x.shape[at:])


@public(method=True)
def squeeze(x: Tensor, dim: Any = None) -> Tensor:
    """A view without the dimensions of size 1, or without those of ``dim`` that have size 1.

    >>> fw.squeeze(fw.ones(1, 3, 1)).shape
    (3,)
    """
    tensor_arg(x, "squeeze")
    drop = range(x.ndim) if dim is None else many_dims(dim, x.ndim, "squeeze") if dim != () else ()
    kept = tuple(s for i, s in enumerate(x.shape) if s != 1 or i not in drop)
    return reshape_op.run(x, shape=kept)


@public(method=True)
def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions ``start_dim`` to ``end_dim`` as one.

    >>> fw.flatten(fw.ones(2, 3, 4), 1).shape
    (2, 12)
    """
    tensor_arg(x, "flatten")
    if x.ndim == 0:
        return reshape_op.run(x, shape=(1,))
    start = one_dim(start_dim, x.ndim, "flatten", "start_dim")
    end = one_dim(end_dim, x.ndim, "flatten", "end_dim")
    if start > end:
        raise ShapeError(f"flatten: start_dim={start_dim} comes after end_dim={end_dim}")
    if start == end:
        return x
    middle = math.prod(x.shape[start:end + 1])
    return reshape_op.run(x, shape=x.shape[:start] + (middle,) + x.shape[end + 1:])


@public(method=True)
def ravel(x: Tensor) -> Tensor:
    """All elements in one dimension.

    >>> fw.ravel(fw.tensor([[1, 2], [3, 4]]))
    """
    return reshape_op.run(tensor_arg(x, "ravel"), shape=(-1,) if x.numel() else (0,))


@public(method=True)
def unflatten(x: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension as several; one of ``sizes`` may be -1.

    >>> fw.unflatten(fw.ones(2, 12), 1, (3, -1)).shape
    (2, 3, 4)
    """
    at = one_dim(dim, tensor_arg(x, "unflatten").ndim, "unflatten")
    inner = full_shape((x.shape[at],), size_args((sizes,), "unflatten", "sizes"), "unflatten")
    return reshape_op.run(x, shape=x.shape[:at] + inner + x.shape[at + 1:])


# -- basic slices --------------------------------------------------------------------------------


def _slice_infer(x: Meta, *, key: tuple) -> Meta:
    import numpy as np
    return Meta(np.empty(x.shape, np.int8)[key].shape, x.dtype)


def _put_slice_kernel(xp: Any, x: Any, *, key: tuple, shape: tuple[int, ...]) -> Any:
    out = xp.zeros(shape, x.dtype)
    out[key] = x
    return out


# key: ints, slices, None and Ellipsis, as NumPy's basic indexing takes them
slice_op = Op("slice", "x", kernel=lambda xp, x, *, key: x[key], view=True, jvp="linear",
              infer=_slice_infer,
              vjp={"x": lambda g, x_shape, key: put_slice(g, key=key, shape=x_shape)})
put_slice = Op("put_slice", "x", kernel=_put_slice_kernel, jvp="linear",
               infer=lambda x, *, key, shape: Meta(shape, x.dtype),
               vjp={"x": lambda g, key: slice_op(g, key=key)})


def slice_along(x: Tensor, dim: int, key: Any) -> Tensor:
    """``x[:, ..., key]`` with the int or slice at dimension ``dim`` (already in range)."""
    return slice_op.run(x, key=(slice(None),) * dim + (key,))


@public(method=True)
def select(x: Tensor, dim: int, index: int) -> Tensor:
    """A view of one position along a dimension, which is dropped.

    >>> fw.select(fw.tensor([[1, 2], [3, 4]]), 1, 0)
    """
    at = one_dim(dim, tensor_arg(x, "select").ndim, "select")
    size = x.shape[at] if x.ndim else 0
    if not -size <= index < size:
        raise IndexError(f"select: index={index} is out of range for dimension {dim} of size {size}")
    return slice_along(x, at, int(index))


@public(method=True)
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A view of ``length`` positions from ``start`` along a dimension.

    >>> fw.narrow(fw.arange(5), 0, 1, 3)
    """
    at = one_dim(dim, tensor_arg(x, "narrow").ndim, "narrow")
    size = x.shape[at] if x.ndim else 0
    begin = int(start) + size if start < 0 else int(start)
    if length < 0 or not 0 <= begin <= size or begin + length > size:
        raise IndexError(f"narrow: start={start}, length={length} does not fit dimension {dim} of size "
                         f"{size}")
    return slice_along(x, at, slice(begin, begin + length))


