"""Rows of ops/attention.py."""

from typing import Any

import numpy as np

from .base import Sample, masks, normal, row
from .softmax import softmax

Q, K, V = normal(2, 3, 2), normal(2, 4, 2), normal(2, 4, 3)
MASK = masks(3, 4, seed=2) | np.eye(3, 4, dtype=bool)
CLOSED = MASK & (np.arange(3) != 1)[:, None]
ADDED = normal(3, 4, seed=8)
SEVERAL, FEW = normal(4, 3, 2), normal(2, 3, 2, seed=2)


def attend(M: Any, *args: Any, **settings: Any) -> Any:
    """The function of either library."""
    return M.nn.functional.scaled_dot_product_attention(*args, **settings)


def reference(q: Any, k: Any, v: Any, mask: Any = None, scale: float | None = None) -> Any:
    """Plain NumPy; rows that attend to nothing are 0."""
    scores = q @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is None:
        return softmax(scores) @ v
    scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    dead = np.isneginf(scores).all(axis=-1, keepdims=True)
    return np.where(dead, 0, softmax(np.where(dead, 0, scores))) @ v


row("scaled_dot_product_attention",
    Sample("plain", attend, (Q, K, V), reference),
    Sample("matrices", attend, (Q[0], K[0], V[0]), reference),
    Sample("scale", lambda M, q, k, v: attend(M, q, k, v, scale=0.3), (Q, K, V),
           lambda q, k, v: reference(q, k, v, scale=0.3)),
    Sample("causal", lambda M, q, k, v: attend(M, q, k, v, is_causal=True), (Q, K, V),
           lambda q, k, v: reference(q, k, v, np.tri(3, 4, dtype=bool))),
    Sample("mask", lambda M, q, k, v, m: attend(M, q, k, v, m), (Q, K, V, MASK), reference),
    Sample("closed row", lambda M, q, k, v, m: attend(M, q, k, v, m), (Q, K, V, CLOSED), reference),
    Sample("added", lambda M, q, k, v, m: attend(M, q, k, v, m), (Q, K, V, ADDED), reference),
    Sample("closed by -inf", lambda M, q, k, v, m: attend(M, q, k, v, m),
           (Q, K, V, np.where(CLOSED, 0.0, -np.inf)), reference, grad=False,
           why="an infinite input has no difference quotient"),
    Sample("shared heads", lambda M, q, k, v: attend(M, q, k, v, enable_gqa=True), (SEVERAL, FEW, FEW * 2),
           lambda q, k, v: reference(q, np.repeat(k, 2, 0), np.repeat(v, 2, 0))),
    Sample("dropped", lambda M, q, k, v: attend(M, q, k, v, dropout_p=1.0), (Q, K, V),
           lambda q, k, v: np.zeros((2, 3, 3)), torch=False, why="PyTorch's kernels differ here"),
    namespace="nn.functional", errors=[
        ("features", lambda M: attend(M, M.ones(2, 3), M.ones(2, 4), M.ones(2, 4)), RuntimeError,
         "last size"),
        ("length", lambda M: attend(M, M.ones(2, 3), M.ones(2, 3), M.ones(3, 3)), RuntimeError, "length"),
        ("ndim", lambda M: attend(M, M.ones(3), M.ones(2, 3), M.ones(2, 3)), RuntimeError, "query must be"),
        ("mask", lambda M: attend(M, M.ones(2, 3), M.ones(2, 3), M.ones(2, 3), M.ones(3, 2) > 0),
         RuntimeError, "broadcast"),
        ("mask dtype", lambda M: attend(M, M.ones(2, 3), M.ones(2, 3), M.ones(2, 3), M.ones(2, 2).long()),
         TypeError, "attn_mask must be bool"),
        ("both", lambda M: attend(M, M.ones(2, 3), M.ones(2, 3), M.ones(2, 3), M.ones(2, 2) > 0,
                                  is_causal=True), ValueError, "not both"),
        ("dropout", lambda M: attend(M, M.ones(2, 3), M.ones(2, 3), M.ones(2, 3), dropout_p=2.0), ValueError,
         "dropout_p"),
        ("heads", lambda M: attend(M, M.ones(3, 2, 2), M.ones(2, 2, 2), M.ones(2, 2, 2), enable_gqa=True),
         RuntimeError, "multiple")])
