"""Rows of ops/linalg/powers.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row
from . import not_square, one, regular

A = normal(3, 3) + 2 * np.eye(3)
BATCH = normal(2, 3, 3) + 2 * np.eye(3)
for _home in ("linalg", "framework"):
    row("matrix_power", *[
        one("matrix_power", f"{n}", regular(2, 2), lambda x, n=n: np.linalg.matrix_power(x, n), n,
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


def _exp(a: Any) -> Any:
    values, vectors = np.linalg.eig(a)
    return ((vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)).real


row("matrix_exp", Sample("plain", lambda M, a: M.matrix_exp(a), (A * 0.3,), _exp),
    Sample("large", lambda M, a: a.matrix_exp(), (A * 2,), _exp),
    Sample("batch", lambda M, a: M.matrix_exp(a), (BATCH * 0.5,), _exp),
    errors=not_square(lambda M, a: M.matrix_exp(a)))
