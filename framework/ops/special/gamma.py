"""The gamma function and its relatives: digamma, incomplete and multivariate gamma, zeta.

The derivatives with respect to the first argument of the incomplete gamma functions and of zeta have no
closed form and are not offered.
"""

import math
from typing import Any

from ... import dtypes
from ...autograd.mode import state
from ...errors import AutogradError
from ...tensor import Tensor
from ..convert.cast import cast
from ..language.elementwise import Elementwise, elementwise
from ..record.args import real_arg, tensor_arg
from ..record.public import public

_polygamma = Elementwise("polygamma", "x", "polygamma(x, n)", settings="n", result="float",
                         vjp={"x": "gate(g, polygamma(x, n=n + 1))"}, jvp="symmetric")
lgamma = elementwise("lgamma", "x", "lgamma(x)", """The logarithm of the absolute value of the gamma function.

    C. Lanczos, "A precision approximation of the gamma function", 1964.

    >>> fw.lgamma(fw.tensor([1.0, 4.0]))
    tensor([0.0000, 1.7918])
    """, vjp={"x": "gate(g, polygamma(x, n=0))"}, result="float", jvp="symmetric")


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


_zeta = Elementwise("zeta", "x y", "zeta(x, y)", result="float", vjp={"y": "gate(g, -x * zeta(x + 1, y))"})
_lower = Elementwise("gammainc", "x y", "gammainc(x, y)", result="float", vjp={
    "y": "gate(g, exp((x - 1) * log(y) - y - lgamma(x)))"})
_upper = Elementwise("gammaincc", "x y", "gammaincc(x, y)", result="float", vjp={
    "y": "gate(-g, exp((x - 1) * log(y) - y - lgamma(x)))"})


def _fixed(input: Any, op: str) -> Any:
    """The first argument, if it wants no gradient."""
    if isinstance(input, Tensor) and input._node is not None and state.enabled:
        raise AutogradError(f"{op}: there is no derivative with respect to 'input'; detach() it")
    return input


@public("special", name="gammainc")
@public(method=True, inplace=True, out=True)
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """The lower regularized incomplete gamma function of input > 0 and other >= 0, which broadcast.

    Formula: the integral of ``t**(input - 1) * exp(-t)`` from 0 to other, over ``gamma(input)``. Accurate to
    1e-12, for input near 1e4 to 1e-10; nan elsewhere. Raises AutogradError where input wants a gradient.

    >>> fw.igamma(fw.tensor([1.0, 2.0]), fw.tensor([1.0, 1.0]))
    tensor([0.6321, 0.2642])
    """
    return _lower.run(_fixed(input, "igamma"), other)


@public("special", name="gammaincc")
@public(method=True, inplace=True, out=True)
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """The upper regularized incomplete gamma function: ``1 - igamma(input, other)``, exact where small.

    Raises AutogradError where input wants a gradient.

    >>> fw.igammac(fw.tensor([1.0, 2.0]), fw.tensor([1.0, 1.0]))
    tensor([0.3679, 0.7358])
    """
    return _upper.run(_fixed(input, "igammac"), other)


@public("special", out=True)
def zeta(input: Tensor, other: Tensor) -> Tensor:
    """Hurwitz' zeta function: ``sum over k >= 0 of (other + k) ** -input``, for input > 1; they broadcast.

    inf at the poles, nan below 1. Raises AutogradError where input wants a gradient.

    >>> fw.special.zeta(fw.tensor([2.0, 3.0]), fw.tensor([1.0, 1.0]))
    tensor([1.6449, 1.2021])
    """
    return _zeta.run(_fixed(input, "zeta"), other)


@public("special", name="multigammaln")
@public(method=True, inplace=True, out=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p, on each element > (p - 1) / 2.

    Formula: ``p (p - 1) / 4 log(pi) + sum of lgamma(input - i / 2) over i < p``. Raises ValueError for p
    below 1.

    >>> fw.mvlgamma(fw.tensor([3.0]), 2)
    tensor([1.5502])
    """
    x: Any = real_arg(input, "mvlgamma")
    if isinstance(p, bool) or not hasattr(p, "__index__") or p.__index__() < 1:
        raise ValueError(f"mvlgamma: p must be a whole number >= 1, got {p!r}")
    if not x.is_floating_point():
        x = cast.run(x, dtype=dtypes.get_default_dtype())
    total = lgamma(x)
    for i in range(1, p):
        total = total + lgamma(x - 0.5 * i)
    return total + 0.25 * p * (p - 1) * math.log(math.pi)
