"""The numbers of the Bessel functions of whole order for the array modules, to double precision.

Integral representations and expansions: NIST Digital Library of Mathematical Functions, chapter 10.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from ..language.words import Word, add_words
from .numbers import bessel_series, in_cuda, wide

_FAR = 25.0  # from here on Hankel's expansion is exact to double precision
_NEAR = 1e-8  # up to here the first terms at 0 are


@cache
def _legendre(count: int) -> list[tuple[float, float]]:
    """Nodes in (0, 1) and weights of Gauss' quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return [(float(0.5 + 0.5 * t), float(0.5 * w)) for t, w in zip(nodes, weights)]


def _hankel(xp: Any, x: Any, n: int) -> tuple[Any, Any]:
    """J_n and Y_n for large x: 10.17.3 and 10.17.4."""
    even, odd, term = xp.ones_like(x), xp.zeros_like(x), xp.ones_like(x)
    for k in range(1, 25):
        term = term * ((4 * n * n - (2 * k - 1) ** 2) / (8 * k)) / x
        if k % 2:
            odd = odd + (-1) ** (k // 2) * term
        else:
            even = even + (-1) ** (k // 2) * term
    # cos and sin of x - (n/2 + 1/4) pi, without rounding x - pi/4
    a, b = math.cos((0.5 * n + 0.25) * math.pi), math.sin((0.5 * n + 0.25) * math.pi)
    cos, sin = a * xp.cos(x) + b * xp.sin(x), a * xp.sin(x) - b * xp.cos(x)
    scale = xp.sqrt(2 / (math.pi * x))
    return scale * (even * cos - odd * sin), scale * (even * sin + odd * cos)


def _bessel_j(xp: Any, x: Any, n: int) -> Any:
    """J_n: the trapezoid rule on the circle (10.9.2), which converges geometrically, then Hankel."""
    y, n, sign = xp.abs(x), abs(n), (-1) ** n if n < 0 else 1
    near, points = xp.minimum(y, _FAR), 72 + 2 * n
    total = xp.zeros_like(y)
    for k in range(points):
        angle = 2 * math.pi * k / points
        total = total + xp.cos(near * math.sin(angle) - n * angle)
    far = _hankel(xp, xp.clip(y, _FAR, 1e300), n)[0]
    out = xp.where(y <= 1, bessel_series(xp, y, n, -1.0), total / points)
    out = sign * xp.where(y <= _FAR, out, xp.where(xp.isinf(y), 0.0, far))
    return xp.where(x < 0, -out, out) if n % 2 else out


def _bessel_y(xp: Any, x: Any, n: int) -> Any:
    """Y_n: Schläfli's integrals (10.9.7) by Gauss' quadrature, then Hankel; nan left of 0."""
    n, sign = abs(n), (-1) ** n if n < 0 else 1
    near, total = xp.clip(x, _NEAR, _FAR), xp.zeros_like(x)
    for t, weight in _legendre(64):
        angle = math.pi * t
        total = total + weight * math.pi * xp.sin(near * math.sin(angle) - n * angle)
    reach = xp.log(2 * (45 + 30 * n) / near + 2)
    for t, weight in _legendre(128):
        s = reach * t
        total = total - weight * reach * (xp.exp(n * s - near * xp.sinh(s))
                                          + (-1) ** n * xp.exp(-n * s - near * xp.sinh(s)))
    far = _hankel(xp, xp.clip(x, _FAR, 1e300), n)[1]
    small = xp.abs(xp.clip(x, 0.0, _NEAR))  # also of -0
    first = (xp.log(0.5 * small) + 0.5772156649015329) * 2 if n == 0 else -math.factorial(n - 1) * (
        2 / small) ** float(n)
    out = xp.where(x <= _NEAR, first / math.pi, xp.where(x <= _FAR, total / math.pi, far))
    out = xp.where(xp.isinf(x), 0.0, out)
    return xp.where(x >= 0, sign * out, math.nan)


def _bessel_ke(xp: Any, x: Any, n: int) -> Any:
    """exp(x) K_n: the trapezoid rule for 10.32.9, which converges geometrically; nan left of 0."""
    n, points = abs(n), 160
    near = xp.clip(x, _NEAR, 1e300)
    step = (xp.log(2 * (45 + 30 * n) / near + 2) + 0.5 / xp.sqrt(1 + near)) / points
    step = xp.minimum(step, 12 / xp.sqrt(near) / points)  # far out a normal distribution of width 1/sqrt(x)
    total = 0.5 + xp.zeros_like(x)
    for k in range(1, points + 1):
        half = 2 * xp.sinh(0.5 * k * step) ** 2
        total = total + xp.exp(-near * half) * xp.cosh(n * k * step)
    small = xp.abs(xp.clip(x, 0.0, _NEAR))  # also of -0
    first = -xp.log(0.5 * small) - 0.5772156649015329 if n == 0 else 0.5 * math.factorial(n - 1) * (
        2 / small) ** float(n)
    out = xp.where(x <= _NEAR, first * xp.exp(small), total * step)
    return xp.where(x >= 0, xp.where(xp.isinf(x), 0.0, out), math.nan)


def _bessel_k(xp: Any, x: Any, n: int) -> Any:
    return xp.exp(-x) * _bessel_ke(xp, x, n)


add_words(**{name: Word(wide(formula, f"special_{name}"), cuda=in_cuda(name, "{}", "int({})"))
             for name, formula in (("bessel_j", _bessel_j), ("bessel_y", _bessel_y),
                                   ("bessel_k", _bessel_k), ("bessel_ke", _bessel_ke))})
