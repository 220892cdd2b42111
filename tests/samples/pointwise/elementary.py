"""Rows of ops/pointwise/elementary.py."""

import math
from typing import Any

import numpy as np

from ..base import Sample, integers, masks, normal, positive, row
from . import COUNTS, SECOND, binary, no_list, with_nan

A, POS = normal(2, 3), positive(2, 3)
V, COLUMN = normal(3, seed=2), normal(2, 1, seed=3)
UNIT = np.array([[0.1, -0.6, 0.85], [-0.3, 0.45, -0.9]])
BEYOND = POS + 1
EMPTY = np.zeros((2, 0))
N, BITS = integers(2, 3, low=1), masks(2, 3)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 1.5])
_erf, _erfc = np.vectorize(math.erf, [float]), np.vectorize(math.erfc, [float])


def _unary(name: str, ref: Any, x: np.ndarray, *, alias: str = "", ints: bool = True,
           special: bool = True) -> None:
    def call(M: Any, x: Any) -> Any:
        return getattr(M, name)(x)

    def quiet(x: np.ndarray) -> Any:
        with np.errstate(all="ignore"):
            return ref(x)

    samples = [
        Sample("function", call, (x,), ref),
        Sample("method", lambda M, x: getattr(x, name)(), (x,), ref),
        Sample("0-dim", call, (x[0, 0],), ref),
        Sample("empty", call, (EMPTY,), lambda x: x),
        Sample("in place", lambda M, x: getattr(x.clone(), f"{name}_")(), (x,), ref,
               torch=name not in ("asinh", "acosh", "atanh"), why="PyTorch has no derivative of these"),
        Sample("alone", lambda M, x: getattr(M, alias or name)(x), (x,), ref),
    ]
    if special:
        samples.append(Sample("special", call, (SPECIAL,), quiet, grad=False))
    if name in ("floor", "ceil", "trunc"):
        samples.append(Sample("int", call, (N,), lambda x: x))
    if ints:
        samples += [Sample("int", call, (N,), lambda x: quiet(x).astype(np.float32)),
                    Sample("bool", call, (BITS,), lambda x: quiet(x.astype(float)).astype(np.float32))]
    row(name, *samples, errors=[("not a tensor", lambda M: getattr(M, name)([1.0]), TypeError, "list")])


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


for _name, _ref, _x, _alias in (
        ("exp", np.exp, A, ""), ("exp2", np.exp2, A, ""), ("expm1", np.expm1, A, ""),
        ("log", np.log, POS, ""), ("log2", np.log2, POS, ""), ("log10", np.log10, POS, ""),
        ("log1p", np.log1p, POS, ""), ("sqrt", np.sqrt, POS, ""), ("rsqrt", _rsqrt, POS, ""),
        ("sin", np.sin, A, ""), ("cos", np.cos, A, ""), ("tan", np.tan, UNIT, ""),
        ("asin", np.arcsin, UNIT, "arcsin"), ("acos", np.arccos, UNIT, "arccos"),
        ("atan", np.arctan, A, "arctan"), ("sinh", np.sinh, A, ""), ("cosh", np.cosh, A, ""),
        ("tanh", np.tanh, A, ""), ("asinh", np.arcsinh, A, "arcsinh"),
        ("acosh", np.arccosh, BEYOND, "arccosh"), ("atanh", np.arctanh, UNIT, "arctanh"),
        ("sigmoid", _sigmoid, A, ""), ("erf", _erf, A, ""), ("erfc", _erfc, A, "")):
    _unary(_name, _ref, _x, alias=_alias)
for _name, _ref in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc)):
    _unary(_name, _ref, A, ints=False)
_unary("frac", lambda x: x - np.trunc(x), A, ints=False, special=False)
HALVES = np.array([0.5, 1.5, -0.5, 2.5, -2.7])
row("round",
    Sample("halves", lambda M, x: M.round(x), (HALVES,), np.round, grad=False),
    Sample("gradient", lambda M, x: M.round(x), (A,), np.round),
    Sample("decimals", lambda M, x: x.round(decimals=2), (A,), lambda x: np.round(x, 2), grad=False,
           why="so steep that the numerical derivative sees the steps"),
    Sample("in place", lambda M, x: x.clone().round_(), (A,), np.round),
    Sample("int", lambda M, x: M.round(x), (N,), lambda x: x),
    errors=[("not a tensor", lambda M: M.round([1.0]), TypeError, "list"),
            ("not a tensor, decimals", lambda M: M.round([1.0], decimals=1), TypeError, "list"),
            ("bool", lambda M: M.round(M.ones(2).bool()), (TypeError, ValueError), "bool")])
