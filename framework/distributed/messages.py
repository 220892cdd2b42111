"""Messages between two ranks."""

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from .collectives import _Flat, _output, _root, _same_device, _tensor
from .groups import ProcessGroup, member
from .work import Work


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
         group_dst: int | None = None) -> None:
    """Send ``tensor`` to rank ``dst``; returns when it may be changed again."""
    _send("send", tensor, dst, group, tag, group_dst, False)


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0,
          group_dst: int | None = None) -> Work | None:
    """``send`` beside the caller; ``tensor`` must not change until ``work.wait()`` has returned."""
    return _send("isend", tensor, dst, group, tag, group_dst, True)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
         group_src: int | None = None) -> int:
    """Receive into ``tensor`` from rank ``src`` (None: from whoever is first); returns from whom.

    The sender's tensor must have the dtype and number of elements of this one; of several tags, each is
    received by its own.
    """
    work = _recv("recv", tensor, src, group, tag, group_src, False)
    return -1 if work is None else work.source  # type: ignore[return-value]


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0,
          group_src: int | None = None) -> Work | None:
    """``recv`` beside the caller; ``tensor`` is filled when ``work.wait()`` has returned."""
    return _recv("irecv", tensor, src, group, tag, group_src, True)


def _send(what: str, tensor: Tensor, dst: int | None, group: Any, tag: int, group_dst: int | None,
          beside: bool) -> Work | None:
    found = member(group, what)
    if found is None:
        return None
    to = _root(found, dst, group_dst, what, "dst")
    if to == found.rank():
        raise ValueError(f"{what}: dst={found.ranks[to]} is this rank itself; messages go to other ranks")
    _tensor(tensor, what)
    _same_device(found, [tensor], what)

    def call() -> None:
        found.backend.send(_Flat(tensor, found.backend.device).array, to, tag)
    return _go(found, ("send", to), call, beside, tensor)


def _recv(what: str, tensor: Tensor, src: int | None, group: Any, tag: int, group_src: int | None,
          beside: bool) -> Work | None:
    found = member(group, what)
    if found is None:
        return None
    source = None if src is None and group_src is None else _root(found, src, group_src, what, "src")
    if source == found.rank():
        raise ValueError(f"{what}: src={found.ranks[source]} is this rank itself; messages come from other "
                         f"ranks")
    _output(tensor, what)
    _same_device(found, [tensor], what)

    def call() -> int:
        flat = _Flat(tensor, found.backend.device, read=False)
        came = found.backend.recv(flat.array, source, tag)
        flat.back(what)
        return found.ranks[came]
    return _go(found, ("recv", source), call, beside, tensor)


def _go(found: ProcessGroup, lane: tuple, call: Callable, beside: bool, tensor: Tensor) -> Work:
    """Make the call here or in a thread of its own, behind those to the same peer that are under way."""
    if beside:
        return found.lane(lane).put(Work([tensor]), call)
    if lane in found._lanes:
        found.lane(lane).drain()
    work = Work([tensor])
    work.source = call()
    return work


class P2POp:
    """One message of ``batch_isend_irecv``: ``op`` is ``isend`` or ``irecv``."""

    def __init__(self, op: Callable, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
                 group_peer: int | None = None) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"P2POp: op must be framework.distributed.isend or irecv, got {op!r}")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages; a Work for each."""
    if not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("batch_isend_irecv: wanted a list of P2POp")
    works = [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
    return [w for w in works if w is not None]
