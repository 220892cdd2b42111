"""Rows of ops/linalg/determinant.py."""

import numpy as np

from ..base import Sample, normal, row
from . import one, refusals, regular

for _home in ("linalg", "framework"):
    row("det", one("det", "plain", regular(3, 3), np.linalg.det, home=_home),
        one("det", "batch", normal(2, 2, 2), np.linalg.det, home=_home),
        one("det", "empty", np.zeros((0, 0)), np.linalg.det, home=_home),
        Sample("singular", lambda M, x: M.linalg.det(x), (np.array([[1.0, 2.0], [2.0, 4.0]]),),
               np.linalg.det, order=1, torch=False, why="the gradient is the matrix of cofactors, for which "
               "PyTorch gives 0 here"),
        namespace=_home, errors=refusals("det", _home))
    row("slogdet", *[
        one("slogdet", label, x, lambda x: tuple(np.linalg.slogdet(x)), home=_home,
             pick=lambda y: (y[0].detach(), y[1]))
        for label, x in (("plain", regular(3, 3)), ("batch", normal(2, 2, 2)))],
        namespace=_home, errors=refusals("slogdet", _home))
row("logdet", one("logdet", "plain", regular(3, 3), lambda x: np.linalg.slogdet(x)[1], home="framework"),
    errors=refusals("logdet", "framework"))
