"""Rows of ops/linalg/rank.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row
from . import one, refusals, regular

A = normal(3, 3) + 2 * np.eye(3)
BATCH = normal(2, 3, 3) + 2 * np.eye(3)
DEFECT = np.array([[1.0, 2.0], [2.0, 4.0]])
RTOL = np.array([1e-6, 0.6])
DIAGONALS = np.stack([np.diag([4.0, 2.0, 1.0])] * 2)


def _pinv(x: Any, rtol: Any) -> Any:
    return np.stack([np.linalg.pinv(a, r) for a, r in zip(x, np.broadcast_to(rtol, 2))])


OF_EACH = (
    Sample(
        "rtol of each",
        lambda M, x, r: M.linalg.pinv(x, rtol=r.detach()),
        (DIAGONALS, RTOL),
        _pinv,
        grad=False,
    ),
    Sample(
        "atol of each",
        lambda M, x: M.linalg.pinv(x, atol=M.tensor([1.5, 0.0], dtype=M.float64)),
        (DIAGONALS,),
        lambda x: _pinv(x, np.array([1.5 / 4, 0.0])),
        grad=False,
    ),
    Sample(
        "one matrix, two rtol",
        lambda M, x, r: M.linalg.pinv(x, rtol=r.detach()),
        (normal(2, 3, 3)[0], np.array([1e-6, 1e-9])),
        lambda x, r: np.stack([np.linalg.pinv(x)] * 2),
        grad=False,
    ),
)
row("matrix_rank", Sample("full", lambda M, a: M.linalg.matrix_rank(a), (BATCH,), np.linalg.matrix_rank),
    Sample("less", lambda M, a: M.linalg.matrix_rank(a), (DEFECT,), np.linalg.matrix_rank),
    Sample("atol", lambda M, a: M.linalg.matrix_rank(a, atol=100.0), (A,), lambda a: np.int64(0)),
    Sample(
        "rtol of each",
        lambda M, x, r: M.linalg.matrix_rank(x, rtol=r),
        (DIAGONALS, RTOL),
        lambda x, r: np.array([3, 1]),
        grad=False,
    ),
    Sample(
        "atol of each",
        lambda M, x: M.linalg.matrix_rank(x, atol=M.tensor([1.5, 0.0])),
        (DIAGONALS,),
        lambda x: np.array([2, 3]),
        grad=False,
    ),
    Sample(
        "tol of each",
        lambda M, x: M.linalg.matrix_rank(x, M.tensor([1.5, 3.0])),
        (DIAGONALS,),
        lambda x: np.array([2, 1]),
        grad=False,
    ),
    Sample(
        "one matrix, two rtol",
        lambda M, x, r: M.linalg.matrix_rank(x, rtol=r),
        (DIAGONALS[0], RTOL),
        lambda x, r: np.array([3, 1]),
        grad=False,
    ),
    namespace="linalg",
    errors=[("vector", lambda M: M.linalg.matrix_rank(M.ones(3)), ValueError, "matrices")])
for _name, _home in (("pinv", "linalg"), ("pinverse", "framework")):
    row(_name, one(_name, "square", regular(3, 3), np.linalg.pinv, home=_home),
        one(_name, "tall", normal(3, 2), np.linalg.pinv, home=_home),
        one(_name, "wide", normal(2, 3), np.linalg.pinv, home=_home),
        one(_name, "batch", normal(2, 3, 2), np.linalg.pinv, home=_home),
        *(OF_EACH if _home == "linalg" else ()),
        namespace=_home, errors=refusals(_name, _home, square=False))
