"""Rows of ops/reduce/histograms.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, integers, normal, positive, row

A, M234 = normal(3, 4), normal(2, 3, 4)
row("bincount",
    Sample("counts", lambda M, x: M.bincount(x), (integers(12, high=5),), np.bincount),
    Sample("minlength", lambda M, x: x.bincount(minlength=20), (integers(12),),
           lambda x: np.bincount(x, minlength=20)),
    Sample("weights", lambda M, x, w: M.bincount(x, w), (integers(12), positive(12)), np.bincount,
           grad=False),
    Sample("int weights", lambda M, x, w: M.bincount(x, w), (integers(6), integers(6, seed=2)),
           np.bincount),
    Sample("empty", lambda M, x: M.bincount(x), (np.zeros(0, int),), lambda x: np.zeros(0, int)),
    errors=[("float", lambda M: M.bincount(M.ones(2)), TypeError, "integer"),
            ("matrix", lambda M: M.bincount(M.tensor([[1]])), ValueError, "vector"),
            ("negative", lambda M: M.bincount(M.tensor([-1])), ValueError, "negative"),
            ("weights", lambda M: M.bincount(M.tensor([1]), M.ones(2)), ValueError, "weights")])
row("histc",
    Sample("range", lambda M, x: M.histc(x, 4, -1.0, 1.0), (M234,),
           lambda x: np.histogram(x, 4, (-1.0, 1.0))[0].astype(float), grad=False),
    Sample("its own range", lambda M, x: x.histc(bins=5), (M234,), lambda x: np.histogram(x, 5)[0] * 1.0,
           grad=False),
    Sample("edges", lambda M, x: M.histc(x, bins=4, min=0, max=4), (np.array([0.0, 1.0, 4.0, 5.0]),),
           lambda x: np.array([1.0, 1.0, 0.0, 1.0]), grad=False),
    Sample("all equal", lambda M, x: M.histc(x, 4), (np.ones(3),), lambda x: np.array([0.0, 0.0, 3.0, 0.0]),
           grad=False),
    Sample("empty", lambda M, x: M.histc(x, 2), (np.zeros(0),), lambda x: np.zeros(2), grad=False),
    errors=[("int", lambda M: M.histc(M.tensor([1, 2])), TypeError, "floating"),
            ("bins", lambda M: M.histc(M.ones(2), 0), ValueError, "bins"),
            ("range", lambda M: M.histc(M.ones(2), 2, 1, 0), ValueError, "range"),
            ("nan", lambda M: M.histc(M.tensor([float("nan")])), ValueError, "finite")])


def _hist(x: Any, bins: Any = 4, **more: Any) -> tuple:
    return tuple(np.asarray(part, x.dtype) for part in np.histogram(x, bins, **more))


def _cells(x: np.ndarray, *args: Any, **settings: Any) -> tuple:
    hist, edges = np.histogramdd(x, *args, **settings)
    return (hist, *edges)


row("histogramdd",
    *[Sample(label, lambda M, x, s=s: [t for f in M.histogramdd(x, 3, **s) for t in
                                       (f if isinstance(f, tuple | list) else (f,))],
             (A,), lambda x, t=t: _cells(x, 3, **t), grad=False)
      for label, s, t in (("number", {}, {}), ("density", {"density": True}, {"density": True}),
                          ("range", {"range": [-1.0, 1, -2, 2, -1, 1, 0, 1]},
                           {"range": [(-1, 1), (-2, 2), (-1, 1), (0, 1)]}))],
    Sample("edges and weights", lambda M, x, w, e: M.histogramdd(x[:, :2], (e, e), weight=w).hist,
           (A, positive(3), np.array([-1.0, 0, 0.5, 2])),
           lambda x, w, e: _cells(x[:, :2], (e, e), weights=w)[0], grad=False),
    errors=[("vector", lambda M: M.histogramdd(M.ones(2), 2), ShapeError, "rows"),
            ("bins", lambda M: M.histogramdd(M.ones(2, 3), [2, 2]), ShapeError, "3 bins"),
            ("falling", lambda M: M.histogramdd(M.ones(2, 1), [M.tensor([1.0, 0.0])]), ValueError, "rise")])
row("histogram",
    Sample("plain", lambda M, x: tuple(M.histogram(x, 4)), (A,), _hist, grad=False),
    Sample("range", lambda M, x: tuple(M.histogram(x, 3, range=(-1, 1))), (A,),
           lambda x: _hist(x, 3, range=(-1, 1)), grad=False),
    Sample("edges", lambda M, x, e: tuple(M.histogram(x, e)), (A, np.array([-1.0, 0, 0.5, 2])),
           lambda x, e: _hist(x, e), grad=False),
    Sample("density", lambda M, x, w: tuple(M.histogram(x, 4, weight=w, density=True)), (A, positive(3, 4)),
           lambda x, w: _hist(x, 4, weights=w, density=True), grad=False),
    errors=[("bins", lambda M: M.histogram(M.ones(2), 0), ValueError, "bins=0")])
