"""Rounding, and what has steps in place of slopes."""

from typing import Any

from ...dtypes import bool_
from ...errors import DTypeError
from ...tensor import Tensor
from ..language.elementwise import elementwise
from ..record.args import tensor_arg
from ..record.public import public

# the derivative of a step: 0, whatever comes in, inf and nan included
NOTHING = "gate(0.0, g)"


def _step(name: str, line: str, values: str, shown: str) -> Any:
    example = f"    >>> fw.{name}(fw.tensor({values}))\n    tensor({shown})\n    "
    return elementwise(name, "x", f"{name}(x)", f"{line} Its derivative is 0.\n{example}",
                       vjp={"x": NOTHING}, jvp="symmetric", whole=True,
                       alias="fix" if name == "trunc" else "", method="fix" if name == "trunc" else True)


floor = _step("floor", "The largest integer that is not larger.", "[1.7, -1.2]",
              "[ 1., -2.]")
ceil = _step("ceil", "The smallest integer that is not smaller.", "[1.2, -1.7]",
             "[ 2., -1.]")
trunc = _step("trunc", "The integer part.", "[1.7, -1.7]", "[ 1., -1.]")
nearest = elementwise("round", "x", "round(x)", "The nearest integer; halves go to the even one.",
                      ufunc="rint", vjp={"x": NOTHING}, jvp="symmetric", whole=True, namespace="",
                      method=False)
frac = elementwise("frac", "x", "x - trunc(x)", """The fractional part, with the sign of x.
    >>> fw.frac(fw.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """, vjp={"x": "g"}, jvp="symmetric")


@public(method=True, inplace=True, op=nearest.op, out=True)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest number with so many decimals; halves go to the even one. Its derivative is 0.

    >>> fw.round(fw.tensor([0.5, 1.5, -2.7]))
    tensor([ 0.,  2., -3.])
    >>> fw.round(fw.tensor([3.14159]), decimals=2)
    tensor([3.1400])
    """
    if isinstance(input, Tensor) and input.dtype is bool_:
        raise DTypeError("round: argument 'input' must be a number's, got bool; a bool is whole already")
    if isinstance(input, Tensor) and input._array.dtype.kind in "iu":
        return input.clone()  # type: ignore[attr-defined]
    if decimals == 0:
        return nearest(input)
    scale = 10.0 ** decimals
    return nearest(tensor_arg(input, "round") * scale) / scale  # type: ignore[operator]
