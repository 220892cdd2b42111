"""Where kernels run: with NumPy's floating-point warnings off, since inf and nan are results here.

Every kernel of a thread runs through its ``quiet.run``. It is None while the thread has interceptors
(``seam.py``), to whom each call then goes first.
"""

from collections.abc import Callable
from contextvars import Context, ContextVar, Token, copy_context
from typing import Any

import numpy as np

from ._native import Local
from .backends.memory import cached_memory
from .errors import DTypeError, RangeError


def _variables() -> list[tuple[ContextVar, Any]]:
    with np.errstate(all="ignore"), cached_memory():
        return list(copy_context().items())


settings = Context().run(_variables)  # what NumPy keeps for those two in every context


def hush() -> list[Token]:
    """No warnings, and memory from the cache, for what follows in this context, until ``speak``."""
    return [variable.set(value) for variable, value in settings]


def speak(before: list[Token]) -> None:
    """Undo ``hush``, of which this is the result."""
    for token in before:
        token.var.reset(token)


class _Quiet(Local):
    """``run(f, ...)`` calls f, in a saved context, which also has NumPy take memory from our cache.

    A saved context costs a tenth of a microsecond, entering ``np.errstate`` more than one.
    """

    site: Callable | None = None  # what notes the line that changes a tensor in place, if somebody asks
    stack: tuple = ()  # the interceptors, see ``seam.py``
    whole = True  # whether several ops may run as one
    newcomers: tuple = ()  # of them, those who look at threads that begin, too
    settle: Callable | None = None  # what runs the calls that a compiled function has put off

    def __init__(self) -> None:
        with np.errstate(all="ignore"), cached_memory():
            self.plain: Callable = copy_context().run
        self.run: Callable | None = self.plain
        if _Quiet.newcomers:
            self.stack, self.run = _Quiet.newcomers, None
            self.whole = all(one.shortcuts for one in self.stack)


quiet = _Quiet()


def settle() -> None:
    """Run the calls that a compiled function of this thread has put off: memory is about to be handed out, or
    changed without a kernel."""
    if quiet.settle is not None:
        quiet.settle()


def readable(error: Exception, op: str) -> Exception:
    """NumPy's or CuPy's error for a Python int that a dtype cannot hold, or for differences of bools, in our
    words; others as they are."""
    if isinstance(error, OverflowError) and "out of bounds for" in str(error):
        text = str(error).replace("Python integer", "the number").replace(" out", " is out")
        return RangeError(f"{op}: {text}; choose a wider dtype, e.g. framework.int64")
    if isinstance(error, TypeError) and "boolean subtract" in str(error):
        return DTypeError(f"{op}: bools have no difference; use x ^ y, or convert them, e.g. x.int()")
    if isinstance(error, TypeError) and "boolean negative" in str(error):
        return DTypeError(f"{op}: bools have no sign; use ~x, or convert them, e.g. x.int()")
    return error


def is_interrupted(error: Exception) -> bool:
    """Whether ``quiet.plain`` failed because a signal handler or finalizer runs within another one."""
    return isinstance(error, RuntimeError) and "cannot enter context" in str(error)


def quietly(function: Callable, *args: Any, **settings: Any) -> Any:
    """``function(...)`` as kernels run, also where a signal handler or finalizer interrupted another one."""
    try:
        return quiet.plain(function, *args, **settings)
    except RuntimeError as error:
        if not is_interrupted(error):
            raise
        return unsaved(function, *args, **settings)


def unsaved(function: Callable, *args: Any, **settings: Any) -> Any:
    """``function(...)`` where the saved context is in use: a signal handler or finalizer within a kernel."""
    with np.errstate(all="ignore"):
        return function(*args, **settings)
