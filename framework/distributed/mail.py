"""Messages between two ranks: a mailbox of two halves for every pair, and a counter at either end."""

import threading
import time
from typing import Any

import numpy as np

from ..backends.segments import Segment
from .board import DTYPE_CODE, DTYPES, Board

_PART = 1 << 16  # bytes of half a mailbox
_LINE = 64
_BOX = 2 * _LINE + 2 * (_LINE + _PART)  # counters of both ends; each half has a line for the head
_PAGE = 4096


def mail_size(n: int) -> int:
    """Bytes of the mailboxes of ``n`` ranks."""
    return n * n * _box()


def _box() -> int:
    return -(-_BOX // _PAGE) * _PAGE


class _Way:
    """One direction between two ranks, as one end sees it."""

    def __init__(self, segment: Segment, start: int) -> None:
        self.words = memoryview(segment.array("int64", (2 * _LINE // 8,), start))
        first = start + 2 * _LINE
        starts = [first + h * (_LINE + _PART) for h in (0, 1)]
        self.heads = [memoryview(segment.array("int64", (_LINE // 8,), s)) for s in starts]
        self.parts = [segment.array("uint8", (_PART,), s + _LINE) for s in starts]
        self.count = 0  # halves filled or emptied so far by this end
        self.waiting: list[tuple[int, int, np.ndarray]] = []  # messages of other tags that came first
        self.lock = threading.Lock()


class Mail:
    """What this rank sends and receives, one message at a time for each peer and direction."""

    def __init__(self, segment: Segment, board: Board, start: int) -> None:
        self._segment, self._board, self._start = segment, board, start
        self._out: dict[int, _Way] = {}
        self._in: dict[int, _Way] = {}
        self._lock = threading.Lock()

    def _way(self, ways: dict[int, _Way], source: int, to: int, peer: int) -> _Way:
        with self._lock:
            if peer not in ways:
                start = self._start + (source * self._board.size + to) * _box()
                self._segment.reserve(start, _box())
                ways[peer] = _Way(self._segment, start)
            return ways[peer]

    def send(self, a: np.ndarray, to: int, tag: int) -> None:
        """Send the flat array ``a``; returns when the last of it lies in the mailbox."""
        board = self._board
        way = self._way(self._out, board.rank, to, to)
        data = a.view(np.uint8)
        with way.lock:
            for start in range(0, max(data.size, 1), _PART):
                half = way.count & 1
                self._await(way.words, 8, way.count - 1, to, "send")
                if start == 0:
                    head = way.heads[half]
                    head[0], head[1], head[2] = DTYPE_CODE[a.dtype.name], a.size, tag
                piece = data[start:start + _PART]
                way.parts[half][:piece.size] = piece
                way.count += 1
                way.words[0] = way.count

    def recv(self, a: np.ndarray, source: int | None, tag: int) -> int:
        """Receive into the flat array ``a`` the next message of that tag; returns whose it was."""
        if source is None:
            source = self._any(tag)
        way = self._way(self._in, source, self._board.rank, source)
        with way.lock:
            for i, (code, tagged, kept) in enumerate(way.waiting):
                if tagged == tag:
                    del way.waiting[i]
                    self._fits(a, code, kept.size // max(_itemsize(code), 1), source)
                    a.view(np.uint8)[:] = kept
                    return source
            while True:
                code, count, tagged = self._head(way, source)
                if tagged == tag:
                    break
                kept = np.empty(count * _itemsize(code), np.uint8)
                self._body(way, kept, source)
                way.waiting.append((code, tagged, kept))
            if (DTYPES[code], count) != (a.dtype.name, a.size):
                self._body(way, np.empty(count * _itemsize(code), np.uint8), source)
                self._fits(a, code, count, source)
            self._body(way, a.view(np.uint8), source)
        return source

    def _fits(self, a: np.ndarray, code: int, count: int, source: int) -> None:
        if (DTYPES[code], count) != (a.dtype.name, a.size):
            raise ValueError(f"recv: rank {self._board.ranks[source]} sent {count} {DTYPES[code]}, the "
                             f"tensor has {a.size} {a.dtype.name}")

    def _head(self, way: _Way, source: int) -> tuple[int, int, int]:
        self._await(way.words, 0, way.count + 1, source, "recv")
        head = way.heads[way.count & 1]
        return head[0], head[1], head[2]

    def _body(self, way: _Way, out: np.ndarray, source: int) -> None:
        for start in range(0, max(out.size, 1), _PART):
            self._await(way.words, 0, way.count + 1, source, "recv")
            piece = out[start:start + _PART]
            piece[:] = way.parts[way.count & 1][:piece.size]
            way.count += 1
            way.words[8] = way.count

    def _any(self, tag: int) -> int:
        """The first peer that has a message of that tag, as far as it can be seen without taking others."""
        board = self._board
        peers = [i for i in range(board.size) if i != board.rank]
        start = time.monotonic()
        while True:
            for i in peers:
                way = self._way(self._in, i, board.rank, i)
                if any(tagged == tag for _, tagged, _ in way.waiting) or (
                        way.words[0] > way.count and way.heads[way.count & 1][2] == tag):
                    return i
            board.look_after(peers, "recv from any rank", start)

    def _await(self, words: Any, k: int, target: int, peer: int, name: str) -> None:
        if words[k] < target:
            self._board.wait(words, k, target, peer, name)


def _itemsize(code: int) -> int:
    name = DTYPES[code]
    return 2 if name == "bfloat16" else np.dtype(name).itemsize
