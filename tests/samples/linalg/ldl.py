"""Rows of ops/linalg/ldl.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row

S = normal(2, 4, 4)
S = S + S.swapaxes(-1, -2)
S[0, range(4), range(4)] = 0.0  # pivots of 2 x 2 need that
B = normal(2, 4, 3, seed=1)
H = normal(3, 3) + 1j * normal(3, 3, seed=5)
H = H + H.conj().T


def _joined(LD: np.ndarray, pivots: np.ndarray, conjugate: bool) -> np.ndarray:
    """The matrix again: P_1 L_1 P_2 L_2 ... D ... of the packed form."""
    n, k, A = len(LD), 0, np.eye(len(LD), dtype=LD.dtype)
    D = np.diag(np.diag(LD)).astype(LD.dtype)
    while k < n:
        end = k + (1 if pivots[k] > 0 else 2)
        swap = np.arange(n)
        swap[[end - 1, abs(pivots[k]) - 1]] = swap[[abs(pivots[k]) - 1, end - 1]]
        L = np.eye(n, dtype=LD.dtype)
        L[end:, k:end] = LD[end:, k:end]
        if end - k == 2:
            D[k + 1, k] = LD[k + 1, k]
            D[k, k + 1] = LD[k + 1, k].conj() if conjugate else LD[k + 1, k]
        A = A @ np.eye(n)[swap] @ L
        k = end
    return A @ D @ (A.conj() if conjugate else A).T


def _again(M: Any, a: Any, **settings: Any) -> Any:
    LD, pivots = M.linalg.ldl_factor(a, **settings)
    hermitian = settings.get("hermitian", False)
    matrices = zip(LD.reshape(-1, *LD.shape[-2:]), pivots.reshape(-1, LD.shape[-1]))
    joined = [_joined(np.array(m.tolist()), np.array(p.tolist()), hermitian) for m, p in matrices]
    return M.tensor(np.stack(joined).reshape(a.shape).tolist(), dtype=a.dtype)


def _solution(M: Any, a: Any, b: Any, **settings: Any) -> Any:
    return M.linalg.ldl_solve(*M.linalg.ldl_factor(a, **settings), b, **settings)


row("ldl_factor",
    Sample("symmetric", _again, (S,), lambda a: a, grad=False),
    Sample("hermitian", lambda M, a: _again(M, a, hermitian=True), (H,), lambda a: a, grad=False),
    Sample("only the lower triangle", lambda M, a: _again(M, a.tril()), (S,), lambda a: a, grad=False),
    namespace="linalg",
    errors=[("zeros", lambda M: M.linalg.ldl_factor(M.zeros(2, 2)), RuntimeError, "ldl_factor"),
            ("square", lambda M: M.linalg.ldl_factor(M.zeros(2, 3)), ShapeError, "square")])
row("ldl_factor_ex",
    Sample("pivots and info", lambda M, a: M.linalg.ldl_factor_ex(a)[1:], (1 - np.eye(2),),
           lambda a: (np.array([-2, -2], np.int32), np.int32(0)), grad=False),
    Sample("zeros", lambda M, a: M.linalg.ldl_factor_ex(a * 0).info, (S,), lambda a: np.ones(2, np.int32),
           grad=False),
    namespace="linalg",
    errors=[("zeros", lambda M: M.linalg.ldl_factor_ex(M.zeros(2, 2), check_errors=True), RuntimeError,
             "ldl_factor")])
row("ldl_solve",
    Sample("symmetric", _solution, (S, B), np.linalg.solve, grad=False),
    Sample("hermitian", lambda M, a, b: _solution(M, a, b, hermitian=True), (H, H[:, :1]), np.linalg.solve,
           grad=False),
    Sample("broadcast", lambda M, a, b: _solution(M, a, b), (S, B[0]), np.linalg.solve, grad=False),
    namespace="linalg",
    errors=[("shape", lambda M: M.linalg.ldl_solve(M.ones(2, 2), M.ones(3).int(), M.ones(2, 1)), ShapeError,
             "pivots")])
