"""Rows of ops/sequence/attention.py."""

from typing import Any

import numpy as np

from ..base import Sample, masks, normal, row
from ..reduce.softmax import softmax

Q, K, V = normal(2, 3, 2), normal(2, 4, 2), normal(2, 4, 3)
MASK = masks(3, 4, seed=2) | np.eye(3, 4, dtype=bool)
CLOSED = MASK & (np.arange(3) != 1)[:, None]
ADDED = normal(3, 4, seed=8)
SEVERAL, FEW = normal(4, 3, 2), normal(2, 3, 2, seed=2)
BATCHED, OTHERS = normal(2, 4, 3, 2, seed=3), normal(2, 2, 3, 2, seed=4)


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
    Sample("causal, more queries", lambda M, q, k, v: attend(M, q, k, v, is_causal=True),
           (normal(2, 5, 2, seed=5), K, V), lambda q, k, v: reference(q, k, v, np.tri(5, 4, dtype=bool))),
    Sample("broadcast", attend, (BATCHED, normal(4, 4, 2, seed=6), normal(2, 1, 4, 3, seed=7)), reference),
    Sample("padding", lambda M, q, k, v, m: attend(M, q, k, v, m), (Q, K, V, MASK[:2, None]), reference),
    Sample("added to columns", lambda M, q, k, v, m: attend(M, q, k, v, m),
           (Q, K, V, normal(2, 1, 4, seed=9)), reference),
    Sample("added to rows", lambda M, q, k, v, m: attend(M, q, k, v, m), (Q, K, V, normal(3, 1, seed=9)),
           reference),
    Sample("added per head", lambda M, q, k, v, m: attend(M, q, k, v, m),
           (BATCHED, BATCHED * 2, BATCHED + 1, normal(4, 3, 3, seed=10)), reference),
    Sample("shared heads, causal", lambda M, q, k, v: attend(M, q, k, v, is_causal=True, enable_gqa=True),
           (BATCHED, OTHERS, OTHERS * 2), lambda q, k, v: reference(
               q, np.repeat(k, 2, 1), np.repeat(v, 2, 1), np.tri(3, dtype=bool))),
    Sample("shared heads, added", lambda M, q, k, v, m: attend(M, q, k, v, m, enable_gqa=True),
           (BATCHED, OTHERS, OTHERS * 2, normal(4, 3, 3, seed=10)),
           lambda q, k, v, m: reference(q, np.repeat(k, 2, 1), np.repeat(v, 2, 1), m)),
    Sample("dropped", lambda M, q, k, v: attend(M, q, k, v, dropout_p=1.0), (Q, K, V),
           lambda q, k, v: np.zeros((2, 3, 3)), torch=False, why="PyTorch's kernels differ here"),
    namespace="nn.functional", errors=[
        ("dtypes", lambda M: attend(M, M.ones(2, 3), M.ones(2, 3).double(), M.ones(2, 3)), TypeError,
         "'key' is"),
        ("mask's dtype", lambda M: attend(M, M.ones(2, 3), M.ones(2, 3), M.ones(2, 3), M.ones(2, 2).double()),
         TypeError, "attn_mask is"),
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
