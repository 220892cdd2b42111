"""Searching, sorting and sets."""

from typing import Any, NamedTuple

from .. import dtypes
from ..ops.convert.cast import to
from ..ops.index import nonzero as positions
from ..ops.pointwise import choose
from ..ops.reduce import extremes, scan, search, unique
from ..ops.reduce import sort as sorting
from ..ops.shape.view import reshape
from ..tensor import Tensor
from .array import Array, array_arg, give, together


class UniqueAll(NamedTuple):
    """What ``unique_all`` gives."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What ``unique_counts`` gives."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What ``unique_inverse`` gives."""

    values: Array
    inverse_indices: Array


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the (first) largest element stands along an axis, or in the flattened array."""
    return give(extremes.argmax(array_arg(x, "argmax"), axis, keepdims))


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the (first) smallest element stands along an axis, or in the flattened array."""
    return give(extremes.argmin(array_arg(x, "argmin"), axis, keepdims))


def nonzero(x: Tensor, /) -> tuple[Array, ...]:
    """The places of the elements that are not 0: an array of indices for each axis."""
    if not array_arg(x, "nonzero").ndim:
        raise ValueError("nonzero: x must have one dimension at least; a 0-dim array has no axis")
    return tuple([give(i) for i in positions.nonzero(x, as_tuple=True)])


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Array:
    """Where the elements of ``x2`` would have to be put into the sorted ``x1`` to keep it sorted."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    a, b = together("searchsorted", x1, x2)
    order = None if sorter is None else to(sorter, dtypes.int64)
    return give(search.searchsorted(a, b, right=side == "right", sorter=order))


def where(condition: Tensor, x1: Any, x2: Any, /) -> Array:
    """Elements of ``x1`` where the condition is true, else of ``x2``; numbers are taken too."""
    return give(choose.where(condition, *together("where", x1, x2)))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis."""
    return give(sorting.sort(array_arg(x, "sort"), axis, descending, stable=stable)[0], x)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The indices that put the elements in order along an axis."""
    return give(sorting.argsort(array_arg(x, "argsort"), axis, descending, stable=stable), x)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, where each stands first, which of them each element is, how often each occurs.

    >>> xp = fw.array_api
    >>> xp.unique_all(xp.asarray([2, 1, 2])).indices
    tensor([1, 0])
    """
    found = unique.unique(array_arg(x, "unique_all"), return_inverse=True, return_counts=True)
    values, inverse, counts = found
    order = sorting.argsort(reshape(inverse, -1), stable=True)
    first = order[scan.cumsum(counts, 0) - counts] if counts.numel() else counts
    return UniqueAll(*[give(v) for v in (values, first, inverse, counts)])


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements, and how often each occurs; every nan counts on its own."""
    values, counts = unique.unique(array_arg(x, "unique_counts"), return_counts=True)
    return UniqueCounts(give(values), give(counts))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and which of them each element is."""
    values, inverse = unique.unique(array_arg(x, "unique_inverse"), return_inverse=True)
    return UniqueInverse(give(values), give(inverse))


def unique_values(x: Tensor, /) -> Array:
    """The distinct elements; every nan is distinct from the others."""
    return give(unique.unique(array_arg(x, "unique_values")))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Whether each element of ``x1`` is among those of ``x2`` (with ``invert``: is not)."""
    a, b = together("isin", x1, x2)
    return give(positions.isin(a, b, invert=invert))
