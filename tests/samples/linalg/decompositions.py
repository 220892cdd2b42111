"""Rows of ops/linalg/decompositions.py. Positive definite matrices are made in the call: any input is one."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row
from . import one, refusals, regular


def _positive(x: Any) -> Any:
    return x @ x.swapaxes(-1, -2)


for _home in ("linalg", "framework"):
    row("cholesky",
        one("cholesky", "plain", regular(3, 3), np.linalg.cholesky, prepare=_positive, home=_home),
        one("cholesky", "batch", regular(2, 2, 2), np.linalg.cholesky, prepare=_positive, home=_home),
        one("cholesky", "upper", regular(2, 2), lambda x: np.linalg.cholesky(x).T, prepare=_positive,
             home=_home, upper=True),
        namespace=_home, errors=[*refusals("cholesky", _home), (
            "not positive", lambda M: M.linalg.cholesky(-M.eye(2)), np.linalg.LinAlgError, "positive")])


def _thin(x: Any) -> tuple:
    return tuple(np.linalg.qr(x))


row("qr", one("qr", "square", regular(3, 3), _thin), one("qr", "tall", normal(3, 2), _thin),
    one("qr", "wide", normal(2, 3), _thin), one("qr", "batch", normal(2, 3, 2), _thin),
    one("qr", "complete square", regular(2, 2), _thin, mode="complete"),
    Sample("complete tall", lambda M, x: tuple(M.linalg.qr(x, mode="complete")), (normal(3, 2),),
           lambda x: tuple(np.linalg.qr(x, mode="complete")), grad=False),
    Sample("only r", lambda M, x: M.linalg.qr(x, mode="r")[1], (normal(3, 2),),
           lambda x: np.linalg.qr(x, mode="r"), grad=False),
    namespace="linalg",
    errors=[*refusals("qr", square=False),
            ("mode", lambda M: M.linalg.qr(M.ones(2, 2), mode="full"), ValueError, "'full'")])


def _again(parts: Any) -> Any:
    """What does not depend on the signs of singular vectors: their squares, and the product."""
    u, s, vh = parts
    return u * u, s, vh * vh, (u * u * s[..., None, :]) @ (vh * vh)


def _svd(x: Any) -> tuple:
    return _again(np.linalg.svd(x, full_matrices=False))


row("svd", one("svd", "square", regular(3, 3), _svd, pick=_again),
    *[one("svd", label, normal(*shape), _svd, pick=_again, full_matrices=False)
      for label, shape in (("tall", (3, 2)), ("wide", (2, 3)), ("batch", (2, 3, 2)))],
    Sample("values of full", lambda M, x: M.linalg.svd(x)[1], (normal(3, 2),),
           lambda x: np.linalg.svd(x)[1]),
    Sample("full shapes", lambda M, x: tuple(p * p for p in M.linalg.svd(x)), (normal(3, 2),),
           lambda x: tuple(p * p for p in np.linalg.svd(x)), grad=False),
    namespace="linalg", errors=refusals("svd", square=False))
row("svdvals", one("svdvals", "tall", normal(3, 2), lambda x: np.linalg.svd(x)[1]),
    one("svdvals", "wide", normal(2, 3), lambda x: np.linalg.svd(x)[1]),
    namespace="linalg", errors=refusals("svdvals", square=False))
