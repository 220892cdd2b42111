"""The elementwise functions of the standard."""

import builtins
import math
from collections.abc import Callable
from typing import Any

from .. import creation
from ..dtypes import FLOAT
from ..errors import DTypeError
from ..ops.pointwise import arithmetic, choose, compare, float_parts, rounding
from ..ops.pointwise import complex_numbers as complexes
from ..ops.pointwise import elementary as functions
from ..ops.pointwise import elementary as pointwise
from ..tensor import Tensor
from .array import Array, array_arg, give, named, together


def _unary(name: str, op: Callable, line: str) -> Callable[[Any], Array]:
    def function(x: Any, /) -> Array:
        return give(op(array_arg(x, name)), x)
    return named(function, name, __name__, line)


def _binary(name: str, op: Callable, line: str) -> Callable[[Any, Any], Array]:
    def function(x1: Any, x2: Any, /) -> Array:
        return give(op(*together(name, x1, x2)))
    return named(function, name, __name__, line)


abs = _unary("abs", arithmetic.abs, "The absolute value; of complex numbers the modulus.")
acos = _unary("acos", pointwise.acos, "The inverse cosine.")
acosh = _unary("acosh", pointwise.acosh, "The inverse hyperbolic cosine.")
asin = _unary("asin", pointwise.asin, "The inverse sine.")
asinh = _unary("asinh", pointwise.asinh, "The inverse hyperbolic sine.")
atan = _unary("atan", pointwise.atan, "The inverse tangent.")
atanh = _unary("atanh", pointwise.atanh, "The inverse hyperbolic tangent.")
bitwise_invert = _unary("bitwise_invert", compare.bitwise_not, "Every bit flipped; logical not for bools.")
ceil = _unary("ceil", rounding.ceil, "Rounded up.")
conj = _unary("conj", complexes.conj, "The complex conjugate.")
cos = _unary("cos", pointwise.cos, "The cosine.")
cosh = _unary("cosh", pointwise.cosh, "The hyperbolic cosine.")
exp = _unary("exp", pointwise.exp, "e to the power of the element.")
floor = _unary("floor", rounding.floor, "Rounded down.")
imag = _unary("imag", complexes.imag, "The imaginary part.")
isfinite = _unary("isfinite", compare.isfinite, "Whether the element is neither infinite nor nan.")
isinf = _unary("isinf", compare.isinf, "Whether the element is inf or -inf.")
isnan = _unary("isnan", compare.isnan, "Whether the element is not a number.")
log = _unary("log", pointwise.log, "The natural logarithm.")
log10 = _unary("log10", pointwise.log10, "The logarithm to base 10.")
log1p = _unary("log1p", pointwise.log1p, "log(1 + x), exact for small x.")
log2 = _unary("log2", pointwise.log2, "The logarithm to base 2.")
logical_not = _unary("logical_not", compare.logical_not, "Whether the element is false.")
negative = _unary("negative", arithmetic.neg, "The negative.")
positive = _unary("positive", arithmetic.positive, "The element itself.")
real = _unary("real", complexes.real, "The real part.")
reciprocal = _unary("reciprocal", arithmetic.reciprocal, "One over the element.")
sin = _unary("sin", pointwise.sin, "The sine.")
sinh = _unary("sinh", pointwise.sinh, "The hyperbolic sine.")
sqrt = _unary("sqrt", pointwise.sqrt, "The square root.")
square = _unary("square", arithmetic.square, "The element times itself.")
tan = _unary("tan", pointwise.tan, "The tangent.")
trunc = _unary("trunc", rounding.trunc, "Rounded towards 0.")
signbit = _unary("signbit", compare.signbit, "Whether the sign bit is set, as it is for -0.0.")

