"""Further special functions: incomplete and multivariate gamma, zeta, Bessel; further homes of known ones.

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
from ..language.elementwise import Elementwise
from ..record.args import real_arg, tensor_arg
from ..record.public import public
from ..reduce.reduce import logsumexp
from ..reduce.softmax import log_softmax, softmax
from . import bessel_kernels  # adds to the language of expressions
from .special import bessel_op, i0, lgamma, sinc

__all__ = ["bessel_kernels"]

_FLOAT: dict[str, Any] = {"settings": "n", "result": "float", "jvp": "symmetric"}

_scaled_i = Elementwise("bessel_ie", "x", "bessel_ie(x, n)", vjp={
    "x": "gate(g, 0.5 * (bessel_ie(x, n=n - 1) + bessel_ie(x, n=n + 1)) - sign(x) * out)"}, **_FLOAT)
_scaled_k = Elementwise("bessel_ke", "x", "bessel_ke(x, n)", vjp={
    "x": "gate(g, out - 0.5 * (bessel_ke(x, n=n - 1) + bessel_ke(x, n=n + 1)))"}, **_FLOAT)
_k = Elementwise("bessel_k", "x", "bessel_k(x, n)", vjp={
    "x": "gate(g, -0.5 * (bessel_k(x, n=n - 1) + bessel_k(x, n=n + 1)))"}, **_FLOAT)
_j = Elementwise("bessel_j", "x", "bessel_j(x, n)", vjp={
    "x": "gate(g, 0.5 * (bessel_j(x, n=n - 1) - bessel_j(x, n=n + 1)))"}, **_FLOAT)
_y = Elementwise("bessel_y", "x", "bessel_y(x, n)", vjp={
    "x": "gate(g, 0.5 * (bessel_y(x, n=n - 1) - bessel_y(x, n=n + 1)))"}, **_FLOAT)
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


# -- Bessel functions ----------------------------------------------------------------------------


@public("special", out=True)
def i0e(input: Tensor) -> Tensor:
    """``exp(-abs(input)) * i0(input)``, safe for large arguments.

    >>> fw.special.i0e(fw.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4658])
    """
    return _scaled_i.run(tensor_arg(input, "i0e"), n=0)


@public("special", out=True, alias="modified_bessel_i1")
def i1(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind and order 1.

    >>> fw.special.i1(fw.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """
    return bessel_op.run(tensor_arg(input, "i1"), n=1)


@public("special", out=True)
def i1e(input: Tensor) -> Tensor:
    """``exp(-abs(input)) * i1(input)``, safe for large arguments.

    >>> fw.special.i1e(fw.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2079])
    """
    return _scaled_i.run(tensor_arg(input, "i1e"), n=1)


@public("special", out=True)
def bessel_j0(input: Tensor) -> Tensor:
    """The Bessel function of the first kind and order 0.

    >>> fw.special.bessel_j0(fw.tensor([0.0, 1.0]))
    tensor([1.0000, 0.7652])
    """
    return _j.run(tensor_arg(input, "bessel_j0"), n=0)


@public("special", out=True)
def bessel_j1(input: Tensor) -> Tensor:
    """The Bessel function of the first kind and order 1.

    >>> fw.special.bessel_j1(fw.tensor([0.0, 1.0]))
    tensor([0.0000, 0.4401])
    """
    return _j.run(tensor_arg(input, "bessel_j1"), n=1)


@public("special", out=True)
def bessel_y0(input: Tensor) -> Tensor:
    """The Bessel function of the second kind and order 0: -inf at 0, nan below.

    >>> fw.special.bessel_y0(fw.tensor([1.0, 2.0]))
    tensor([0.0883, 0.5104])
    """
    return _y.run(tensor_arg(input, "bessel_y0"), n=0)


@public("special", out=True)
def bessel_y1(input: Tensor) -> Tensor:
    """The Bessel function of the second kind and order 1: -inf at 0, nan below.

    >>> fw.special.bessel_y1(fw.tensor([1.0, 2.0]))
    tensor([-0.7812, -0.1070])
    """
    return _y.run(tensor_arg(input, "bessel_y1"), n=1)


@public("special", out=True)
def modified_bessel_k0(input: Tensor) -> Tensor:
    """The modified Bessel function of the second kind and order 0: inf at 0, nan below.

    >>> fw.special.modified_bessel_k0(fw.tensor([1.0, 2.0]))
    tensor([0.4210, 0.1139])
    """
    return _k.run(tensor_arg(input, "modified_bessel_k0"), n=0)


@public("special", out=True)
def modified_bessel_k1(input: Tensor) -> Tensor:
    """The modified Bessel function of the second kind and order 1: inf at 0, nan below.

    >>> fw.special.modified_bessel_k1(fw.tensor([1.0, 2.0]))
    tensor([0.6019, 0.1399])
    """
    return _k.run(tensor_arg(input, "modified_bessel_k1"), n=1)


@public("special", out=True)
def scaled_modified_bessel_k0(x: Tensor) -> Tensor:
    """``exp(x) * modified_bessel_k0(x)``, safe for large arguments.

    >>> fw.special.scaled_modified_bessel_k0(fw.tensor([1.0, 2.0]))
    tensor([1.1445, 0.8416])
    """
    return _scaled_k.run(tensor_arg(x, "scaled_modified_bessel_k0", "x"), n=0)


@public("special", out=True)
def scaled_modified_bessel_k1(x: Tensor) -> Tensor:
    """``exp(x) * modified_bessel_k1(x)``, safe for large arguments.

    >>> fw.special.scaled_modified_bessel_k1(fw.tensor([1.0, 2.0]))
    tensor([1.6362, 1.0335])
    """
    return _scaled_k.run(tensor_arg(x, "scaled_modified_bessel_k1", "x"), n=1)


@public("special", out=True)
def spherical_bessel_j0(x: Tensor) -> Tensor:
    """``sin(x) / x``, 1 at 0.

    >>> fw.special.spherical_bessel_j0(fw.tensor([0.0, 1.0]))
    tensor([1.0000, 0.8415])
    """
    return sinc(tensor_arg(x, "spherical_bessel_j0", "x") * (1 / math.pi))  # type: ignore[operator]


public("special", name="modified_bessel_i0")(i0)
for _function in (softmax, log_softmax, logsumexp):
    public("special", name=_function.__name__)(_function)
