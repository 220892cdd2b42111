"""Rows of ops/pointwise/arithmetic.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, masks, normal, positive, row
from . import COUNTS, FEW, SECOND, binary, with_nan

A, B = normal(2, 3), normal(2, 3, seed=1)
V, COLUMN = normal(3, seed=2), normal(2, 1, seed=3)
EMPTY = np.zeros((2, 0))
N, J = integers(2, 3, low=-9), integers(2, 3, low=1, seed=1)
CLEAR = np.array([[3.3, -2.4, 5.7], [-4.6, 1.2, 7.9]])  # far from the steps of remainders
TIES = np.array([1.0, 2.0, 3.0])


def _samples(call: Any, ref: Any, x: np.ndarray = A, y: np.ndarray = B, *, ints: bool = True,
             **more: Any) -> list[Sample]:
    """Two operands: equal shapes, broadcasting both ways, 0-dim, empty, a number, ints."""
    found = [
        Sample("equal shapes", call, (x, y), ref, **more),
        Sample("broadcast row", call, (x, y[0]), ref, **more),
        Sample("broadcast both", call, (x[:, :1], y[0]), ref, **more),
        Sample("0-dim right", call, (x, y[0, 0]), ref, **more),
        Sample("0-dim left", call, (x[0, 0], y), ref, **more),
        Sample("both 0-dim", call, (x[0, 0], y[1, 1]), ref, **more),
        Sample("empty", call, (EMPTY, COLUMN), ref, **more),
        Sample("number", lambda M, x: call(M, x, 2.5), (x,), lambda x: ref(x, 2.5), **more),
        Sample("int and float", call, (J, y), ref, **more),
    ]
    return found + ([Sample("ints", call, (N, J), ref),
                     Sample("int number", lambda M, x: call(M, x, 3), (N,), lambda x: ref(x, 3))]
                    if ints else [])


def _errors(call: Any) -> list:
    return [("shapes", lambda M: call(M, M.ones(2, 3), M.ones(4)), ValueError, "do not broadcast"),
            ("word", lambda M: call(M, M.ones(2), "x"), TypeError, "str")]


def _inplace(name: str, ref: Any, x: np.ndarray = A, y: np.ndarray = B) -> list[Sample]:
    def call(M: Any, x: Any, y: Any) -> Any:
        return getattr(x.clone(), f"{name}_")(y)
    return [Sample("in place", call, (x, y), ref), Sample("in place, row", call, (x, y[0]), ref)]


def _scaled_add(M: Any, x: Any, y: Any) -> Any:
    return M.add(x, y, alpha=2)


def _add(x: Any, y: Any) -> Any:
    return x + y


def _sub(x: Any, y: Any) -> Any:
    return x - y


def _mul(x: Any, y: Any) -> Any:
    return x * y


def _div(x: Any, y: Any) -> Any:
    out = x / y
    floating = any(np.asarray(a).dtype.kind == "f" and not isinstance(a, float) for a in (x, y))
    return out if floating else np.asarray(out, np.float32)


row("add", *_samples(lambda M, x, y: M.add(x, y), _add), *_inplace("add", _add),
    Sample("alpha", _scaled_add, (A, V), lambda x, y: x + 2 * y),
    Sample("alpha of a number", lambda M, x: M.add(x, 1.5, alpha=2), (A,), lambda x: x + 3),
    Sample("int alpha", _scaled_add, (N, J), lambda x, y: x + 2 * y),
    Sample("bools", lambda M, x, y: M.add(x, y), (masks(4), masks(4, seed=1)), np.logical_or),
    errors=_errors(lambda M, x, y: M.add(x, y)))
row("add", Sample("operator", lambda M, x, y: x + y, (A, V), _add),
    Sample("number left", lambda M, x: 2.5 + x, (A,), lambda x: 2.5 + x),
    Sample("int left", lambda M, x: 2 + x, (N,), lambda x: 2 + x),
    Sample("method", lambda M, x, y: x.add(y), (A, V), _add), namespace="",
    errors=_errors(lambda M, x, y: x + y))
row("sub", *_samples(lambda M, x, y: M.sub(x, y), _sub), *_inplace("sub", _sub),
    Sample("alpha", lambda M, x, y: M.sub(x, y, alpha=0.5), (A, V), lambda x, y: x - 0.5 * y),
    Sample("alpha of a number", lambda M, x: x.sub(3, alpha=2), (A,), lambda x: x - 6),
    Sample("subtract", lambda M, x, y: M.subtract(x, y), (A, V), _sub),
    errors=_errors(lambda M, x, y: M.sub(x, y)))
row("sub", Sample("operator", lambda M, x, y: x - y, (A, V), _sub),
    Sample("int", lambda M, x, y: x - y, (N, J), _sub), namespace="",
    errors=_errors(lambda M, x, y: x - y))
row("rsub", *_samples(lambda M, x, y: M.rsub(x, y), lambda x, y: y - x),
    Sample("operator", lambda M, x: 2.5 - x, (A,), lambda x: 2.5 - x),
    errors=_errors(lambda M, x, y: M.rsub(x, y)))
row("rsub", Sample("number", lambda M, x: 2.5 - x, (A,), lambda x: 2.5 - x),
    Sample("int", lambda M, x: 6 - x, (J,), lambda x: 6 - x), namespace="",
    errors=[("word", lambda M: "x" - M.ones(2), TypeError, "str")])
row("mul", *_samples(lambda M, x, y: M.mul(x, y), _mul), *_inplace("mul", _mul),
    Sample("operator", lambda M, x, y: x * y, (A, V), _mul),
    Sample("number left", lambda M, x: 2.5 * x, (A,), lambda x: 2.5 * x),
    Sample("multiply", lambda M, x, y: M.multiply(x, y), (A, V), _mul),
    Sample("bools", lambda M, x, y: M.mul(x, y), (masks(4), masks(4, seed=1)), np.logical_and),
    Sample("itself", lambda M, x: M.mul(x, x), (A,), np.square),
    errors=_errors(lambda M, x, y: M.mul(x, y)))
row("div", *_samples(lambda M, x, y: M.div(x, y), _div), *_inplace("div", _div),
    Sample("floor", lambda M, x, y: M.div(x, y, rounding_mode="floor"), (CLEAR, np.array(2.0)),
           np.floor_divide, order=1, grad=False, why="PyTorch's derivative of it is 0, ours is none"),
    Sample("trunc", lambda M, x, y: M.div(x, y, rounding_mode="trunc"), (N, J),
           lambda x, y: np.trunc(x / y).astype(int)),
    Sample("divide", lambda M, x, y: M.divide(x, y), (A, V), _div),
    errors=[*_errors(lambda M, x, y: M.div(x, y)),
            ("mode", lambda M: M.div(M.ones(2), 2, rounding_mode="up"), ValueError, "rounding_mode")])
row("div", Sample("operator", lambda M, x, y: x / y, (A, V), _div),
    Sample("by zero", lambda M, x: x / 0.0, (A,), lambda x: np.copysign(np.inf, x), grad=False),
    Sample("bools", lambda M, x, y: x / y, (masks(4), np.ones(4, bool)), _div),
    namespace="", errors=_errors(lambda M, x, y: x / y))
row("rtruediv", Sample("number", lambda M, x: 2.5 / x, (A,), lambda x: 2.5 / x),
    Sample("int", lambda M, x: 6 / x, (J,), lambda x: (6 / x).astype(np.float32)), namespace="",
    errors=[("word", lambda M: "x" / M.ones(2), TypeError, "str")])


def _step(name: str, ref: Any, call: Any, x: np.ndarray = CLEAR, **more: Any) -> None:
    y = np.array([[2.0, -3.0, 4.0], [1.5, -0.7, 3.0]])
    row(name, *_samples(call, ref, x, y, **more), errors=_errors(call))


_step("floor_divide", np.floor_divide, lambda M, x, y: M.floor_divide(x, y), grad=False)
_step("remainder", np.remainder, lambda M, x, y: M.remainder(x, y))
_step("fmod", np.fmod, lambda M, x, y: M.fmod(x, y))
row("trunc_divide",
    Sample("ints", lambda M, x, y: M.div(x, y, rounding_mode="trunc"), (N, J),
           lambda x, y: np.trunc(x / y).astype(int)),
    Sample("floats", lambda M, x: M.div(x, 2.0, rounding_mode="trunc"), (CLEAR,),
           lambda x: np.trunc(x / 2), grad=False), namespace="",
    errors=[("shapes", lambda M: M.div(M.ones(2), M.ones(3), rounding_mode="trunc"), ValueError,
             "broadcast")])
row("rfloordiv", Sample("number", lambda M, x: 7 // x, (J,), lambda x: 7 // x),
    Sample("float", lambda M, x: 7.5 // x, (positive(4),), lambda x: 7.5 // x, grad=False), namespace="",
    errors=[("word", lambda M: "x" // M.ones(2), TypeError, "str")])
row("rmod", Sample("number", lambda M, x: 7 % x, (J,), lambda x: 7 % x),
    Sample("float", lambda M, x: 7.5 % x, (CLEAR,), lambda x: 7.5 % x,
           torch=False, why="PyTorch has no derivative of it"), namespace="",
    errors=[("list", lambda M: [] % M.ones(2), TypeError, "list")])


def _power(M: Any, x: Any, y: Any) -> Any:
    return M.pow(x, y)


row("pow", *_samples(_power, np.power, positive(2, 3), B, ints=False), *_inplace(
        "pow", np.power, positive(2, 3)),
    *[Sample(f"to the {p}", lambda M, x, p=p: x ** p, (A,), lambda x, p=p: x ** p)
      for p in (0, 1, 2, 3, -1, -2, 2.0)],
    Sample("root", lambda M, x: x ** 0.5, (positive(4),), np.sqrt),
    Sample("at 0", lambda M, x: M.pow(x, 3), (np.array([0.0, 1.0]),), lambda x: x ** 3),
    Sample("0 to the 0", lambda M, x: M.pow(x, 0), (np.array([0.0, 1.0]),), lambda x: x ** 0),
    Sample("ints", _power, (J, integers(2, 3, high=4, seed=4)), np.power),
    Sample("int squared", lambda M, x: x ** 2, (N,), np.square),
    Sample("int to a float", lambda M, x: x ** 2.0, (N,), lambda x: np.square(x).astype(np.float32)),
    errors=[*_errors(_power),
            ("negative int", lambda M: M.pow(M.tensor([2]), -1), ValueError, "no integer result")])
row("pow", Sample("tensors", lambda M, x, y: x.pow(y), (positive(2, 3), V), np.power), namespace="",
    errors=_errors(lambda M, x, y: x ** y))
row("rpow", Sample("number", lambda M, x: 2.0 ** x, (A,), lambda x: 2.0 ** x),
    Sample("int", lambda M, x: 2 ** x, (J,), lambda x: 2 ** x), namespace="",
    errors=[("word", lambda M: "x" ** M.ones(2), TypeError, "str")])


def _unary(name: str, ref: Any, x: np.ndarray = A, *more: Sample, int_result: Any = None,
           ints: bool = True, inplace: bool = True) -> None:
    call = (lambda M, x: getattr(M, name)(x))
    found = [
        Sample("function", call, (x,), ref),
        Sample("method", lambda M, x: getattr(x, name)(), (x,), ref),
        Sample("0-dim", call, (x[0, 0],), ref),
        Sample("empty", call, (EMPTY,), ref),
        Sample("in place", lambda M, x: getattr(x.clone(), f"{name}_")(), (x,), ref),
    ]
    if ints:
        found.append(Sample("int", call, (N if int_result is None else J,), int_result or ref))
    row(name, *found, *more, errors=[
        ("not a tensor", lambda M: getattr(M, name)([1.0]), TypeError, "list")])


_unary("neg", np.negative, A, Sample("operator", lambda M, x: -x, (A,), np.negative))
_unary("abs", np.abs, A, Sample("operator", lambda M, x: abs(x), (A,), np.abs),
       Sample("at 0", lambda M, x: M.abs(x).sum(), (np.zeros(2),), np.sum, grad=False))
_unary("sign", np.sign, A, Sample("at 0", lambda M, x: M.sign(x), (np.zeros(2),), np.sign, grad=False))
_unary("square", np.square)
_unary("reciprocal", np.reciprocal, int_result=lambda x: (1 / x).astype(np.float32))


def _extreme(name: str, ref: Any) -> None:
    def call(M: Any, x: Any, y: Any) -> Any:
        return getattr(M, name)(x, y)

    row(name, *[s for s in _samples(call, ref) if "number" not in s.label],
        Sample("method", lambda M, x, y: getattr(x, name)(y), (A, V), ref),
        Sample("ties share", call, (TIES, np.array([1.0, 3.0, 2.0])), ref, grad=False,
               why="a kink where they are equal"),
        Sample("nan wins", call, (np.array([np.nan, 1.0]), np.array([1.0, np.nan])), ref, grad=False),
        errors=_errors(call))


_extreme("maximum", np.maximum)
_extreme("minimum", np.minimum)
row("atan2", *[s for s in _samples(lambda M, x, y: M.atan2(x, y), np.arctan2, ints=False)
               if s.label != "number"],
    Sample("arctan2", lambda M, x, y: M.arctan2(x, y), (A, B), np.arctan2),
    Sample("ints", lambda M, x, y: M.atan2(x, y), (N, J), lambda x, y: np.arctan2(x, y).astype(np.float32)),
    errors=_errors(lambda M, x, y: M.atan2(x, y)))
row("lerp",
    Sample("number", lambda M, x, y: M.lerp(x, y, 0.3), (A, B), lambda x, y: x + 0.3 * (y - x)),
    Sample("weights", lambda M, x, y, w: M.lerp(x, y, w), (A, B, V), lambda x, y, w: x + w * (y - x)),
    Sample("weights of both ends", lambda M, x, y, w: M.lerp(x, y, w * 3), (A, B, V),
           lambda x, y, w: x + 3 * w * (y - x)),
    Sample("method", lambda M, x, y: x.lerp(y, 0.9), (A, V), lambda x, y: x + 0.9 * (y - x)),
    Sample("in place", lambda M, x, y: x.clone().lerp_(y, 0.9), (A, V), lambda x, y: x + 0.9 * (y - x)),
    Sample("empty", lambda M, x: M.lerp(x, x, 0.5), (EMPTY,), lambda x: x),
    errors=[("shapes", lambda M: M.lerp(M.ones(2), M.ones(3), 0.5), ValueError, "broadcast")])
row("addcmul",
    Sample("plain", lambda M, x, y, z: M.addcmul(x, y, z), (A, V, COLUMN), lambda x, y, z: x + y * z),
    Sample("value", lambda M, x, y, z: x.addcmul(y, z, value=0.5), (A, B, V),
           lambda x, y, z: x + 0.5 * y * z),
    Sample("in place", lambda M, x, y, z: x.clone().addcmul_(y, z, value=2.0), (A, B, V),
           lambda x, y, z: x + 2 * y * z),
    Sample("ints", lambda M, x, y, z: M.addcmul(x, y, z, value=2), (N, J, J),
           lambda x, y, z: x + 2 * y * z),
    errors=[("shapes", lambda M: M.addcmul(M.ones(2), M.ones(3), M.ones(2)), ValueError, "broadcast")])
row("addcdiv",
    Sample("plain", lambda M, x, y, z: M.addcdiv(x, y, z), (A, V, COLUMN), lambda x, y, z: x + y / z),
    Sample("value", lambda M, x, y, z: x.addcdiv(y, z, value=0.5), (A, B, V),
           lambda x, y, z: x + 0.5 * y / z),
    Sample("in place", lambda M, x, y, z: x.clone().addcdiv_(y, z, value=-2.0), (A, B, V),
           lambda x, y, z: x - 2 * y / z),
    errors=[("shapes", lambda M: M.addcdiv(M.ones(2), M.ones(3), M.ones(2)), ValueError, "broadcast")])
binary("copysign", np.copysign, A, SECOND, COLUMN,
       Sample("number", lambda M, x: M.copysign(x, -1.0), (A,), lambda x: -np.abs(x)))
binary("fmax", np.fmax, A, SECOND, COLUMN, with_nan("fmax", np.fmax),
       Sample("int", lambda M, x, y: M.fmax(x, y), (COUNTS, FEW), np.fmax))
binary("fmin", np.fmin, A, SECOND, COLUMN, with_nan("fmin", np.fmin),
       Sample("int", lambda M, x, y: M.fmin(x, y), (COUNTS, FEW), np.fmin))
binary("heaviside", np.heaviside, np.where(masks(2, 3), 0.0, A), SECOND, COLUMN, grad=False)
binary("gcd", np.gcd, COUNTS * 6, FEW * 4, FEW[:, :1])
binary("lcm", np.lcm, COUNTS, FEW, FEW[:, :1])
row("positive", Sample("plain", lambda M, x: M.positive(x), (A,), lambda x: x),
    Sample("int", lambda M, x: x.positive(), (COUNTS,), lambda x: x),
    errors=[("bool", lambda M: M.positive(M.tensor([True])), TypeError, "bool")])
row("float_power",
    Sample("plain", lambda M, x: M.float_power(x, 2), (COUNTS,), lambda x: x.astype(float) ** 2),
    Sample("tensors", lambda M, x, y: M.float_power(x, y), (np.abs(A), SECOND), lambda x, y: x ** y),
    Sample("base", lambda M, y: M.float_power(2, y), (SECOND,), lambda y: 2.0 ** y),
    Sample("method", lambda M, x: x.float_power(3), (A,), lambda x: x ** 3),
    errors=[("numbers", lambda M: M.float_power(2, 3), TypeError, "must be a Tensor")])
