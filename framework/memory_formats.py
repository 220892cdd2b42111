"""Memory formats: the order in which the dimensions of a tensor lie in memory, row-major or, of images, with
their channels side by side.

The shape of images is (n, c, h, w) in every format; only strides differ. The functions here take arrays, no
tensors. (Whether a tensor is strided at all, or sparse, is its layout: ``layouts.py``.)
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from .config import names
from .errors import ShapeError


class MemoryFormat:
    """A memory format by name: contiguous_format, channels_last, channels_last_3d or preserve_format."""

    __slots__ = ("name", "ndim")

    def __init__(self, name: str, ndim: int = 0) -> None:
        self.name, self.ndim = name, ndim  # ndim: of the tensors it is for, 0: any

    def __repr__(self) -> str:
        return f"{names.package}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


contiguous_format = MemoryFormat("contiguous_format")
preserve_format = MemoryFormat("preserve_format")
channels_last = MemoryFormat("channels_last", 4)
channels_last_3d = MemoryFormat("channels_last_3d", 5)
_OF_IMAGES = {f.ndim: f for f in (channels_last, channels_last_3d)}


def checked(memory_format: Any, op: str) -> MemoryFormat:
    """The format; None is preserve_format. Raises TypeError for anything else."""
    if memory_format is None:
        return preserve_format
    if not isinstance(memory_format, MemoryFormat):
        raise TypeError(f"{op}: memory_format must be a framework.memory_format, e.g. "
                        f"framework.channels_last, got {memory_format!r}")
    return memory_format


@cache
def order(ndim: int) -> tuple[int, ...]:
    """The dimensions in the order of memory, channels last."""
    return (0, *range(2, ndim), 1)


@cache
def back(ndim: int) -> tuple[int, ...]:
    """The inverse of ``order``: from memory to the shape."""
    return (0, ndim - 1, *range(1, ndim - 1))


def format_of(array: Any) -> MemoryFormat:
    """channels_last or channels_last_3d where memory is dense in that order and not row-major as well."""
    found = _OF_IMAGES.get(array.ndim)
    if found is None or array.flags.c_contiguous or not array.transpose(order(array.ndim)).flags.c_contiguous:
        return contiguous_format
    return found


def axes_of(array: Any) -> tuple[int, ...]:
    """The dimensions from the one with the largest steps in memory to that with the smallest."""
    return tuple(sorted(range(array.ndim), key=array.strides.__getitem__, reverse=True))


def inverse(axes: tuple[int, ...]) -> list[int]:
    """Where each dimension went that ``axes`` put in another order."""
    return sorted(range(len(axes)), key=axes.__getitem__)


def dense_axes(array: Any) -> tuple[int, ...] | None:
    """``axes_of`` an array whose elements lie side by side in that order; None where there are gaps."""
    axes = axes_of(array)
    return axes if array.transpose(axes).flags.c_contiguous else None


def turned(array: Any) -> bool:
    """Whether the dimensions stand in another order in memory than in the shape, no element twice."""
    if array.flags.c_contiguous:
        return False
    if array.flags.f_contiguous and array.ndim == 2:
        return True
    shape, steps = array.shape, array.strides
    axes = [d for d in axes_of(array) if shape[d] != 1]
    return axes != sorted(axes) and min([steps[d] for d in axes]) > 0


def lies_in(array: Any, memory_format: MemoryFormat) -> bool:
    """Whether the elements lie in memory as the format says, without gaps."""
    if memory_format.ndim == 0:
        return bool(array.flags.c_contiguous)
    return array.ndim == memory_format.ndim and bool(
        array.transpose(order(array.ndim)).flags.c_contiguous)


def need_dims(shape: tuple[int, ...], memory_format: MemoryFormat, op: str) -> None:
    """Raise ShapeError for a shape that the format is not for."""
    if memory_format.ndim not in (0, len(shape)):
        raise ShapeError(f"{op}: {memory_format} is for tensors of {memory_format.ndim} dimensions, got "
                         f"shape {list(shape)}; leave memory_format out")


def laid_as(xp: Any, array: Any, *sources: Any) -> Any:
    """``array`` with its channels last where one of the sources has them so, else in rows."""
    if not any(format_of(s).ndim == array.ndim for s in sources):
        return xp.ascontiguousarray(array)
    return xp.ascontiguousarray(array.transpose(order(array.ndim))).transpose(back(array.ndim))


def for_images(kernel: Callable) -> Callable:
    """The kernel, with its result in the memory format of its first array."""
    @wraps(kernel)
    def run(xp: Any, first: Any, *more: Any, **settings: Any) -> Any:
        return laid_as(xp, kernel(xp, first, *more, **settings), first)
    return run
