"""``x[key]`` for every key that NumPy and PyTorch take, and whether a tensor has an element."""

from typing import Any

import numpy as np

from ...dtypes import int64
from ...tensor import Tensor
from ..convert.cast import to
from ..record.deferred import Positions
from ..record.public import public
from ..shape.alone import led
from ..shape.slices import slice_op, sliced, take_slice
from .index import count_true, index_op, mask_op
from .keys import (
    Choice,
    at_positions,
    basic_key,
    explain_range,
    is_basic,
    is_mask,
    is_positions,
    list_as_positions,
    place_of,
    read_key,
)


def _whether_deferred(input: Tensor, key: Any) -> str | Positions | None:
    if not _holds_tensors(key):
        return None
    if isinstance(key, Tensor):
        place, at, index = None, 0, key
    else:  # a tuple of slices and one tensor of positions
        if type(key) is not tuple or not all(type(k) is slice or isinstance(k, Tensor) for k in key):
            return "positions among others"
        place = at = next(i for i, k in enumerate(key) if isinstance(k, Tensor))
        index = key[at]
    if sum(map(_holds_tensors, key if type(key) is tuple else (key,))) > 1 or index.dtype is not int64 \
            or not index.ndim or at >= input.ndim:
        return "positions of another kind, or several"
    return Positions(1, input.shape[at], place)


def _holds_tensors(key: Any) -> bool:
    return isinstance(key, Tensor) or isinstance(key, (tuple, list)) and any(map(_holds_tensors, key))


@public("", method="__getitem__", name="__getitem__", op=index_op, deferred=_whether_deferred)
def getitem(input: Tensor, key: Any) -> Tensor:
    """``input[key]``: a view for ints, slices, None and Ellipsis, a copy for index tensors and masks.

    Index arrays (tensors, lists, NumPy arrays) broadcast together; their shape stands where they stood
    if they are adjacent, else in front. Raises IndexError naming the index, dimension and size.

    >>> x = fw.arange(6).view(2, 3)
    >>> x[0, 1:], x[:, [2, 0]], x[x > 3]
    (tensor([1, 2]), tensor([[2, 0],
            [5, 3]]), tensor([4, 5]))
    """
    out = sliced(input, key, slice_op)
    if out is not NotImplemented or (out := at_positions(input, key, index_op)) is not NotImplemented:
        return out
    if type(key) is int or type(key) is slice and is_basic(key):
        return take_slice(input, (key,))
    if type(key) is list:
        key = list_as_positions(key)
    if is_mask(key, input):
        return mask_op.run(input, key, count=count_true(key))
    if isinstance(key, Tensor) and key._array.ndim and key._array.dtype.char in "bhi":  # shorter positions
        key = to(key, int64)
    placed = type(key) is tuple and place_of(key, input) >= 0
    if not placed and (basic := basic_key(key)) is not None:
        return take_slice(input, basic)
    if is_positions(key, input):
        choice = Choice(None, places=led(key), dims=(0,))
    else:
        choice = read_key(input, key)
    y = input if choice.basic is None else slice_op.run(input, key=choice.basic)
    if choice.mask is not None:
        return mask_op.run(y, choice.mask, count=count_true(choice.mask))
    if choice.places is None:
        return y
    try:
        return index_op.run(y, choice.places, dims=choice.dims)
    except IndexError:
        explain_range(y, choice)
        raise


@public("", method="__contains__", name="__contains__")
def contains(input: Tensor, element: Any) -> bool:
    """Whether some element equals ``element``, a number or a tensor that broadcasts.

    >>> 2 in fw.tensor([1, 2])
    True
    """
    if not isinstance(element, (Tensor, bool, int, float, complex, np.generic)):
        raise TypeError(f"in: wanted a number or a Tensor, got {type(element).__name__}")
    return bool((input == element).any())  # type: ignore[attr-defined]
