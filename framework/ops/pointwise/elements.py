"""More functions on elements: angles, signs, extremes that pass over nan, bits, whole numbers, logs."""

from typing import Any

from ...dtypes import complex128, float64, int32
from ...errors import DTypeError
from ...tensor import Tensor
from ..language.elementwise import elementwise
from ..language.expression import OPS_BY_NAME
from ..record import return_types
from ..record.args import floating, real_arg, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from .arithmetic import pow as pow_
from .functions import NOTHING

deg2rad = elementwise("deg2rad", "x", "x * 0.017453292519943295", """Degrees in radians.
    >>> fw.deg2rad(fw.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])
    """, result="float", vjp={"x": "g * 0.017453292519943295"}, jvp="linear")
rad2deg = elementwise("rad2deg", "x", "x * 57.29577951308232", """Radians in degrees.
    >>> fw.rad2deg(fw.tensor([0.0, 3.1415927]))
    tensor([  0., 180.])
    """, result="float", vjp={"x": "g * 57.29577951308232"}, jvp="linear")
hypot = elementwise("hypot", "x y", "hypot(x, y)",
    """The length of the vector (x, y), safe from overflow.
    >>> fw.hypot(fw.tensor([3.0]), fw.tensor([4.0]))
    tensor([5.])
    """, ufunc="hypot", vjp={"x": "gate(over(g, out), x)", "y": "gate(over(g, out), y)"})
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
logaddexp = elementwise("logaddexp", "x y", "logaddexp(x, y)", """log(exp(x) + exp(y)), safe from overflow.
    >>> fw.logaddexp(fw.tensor([0.0]), fw.tensor([0.0]))
    tensor([0.6931])
    """, ufunc="logaddexp", result="float", method="logaddexp",
    vjp={"x": "g * sigmoid(x - y)", "y": "g * sigmoid(y - x)"})
logaddexp2 = elementwise("logaddexp2", "x y", "logaddexp2(x, y)",
    """log2(2**x + 2**y), safe from overflow.
    >>> fw.logaddexp2(fw.tensor([0.0]), fw.tensor([0.0]))
    tensor([1.])
    """, ufunc="logaddexp2", result="float",
    vjp={"x": "g * sigmoid((x - y) * 0.6931471805599453)",
         "y": "g * sigmoid((y - x) * 0.6931471805599453)"})
nextafter = elementwise("nextafter", "x y", "nextafter(x, y)",
    """The next number of its dtype after the first operand, towards the second.
    >>> fw.nextafter(fw.tensor([1.0]), fw.tensor([2.0])) - 1
    tensor([1.1921e-07])
    """, ufunc="nextafter", result="float",
    vjp={"x": "where(x == y, 0.0, g)", "y": "where(x == y, g, 0.0)"})
gcd = elementwise("gcd", "x y", "gcd(x, y)", """The greatest common divisor of two integers.
    >>> fw.gcd(fw.tensor([12, 18]), fw.tensor([8, 27]))
    tensor([4, 9])
    """, ufunc="gcd", result="integer")
lcm = elementwise("lcm", "x y", "lcm(x, y)", """The least common multiple of two integers.
    >>> fw.lcm(fw.tensor([4, 6]), fw.tensor([6, 15]))
    tensor([12, 30])
    """, ufunc="lcm", result="integer")
bitwise_left_shift = elementwise("bitwise_left_shift", "x y", "left_shift(x, y)",
    """The bits moved towards the high end: x * 2**y.
    >>> fw.bitwise_left_shift(fw.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """, ufunc="left_shift", result="integer", method="__lshift__")
bitwise_right_shift = elementwise("bitwise_right_shift", "x y", "right_shift(x, y)",
    """The bits moved towards the low end, the sign kept: floor(x / 2**y).
    >>> fw.bitwise_right_shift(fw.tensor([8, -3]), 1)
    tensor([ 4, -2])
    """, ufunc="right_shift", result="integer", method="__rshift__")
isposinf = elementwise("isposinf", "x", "isinf(x) & (x > 0)", """Whether the element is +inf.
    >>> fw.isposinf(fw.tensor([1.0, float("inf"), -float("inf")]))
    tensor([False,  True, False])
    """, result="bool")
isneginf = elementwise("isneginf", "x", "isinf(x) & (x < 0)", """Whether the element is -inf.
    >>> fw.isneginf(fw.tensor([1.0, float("inf"), -float("inf")]))
    tensor([False, False,  True])
    """, result="bool")


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
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError(f"float_power: input or exponent must be a Tensor, got {type(input).__name__} and "
                        f"{type(exponent).__name__}")
    for name, given in (("input", input), ("exponent", exponent)):
        if not isinstance(given, (Tensor, int, float, complex)):
            raise TypeError(f"float_power: argument '{name}' must be a Tensor or a number, got "
                            f"{type(given).__name__}; convert it with framework.tensor(...)")
    either = any(isinstance(v, complex) or (isinstance(v, Tensor) and v.dtype.is_complex)
                 for v in (input, exponent))
    dtype = complex128 if either else float64

    def wide(v: Any) -> Any:
        return v.to(dtype) if isinstance(v, Tensor) else v  # type: ignore[attr-defined]
    if not isinstance(input, Tensor):
        return pow_(exponent.new_full((), input, dtype=dtype), wide(exponent))
    return pow_(wide(input), wide(exponent))


exp2_op = OPS_BY_NAME["exp2"]
frexp_op = Op("frexp", "x", kernel=lambda xp, x: tuple(xp.frexp(x)), outputs="mantissa exponent",
              differentiable=1, infer=lambda x: (x, Meta(x.shape, int32)),
              vjp={"x": lambda g, exponent: ldexp.op(g, -exponent)})
ldexp = elementwise("ldexp", "x y", "x * exp2(y)", """``input * 2**other``, as ``frexp`` takes it apart.
    >>> fw.ldexp(fw.tensor([0.5, 0.75]), fw.tensor([1, 2]))
    tensor([1., 3.])
    """, result="float", vjp={"x": "g * exp2(y)", "y": "gate(g * 0.6931471805599453, out)"})


@public(method=True, op=frexp_op, out=True)
def frexp(input: Tensor) -> Any:
    """Mantissa in +-[0.5, 1) and int32 exponent of every element: ``input = mantissa * 2**exponent``.

    0, inf and nan are their own mantissa. Raises DTypeError unless input is floating.

    >>> fw.frexp(fw.tensor([4.0, 3.0]))
    frexp(mantissa=tensor([0.5000, 0.7500]), exponent=tensor([3, 2], dtype=framework.int32))
    """
    floating(real_arg(input, "frexp"), "frexp")
    return return_types.frexp(*frexp_op.run(input))
