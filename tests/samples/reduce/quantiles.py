"""Rows of ops/reduce/quantiles.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, integers, normal, positive, row

A, Q = normal(3, 4), np.array([0.1, 0.45, 0.95])
HOLES = np.where(np.arange(12).reshape(3, 4) % 5 == 1, np.nan, A)
N = np.array([[3, 1, 3, 2], [1, 1, 2, 2], [5, 4, 4, 4]])

for _name, _ref in (("quantile", np.quantile), ("nanquantile", np.nanquantile)):
    def _call(M: Any, x: Any, q: Any, name: str = _name, **more: Any) -> Any:
        return getattr(M, name)(x, q, **more)
    row(_name,
        Sample("number", lambda M, x, f=_call: f(M, x, 0.3), (A,), lambda x, f=_ref: f(x, 0.3)),
        Sample("several", lambda M, x, q, f=_call: f(M, x, q), (A, Q), lambda x, q, f=_ref: f(x, q)),
        Sample("dim", lambda M, x, q, f=_call: f(M, x, q, dim=0), (A, Q),
               lambda x, q, f=_ref: f(x, q, axis=0)),
        Sample("keepdim", lambda M, x, f=_call: f(M, x, 0.6, dim=1, keepdim=True), (A,),
               lambda x, f=_ref: f(x, 0.6, axis=1, keepdims=True)),
        Sample("keepdim all", lambda M, x, f=_call: f(M, x, 0.6, keepdim=True), (A,),
               lambda x, f=_ref: f(x, 0.6, keepdims=True)),
        Sample("0-dim", lambda M, x, f=_call: f(M, x, 0.6), (A[0, 0],), lambda x: x),
        *[Sample(how, lambda M, x, f=_call, how=how: f(M, x, 0.4, dim=-1, interpolation=how), (A,),
                 lambda x, f=_ref, how=how: f(x, 0.4, axis=-1, method=how))
          for how in ("lower", "higher", "nearest", "midpoint")],
        Sample("nan", lambda M, x, f=_call: f(M, x, 0.4, dim=1), (HOLES,),
               lambda x, f=_ref: f(x, 0.4, axis=1), grad=False),
        errors=[("q", lambda M, f=_call: f(M, M.ones(2), 1.5), ValueError, "[0, 1]"),
                ("how", lambda M, f=_call: f(M, M.ones(2), 0.5, interpolation="x"), ValueError, "midpoint")])

row("nanmedian",
    Sample("all", lambda M, x: M.nanmedian(x), (A[:, :3],), lambda x: np.nanmedian(x)),
    Sample("nan", lambda M, x: M.nanmedian(x), (HOLES[:, :3],), lambda x: np.sort(x[~np.isnan(x)])[
        ((~np.isnan(x)).sum() - 1) // 2], grad=False),
    Sample("dim", lambda M, x: tuple(M.nanmedian(x, 1)), (A[:, :3],), lambda x: (
        np.median(x, 1), np.argsort(x, 1)[:, 1])),
    Sample("keepdim", lambda M, x: M.nanmedian(x, 0, True)[0], (A,),
           lambda x: np.median(x, 0, keepdims=True)),
    Sample("int", lambda M, x: M.nanmedian(x), (N,), lambda x: np.sort(x.ravel())[(x.size - 1) // 2]),
    errors=[("dim", lambda M: M.nanmedian(M.ones(2), 3), IndexError, "dim=3")])
row("mode",
    Sample("last", lambda M, x: tuple(M.mode(x)), (N,),
           lambda x: (np.array([3, 1, 4]), np.array([2, 1, 3]))),
    Sample("dim", lambda M, x: M.mode(x, 0, True)[0], (N,), lambda x: np.array([[1, 1, 2, 2]])),
    Sample("floats", lambda M, x: x.mode()[0], (A,), lambda x: x.min(-1)),
    Sample("0-dim", lambda M, x: M.mode(x)[0], (A[0, 0],), lambda x: x),
    errors=[("dim", lambda M: M.mode(M.ones(2), 3), IndexError, "dim=3")])
W = integers(4, low=1, high=4)
row("cov",
    Sample("plain", lambda M, x: M.cov(x), (A,), np.cov),
    Sample("vector", lambda M, x: x.cov(), (A[0],), np.cov),
    Sample("one row", lambda M, x: M.cov(x), (A[:1],), np.cov),
    Sample("correction", lambda M, x: M.cov(x, correction=0), (A,), lambda x: np.cov(x, ddof=0)),
    Sample("weights", lambda M, x, f, a: M.cov(x, fweights=f, aweights=a), (A, W, positive(4)),
           lambda x, f, a: np.cov(x, fweights=f, aweights=a)),
    Sample("frequencies", lambda M, x, f: M.cov(x, fweights=f), (A, W), lambda x, f: np.cov(x, fweights=f)),
    errors=[("dims", lambda M: M.cov(M.ones(1, 1, 1)), ValueError, "at most 2"),
            ("weights", lambda M: M.cov(M.ones(2, 2), aweights=M.ones(3)), ValueError, "aweights")])
row("corrcoef", Sample("plain", lambda M, x: M.corrcoef(x), (A,), np.corrcoef),
    Sample("vector", lambda M, x: x.corrcoef(), (A[0],), np.corrcoef),
    errors=[("dims", lambda M: M.corrcoef(M.ones(1, 1, 1)), ValueError, "at most 2")])


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
