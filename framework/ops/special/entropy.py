"""Logarithms that are safe at 0: entropy, x log(y), logit."""

from typing import Any

from ...dtypes import FLOATING
from ...errors import DTypeError
from ...tensor import Tensor
from ..language.elementwise import Elementwise, elementwise
from ..record.args import tensor_arg
from ..record.into import Call
from ..record.public import public

entr = elementwise("entr", "x", "where(x < 0, -inf, where(x == 0, 0.0, -x * log(x)))",
    """The entropy of an element: ``-x * log(x)``, 0 at 0 and -inf below.
    >>> fw.special.entr(fw.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """, namespace="special", method=False, vjp={"x": "gate(g, -log(x) - 1)"},
    result="float", jvp="symmetric")
xlogy = elementwise("xlogy", "x y", "where((x == 0) & (y == y), 0.0, x * log(y))",
    """``x * log(y)``, and 0 where x is 0 (unless y is nan).
    >>> fw.xlogy(fw.tensor([0.0, 2.0]), fw.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """, result="float",
    vjp={"x": "gate(g, where((x == 0) & (y <= 0), 0.0, log(y)))", "y": "over(gate(g, x), y)"})
xlog1py = elementwise("xlog1py", "x y", "where((x == 0) & (y == y), 0.0, x * log1p(y))",
    """``x * log(1 + y)``, and 0 where x is 0 (unless y is nan).
    >>> fw.special.xlog1py(fw.tensor([0.0, 2.0]), fw.tensor([-1.0, 0.0]))
    tensor([0., 0.])
    """, namespace="special", method=False, result="float",
    vjp={"x": "gate(g, where((x == 0) & (y <= -1), 0.0, log1p(y)))", "y": "over(gate(g, x), y + 1)"})
_logit = Elementwise("logit", "x", "log(x / (1 - x))", result="float", jvp="symmetric",
                     vjp={"x": "over(g, x * (1 - x))"})


_limited = "minimum(maximum(x, low), high)"
_logit_within = Elementwise(
    "logit_within", "x", f"log({_limited} / (1 - {_limited}))", settings="low high", result="float",
    jvp="symmetric", vjp={"x": "where((x < low) | (x > high), 0.0, over(g, x * (1 - x)))"})


def _logit_call(input: Any, eps: Any = None) -> Call | None:
    if eps is None:
        return _logit, (input,), {}
    if not isinstance(input, Tensor) or input._array.dtype.kind not in FLOATING or type(eps) is not float:
        return None
    return _logit_within, (input,), {"low": eps, "high": 1 - eps}


@public(method=True, inplace=True, op=_logit, out=True, call=_logit_call)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(input / (1 - input))``, the inverse of sigmoid; with eps, x is first limited to [eps, 1 - eps].

    Without eps, elements outside [0, 1] give nan.

    >>> fw.logit(fw.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    if tensor_arg(input, "logit").dtype.is_complex:
        raise DTypeError(f"logit: input must be real, got {input.dtype}")
    if eps is None:
        return _logit.run(input)
    if not input.dtype.is_floating_point:
        input = input.to(float)  # type: ignore[attr-defined]
    return _logit_within.run(input, low=float(eps), high=1 - float(eps))
