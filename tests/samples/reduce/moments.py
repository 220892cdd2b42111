"""Rows of ops/reduce/moments.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, normal, positive, row

M23, M234 = normal(2, 3), normal(2, 3, 4)
EMPTY = np.zeros((2, 0, 3))
EQUAL = np.array([[2.0, 2.0, 2.0], [1.0, 3.0, 5.0]])


def _moment(name: str, f: Any) -> None:
    row(name,
        Sample("all", lambda M, x: getattr(M, name)(x), (M234,), lambda x: f(x, ddof=1)),
        Sample("method", lambda M, x: getattr(x, name)(), (M23,), lambda x: f(x, ddof=1)),
        Sample("dim", lambda M, x: getattr(M, name)(x, 1), (M234,), lambda x: f(x, axis=1, ddof=1)),
        Sample("several", lambda M, x: getattr(M, name)(x, dim=(0, -1), keepdim=True), (M234,),
               lambda x: f(x, axis=(0, 2), ddof=1, keepdims=True)),
        Sample("correction 0", lambda M, x: getattr(M, name)(x, dim=-1, correction=0), (M234,),
               lambda x: f(x, axis=-1)),
        Sample("correction 2", lambda M, x: getattr(M, name)(x, correction=2), (M234,),
               lambda x: f(x, ddof=2)),
        Sample("biased", lambda M, x: getattr(M, name)(x, 1, False), (M234,), lambda x: f(x, axis=1)),
        Sample("biased of all", lambda M, x: getattr(M, name)(x, False), (M23,), f),
        Sample("unbiased keepdim", lambda M, x: getattr(M, name)(x, 1, True, True), (M23,),
               lambda x: f(x, axis=1, ddof=1, keepdims=True)),
        Sample("one element", lambda M, x: getattr(M, name)(x, 0), (normal(1, 3),),
               lambda x: np.full(3, np.nan), grad=False, torch=False, why="PyTorch warns"),
        Sample("0-dim", lambda M, x: getattr(M, name)(x, correction=0), (np.array(2.0),),
               lambda x: 0.0, grad=False),
        Sample("empty", lambda M, x: getattr(M, name)(x), (EMPTY,), lambda x: np.nan, grad=False,
               torch=False, why="PyTorch warns"),
        Sample("all equal", lambda M, x: getattr(M, name)(x, 1), (EQUAL,),
               lambda x: f(x, axis=1, ddof=1), grad=name == "var", why="a kink at 0 for std"),
        errors=[("int", lambda M: getattr(M, name)(M.tensor([1, 2])), TypeError, "floating"),
                ("both", lambda M: getattr(M, name)(M.ones(2), 0, True, correction=1), TypeError,
                 "not both"),
                ("dim out of range", lambda M: getattr(M, name)(M.ones(2), 1), IndexError, "dim=1")])


def _moment_mean(name: str, f: Any) -> None:
    row(name,
        Sample("all", lambda M, x: getattr(M, name)(x), (M23,), lambda x: (f(x, ddof=1), x.mean())),
        Sample("dim", lambda M, x: getattr(M, name)(x, 1, keepdim=True), (M234,),
               lambda x: (f(x, axis=1, ddof=1, keepdims=True), x.mean(1, keepdims=True))),
        Sample("correction 0", lambda M, x: getattr(M, name)(x, dim=(0, 2), correction=0), (M234,),
               lambda x: (f(x, axis=(0, 2)), x.mean((0, 2)))),
        Sample("biased", lambda M, x: getattr(M, name)(x, False), (M23,), lambda x: (f(x), x.mean())),
        errors=[("int", lambda M: getattr(M, name)(M.tensor([1, 2])), TypeError, "floating"),
                ("dim out of range", lambda M: getattr(M, name)(M.ones(2), 1), IndexError, "dim=1")])


_moment("var", np.var)
_moment("std", np.std)
_moment_mean("var_mean", np.var)
_moment_mean("std_mean", np.std)
M34 = normal(3, 4)
T = integers(4, low=1, high=4)
row("cov",
    Sample("plain", lambda M, x: M.cov(x), (M34,), np.cov),
    Sample("vector", lambda M, x: x.cov(), (M34[0],), np.cov),
    Sample("one row", lambda M, x: M.cov(x), (M34[:1],), np.cov),
    Sample("correction", lambda M, x: M.cov(x, correction=0), (M34,), lambda x: np.cov(x, ddof=0)),
    Sample("weights", lambda M, x, f, a: M.cov(x, fweights=f, aweights=a), (M34, T, positive(4)),
           lambda x, f, a: np.cov(x, fweights=f, aweights=a)),
    Sample("frequencies", lambda M, x, f: M.cov(x, fweights=f), (M34, T), lambda x, f: np.cov(x, fweights=f)),
    errors=[("dims", lambda M: M.cov(M.ones(1, 1, 1)), ValueError, "at most 2"),
            ("weights", lambda M: M.cov(M.ones(2, 2), aweights=M.ones(3)), ValueError, "aweights")])
row("corrcoef", Sample("plain", lambda M, x: M.corrcoef(x), (M34,), np.corrcoef),
    Sample("vector", lambda M, x: x.corrcoef(), (M34[0],), np.corrcoef),
    errors=[("dims", lambda M: M.corrcoef(M.ones(1, 1, 1)), ValueError, "at most 2")])
