"""Collectives on Python objects.

They travel in the format of ``framework.save``: plain data, tensors and arrays. What a peer sends is read as
data; no class is built and nothing called that it names.
"""

import io
from typing import Any

import numpy as np

from ..io import load, save
from ..tensor import Tensor, wrap
from .collectives import _root, all_gather, all_reduce, broadcast, gather, scatter
from .groups import ProcessGroup, member
from .messages import recv, send
from .reductions import ReduceOp


def _packed(obj: Any, op: str) -> np.ndarray:
    """The bytes of an object; raises before anything is sent."""
    file = io.BytesIO()
    try:
        save(obj, file, weights_only=True)
    except TypeError as error:
        text = str(error).removeprefix("save: ").split(", or pickle everything")[0]
        raise TypeError(f"{op}: objects travel as plain data, which no peer can turn into code: "
                        f"{text}") from None
    return np.frombuffer(file.getvalue(), np.uint8)


def _unpacked(array: np.ndarray, size: int) -> Any:
    return load(io.BytesIO(array[:size].tobytes()))


def _number(found: ProcessGroup, value: int) -> Tensor:
    return _placed(found, np.array([value], np.int64))


def _placed(found: ProcessGroup, array: np.ndarray) -> Tensor:
    """A tensor on the device that the group's backend works on."""
    t = wrap(array)
    return t.cuda() if found.backend.device == "cuda" else t  # type: ignore[attr-defined]


def _longest(found: ProcessGroup, size: int) -> int:
    most = _number(found, size)
    all_reduce(most, ReduceOp.MAX, found)
    return int(most.item())


def _padded(found: ProcessGroup, data: np.ndarray, size: int) -> Tensor:
    """A length and the bytes, in one tensor of ``8 + size``."""
    whole = np.zeros(8 + size, np.uint8)
    whole[:8] = np.frombuffer(np.int64(data.size).tobytes(), np.uint8)
    whole[8:8 + data.size] = data
    return _placed(found, whole)


def _read(t: Tensor) -> Any:
    a = t.cpu()._array  # type: ignore[attr-defined]
    return _unpacked(a[8:], int(a[:8].view(np.int64)[0]))


def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """``obj`` of rank r into ``object_list[r]``, on every rank.

    Objects are plain data as ``framework.save`` takes it: numbers, text, bytes, lists, tuples, dicts, sets,
    None, tensors, arrays of NumPy. Raises TypeError for others, before anything is sent.
    """
    found = member(group, "all_gather_object")
    if found is None:
        return
    if len(object_list) != found.size():
        raise ValueError(f"all_gather_object: object_list must have {found.size()} places, got "
                         f"{len(object_list)}")
    data = _packed(obj, "all_gather_object")
    size = _longest(found, data.size)
    outs = [_placed(found, np.empty(8 + size, np.uint8)) for _ in range(found.size())]
    all_gather(outs, _padded(found, data, size), found)
    object_list[:] = [_read(t) for t in outs]


def gather_object(obj: Any, object_gather_list: list | None = None, dst: int | None = None, group: Any = None,
                  group_dst: int | None = None) -> None:
    """``obj`` of rank r into ``object_gather_list[r]``, on rank ``dst`` (default 0)."""
    found = member(group, "gather_object")
    if found is None:
        return
    root = _root(found, dst, group_dst, "gather_object", "dst", 0)
    here = found.rank() == root
    if here and (object_gather_list is None or len(object_gather_list) != found.size()):
        raise ValueError(f"gather_object: rank {found.ranks[root]} is dst and must give object_gather_list "
                         f"with {found.size()} places")
    data = _packed(obj, "gather_object")
    size = _longest(found, data.size)
    outs = [_placed(found, np.empty(8 + size, np.uint8)) for _ in range(found.size())] if here else None
    gather(_padded(found, data, size), outs, group=found, group_dst=root)
    if here:
        object_gather_list[:] = [_read(t) for t in outs or ()]  # type: ignore[index]


def broadcast_object_list(object_list: list, src: int | None = None, group: Any = None, device: Any = None,
                          group_src: int | None = None) -> None:
    """The objects of rank ``src`` into ``object_list`` of all others, which has as many places."""
    found = member(group, "broadcast_object_list")
    if found is None:
        return
    root = _root(found, src, group_src, "broadcast_object_list", "src", 0)
    here = found.rank() == root
    data = _packed(list(object_list), "broadcast_object_list") if here else np.empty(0, np.uint8)
    size = _number(found, data.size)
    broadcast(size, group=found, group_src=root)
    whole = _padded(found, data, int(size.item()))
    broadcast(whole, group=found, group_src=root)
    if not here:
        object_list[:] = _read(whole)


def scatter_object_list(scatter_object_output_list: list, scatter_object_input_list: list | None = None,
                        src: int | None = None, group: Any = None, group_src: int | None = None) -> None:
    """``scatter_object_input_list[r]`` of rank ``src`` (default 0) into the first place of rank r's list."""
    found = member(group, "scatter_object_list")
    if found is None:
        return
    root = _root(found, src, group_src, "scatter_object_list", "src", 0)
    if not scatter_object_output_list:
        raise ValueError("scatter_object_list: scatter_object_output_list needs a place for the object")
    here = found.rank() == root
    if here and (scatter_object_input_list is None or len(scatter_object_input_list) != found.size()):
        raise ValueError(f"scatter_object_list: rank {found.ranks[root]} is src and must give "
                         f"{found.size()} objects")
    datas = [_packed(o, "scatter_object_list") for o in scatter_object_input_list or ()] if here else []
    size = _number(found, max((d.size for d in datas), default=0))
    broadcast(size, group=found, group_src=root)
    most = int(size.item())
    out = _placed(found, np.empty(8 + most, np.uint8))
    scatter(out, [_padded(found, d, most) for d in datas] if here else None, group=found, group_src=root)
    scatter_object_output_list[0] = _read(out)


def send_object_list(object_list: list, dst: int | None = None, group: Any = None, device: Any = None,
                     group_dst: int | None = None) -> None:
    """Send objects to rank ``dst``, which calls ``recv_object_list``."""
    found = member(group, "send_object_list")
    if found is None:
        return
    data = _packed(list(object_list), "send_object_list")
    send(_number(found, data.size), dst, found, group_dst=group_dst)
    send(_placed(found, data.copy()), dst, found, group_dst=group_dst)


def recv_object_list(object_list: list, src: int | None = None, group: Any = None, device: Any = None,
                     group_src: int | None = None) -> int:
    """Receive the objects that a rank sent into ``object_list``; returns from whom."""
    found = member(group, "recv_object_list")
    if found is None:
        return -1
    size = _number(found, 0)
    source = recv(size, src, found, group_src=group_src)
    data = _placed(found, np.empty(int(size.item()), np.uint8))
    recv(data, source, found)
    array = data.cpu()._array  # type: ignore[attr-defined]
    object_list[:] = _unpacked(array, array.size)
    return source