row("round", Sample("method", lambda M, x: x.round(), (A,), np.round), namespace="",
    errors=[("word", lambda M: M.round("x"), TypeError, "str")])
row("where",
    Sample("tensors", lambda M, c, x, y: M.where(c, x, y), (BITS, A, POS), np.where),
    Sample("broadcast", lambda M, c, x, y: M.where(c, x, y), (BITS[0], A, COLUMN), np.where),
    Sample("number right", lambda M, c, x: M.where(c, x, 0.0), (BITS, A), lambda c, x: np.where(c, x, 0.0)),
    Sample("number left", lambda M, c, x: M.where(c, 1.0, x), (BITS, A), lambda c, x: np.where(c, 1.0, x)),
    Sample("comparison", lambda M, x: M.where(x > 0, x, -2 * x), (A,), lambda x: np.where(x > 0, x, -2 * x)),
    Sample("0-dim", lambda M, c, x, y: M.where(c, x, y), (BITS[0, 0], A[0, 0], A[1, 1]), np.where),
    Sample("empty", lambda M, c, x, y: M.where(c, x, y), (EMPTY.astype(bool), EMPTY, COLUMN), np.where),
    Sample("ints", lambda M, c, x: M.where(c, x, 0), (BITS, N), lambda c, x: np.where(c, x, 0)),
    Sample("int and float", lambda M, c, x, y: M.where(c, x, y), (BITS, N, A), np.where),
    Sample("nan not chosen", lambda M, x: M.where(x > 0, M.sqrt(x), 0.0).sum(), (A,),
           lambda x: np.sqrt(x[x > 0]).sum(), torch=False, why="PyTorch gives nan gradients here"),
    errors=[("condition", lambda M: M.where(M.ones(2), M.ones(2), 0.0), TypeError, "must be bool"),
            ("not a tensor", lambda M: M.where(True, M.ones(2), 0.0), TypeError, "must be a Tensor"),
            ("shapes", lambda M: M.where(M.ones(2) > 0, M.ones(3), 0.0), ValueError, "broadcast")])
row("where", Sample("method", lambda M, c, x, y: x.where(c, y), (BITS, A, V), np.where),
    Sample("number", lambda M, c, x: x.where(c, -1.0), (BITS, A), lambda c, x: np.where(c, x, -1.0)),
    namespace="", errors=[("condition", lambda M: M.ones(2).where(M.ones(2), 0.0), TypeError, "bool")])
row("masked_fill",
    Sample("number", lambda M, x, m: M.masked_fill(x, m, -1.5), (A, BITS), lambda x, m: np.where(m, -1.5, x)),
    Sample("broadcast", lambda M, x, m: x.masked_fill(m, 0.0), (A, BITS[0]),
           lambda x, m: np.where(m, 0.0, x)),
    Sample("-inf", lambda M, x, m: M.masked_fill(x, m, float("-inf")), (A, BITS),
           lambda x, m: np.where(m, -np.inf, x), grad=False),
    Sample("0-dim tensor", lambda M, x, m, v: M.masked_fill(x, m, v), (A, BITS, np.array(2.0)),
           lambda x, m, v: np.where(m, v, x)),
    Sample("in place", lambda M, x, m: x.clone().masked_fill_(m, 3.0), (A, BITS),
           lambda x, m: np.where(m, 3.0, x)),
    Sample("int", lambda M, x, m: M.masked_fill(x, m, 7), (N, BITS), lambda x, m: np.where(m, 7, x)),
    errors=[("mask", lambda M: M.masked_fill(M.ones(2), M.ones(2), 0.0), TypeError, "bool"),
            ("value", lambda M: M.masked_fill(M.ones(2), M.ones(2) > 0, M.ones(2)), ValueError, "0-dim"),
            ("shapes", lambda M: M.masked_fill(M.ones(2), M.ones(3) > 0, 0.0), ValueError, "broadcast")])
