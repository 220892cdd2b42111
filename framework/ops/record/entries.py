"""Functions as their callers find them: plain calls go straight to what computes, see ``entries.cpp``.

A function around another one that takes whatever there is (``*args, **settings``) costs a call a tenth of a
microsecond. With the native kernels an object stands for it that passes a call on as it came; the function
itself is called where a keyword is one of its own, inside and after blocks of autocast, and while its code is
another one, which asks somebody first (``arming.py``, ``jit/doors.py``).
"""

from collections.abc import Callable
from typing import Any

from ... import _native
from .torch_function import asked_late

Entry: Any = getattr(_native.module, "Entry", None)


def entered(function: Callable, quick: Callable, names: dict[str, Any] | None = None,
            place: tuple | None = None) -> Callable:
    """What stands for ``function``, of which ``quick`` does the same for a plain call.

    names: further keywords of ``function``. place: (name, exact, record, plan) of one with ``out=``.
    """
    return function if Entry is None else _native.module.entry(function, quick, names or {}, place)


def behind(function: Any) -> Any:
    """The Python function that an object stands for; any other one itself."""
    return function.entry_of if type(function) is Entry else function


if Entry is not None:
    _native.module.set_up_entries(asked_late)
