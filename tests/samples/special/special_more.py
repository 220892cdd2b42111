"""Rows of incomplete and multivariate gamma functions, zeta, and further homes of known functions."""

import math
from typing import Any

import numpy as np

from framework.errors import AutogradError

from ..base import Sample, integers, normal, positive, row

A, X = 2.5 * positive(3, 4), 2.5 * positive(3, 4, seed=1)
_lgamma = np.vectorize(math.lgamma, otypes=[float])


def _lower(a: Any, x: Any) -> Any:
    """By quadrature of t**(a - 1) exp(-t), t = x u**4."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    u, w = 0.5 + 0.5 * nodes, 0.5 * weights
    a, x = (np.asarray(v, float)[..., None] for v in (a, x))
    t = x * u**4
    return (w * 4 * x * u**3 * t ** (a - 1) * np.exp(-t)).sum(-1) / np.exp(_lgamma(a[..., 0]))


def _fixed(
    name: str, label: str, a: Any, x: Any, reference: Any, method: bool = False, grad: bool = True
) -> Sample:
    """A call with a first argument that wants no gradient."""

    def call(M: Any, x: Any) -> Any:
        first = M.tensor(a, dtype=x.dtype)
        home = M.special if name == "zeta" else M
        return getattr(first, name)(x) if method else getattr(home, name)(first, x)

    return Sample(label, call, (x,), lambda x: reference(a, x), grad=grad, order=2)


ENDS = (
    np.array([0.0, 1.0, np.inf, 1.0, 0.0, -1.0, np.inf]),
    np.array([1.0, np.inf, 1.0, 0.0, 0.0, 1.0, np.inf]),
)
BELOW = np.array([1.0, 1.0, 0.0, 0.0, np.nan, np.nan, np.nan])
for _name, _ref, _sign in (("igamma", _lower, 1), ("igammac", lambda a, x: 1 - _lower(a, x), -1)):

    def _at_ends(a: Any, x: Any, sign: int = _sign) -> Any:
        return BELOW if sign > 0 else 1 - BELOW

    row(
        _name,
        _fixed(_name, "plain", A, X, _ref),
        _fixed(_name, "method", A, X, _ref, method=True),
        _fixed(_name, "broadcast", A[:, :1], X[0], _ref),
        _fixed(_name, "ends", *ENDS, _at_ends, grad=False),
        Sample("in place", lambda M, a, x, n=_name: getattr(a.clone(), f"{n}_")(x), (A, X), _ref, grad=False),
        Sample(
            "far",
            lambda M, a, x, n=_name: getattr(M, n)(a, x),
            (np.array([50.0, 3.0]), np.array([2.0, 60.0])),
            lambda a, x, s=_sign: np.array([0.0, 1.0]) if s > 0 else np.array([1.0, 0.0]),
            grad=False,
        ),
        errors=[
            (
                "gradient of the first",
                lambda M, n=_name: getattr(M, n)(M.ones(1, requires_grad=True), M.ones(1)),
                AutogradError,
                "detach()",
            )
        ],
    )


def _zeta(s: Any, q: Any) -> Any:
    k = np.arange(20000)[(...,) + (None,) * np.ndim(q)]
    y = q + 20000
    return ((k + q) ** -s).sum(0) + y ** (1 - s) / (s - 1) + 0.5 * y**-s + s / 12 * y ** (-s - 1)


row(
    "zeta",
    _fixed("zeta", "plain", 1 + A, X, _zeta),
    _fixed("zeta", "broadcast", 1 + A[:, :1], X, _zeta),
    _fixed(
        "zeta",
        "ends",
        np.array([1.0, 0.5, 2.0, 2.0, 2.5]),
        np.array([2.0, 3.0, 0.0, -3.0, -1.5]),
        lambda s, q: np.array([np.inf, np.nan, np.inf, np.inf, np.nan]),
        grad=False,
    ),
    _fixed(
        "zeta", "left", np.array([2.0, 3.0]), np.array([-0.5, -0.25]), lambda s, q: q**-s + _zeta(s, q + 1)
    ),
    namespace="special",
    errors=[
        (
            "gradient of the first",
            lambda M: M.special.zeta(M.ones(1, requires_grad=True), M.ones(1)),
            AutogradError,
            "detach()",
        )
    ],
)


def _mvlgamma(x: Any, p: int) -> Any:
    return p * (p - 1) / 4 * np.log(np.pi) + sum(_lgamma(x - i / 2) for i in range(p))


row(
    "mvlgamma",
    Sample("plain", lambda M, x: M.mvlgamma(x, 3), (A + 1,), lambda x: _mvlgamma(x, 3)),
    Sample("one", lambda M, x: x.mvlgamma(1), (A,), lambda x: _mvlgamma(x, 1)),
    Sample("in place", lambda M, x: x.clone().mvlgamma_(p=2), (A,), lambda x: _mvlgamma(x, 2)),
    Sample(
        "int",
        lambda M, x: M.mvlgamma(x, 2),
        (integers(4, low=1, high=9),),
        lambda x: _mvlgamma(x, 2).astype(np.float32),
    ),
    errors=[
        ("p", lambda M: M.mvlgamma(M.ones(1), 0), ValueError, "p must"),
        ("float", lambda M: M.mvlgamma(M.ones(1), 1.5), ValueError, "1.5"),
    ],
)
row(
    "spherical_bessel_j0",
    Sample(
        "plain",
        lambda M, x: M.special.spherical_bessel_j0(x),
        (3 * normal(3, 4),),
        lambda x: np.sin(x) / x,
        torch=False,
        why="PyTorch has no derivative",
    ),
    Sample(
        "at 0",
        lambda M, x: M.special.spherical_bessel_j0(x),
        (np.zeros(1),),
        lambda x: np.ones(1),
        torch=False,
        why="as above",
    ),
    Sample(
        "values",
        lambda M, x: M.special.spherical_bessel_j0(x),
        (3 * normal(5),),
        lambda x: np.sin(x) / x,
        grad=False,
    ),
    namespace="special",
    errors=[("list", lambda M: M.special.spherical_bessel_j0([1.0]), TypeError, "list")],
)