LOW, HIGH = np.array([-0.5, -0.1, -2.0]), np.array([0.6, 0.2, 2.0])
row("clamp",
    Sample("both", lambda M, x: M.clamp(x, -0.5, 0.7), (A,), lambda x: np.clip(x, -0.5, 0.7)),
    Sample("low", lambda M, x: x.clamp(min=-0.2), (A,), lambda x: np.maximum(x, -0.2)),
    Sample("high", lambda M, x: M.clip(x, max=0.2), (A,), lambda x: np.minimum(x, 0.2)),
    Sample("tensors", lambda M, x, a, b: M.clamp(x, a, b), (A, LOW, HIGH), np.clip),
    Sample("at the limit", lambda M, x: M.clamp(x, 1.0, 2.0), (np.array([1.0, 2.0, 3.0]),),
           lambda x: np.clip(x, 1, 2), grad=False),
    Sample("in place", lambda M, x: x.clone().clamp_(-0.5, 0.7), (A,), lambda x: np.clip(x, -0.5, 0.7)),
    Sample("ints", lambda M, x: M.clamp(x, 2, 5), (N,), lambda x: np.clip(x, 2, 5)),
    Sample("int, float limit", lambda M, x: M.clamp(x, min=2.5), (N,),
           lambda x: np.maximum(x, 2.5).astype(np.float32)),
    Sample("int limit", lambda M, x: M.clamp(x, min=0), (A,), lambda x: np.maximum(x, 0)),
    Sample("nan", lambda M, x: M.clamp(x, -1.0, 1.0), (SPECIAL,), lambda x: np.clip(x, -1, 1), grad=False),
    Sample("empty", lambda M, x: M.clamp(x, 0.0), (EMPTY,), lambda x: x),
    errors=[("no limits", lambda M: M.clamp(M.ones(2)), ValueError, "at least one"),
            ("not a tensor", lambda M: M.clamp(1.0, 0.0), TypeError, "must be a Tensor")])
row("clamp_min",
    Sample("number", lambda M, x: M.clamp_min(x, -0.2), (A,), lambda x: np.maximum(x, -0.2)),
    Sample("method", lambda M, x: x.clamp_min(0.1), (A,), lambda x: np.maximum(x, 0.1)),
    Sample("in place", lambda M, x: x.clone().clamp_min_(0.1), (A,), lambda x: np.maximum(x, 0.1)),
    Sample("tensor", lambda M, x, a: M.clamp_min(x, a), (A, LOW), np.maximum),
    errors=[("not a tensor", lambda M: M.clamp_min(1.0, 0.0), TypeError, "must be a Tensor")])
row("clamp_max",
    Sample("number", lambda M, x: M.clamp_max(x, -0.2), (A,), lambda x: np.minimum(x, -0.2)),
    Sample("method", lambda M, x: x.clamp_max(0.1), (A,), lambda x: np.minimum(x, 0.1)),
    Sample("in place", lambda M, x: x.clone().clamp_max_(0.1), (A,), lambda x: np.minimum(x, 0.1)),
    Sample("tensor", lambda M, x, a: M.clamp_max(x, a), (A, HIGH), np.minimum),
    errors=[("not a tensor", lambda M: M.clamp_max(1.0, 0.0), TypeError, "must be a Tensor")])
row("nan_to_num",
    Sample("numbers", lambda M, x: M.nan_to_num(x, 1.0, 2.0, 3.0), (SPECIAL,),
           lambda x: np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0), grad=False),
    Sample("nan only", lambda M, x: x.nan_to_num(posinf=0.0, neginf=-1.0), (SPECIAL,),
           lambda x: np.nan_to_num(x, posinf=0.0, neginf=-1.0), grad=False),
    Sample("gradient", lambda M, x: M.nan_to_num(x), (A,), lambda x: x),
    Sample("in place", lambda M, x: x.clone().nan_to_num_(0.5), (A,), lambda x: x),
    Sample("int", lambda M, x: M.nan_to_num(x), (N,), lambda x: x),
    Sample("empty", lambda M, x: M.nan_to_num(x), (EMPTY,), lambda x: x),
    errors=[("not a tensor", lambda M: M.nan_to_num([1.0]), TypeError, "must be a Tensor")])
for _name, _factor in (("deg2rad", np.pi / 180), ("rad2deg", 180 / np.pi)):
    def _call(M: Any, x: Any, name: str = _name) -> Any:
        return getattr(M, name)(x)

    def _ref(x: Any, factor: float = _factor) -> Any:
        return x * factor
    row(_name, Sample("plain", _call, (A,), _ref), Sample("0-dim", _call, (A[0, 0],), _ref),
        Sample("int", _call, (COUNTS,), lambda x, f=_ref: f(x).astype(np.float32)), errors=no_list(_name))
binary("hypot", np.hypot, A, SECOND, COLUMN, with_nan("hypot", np.hypot))
binary("logaddexp", np.logaddexp, A, SECOND, COLUMN, Sample(
    "large", lambda M, x, y: M.logaddexp(x, y), (A * 500, SECOND * 500), np.logaddexp,
    torch=False, why="its second derivative there is nan"))
binary("logaddexp2", np.logaddexp2, A, SECOND, COLUMN)
