"""Rows of ops/pointwise/compare.py."""

import operator
from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, integers, masks, normal, row
from . import COUNTS, FEW, binary, no_list

A = normal(2, 3)
B = np.where(masks(2, 3), A, normal(2, 3, seed=1))
N, J = integers(2, 3, high=4), integers(2, 3, high=4, seed=1)
P, Q = masks(2, 3), masks(2, 3, seed=1)
EMPTY = np.zeros((2, 0))
SPECIAL = np.array([1.0, -0.0, np.inf, -np.inf, np.nan])


def _broadcast_error(call: Any) -> tuple:
    return ("shapes", lambda M: call(M, M.ones(2, 3).bool(), M.ones(4).bool()), ValueError,
            "do not broadcast")


def _compare(name: str, ref: Any, alias: str = "") -> None:
    symbol = getattr(operator, name)

    def call(M: Any, x: Any, y: Any) -> Any:
        return getattr(M, name)(x, y)

    row(name,
        Sample("equal shapes", call, (A, B), ref), Sample("broadcast", call, (A, B[0]), ref),
        Sample("0-dim", call, (A[0, 0], B[0, 0]), ref), Sample("empty", call, (EMPTY, A[:, :1]), ref),
        Sample("operator", lambda M, x, y: symbol(x, y), (A, B), ref),
        Sample("number", lambda M, x: symbol(x, 0.5), (A,), lambda x: ref(x, 0.5)),
        Sample("number left", lambda M, x: symbol(0.5, x), (A,), lambda x: ref(0.5, x)),
        Sample("ints", call, (N, J), ref), Sample("int and float", call, (N, B), ref),
        Sample("int number", lambda M, x: symbol(x, 2), (N,), lambda x: ref(x, 2)),
        Sample("bools", call, (P, Q), ref), Sample("special", call, (SPECIAL, SPECIAL[::-1].copy()), ref),
        *([Sample(alias, lambda M, x, y: getattr(M, alias)(x, y), (A, B), ref)] if alias else []),
        errors=[_broadcast_error(call)])


_compare("eq", np.equal)
_compare("ne", np.not_equal, "not_equal")
_compare("lt", np.less, "less")
_compare("le", np.less_equal, "less_equal")
_compare("gt", np.greater, "greater")
_compare("ge", np.greater_equal, "greater_equal")


def _logic(name: str, ref: Any) -> None:
    def call(M: Any, x: Any, y: Any) -> Any:
        return getattr(M, name)(x, y)

    row(name,
        Sample("bools", call, (P, Q), ref), Sample("broadcast", call, (P, Q[0]), ref),
        Sample("floats", call, (np.array([0.0, 1.0, -2.0, np.nan]), np.array([0.0, 0.0, 1.0, 0.0])), ref),
        Sample("ints", call, (N, J), ref), Sample("mixed", call, (N, Q), ref),
        Sample("method", lambda M, x, y: getattr(x, name)(y), (P, Q), ref),
        Sample("in place", lambda M, x, y: getattr(x.clone(), f"{name}_")(y), (P, Q), ref),
        Sample("0-dim", call, (P[0, 0], Q[0, 0]), ref), Sample("empty", call, (EMPTY, EMPTY), ref),
        errors=[_broadcast_error(call)])


_logic("logical_and", np.logical_and)
_logic("logical_or", np.logical_or)
_logic("logical_xor", np.logical_xor)
row("logical_not",
    Sample("bools", lambda M, x: M.logical_not(x), (P,), np.logical_not),
    Sample("floats", lambda M, x: x.logical_not(), (np.array([0.0, 2.0, np.nan]),), np.logical_not),
    Sample("ints", lambda M, x: M.logical_not(x), (N,), np.logical_not),
    Sample("in place", lambda M, x: x.clone().logical_not_(), (P,), np.logical_not),
    Sample("empty", lambda M, x: M.logical_not(x), (EMPTY,), np.logical_not),
    errors=[("not a tensor", lambda M: M.logical_not([True]), TypeError, "list")])


def _bits(name: str, symbol: Any, ref: Any) -> None:
    def call(M: Any, x: Any, y: Any) -> Any:
        return getattr(M, name)(x, y)

    row(name,
        Sample("ints", call, (N, J), ref), Sample("bools", call, (P, Q), ref),
        Sample("operator", lambda M, x, y: symbol(x, y), (N, J[0]), ref),
        Sample("number", lambda M, x: symbol(x, 5), (N,), lambda x: ref(x, 5)),
        Sample("number left", lambda M, x: symbol(6, x), (N,), lambda x: ref(6, x)),
        Sample("bool and int", call, (P, J), ref),
        Sample("in place", lambda M, x, y: getattr(x.clone(), f"{name}_")(y), (N, J), ref),
        Sample("0-dim", call, (N[0, 0], J[0, 0]), ref),
        Sample("empty", call, (EMPTY.astype(int), EMPTY.astype(int)), ref),
        errors=[_broadcast_error(call),
                ("floats", lambda M: call(M, M.ones(2), M.ones(2)), TypeError, "integer or bool")])


_bits("bitwise_and", operator.and_, np.bitwise_and)
_bits("bitwise_or", operator.or_, np.bitwise_or)
_bits("bitwise_xor", operator.xor, np.bitwise_xor)
row("bitwise_not",
    Sample("ints", lambda M, x: M.bitwise_not(x), (N,), np.invert),
    Sample("bools", lambda M, x: ~x, (P,), np.invert),
    Sample("in place", lambda M, x: x.clone().bitwise_not_(), (N,), np.invert),
    errors=[("floats", lambda M: M.bitwise_not(M.ones(2)), TypeError, "integer or bool")])


