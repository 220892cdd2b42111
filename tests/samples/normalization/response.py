"""Rows of local_response_norm."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

CHANNELS = normal(2, 4, 3)


def _response(size: int, alpha: float, beta: float, k: float) -> Any:
    def ref(x: Any) -> Any:
        out = np.empty_like(x)
        for c in range(x.shape[1]):
            low, high = max(c - size // 2, 0), min(c + (size - 1) // 2 + 1, x.shape[1])
            out[:, c] = x[:, c] / (k + alpha * (x[:, low:high] ** 2).sum(1) / size) ** beta
        return out
    return ref


row("local_response_norm",
    *[Sample(f"size {n}", lambda M, x, n=n: M.nn.functional.local_response_norm(x, n, 0.5, 0.6, 2.0),
             (CHANNELS,),
             _response(n, 0.5, 0.6, 2.0)) for n in (1, 2, 3)],
    Sample("image", lambda M, x: M.nn.functional.local_response_norm(x, 3), (normal(1, 3, 2, 2),),
           _response(3, 1e-4, 0.75, 1.0)),
    namespace="nn.functional", errors=[(
        "dims", lambda M: M.nn.functional.local_response_norm(M.ones(2, 2), 1), ValueError, "(n, c, *)")])
