"""Which tensors lie over the same memory, and what of it a file has to hold.

Tensors are put together whose bytes overlap. One that covers the others is stored, the others become
windows on it; where none does (two overlapping slices of something that is not saved), the bytes that
they span are stored as a flat tensor. Everything else is stored apart, in row-major order.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..backends import array_module
from ..tensor import Tensor

_WORK = 1000  # how hard NumPy may think about whether two strided arrays share a byte


class Window(NamedTuple):
    """What a tensor is of the stored tensor number ``home``; all None: the whole of it."""

    home: int
    offset: int | None = None
    strides: tuple[int, ...] | None = None


def lay_out(tensors: list[Tensor]) -> tuple[list[Any], list[Window]]:
    """The arrays to store, and for each tensor its window on them.

    Stored array number i is told from the first tensor that lies in it, and they are in that order.
    """
    layouts: dict[tuple, list[int]] = {}
    for i, x in enumerate(tensors):
        a = x._array
        key = (x.data_ptr(), x.shape, a.strides, a.dtype, str(x.device)) if a.size else (i,)
        layouts.setdefault(key, []).append(i)
    firsts = [members[0] for members in layouts.values()]
    members_of = dict(zip(firsts, layouts.values()))
    found: list[tuple[int, Any, dict[int, Window]]] = []  # (first tensor, array, windows of home 0)
    for group in _overlapping(tensors, firsts):
        for array, windows in _stored([(i, tensors[i]._array) for i in group]):
            found.append((min(windows), array, windows))
    found.sort(key=lambda item: item[0])
    result = [Window(0)] * len(tensors)
    for home, (_, _, windows) in enumerate(found):
        for first, window in windows.items():
            for i in members_of[first]:
                result[i] = window._replace(home=home)
    return [array for _, array, _ in found], result


def _overlapping(tensors: list[Tensor], firsts: list[int]) -> list[list[int]]:
    """The tensors in groups that share bytes."""
    spans, groups = [], []
    for i in firsts:
        array = tensors[i]._array
        if isinstance(array, np.ndarray) and array.size:
            spans.append((*np.lib.array_utils.byte_bounds(array), i))
        else:
            groups.append([i])  # on a GPU only equal layouts are tied
    spans.sort()
    run: list[int] = []
    end = -1
    for low, high, i in spans:
        if low >= end and run:
            groups += _sharing(tensors, run)
            run = []
        run.append(i)
        end = max(end, high)
    return groups + (_sharing(tensors, run) if run else [])


def _sharing(tensors: list[Tensor], run: list[int]) -> list[list[int]]:
    """Tensors whose spans overlap, in groups that share bytes (two columns of a matrix do not)."""
    if all(tensors[i]._array.flags.c_contiguous for i in run):
        return [run]  # they have every byte of their spans
    groups: list[list[int]] = []
    for i in run:
        touched = [g for g in groups if any(_share(tensors[i]._array, tensors[j]._array) for j in g)]
        groups = [g for g in groups if g not in touched] + [[*(j for g in touched for j in g), i]]
    return groups


def _share(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.shares_memory(a, b, max_work=_WORK)  # type: ignore[arg-type] # the stub is too narrow
    except np.exceptions.TooHardError:
        return True


def _stored(group: list[tuple[int, Any]]) -> list[tuple[Any, dict[int, Window]]]:
    """What is stored of a group that shares bytes: (array, windows of its tensors) pairs."""
    if len(group) == 1 and not _repeats(group[0][1]):
        return [(group[0][1], {group[0][0]: Window(0)})]
    kinds = {array.dtype for _, array in group}
    if len(kinds) > 1 and any(kind.kind == "b" for kind in kinds):
        return [(array, {i: Window(0)}) for i, array in group]  # other bytes than 0 and 1 are no bools
    bounds = [np.lib.array_utils.byte_bounds(array) for _, array in group]
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    whole = [(i, a) for (i, a), b in zip(group, bounds) if a.flags.c_contiguous and b == (low, high)]
    base = whole[0][1] if whole else _span(low, high, kinds, group)
    windows = {i: Window(0, _address(array) - low, array.strides) for i, array in group}
    if whole:
        windows[whole[0][0]] = Window(0)
    return [(base, windows)]


def _repeats(array: Any) -> bool:
    """Whether the array shows bytes more than once, as an expanded one does."""
    return isinstance(array, np.ndarray) and array.size > 1 and any(
        s == 0 and n > 1 for s, n in zip(array.strides, array.shape))


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _span(low: int, high: int, kinds: set, group: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """The bytes from ``low`` to ``high`` as a flat array: of the tensors' type if that is one."""
    kind = next(iter(kinds))
    apart = len(kinds) > 1 or any((_address(a) - low) % kind.itemsize or
                                  any(s % kind.itemsize for s in a.strides) for _, a in group)
    raw = np.asarray(_Memory(low, high - low, group))
    return raw if apart else raw.view(kind)


def lies_inside(size: int, item: int, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> bool:
    """Whether all elements of a strided array lie in ``size`` bytes; NumPy's own check can overflow."""
    if len(shape) != len(strides) or min((0, *shape)) < 0 or not 0 <= offset <= size:
        return False
    if item * math.prod(n or 1 for n in shape) >= 1 << 62:
        return False
    reach = [(n - 1) * s for n, s in zip(shape, strides)]
    low = offset + sum(r for r in reach if r < 0)
    high = offset + sum(r for r in reach if r > 0) + item
    return 0 in shape and max(map(abs, strides)) < 1 << 62 or low >= 0 and high <= size


class _Memory:
    """Bytes of memory that the arrays in ``group`` keep alive, in NumPy's protocol."""

    def __init__(self, address: int, size: int, group: Any) -> None:
        self.group = group
        self.__array_interface__ = {"data": (address, True), "shape": (size,), "typestr": "|u1",
                                    "version": 3}


def array_over(array: Any, dtype: np.dtype, shape: tuple[int, ...], offset: int,
               strides: tuple[int, ...]) -> Any:
    """An array over part of the memory of ``array``, in which it is known to lie; counted in bytes."""
    if isinstance(array, np.ndarray):
        return np.ndarray(shape, dtype, array.reshape(-1).view(np.uint8), offset, strides)
    return array_module(array).ndarray(shape, dtype, array.data + offset, strides)
