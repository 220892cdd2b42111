"""How samples of the gamma and the Dirichlet distribution move with their parameters.

A sample z of a distribution function F(z; a) is held at its quantile: ``dz/da = -(dF/da) / F'(z)`` (implicit
reparameterisation: M. Figurnov et al., "Implicit reparameterization gradients", 2018). F is a series or a
continued fraction behind a known factor; its derivative is taken by a complex step, which cancels nothing.
"""

from typing import Any

from ..special import numbers

_STEP = 1e-20
_MOST = 20000  # terms; about the root of the parameter is needed
_WIDE = 1e5  # from here on Wilson and Hilferty's formula is as exact as the fraction, and does not grow


def _log(xp: Any, x: Any) -> Any:
    return xp.log(xp.maximum(x, 1e-300))


def _digamma(xp: Any, x: Any) -> Any:
    return numbers._digamma_right(xp, x)


def _settled(xp: Any, step: Any) -> bool:
    """Whether a factor of a continued fraction is 1, and its derivative 0."""
    return not bool(((xp.abs(step.real - 1) > 4e-16) | (xp.abs(step.imag) > 1e-13 * _STEP)).any())


def _parts(value: Any) -> tuple[Any, Any]:
    return value.real, value.imag / _STEP


def gamma_slope(xp: Any, a: Any, z: Any) -> Any:
    """The derivative of a sample z > 0 of Gamma(a, 1) with respect to a > 0."""
    dtype = xp.result_type(a, z)
    a, z = xp.broadcast_arrays(xp.asarray(a, "float64"), xp.asarray(z, "float64"))
    usual = (a > 0) & (a < _WIDE) & (z >= 0) & xp.isfinite(z)
    near, at = xp.where(usual, a, 1.0), xp.where(usual, z, 1.0)
    turn = _log(xp, at) - _digamma(xp, near)
    low = at < near + 1
    total, slope = _parts(_gamma_series(xp, near, xp.where(low, at, 0.0)))
    fraction, bend = _parts(_gamma_fraction(xp, near, xp.where(low, near + 2, at)))
    out = at * xp.where(low, -(total * turn + slope), fraction * turn + bend)
    far, there = xp.where(usual | (a <= 0), 1.0, a), xp.where(usual, 1.0, z)
    cube = xp.maximum(there / far, 0.0) ** (1 / 3)  # = 1 - 1 / 9a + n / (3 sqrt a), n held
    move = 1 / (9 * far * far) - (cube - 1 + 1 / (9 * far)) / (2 * far)
    out = xp.where(usual, out, cube ** 3 + 3 * far * cube * cube * move)
    return xp.where(a > 0, out, xp.nan).astype(dtype)


def _gamma_series(xp: Any, a: Any, z: Any) -> Any:
    """S in ``P(a, z) = z^a exp(-z) / gamma(a) S``: the sum of z^n / (a (a + 1) ... (a + n))."""
    a = a + 1j * _STEP
    term = 1 / a
    total = term
    for k in range(1, _MOST):
        term = term * z / (a + k)
        total = total + term
        if not bool((xp.abs(term) > 1e-17 * xp.abs(total)).any()):
            break
    return total


def _gamma_fraction(xp: Any, a: Any, z: Any) -> Any:
    """C in ``1 - P(a, z) = z^a exp(-z) / gamma(a) C``, by Lentz' method."""
    a = a + 1j * _STEP
    b = z + 1 - a
    c, d = 1e300 + 0 * b, 1 / b
    fraction = d
    for k in range(1, _MOST):
        b, factor = b + 2, k * (a - k)
        d, c = 1 / (factor * d + b), b + factor / c
        step = c * d
        fraction = fraction * step
        if _settled(xp, step):
            break
    return fraction


def dirichlet_slope(xp: Any, x: Any, a: Any, total: Any) -> Any:
    """For a part x of a Dirichlet sample: the derivative with respect to its own concentration a, over 1 - x.

    x is a sample of Beta(a, total - a). Dividing by ``1 - x``, which all the other parts shrink by in turn,
    is part of the formula, so that nothing is lost at x = 1.
    """
    dtype = xp.result_type(x, a)
    x, a, total = xp.broadcast_arrays(*[xp.asarray(v, "float64") for v in (x, a, total)])
    b = xp.maximum(total - a, 1e-300)
    turn = _log(xp, x) - _digamma(xp, a) + _digamma(xp, total)
    low = x < (a + 1) / (a + b + 2)
    moved = a + 1j * _STEP
    left = x / moved * _beta_fraction(xp, moved, b, xp.where(low, x, 0.0))
    right = x / b * _beta_fraction(xp, b, moved, xp.where(low, 0.0, 1 - x))
    (value, slope), (rest, bend) = _parts(left), _parts(right)
    return xp.where(low, -(value * turn + slope), rest * turn + bend).astype(dtype)


def _beta_fraction(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz' method."""
    c = 1.0 + 0 * a * b
    d = 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MOST):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / (1 + even * d), 1 + even / c
        fraction = fraction * c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / (1 + odd * d), 1 + odd / c
        step = c * d
        fraction = fraction * step
        if _settled(xp, step):
            break
    return fraction
