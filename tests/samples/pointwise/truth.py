"""Rows of is_nonzero."""


import numpy as np

from framework.errors import ShapeError

from ..base import Sample, row

ONE = np.array([[2.5]])
row("is_nonzero", Sample("yes", lambda M, x: M.tensor(M.is_nonzero(x)), (ONE,), lambda x: np.array(True),
                         grad=False),
    Sample("no", lambda M, x: M.tensor((x - x).is_nonzero()), (ONE,), lambda x: np.array(False), grad=False),
    errors=[("many", lambda M: M.is_nonzero(M.ones(2)), ShapeError, "[2]")])
