"""Further special functions: incomplete gamma, zeta, scaled Bessel functions, and other homes of known ones."""

import math
from typing import Any

from ..autograd.mode import state
from ..errors import AutogradError
from ..tensor import Tensor
from .args import real_arg, tensor_arg
from .cast import cast
from .elementwise import Elementwise, elementwise
from .public import public
from .reduce import logsumexp, sum_op
from .softmax import log_softmax, softmax
from .special import bessel_op, i0, lgamma
from .view import reshape_op

_scaled = Elementwise("bessel_ie", "x", "bessel_ie(x, n)", settings="n", result="float", jvp="symmetric", vjp={
    "x": "gate(g, 0.5 * (bessel_ie(x, n=n - 1) + bessel_ie(x, n=n + 1)) - sign(x) * out)"})


def _bessel(name: str, record: Elementwise, n: int, text: str, example: str) -> Any:
    def function(input: Tensor) -> Tensor:
        return record.run(tensor_arg(input, name), n=n)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text}\n\n    Dtypes: floating; integers become the default float dtype.\n\n    {example}\n    "
    return public("special", out=True, op=record)(function)
