"""PyTorch's ``jit`` names for TorchScript, as what they mean where Python runs on every call."""

import builtins
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..nn import Module

T = TypeVar("T")


def is_scripting() -> bool:
    """False: nothing runs as TorchScript.

    >>> fw.jit.is_scripting()
    False
    """
    return False


def script_if_tracing(fn: T) -> T:
    """The function itself: nothing is traced."""
    return fn


script_method = script_if_tracing
_script_if_tracing = _overload = _overload_method = script_if_tracing


def ignore(drop: Any = False, **settings: Any) -> Any:
    """The function itself: compiled code runs in Python, too. Also ``@ignore(drop=True)``.

    >>> fw.jit.ignore(abs) is abs
    True
    """
    return drop if callable(drop) else (lambda fn: fn)


def export(fn: T) -> T:
    """The method itself: everything is called from Python."""
    return fn


def unused(fn: T) -> T:
    """The function itself; calling it runs it, as in PyTorch outside of scripts."""
    return fn


def interface(obj: T) -> T:
    """The class itself: calls go by Python's rules."""
    return obj


def annotate(the_type: Any, the_value: T) -> T:
    """The value: types are not checked.

    >>> fw.jit.annotate(list[int], [])
    []
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether ``obj`` is of this type; of containers (``List[int]``) every part is looked at.

    >>> fw.jit.isinstance([1, 2], list[int]), fw.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    origin: Any = getattr(target_type, "__origin__", None)
    parts: Any = getattr(target_type, "__args__", ())
    inside = functools.partial(_all_are, obj)
    if origin is None and not parts:
        return _is(obj, target_type)
    if origin in (list, set, frozenset):
        return _is(obj, origin) and inside(parts[0])
    if origin is dict:
        return _is(obj, dict) and _all_are(obj.keys(), parts[0]) and _all_are(obj.values(), parts[1])
    if origin is tuple:
        return _is(obj, tuple) and len(obj) == len(parts) and all(map(isinstance, obj, parts))
    return any(isinstance(obj, part) for part in parts)  # a union


_is = builtins.isinstance


def _all_are(values: Any, kind: Any) -> bool:
    return all(isinstance(value, kind) for value in values)


class ScriptModule(Module):
    """The class of scripted modules: libraries ask for it with ``isinstance``, and nothing is one here.

    A subclass is a module that runs as it is, with ``script_method`` and ``Attribute`` as what they hold.

    >>> isinstance(fw.nn.Linear(1, 1), fw.jit.ScriptModule)
    False
    """


class ScriptFunction:
    """The class of scripted functions, of which there are none: making one raises TypeError."""

    def __new__(cls, *args: Any, **settings: Any) -> "ScriptFunction":
        raise TypeError("jit.ScriptFunction: functions are not scripted here; jit.script compiles "
                        "them (framework.compile)")


RecursiveScriptModule = ScriptModule


class Attribute:
    """A value with its type; assigned to a module it is TorchScript's way to say both."""

    def __init__(self, value: Any, type: Any) -> None:
        self.value, self.type = value, type


class Future:
    """What ``fork`` returns: the result is there already."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def wait(self) -> Any:
        """The result."""
        return self._result


def fork(func: Callable, *args: Any, **settings: Any) -> Future:
    """Call the function now (PyTorch does so, too, outside of TorchScript); `wait` gives its result.

    >>> fw.jit.wait(fw.jit.fork(abs, -2))
    2
    """
    return Future(func(*args, **settings))


def wait(future: Future) -> Any:
    """The result of `fork`."""
    return future.wait()


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block in which scripts are optimised or not; there are none."""
    yield
