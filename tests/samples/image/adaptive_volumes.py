"""Rows of adaptive_max_pool3d."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

V = normal(1, 2, 3, 2, 3)


def _pooled(x: Any) -> Any:
    out = np.empty((1, 2, 2, 1, 2))
    for i in range(2):
        for j in range(2):
            out[:, :, i, 0, j] = x[:, :, i:i + 2, :, j:j + 2].max((2, 3, 4))
    return out


row("adaptive_max_pool3d",
    Sample("plain", lambda M, x: M.nn.functional.adaptive_max_pool3d(x, (2, 1, 2)), (V,), _pooled),
    Sample("one", lambda M, x: M.nn.functional.adaptive_max_pool3d(x, 1), (V,),
           lambda x: x.max((2, 3, 4), keepdims=True)),
    namespace="nn.functional",
    errors=[("size", lambda M: M.nn.functional.adaptive_max_pool3d(M.ones(1, 1, 2, 2, 2), (1, 2)), TypeError,
             "3 ints")])
