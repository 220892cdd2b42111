"""Rows of ops/convert/share.py; tests/test_segments.py and tests/test_multiprocessing.py have the rest."""

import numpy as np

from ..base import Sample, normal, row

M23 = normal(2, 3)

row("is_shared",
    Sample("own memory", lambda M, x: M.tensor(x.cpu().clone().is_shared()), (M23,),
           lambda x: np.array(False), grad=False),
    Sample("moved", lambda M, x: M.tensor(x.cpu().clone().share_memory_().is_shared()), (M23,),
           lambda x: np.array(True), grad=False),
    namespace="")
row("share_memory_",
    Sample("elements", lambda M, x: M.tensor(x.cpu().clone().share_memory_().tolist(), dtype=x.dtype), (M23,),
           lambda x: x, grad=False),
    namespace="")
