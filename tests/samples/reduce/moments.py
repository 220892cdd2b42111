"""Rows of ops/reduce/moments.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, normal, positive, row

M23, M234 = normal(2, 3), normal(2, 3, 4)
EMPTY = np.zeros((2, 0, 3))
EQUAL = np.array([[2.0, 2.0, 2.0], [1.0, 3.0, 5.0]])
ZERO_ROW = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, -4.0]])


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

# -- norms -----------------------------------------------------------------------------------------


def _norm(x: np.ndarray, p: float, axis: Any = None, keepdims: bool = False) -> Any:
    x = np.abs(x)
    if np.isinf(p):
        return (np.max if p > 0 else np.min)(x, axis=axis, keepdims=keepdims)
    if p == 0:
        return (x != 0).sum(axis=axis, keepdims=keepdims).astype(float)
    with np.errstate(divide="ignore"):
        return (x ** p).sum(axis=axis, keepdims=keepdims) ** (1 / p)


def _order(p: float) -> Sample:
    if p in (1, np.inf, -np.inf):  # linear in pieces: squares give a second derivative to look at
        return Sample(f"order {p}", lambda M, x: M.linalg.vector_norm(x * x - 1, p, dim=1), (M234,),
                      lambda x: _norm(x * x - 1, p, 1))
    return Sample(f"order {p}", lambda M, x: M.linalg.vector_norm(x, p, dim=1), (M234,),
                  lambda x: _norm(x, p, 1))


row("vector_norm",
    Sample("all", lambda M, x: M.linalg.vector_norm(x), (M234,), lambda x: _norm(x, 2)),
    Sample("keepdim", lambda M, x: M.linalg.vector_norm(x, 3, dim=(0, -1), keepdim=True), (M234,),
           lambda x: _norm(x, 3, (0, 2), True)),
    *[_order(p) for p in (0, 0.5, 1, 1.5, 2, 2.5, 3, 4, -1, -2.5, np.inf, -np.inf)],
    Sample("0-dim", lambda M, x: M.linalg.vector_norm(x), (np.array(-2.0),), np.abs),
    Sample("empty", lambda M, x: M.linalg.vector_norm(x, 2, dim=1), (EMPTY,),
           lambda x: np.zeros((2, 3)), grad=False),
    Sample("dtype", lambda M, x: M.linalg.vector_norm(x, 2, dtype=M.float64), (M23,),
           lambda x: _norm(x, 2)),
    Sample("some zeros", lambda M, x: M.linalg.vector_norm(x, 2), (np.array([3.0, 0.0, -4.0]),),
           lambda x: 5.0),
    Sample("some zeros, order 3", lambda M, x: M.linalg.vector_norm(x, 3), (np.array([3.0, 0.0, -4.0]),),
           lambda x: _norm(x, 3)),
    Sample("zero vector", lambda M, x: M.linalg.vector_norm(x, 2, dim=1), (ZERO_ROW,),
           lambda x: _norm(x, 2, 1), grad=False, why="a kink at 0"),
    errors=[("int", lambda M: M.linalg.vector_norm(M.tensor([1, 2])), TypeError, "floating"),
            ("word", lambda M: M.linalg.vector_norm(M.ones(2), "fro"), TypeError, "number"),
            ("inf of nothing", lambda M: M.linalg.vector_norm(M.ones(0), float("inf")), ValueError,
             "empty"),
            ("dim out of range", lambda M: M.linalg.vector_norm(M.ones(2), 2, 1), IndexError, "dim=1")],
    namespace="linalg")
row("norm",
    Sample("default", lambda M, x: M.norm(x), (M234,), lambda x: _norm(x, 2)),
    Sample("method", lambda M, x: (x * x).norm(1, 0), (M23,), lambda x: _norm(x * x, 1, 0)),
    Sample("fro", lambda M, x: M.norm(x, "fro", dim=(0, 1), keepdim=True), (M234,),
           lambda x: _norm(x, 2, (0, 1), True)),
    Sample("inf", lambda M, x: M.norm(x * x, p=float("inf"), dim=-1), (M234,),
           lambda x: _norm(x * x, np.inf, -1)),
    Sample("nuc", lambda M, x: M.norm(x, "nuc"), (M23,), lambda x: np.linalg.norm(x, "nuc")),
    Sample("nuc dims", lambda M, x: x.norm("nuc", (0, 2), keepdim=True), (M234,),
           lambda x: np.linalg.norm(x, "nuc", (0, 2), keepdims=True)),
    Sample("0", lambda M, x: M.norm(x, 0), (ZERO_ROW,), lambda x: 2.0, grad=False, why="a step at 0"),
    Sample("dtype", lambda M, x: M.norm(x, dtype=M.float64), (M23,),
           lambda x: _norm(x, 2)),
    errors=[("int", lambda M: M.norm(M.tensor([1, 2])), TypeError, "floating"),
            ("word", lambda M: M.norm(M.ones(2, 2), "two"), ValueError, "'nuc'"),
            ("nuc of a stack", lambda M: M.norm(M.ones(2, 2, 2), "nuc"), ValueError, "two dimensions in dim"),
            ("dim out of range", lambda M: M.norm(M.ones(2), 2, 1), IndexError, "dim=1")])

# -- histograms ------------------------------------------------------------------------------------

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
