"""Rows of ops/special/gamma.py."""

import math
from typing import Any

import numpy as np

from framework.errors import AutogradError

from ..base import Sample, integers, normal, positive, row
from . import unary

A, POS, N = normal(2, 3), positive(2, 3), integers(2, 3, low=1)
S, X = 2.5 * positive(3, 4), 2.5 * positive(3, 4, seed=1)
_lgamma = np.vectorize(math.lgamma, otypes=[float])


def _digamma(x: Any) -> Any:
    k = np.arange(200000)[(...,) + (None,) * np.ndim(x)] + 0.0
    tail = 1 / (200000 + 0.5 * x - 0.5)
    return -0.5772156649015329 + (1 / (k + 1) - 1 / (k + x)).sum(0) + (x - 1) * tail


def _trigamma(x: Any) -> Any:
    k = np.arange(2000)[(...,) + (None,) * np.ndim(x)]
    y = x + 2000
    return (1 / (k + x) ** 2).sum(0) + 1 / y + 0.5 / y ** 2 + 1 / (6 * y ** 3)


unary("lgamma", _lgamma, A, "framework",
      Sample("poles", lambda M, x: M.lgamma(x), (np.array([0.0, -1.0, 1.0, 2.0, np.inf, 1e5]),),
             lambda x: np.array([np.inf, np.inf, 0, 0, np.inf, math.lgamma(1e5)]), grad=False),
      Sample("int", lambda M, x: M.lgamma(x), (N,), lambda x: _lgamma(x).astype(np.float32)))
unary("digamma", _digamma, POS, "framework",
      Sample("left", lambda M, x: M.digamma(x), (POS - 3,),
             lambda x: _digamma(1 - x) - np.pi / np.tan(np.pi * x), tol=10, why="a slowly converging sum"),
      Sample("poles", lambda M, x: M.digamma(x), (np.array([0.0, -0.0, -1.0, np.inf]),),
             lambda x: np.array([-np.inf, np.inf, np.nan, np.inf]), grad=False), tol=10)
row("polygamma",
    Sample("first", lambda M, x: M.polygamma(1, x), (POS,), _trigamma),
    Sample("zeroth", lambda M, x: M.polygamma(0, x), (POS,), _digamma, tol=10, why="the reference's sum"),
    errors=[("negative", lambda M: M.polygamma(-1, M.ones(1)), ValueError, "negative"),
            ("float", lambda M: M.polygamma(1.5, M.ones(1)), TypeError, "int")])
row("polygamma", Sample("method", lambda M, x: x.polygamma(1), (POS,), _trigamma), namespace="")


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
        _fixed(_name, "plain", S, X, _ref),
        _fixed(_name, "method", S, X, _ref, method=True),
        _fixed(_name, "broadcast", S[:, :1], X[0], _ref),
        _fixed(_name, "ends", *ENDS, _at_ends, grad=False),
        Sample("in place", lambda M, a, x, n=_name: getattr(a.clone(), f"{n}_")(x), (S, X), _ref, grad=False),
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
    _fixed("zeta", "plain", 1 + S, X, _zeta),
    _fixed("zeta", "broadcast", 1 + S[:, :1], X, _zeta),
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
    Sample("plain", lambda M, x: M.mvlgamma(x, 3), (S + 1,), lambda x: _mvlgamma(x, 3)),
    Sample("one", lambda M, x: x.mvlgamma(1), (S,), lambda x: _mvlgamma(x, 1)),
    Sample("in place", lambda M, x: x.clone().mvlgamma_(p=2), (S,), lambda x: _mvlgamma(x, 2)),
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
