"""Rows of ops/normalization/channels.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, positive, row
from . import F, standard

X, W, B = normal(3, 4), positive(4), normal(4)
IMAGE = normal(3, 2, 2, 2)
IW, IB, MEAN, VAR = positive(2), normal(2), normal(2, seed=4), positive(2, seed=4)


def per_channel(v: Any, x: Any) -> Any:
    """v in a shape that broadcasts to the channels of x."""
    return v.reshape((1, -1) + (1,) * (x.ndim - 2))


def batch(x: Any, w: Any = None, b: Any = None, eps: float = 1e-5) -> Any:
    """Training mode."""
    y = standard(x, (0, *range(2, x.ndim)), eps)
    y = y if w is None else y * per_channel(w, x)
    return y if b is None else y + per_channel(b, x)


def fixed(x: Any, mean: Any, var: Any, w: Any = None, b: Any = None, eps: float = 1e-5) -> Any:
    """Evaluation mode."""
    y = (x - per_channel(mean, x)) / np.sqrt(per_channel(var, x) + eps)
    y = y if w is None else y * per_channel(w, x)
    return y if b is None else y + per_channel(b, x)


def moved(old: Any, new: Any, momentum: float) -> Any:
    """A running value after one step."""
    return (1 - momentum) * old + momentum * new


def _train_stats(M: Any, x: Any, mean: Any, var: Any) -> tuple:
    mean, var = mean.clone(), var.clone()
    y = F(M).batch_norm(x, mean, var, training=True, momentum=0.3)
    return y, mean, var


def _train_stats_reference(x: Any, mean: Any, var: Any) -> tuple:
    axes = (0, *range(2, x.ndim))
    return (batch(x), moved(mean, x.mean(axis=axes), 0.3), moved(var, x.var(axis=axes, ddof=1), 0.3))


row("batch_norm",
    Sample("train", lambda M, x: F(M).batch_norm(x, None, None, training=True), (X,), batch),
    Sample("train affine", lambda M, x, w, b: F(M).batch_norm(x, None, None, w, b, True), (IMAGE, IW, IB),
           batch),
    Sample("train weight", lambda M, x, w: F(M).batch_norm(x, None, None, w, training=True), (X, W), batch),
    Sample("sequence", lambda M, x: F(M).batch_norm(x, None, None, training=True, eps=0.1),
           (normal(2, 3, 4),), lambda x: batch(x, eps=0.1)),
    Sample("statistics", _train_stats, (IMAGE, MEAN, VAR), _train_stats_reference, grad=False,
           why="running statistics are written in place"),
    Sample("eval", lambda M, x, m, v: F(M).batch_norm(x, m.detach(), v.detach()), (IMAGE, MEAN, VAR), fixed,
           grad=False),
    Sample("eval affine",
           lambda M, x, w, b: F(M).batch_norm(
               x, x.detach()[0, :, 0, 0] * 0, x.detach()[0, :, 0, 0] * 0 + 2, w, b),
           (IMAGE, IW, IB), lambda x, w, b: fixed(x, np.zeros(2), np.full(2, 2.0), w, b)),
    namespace="nn.functional", errors=[
        ("one value", lambda M: F(M).batch_norm(M.ones(1, 3), None, None, training=True), ValueError,
         "variance of one value"),
        ("no statistics", lambda M: F(M).batch_norm(M.ones(2, 3), None, None), ValueError, "running_mean"),
        ("channels", lambda M: F(M).batch_norm(M.ones(2, 3), M.ones(2), M.ones(2)), RuntimeError,
         "running_mean must have shape [3]"),
        ("ndim", lambda M: F(M).batch_norm(M.ones(3), M.ones(3), M.ones(3)), RuntimeError, "at least 2"),
        ("integers", lambda M: F(M).batch_norm(M.ones(2, 3).long(), M.ones(3), M.ones(3)), TypeError,
         "floating")])


def _instance_stats(M: Any, x: Any, mean: Any, var: Any) -> tuple:
    mean, var = mean.clone(), var.clone()
    return F(M).instance_norm(x, mean, var, momentum=0.3), mean, var


def _instance_stats_reference(x: Any, mean: Any, var: Any) -> tuple:
    return (standard(x, (2, 3)), moved(mean, x.mean(axis=(2, 3)).mean(axis=0), 0.3),
            moved(var, x.var(axis=(2, 3), ddof=1).mean(axis=0), 0.3))


row("instance_norm",
    Sample("plain", lambda M, x: F(M).instance_norm(x), (IMAGE,), lambda x: standard(x, (2, 3))),
    Sample("affine", lambda M, x, w, b: F(M).instance_norm(x, None, None, w, b, eps=0.1), (IMAGE, IW, IB),
           lambda x, w, b: standard(x, (2, 3), 0.1) * per_channel(w, x) + per_channel(b, x)),
    Sample("sequence", lambda M, x: F(M).instance_norm(x), (normal(2, 3, 4),), lambda x: standard(x, (2,))),
    Sample("statistics", _instance_stats, (IMAGE, MEAN, VAR), _instance_stats_reference, grad=False,
           why="running statistics are written in place"),
    Sample("given", lambda M, x, m, v: F(M).instance_norm(x, m.detach(), v.detach(), use_input_stats=False),
           (IMAGE, MEAN, VAR), fixed, grad=False),
    namespace="nn.functional", errors=[
        ("one value", lambda M: F(M).instance_norm(M.ones(2, 3, 1)), ValueError, "variance of one value"),
        ("ndim", lambda M: F(M).instance_norm(M.ones(2, 3)), RuntimeError, "at least 3"),
        ("weight", lambda M: F(M).instance_norm(M.ones(2, 3, 4), weight=M.ones(4)), RuntimeError,
         "weight must have shape [3]")])


def groups(x: Any, n: int, w: Any = None, b: Any = None, eps: float = 1e-5) -> Any:
    """Group normalisation."""
    y = standard(x.reshape(x.shape[0], n, -1), (2,), eps).reshape(x.shape)
    y = y if w is None else y * per_channel(w, x)
    return y if b is None else y + per_channel(b, x)


G = normal(2, 4, 3)
row("group_norm",
    Sample("two", lambda M, x: F(M).group_norm(x, 2), (G,), lambda x: groups(x, 2)),
    Sample("one", lambda M, x, w, b: F(M).group_norm(x, 1, w, b), (G, W, B),
           lambda x, w, b: groups(x, 1, w, b)),
    Sample("each", lambda M, x, w, b: F(M).group_norm(x, 4, w, b, 0.1), (G, W, B),
           lambda x, w, b: groups(x, 4, w, b, 0.1)),
    Sample("vectors", lambda M, x: F(M).group_norm(x, 2), (X,), lambda x: groups(x, 2)),
    namespace="nn.functional", errors=[
        ("groups", lambda M: F(M).group_norm(M.ones(2, 4), 3), RuntimeError, "4 channels do not divide"),
        ("one value", lambda M: F(M).group_norm(M.ones(1, 4), 4), ValueError, "variance of one value"),
        ("weight", lambda M: F(M).group_norm(M.ones(2, 4), 2, M.ones(2)), RuntimeError, "weight must have")])
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
