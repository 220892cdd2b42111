"""Arithmetic on elements: the operators, extremes, remainders and their relatives."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _native
from ...backends.native import native_or
from ...dtypes import FLOAT, INEXACT, complex128, float64, get_default_dtype
from ...errors import DivisionError, DTypeError, LayoutError, kind_of
from ...quiet import quiet
from ...tensor import Tensor
from ..convert.cast import cast, from_array, to
from ..language.elementwise import Elementwise, elementwise, reflected, usually
from ..record import autocast
from ..record.args import is_foreign, tensor_arg
from ..record.into import Call, run_call, with_numbers
from ..record.public import check_out, compute_into, public
from .elementary import sqrt
from .rounding import NOTHING

# gate(x, y) is x * y, and over(x, y) is x / y, but 0 wherever x is 0: the product and quotient in
# rules whose factor may be inf or nan where the incoming gradient is exactly 0 (a masked branch). What is
# masked stays so in derivatives of every order: there the derivative in x is 0, too (1e999 is inf).
gate = Elementwise("gate", "x y", "gate(x, y)", complex=True, masks=True, jvp="multilinear", vjp={
    "x": "gate(g, where((x == 0) & ~isfinite(y), x * 0.0, y))", "y": "gate(x, g)"})
over = Elementwise("over", "x y", "over(x, y)", complex=True, masks=True, vjp={
    "x": "over(g, where((x == 0) & ((y == 0) | (y != y)), x * 0.0 + 1e999, y))",
    "y": "over(over(gate(x, -g), y), y)"})

_plus = elementwise("add", "x y", "x + y", """Sum of two tensors.
    >>> fw.add(fw.tensor([1.0, 2.0]), fw.tensor([10.0, 20.0]))
    tensor([11., 22.])
    """, ufunc="add", complex=True, vjp={"x": "g", "y": "g"}, jvp="linear", namespace="", inplace=False,
    method="__add__ __radd__", of_anything=True)
_minus = elementwise("sub", "x y", "x - y", """Difference of two tensors.
    >>> fw.sub(fw.tensor([1.0, 2.0]), 1.0)
    tensor([0., 1.])
    """, ufunc="subtract", complex=True, vjp={"x": "g", "y": "-g"}, jvp="linear", namespace="", inplace=False,
    method="__sub__")
mul = elementwise("mul", "x y", "x * y", """Product of two tensors, element by element.
    >>> fw.mul(fw.tensor([1.0, 2.0]), 3.0)
    tensor([3., 6.])
    """, ufunc="multiply", complex=True, vjp={"x": "g * y", "y": "g * x"}, jvp="multilinear",
    method="__mul__ __rmul__ multiply", alias="multiply", of_anything=True)
_quotient = elementwise("div", "x y", "x / y",
    """Quotient of two tensors; integers give the default float dtype.
    >>> fw.div(fw.tensor([1, 2]), 4)
    tensor([0.2500, 0.5000])
    """, ufunc="true_divide", result="float", namespace="", method="__truediv__", inplace=False, complex=True,
    vjp={"x": "over(g, y)", "y": "gate(over(-g, y), x / y)"})


# whether no element of a divisor, of whole numbers, is 0; not True, too, where that is not known
_without_zero: Callable = getattr(_native.module, "without_zero", lambda y: NotImplemented)


def _refuse_zero(name: str, x: Any, y: Any) -> None:
    """Raise for whole numbers by 0, of which NumPy makes 0; floating ones give inf or nan."""
    if _without_zero(y) is True:
        return
    if type(y) is np.ndarray:
        fails = y.dtype.kind in "iub" and np.count_nonzero(y) != y.size  # y.all() takes three times as long
    else:
        fails = not y and x.dtype.kind in "iub"
    if fails:
        raise DivisionError(f"{name}: a whole number divided by 0 has no value; convert the tensors first, "
                            f"e.g. input.float()")


floor_divide = elementwise("floor_divide", "x y", "floor_divide(x, y)",
    """Quotient rounded down. Its derivative is 0.
    >>> fw.floor_divide(fw.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """, ufunc="floor_divide", check=_refuse_zero, method="__floordiv__", vjp={"x": NOTHING, "y": NOTHING})
trunc_divide = elementwise("trunc_divide", "x y", "trunc_divide(x, y)",
    """Quotient rounded towards 0. Its derivative is 0.
    >>> fw.div(fw.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])
    """, namespace="", method=False, check=_refuse_zero, vjp={"x": NOTHING, "y": NOTHING})
remainder = elementwise("remainder", "x y", "remainder(x, y)",
    """Remainder with the sign of the divisor, as Python's %.
    >>> fw.remainder(fw.tensor([7, -7]), 3)
    tensor([1, 2])
    """, ufunc="remainder", check=_refuse_zero, method="__mod__",
    vjp={"x": "g", "y": "-g * floor_divide(x, y)"})
fmod = elementwise("fmod", "x y", "fmod(x, y)",
    """Remainder with the sign of the dividend, as C's fmod.
    >>> fw.fmod(fw.tensor([7.0, -7.0]), 3.0)
    tensor([ 1., -1.])
    """, ufunc="fmod", check=_refuse_zero, vjp={"x": "g", "y": "-g * trunc(x / y)"})
# what was added up at places of ``x``: elsewhere it stays, be it -0
plus_sums = Elementwise("plus_sums", "x y", "where(y == 0, x, x + y)", complex=True, jvp="linear",
                        vjp={"x": "g", "y": "g"})
add_op, sub_op, mul_op, div_op = _plus.op, _minus.op, mul.op, _quotient.op
_power = elementwise("pow", "x y", "pow(x, y)", """The first operand to the power of the second.
    >>> fw.pow(fw.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """, ufunc="power", namespace="", complex=True, method=False, arguments="input exponent",
    writes="fcV",  # of whole numbers it can fail in the middle
    vjp={"x": "gate(gate(g, y), where((x == 0) & (y == 0), 0.0, pow(x, y - 1)))",
         "y": "gate(gate(g, out), log(where(x == 0, 1.0, x)))"})


neg = elementwise("neg", "x", "-x", """The negative.
    >>> fw.neg(fw.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """, ufunc="negative", vjp={"x": "-g"}, jvp="linear", method="__neg__ negative", alias="negative",
    complex=True)
abs = elementwise("abs", "x", "abs(x)", """Absolute value; its derivative at 0 is 0.
    >>> fw.abs(fw.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """, ufunc="absolute", result="real", complex=True, adjoint=True, vjp={"x": "g * sgn(x)"},
    jvp="symmetric", method="__abs__ absolute", alias="absolute")
sign = elementwise("sign", "x", "sign(x)", """-1, 0 or 1 by the sign.
    >>> fw.sign(fw.tensor([-3.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """, ufunc="sign", result="number", vjp={"x": NOTHING}, jvp="symmetric")
reciprocal = elementwise("reciprocal", "x", "1 / x", """One over the element.
    >>> fw.reciprocal(fw.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])
    """, result="float", complex=True, vjp={"x": "gate(gate(-g, out), out)"}, jvp="symmetric",
    float32_on_a_gpu=True)
square = elementwise("square", "x", "x * x", """The element times itself.
    >>> fw.square(fw.tensor([2.0, -3.0]))
    tensor([4., 9.])
    """, ufunc="square", result="number", complex=True, vjp={"x": "g * (2 * x)"}, jvp="symmetric")
_SHARE = "where(x == y, 0.5 * g, where({}, 0.0, g))"
maximum = elementwise("maximum", "x y", "maximum(x, y)",
    """The larger of two elements; nan wins. Equal elements share the gradient.
    >>> fw.maximum(fw.tensor([1.0, 5.0]), fw.tensor([3.0, 2.0]))
    tensor([3., 5.])
    """, ufunc="maximum", masks=True, vjp={"x": _SHARE.format("x < y"), "y": _SHARE.format("y < x")})
minimum = elementwise("minimum", "x y", "minimum(x, y)",
    """The smaller of two elements; nan wins. Equal elements share the gradient.
    >>> fw.minimum(fw.tensor([1.0, 5.0]), fw.tensor([3.0, 2.0]))
    tensor([1., 2.])
    """, ufunc="minimum", masks=True, vjp={"x": _SHARE.format("x > y"), "y": _SHARE.format("y > x")})
atan2 = elementwise("atan2", "x y", "atan2(x, y)",
    """The angle of the point (y, x) in (-pi, pi]; its derivative at the origin is 0.
    >>> fw.atan2(fw.tensor([1.0]), fw.tensor([1.0]))
    tensor([0.7854])
    """, ufunc="arctan2", result="float", method="arctan2", alias="arctan2", vjp={
        "x": "where((x == 0) & (y == 0), g * 0.0, gate(over(g, x * x + y * y), y))",
    "y": "where((x == 0) & (y == 0), g * 0.0, gate(over(-g, x * x + y * y), x))"})


def _times(x: Any, alpha: Any) -> Any:
    """``x * alpha``; numbers stay numbers, which are weak."""
    return x if alpha == 1 else mul(x, alpha) if isinstance(x, Tensor) else x * alpha


def _are_floating(factor: Any, *tensors: Any) -> bool:
    if type(factor) is not float and type(factor) is not int:
        return False
    for x in tensors:  # ``all`` of a generator takes twice as long
        if not isinstance(x, Tensor):
            return False
        if x.dtype.category < FLOAT:
            return False
    return True


# whether a number times one of the tensors, which are of floating numbers, is one as well
_floating: Callable = native_or("are_floating", _are_floating)
plus_times = Elementwise("add_times", "x y", "x + alpha * y", settings="alpha", complex=True, jvp="linear",
                          vjp={"x": "g", "y": "alpha * g"})


def _with_alpha(op: Elementwise, sign: int) -> Callable:
    def call(input: Any, other: Any, *, alpha: Any = 1) -> Call | None:
        if alpha == 1:
            return op, (input, other), {}
        scaled = plus_times, (input, other), {"alpha": sign * alpha}
        return scaled if _floating(alpha, input, other) else None
    call.as_it_comes = True  # type: ignore[attr-defined]  # of two operands without alpha
    return call


_add_call, _sub_call = _with_alpha(_plus.op, 1), _with_alpha(_minus.op, -1)


@public(method=True, inplace=True, op=_plus.op, call=_add_call)
@usually(_plus)
def add(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input + alpha * other``. Shapes broadcast; dtypes are promoted.

    >>> fw.add(fw.tensor([1.0, 2.0]), fw.tensor([10.0, 20.0]), alpha=2)
    tensor([21., 42.])
    """
    call = None if alpha == 1 else _add_call(input, other, alpha=alpha)
    if call is None:
        return _plus(input, _times(other, alpha), out=out)
    return run_call(call) if out is None else compute_into(call[0], call[1], call[2], out, "add")


@public(method="sub subtract", inplace=True, alias="subtract", op=_minus.op, call=_sub_call)
@usually(_minus)
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``. Shapes broadcast; dtypes are promoted.

    >>> fw.sub(fw.tensor([1.0, 2.0]), 1.0)
    tensor([0., 1.])
    """
    call = None if alpha == 1 else _sub_call(input, other, alpha=alpha)
    if call is None:
        return _minus(input, _times(other, alpha), out=out)
    return run_call(call) if out is None else compute_into(call[0], call[1], call[2], out, "sub")


@public()
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``other - alpha * input``.

    >>> fw.rsub(fw.tensor([1.0, 2.0]), 5.0)
    tensor([4., 3.])
    """
    return _minus(other, _times(input, alpha))


@public(method="div divide true_divide", inplace=True, alias="divide true_divide", op=_quotient.op)
@usually(_quotient)
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """``input / other``; ``rounding_mode`` "floor" or "trunc" rounds the quotient and keeps integers integer.

    >>> fw.div(fw.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    >>> fw.div(fw.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])
    """
    if rounding_mode is None:
        return _quotient(input, other, out=out)
    if rounding_mode == "floor":
        return floor_divide(input, other, out=out)
    if rounding_mode == "trunc":
        result = trunc_divide(input, other)
        return result if out is None else check_out(out, result, "div")
    raise ValueError(f"div: rounding_mode must be None, 'floor' or 'trunc', got {rounding_mode!r}")


reflected(_minus, "rsub", "-")
reflected(_quotient, "rtruediv", "/", float32_on_a_gpu=True)
reflected(floor_divide, "rfloordiv", "//")
reflected(remainder, "rmod", "%")


@public("", method="__rpow__", name="rpow")
def _rpow(input: Any, other: Any) -> Tensor:
    """``other ** input``."""
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    return NotImplemented if is_foreign(other) else _power(_base(other, input), input)


_NUMBERS = (int, float)
_MOST = 1 << 63  # of the whole numbers that an element may be


def _base(x: Any, y: Any) -> Any:
    """A number to the power of a tensor: as a 0-dim tensor, for its logarithm to be in that dtype."""
    if type(y) is Tensor and y._node is None and (type(x) is float or type(x) is int and -_MOST < x < _MOST) \
            and y._array.dtype.char in "fd" and quiet.run is not None:
        return x  # nobody will ask for one
    if not isinstance(x, Tensor) and isinstance(y, Tensor) and y.dtype.category >= FLOAT \
            and isinstance(x, int | float | complex):
        dtype = y.dtype.to_complex() if isinstance(x, complex) else y.dtype
        return from_array(np.asarray(x, dtype.numpy), y)
    return x


def _pow_call(input: Any, exponent: Any) -> Call | None:
    if not isinstance(input, Tensor):
        return None
    if input.dtype.category < FLOAT:
        whole = type(exponent) is int and exponent == 2 and input._array.dtype.kind in "iu"
        return (square.op, (input,), {}) if whole else None
    if type(exponent) in (int, float) and exponent in (2, 0.5):
        return (square if exponent == 2 else sqrt).op, (input,), {}
    return _power.op, (input, exponent), {}


def _power_function(operator: bool) -> Callable:
    """``pow``, or the function behind ``**``, which leaves what it does not know to the other operand."""

    def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
        """``input ** exponent``. Shapes broadcast; dtypes are promoted.

        Raises ValueError for an integer tensor to a negative integer power, which has no integer result.

        >>> fw.pow(fw.tensor([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])
        """
        if autocast.used and out is None:
            input, exponent = map(autocast.in_float32_on_a_gpu, (input, exponent))
        placed = {} if out is None else {"out": out}  # without, a function goes straight to its kernel
        if isinstance(input, Tensor) and isinstance(exponent, _NUMBERS) and type(exponent) is not bool:
            try:
                kind = input._array.dtype.kind
            except LayoutError:  # a sparse tensor, which has no array
                return _power.op.run(input, exponent)
            if exponent == 2 and kind in "fciV":
                return square(input if isinstance(exponent, int) else _at_least_float(input), **placed)
            if exponent == 0.5:
                return sqrt(input, **placed)
            if kind == "c" and exponent in (3, -1):  # a tenth of the time of the power
                return reciprocal(input, **placed) if exponent < 0 else mul(square(input), input, **placed)
            if exponent < 0 and isinstance(exponent, int) and kind in "iub":
                raise ValueError(f"pow: an integer tensor to the power {exponent} has no integer result; "
                                 f"convert it first, e.g. input.float()")
        elif operator and is_foreign(exponent):
            return NotImplemented
        try:
            return _power(_base(input, exponent), exponent, **placed)
        except ValueError as error:
            if "negative integer powers" not in str(error):
                raise
            raise ValueError("pow: the exponents hold a negative integer, and such a power of an integer is "
                             "no integer; convert one tensor first, e.g. input.float()") from None
    pow.__qualname__ = "pow"
    return usually(_power, INEXACT)(pow)


pow = _power_function(operator=False)
pow.operator = _power_function(operator=True)  # type: ignore[attr-defined]
pow = public(method="pow __pow__", inplace=True, op=_power.op, call=_pow_call)(pow)


def _at_least_float(x: Tensor) -> Tensor:
    return x if x._array.dtype.kind in INEXACT else to(x, get_default_dtype())


# from the nearer end, so that a weight of 1 gives ``end`` itself, also beside an infinite ``input``
_LERP = "where(abs(w) < 0.5, x + w * (y - x), y + (1 - w) * (x - y))"
_lerp = Elementwise("lerp", "x y w", _LERP, result="float", complex=True, arguments="input end weight",
                    vjp={"x": "g - g * w", "y": "g * w", "w": "g * (y - x)"})
_lerp_by_number = Elementwise("lerp_by_number", "x y", _LERP, settings="w", result="float", complex=True,
                              arguments="input end", vjp={"x": "g - g * w", "y": "g * w"})
plus_product = Elementwise("addcmul", "x y z", "x + value * (y * z)", settings="value", complex=True,
                            arguments="input tensor1 tensor2",
                            vjp={"x": "g", "y": "g * (value * z)", "z": "g * (value * y)"})
_plus_quotient = Elementwise(
    "addcdiv", "x y z", "x + value * (y / z)", settings="value", result="float", complex=True,
    arguments="input tensor1 tensor2",
    vjp={"x": "g", "y": "over(g * value, z)", "z": "gate(over(g * -value, z), y / z)"})


@with_numbers(_lerp_by_number)
def _lerp_call(input: Any, end: Any, weight: Any) -> Call | None:
    if _floating(weight, input, end):
        return (_lerp_by_number, (input, end), {"w": weight})
    return (_lerp, (input, end, weight), {}) if _floating(1, input, end, weight) else None


@public(method=True, inplace=True, out=True, op=_lerp, call=_lerp_call)
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Linear interpolation ``input + weight * (end - input)``.

    >>> fw.lerp(fw.tensor([0.0, 10.0]), fw.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    call = _lerp_call(input, end, weight)
    return _plus(input, mul(weight, _minus(end, input))) if call is None else run_call(call)


def _addcmul_call(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Call | None:
    tensors = input, tensor1, tensor2
    return (plus_product, tensors, {"value": value}) if _floating(value, *tensors) else None


@public(method=True, inplace=True, out=True, op=plus_product, call=_addcmul_call)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``.

    >>> fw.addcmul(fw.tensor([1.0]), fw.tensor([2.0]), fw.tensor([3.0]), value=10)
    tensor([61.])
    """
    if _floating(value, input, tensor1, tensor2):
        return plus_product.run(input, tensor1, tensor2, value=value)
    return _plus(input, _times(mul(tensor1, tensor2), value))


def _addcdiv_call(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Call | None:
    tensors = input, tensor1, tensor2
    return (_plus_quotient, tensors, {"value": value}) if _floating(value, *tensors) else None


@public(method=True, inplace=True, out=True, op=_plus_quotient, call=_addcdiv_call)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``.

    >>> fw.addcdiv(fw.tensor([1.0]), fw.tensor([6.0]), fw.tensor([3.0]))
    tensor([3.])
    """
    if _floating(value, input, tensor1, tensor2):
        return _plus_quotient.run(input, tensor1, tensor2, value=value)
    return _plus(input, _times(_quotient(tensor1, tensor2), value))


copysign = elementwise("copysign", "x y", "copysign(x, y)", """The first element with the sign of the second.
    >>> fw.copysign(fw.tensor([1.0, -2.0]), -1.0)
    tensor([-1., -2.])
    """, ufunc="copysign", result="float",
    vjp={"x": "g * (sign(x) * sign(out))", "y": NOTHING})
_FIRST = "where(({} {} {}) | (y != y), {}, {})"
fmax = elementwise("fmax", "x y", "fmax(x, y)",
    """The larger of two elements; nan loses. Of equal ones the first gets the gradient.
    >>> fw.fmax(fw.tensor([1.0, float("nan")]), fw.tensor([3.0, 2.0]))
    tensor([3., 2.])
    """, ufunc="fmax", masks=True, vjp={"x": _FIRST.format("x", ">=", "y", "g", "0.0"),
                            "y": _FIRST.format("x", ">=", "y", "0.0", "g")})
fmin = elementwise("fmin", "x y", "fmin(x, y)",
    """The smaller of two elements; nan loses. Of equal ones the first gets the gradient.
    >>> fw.fmin(fw.tensor([1.0, float("nan")]), fw.tensor([3.0, 2.0]))
    tensor([1., 2.])
    """, ufunc="fmin", masks=True, vjp={"x": _FIRST.format("x", "<=", "y", "g", "0.0"),
                            "y": _FIRST.format("x", "<=", "y", "0.0", "g")})
heaviside = elementwise("heaviside", "x y", "where(x == 0, y, x > 0)",
    """The step function: 0 below 0 and for nan, 1 above, ``values`` at 0. Backward through it raises.
    >>> fw.heaviside(fw.tensor([-1.0, 0.0, 2.0]), fw.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """, arguments="input values", vjp="undefined")
gcd = elementwise("gcd", "x y", "gcd(x, y)", """The greatest common divisor of two integers.
    >>> fw.gcd(fw.tensor([12, 18]), fw.tensor([8, 27]))
    tensor([4, 9])
    """, ufunc="gcd", result="integer", writes="iu")
lcm = elementwise("lcm", "x y", "lcm(x, y)", """The least common multiple of two integers.
    >>> fw.lcm(fw.tensor([4, 6]), fw.tensor([6, 15]))
    tensor([12, 30])
    """, ufunc="lcm", result="integer", writes="iu")


@public(method=True)
def positive(input: Tensor) -> Tensor:
    """The tensor itself: the operator ``+input``. Raises DTypeError for bools.

    >>> fw.positive(fw.tensor([1, -2]))
    tensor([ 1, -2])
    """
    if tensor_arg(input, "positive")._array.dtype.kind == "b":
        raise DTypeError("positive: input must hold numbers, got bool; convert it, e.g. with .int()")
    return input


@public(method=True, inplace=True, out=True)
def float_power(input: Any, exponent: Any) -> Tensor:
    """``pow`` computed in double precision: float64, or complex128 if either is complex.

    >>> fw.float_power(fw.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=framework.float64)
    """
    if type(input) is Tensor and type(exponent) in (int, float) and input._array.dtype.kind in "fiub":
        return pow(input if input._array.dtype.char == "d" else cast.run(input, dtype=float64), exponent)
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError(f"float_power: input or exponent must be a Tensor, got {kind_of(input)} and "
                        f"{type(exponent).__name__}")
    for name, given in (("input", input), ("exponent", exponent)):
        if not isinstance(given, (Tensor, int, float, complex)):
            raise TypeError(f"float_power: argument '{name}' must be a Tensor or a number, got "
                            f"{kind_of(given)}; convert it with framework.tensor(...)")
    either = any(isinstance(v, complex) or (isinstance(v, Tensor) and v.dtype.is_complex)
                 for v in (input, exponent))
    dtype = complex128 if either else float64

    def wide(v: Any) -> Any:
        return v.to(dtype) if isinstance(v, Tensor) else v  # type: ignore[attr-defined]
    if not isinstance(input, Tensor):
        return pow(exponent.new_full((), input, dtype=dtype), wide(exponent))
    return pow(wide(input), wide(exponent))
