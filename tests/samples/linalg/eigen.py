"""Rows of ops/linalg/eigen.py. Symmetric arguments are made in the call, so that any input is one."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row
from . import not_square, one, refusals

A = normal(3, 3) + 2 * np.eye(3)
for _name in ("eig", "eigvals"):
    def _values(M: Any, a: Any, name: str = _name) -> Any:
        out = getattr(M.linalg, name)(a)
        return out if name == "eigvals" else out[0]
    row(_name, Sample("values", _values, (A,), lambda a: np.linalg.eigvals(a).astype(complex), grad=False,
                      noncontiguous=False),
        Sample("real", _values, (np.diag([3.0, 1.0]),), lambda a: np.array([3.0 + 0j, 1.0]), grad=False),
        namespace="linalg", errors=not_square(_values))


def _sym(x: Any) -> Any:
    return x + x.swapaxes(-1, -2)


def _eigen(parts: Any) -> Any:
    values, vectors = parts
    return values, vectors * vectors


row("eigh",
    one("eigh", "plain", normal(3, 3), lambda x: _eigen(np.linalg.eigh(x)), prepare=_sym, pick=_eigen),
    one("eigh", "batch", normal(2, 2, 2), lambda x: _eigen(np.linalg.eigh(x)), prepare=_sym, pick=_eigen),
    one("eigh", "upper", normal(2, 2), lambda x: _eigen(np.linalg.eigh(x)), UPLO="U", prepare=_sym,
         pick=_eigen),
    namespace="linalg", errors=[*refusals("eigh"), (
        "triangle", lambda M: M.linalg.eigh(M.eye(2), "X"), ValueError, "UPLO")])
row("eigvalsh", one("eigvalsh", "plain", normal(3, 3), np.linalg.eigvalsh, prepare=_sym),
    Sample("no gradient", lambda M, x: M.linalg.eigvalsh(_sym(x)), (normal(4, 3, 3),),
           lambda x: np.linalg.eigvalsh(_sym(x)), grad=False),
    namespace="linalg", errors=refusals("eigvalsh"))
