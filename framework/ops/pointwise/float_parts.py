"""Floating-point numbers as such: mantissa and exponent, the next number."""

from typing import Any

from ...dtypes import int32
from ...tensor import Tensor
from ..language.elementwise import elementwise
from ..record import return_types
from ..record.args import floating, real_arg
from ..record.batched import by_element
from ..record.op import Meta, Op
from ..record.public import public
from .elementary import exp2

nextafter = elementwise("nextafter", "x y", "nextafter(x, y)",
    """The next number of its dtype after the first operand, towards the second.
    >>> fw.nextafter(fw.tensor([1.0]), fw.tensor([2.0])) - 1
    tensor([1.1921e-07])
    """, ufunc="nextafter", result="float",
    vjp={"x": "where(x == y, 0.0, g)", "y": "where(x == y, g, 0.0)"})
exp2_op = exp2.op
frexp_op = Op("frexp", "x", kernel=lambda xp, x: tuple(xp.frexp(x)), outputs="mantissa exponent",
              batch=by_element,
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
