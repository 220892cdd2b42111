"""Being told before Python reads the numbers of a tensor: for a trace, which cannot contain what Python does
with them.

While somebody is told, in any thread, the methods of Tensor that read are other ones; while nobody is, they
are their own, so reading costs what it costs without this file.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ..swap import Swap
from ..tensor import Tensor

READERS = ("item", "tolist", "numpy", "_number", "__bool__", "__index__", "__array__", "__dlpack__",
           "data_ptr")


class _Told(threading.local):
    tell: Callable | None = None


_here = _Told()


def _telling(name: str, plain: Callable) -> Callable:
    @wraps(plain)
    def read(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if _here.tell is not None:
            _here.tell(f"the numbers of a tensor of shape {list(self.shape)} were read by "
                       f"{'a conversion' if name == '_number' else name}, so what follows may depend on "
                       f"them, and a trace would hold what was right for these only; use fw.compile, or "
                       f"fw.where and the like")
        return plain(self, *args, **kwargs)
    return read


_readers = Swap([(Tensor, name) for name in READERS], _telling)


def is_tracing() -> bool:
    """Whether ``jit.trace`` is at work in this thread.

    >>> fw.jit.is_tracing()
    False
    """
    return _here.tell is not None


@contextmanager
def reading(tell: Callable[[str], None]) -> Iterator[None]:
    """Call ``tell(why)``, which may raise, before Python reads a tensor in this thread inside the block."""
    before, _here.tell = _here.tell, tell
    _readers.change(1)
    try:
        yield
    finally:
        _here.tell = before
        _readers.change(-1)
