"""Rows of ops/main_forms.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from .base import Sample, normal, positive, row

X, W, B = normal(2, 4, 3), positive(4), normal(4, seed=2)
MEAN, VAR = normal(4, seed=3), positive(4, seed=4)
EPS = 1e-5
IMAGE, GRID = normal(1, 2, 3, 3), 0.7 * np.tanh(normal(1, 2, 2, 2))
VOLUME, PLACES = normal(1, 1, 2, 2, 2), 0.7 * np.tanh(normal(1, 1, 1, 2, 3))


def _standard(x: np.ndarray, dims: tuple) -> tuple:
    mean = x.mean(dims, keepdims=True)
    rstd = 1 / np.sqrt(x.var(dims, keepdims=True) + EPS)
    return (x - mean) * rstd, mean, rstd


def _channels(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    return x * w[:, None] + b[:, None]


def _groups(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> tuple:
    y, mean, rstd = _standard(x.reshape(2, 2, 6), (2,))
    return _channels(y.reshape(x.shape), w, b), mean[..., 0], rstd[..., 0]


def _batch(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> tuple:
    y, mean, rstd = _standard(x, (0, 2))
    return _channels(y, w, b), mean.reshape(-1), rstd.reshape(-1)


row("layer_norm",
    Sample("weights", lambda M, x, w, b: M.layer_norm(x, (3,), w, b, EPS, False), (X, W[:3], B[:3]),
           lambda x, w, b: _standard(x, (2,))[0] * w + b),
    errors=[("shape", lambda M: M.layer_norm(M.ones(2), (3,)), ShapeError, "[3]")])
row("group_norm",
    Sample("weights", lambda M, x, w, b: M.group_norm(x, 2, w, b), (X, W, B), lambda *a: _groups(*a)[0]),
    errors=[("groups", lambda M: M.group_norm(M.ones(2, 3), 2), ShapeError, "2")])
row("batch_norm",
    Sample("training", lambda M, x, w, b: M.batch_norm(x, w, b, None, None, True, 0.1, EPS, False), (X, W, B),
           lambda *a: _batch(*a)[0]),
    Sample("running", lambda M, x, w, b, m, v: M.batch_norm(x, w, b, m.detach(), v.detach(), False, 0.1, EPS,
                                                            False), (X, W, B, MEAN, VAR),
           lambda x, w, b, m, v: _channels((x - m[:, None]) / np.sqrt(v + EPS)[:, None], w, b), grad=False),
    errors=[("shape", lambda M: M.batch_norm(M.ones(2), None, None, None, None, True, 0.1, 0.0, False),
             ShapeError, "at least 2")])
row("instance_norm",
    Sample("weights", lambda M, x, w, b: M.instance_norm(x, w, b, None, None, True, 0.1, EPS, False),
           (X, W, B),
           lambda x, w, b: _channels(_standard(x, (2,))[0], w, b)),
    errors=[("shape", lambda M: M.instance_norm(M.ones(2), None, None, None, None, True, 0.1, 0.0, False),
             ShapeError, "dimensions")])
row("native_layer_norm",
    Sample("weights", lambda M, x, w, b: M.native_layer_norm(x, (3,), w, b, EPS)[0], (X, W[:3], B[:3]),
           lambda x, w, b: _standard(x, (2,))[0] * w + b),
    Sample("statistics", lambda M, x: M.native_layer_norm(x, (3,), None, None, EPS)[1:], (X,),
           lambda x: _standard(x, (2,))[1:], grad=False),
    errors=[("shape", lambda M: M.native_layer_norm(M.ones(2), (3,), None, None, 0.0), ShapeError, "[3]")])
row("native_group_norm",
    Sample("weights", lambda M, x, w, b: M.native_group_norm(x, w, b, 2, 4, 3, 2, EPS)[0], (X, W, B),
           lambda *a: _groups(*a)[0]),
    Sample("statistics", lambda M, x, w, b: M.native_group_norm(x, w, b, 2, 4, 3, 2, EPS)[1:], (X, W, B),
           lambda *a: _groups(*a)[1:], grad=False),
    errors=[("sizes", lambda M: M.native_group_norm(M.ones(2, 4), None, None, 2, 4, 3, 2, 0.0), ShapeError,
             "HxW=3")])
row("native_batch_norm",
    Sample("training", lambda M, x, w, b: M.native_batch_norm(x, w, b, None, None, True, 0.1, EPS)[0],
           (X, W, B), lambda *a: _batch(*a)[0]),
    Sample("statistics", lambda M, x, w, b: M.native_batch_norm(x, w, b, None, None, True, 0.1, EPS)[1:],
           (X, W, B), lambda *a: _batch(*a)[1:], grad=False),
    Sample("running", lambda M, x, m, v: M.native_batch_norm(x, None, None, m, v, False, 0.1, EPS),
           (X, MEAN, VAR),
           lambda x, m, v: ((x - m[:, None]) / np.sqrt(v + EPS)[:, None], x[:0, 0, 0], x[:0, 0, 0]),
           grad=False),
    errors=[("shape", lambda M: M.native_batch_norm(M.ones(2), None, None, None, None, True, 0.1, 0.0),
             ShapeError, "at least 2")])


def _kept(M: Any, x: Any) -> tuple:
    """What does not depend on the draw: the output is the input, doubled, where the mask says so."""
    y, mask = M.native_dropout(x, 0.5, True)
    return (y - 2 * x * mask).abs().max(), mask.dtype == M.bool


row("native_dropout",
    Sample("mask", _kept, (X,), lambda x: (np.float64(0), True), grad=False),
    Sample("evaluation", lambda M, x: M.native_dropout(x, 0.5, False), (X,),
           lambda x: (x, np.ones(x.shape, bool)), grad=False),
    errors=[("p", lambda M: M.native_dropout(M.ones(2), 2.0, True), ValueError, "2.0")])
row("dropout_",
    Sample("all", lambda M, x: M.dropout_(x * 1, 1.0, True), (X,), lambda x: 0 * x, torch=False,
           why="it takes whole numbers, too"),
    Sample("none", lambda M, x: M.dropout_(x * 1, 0.5, False), (X,), lambda x: x),
    errors=[("p", lambda M: M.dropout_(M.ones(2), 2.0, True), ValueError, "2.0")])
for _name in ("dropout", "alpha_dropout", "feature_alpha_dropout"):
    row(_name,
        Sample("training", lambda M, x, n=_name: 0 * M.isfinite(getattr(M, n)(x, 0.5, True)), (X,),
               lambda x: np.zeros(x.shape, np.int64), grad=False),
        Sample("evaluation", lambda M, x, n=_name: getattr(M, n)(x, 0.5, False), (X,), lambda x: x),
        Sample("p=0", lambda M, x, n=_name: getattr(M, n)(x, 0.0, True), (X,), lambda x: x),
        errors=[("p", lambda M, n=_name: getattr(M, n)(M.ones(2, 2), 2.0, True), ValueError, "2.0")])
row("embedding",
    Sample("rows", lambda M, w, i: M.embedding(w, i), (X[0], np.array([3, 0, 3])), lambda w, i: w[i]),
    errors=[("outside", lambda M: M.embedding(M.ones(2, 1), M.tensor([2])), IndexError, "2")])
row("constant_pad_nd",
    Sample("number", lambda M, x: M.constant_pad_nd(x, (1, 0, 0, 2), 0.5), (X,),
           lambda x: np.pad(x, ((0, 0), (0, 2), (1, 0)), constant_values=0.5)),
    errors=[("odd", lambda M: M.constant_pad_nd(M.ones(2), (1,)), ValueError, "pairs")])


def _sampler(name: str, x: np.ndarray, grid: np.ndarray) -> None:
    def reference(mode: int, padding: int) -> Any:
        import framework as fw

        words = ("bilinear", "nearest", "bicubic")[mode], ("zeros", "border", "reflection")[padding]
        return lambda x, g: fw.nn.functional.grid_sample(fw.tensor(x), fw.tensor(g), *words, True).numpy()

    row(name, *[Sample(f"{mode} {padding}",
                       lambda M, x, g, m=mode, p=padding: getattr(M, name)(x, g, m, p, True), (x, grid),
                       reference(mode, padding), order=1) for mode, padding in ((0, 0), (0, 2))],
        errors=[("mode", lambda M: getattr(M, name)(M.ones(*x.shape), M.ones(*grid.shape), 5, 0, True),
                 ValueError, "interpolation_mode")])


_sampler("grid_sampler", IMAGE, GRID)
_sampler("grid_sampler_2d", IMAGE, GRID)
_sampler("grid_sampler_3d", VOLUME, PLACES)
