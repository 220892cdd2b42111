"""Special functions: gamma and its relatives, the normal distribution, entropy, Bessel, sinc.

Their numbers are computed in ``special_kernels.py``; here are the records, whose derivatives go on to
every order because each family (polygamma, Bessel, sinc) has its order as a setting.
"""

from typing import Any

from ...errors import DTypeError
from ...tensor import Tensor
from ..language.elementwise import Elementwise, elementwise
from ..pointwise import functions as pointwise
from ..pointwise.functions import clamp
from ..record.args import tensor_arg
from ..record.public import public
from . import special_kernels  # special_kernels adds to the language of expressions

__all__ = ["special_kernels"]

_FLOAT: dict[str, Any] = {"result": "float", "jvp": "symmetric"}

_polygamma = Elementwise("polygamma", "x", "polygamma(x, n)", settings="n", result="float",
                         vjp={"x": "gate(g, polygamma(x, n=n + 1))"}, jvp="symmetric")
bessel_op = Elementwise("bessel_i", "x", "bessel_i(x, n)", settings="n", result="float", jvp="symmetric",
                      vjp={"x": "gate(g, 0.5 * (bessel_i(x, n=n - 1) + bessel_i(x, n=n + 1)))"})
_sinc = Elementwise("sinc", "x", "sinc_slope(x, n)", settings="n", result="float", jvp="symmetric",
                    vjp={"x": "g * sinc(x, n=n + 1)"})

lgamma = elementwise("lgamma", "x", "lgamma(x)", """The logarithm of the absolute value of the gamma function.

    C. Lanczos, "A precision approximation of the gamma function", 1964.

    >>> fw.lgamma(fw.tensor([1.0, 4.0]))
    tensor([0.0000, 1.7918])
    """, vjp={"x": "gate(g, polygamma(x, n=0))"}, **_FLOAT)
erfinv = elementwise("erfinv", "x", "erfinv(x)", """The inverse of the error function on (-1, 1).
    >>> fw.erfinv(fw.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """, vjp={"x": "gate(g * 0.8862269254527580, exp(out * out))"}, **_FLOAT)
erfcx = elementwise("erfcx", "x", "erfcx(x)", """The scaled complement of erf, safe for large x.

    ``exp(x * x) * erfc(x)``, computed without the overflow.

    >>> fw.special.erfcx(fw.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4276])
    """, namespace="special", method=False,
    vjp={"x": "gate(g, 2 * x * out - 1.1283791670955126)"}, **_FLOAT)
ndtr = elementwise("ndtr", "x", "ndtr(x)",
    """The distribution function of the standard normal distribution.
    >>> fw.special.ndtr(fw.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """, namespace="special", method=False,
    vjp={"x": "g * (0.3989422804014327 * exp(-0.5 * (x * x)))"}, **_FLOAT)
ndtri = elementwise("ndtri", "x", "ndtri(x)", """The inverse of the normal distribution function.
    >>> fw.special.ndtri(fw.tensor([0.5, 0.8413]))
    tensor([0.0000, 0.9998])
    """, namespace="special", method=False,
    vjp={"x": "gate(g * 2.5066282746310002, exp(0.5 * (out * out)))"}, **_FLOAT)
log_ndtr = elementwise("log_ndtr", "x", "log_ndtr(x)",
    """The logarithm of the normal distribution function, accurate far below 0.
    >>> fw.special.log_ndtr(fw.tensor([0.0, -10.0]))
    tensor([ -0.6931, -53.2313])
    """, namespace="special", method=False,
    vjp={"x": "over(g * 0.7978845608028654, erfcx(x * -0.7071067811865476))"}, **_FLOAT)
entr = elementwise("entr", "x", "where(x < 0, -inf, where(x == 0, 0.0, -x * log(x)))",
    """The entropy of an element: ``-x * log(x)``, 0 at 0 and -inf below.
    >>> fw.special.entr(fw.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """, namespace="special", method=False, vjp={"x": "gate(g, -log(x) - 1)"}, **_FLOAT)
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


def _order(n: Any, op: str) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"{op}: n must be an int, got {type(n).__name__}")
    if n.__index__() < 0:
        raise ValueError(f"{op}: n must not be negative, got {n}")
    return n.__index__()


@public(method=True, inplace=True, op=_polygamma, out=True)
def digamma(input: Tensor) -> Tensor:
    """The derivative of lgamma: -inf at 0 and nan at the negative integers.

    >>> fw.digamma(fw.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    """
    return _polygamma.run(tensor_arg(input, "digamma"), n=0)


@public(op=_polygamma, out=True)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma; n counts from 0. Raises ValueError for a negative n.

    ``(-1)**(n + 1) * n! * zeta(n + 1, x)``, by the Euler-Maclaurin formula, reflected for x < 0.

    >>> fw.polygamma(1, fw.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348])
    """
    return _polygamma.run(tensor_arg(input, "polygamma"), n=_order(n, "polygamma"))


@public("", method="polygamma", inplace=True, op=_polygamma, name="polygamma")
def _polygamma_method(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma; ``framework.polygamma`` with the tensor first.

    >>> fw.tensor([1.0]).polygamma(1)
    tensor([1.6449])
    """
    return polygamma(n, input)


@public(method=True, inplace=True, op=bessel_op, out=True)
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind and order 0.

    ``mean of exp(input * cos(t))`` over a circle; for large x the asymptotic series.

    >>> fw.i0(fw.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return bessel_op.run(tensor_arg(input, "i0"), n=0)


@public(method=True, inplace=True, op=_sinc, out=True)
def sinc(input: Tensor) -> Tensor:
    """``sin(pi * input) / (pi * input)``, 1 at 0.

    >>> fw.sinc(fw.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    return _sinc.run(tensor_arg(input, "sinc"), n=0)


@public(method=True, inplace=True, op=_logit, out=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(input / (1 - input))``, the inverse of sigmoid; with eps, x is first limited to [eps, 1 - eps].

    Without eps, elements outside [0, 1] give nan.

    >>> fw.logit(fw.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    if tensor_arg(input, "logit").dtype.is_complex:
        raise DTypeError(f"logit: input must be real, got {input.dtype}")
    if eps is not None:
        if not input.dtype.is_floating_point:
            input = input.to(float)  # type: ignore[attr-defined]
        input = clamp(input, float(eps), 1 - float(eps))
    return _logit.run(input)


for _function in (lgamma, erfinv, xlogy, digamma, polygamma, i0, sinc, logit, pointwise.erf,
                  pointwise.erfc, pointwise.exp2, pointwise.expm1, pointwise.log1p, pointwise.round):
    public("special", name=_function.__name__)(_function)
public("special", name="gammaln")(lgamma)
public("special", name="psi")(digamma)
public("special", name="expit")(pointwise.sigmoid)
