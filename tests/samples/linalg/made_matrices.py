"""Rows of ops/linalg/made_matrices.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, complex_twins, integers, normal, row

X, N = normal(4), integers(3, low=1, high=5)


def _vander(x: Any, n: int) -> Any:
    return x[..., None] ** np.arange(n)


row(
    "vander",
    Sample(
        "plain",
        lambda M, x: M.vander(x),
        (X,),
        np.vander,
        torch=False,
        why="PyTorch's own backward fails: it writes into what it kept",
    ),
    Sample("value", lambda M, x: M.vander(x), (X,), np.vander, grad=False),
    Sample(
        "increasing", lambda M, x: M.vander(x, 2, increasing=True), (X,), lambda x: _vander(x, 2), grad=False
    ),
    Sample("ints", lambda M, x: M.vander(x, N=4), (N,), lambda x: np.vander(x, 4)),
    Sample("no columns", lambda M, x: M.vander(x, N=0), (X,), lambda x: np.ones((4, 0))),
    errors=[
        ("matrix", lambda M: M.vander(M.ones(2, 2)), ShapeError, "linalg.vander"),
        ("N", lambda M: M.vander(M.ones(2), -1), ValueError, "-1"),
    ],
)
row(
    "vander",
    Sample("plain", lambda M, x: M.linalg.vander(x), (X,), lambda x: _vander(x, 4)),
    Sample("batch", lambda M, x: M.linalg.vander(x, N=3), (normal(2, 3),), lambda x: _vander(x, 3)),
    Sample(
        "one column",
        lambda M, x: M.linalg.vander(x, N=1),
        (X,),
        lambda x: np.ones((4, 1)),
        torch=False,
        why="PyTorch refuses N=1",
    ),
    namespace="linalg",
    errors=[("0-dim", lambda M: M.linalg.vander(M.ones(())), ShapeError, "0-dim")],
)


def _reflections(a: Any, tau: Any) -> Any:
    m, n = a.shape[-2:]
    q = np.broadcast_to(np.eye(m, n), a.shape)
    for i in reversed(range(tau.shape[-1])):
        v = (a[..., i] * (np.arange(m) > i) + np.eye(m)[i])[..., None]
        q = q - tau[..., i, None, None] * v @ (v.swapaxes(-1, -2).conj() @ q)
    return q


def _taus(a: Any) -> Any:
    """Those that make reflections, so that the product is orthogonal: PyTorch's derivative needs that."""
    m, n = a.shape[-2:]
    return np.stack([2 / (1 + (abs(a[..., i + 1 :, i]) ** 2).sum(-1)) for i in range(n)], -1)


A = normal(4, 3)
row(
    "householder_product",
    Sample(
        "plain",
        lambda M, a, t: M.linalg.householder_product(a, t),
        (A, _taus(A)),
        _reflections,
        torch=False,
        why="PyTorch's derivative holds only on the surface where tau fits the vectors",
    ),
    Sample(
        "batch",
        lambda M, a, t: M.linalg.householder_product(a, t),
        (normal(2, 3, 3), normal(2, 2)),
        _reflections,
        torch=False,
        why="as above",
    ),
    Sample(
        "value", lambda M, a, t: M.linalg.householder_product(a, t), (A, _taus(A)), _reflections, grad=False
    ),
    namespace="linalg",
    errors=[
        ("k", lambda M: M.linalg.householder_product(M.ones(3, 2), M.ones(3)), ShapeError, "k <= n <= m")
    ],
)
complex_twins("householder_product", "linalg")
row(
    "orgqr",
    Sample("plain", lambda M, a, t: M.orgqr(a, t), (A, _taus(A)), _reflections, grad=False),
    Sample("method", lambda M, a, t: a.orgqr(t), (A, _taus(A)), _reflections, grad=False),
    errors=[("k", lambda M: M.orgqr(M.ones(3, 2), M.ones(3)), ShapeError, "k <= n <= m")],
)
row("diagonal", Sample("plain", lambda M, a: M.linalg.diagonal(a), (normal(2, 3, 3) + 2 * np.eye(3),),
                       lambda a: np.diagonal(a, axis1=-2, axis2=-1)),
    Sample("offset", lambda M, a: M.linalg.diagonal(a, offset=1, dim1=0, dim2=1), (normal(2, 4),),
           lambda a: np.diagonal(a, 1)), namespace="linalg",
    errors=[("list", lambda M: M.linalg.diagonal([1.0]), TypeError, "list")])
