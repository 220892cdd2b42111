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
from ..record.rounded import by_float32
from .cuda import DeviceKernel
from .cuda_fold import DeviceFold
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


def zero_where_zero(g: Any, x: Any) -> Any:
    """The array ``x`` of a GPU with 0 where it is inf or nan though ``g`` is 0; nobody waits for it."""
    xp = cuda.cupy()
    return xp.where((g == 0) & ~xp.isfinite(x), xp.zeros_like(x), x)


class ExpressionRule:
    """A vjp rule written as a scalar expression of ``g`` and the names it keeps."""

    __slots__ = ("text", "names", "settings", "_numpy", "_cupy", "_ops", "_mended", "_summed")

    def __init__(self, text: str, known: tuple[str, ...], settings: tuple[str, ...] = ()) -> None:
        found = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text))
        self.text = text
        self.names = tuple(n for n in found if n in known or n in settings)
        self.settings = settings
        self._numpy: Callable | None = None
        self._cupy: Callable | None = None
        self._ops: Callable | None = None
        self._mended: Callable | None = None
        self._summed: tuple[DeviceFold, ...] | None = None

    def on(self, g: Any) -> Callable:
        """The rule for a gradient of this kind: NumPy array or scalar, CuPy array, tensor."""
        if type(g) is np.ndarray or isinstance(g, (np.ndarray, np.generic)):
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
            self._cupy = self._on_device(False)
        return self._cupy

    def mended(self) -> Callable:
        """The rule on arrays of a GPU, with 0 where it gives inf or nan though the gradient is 0."""
        if self._mended is None:
            self._mended = self._on_device(True)
        return self._mended

    def summed(self, mend: bool) -> DeviceFold:
        """The rule on arrays of a GPU, and its sum over dimensions, in one kernel."""
        if self._summed is None:
            self._summed = tuple([DeviceFold(self.text, ("g", *self.names), m) for m in (False, True)])
        return self._summed[mend]

    def _on_device(self, mend: bool) -> DeviceKernel:
        plain = array_function(self.text, self._parameters(), cuda.cupy())
        if mend:
            whole, plain = plain, lambda g, *values: zero_where_zero(g, whole(g, *values))
        return DeviceKernel(self.text, ("g", *self.names), by_float32(plain, lambda: plain), mend)

    def _parameters(self) -> str:
        return ", ".join(("g", *self.names))
