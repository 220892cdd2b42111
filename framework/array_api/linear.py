"""Products of vectors and matrices."""

from typing import Any

from ..errors import ShapeError
from ..ops.linalg import products
from ..ops.linalg.matmul import matmul as product
from ..ops.record.args import one_dim
from .array import Array, array_arg, give, together
from .elementwise import conj


def matmul(x1: Any, x2: Any, /) -> Array:
    """The matrix product over the last two axes; vectors count as a row or a column."""
    a, b = together("matmul", array_arg(x1, "matmul", "x1"), array_arg(x2, "matmul", "x2"))
    return give(product(a, b))


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Array:
    """Sums of products over the last ``axes`` axes of ``x1`` and the first of ``x2``, or over pairs."""
    a, b = together("tensordot", array_arg(x1, "tensordot", "x1"), array_arg(x2, "tensordot", "x2"))
    return give(products.tensordot(a, b, axes if isinstance(axes, int) else tuple(map(list, axes))))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The sum of ``conj(x1) * x2`` along one axis, counted from the end; the others broadcast.

    >>> fw.array_api.vecdot(fw.tensor([1.0, 2.0]), fw.tensor([3.0, 4.0]))
    tensor(11.)
    """
    a, b = together("vecdot", array_arg(x1, "vecdot", "x1"), array_arg(x2, "vecdot", "x2"))
    if not a.ndim or not b.ndim:
        raise ShapeError("vecdot: x1 and x2 must have one dimension at least")
    left, right = (one_dim(axis, v.ndim, "vecdot", "axis") for v in (a, b))
    if a.shape[left] != b.shape[right]:
        raise ShapeError(f"vecdot: axis={axis} has {a.shape[left]} elements in x1 and {b.shape[right]} in x2")
    rows, columns = a.movedim(left, -1)[..., None, :], b.movedim(right, -1)[..., None]
    return give(product(conj(rows) if a.dtype.is_complex else rows, columns)[..., 0, 0])
