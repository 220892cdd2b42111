"""Rows of inverses of tensors and from factors, and of solvers that tell by a code where they fail."""

from typing import Any

import numpy as np

from framework.errors import LinAlgError, ShapeError

from ..base import Sample, complex_twins, further, normal, row

A, V = normal(2, 3, 3), normal(2, 3, 4)
SPD = normal(3, 3) @ normal(3, 3).T + np.eye(3)
L = np.linalg.cholesky(SPD)
SINGULAR = np.stack([np.diag([1.0, 2.0, 3.0]), np.diag([1.0, 0.0, 3.0])])
RTOL = np.array([1e-6, 0.6])
DIAGONALS = np.stack([np.diag([4.0, 2.0, 1.0])] * 2)


def _pinv(x: Any, rtol: Any) -> Any:
    return np.stack([np.linalg.pinv(a, r) for a, r in zip(x, np.broadcast_to(rtol, 2))])


further(
    "pinv",
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
        (A[0], np.array([1e-6, 1e-9])),
        lambda x, r: np.stack([np.linalg.pinv(x)] * 2),
        grad=False,
    ),
    namespace="linalg",
)
further(
    "matrix_rank",
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
)
row(
    "tensorinv",
    Sample(
        "plain",
        lambda M, x: M.linalg.tensorinv(x),
        (normal(2, 3, 6),),
        lambda x: np.linalg.tensorinv(x),
    ),
    Sample(
        "ind",
        lambda M, x: M.linalg.tensorinv(x, ind=1),
        (normal(6, 3, 2),),
        lambda x: np.linalg.tensorinv(x, 1),
    ),
    namespace="linalg",
    errors=[
        ("sizes", lambda M: M.linalg.tensorinv(M.ones(2, 3, 4)), ShapeError, "6 and 4"),
        ("ind", lambda M: M.linalg.tensorinv(M.ones(2, 2), 0), ValueError, "positive"),
        ("singular", lambda M: M.linalg.tensorinv(M.zeros(2, 2, 4)), LinAlgError, "singular"),
    ],
)
row(
    "tensorsolve",
    Sample(
        "plain",
        lambda M, x, y: M.linalg.tensorsolve(x, y),
        (normal(2, 3, 6), normal(2, 3)),
        np.linalg.tensorsolve,
    ),
    Sample(
        "dims",
        lambda M, x, y: M.linalg.tensorsolve(x, y, dims=(0,)),
        (normal(6, 2, 3), normal(2, 3)),
        lambda x, y: np.linalg.tensorsolve(x, y, (0,)),
    ),
    namespace="linalg",
    errors=[
        ("shape", lambda M: M.linalg.tensorsolve(M.ones(2, 3, 6), M.ones(3, 3)), ShapeError, "[3, 3]"),
        ("sizes", lambda M: M.linalg.tensorsolve(M.ones(2, 3), M.ones(2)), ShapeError, "2 and 3"),
    ],
)
row(
    "cholesky_inverse",
    Sample(
        "lower",
        lambda M, x: M.cholesky_inverse(x),
        (L,),
        lambda x: np.linalg.inv(x @ x.T),
        torch=False,
        why="PyTorch gives the triangle that is not read a gradient",
    ),
    Sample(
        "upper",
        lambda M, x: x.cholesky_inverse(upper=True),
        (L.T,),
        lambda x: np.linalg.inv(x.T @ x),
        grad=False,
    ),
    errors=[("shape", lambda M: M.cholesky_inverse(M.ones(2, 3)), ShapeError, "[2, 3]")],
)

PACKED = np.array([[4.0, 1.0, 2.0], [0.5, 3.0, -1.0]])
AT = np.array([2, 2], np.int32)


def _parts(x: np.ndarray) -> tuple:
    L = np.tril(x[:, :2], -1) + np.eye(2)
    return np.array([[0.0, 1.0], [1.0, 0.0]]), L, np.triu(x)


row(
    "lu_unpack",
    Sample("wide", lambda M, x, p: M.lu_unpack(x, p), (PACKED, AT), lambda x, p: _parts(x)),
    Sample(
        "data",
        lambda M, x, p: M.lu_unpack(x, p, unpack_pivots=False)[1:],
        (PACKED, AT),
        lambda x, p: _parts(x)[1:],
    ),
    Sample(
        "pivots",
        lambda M, x, p: M.lu_unpack(x, p, unpack_data=False).P,
        (PACKED, AT),
        lambda x, p: _parts(x)[0],
        grad=False,
    ),
    errors=[("vector", lambda M: M.lu_unpack(M.ones(2), M.ones(2)), ShapeError, "LU_data")],
)

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
complex_twins("inv_ex solve_ex tensorinv tensorsolve", "linalg")
