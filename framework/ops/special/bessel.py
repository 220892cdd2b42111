"""Bessel functions of whole order."""

import math
from typing import Any

from ...tensor import Tensor
from ..language.elementwise import Elementwise
from ..record.args import tensor_arg
from ..record.public import public
from .sinc import sinc as sinc  # the slope below names its record

bessel_op = Elementwise("bessel_i", "x", "bessel_i(x, n)", settings="n", result="float", jvp="symmetric",
                      vjp={"x": "gate(g, 0.5 * (bessel_i(x, n=n - 1) + bessel_i(x, n=n + 1)))"})


@public(method=True, inplace=True, op=bessel_op, out=True)
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind and order 0.

    ``mean of exp(input * cos(t))`` over a circle; for large x the asymptotic series.

    >>> fw.i0(fw.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return bessel_op.run(tensor_arg(input, "i0"), n=0)


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
    return _spherical.run(tensor_arg(x, "spherical_bessel_j0", "x"))


_TURN = 1 / math.pi
_spherical = Elementwise(
    "spherical_bessel_j0", "x", "where(x == 0, 1.0, where(abs(x) == 1e999, 0.0, sin(x) / x))", result="float",
    jvp="symmetric", vjp={"x": f"g * sinc(x * {_TURN}, n=1) * {_TURN}"})
