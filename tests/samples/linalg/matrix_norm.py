"""Rows of the linalg room. Symmetric arguments are made in the call, so that any input is one."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import Sample, normal, row


def _square(*shape: int, seed: int = 0) -> np.ndarray:
    """Well-conditioned matrices."""
    return 0.3 * normal(*shape, seed=seed) + np.diag(np.arange(2.0, 2 + shape[-1]))


def _one(name: str, label: str, x: Any, reference: Callable, *args: Any, prepare: Callable | None = None,
         pick: Callable | None = None, home: str = "linalg", **settings: Any) -> Sample:
    """A call of one tensor; ``prepare`` comes before it, ``pick`` after it, for both libraries."""
    def call(M: Any, x: Any) -> Any:
        space = M.linalg if home == "linalg" else M
        y = getattr(space, name)(prepare(x) if prepare else x, *args, **settings)
        return pick(y) if pick else tuple(y) if isinstance(y, tuple) else y

    def expected(x: Any) -> Any:
        return reference(prepare(x) if prepare else x)
    return Sample(label, call, (x,), expected)


def _sym(x: Any) -> Any:
    return x + x.swapaxes(-1, -2)


def _positive(x: Any) -> Any:
    return x @ x.swapaxes(-1, -2)




def _errors(name: str, home: str = "linalg", square: bool = True) -> list:
    def function(M: Any) -> Any:
        return getattr(M.linalg if home == "linalg" else M, name)
    found = [("ints", lambda M: function(M)(M.ones(2, 2).long()), DTypeError, "floating"),
             ("vector", lambda M: function(M)(M.ones(2)), ShapeError, "[2]")]
    if square:
        found.append(("square", lambda M: function(M)(M.ones(2, 3)), ShapeError, "square"))
    return found


for _name, _home in (("inv", "linalg"), ("inverse", "framework")):
    row(_name, _one(_name, "plain", _square(3, 3), np.linalg.inv, home=_home),
        _one(_name, "batch", _square(2, 2, 2), np.linalg.inv, home=_home),
        _one(_name, "empty", np.zeros((0, 0)), np.linalg.inv, home=_home),
        namespace=_home, errors=[*_errors(_name, _home), (
            "singular", lambda M: M.linalg.inv(M.zeros(2, 2)), np.linalg.LinAlgError, "singular")])


def _solve(label: str, a: Any, b: Any, reference: Callable, **settings: Any) -> Sample:
    def call(M: Any, a: Any, b: Any) -> Any:
        return M.linalg.solve(a, b, **settings)
    return Sample(label, call, (a, b), reference)


row("solve",
    _solve("matrix", _square(3, 3), normal(3, 2), np.linalg.solve),
    _solve("vector", _square(3, 3), normal(3), np.linalg.solve),
    _solve("batch", _square(2, 2, 2), normal(2, 2, 1), np.linalg.solve),
    _solve("batch of vectors", _square(2, 3, 3), normal(2, 3),
           lambda a, b: np.linalg.solve(a, b[..., None])[..., 0]),
    _solve("broadcast", _square(2, 2), normal(3, 2, 2), lambda a, b: np.linalg.inv(a) @ b),
    _solve("right", _square(2, 2), normal(3, 2), lambda a, b: b @ np.linalg.inv(a), left=False),
    namespace="linalg",
    errors=[("sizes", lambda M: M.linalg.solve(M.eye(2), M.ones(3, 2)), ShapeError, "2 rows"),
            ("square", lambda M: M.linalg.solve(M.ones(2, 3), M.ones(3, 2)), ShapeError, "square"),
            ("singular", lambda M: M.linalg.solve(M.zeros(2, 2), M.ones(2, 2)), np.linalg.LinAlgError,
             "singular")])
for _home in ("linalg", "framework"):
    row("det", _one("det", "plain", _square(3, 3), np.linalg.det, home=_home),
        _one("det", "batch", normal(2, 2, 2), np.linalg.det, home=_home),
        _one("det", "empty", np.zeros((0, 0)), np.linalg.det, home=_home),
        Sample("singular", lambda M, x: M.linalg.det(x), (np.array([[1.0, 2.0], [2.0, 4.0]]),),
               np.linalg.det, order=1, torch=False, why="the gradient is the matrix of cofactors, for which "
               "PyTorch gives 0 here"),
        namespace=_home, errors=_errors("det", _home))
    row("slogdet", *[
        _one("slogdet", label, x, lambda x: tuple(np.linalg.slogdet(x)), home=_home,
             pick=lambda y: (y[0].detach(), y[1]))
        for label, x in (("plain", _square(3, 3)), ("batch", normal(2, 2, 2)))],
        namespace=_home, errors=_errors("slogdet", _home))
row("logdet", _one("logdet", "plain", _square(3, 3), lambda x: np.linalg.slogdet(x)[1], home="framework"),
    errors=_errors("logdet", "framework"))

for _home in ("linalg", "framework"):
    row("cholesky",
        _one("cholesky", "plain", _square(3, 3), np.linalg.cholesky, prepare=_positive, home=_home),
        _one("cholesky", "batch", _square(2, 2, 2), np.linalg.cholesky, prepare=_positive, home=_home),
        _one("cholesky", "upper", _square(2, 2), lambda x: np.linalg.cholesky(x).T, prepare=_positive,
             home=_home, upper=True),
        namespace=_home, errors=[*_errors("cholesky", _home), (
            "not positive", lambda M: M.linalg.cholesky(-M.eye(2)), np.linalg.LinAlgError, "positive")])


def _thin(x: Any) -> tuple:
    return tuple(np.linalg.qr(x))


row("qr", _one("qr", "square", _square(3, 3), _thin), _one("qr", "tall", normal(3, 2), _thin),
    _one("qr", "wide", normal(2, 3), _thin), _one("qr", "batch", normal(2, 3, 2), _thin),
    _one("qr", "complete square", _square(2, 2), _thin, mode="complete"),
    Sample("complete tall", lambda M, x: tuple(M.linalg.qr(x, mode="complete")), (normal(3, 2),),
           lambda x: tuple(np.linalg.qr(x, mode="complete")), grad=False),
    Sample("only r", lambda M, x: M.linalg.qr(x, mode="r")[1], (normal(3, 2),),
           lambda x: np.linalg.qr(x, mode="r"), grad=False),
    namespace="linalg",
    errors=[*_errors("qr", square=False),
            ("mode", lambda M: M.linalg.qr(M.ones(2, 2), mode="full"), ValueError, "'full'")])


def _again(parts: Any) -> Any:
    """What does not depend on the signs of singular vectors: their squares, and the product."""
    u, s, vh = parts
    return u * u, s, vh * vh, (u * u * s[..., None, :]) @ (vh * vh)


def _svd(x: Any) -> tuple:
    return _again(np.linalg.svd(x, full_matrices=False))


row("svd", _one("svd", "square", _square(3, 3), _svd, pick=_again),
    *[_one("svd", label, normal(*shape), _svd, pick=_again, full_matrices=False)
      for label, shape in (("tall", (3, 2)), ("wide", (2, 3)), ("batch", (2, 3, 2)))],
    Sample("values of full", lambda M, x: M.linalg.svd(x)[1], (normal(3, 2),),
           lambda x: np.linalg.svd(x)[1]),
    Sample("full shapes", lambda M, x: tuple(p * p for p in M.linalg.svd(x)), (normal(3, 2),),
           lambda x: tuple(p * p for p in np.linalg.svd(x)), grad=False),
    namespace="linalg", errors=_errors("svd", square=False))
row("svdvals", _one("svdvals", "tall", normal(3, 2), lambda x: np.linalg.svd(x)[1]),
    _one("svdvals", "wide", normal(2, 3), lambda x: np.linalg.svd(x)[1]),
    namespace="linalg", errors=_errors("svdvals", square=False))


def _eigen(parts: Any) -> Any:
    values, vectors = parts
    return values, vectors * vectors


row("eigh",
    _one("eigh", "plain", normal(3, 3), lambda x: _eigen(np.linalg.eigh(x)), prepare=_sym, pick=_eigen),
    _one("eigh", "batch", normal(2, 2, 2), lambda x: _eigen(np.linalg.eigh(x)), prepare=_sym, pick=_eigen),
    _one("eigh", "upper", normal(2, 2), lambda x: _eigen(np.linalg.eigh(x)), UPLO="U", prepare=_sym,
         pick=_eigen),
    namespace="linalg", errors=[*_errors("eigh"), (
        "triangle", lambda M: M.linalg.eigh(M.eye(2), "X"), ValueError, "UPLO")])
row("eigvalsh", _one("eigvalsh", "plain", normal(3, 3), np.linalg.eigvalsh, prepare=_sym),
    namespace="linalg", errors=_errors("eigvalsh"))
for _name, _home in (("pinv", "linalg"), ("pinverse", "framework")):
    row(_name, _one(_name, "square", _square(3, 3), np.linalg.pinv, home=_home),
        _one(_name, "tall", normal(3, 2), np.linalg.pinv, home=_home),
        _one(_name, "wide", normal(2, 3), np.linalg.pinv, home=_home),
        _one(_name, "batch", normal(2, 3, 2), np.linalg.pinv, home=_home),
        namespace=_home, errors=_errors(_name, _home, square=False))
for _home in ("linalg", "framework"):
    row("matrix_power", *[
        _one("matrix_power", f"{n}", _square(2, 2), lambda x, n=n: np.linalg.matrix_power(x, n), n,
             home=_home)
        for n in (0, 1, 2, 5, -1, -2)],
        namespace=_home,
        errors=[("type", lambda M: M.linalg.matrix_power(M.eye(2), 1.5), TypeError, "int"),
                ("square", lambda M: M.linalg.matrix_power(M.ones(2, 3), 2), ShapeError, "square")])
row("multi_dot",
    Sample("three", lambda M, *xs: M.linalg.multi_dot(xs), (normal(2, 3), normal(3, 2), normal(2, 1)),
           lambda *xs: np.linalg.multi_dot(xs)),
    Sample("vectors", lambda M, *xs: M.linalg.multi_dot(xs), (normal(3), normal(3, 2), normal(2)),
           lambda *xs: np.linalg.multi_dot(xs)),
    Sample("four", lambda M, *xs: M.linalg.multi_dot(xs),
           (normal(1, 3), normal(3, 2), normal(2, 3), normal(3, 1)), lambda *xs: np.linalg.multi_dot(xs)),
    namespace="linalg",
    errors=[("one", lambda M: M.linalg.multi_dot([M.ones(2, 2)]), ValueError, "at least 2"),
            ("sizes", lambda M: M.linalg.multi_dot([M.ones(2, 3), M.ones(2, 3)]), ShapeError, "is 3")])

_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
row("matrix_norm",
    *[_one("matrix_norm", f"ord {o}", normal(3, 2),
           lambda x, o=o: np.linalg.norm(x, o), o) for o in _ORDERS],
    _one("matrix_norm", "batch", normal(2, 3, 2), lambda x: np.linalg.norm(x, "fro", (-2, -1))),
    _one("matrix_norm", "dims", normal(2, 3, 2), lambda x: np.linalg.norm(x, 1, (0, 1), keepdims=True), 1,
         dim=(0, 1), keepdim=True),
    _one("matrix_norm", "keepdim", normal(2, 2, 3), lambda x: np.linalg.norm(x, "nuc", (2, 0), keepdims=True),
         "nuc", dim=(2, 0), keepdim=True),
    namespace="linalg",
    errors=[*_errors("matrix_norm", square=False),
            ("ord", lambda M: M.linalg.matrix_norm(M.ones(2, 2), 3), ValueError, "ord"),
            ("dim", lambda M: M.linalg.matrix_norm(M.ones(2, 2), dim=0), ValueError, "two dimensions")])
row("norm",
    _one("norm", "all", normal(2, 3), np.linalg.norm), _one("norm", "vector", normal(3), np.linalg.norm),
    _one("norm", "vector 1", normal(3), lambda x: np.linalg.norm(x, 1), 1),
    _one("norm", "dim", normal(2, 3), lambda x: np.linalg.norm(x, 1, 0), 1, dim=0),
    _one("norm", "matrix 1", normal(2, 3), lambda x: np.linalg.norm(x, 1), 1),
    _one("norm", "fro", normal(2, 3), lambda x: np.linalg.norm(x, "fro"), "fro"),
    namespace="linalg",
    errors=[("three", lambda M: M.linalg.norm(M.ones(2, 2, 2), 1), ShapeError, "vector or a matrix")])
