"""Rows of ops/reduce/sort.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, masks, normal, row

M23, M234 = normal(2, 3), normal(2, 3, 4)
EMPTY = np.zeros((2, 0, 3))
GAPS = np.array([[2.0, np.nan, 1.0, 3.0], [np.nan, 0.0, np.nan, -1.0]])
TIES = np.array([[2.0, 1.0, 2.0, 1.0, 2.0]])


def _sorted(x: np.ndarray, axis: int = -1, descending: bool = False) -> tuple:
    if descending:
        at = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        at = np.argsort(x, axis, kind="stable")
    return np.take_along_axis(x, at, axis), at


def _dim_error(name: str) -> list:
    return [("dim out of range", lambda M: getattr(M, name)(M.ones(2), dim=1), IndexError, "dim=1"),
            ("not a tensor", lambda M: getattr(M, name)([1.0]), TypeError, "must be a Tensor")]


row("sort",
    Sample("last", lambda M, x: M.sort(x), (M234,), _sorted),
    Sample("dim", lambda M, x: M.sort(x, 1), (M234,), lambda x: _sorted(x, 1)),
    Sample("descending", lambda M, x: x.sort(dim=0, descending=True), (M234,),
           lambda x: _sorted(x, 0, True)),
    Sample("named", lambda M, x: M.sort(x).values, (M23,), np.sort),
    Sample("stable", lambda M, x: M.sort(x, stable=True), (TIES,), _sorted, grad=False),
    Sample("stable descending", lambda M, x: M.sort(x, dim=-1, stable=True, descending=True), (TIES,),
           lambda x: _sorted(x, -1, True), grad=False),
    Sample("nan last", lambda M, x: M.sort(x, dim=-1, stable=True), (GAPS,), _sorted, grad=False),
    Sample("nan first", lambda M, x: M.sort(x, dim=-1, stable=True, descending=True), (GAPS,),
           lambda x: _sorted(x, -1, True), grad=False),
    Sample("int", lambda M, x: M.sort(x, dim=0, stable=True), (integers(4, 3),),
           lambda x: _sorted(x, 0)),
    Sample("bool", lambda M, x: M.sort(x, dim=0, stable=True), (masks(6),), lambda x: _sorted(x, 0)),
    Sample("0-dim", lambda M, x: M.sort(x), (np.array(2.0),), lambda x: (x, np.array(0))),
    Sample("empty", lambda M, x: M.sort(x, 1), (EMPTY,), lambda x: (x, x.astype(int))),
    errors=_dim_error("sort"))
row("argsort",
    Sample("last", lambda M, x: M.argsort(x), (M234,), lambda x: np.argsort(x)),
    Sample("dim", lambda M, x: x.argsort(dim=1, descending=True), (M234,),
           lambda x: np.argsort(-x, 1)),
    Sample("stable", lambda M, x: M.argsort(x, stable=True), (TIES,), lambda x: _sorted(x)[1]),
    Sample("0-dim", lambda M, x: M.argsort(x), (np.array(2.0),), lambda x: 0),
    errors=_dim_error("argsort"))
row("msort",
    Sample("matrix", lambda M, x: M.msort(x), (normal(4, 3),), lambda x: np.sort(x, 0)),
    Sample("method", lambda M, x: x.msort(), (normal(5),), lambda x: np.sort(x, 0)),
    Sample("int", lambda M, x: M.msort(x), (integers(4, 3),), lambda x: np.sort(x, 0)),
    errors=[("not a tensor", lambda M: M.msort([1.0]), TypeError, "must be a Tensor")])


def _top(k: int, axis: int = -1, largest: bool = True) -> Any:
    def reference(x: np.ndarray) -> tuple:
        return tuple(np.take(a, range(k), axis) for a in _sorted(x, axis, largest))
    return reference


row("topk",
    Sample("largest", lambda M, x: M.topk(x, 2), (M234,), _top(2)),
    Sample("smallest", lambda M, x: M.topk(x, 2, 1, False), (M234,), _top(2, 1, False)),
    Sample("all of them", lambda M, x: x.topk(k=3, dim=1), (M234,), _top(3, 1)),
    Sample("few of many", lambda M, x: M.topk(x, 3), (normal(2, 30),), _top(3)),
    Sample("few smallest of many", lambda M, x: M.topk(x, 3, 0, False), (normal(30, 2),),
           _top(3, 0, False)),
    Sample("named", lambda M, x: M.topk(x, 1).indices, (M23,), lambda x: x.argmax(-1, keepdims=True)),
    Sample("none", lambda M, x: M.topk(x, 0), (M23,), lambda x: (np.zeros((2, 0)),
                                                                  np.zeros((2, 0), int))),
    Sample("nan first", lambda M, x: M.topk(x, 2).values, (GAPS,),
           lambda x: _sorted(x, -1, True)[0][:, :2], grad=False),
    Sample("int", lambda M, x: M.topk(x, 2).values, (integers(3, 5),),
           lambda x: _sorted(x, -1, True)[0][:, :2]),
    Sample("0-dim", lambda M, x: M.topk(x, 1), (np.array(2.0),), lambda x: (x, np.array(0))),
    errors=[("k", lambda M: M.topk(M.ones(2), 3), ValueError, "k=3"),
            ("negative k", lambda M: M.topk(M.ones(2), -1), ValueError, "k=-1"),
            ("dim", lambda M: M.topk(M.ones(2), 1, dim=1), IndexError, "dim=1")])


def _kth(k: int, axis: int, keepdims: bool = False) -> Any:
    def reference(x: np.ndarray) -> tuple:
        picked = tuple(np.take(a, [k], axis) for a in _sorted(x, axis))
        return picked if keepdims else tuple(np.squeeze(p, axis) for p in picked)
    return reference


row("kthvalue",
    Sample("last", lambda M, x: M.kthvalue(x, 2), (M234,), _kth(1, -1)),
    Sample("dim", lambda M, x: x.kthvalue(3, 1), (M234,), _kth(2, 1)),
    Sample("keepdim", lambda M, x: M.kthvalue(x, k=1, dim=0, keepdim=True), (M234,), _kth(0, 0, True)),
    Sample("nan is largest", lambda M, x: M.kthvalue(x, 3, 0), (np.array([2.0, np.nan, 1.0]),),
           lambda x: (np.nan, 1), grad=False),
    Sample("int", lambda M, x: M.kthvalue(x, 2).values, (integers(3, 5),), lambda x: np.sort(x)[:, 1]),
    Sample("0-dim", lambda M, x: M.kthvalue(x, 1), (np.array(2.0),), lambda x: (x, np.array(0))),
    errors=[("k 0", lambda M: M.kthvalue(M.ones(2), 0), ValueError, "k=0"),
            ("k", lambda M: M.kthvalue(M.ones(2), 3), ValueError, "k=3"),
            ("empty", lambda M: M.kthvalue(M.ones(0), 1), ValueError, "k=1"),
            ("dim", lambda M: M.kthvalue(M.ones(2), 1, 1), IndexError, "dim=1")])
row("median",
    Sample("all, odd", lambda M, x: M.median(x), (normal(3, 3),), np.median),
    Sample("all, even", lambda M, x: x.median(), (M23,), lambda x: np.sort(x.ravel())[2]),
    Sample("dim", lambda M, x: M.median(x, 1), (M234,), _kth(1, 1)),
    Sample("even dim", lambda M, x: M.median(x, -1), (M234,), _kth(1, -1)),
    Sample("keepdim", lambda M, x: M.median(x, dim=0, keepdim=True), (M234,), _kth(0, 0, True)),
    Sample("nan wins", lambda M, x: M.median(x), (GAPS,), lambda x: np.nan, grad=False),
    Sample("nan wins along dim", lambda M, x: M.median(x, 0), (GAPS,),
           lambda x: (np.array([np.nan, np.nan, np.nan, -1.0]), np.array([1, 0, 1, 1])), grad=False),
    Sample("ties share", lambda M, x: M.median(x), (TIES,), lambda x: 2.0, order=1, grad=False),
    Sample("int", lambda M, x: M.median(x), (integers(3, 5),), lambda x: int(np.median(x))),
    Sample("0-dim", lambda M, x: M.median(x, 0), (np.array(2.0),), lambda x: (x, np.array(0))),
    Sample("nothing", lambda M, x: M.median(x), (EMPTY,), lambda x: np.nan, grad=False),
    errors=[("dim", lambda M: M.median(M.ones(2), 1), IndexError, "dim=1"),
            ("empty dim", lambda M: M.median(M.ones(0), 0), ValueError, "empty"),
            ("not a tensor", lambda M: M.median([1.0]), TypeError, "must be a Tensor")])
