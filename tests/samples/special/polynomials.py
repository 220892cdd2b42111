"""Rows of the orthogonal polynomials, beside NumPy's."""

from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from ..base import Sample, row

X = np.array([[-1.3, -0.8, 0.1], [0.45, 0.9, 1.7]])
N = np.array([[0, 1, 2], [3, 5, 8]])


def _by(evaluate: Any) -> Any:
    """The polynomial of degree n at x, each with its own n; 0 below 0."""
    def at(x: float, n: float) -> float:
        return 0.0 if n < 0 else evaluate(x, [0.0] * int(n) + [1.0])
    return np.vectorize(at, otypes=[float])


def _second(x: Any, c: list[float]) -> Any:
    """U_n is the derivative of T_(n+1) over n + 1."""
    return chebyshev.chebval(x, chebyshev.chebder([0.0, *c])) / len(c)


def _third(sign: int) -> Any:
    return lambda x, c: _second(x, c) + sign * (_second(x, c[1:]) if len(c) > 1 else 0.0)


def _on_half(evaluate: Any) -> Any:
    return lambda x, c: evaluate(2 * x - 1, c)


REFERENCES = {
    "chebyshev_polynomial_t": chebyshev.chebval, "chebyshev_polynomial_u": _second,
    "chebyshev_polynomial_v": _third(-1), "chebyshev_polynomial_w": _third(1),
    "shifted_chebyshev_polynomial_t": _on_half(chebyshev.chebval),
    "shifted_chebyshev_polynomial_u": _on_half(_second),
    "shifted_chebyshev_polynomial_v": _on_half(_third(-1)),
    "shifted_chebyshev_polynomial_w": _on_half(_third(1)),
    "hermite_polynomial_h": hermite.hermval, "hermite_polynomial_he": hermite_e.hermeval,
    "laguerre_polynomial_l": laguerre.lagval, "legendre_polynomial_p": legendre.legval,
}
for _name, _evaluate in REFERENCES.items():
    def _call(M: Any, x: Any, n: Any, name: str = _name) -> Any:
        return getattr(M.special, name)(x, n)
    _ref = _by(_evaluate)
    row(_name, Sample("plain", _call, (X, N), _ref, grad=False),
        Sample("derivative", _call, (X, N[:, :1]), _ref, torch=False, why="PyTorch has no derivative of it"),
        Sample("one degree", lambda M, x, c=_call: c(M, x, 4), (X,), lambda x, r=_ref: r(x, 4), grad=False),
        Sample("one place", lambda M, n, c=_call: c(M, 0.3, n), (N,),
               lambda n, r=_ref: r(0.3, n).astype(np.float32)),
        Sample("empty", _call, (X[:0], N[:0]), lambda x, n: x, grad=False), namespace="special",
        errors=[("numbers", lambda M, c=_call: c(M, 1.0, 2), TypeError, "must be a Tensor"),
                ("word", lambda M, c=_call: c(M, M.ones(2), "a"), TypeError, "'n'")])
