"""Scalar expressions: the one line an elementwise op is written as, run on arrays or on tensors.

The language is Python's operators over the op's arguments plus the functions in ``words.py``. The
same text is bound to NumPy, to CuPy, or to the ops themselves (then it is recorded), each once, at
first use.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends import cuda, meta
from ...tensor import Tensor
from .program import native_kernel
from .words import of_arrays, of_tensors


def array_function(text: str, parameters: str, xp: Any) -> Callable:
    """The expression as a function of ``parameters`` over arrays of the module ``xp``."""
    code = compile(f"lambda {parameters}: {text}", "<expression>", "eval")
    names = code.co_consts[0].co_names
    # NumPy's C code imports by the __import__ of the caller, to raise some of its errors
    known = {"__builtins__": {"__import__": __import__}, **{n: of_arrays(n, xp) for n in names}}
    return eval(code, known)  # our own text, never a user's


def tensor_function(text: str, parameters: str) -> Callable:
    """The expression as a function of ``parameters`` over tensors, each step recorded."""
    code = compile(f"lambda {parameters}: {text}", "<expression>", "eval")
    names = code.co_consts[0].co_names
    return eval(code, {"__builtins__": {}, **{n: of_tensors(n) for n in names}})


class ExpressionRule:
    """A vjp rule written as a scalar expression of ``g`` and the names it keeps."""

    __slots__ = ("text", "names", "settings", "_numpy", "_cupy", "_ops")

    def __init__(self, text: str, known: tuple[str, ...], settings: tuple[str, ...] = ()) -> None:
        found = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text))
        self.text = text
        self.names = tuple(n for n in found if n in known or n in settings)
        self.settings = settings
        self._numpy: Callable | None = None
        self._cupy: Callable | None = None
        self._ops: Callable | None = None

    def on(self, g: Any) -> Callable:
        """The rule for a gradient of this kind: NumPy array or scalar, CuPy array, tensor."""
        if isinstance(g, (np.ndarray, np.generic)):
            if self._numpy is None:
                plain = array_function(self.text, self._parameters(), np)
                self._numpy = native_kernel(self.text, ("g", *self.names), plain, self.settings)
            return self._numpy
        if isinstance(g, Tensor):
            if self._ops is None:
                self._ops = tensor_function(self.text, self._parameters())
            return self._ops
        if type(g) is meta.MetaArray:
            return meta.alike
        if self._cupy is None:
            self._cupy = array_function(self.text, self._parameters(), cuda.cupy())
        return self._cupy

    def _parameters(self) -> str:
        return ", ".join(("g", *self.names))
