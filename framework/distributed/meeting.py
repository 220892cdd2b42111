"""How ranks of one machine find each other: a Unix socket without a file, over which memory is handed out.

The socket's name lives in the kernel and goes with the socket: no port is taken and nothing is left behind.
The first rank listens, the others come, say who they are, and get a message that carries the descriptor of a
segment. Only processes of the same user are let in, and listened to.
"""

import contextlib
import os
import socket
import struct
import time
from typing import Any

from ..errors import DistributedError
from ..multiprocessing.channels import Connection

_HELLO = struct.Struct("=iiiq")  # rank, number of ranks, process id, something that must be equal
_PEER = struct.Struct("3i")
_PAUSE = 0.002


def _address(name: str) -> str:
    return f"\0framework-{os.getuid()}-{name}"


def _user(conn: socket.socket) -> int:
    """The user whose process is at the other end, as the kernel says."""
    return _PEER.unpack(conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[1]


def hand_out(name: str, what: str, ranks: list[int], check: int, deadline: float, make: Any) -> Any:
    """As the first of ``ranks``, wait for the others, then give each what ``make(pids)`` returns.

    check: a number that must be the same in all. deadline: of ``time.monotonic``.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        try:
            listener.bind(_address(name))
        except OSError as error:
            raise DistributedError(f"{what}: another group of processes meets here already "
                                   f"({error.strerror}); "
                                   f"choose another MASTER_PORT, or wait until they have ended") from error
        listener.listen(128)
        there: dict[int, tuple[socket.socket, int]] = {}
        try:
            while len(there) < len(ranks) - 1:
                missing = [r for r in ranks[1:] if r not in there]
                listener.settimeout(max(deadline - time.monotonic(), 0.001))
                try:
                    conn, _ = listener.accept()
                except TimeoutError:
                    raise DistributedError(
                        f"{what}: rank {ranks[0]} waited until its deadline, and of {len(ranks)} ranks "
                        f"{missing} have not come; were they started, with the same address?") from None
                problem = _welcome(conn, ranks, check, there, deadline)
                if problem:
                    raise DistributedError(f"{what}: {problem}")
            value = make({r: pid for r, (_, pid) in there.items()})
            for conn, _ in there.values():
                Connection(conn.detach()).send((True, value))
            return value
        except BaseException as error:
            for conn, _ in there.values():
                with contextlib.suppress(OSError):
                    if conn.fileno() >= 0:
                        Connection(conn.detach()).send((False, str(error)))
            raise


def _welcome(conn: socket.socket, ranks: list[int], check: int, there: dict, deadline: float) -> str:
    """Let one in; what is wrong with it, or nothing."""
    if _user(conn) != os.getuid():
        conn.close()
        return ""
    conn.settimeout(max(deadline - time.monotonic(), 0.001))
    data = conn.recv(_HELLO.size, socket.MSG_WAITALL)
    if len(data) < _HELLO.size:
        conn.close()
        return ""
    rank, size, pid, theirs = _HELLO.unpack(data)
    problem = ""
    if size != len(ranks):
        problem = f"rank {rank} says there are {size} ranks, rank {ranks[0]} says {len(ranks)}"
    elif rank in there or rank == ranks[0]:
        problem = f"two processes say that they are rank {rank}"
    elif rank not in ranks:
        problem = f"rank {rank} is not one of {ranks}"
    elif theirs != check:
        problem = f"rank {rank} and rank {ranks[0]} ask for different things ({theirs} and {check})"
    if problem:
        with contextlib.suppress(OSError):
            Connection(conn.detach()).send((False, problem))
        return problem
    conn.settimeout(None)
    there[rank] = conn, pid
    return ""


def fetch(name: str, what: str, rank: int, size: int, check: int, deadline: float) -> Any:
    """As another rank, get what the first hands out."""
    while True:
        conn = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            conn.connect(_address(name))
            other = _user(conn)
            if other != os.getuid():  # anybody may listen under the name, and what comes is unpickled
                conn.close()
                raise DistributedError(f"{what}: rank {rank} found a process of another user ({other}) where "
                                       f"the first rank should be; choose another MASTER_PORT")
            conn.sendall(_HELLO.pack(rank, size, os.getpid(), check))
            break
        except (ConnectionRefusedError, FileNotFoundError, BrokenPipeError, ConnectionResetError):
            conn.close()
            if time.monotonic() > deadline:
                raise DistributedError(f"{what}: rank {rank} waited until its deadline and the first rank "
                                       f"has "
                                       f"not come; was it started, with the same address?") from None
            time.sleep(_PAUSE)
    channel = Connection(conn.detach())
    with channel:
        try:
            if not channel.poll(max(deadline - time.monotonic(), 0.001)):
                raise DistributedError(f"{what}: rank {rank} waited until its deadline for the others to "
                                       f"come")
            good, value = channel.recv()
        except (EOFError, ConnectionResetError):
            raise DistributedError(f"{what}: the first rank ended while rank {rank} waited for it") from None
    if not good:
        raise DistributedError(value if value.startswith(what) else f"{what}: {value}")
    return value
