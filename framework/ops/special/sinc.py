"""sin(pi x) / (pi x) and its derivatives."""

from ...tensor import Tensor
from ..language.elementwise import Elementwise
from ..record.args import tensor_arg
from ..record.public import public

_sinc = Elementwise("sinc", "x", "sinc_slope(x, n)", settings="n", result="float", jvp="symmetric",
                    vjp={"x": "g * sinc(x, n=n + 1)"})


@public(method=True, inplace=True, op=_sinc, out=True)
def sinc(input: Tensor) -> Tensor:
    """``sin(pi * input) / (pi * input)``, 1 at 0.

    >>> fw.sinc(fw.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    return _sinc.run(tensor_arg(input, "sinc"), n=0)
