"""Where in the user's program something happens: the line, the lines that led there, the module."""

import sys
import weakref
from types import FrameType
from typing import Any

from ..autograd.frames import is_ours, user_frame
from ..nn.module import Module

_CALL = Module.__call__.__code__
_names: dict[tuple[int, int], tuple[str, Any]] = {}


def line_of(frame: FrameType) -> str:
    """ "file:line" of a frame."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_line() -> str | None:
    """The user's innermost line, None where nobody's is."""
    frame = user_frame()
    return None if frame is None else line_of(frame)


def user_stack() -> tuple[str, ...]:
    """ "file:line function" of the user's frames, the innermost first."""
    frame, found = user_frame(), []
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            found.append(f"{line_of(frame)} {frame.f_code.co_name}")
        frame = frame.f_back
    return tuple(found)


def module_path() -> str | None:
    """The path of the module whose forward runs, "Net.layers.0.attn"; None outside of modules."""
    frame: FrameType | None = sys._getframe(1)
    modules = []
    while frame is not None:
        if frame.f_code is _CALL:
            modules.append(frame.f_locals["self"])
        frame = frame.f_back
    modules.reverse()
    return ".".join([type(modules[0]).__name__, *map(_name, modules, modules[1:])]) if modules else None


def _name(outer: Module, inner: Module) -> str:
    """What ``outer`` calls ``inner``, which it has called; its class where it is no part."""
    key = id(outer), id(inner)
    known = _names.get(key)
    if known is None or known[1]() is not inner:
        name = next((name for name, m in outer.named_modules() if m is inner and name), type(inner).__name__)
        known = _names[key] = name, weakref.ref(inner, lambda _: _names.pop(key, None))
    return known[0]
