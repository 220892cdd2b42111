"""The operators of Array: the functions of the standard, also in place."""

from collections.abc import Callable
from typing import Any

from . import elementwise as e
from .array import OPERANDS, Array
from .linear import matmul

_BINARY: dict[str, Callable] = {
    "add": e.add, "sub": e.subtract, "mul": e.multiply, "truediv": e.divide, "floordiv": e.floor_divide,
    "mod": e.remainder, "pow": e.pow, "and": e.bitwise_and, "or": e.bitwise_or, "xor": e.bitwise_xor,
    "lshift": e.bitwise_left_shift, "rshift": e.bitwise_right_shift, "matmul": matmul,
}
_COMPARE = {"eq": e.equal, "ne": e.not_equal, "lt": e.less, "le": e.less_equal, "gt": e.greater,
            "ge": e.greater_equal}
_UNARY = {"neg": e.negative, "pos": e.positive, "abs": e.abs, "invert": e.bitwise_invert}


def _forward(function: Callable) -> Callable:
    def operator(self: Array, other: Any, /) -> Any:
        return function(self, other) if isinstance(other, OPERANDS) else NotImplemented
    return operator


def _reflected(function: Callable) -> Callable:
    def operator(self: Array, other: Any, /) -> Any:
        return function(other, self) if isinstance(other, OPERANDS) else NotImplemented
    return operator


def _in_place(function: Callable) -> Callable:
    def operator(self: Array, other: Any, /) -> Any:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        self.copy_(function(self, other))  # type: ignore[attr-defined]
        return self
    return operator


def _unary(function: Callable) -> Callable:
    def operator(self: Array, /) -> Any:
        return function(self)
    return operator


def _bind() -> None:
    for name, function in _BINARY.items():
        setattr(Array, f"__{name}__", _forward(function))
        setattr(Array, f"__r{name}__", _reflected(function))
        if name not in ("add", "sub", "mul", "truediv"):  # PyTorch's do what the standard asks for
            setattr(Array, f"__i{name}__", _in_place(function))
    for name, function in _COMPARE.items():
        setattr(Array, f"__{name}__", _forward(function))
    for name, function in _UNARY.items():
        setattr(Array, f"__{name}__", _unary(function))


_bind()
