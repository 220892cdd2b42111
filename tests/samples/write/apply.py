"""Rows of ops/write/apply.py."""


import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row

A, B = normal(3, 4), normal(1, 4, seed=1)
row("apply_", Sample("plain", lambda M, x: x.detach().clone().apply_(lambda v: 2 * v + 1), (A,),
                     lambda x: 2 * x + 1, grad=False),
    namespace="",
    errors=[("recorded", lambda M: M.ones(2, requires_grad=True).apply_(abs), RuntimeError, "detach")])
row("map_", Sample("broadcast", lambda M, x, y: x.detach().clone().map_(y.detach(), min),
                   (A, B), np.minimum, grad=False),
    namespace="", errors=[
        ("shape", lambda M: M.ones(1, 2).map_(M.ones(3, 1), max), ShapeError, "broadcast"),
        ("list", lambda M: M.ones(2).map_([1.0], max), TypeError, "must be a Tensor")])
