"""Floating-point numbers as such: mantissa and exponent, the next number."""

from typing import Any

from ...dtypes import bfloat16, int32
from ...tensor import Tensor
from ..language.elementwise import elementwise
from ..record import return_types
from ..record.args import floating, real_arg
from ..record.batched import by_element
from ..record.op import Meta, Op
from ..record.public import public
from ..record.road import NEVER
from ..shape.broadcast import broadcast_shape, sum_to
from .choose import where_op
from .elementary import exp2

_nextafter = elementwise("nextafter", "x y", "nextafter(x, y)",
    "The next number of its dtype after the first operand, towards the second.", ufunc="nextafter",
    result="float", vjp={"x": "where(x == y, 0.0, g)", "y": "where(x == y, g, 0.0)"}, namespace="",
    method=False)
# of bfloat16 itself: the next number of float32 would be rounded back
_next_bfloat16 = Op("nextafter_bfloat16", "x y", moves=True, kernel=lambda xp, x, y: xp.nextafter(x, y),
                    native="nextafter_bfloat16",
                    batch=by_element, infer=lambda x, y: Meta(
                        broadcast_shape((x.shape, y.shape), "nextafter"), x.dtype),
                    vjp={"x": lambda g, x, y, x_shape: sum_to(where_op(x == y, 0.0, g), size=x_shape),
                         "y": lambda g, x, y, y_shape: sum_to(where_op(x == y, g, 0.0), size=y_shape)})


@public(method=True, inplace=True, op=_nextafter.op, out=True)
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number of its dtype after the first operand, towards the second.

    >>> fw.nextafter(fw.tensor([1.0]), fw.tensor([2.0])) - 1
    tensor([1.1921e-07])
    """
    if isinstance(input, Tensor) and input.dtype is bfloat16 and isinstance(other, Tensor) \
            and other.dtype is bfloat16:
        return _next_bfloat16.run(input, other)
    return _nextafter(input, other)


exp2_op = exp2.op
frexp_op = Op("frexp", "x", kernel=lambda xp, x: tuple(xp.frexp(x)), native="frexp",
              outputs="mantissa exponent",
              batch=by_element, loose_from=NEVER,
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
