"""Rows of ops/reduce/quantiles.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

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