add = _binary("add", arithmetic.add, "x1 + x2.")
atan2 = _binary("atan2", arithmetic.atan2, "The angle of the point (x2, x1), in [-pi, pi].")
bitwise_and = _binary("bitwise_and", compare.bitwise_and, "The bits set in both.")
bitwise_left_shift = _binary("bitwise_left_shift", compare.bitwise_left_shift, "x1 * 2**x2.")
bitwise_or = _binary("bitwise_or", compare.bitwise_or, "The bits set in either.")
bitwise_right_shift = _binary("bitwise_right_shift", compare.bitwise_right_shift, "floor(x1 / 2**x2).")
bitwise_xor = _binary("bitwise_xor", compare.bitwise_xor, "The bits set in exactly one of the two.")
copysign = _binary("copysign", arithmetic.copysign, "The magnitude of x1 with the sign of x2.")
divide = _binary("divide", arithmetic.div, "x1 / x2.")
equal = _binary("equal", compare.eq, "Whether x1 == x2.")
greater = _binary("greater", compare.gt, "Whether x1 > x2.")
greater_equal = _binary("greater_equal", compare.ge, "Whether x1 >= x2.")
hypot = _binary("hypot", functions.hypot, "sqrt(x1**2 + x2**2) without overflow on the way.")
less = _binary("less", compare.lt, "Whether x1 < x2.")
less_equal = _binary("less_equal", compare.le, "Whether x1 <= x2.")
logaddexp = _binary("logaddexp", functions.logaddexp, "log(exp(x1) + exp(x2)).")
logical_and = _binary("logical_and", compare.logical_and, "Whether both are true.")
logical_or = _binary("logical_or", compare.logical_or, "Whether one at least is true.")
logical_xor = _binary("logical_xor", compare.logical_xor, "Whether exactly one is true.")
maximum = _binary("maximum", arithmetic.maximum, "The larger one; nan wins.")
minimum = _binary("minimum", arithmetic.minimum, "The smaller one; nan wins.")
multiply = _binary("multiply", arithmetic.mul, "x1 * x2.")
nextafter = _binary("nextafter", float_parts.nextafter, "The next number after x1, towards x2.")
not_equal = _binary("not_equal", compare.ne, "Whether x1 != x2.")
pow = _binary("pow", arithmetic.pow, "x1 to the power of x2.")
remainder = _binary("remainder", arithmetic.remainder, "The remainder, with the sign of x2.")
subtract = _binary("subtract", arithmetic.sub, "x1 - x2.")


def round(x: Tensor, /) -> Array:
    """Rounded to the nearest integer, halves to the even one; of complex numbers both parts.

    >>> fw.array_api.round(fw.tensor([0.5, 1.5, -2.6]))
    tensor([ 0.,  2., -3.])
    """
    if array_arg(x, "round").is_complex():
        parts = [rounding.round(part(x)) for part in (complexes.real, complexes.imag)]
        return give(complexes.complex(*parts))
    return give(rounding.round(x))


def sign(x: Tensor, /) -> Array:
    """-1, 0 or 1 by the sign; of complex numbers x / abs(x), and nan where a part is nan.

    >>> fw.array_api.sign(fw.tensor([-2.0, 0.0]))
    tensor([-1.,  0.])
    """
    out = complexes.sgn(array_arg(x, "sign"))
    if x.is_complex():
        out = choose.where(compare.isnan(x), complex(math.nan, math.nan), out)
    return give(out, x)


def expm1(x: Tensor, /) -> Array:
    """exp(x) - 1, exact for small x; of complex numbers with an infinite part the limits of C's cexp.

    >>> fw.array_api.expm1(fw.tensor([0.0]))
    tensor([0.])
    """
    out = pointwise.expm1(array_arg(x, "expm1"))
    if x.is_complex():  # NumPy's own gives nan there
        regular = compare.isfinite(x) & compare.ne(x, 0)  # type: ignore[operator]
        out = choose.where(regular, out, arithmetic.sub(pointwise.exp(x), 1))
    return give(out, x)


def _signed(size: float, like: Tensor) -> Tensor:
    return arithmetic.copysign(creation.full_like(like, size), like)


def tanh(x: Tensor, /) -> Array:
    """The hyperbolic tangent; at an infinite real part +-1, the imaginary part a 0 of its sign.

    >>> fw.array_api.tanh(fw.tensor([0.0]))
    tensor([0.])
    """
    out = pointwise.tanh(array_arg(x, "tanh"))
    if x.is_complex():
        a, b = complexes.real(x), complexes.imag(x)
        limit = complexes.complex(_signed(1.0, a), _signed(0.0, b))
        out = choose.where(compare.isinf(a), limit, out)
    return give(out, x)


def floor_divide(x1: Any, x2: Any, /) -> Array:
    """x1 / x2 rounded down. With an infinite operand it is ``floor(x1 / x2)``, where NumPy gives nan or -1.

    >>> xp = fw.array_api
    >>> xp.floor_divide(xp.asarray([7.0, float("inf")]), 2.0)
    tensor([3., inf])
    """
    a, b = together("floor_divide", x1, x2)
    out = arithmetic.floor_divide(a, b)
    if out.dtype.category == FLOAT:
        infinite = compare.isinf(arithmetic.maximum(builtins.abs(a), builtins.abs(b)))
        out = choose.where(infinite, rounding.floor(arithmetic.div(a, b)), out)
    return give(out)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:
    """``x`` held between ``min`` and ``max`` (numbers or arrays that broadcast), in the dtype of ``x``.

    >>> xp = fw.array_api
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 6)
    tensor([2, 5, 6])
    """
    out = array_arg(x, "clip")
    for op, bound in ((arithmetic.maximum, min), (arithmetic.minimum, max)):
        if bound is not None:
            out = op(out, bound.to(x.dtype) if isinstance(bound, Tensor) else bound)
    if out.dtype is not x.dtype:
        raise DTypeError(f"clip: the bounds {min!r} and {max!r} do not fit an array of {x.dtype}")
    return give(out, x)
