"""Numbers of distributions as functions of a key and of places, in NumPy: where there is no extension, which
makes the same ones (``_native/random/variate_numbers.h``, the text of GPUs as well).

Each element takes as many blocks of four words as it happens to need, whatever others take. All operations
are rounded correctly but for tangents and their inverse, and come in the order of that text.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...philox import block_of, block_of_all, logarithm, normal_of, polynomial

_FACTORIALS = np.cumprod(np.maximum(np.arange(14.0), 1))
_STIRLING = np.array([  # what Stirling's formula leaves of log k!, k = 1 to 15
    0.0, 0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093,
    0.016644691189821193, 0.013876128823070748, 0.01189670994589177, 0.010411265261972096,
    0.009255462182712733, 0.00833056343336287, 0.007573675487951841, 0.00694284010720953,
    0.006408994188004207, 0.0059513701127588475, 0.005554733551962801])
_TURN, _SHIFT = 1.4426950408889634, 6755399441055744.0


def exponential(x: np.ndarray) -> np.ndarray:
    """exp(x) of numbers up to 0."""
    shifted = x * _TURN + _SHIFT
    n = shifted - _SHIFT
    y = polynomial((x - n * 0.6931471803691238) - n * 1.9082149292705877e-10, 1 / _FACTORIALS)
    return np.where(x < -708.0, 0.0, (y.view(np.int64) + (shifted.view(np.int64) << 52)).view(np.float64))


def _log_of_more(x: np.ndarray) -> np.ndarray:
    """log(1 + x)."""
    total = 1 + x
    return logarithm(total) - ((total - 1) - x) / total


def _uniform(words: np.ndarray) -> np.ndarray:
    return (words >> np.uint64(11)) * 2.0 ** -53


def _words(key: int, n: int, at: np.ndarray, block: int) -> np.ndarray:
    """The words of a block of elements, which are all of n or some."""
    return block_of_all(key, n, block) if len(at) == n else block_of(key, at, block)


# -- gamma -----------------------------------------------------------------------------------------------


def _gamma(key: int, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gamma numbers of shapes a, but for factors whose logarithms are the second array.

    G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", 2000.
    """
    number, factor = np.where(a > 0, a, np.nan), np.zeros(a.shape)
    d = np.where(a < 1, a + 1, a) - 1 / 3
    with np.errstate(all="ignore"):
        c = 1 / np.sqrt(9 * d)
    at, block = np.flatnonzero((a > 0) & (a < np.inf)), 0
    while len(at):
        words = _words(key, len(a), at, block)
        x, u = normal_of(np.ascontiguousarray(words[:, 0])), 1 - _uniform(words[:, 1])
        v = 1 + c[at] * x
        cube, square = v * v * v, x * x
        taken = (v > 0) & (u < 1 - 0.0331 * (square * square))
        seldom = np.flatnonzero(~taken & (v > 0))
        bend = 1 - cube[seldom] + logarithm(cube[seldom])
        taken[seldom] = logarithm(u[seldom]) < 0.5 * square[seldom] + d[at[seldom]] * bend
        done = at[taken]
        number[done] = d[done] * cube[taken]
        less = a[done] < 1
        factor[done[less]] = logarithm(1 - _uniform(words[taken][less, 2])) / a[done[less]]
        at, block = at[~taken], block + 1
    return number, factor


def gamma(key: int, a: np.ndarray, lowest: float) -> np.ndarray:
    """Gamma numbers of shapes a, float64, at least ``lowest``."""
    number, factor = _gamma(key, a.reshape(-1))
    with np.errstate(all="ignore"):
        out = np.where(factor < 0, number * exponential(factor), number)
    return np.maximum(out, lowest).reshape(a.shape)


def dirichlet(key: int, a: np.ndarray, lowest: float) -> np.ndarray:
    """Rows that sum to 1, by gamma numbers of shapes a."""
    number, factor = (part.reshape(a.shape) for part in _gamma(key, a.reshape(-1)))
    if not a.size:
        return number
    with np.errstate(all="ignore"):
        logs = np.where(number < np.inf, logarithm(number) + factor, number)
        parts = exponential(logs - logs.max(axis=-1, keepdims=True))
        total = parts.cumsum(axis=-1)[..., -1:]  # one after the other
        return np.maximum(parts / total, lowest)


# -- whole numbers -----------------------------------------------------------------------------------------

# One uniform number against the sums of probabilities where few are wanted, else W. Hormann, "The transformed
# rejection method for generating Poisson random variables", 1993, and "The generation of binomial random
# variates", 1993; probabilities as C. Loader has them, "Fast and accurate computation of binomial
# probabilities", 2000.


class _Hat(NamedTuple):
    b: np.ndarray
    a: np.ndarray
    sure: np.ndarray
    height: np.ndarray
    middle: np.ndarray
    edge: float


def _by_sums(u: np.ndarray, first: np.ndarray, ratio: Callable) -> np.ndarray:
    """How many probabilities, the first one given and each a ratio of the one before, u is not below."""
    k, part, total = np.zeros(len(u)), first.copy(), first.copy()
    at = np.flatnonzero(u >= total)
    while len(at):
        part[at] *= ratio(at, k[at])
        at = at[total[at] + part[at] != total[at]]
        total[at] += part[at]
        k[at] += 1
        at = at[u[at] >= total[at]]
    return k


