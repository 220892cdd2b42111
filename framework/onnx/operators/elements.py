"""Operators of elements: arithmetic, comparison, activations, conversion."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import framework as fw
from framework import Tensor

from .table import DTYPES, dtype_of, floating, number, op

F = fw.nn.functional


def _aligned(x: Tensor, y: Tensor, axis: int | None, broadcast: int | None) -> Tensor:
    """``y`` as sets before 7 broadcast it: its dimensions stand at ``axis`` of those of ``x``."""
    if not broadcast or axis is None or y.ndim == x.ndim:
        return y
    return y.reshape(*y.shape, *[1] * (x.ndim - axis % max(x.ndim, 1) - y.ndim))


def _two(name: str, function: Callable) -> None:
    def binary(x: Tensor, y: Tensor, *, axis: int | None = None, broadcast: int | None = None,
               consumed_inputs: Any = None) -> Tensor:
        return function(x, _aligned(x, y, axis, broadcast))
    op(name)(binary)


def _divided(x: Tensor, y: Tensor) -> Tensor:
    return x / y if floating(x) else fw.div(x, y, rounding_mode="trunc").to(x.dtype)


def _power(x: Tensor, y: Tensor) -> Tensor:
    if floating(x) or not floating(y):
        return fw.pow(x, y.to(x.dtype)).to(x.dtype)
    return fw.pow(x.to(y.dtype), y).to(x.dtype)


_TWO: dict[str, Callable] = {
        "Add": lambda x, y: x + y, "Sub": lambda x, y: x - y, "Mul": lambda x, y: x * y, "Div": _divided,
        "Pow": _power, "And": fw.logical_and, "Or": fw.logical_or, "Xor": fw.logical_xor, "Equal": fw.eq,
        "Less": fw.lt, "LessOrEqual": fw.le, "Greater": fw.gt, "GreaterOrEqual": fw.ge}
for _name, _function in _TWO.items():
    _two(_name, _function)


def _one(name: str, function: Callable) -> None:
    def unary(x: Tensor, *, consumed_inputs: Any = None) -> Tensor:
        return function(x)
    op(name)(unary)


for _name, _function in {
        "Abs": fw.abs, "Acos": fw.acos, "Acosh": fw.acosh, "Asin": fw.asin, "Asinh": fw.asinh,
        "Atan": fw.atan,
        "Atanh": fw.atanh, "Ceil": fw.ceil, "Cos": fw.cos, "Cosh": fw.cosh, "Erf": fw.erf, "Exp": fw.exp,
        "Floor": fw.floor, "IsNaN": fw.isnan, "Log": fw.log, "Neg": fw.neg, "Not": fw.logical_not,
        "Reciprocal": fw.reciprocal, "Relu": fw.relu, "Round": fw.round, "Sigmoid": fw.sigmoid,
        "Sign": fw.sign,
        "Sin": fw.sin, "Sinh": fw.sinh, "Softplus": lambda x: fw.logaddexp(x, fw.zeros_like(x)),
        "Softsign": F.softsign, "Sqrt": fw.sqrt, "Tan": fw.tan, "Tanh": fw.tanh, "Mish": F.mish,
        "Det": fw.det,
        "HardSwish": F.hardswish, "BitwiseNot": fw.bitwise_not, "Identity": lambda x: x}.items():
    _one(_name, _function)


@op("BitwiseAnd")
def bitwise_and(x: Tensor, y: Tensor) -> Tensor:
    return x & y


@op("BitwiseOr")
def bitwise_or(x: Tensor, y: Tensor) -> Tensor:
    return x | y


@op("BitwiseXor")
def bitwise_xor(x: Tensor, y: Tensor) -> Tensor:
    return x ^ y


@op("BitShift")
def shift(x: Tensor, y: Tensor, *, direction: str) -> Tensor:
    a, b = x.numpy(), y.numpy()
    return fw.from_numpy(np.asarray(np.left_shift(a, b) if direction == "LEFT" else np.right_shift(a, b)))


@op("Mod")
def mod(x: Tensor, y: Tensor, *, fmod: int = 0) -> Tensor:
    return fw.fmod(x, y) if fmod else fw.remainder(x, y)


def _many(name: str, two: Callable, last: Callable = lambda x, n: x) -> None:
    @op(name)
    def many(*xs: Tensor, consumed_inputs: Any = None) -> Tensor:
        total = xs[0]
        for x in xs[1:]:
            total = two(total, x)
        return last(total, len(xs))


_many("Max", fw.maximum)
_many("Min", fw.minimum)
_many("Sum", lambda x, y: x + y)
_many("Mean", lambda x, y: x + y, lambda x, n: x / n)


@op("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    found = fw.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@op("Clip")
def clip(x: Tensor, low_: Any = None, high_: Any = None, *, min: Any = None, max: Any = None,
         consumed_inputs: Any = None) -> Tensor:
    for limit, function in ((low_ if low_ is not None else min, fw.maximum),
                            (high_ if high_ is not None else max, fw.minimum)):
        if limit is not None:
            x = function(x, limit if isinstance(limit, Tensor) else fw.tensor(limit, dtype=x.dtype))
    return x


@op("PRelu")
def prelu(x: Tensor, slope: Tensor, *, consumed_inputs: Any = None) -> Tensor:
    if slope.ndim == 1 and x.ndim > 2 and slope.shape[0] == x.shape[1] and slope.shape[0] != x.shape[-1]:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))  # sets before 7: a slope for each channel
    return fw.where(x < 0, slope * x, x)


@op("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01, consumed_inputs: Any = None) -> Tensor:
    return F.leaky_relu(x, alpha)


@op("Elu")
def elu(x: Tensor, *, alpha: float = 1.0, consumed_inputs: Any = None) -> Tensor:
    return F.elu(x, alpha)


@op("Selu")
def selu(x: Tensor, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805,
         consumed_inputs: Any = None) -> Tensor:
    return gamma * F.elu(x, alpha)


@op("Celu")
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.celu(x, alpha)


@op("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return fw.where(x > alpha, x, 0.0)


@op("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5, consumed_inputs: Any = None) -> Tensor:
    return fw.clamp(alpha * x + beta, 0, 1)


@op("Gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return F.gelu(x, approximate=approximate)


@op("Swish")
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x * fw.sigmoid(alpha * x)


@op("Shrink")
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    return fw.where(x < -lambd, x + bias, fw.where(x > lambd, x - bias, fw.zeros_like(x)))


@op("Where")
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return fw.where(condition, x, y)


@op("Cast")
def cast(x: Tensor, *, to: Any, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return x.to(dtype_of({v: k for k, v in _NAMES.items()}[to] if isinstance(to, str) else to))


_NAMES = {code: dtype.name.upper().replace("FLOAT32", "FLOAT") for code, dtype in DTYPES.items()}


@op("CastLike")
def cast_like(x: Tensor, y: Tensor, *, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return x.to(y.dtype)


@op("BitCast")
def bit_cast(x: Tensor, *, to: int) -> Tensor:
    return x.view(dtype_of(to))


@op("Dropout", since=12)
def dropout(x: Tensor, ratio: Any = None, training: Any = None, *, seed: int | None = None,
            outputs: int = 1) -> Any:
    share = number(ratio, 0.5)
    if not number(training, False) or not share:
        return x if outputs == 1 else (x, fw.ones(x.shape, dtype=fw.bool))
    if seed is None:
        mask = fw.rand(x.shape) >= share
    else:  # drawn as ONNX's reference draws
        mask = fw.from_numpy(np.asarray(np.random.RandomState(seed).uniform(0, 1, tuple(x.shape)) >= share))
    y = x * mask.to(x.dtype) / (1 - share)
    return y if outputs == 1 else (y, mask)


@op("Dropout")
def dropout_as_was(x: Tensor, *, ratio: float = 0.5, is_test: int = 1, consumed_inputs: Any = None,
                   outputs: int = 1) -> Any:
    return x if outputs == 1 else (x, fw.ones(x.shape, dtype=fw.bool))


@op("Bernoulli")
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    generator = None if seed is None else fw.Generator().manual_seed(int(seed))
    return fw.bernoulli(x, generator=generator).to(x.dtype if dtype is None else dtype_of(dtype))


# -- softmax and its kin ------------------------------------------------------------------------------


def _rows(x: Tensor, axis: int, function: Callable) -> Tensor:
    """Sets before 13: from the axis on one vector."""
    axis %= max(x.ndim, 1)
    return function(x.reshape(math.prod(x.shape[:axis]), -1), 1).reshape(x.shape)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    n = x.shape[axis]
    return F.one_hot(x.argmax(axis), n).to(x.dtype).movedim(-1, axis)


def _normalised(name: str, function: Callable) -> None:
    @op(name)
    def as_was(x: Tensor, *, axis: int = 1) -> Tensor:
        return _rows(x, axis, function)

    @op(name, since=13)
    def now(x: Tensor, *, axis: int = -1) -> Tensor:
        return function(x, axis)


_normalised("Softmax", F.softmax)
_normalised("LogSoftmax", F.log_softmax)
_normalised("Hardmax", _hardmax)


# -- products -----------------------------------------------------------------------------------------


@op("MatMul")
def matmul(x: Tensor, y: Tensor) -> Tensor:
    return fw.matmul(x, y)


@op("Gemm")
def gemm(a: Tensor, b: Tensor, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0, broadcast: int = 1) -> Tensor:
    a = a.t() if transA else a
    if alpha == beta == 1 and transB and c is not None and c.ndim == 1 and floating(a):
        return F.linear(a, b, c)
    y = fw.matmul(a, b.t() if transB else b)
    y = y if alpha == 1 else (y * alpha).to(y.dtype)
    if c is None or beta == 0:
        return y
    return y + (c if beta == 1 else (c * beta).to(c.dtype))


@op("Einsum")
def einsum(*xs: Tensor, equation: str) -> Tensor:
    return fw.einsum(equation, *xs)
