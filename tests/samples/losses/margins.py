"""Rows of ops/losses/margins.py."""

from typing import Any

import numpy as np

from ..base import Sample, masks, normal, positive, row

X, C = normal(4, 3), np.array([2, 0, 1, 1])
LABELS = np.array([[1, -1, 0], [2, 0, -1], [-1, 1, 1], [0, 1, 2]])


def _margin(x: Any, t: Any, w: Any = None, p: int = 1, margin: float = 1.0) -> Any:
    out = np.zeros(len(x))
    for n, (line, c) in enumerate(zip(x, t)):
        gaps = [max(0.0, margin - line[c] + v) ** p for i, v in enumerate(line) if i != c]
        out[n] = sum(gaps) * (1.0 if w is None else w[c]) / len(line)
    return out


row("multi_margin_loss",
    Sample("mean", lambda M, x, t: M.nn.functional.multi_margin_loss(x, t), (X, C),
           lambda x, t: _margin(x, t).mean()),
    Sample("settings", lambda M, x, t, w: M.nn.functional.multi_margin_loss(
        x, t, 2, 0.7, w, reduction="none"), (X, C, positive(3)),
        lambda x, t, w: _margin(x, t, w, 2, 0.7), torch=False,
        why="PyTorch has no derivative by the weights"),
    Sample("weight", lambda M, x, t: M.nn.functional.multi_margin_loss(
        x, t, 2, 0.7, M.arange(1, 4).to(x.dtype), reduction="sum"), (X, C),
        lambda x, t: _margin(x, t, np.arange(1, 4), 2, 0.7).sum()),
    Sample("one", lambda M, x, t: M.nn.functional.multi_margin_loss(x, t), (X[0], C[0]),
           lambda x, t: _margin(x[None], t[None])[0]),
    namespace="nn.functional", errors=[
        ("class", lambda M: M.nn.functional.multi_margin_loss(M.ones(1, 2), M.tensor([2])), IndexError,
         "class 2"),
        ("zero is not ignored", lambda M: M.nn.functional.multi_margin_loss(M.ones(1, 2), M.tensor([-1])),
         IndexError, "class -1"),
        ("shape", lambda M: M.nn.functional.multi_margin_loss(M.ones(2, 2), M.tensor([1])), ValueError,
         "[2]"),
        ("p", lambda M: M.nn.functional.multi_margin_loss(M.ones(1, 2), M.tensor([1]), 3), ValueError,
         "1 or 2"),
        ("floats", lambda M: M.nn.functional.multi_margin_loss(M.ones(1, 2), M.ones(1)), TypeError, "int64")])


def _labels(x: Any, t: Any) -> Any:
    out = np.zeros(len(x))
    for n, (line, targets) in enumerate(zip(x, t)):
        end = np.flatnonzero(targets < 0)
        chosen = targets[:end[0]] if len(end) else targets
        out[n] = sum(max(0.0, 1 - line[c] + v) for c in chosen
                     for i, v in enumerate(line) if i not in chosen) / len(line)
    return out


row("multilabel_margin_loss",
    Sample("mean", lambda M, x, t: M.nn.functional.multilabel_margin_loss(x, t), (X, LABELS),
           lambda x, t: _labels(x, t).mean()),
    Sample("none", lambda M, x, t: M.nn.functional.multilabel_margin_loss(x, t, reduction="none"),
           (X, LABELS), _labels),
    Sample("twice", lambda M, x, t: M.nn.functional.multilabel_margin_loss(x, t),
           (X[0], np.array([1, 1, -1])), lambda x, t: _labels(x[None], t[None])[0]),
    namespace="nn.functional", errors=[
        ("class", lambda M: M.nn.functional.multilabel_margin_loss(M.ones(2), M.tensor([2, 0])), IndexError,
         "class 2"),
        ("shape", lambda M: M.nn.functional.multilabel_margin_loss(M.ones(2, 2), M.tensor([[1]])), ValueError,
         "[2, 2]")])


def _apart(a: Any, b: Any) -> Any:
    return np.sqrt(((a - b + 1e-6) ** 2).sum(-1))


A, P, N = normal(4, 3), normal(4, 3, seed=1), normal(4, 3, seed=2)
row("triplet_margin_with_distance_loss",
    Sample("mean", lambda M, *x: M.nn.functional.triplet_margin_with_distance_loss(*x), (A, P, N),
           lambda a, p, n: np.maximum(0, _apart(a, p) - _apart(a, n) + 1).mean()),
    Sample("swap", lambda M, *x: M.nn.functional.triplet_margin_with_distance_loss(
        *x, margin=0.7, swap=True, reduction="none"), (A, P, N), lambda a, p, n: np.maximum(
            0, _apart(a, p) - np.minimum(_apart(a, n), _apart(p, n)) + 0.7)),
    Sample("distance", lambda M, *x: M.nn.functional.triplet_margin_with_distance_loss(
        *x, distance_function=lambda a, b: ((a - b) ** 2).sum(-1), reduction="sum"), (A, P, N),
        lambda a, p, n: np.maximum(0, ((a - p) ** 2).sum(-1) - ((a - n) ** 2).sum(-1) + 1).sum()),
    namespace="nn.functional", errors=[
        ("margin", lambda M: M.nn.functional.triplet_margin_with_distance_loss(
            M.ones(1, 2), M.ones(1, 2), M.ones(1, 2), margin=0.0), ValueError, "positive"),
        ("shape", lambda M: M.nn.functional.triplet_margin_with_distance_loss(
            M.ones(1, 2), M.ones(1, 2), M.ones(2)), ValueError, "as many dimensions")])
Z, T = normal(3, 4), masks(3, 4).astype(float)


def _soft(x: Any, t: Any, w: Any = 1.0) -> Any:
    s = 1 / (1 + np.exp(-x))
    return (-(t * np.log(s) + (1 - t) * np.log(1 - s)) * w).mean(-1)


row("multilabel_soft_margin_loss",
    Sample("mean", lambda M, x, t: M.nn.functional.multilabel_soft_margin_loss(x, t), (Z, T),
           lambda x, t: _soft(x, t).mean()),
    Sample("weight", lambda M, x, t, w: M.nn.functional.multilabel_soft_margin_loss(
        x, t, w, reduction="none"), (Z, T, positive(4)), _soft),
    Sample("sum", lambda M, x, t: M.nn.functional.multilabel_soft_margin_loss(x, t, reduction="sum"), (Z, T),
           lambda x, t: _soft(x, t).sum()),
    namespace="nn.functional", errors=[("shapes", lambda M: M.nn.functional.multilabel_soft_margin_loss(
        M.ones(2, 2), M.ones(2, 3)), ValueError, "[2, 3]")])
