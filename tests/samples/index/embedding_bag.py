"""Rows of ops/index/embedding_bag.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, positive, row

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
