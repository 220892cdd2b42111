"""Rows of ops/pointwise/elements.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, masks, normal, row

A, B, COLUMN = normal(2, 3), normal(2, 3, seed=7), normal(2, 1, seed=3)
N, K = integers(2, 3, low=1), integers(2, 3, low=1, high=5, seed=4)
NAN, OTHER = np.array([np.nan, 1.5, np.nan, -0.5]), np.array([1.0, np.nan, np.nan, 2.0])
INF = np.array([np.inf, -np.inf, np.nan, 1.0])


def _wrong(name: str, *more: Any) -> list:
    return [("list", lambda M: getattr(M, name)([1.0], *more), TypeError, "list")]


for _name, _factor in (("deg2rad", np.pi / 180), ("rad2deg", 180 / np.pi)):
    def _call(M: Any, x: Any, name: str = _name) -> Any:
        return getattr(M, name)(x)

    def _ref(x: Any, factor: float = _factor) -> Any:
        return x * factor
    row(_name, Sample("plain", _call, (A,), _ref), Sample("0-dim", _call, (A[0, 0],), _ref),
        Sample("int", _call, (N,), lambda x, f=_ref: f(x).astype(np.float32)), errors=_wrong(_name))


def _binary(name: str, ref: Any, a: Any, b: Any, c: Any, *more: Sample, grad: bool = True) -> None:
    def call(M: Any, x: Any, y: Any) -> Any:
        return getattr(M, name)(x, y)
    row(name, Sample("plain", call, (a, b), ref, grad=grad),
        Sample("method", lambda M, x, y: getattr(x, name)(y), (a, b), ref, grad=grad),
        Sample("broadcast", call, (a, c), ref, grad=grad),
        Sample("empty", call, (a[:, :0], c), ref, grad=grad), *more,
        errors=[("string", lambda M: getattr(M, name)(M.ones(2), "a"), TypeError, "str")])


def _special(name: str, ref: Any) -> Sample:
    return Sample("nan", lambda M, x, y: getattr(M, name)(x, y), (NAN, OTHER), ref, grad=False)


_binary("hypot", np.hypot, A, B, COLUMN, _special("hypot", np.hypot))
_binary("copysign", np.copysign, A, B, COLUMN,
        Sample("number", lambda M, x: M.copysign(x, -1.0), (A,), lambda x: -np.abs(x)))
_binary("fmax", np.fmax, A, B, COLUMN, _special("fmax", np.fmax),
        Sample("int", lambda M, x, y: M.fmax(x, y), (N, K), np.fmax))
_binary("fmin", np.fmin, A, B, COLUMN, _special("fmin", np.fmin),
        Sample("int", lambda M, x, y: M.fmin(x, y), (N, K), np.fmin))
_binary("heaviside", np.heaviside, np.where(masks(2, 3), 0.0, A), B, COLUMN, grad=False)
_binary("logaddexp", np.logaddexp, A, B, COLUMN, Sample(
    "large", lambda M, x, y: M.logaddexp(x, y), (A * 500, B * 500), np.logaddexp,
    torch=False, why="its second derivative there is nan"))
_binary("nextafter", np.nextafter, A, B, COLUMN)
row("nextafter", Sample("method", lambda M, x, y: x.nextafter(y), (A, B), np.nextafter), namespace="",
    errors=[("word", lambda M: M.ones(2).nextafter("x"), TypeError, "str")])
_binary("logaddexp2", np.logaddexp2, A, B, COLUMN)
_binary("gcd", np.gcd, N * 6, K * 4, K[:, :1])
_binary("lcm", np.lcm, N, K, K[:, :1])
_binary("bitwise_left_shift", np.left_shift, N, K, K[:, :1],
        Sample("operator", lambda M, x: x << 2, (N,), lambda x: x << 2))
_binary("bitwise_right_shift", np.right_shift, N - 5, K, K[:, :1],
        Sample("operator", lambda M, x: x >> 1, (N,), lambda x: x >> 1))
row("isposinf", Sample("plain", lambda M, x: M.isposinf(x), (INF,), np.isposinf, grad=False),
    Sample("int", lambda M, x: M.isposinf(x), (N,), lambda x: x > 99), errors=_wrong("isposinf"))
row("isneginf", Sample("plain", lambda M, x: M.isneginf(x), (INF,), np.isneginf, grad=False),
    Sample("int", lambda M, x: x.isneginf(), (N,), lambda x: x > 99), errors=_wrong("isneginf"))
row("positive", Sample("plain", lambda M, x: M.positive(x), (A,), lambda x: x),
    Sample("int", lambda M, x: x.positive(), (N,), lambda x: x),
    errors=[("bool", lambda M: M.positive(M.tensor([True])), TypeError, "bool")])
row("float_power",
    Sample("plain", lambda M, x: M.float_power(x, 2), (N,), lambda x: x.astype(float) ** 2),
    Sample("tensors", lambda M, x, y: M.float_power(x, y), (np.abs(A), B), lambda x, y: x ** y),
    Sample("base", lambda M, y: M.float_power(2, y), (B,), lambda y: 2.0 ** y),
    Sample("method", lambda M, x: x.float_power(3), (A,), lambda x: x ** 3),
    errors=[("numbers", lambda M: M.float_power(2, 3), TypeError, "must be a Tensor")])

for _name, _symbol in (("rlshift", "<<"), ("rrshift", ">>")):
    def _left(M: Any, x: Any, symbol: str = _symbol) -> Any:
        return eval(f"37 {symbol} x", {"x": x})

    def _left_ref(x: Any, symbol: str = _symbol) -> Any:
        return eval(f"37 {symbol} x", {"x": x})
    row(_name, Sample("number", _left, (K,), _left_ref), namespace="",
        errors=[("word", lambda M, f=_left: f(M, M.ones(2)), Exception, "integer")])
