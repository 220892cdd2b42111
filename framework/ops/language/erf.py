"""erf, erfc and the parts of gelu to double precision, for the array modules, which do not have them.

Rational approximations on three ranges of |x| (W. J. Cody, "Rational Chebyshev approximations for the
error function", Mathematics of Computation 23, 1969).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

_BLOCK = 1 << 14    # numbers, so that some twenty temporaries stay in the cache

_A = (3.16112374387056560e00, 1.13864154151050156e02, 3.77485237685302021e02,
      3.20937758913846947e03, 1.85777706184603153e-1)
_B = (2.36012909523441209e01, 2.44024637934444173e02, 1.28261652607737228e03,
      2.84423683343917062e03)
_C = (5.64188496988670089e-1, 8.88314979438837594e00, 6.61191906371416295e01,
      2.98635138197400131e02, 8.81952221241769090e02, 1.71204761263407058e03,
      2.05107837782607147e03, 1.23033935479799725e03, 2.15311535474403846e-8)
_D = (1.57449261107098347e01, 1.17693950891312499e02, 5.37181101862009858e02,
      1.62138957456669019e03, 3.29079923573345963e03, 4.36261909014324716e03,
      3.43936767414372164e03, 1.23033935480374942e03)
_P = (3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
      1.60837851487422766e-2, 6.58749161529837803e-4, 1.63153871373020978e-2)
_Q = (2.56852019228982242e00, 1.87295284992346047e00, 5.27905102951428412e-1,
      6.05183413124413191e-2, 2.33520497626869185e-3)
_ONE_OVER_SQRT_PI = 5.6418958354775628695e-1


def _ratio(z: Any, top: tuple, bottom: tuple) -> Any:
    """(top[-1] z^n + top[0] z^(n-1) + ...) / (z^n + bottom[0] z^(n-1) + ...) by Horner's scheme."""
    a, b = top[-1] * z, z
    for p, q in zip(top[:-2], bottom[:-1]):
        a, b = (a + p) * z, (b + q) * z
    return (a + top[-2]) / (b + bottom[-1])


def _tail(xp: Any, y: Any) -> Any:
    """erfc(y) for y > 0.46875."""
    middle = _ratio(y, _C, _D)
    head = xp.trunc(y * 16) / 16  # splitting y keeps the exponent's rounding error small
    scale = xp.exp(-head * head) * xp.exp(-(y - head) * (y + head))
    if xp is np and not (y > 4).any():  # most blocks; on a GPU one would wait for the answer
        return scale * middle
    inverse = 1 / (y * y)
    far = (_ONE_OVER_SQRT_PI - inverse * _ratio(inverse, _P, _Q)) / y
    return scale * xp.where(y <= 4, middle, far)


def _wide(xp: Any, x: Any) -> tuple[Any, Any]:
    x = xp.asarray(x)
    return x, x.astype(xp.float64) if x.dtype.kind == "f" and x.dtype.itemsize < 8 else x


def in_blocks(xp: Any, function: Callable) -> Callable:
    """The function applied to large NumPy arrays piece by piece: the same bits, 3 to 5 times as fast."""
    if xp is not np:
        return function

    def blocked(x: Any, *more: Any, **settings: Any) -> Any:
        x = np.asarray(x)
        if x.size <= _BLOCK:
            return function(x, *more, **settings)
        flat = x.reshape(-1)
        out = np.empty_like(flat)
        for i in range(0, flat.size, _BLOCK):
            out[i:i + _BLOCK] = function(flat[i:i + _BLOCK], *more, **settings)
        return out.reshape(x.shape)
    return blocked


def erf(xp: Any) -> Callable:
    """erf over arrays of the module ``xp``."""
    def function(x: Any) -> Any:
        x, w = _wide(xp, x)
        y = xp.abs(w)
        near = xp.minimum(y, 0.46875)
        small = w * _ratio(near * near, _A, _B)
        large = xp.sign(w) * (1 - _tail(xp, xp.clip(y, 0.46875, 30.0)))
        return xp.where(y <= 0.46875, small, large).astype(x.dtype)
    return in_blocks(xp, function)


def erfc(xp: Any) -> Callable:
    """erfc = 1 - erf over arrays of the module ``xp``, without cancellation for large x."""
    def function(x: Any) -> Any:
        x, w = _wide(xp, x)
        y = xp.abs(w)
        near = xp.minimum(y, 0.46875)
        small = 1 - w * _ratio(near * near, _A, _B)
        tail = _tail(xp, xp.clip(y, 0.46875, 30.0))
        return xp.where(y <= 0.46875, small, xp.where(w > 0, tail, 2 - tail)).astype(x.dtype)
    return in_blocks(xp, function)


def ndtr(xp: Any) -> Callable:
    """The normal distribution function over arrays of the module ``xp``."""
    complement = erfc(xp)

    def function(x: Any) -> Any:
        x, w = _wide(xp, x)
        return (0.5 * complement(w * -0.7071067811865476)).astype(x.dtype)
    return in_blocks(xp, function)


def gelu_slope(xp: Any) -> Callable:
    """The derivative of ``x * ndtr(x)``, with its limits at inf, over arrays of the module ``xp``."""
    distribution = ndtr(xp)

    def function(x: Any) -> Any:
        x, w = _wide(xp, x)
        w = xp.clip(w, -40.0, 40.0)
        return (distribution(w) + w * (0.3989422804014327 * xp.exp(-0.5 * (w * w)))).astype(x.dtype)
    return in_blocks(xp, function)
