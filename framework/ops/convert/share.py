"""Tensors in shared memory: moved there in place, with all that alias them."""

import gc
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ...backends.arena import reserve
from ...backends.segments import Segment, owner_of, segment_of
from ...errors import DeviceError, LayoutError
from ...tensor import Tensor, wrap
from ..record.batched import Batched
from ..record.public import public

_ALIGNED = 64


@public("", method=True)
def is_shared(self: Tensor) -> bool:
    """Whether the tensor lies in memory that other processes can share.

    >>> fw.zeros(2).is_shared()
    False
    """
    return isinstance(self._array, np.ndarray) and segment_of(self._array) is not None


@public("", method=True)
def share_memory_(self: Tensor) -> Tensor:
    """Move the tensor's memory, once, to where other processes can share it; returns the tensor.

    Tensors that alias it (views, the base, ``detach()``, ``.data``) move along and go on aliasing; NumPy
    arrays do not. A process that is forked, or gets the tensor by ``framework.multiprocessing``, then
    sees writes, and its writes are seen. Raises SharedMemoryError if there is no room, DeviceError for
    a CUDA tensor.

    >>> x = fw.zeros(2, 2)
    >>> row = x[0]
    >>> x.share_memory_().add_(1).is_shared(), row
    (True, tensor([1., 1.]))
    """
    if type(self._array) is Batched:
        raise self._array.asked("share_memory_()")
    share([self])
    return self


def share(tensors: Iterable[Tensor]) -> None:
    """``share_memory_`` of several tensors at once: those not shared yet come to lie in one segment."""
    families = _families(tensors)
    if not families:
        return
    if any(_references(family) > _alone() for family in families):
        _add_strangers(families)
    bounds = [byte_bounds(family.owner) for family in families]
    sizes = [-(-(high - low) // _ALIGNED) * _ALIGNED for low, high in bounds]
    segment, offset = reserve(sum(sizes))
    for family, (low, _), size in zip(families, bounds, sizes):
        _placed(family.owner, low, segment, offset)[...] = family.owner
        for member in family.members.values():
            moved = _placed(member._array, low, segment, offset)
            moved.flags.writeable = member._array.flags.writeable
            member._array = moved
        offset += size


class _Family(NamedTuple):
    """An array that owns its memory, and the tensors on that memory by id."""

    owner: np.ndarray
    members: dict[int, Tensor]


def _families(tensors: Iterable[Tensor]) -> list[_Family]:
    found: dict[int, _Family] = {}
    for t in tensors:
        if t.is_cuda:
            raise DeviceError(f"share_memory_: a tensor on {t.device} cannot be shared between processes; "
                              f"share t.cpu() and move it to the GPU in each process")
        if segment_of(t._array) is None:
            owner = owner_of(t._array)
            family = found.setdefault(id(owner), _Family(owner, {}))
            family.members.update((id(member), member) for member in _known(t))
    return list(found.values())


def _known(t: Tensor) -> Iterator[Tensor]:
    """``t``, its base and the views of that: those of them that lie in the memory of ``t``."""
    base = t if t._base is None else t._base
    refs = base._more.views if base._more is not None else None
    owner = owner_of(t._array)
    for member in (t, base, *(ref() for ref in refs or ())):
        if member is not None and isinstance(member._array, np.ndarray) and owner_of(member._array) is owner:
            yield member


def _add_strangers(families: list[_Family]) -> None:
    """Find the aliases that nothing leads to (``detach()``, ``.data``), where reference counts tell of some.

    Tensors keep no list of them: looking through all objects costs only those who share such memory.
    """
    by_owner = {id(family.owner): family.members for family in families}
    for t in gc.get_objects():
        if issubclass(type(t), Tensor):
            try:
                array = t._array
            except (AttributeError, LayoutError):  # half made; sparse or nested: of parts
                continue
            members = by_owner.get(id(owner_of(array))) if isinstance(array, np.ndarray) else None
            if members is not None:
                members[id(t)] = t


def _references(family: _Family) -> int:
    """The most references to an array of the family beyond those that its members account for."""
    owner, members = family.owner, family.members.values()
    arrays = {id(owner): owner, **{id(t._array): t._array for t in members}}
    known = Counter(id(t._array) for t in members)
    known[id(owner)] += 2 + sum(a.base is owner for a in arrays.values())  # in the family, and here
    return max(sys.getrefcount(array) - known[key] for key, array in arrays.items())


@cache
def _alone() -> int:
    """``_references`` of a tensor that nothing aliases: what the counting itself adds."""
    return _references(*_families([wrap(np.empty(1))]))


def _placed(array: np.ndarray, low: int, segment: Segment, offset: int) -> np.ndarray:
    """The place in the segment of ``array``, of memory that begins at address ``low``."""
    at: Any = array.__array_interface__["data"][0] - low if array.size else 0
    return segment.array(array.dtype, array.shape, offset + at, array.strides)
