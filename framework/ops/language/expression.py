"""Scalar expressions: the one line an elementwise op is written as, run on arrays or on tensors.

The language is Python's operators over the op's arguments plus the functions of ``vocabulary``. The
same text is bound to NumPy, to CuPy, or to the ops themselves (then it is recorded), each once, at
first use.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends import cuda, meta
from ...tensor import Tensor
from . import erf as erf_
from .program import native_kernel

# names of the language that the array modules spell differently
_SPELLING = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
    "acosh": "arccosh", "pow": "power", "atanh": "arctanh", "round": "rint", "conj": "conjugate",
}


def _gate(xp: Any) -> Callable:
    def gate(x: Any, y: Any) -> Any:
        return _zero_where_zero(xp, x, x * y)
    return gate


def _over(xp: Any) -> Callable:
    def over(x: Any, y: Any) -> Any:
        return _zero_where_zero(xp, x, x / y)
    return over


def _zero_where_zero(xp: Any, x: Any, result: Any) -> Any:
    if xp is np and all_finite(result):  # one cheap pass tells that nothing needs mending
        return result
    return xp.where(x == 0, xp.zeros_like(result), result)


def all_finite(x: Any) -> bool:
    """Whether no element is inf or nan; False also where a sum of large elements overflows."""
    if x.dtype.char in "fd":
        return math.isfinite(np.vdot(x, x))
    return bool(np.isfinite(np.add.reduce(x, axis=None)))


def _trunc_divide(xp: Any) -> Callable:
    def trunc_divide(x: Any, y: Any) -> Any:
        quotient = xp.floor_divide(x, y)
        inexact = quotient * y != x
        return quotient + (inexact & ((x < 0) != (y < 0))).astype(quotient.dtype)
    return trunc_divide


def _sigmoid(xp: Any) -> Callable:
    def sigmoid(x: Any) -> Any:
        return 0.5 * (1 + xp.tanh(0.5 * x))
    return sigmoid


def _silu_slope(xp: Any) -> Callable:
    def silu_slope(x: Any) -> Any:
        """The derivative of ``x * sigmoid(x)``, with its limits at inf."""
        if x.dtype.kind == "c":
            s = 0.5 * (1 + xp.tanh(0.5 * x))
            return s * (1 + x * (1 - s))
        w = xp.clip(x, -800.0, 800.0)
        e = xp.exp(-xp.abs(w))
        larger = 1 / (1 + e)
        smaller = e * larger
        return xp.where(x < 0, smaller, larger) * (1 + w * xp.where(x < 0, larger, smaller))
    return silu_slope


def _exp2(xp: Any) -> Callable:
    def exp2(x: Any) -> Any:
        return xp.exp2(x) if x.dtype.kind != "c" else xp.exp(x * 0.6931471805599453)
    return exp2


def _sgn(xp: Any) -> Callable:
    """The sign; of a complex number the one of length 1 in its direction. NumPy's own sign is that."""
    def sgn(x: Any) -> Any:
        if x.dtype.kind != "c":
            return xp.sign(x)
        return xp.where(x == 0, x, x / xp.abs(x))
    return np.sign if xp is np else sgn


def _step(name: str) -> Callable:
    """floor, ceil or trunc: integers stay what they are, where NumPy 2.0 and CuPy make floats of them."""
    def make(xp: Any) -> Callable:
        rounded = getattr(xp, name)

        def step(x: Any) -> Any:
            return x.copy() if x.dtype.kind in "biu" else rounded(x)
        return step
    return make


# functions of the language that no array module has, or not as it is wanted:
# name -> maker of the function for a module
FUNCTIONS: dict[str, Callable] = {
    "floor": _step("floor"), "ceil": _step("ceil"), "trunc": _step("trunc"),
    "gate": _gate, "over": _over, "exp2": _exp2, "sgn": _sgn, "trunc_divide": _trunc_divide,
    "sigmoid": _sigmoid, "silu_slope": _silu_slope, "erf": erf_.erf, "erfc": erf_.erfc,
    "ndtr": erf_.ndtr, "gelu_slope": erf_.gelu_slope,
}

# the language bound to ops, filled by the rooms as they are defined
OPS_BY_NAME: dict[str, Any] = {}


def vocabulary(xp: Any, names: Any) -> dict[str, Any]:
    """What the given names of the language mean for an array module."""
    return {n: FUNCTIONS[n](xp) if n in FUNCTIONS else getattr(xp, _SPELLING.get(n, n)) for n in names}


def array_function(text: str, parameters: str, xp: Any) -> Callable:
    """The expression as a function of ``parameters`` over arrays of the module ``xp``."""
    code = compile(f"lambda {parameters}: {text}", "<expression>", "eval")
    names = code.co_consts[0].co_names
    # NumPy's C code imports by the __import__ of the caller, to raise some of its errors
    known = {"__builtins__": {"__import__": __import__}, **vocabulary(xp, names)}
    return eval(code, known)  # our own text, never a user's


def tensor_function(text: str, parameters: str) -> Callable:
    """The expression as a function of ``parameters`` over tensors, each step recorded."""
    code = compile(f"lambda {parameters}: {text}", "<expression>", "eval")
    names = code.co_consts[0].co_names
    return eval(code, {"__builtins__": {}, **{n: OPS_BY_NAME[n] for n in names}})


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
