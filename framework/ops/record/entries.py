"""Functions as their callers find them: plain calls go straight to what computes, see ``entries.cpp``.

A function around another one that takes whatever there is (``*args, **settings``) costs a call a tenth of a
microsecond. With the native kernels an object stands for it that passes a call on as it came; the function
itself is called where a keyword is one of its own, in blocks of autocast, and while its code is another one,
which asks somebody first (``arming.py``, ``jit/doors.py``).
"""

from collections.abc import Callable
from typing import Any

from ... import _native
from .torch_function import asked_late

WHOLE, TRUTH, FUNCTION, VIEW, KEPT = range(1, 6)
Entry: Any = getattr(_native.module, "Entry", None)


def entered(function: Callable, quick: Callable, names: dict[str, Any] | None = None,
            place: tuple | None = None) -> Callable:
    """What stands for ``function``, of which ``quick`` does the same for a plain call.

    names: further keywords of ``function``. place: (name, exact, record, plan) of one with ``out=``.
    """
    return function if Entry is None else _native.module.entry(function, quick, names or {}, place)


def entered_element(function: Callable, record: Any, kinds: str, weak: str, whole: str, road: Any,
                    swapped: bool = False) -> Callable:
    """What stands for the function of an elementwise record of one or two operands.

    kinds: of dtype that need no promotion (of two operands "" for any); weak: those with which any number of
    Python's may stand, whole: those with which whole ones may. road: ``single`` or ``pair``. swapped:
    whether the second argument is the first operand.
    """
    element = (record, kinds, weak, whole, road, -2 if swapped else len(record.inputs))
    return function if Entry is None else _native.module.entry(function, None, {}, element=element)


def entered_form(function: Callable, record: Any, writes: str | None, name: str, inputs: int,
                 plan: Callable | None, rule: int = 0, behind: Callable | None = None) -> Callable:
    """What stands for a form in place: a plain call is written by the record into its first input.

    plan: what gives the record, its inputs and settings for the arguments of a call, or None; without one the
    arguments are the inputs, so many. writes: the kinds of dtype that may be written, if not the record's.
    rule: WHOLE where whole numbers stay as they are (with a plan: that it is of others, and of real ones),
    TRUTH where truth is to be written as numbers, FUNCTION where ``plan`` is a function whose result is to be
    written, VIEW where that is a view, KEPT where whole numbers stay as they are whatever numbers are given.
    behind: the function whose result is written where the plan has no answer.
    """
    form = (record, writes, name, inputs, plan, rule, behind)
    return function if Entry is None else _native.module.entry(function, None, {}, form=form)


def entered_itself(made: Any = None) -> Callable:
    """A decorator for functions that give a tensor back where it is as they would make it.

    made: the dtype that is wanted, None for what is asked for (a dtype, a device), True for memory formats.
    """
    if Entry is None:
        return lambda function: function
    return lambda function: _native.module.entry(function, _native.module.itself(function, made), {})


def behind(function: Any) -> Any:
    """The Python function that an object stands for; any other one itself."""
    return function.entry_of if type(function) is Entry else function


if Entry is not None:
    _native.module.set_up_entries(asked_late)
