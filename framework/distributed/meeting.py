"""How ranks of one machine find each other: a Unix socket without a file, over which memory is handed out.

The socket's name lives in the kernel and goes with the socket: no port is taken and nothing is left behind.
The first rank listens, the others come, say who they are, and get a message that carries the descriptor of a
segment. Only processes of the same user are let in, and listened to; what they say is read as numbers and
text, never as code.
"""

import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable

from ..backends.segments import Segment
from ..errors import DistributedError
from ..multiprocessing.channels import CLOSED_ON_EXEC
from ..multiprocessing.reduction import descriptor_of

_HELLO = struct.Struct("=iiq")  # rank, number of ranks, something that must be equal
_ANSWER = struct.Struct("=?16sI")  # whether a segment comes with it, its key, the bytes of the text behind it
_PEER = struct.Struct("3i")
_PAUSE = 0.002
_PATIENCE = 5.0  # seconds for one that has come to say who it is


def _address(name: str) -> str:
    return f"\0framework-{os.getuid()}-{name}"


def _user(conn: socket.socket) -> int:
    """The user whose process is at the other end, as the kernel says."""
    return _PEER.unpack(conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[1]


def hand_out(name: str, what: str, ranks: list[int], check: int, deadline: float, make: Callable[[], Segment],
             text: str = "") -> tuple[Segment, str]:
    """As the first of ``ranks``, wait for the others, then give each what ``make()`` returns, and the text.

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
        there: dict[int, socket.socket] = {}
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
            segment = make()
            for conn in there.values():
                _answer(conn, segment, text)
            return segment, text
        except BaseException as error:
            for conn in there.values():
                with contextlib.suppress(OSError):
                    _answer(conn, None, str(error))
            raise


def _answer(conn: socket.socket, segment: Segment | None, text: str) -> None:
    """Say the last thing to one that has come: the segment and text, or what went wrong."""
    data = text.encode()
    message = _ANSWER.pack(segment is not None, segment.key if segment else b"", len(data)) + data
    with conn:
        sent = socket.send_fds(conn, [message], [descriptor_of(segment)] if segment else [])
        if sent < len(message):  # it closes its end when it has everything
            conn.sendall(message[sent:])


def _welcome(conn: socket.socket, ranks: list[int], check: int, there: dict, deadline: float) -> str:
    """Let one in; what is wrong with it, or nothing."""
    if _user(conn) != os.getuid():
        conn.close()
        return ""
    conn.settimeout(max(min(deadline - time.monotonic(), _PATIENCE), 0.001))
    try:
        data = conn.recv(_HELLO.size, socket.MSG_WAITALL)
    except OSError:
        data = b""
    if len(data) < _HELLO.size:
        conn.close()
        return ""
    rank, size, theirs = _HELLO.unpack(data)
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
            _answer(conn, None, problem)
        return problem
    conn.settimeout(None)
    there[rank] = conn
    return ""


def fetch(name: str, what: str, rank: int, size: int, check: int, deadline: float) -> tuple[Segment, str]:
    """As another rank, get what the first hands out."""
    while True:
        conn = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            conn.connect(_address(name))
            other = _user(conn)
            if other != os.getuid():  # anybody may listen under the name
                conn.close()
                raise DistributedError(f"{what}: rank {rank} found a process of another user ({other}) where "
                                       f"the first rank should be; choose another MASTER_PORT")
            conn.sendall(_HELLO.pack(rank, size, check))
            break
        except (ConnectionRefusedError, FileNotFoundError, BrokenPipeError, ConnectionResetError):
            conn.close()
            if time.monotonic() > deadline:
                raise DistributedError(f"{what}: rank {rank} waited until its deadline and the first rank "
                                       f"has not come; was it started, with the same address?") from None
            time.sleep(_PAUSE)
    conn.settimeout(max(deadline - time.monotonic(), 0.001))
    try:
        segment, text = _heard(conn)
    except TimeoutError:
        raise DistributedError(f"{what}: rank {rank} waited until its deadline for the others to "
                               f"come") from None
    except (EOFError, ConnectionResetError):
        raise DistributedError(f"{what}: the first rank ended while rank {rank} waited for it") from None
    if segment is None:
        raise DistributedError(text if text.startswith(what) else f"{what}: {text}")
    return segment, text


def _heard(conn: socket.socket) -> tuple[Segment | None, str]:
    """What ``_answer`` said."""
    with conn:
        head, descriptors, _, _ = socket.recv_fds(conn, _ANSWER.size, 1, CLOSED_ON_EXEC | socket.MSG_WAITALL)
        segment = None
        try:
            if len(head) < _ANSWER.size:
                raise EOFError
            given, key, size = _ANSWER.unpack(head)
            text = b""
            while len(text) < size and (piece := conn.recv(size - len(text))):
                text += piece
            if len(text) < size or given and not descriptors:
                raise EOFError
            if given:
                segment = Segment.attach(descriptors.pop(), key)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
    return segment, text.decode(errors="replace")
