"""Rows of ops/linalg/checked.py."""

from typing import Any

import numpy as np

from framework.errors import LinAlgError

from ..base import Sample, complex_twins, normal, row

A, V = normal(2, 3, 3), normal(2, 3, 4)
SPD = normal(3, 3) @ normal(3, 3).T + np.eye(3)
SINGULAR = np.stack([np.diag([1.0, 2.0, 3.0]), np.diag([1.0, 0.0, 3.0])])
INFO = np.array([0, 2], np.int32)


def _inv_or_nan(x: Any) -> Any:
    return np.stack([np.linalg.inv(x[0]), np.full((3, 3), np.nan)])


row(
    "inv_ex",
    Sample(
        "plain", lambda M, x: M.linalg.inv_ex(x), (A,), lambda x: (np.linalg.inv(x), np.zeros(2, np.int32))
    ),
    Sample(
        "singular",
        lambda M, x: M.linalg.inv_ex(x),
        (SINGULAR,),
        lambda x: (_inv_or_nan(x), INFO),
        grad=False,
        torch=False,
        why="what PyTorch leaves in place of an inverse is not defined",
    ),
    Sample("info", lambda M, x: M.linalg.inv_ex(x).info, (SINGULAR,), lambda x: INFO, grad=False),
    Sample(
        "the good one",
        lambda M, x: M.linalg.inv_ex(x).inverse[0],
        (SINGULAR,),
        lambda x: np.linalg.inv(x[0]),
        order=1,
        torch=False,
        why="PyTorch's derivative of the singular one is nan",
    ),
    namespace="linalg",
    errors=[("check", lambda M: M.linalg.inv_ex(M.zeros(2, 2), check_errors=True), LinAlgError, "singular")],
)
row(
    "solve_ex",
    Sample(
        "plain",
        lambda M, x, y: M.linalg.solve_ex(x, y),
        (A, V),
        lambda x, y: (np.linalg.solve(x, y), np.zeros(2, np.int32)),
    ),
    Sample(
        "right",
        lambda M, x, y: M.linalg.solve_ex(x, y, left=False).result,
        (A, normal(2, 4, 3)),
        lambda x, y: y @ np.linalg.inv(x),
    ),
    Sample(
        "info", lambda M, x, y: M.linalg.solve_ex(x, y).info, (SINGULAR, V), lambda x, y: INFO, grad=False
    ),
    namespace="linalg",
    errors=[
        (
            "check",
            lambda M: M.linalg.solve_ex(M.zeros(2, 2), M.ones(2), check_errors=True),
            LinAlgError,
            "singular",
        )
    ],
)
row(
    "cholesky_ex",
    Sample(
        "plain",
        lambda M, x: M.linalg.cholesky_ex(x @ x.mT + M.eye(3, dtype=x.dtype)),
        (A,),
        lambda x: (np.linalg.cholesky(x @ x.swapaxes(-1, -2) + np.eye(3)), np.zeros(2, np.int32)),
    ),
    Sample(
        "upper",
        lambda M, x: M.linalg.cholesky_ex(x, upper=True).L,
        (SPD,),
        lambda x: np.linalg.cholesky(x).T,
        grad=False,
    ),
    Sample(
        "info",
        lambda M, x: M.linalg.cholesky_ex(x).info,
        (np.stack([SPD, -SPD, np.diag([1.0, 1, -1])]),),
        lambda x: np.array([0, 1, 3], np.int32),
        grad=False,
    ),
    namespace="linalg",
    errors=[("check", lambda M: M.linalg.cholesky_ex(-M.eye(2), check_errors=True), LinAlgError, "definite")],
)
row(
    "lu_factor_ex",
    Sample(
        "plain", lambda M, x: M.linalg.lu_factor_ex(x).info, (A,), lambda x: np.zeros(2, np.int32), grad=False
    ),
    Sample(
        "LU",
        lambda M, x: M.linalg.lu_factor_ex(x).LU.abs().diagonal(dim1=-2, dim2=-1).prod(-1),
        (A,),
        lambda x: np.abs(np.linalg.det(x)),
    ),
    Sample("singular", lambda M, x: M.linalg.lu_factor_ex(x).info, (SINGULAR,), lambda x: INFO, grad=False),
    Sample(
        "empty",
        lambda M, x: M.linalg.lu_factor_ex(x).info,
        (A[:, :0, :0],),
        lambda x: np.zeros(2, np.int32),
        grad=False,
        torch=False,
        why="PyTorch takes integers if there are none",
    ),
    namespace="linalg",
    errors=[
        ("check", lambda M: M.linalg.lu_factor_ex(M.zeros(2, 2), check_errors=True), LinAlgError, "info=1")
    ],
)
complex_twins("inv_ex solve_ex", "linalg")
