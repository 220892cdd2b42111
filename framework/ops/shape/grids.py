"""Grids spanned by vectors, and tensors of at least so many dimensions."""

from typing import Any

from ...errors import DTypeError, ShapeError
from ...size import Size
from ...tensor import Tensor
from ..record.args import size_args, tensor_arg
from ..record.public import public
from .broadcast import broadcast_shape, take_size
from .view import take_shape


def _given(tensors: tuple, op: str) -> list[Tensor]:
    items = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return [x if type(x) is Tensor else tensor_arg(x, op, f"tensors[{i}]") for i, x in enumerate(items)]


@public()
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The grids spanned by vectors, as views: grid i varies along dimension i as vector i does.

    indexing: "ij", or "xy" to swap the first two dimensions.

    >>> fw.meshgrid(fw.tensor([1, 2]), fw.tensor([3, 4]), indexing="ij")[1]
    tensor([[3, 4],
            [3, 4]])
    """
    xs = _given(tensors, "meshgrid")
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    for x in xs:
        if x._array.ndim > 1:
            raise ShapeError(f"meshgrid: wanted vectors, got shape {list(x.shape)}")
        if x._array.dtype is not xs[0]._array.dtype and x.dtype is not xs[0].dtype:
            raise DTypeError(f"meshgrid: the tensors must have one dtype, got {xs[0].dtype} and {x.dtype}")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    size = tuple([xs[i]._array.size for i in order])
    grids = []
    for i, x in enumerate(xs):
        at = order.index(i)
        behind = len(xs) - at - 1
        grids.append(take_size(take_shape(x, (1,) * at + (size[at],) + (1,) * behind) if behind else x, size))
    return tuple(grids)


def _atleast(tensors: tuple, ndim: int) -> Any:
    many = len(tensors) != 1 or isinstance(tensors[0], (list, tuple))
    results = []
    for x in _given(tensors, f"atleast_{ndim}d"):
        if x.ndim < ndim:
            front = (1,) if x.ndim == 1 and ndim > 1 else ()
            shape = front + x.shape
            x = take_shape(x, shape + (1,) * (ndim - len(shape)))
        results.append(x)
    return tuple(results) if many else results[0]


@public()
def atleast_1d(*tensors: Any) -> Any:
    """The tensor, or each of several, with one dimension at least.

    >>> fw.atleast_1d(fw.tensor(1))
    tensor([1])
    """
    return _atleast(tensors, 1)


@public()
def atleast_2d(*tensors: Any) -> Any:
    """The tensor, or each of several, with two dimensions at least; a vector becomes a row.

    >>> fw.atleast_2d(fw.tensor([1, 2])).shape
    (1, 2)
    """
    return _atleast(tensors, 2)


@public()
def atleast_3d(*tensors: Any) -> Any:
    """The tensor, or each of several, with three dimensions at least; new ones come last for matrices.

    >>> fw.atleast_3d(fw.tensor([1, 2])).shape
    (1, 2, 1)
    """
    return _atleast(tensors, 3)


@public()
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that tensors of these shapes broadcast to; raises ShapeError if they do not.

    >>> fw.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return Size(broadcast_shape([size_args((s,), "broadcast_shapes") for s in shapes], "broadcast_shapes"))


@public()
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, each expanded to their common shape, as views.

    >>> fw.broadcast_tensors(fw.tensor([1, 2]), fw.tensor([[3]]))[1]
    tensor([[3, 3]])
    """
    xs = _given(tensors, "broadcast_tensors")
    size = broadcast_shape([x._array.shape for x in xs], "broadcast_tensors")
    return tuple([take_size(x, size) for x in xs])
