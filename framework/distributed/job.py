"""What a launcher and its ranks tell each other: a page of shared words, passed by descriptor.

The launcher writes who died and how; a rank writes that it has joined a group and that it ended as programs
do. So peers learn the cause, and a rank that vanishes with exit code 0 (``os._exit(0)``) is not taken for
success.
"""

import os
import signal
from typing import Any

from ..backends.segments import Segment

MPI_END = "FRAMEWORK_MPI_END"  # the file that says that all of MPI's ranks came to the end
VARIABLE = "FRAMEWORK_JOB"  # "descriptor of the page:name of the run"
_LINE = 8  # words
_JOINED, _FINISHED, _DEAD, _STATUS = range(4)


class Page:
    """The words of ``n`` ranks."""

    def __init__(self, segment: Segment, n: int) -> None:
        self.segment, self.n = segment, n
        self._words = memoryview(segment.array("int64", (n * _LINE,)))

    @classmethod
    def create(cls, n: int) -> "Page":
        """A new page, made by the launcher."""
        return cls(Segment.create(n * _LINE * 8), n)

    def joined(self, rank: int) -> bool:
        """Whether the rank has joined a group."""
        return bool(self._words[rank * _LINE + _JOINED])

    def finished(self, rank: int) -> bool:
        """Whether the rank has come to the end of its program."""
        return bool(self._words[rank * _LINE + _FINISHED])

    def set_joined(self, rank: int) -> None:
        """This rank has joined a group."""
        self._words[rank * _LINE + _JOINED] = 1

    def set_finished(self, rank: int) -> None:
        """This rank has come to the end of its program."""
        self._words[rank * _LINE + _FINISHED] = 1

    def set_dead(self, rank: int, status: int) -> None:
        """The rank ended with that status (negative: by a signal)."""
        self._words[rank * _LINE + _STATUS] = status
        self._words[rank * _LINE + _DEAD] = 1

    def fate(self, rank: int) -> str:
        """How a rank died, where the launcher has said so."""
        if not 0 <= rank < self.n or not self._words[rank * _LINE + _DEAD]:
            return ""
        return f" ({described(self._words[rank * _LINE + _STATUS])})"


def described(status: int) -> str:
    """An exit status in words."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def found() -> tuple[Page, str] | None:
    """The page of the launcher that started this process, and the name of the run; None without one."""
    text: Any = os.environ.get(VARIABLE)
    if not text:
        return None
    fd, _, run = text.partition(":")
    global _page
    if _page is None:
        size = os.fstat(int(fd)).st_size
        _page = Page(Segment.attach(int(fd)), size // (_LINE * 8))
    return _page, run


_page: Page | None = None
