"""PyTorch's small checks that libraries call: a condition, and what to raise where it does not hold."""

from collections.abc import Callable
from typing import Any


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with this message unless the condition holds."""
    assert condition, message


def _raise_unless(error: type[Exception], condition: bool, message: Callable[[], Any] | None) -> None:
    if not isinstance(condition, bool):
        raise TypeError(f"the condition must be a bool, got {type(condition).__name__}")
    if not condition:
        raise error("the condition does not hold" if message is None else str(message()))


def _check(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError with what ``message()`` says unless the condition holds."""
    _raise_unless(RuntimeError, cond, message)


def _check_value(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """The same with ValueError."""
    _raise_unless(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """The same with TypeError."""
    _raise_unless(TypeError, cond, message)


def _check_index(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """The same with IndexError."""
    _raise_unless(IndexError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """The same with NotImplementedError."""
    _raise_unless(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError unless the number is 0 or more."""
    _raise_unless(RuntimeError, i >= 0, message)