def _by_hat(key: int, n: int, elements: np.ndarray, hat: _Hat, most: Any, log_share: Callable) -> np.ndarray:
    """Two tries of each block, for elements that have these hats."""
    out, left, block = np.zeros(len(elements)), np.arange(len(elements)), 0
    while len(left):
        words = _words(key, n, elements[left], block)
        for i in (0, 2):
            b, a, sure, height, middle = (part[left] for part in hat[:5])
            u, v = _uniform(words[:, i]) - 0.5, 1 - _uniform(words[:, i + 1])
            us = 0.5 - np.abs(u)
            k = np.floor((2 * a / us + b) * u + middle)
            taken = (us >= 0.07) & (v <= sure)
            seldom = np.flatnonzero(~taken & (k >= 0) & (k <= most[left]) & ~((us < hat.edge) & (v > us)))
            limit = (v * height / (a / (us * us) + b))[seldom]
            taken[seldom] = logarithm(limit) <= log_share(left[seldom], k[seldom])
            out[left[taken]] = k[taken]
            left, words = left[~taken], words[~taken]
        block += 1
    return out


def _stirling_rest(k: np.ndarray) -> np.ndarray:
    one = 1 / k
    two = one * one
    far = one * (1 / 12 - two * (1 / 360 - two * (1 / 1260 - two * (1 / 1680))))
    return np.where(k < 16, _STIRLING[np.minimum(k, 15).astype(np.int64)], far)


def _deviance(k: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return mean - k - k * _log_of_more((mean - k) / k)


def poisson(key: int, mean: np.ndarray) -> np.ndarray:
    """Poisson numbers of rates up to 9.2e18, float64."""
    shape, mean, n = mean.shape, mean.reshape(-1), mean.size
    out, few, many = np.zeros(n), np.flatnonzero(mean < 10), np.flatnonzero(~(mean < 10))
    with np.errstate(all="ignore"):
        if len(few):
            rate = mean[few]
            out[few] = _by_sums(_uniform(_words(key, n, few, 0)[:, 0]), exponential(-rate),
                                lambda at, k: rate[at] / (k + 1))
        rates = mean[many]
        b = 0.931 + 2.53 * np.sqrt(rates)
        a = -0.059 + 0.02483 * b
        hat = _Hat(b, a, 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4), rates + 0.43, 0.013)

        def log_share(at: np.ndarray, k: np.ndarray) -> np.ndarray:
            some = rates[at]
            return np.where(k == 0, -some, -_stirling_rest(k) - _deviance(k, some)
                            - 0.5 * logarithm(6.283185307179586 * k))
        out[many] = _by_hat(key, n, many, hat, np.full(len(many), np.inf), log_share)
    return out.reshape(shape)


def binomial(key: int, count: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Numbers of successes of chances in [0, 1] in whole counts >= 0, float64 all."""
    shape, n, chance = count.shape, count.reshape(-1), chance.reshape(-1)
    p = np.where(chance > 0.5, 1 - chance, chance)
    out, size = np.zeros(n.size), n.size
    few, many = np.flatnonzero(n * p < 10), np.flatnonzero(~(n * p < 10))
    with np.errstate(all="ignore"):
        if len(few):
            some, odds = n[few], p[few] / (1 - p[few])
            out[few] = _by_sums(_uniform(_words(key, size, few, 0)[:, 0]),
                                exponential(some * _log_of_more(-p[few])),
                                lambda at, k: odds[at] * ((some[at] - k) / (k + 1)))
        out[many] = _many_trials(key, size, many, n[many], p[many])
    return np.where(chance > 0.5, n - out, out).reshape(shape)


def _many_trials(key: int, size: int, elements: np.ndarray, n: np.ndarray, p: np.ndarray) -> np.ndarray:
    spread = np.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    hat = _Hat(b, a, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * spread, n * p + 0.5, 0.0)
    mode = _log_binomial(np.floor((n + 1) * p), n, p)
    return _by_hat(key, size, elements, hat, n, lambda at, k: _log_binomial(k, n[at], p[at]) - mode[at])


def _log_binomial(k: np.ndarray, n: np.ndarray, p: np.ndarray) -> np.ndarray:
    inside = (_stirling_rest(n) - _stirling_rest(k) - _stirling_rest(n - k) - _deviance(k, n * p)
              - _deviance(n - k, n * (1 - p)) - 0.5 * logarithm(6.283185307179586 * k * ((n - k) / n)))
    return np.where(k == 0, n * _log_of_more(-p), np.where(k == n, n * logarithm(p), inside))


# -- angles --------------------------------------------------------------------------------------------------


def angles(key: int, spread: np.ndarray) -> np.ndarray:
    """Angles around 0 of von Mises' distribution of concentrations >= 0, float64.

    D. Best and N. Fisher, "Efficient simulation of the von Mises distribution", 1979; by tangents of half the
    angles, which lose nothing of small ones.
    """
    shape, spread = spread.shape, np.minimum(spread.reshape(-1), 1e150)
    root = np.sqrt(1 + np.sqrt(1 + 4 * spread * spread))
    total = root + 1.4142135623730951
    rho = 2 * spread / (root * total)
    rest = 2.8284271247461903 / total / (1 + rho)  # 1 - rho
    shrink, lift = rest / (1 + rho), rest * rest * (root * total) / 4
    out, at, block = np.zeros(len(spread)), np.arange(len(spread)), 0
    while len(at):
        words = _words(key, len(spread), at, block)
        half = shrink[at] * np.tan(1.5707963267948966 * _uniform(words[:, 0]))
        square = half * half
        y, v = lift[at] + 2 * spread[at] * (square / (1 + square)), 1 - _uniform(words[:, 1])
        taken = ~((y * (2 - y) - v < 0) & (logarithm(y / v) + 1 - y < 0))
        angle = 2 * np.arctan(half)
        out[at[taken]] = np.where(words[:, 2] >> np.uint64(63), -angle, angle)[taken]
        at, block = at[~taken], block + 1
    return out.reshape(shape)
