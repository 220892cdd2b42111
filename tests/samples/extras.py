"""Rows of ops/extras.py."""

from typing import Any

import numpy as np

from .base import Sample, masks, normal, positive, row

V, CHANNELS = normal(1, 2, 3, 2, 3), normal(2, 4, 3)


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

X, T = normal(3, 4), masks(3, 4).astype(float)


def _soft(x: Any, t: Any, w: Any = 1.0) -> Any:
    s = 1 / (1 + np.exp(-x))
    return (-(t * np.log(s) + (1 - t) * np.log(1 - s)) * w).mean(-1)


row("multilabel_soft_margin_loss",
    Sample("mean", lambda M, x, t: M.nn.functional.multilabel_soft_margin_loss(x, t), (X, T),
           lambda x, t: _soft(x, t).mean()),
    Sample("weight", lambda M, x, t, w: M.nn.functional.multilabel_soft_margin_loss(
        x, t, w, reduction="none"), (X, T, positive(4)), _soft),
    Sample("sum", lambda M, x, t: M.nn.functional.multilabel_soft_margin_loss(x, t, reduction="sum"), (X, T),
           lambda x, t: _soft(x, t).sum()),
    namespace="nn.functional", errors=[("shapes", lambda M: M.nn.functional.multilabel_soft_margin_loss(
        M.ones(2, 2), M.ones(2, 3)), ValueError, "[2, 3]")])

W, IDS, OFFSETS = normal(5, 3), np.array([0, 3, 3, 1, 4]), np.array([0, 2, 2])


def _bagged(way: Any) -> Any:
    def ref(i: Any, w: Any, o: Any) -> Any:
        return np.stack([way(w[i[a:b]]) if b > a else np.zeros(3, w.dtype)
                         for a, b in zip(o, [*o[1:], len(i)])])
    return ref


_WAYS = {"sum": lambda r: r.sum(0), "mean": lambda r: r.mean(0), "max": lambda r: r.max(0)}
row("embedding_bag",
    *[Sample(way, lambda M, i, w, o, way=way: M.nn.functional.embedding_bag(i, w, o, mode=way),
             (IDS[[0, 1, 3, 4]] if way == "max" else IDS, W, OFFSETS), _bagged(f))
      for way, f in _WAYS.items()],
    Sample("matrix", lambda M, i, w: M.nn.functional.embedding_bag(i, w), (IDS[:4].reshape(2, 2), W),
           lambda i, w: w[i].mean(1)),
    Sample("weights", lambda M, i, w, p: M.nn.functional.embedding_bag(
        i, w, mode="sum", per_sample_weights=p), (IDS[:4].reshape(2, 2), W, positive(2, 2)),
        lambda i, w, p: (w[i] * p[..., None]).sum(1)),
    Sample("padding", lambda M, i, w, o: M.nn.functional.embedding_bag(i, w, o, padding_idx=3),
           (IDS, W, OFFSETS), lambda i, w, o: np.stack([w[0], 0 * w[0], (w[1] + w[4]) / 2])),
    Sample("last offset", lambda M, i, w, o: M.nn.functional.embedding_bag(
        i, w, o, mode="sum", include_last_offset=True), (IDS, W, np.array([0, 2, 5])),
        lambda i, w, o: np.stack([w[i[:2]].sum(0), w[i[2:]].sum(0)])),
    namespace="nn.functional",
    errors=[("mode", lambda M: M.nn.functional.embedding_bag(M.tensor([[0]]), M.ones(1, 1), mode="x"),
             ValueError, "mode"),
            ("offsets", lambda M: M.nn.functional.embedding_bag(M.tensor([0]), M.ones(1, 1)), ValueError,
             "offsets")])
RUNS = np.array([1, 1, 2, 2, 2, 1])
row("unique_consecutive",
    Sample("plain", lambda M, x: M.unique_consecutive(x), (RUNS,), lambda x: np.array([1, 2, 1])),
    Sample("all", lambda M, x: M.unique_consecutive(x, return_inverse=True, return_counts=True), (RUNS,),
           lambda x: (np.array([1, 2, 1]), np.array([0, 0, 1, 1, 1, 2]), np.array([2, 3, 1]))),
    Sample("dim", lambda M, x: M.unique_consecutive(x, dim=0), (np.array([[1, 2], [1, 2], [3, 4]]),),
           lambda x: x[1:]),
    Sample("empty", lambda M, x: M.unique_consecutive(x), (RUNS[:0],), lambda x: x),
    errors=[("list", lambda M: M.unique_consecutive([1]), TypeError, "list")])
