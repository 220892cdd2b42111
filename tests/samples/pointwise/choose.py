"""Rows of ops/pointwise/choose.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, integers, masks, normal, positive, row

A, POS = normal(2, 3), positive(2, 3)
V, COLUMN = normal(3, seed=2), normal(2, 1, seed=3)
EMPTY = np.zeros((2, 0))
N, BITS = integers(2, 3, low=1), masks(2, 3)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 1.5])
row("where",
    Sample("tensors", lambda M, c, x, y: M.where(c, x, y), (BITS, A, POS), np.where),
    Sample("broadcast", lambda M, c, x, y: M.where(c, x, y), (BITS[0], A, COLUMN), np.where),
    Sample("number right", lambda M, c, x: M.where(c, x, 0.0), (BITS, A), lambda c, x: np.where(c, x, 0.0)),
    Sample("number left", lambda M, c, x: M.where(c, 1.0, x), (BITS, A), lambda c, x: np.where(c, 1.0, x)),
    Sample("comparison", lambda M, x: M.where(x > 0, x, -2 * x), (A,), lambda x: np.where(x > 0, x, -2 * x)),
    Sample("0-dim", lambda M, c, x, y: M.where(c, x, y), (BITS[0, 0], A[0, 0], A[1, 1]), np.where),
    Sample("empty", lambda M, c, x, y: M.where(c, x, y), (EMPTY.astype(bool), EMPTY, COLUMN), np.where),
    Sample("ints", lambda M, c, x: M.where(c, x, 0), (BITS, N), lambda c, x: np.where(c, x, 0)),
    Sample("int and float", lambda M, c, x, y: M.where(c, x, y), (BITS, N, A), np.where),
    Sample("nan not chosen", lambda M, x: M.where(x > 0, M.sqrt(x), 0.0).sum(), (A,),
           lambda x: np.sqrt(x[x > 0]).sum(), torch=False, why="PyTorch gives nan gradients here"),
    errors=[("condition", lambda M: M.where(M.ones(2), M.ones(2), 0.0), TypeError, "must be bool"),
            ("not a tensor", lambda M: M.where(True, M.ones(2), 0.0), TypeError, "must be a Tensor"),
            ("shapes", lambda M: M.where(M.ones(2) > 0, M.ones(3), 0.0), ValueError, "broadcast")])
row("where", Sample("method", lambda M, c, x, y: x.where(c, y), (BITS, A, V), np.where),
    Sample("number", lambda M, c, x: x.where(c, -1.0), (BITS, A), lambda c, x: np.where(c, x, -1.0)),
    namespace="", errors=[("condition", lambda M: M.ones(2).where(M.ones(2), 0.0), TypeError, "bool")])
row("masked_fill",
    Sample("number", lambda M, x, m: M.masked_fill(x, m, -1.5), (A, BITS), lambda x, m: np.where(m, -1.5, x)),
    Sample("broadcast", lambda M, x, m: x.masked_fill(m, 0.0), (A, BITS[0]),
           lambda x, m: np.where(m, 0.0, x)),
    Sample("-inf", lambda M, x, m: M.masked_fill(x, m, float("-inf")), (A, BITS),
           lambda x, m: np.where(m, -np.inf, x), grad=False),
    Sample("0-dim tensor", lambda M, x, m, v: M.masked_fill(x, m, v), (A, BITS, np.array(2.0)),
           lambda x, m, v: np.where(m, v, x)),
    Sample("in place", lambda M, x, m: x.clone().masked_fill_(m, 3.0), (A, BITS),
           lambda x, m: np.where(m, 3.0, x)),
    Sample("int", lambda M, x, m: M.masked_fill(x, m, 7), (N, BITS), lambda x, m: np.where(m, 7, x)),
    errors=[("mask", lambda M: M.masked_fill(M.ones(2), M.ones(2), 0.0), TypeError, "bool"),
            ("value", lambda M: M.masked_fill(M.ones(2), M.ones(2) > 0, M.ones(2)), ValueError, "0-dim"),
            ("shapes", lambda M: M.masked_fill(M.ones(2), M.ones(3) > 0, 0.0), ValueError, "broadcast")])
LOW, HIGH = np.array([-0.5, -0.1, -2.0]), np.array([0.6, 0.2, 2.0])
row("clamp",
    Sample("both", lambda M, x: M.clamp(x, -0.5, 0.7), (A,), lambda x: np.clip(x, -0.5, 0.7)),
    Sample("low", lambda M, x: x.clamp(min=-0.2), (A,), lambda x: np.maximum(x, -0.2)),
    Sample("high", lambda M, x: M.clip(x, max=0.2), (A,), lambda x: np.minimum(x, 0.2)),
    Sample("tensors", lambda M, x, a, b: M.clamp(x, a, b), (A, LOW, HIGH), np.clip),
    Sample("crossed tensors", lambda M, x, a, b: M.clamp(x, a, b), (A, HIGH, LOW), np.clip),
    Sample("tensors and nan", lambda M, x, a, b: M.clamp(x, a, b), (SPECIAL, SPECIAL[::-1], SPECIAL),
           lambda x, a, b: np.minimum(np.maximum(x, a), b), grad=False),
    Sample("whole tensors", lambda M, x: x.clone().clamp_(x - 1, x // 2), (N,),
           lambda x: np.clip(x, x - 1, x // 2)),
    Sample("at the limit", lambda M, x: M.clamp(x, 1.0, 2.0), (np.array([1.0, 2.0, 3.0]),),
           lambda x: np.clip(x, 1, 2), grad=False),
    Sample("in place", lambda M, x: x.clone().clamp_(-0.5, 0.7), (A,), lambda x: np.clip(x, -0.5, 0.7)),
    Sample("ints", lambda M, x: M.clamp(x, 2, 5), (N,), lambda x: np.clip(x, 2, 5)),
    Sample("int, float limit", lambda M, x: M.clamp(x, min=2.5), (N,),
           lambda x: np.maximum(x, 2.5).astype(np.float32)),
    Sample("int limit", lambda M, x: M.clamp(x, min=0), (A,), lambda x: np.maximum(x, 0)),
    Sample("nan", lambda M, x: M.clamp(x, -1.0, 1.0), (SPECIAL,), lambda x: np.clip(x, -1, 1), grad=False),
    Sample("empty", lambda M, x: M.clamp(x, 0.0), (EMPTY,), lambda x: x),
    errors=[("no limits", lambda M: M.clamp(M.ones(2)), ValueError, "at least one"),
            ("not a tensor", lambda M: M.clamp(1.0, 0.0), TypeError, "must be a Tensor")])
row("clamp_min",
    Sample("number", lambda M, x: M.clamp_min(x, -0.2), (A,), lambda x: np.maximum(x, -0.2)),
    Sample("method", lambda M, x: x.clamp_min(0.1), (A,), lambda x: np.maximum(x, 0.1)),
    Sample("in place", lambda M, x: x.clone().clamp_min_(0.1), (A,), lambda x: np.maximum(x, 0.1)),
    Sample("tensor", lambda M, x, a: M.clamp_min(x, a), (A, LOW), np.maximum),
    errors=[("not a tensor", lambda M: M.clamp_min(1.0, 0.0), TypeError, "must be a Tensor")])
row("clamp_max",
    Sample("number", lambda M, x: M.clamp_max(x, -0.2), (A,), lambda x: np.minimum(x, -0.2)),
    Sample("method", lambda M, x: x.clamp_max(0.1), (A,), lambda x: np.minimum(x, 0.1)),
    Sample("in place", lambda M, x: x.clone().clamp_max_(0.1), (A,), lambda x: np.minimum(x, 0.1)),
    Sample("tensor", lambda M, x, a: M.clamp_max(x, a), (A, HIGH), np.minimum),
    errors=[("not a tensor", lambda M: M.clamp_max(1.0, 0.0), TypeError, "must be a Tensor")])
row("nan_to_num",
    Sample("numbers", lambda M, x: M.nan_to_num(x, 1.0, 2.0, 3.0), (SPECIAL,),
           lambda x: np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0), grad=False),
    Sample("nan only", lambda M, x: x.nan_to_num(posinf=0.0, neginf=-1.0), (SPECIAL,),
           lambda x: np.nan_to_num(x, posinf=0.0, neginf=-1.0), grad=False),
    Sample("gradient", lambda M, x: M.nan_to_num(x), (A,), lambda x: x),
    Sample("in place", lambda M, x: x.clone().nan_to_num_(0.5), (A,), lambda x: x),
    Sample("int", lambda M, x: M.nan_to_num(x), (N,), lambda x: x),
    Sample("empty", lambda M, x: M.nan_to_num(x), (EMPTY,), lambda x: x),
    errors=[("not a tensor", lambda M: M.nan_to_num([1.0]), TypeError, "must be a Tensor")])
WIDE = normal(3, 4)


def _diagonal(x: Any, wrap: bool = False) -> Any:
    out = x.copy()
    np.fill_diagonal(out, 2.5, wrap)
    return out


row("fill_diagonal_",
    Sample("wide", lambda M, x: (x * 1.0).fill_diagonal_(2.5), (WIDE,), _diagonal),
    Sample("tall", lambda M, x: (x * 1.0).fill_diagonal_(2.5), (normal(5, 2),), _diagonal),
    Sample("wrapped", lambda M, x: (x * 1.0).fill_diagonal_(2.5, wrap=True), (normal(7, 2),),
           lambda x: _diagonal(x, True)),
    Sample("cube", lambda M, x: (x * 1.0).fill_diagonal_(2.5), (normal(2, 2, 2),), _diagonal),
    namespace="", errors=[
        ("vector", lambda M: M.ones(2).fill_diagonal_(1), ShapeError, "matrix"),
        ("box", lambda M: M.ones(2, 2, 3).fill_diagonal_(1), ShapeError, "one size")])