def _test(name: str, ref: Any) -> None:
    row(name,
        Sample("special", lambda M, x: getattr(M, name)(x), (SPECIAL,), ref),
        Sample("method", lambda M, x: getattr(x, name)(), (A,), ref),
        Sample("ints", lambda M, x: getattr(M, name)(x), (integers(2, 3, low=-5),), ref),
        Sample("0-dim", lambda M, x: getattr(M, name)(x), (np.array(np.inf),), ref),
        Sample("empty", lambda M, x: getattr(M, name)(x), (EMPTY,), ref),
        errors=[("not a tensor", lambda M: getattr(M, name)([1.0]), TypeError, "list")])


_test("isnan", np.isnan)
_test("isinf", np.isinf)
_test("isfinite", np.isfinite)
_test("signbit", lambda x: np.signbit(np.asarray(x)) if np.asarray(x).dtype.kind == "f" else x < 0)
NEAR = A * (1 + 1e-4)
row("isclose",
    Sample("default", lambda M, x, y: M.isclose(x, y), (A, np.where(P, A, NEAR)), np.isclose),
    Sample("wide", lambda M, x, y: x.isclose(y, rtol=1e-3, atol=0.0), (A, NEAR),
           lambda x, y: np.isclose(x, y, 1e-3, 0.0)),
    Sample("special", lambda M, x, y: M.isclose(x, y), (SPECIAL, SPECIAL.copy()), np.isclose),
    Sample("equal nan", lambda M, x, y: M.isclose(x, y, equal_nan=True), (SPECIAL, SPECIAL.copy()),
           lambda x, y: np.isclose(x, y, equal_nan=True)),
    Sample("broadcast", lambda M, x, y: M.isclose(x, y), (A, A[0]), np.isclose),
    Sample("ints", lambda M, x, y: M.isclose(x, y), (N, J), np.isclose),
    errors=[("not a tensor", lambda M: M.isclose(M.ones(2), 1.0), TypeError, "must be a Tensor"),
            ("shapes", lambda M: M.isclose(M.ones(2), M.ones(3)), ValueError, "broadcast")])
row("allclose",
    Sample("yes", lambda M, x: M.allclose(x, x + 1e-9), (A,), lambda x: True, grad=False),
    Sample("no", lambda M, x: x.allclose(x * 1.1), (A,), lambda x: False, grad=False),
    Sample("wide", lambda M, x: M.allclose(x, x * 1.01, rtol=0.1), (A,), lambda x: True, grad=False),
    Sample("nan", lambda M, x: M.allclose(x, x), (SPECIAL,), lambda x: False, grad=False),
    Sample("empty", lambda M, x: M.allclose(x, x), (EMPTY,), lambda x: True, grad=False),
    errors=[("not a tensor", lambda M: M.allclose(M.ones(2), 1.0), TypeError, "must be a Tensor")])
row("equal",
    Sample("yes", lambda M, x: M.equal(x, x.clone()), (A,), lambda x: True, grad=False),
    Sample("no", lambda M, x: x.equal(x + 1), (A,), lambda x: False, grad=False),
    Sample("other shape", lambda M, x: M.equal(x, x[0]), (A,), lambda x: False, grad=False),
    Sample("empty", lambda M, x: M.equal(x, x), (EMPTY,), lambda x: True, grad=False),
    errors=[("not a tensor", lambda M: M.equal(M.ones(2), 1.0), TypeError, "must be a Tensor")])
ENDS = np.array([np.inf, -np.inf, np.nan, 1.0])
binary("bitwise_left_shift", np.left_shift, COUNTS, FEW, FEW[:, :1],
       Sample("operator", lambda M, x: x << 2, (COUNTS,), lambda x: x << 2))
binary("bitwise_right_shift", np.right_shift, COUNTS - 5, FEW, FEW[:, :1],
       Sample("operator", lambda M, x: x >> 1, (COUNTS,), lambda x: x >> 1))
row("isposinf", Sample("plain", lambda M, x: M.isposinf(x), (ENDS,), np.isposinf, grad=False),
    Sample("int", lambda M, x: M.isposinf(x), (COUNTS,), lambda x: x > 99), errors=no_list("isposinf"))
row("isneginf", Sample("plain", lambda M, x: M.isneginf(x), (ENDS,), np.isneginf, grad=False),
    Sample("int", lambda M, x: x.isneginf(), (COUNTS,), lambda x: x > 99), errors=no_list("isneginf"))
for _name, _symbol in (("rlshift", "<<"), ("rrshift", ">>")):
    def _left(M: Any, x: Any, symbol: str = _symbol) -> Any:
        return eval(f"37 {symbol} x", {"x": x})

    def _left_ref(x: Any, symbol: str = _symbol) -> Any:
        return eval(f"37 {symbol} x", {"x": x})
    row(_name, Sample("number", _left, (FEW,), _left_ref), namespace="",
        errors=[("word", lambda M, f=_left: f(M, M.ones(2)), Exception, "integer")])
ONE = np.array([[2.5]])
row("is_nonzero", Sample("yes", lambda M, x: M.tensor(M.is_nonzero(x)), (ONE,), lambda x: np.array(True),
                         grad=False),
    Sample("no", lambda M, x: M.tensor((x - x).is_nonzero()), (ONE,), lambda x: np.array(False), grad=False),
    errors=[("many", lambda M: M.is_nonzero(M.ones(2)), ShapeError, "[2]")])
