"""Rows of ops/reduce/sums.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, masks, normal, row

M23, M234 = normal(2, 3), normal(2, 3, 4)
ZEROS = np.array([[1.5, 0.0, 2.0], [0.0, -1.0, 0.0], [0.5, 2.0, -3.0]])
GAPS = np.where(masks(3, 4), np.nan, normal(3, 4))
EMPTY = np.zeros((2, 0, 3))


def over_dims(name: str, f: Any, x: np.ndarray = M234, **more: Any) -> list[Sample]:
    """A reduction over no, one, a negative, several dims, with keepdim, of 0-dim and ints."""
    def call(**settings: Any) -> Any:
        return lambda M, x: getattr(M, name)(x, **settings)

    def ref(**settings: Any) -> Any:
        return lambda x: f(x, **settings)

    return [
        Sample("all", call(), (x,), ref(), **more),
        Sample("method", lambda M, x: getattr(x, name)(), (x,), ref(), **more),
        Sample("dim", call(dim=1), (x,), ref(axis=1), **more),
        Sample("negative", call(dim=-1, keepdim=True), (x,), ref(axis=-1, keepdims=True), **more),
        Sample("several", call(dim=(0, 2)), (x,), ref(axis=(0, 2)), **more),
        Sample("several-keepdim", call(dim=[-1, 0], keepdim=True), (x,),
               ref(axis=(-1, 0), keepdims=True), **more),
        Sample("0-dim", call(), (np.array(1.5),), ref(), **more),
        Sample("0-dim-dim", call(dim=0), (np.array(1.5),), ref(), **more),
    ]


def dim_errors(name: str) -> list:
    """Dims that are not there, twice there, and what is no tensor must raise."""
    return [
        ("dim out of range", lambda M: getattr(M, name)(M.ones(2, 3), dim=2), IndexError, "dim=2"),
        ("dim twice", lambda M: getattr(M, name)(M.ones(2, 3), dim=(0, -2)), RuntimeError, "twice"),
        ("not a tensor", lambda M: getattr(M, name)([1.0]), TypeError, "must be a Tensor"),
    ]


row("sum", *over_dims("sum", np.sum),
    Sample("empty", lambda M, x: M.sum(x), (EMPTY,), np.sum),
    Sample("empty-dim", lambda M, x: M.sum(x, dim=1), (EMPTY,), lambda x: x.sum(1)),
    Sample("empty-tuple", lambda M, x: M.sum(x, dim=()), (M23,), np.sum),
    Sample("int", lambda M, x: M.sum(x, dim=0), (integers(3, 4),), lambda x: x.sum(0)),
    Sample("bool", lambda M, x: M.sum(x), (masks(3, 4),), np.sum),
    Sample("dtype", lambda M, x: M.sum(x, dim=0, dtype=M.float64), (integers(3, 4),),
           lambda x: x.sum(0).astype(float)),
    errors=dim_errors("sum"))
row("mean", *over_dims("mean", np.mean),
    Sample("empty", lambda M, x: M.mean(x), (EMPTY,), lambda x: np.nan, grad=False),
    Sample("dtype", lambda M, x: M.mean(x, dim=0, dtype=M.float64), (integers(3, 4),),
           lambda x: x.mean(0)),
    errors=[*dim_errors("mean"),
            ("int", lambda M: M.mean(M.tensor([1, 2])), TypeError, "must be floating")])
row("nansum",
    Sample("all", lambda M, x: M.nansum(x), (GAPS,), np.nansum, grad=False),
    Sample("dim", lambda M, x: M.nansum(x, dim=1, keepdim=True), (GAPS,),
           lambda x: np.nansum(x, axis=1, keepdims=True), grad=False),
    Sample("no nan", lambda M, x: M.nansum(x, dim=(0, 1)), (M234,),
           lambda x: x.sum((0, 1))),
    Sample("gradient skips nan", lambda M, x: M.nansum(M.where(x > 0, x, float("nan"))), (M23,),
           lambda x: x[x > 0].sum()),
    Sample("int", lambda M, x: M.nansum(x, dim=0), (integers(3, 4),), lambda x: x.sum(0)),
    errors=dim_errors("nansum"))
row("nanmean",
    Sample("all", lambda M, x: M.nanmean(x), (GAPS,), np.nanmean, grad=False),
    Sample("dim", lambda M, x: M.nanmean(x, dim=0), (GAPS,),
           lambda x: np.nansum(x, 0) / (~np.isnan(x)).sum(0), grad=False),
    Sample("no nan", lambda M, x: M.nanmean(x, dim=(0, 1), keepdim=True), (M234,),
           lambda x: x.mean((0, 1), keepdims=True)),
    Sample("gradient skips nan", lambda M, x: M.nanmean(M.where(x > 0, x, float("nan"))), (M23,),
           lambda x: x[x > 0].mean()),
    Sample("nothing", lambda M, x: M.nanmean(x), (EMPTY,), lambda x: np.nan, grad=False),
    errors=[*dim_errors("nanmean"),
            ("int", lambda M: M.nanmean(M.tensor([1, 2])), TypeError, "must be floating")])
row("prod",
    Sample("all", lambda M, x: M.prod(x), (M23,), np.prod),
    Sample("method", lambda M, x: x.prod(1), (M234,), lambda x: x.prod(1)),
    Sample("dim", lambda M, x: M.prod(x, 0), (M234,), lambda x: x.prod(0)),
    Sample("keepdim", lambda M, x: M.prod(x, dim=-2, keepdim=True), (M234,),
           lambda x: x.prod(-2, keepdims=True)),
    Sample("one zero", lambda M, x: M.prod(x), (np.array([1.5, 0.0, -2.0]),), np.prod),
    Sample("two zeros", lambda M, x: M.prod(x), (np.array([1.5, 0.0, -2.0, 0.0]),), np.prod),
    Sample("three zeros", lambda M, x: M.prod(x), (np.zeros(3),), np.prod),
    Sample("zeros in rows", lambda M, x: M.prod(x, 1), (ZEROS,), lambda x: x.prod(1)),
    Sample("zeros in columns", lambda M, x: M.prod(x, 0), (ZEROS,), lambda x: x.prod(0)),
    Sample("0-dim", lambda M, x: M.prod(x), (np.array(3.0),), np.prod),
    Sample("0-dim-dim", lambda M, x: M.prod(x, 0, True), (np.array(3.0),), np.prod),
    Sample("empty", lambda M, x: M.prod(x), (EMPTY,), np.prod),
    Sample("empty-dim", lambda M, x: M.prod(x, 1), (EMPTY,), lambda x: x.prod(1)),
    Sample("empty-other", lambda M, x: M.prod(x, 0), (EMPTY,), lambda x: x.prod(0)),
    Sample("int", lambda M, x: M.prod(x, 1), (integers(3, 4),), lambda x: x.prod(1)),
    Sample("bool", lambda M, x: M.prod(x), (masks(3),), lambda x: int(x.prod())),
    Sample("dtype", lambda M, x: M.prod(x, 0, dtype=M.float64), (integers(3, 4),),
           lambda x: x.prod(0).astype(float)),
    errors=[("dim out of range", lambda M: M.prod(M.ones(2), 1), IndexError, "dim=1"),
            ("two dims", lambda M: M.prod(M.ones(2, 2), (0, 1)), TypeError, "must be an int"),
            ("not a tensor", lambda M: M.prod(2.0), TypeError, "must be a Tensor")])


def _truth(name: str, f: Any) -> None:
    row(name, *over_dims(name, f, masks(2, 3, 4) | masks(2, 3, 4, seed=5)),
        Sample("float", lambda M, x: getattr(M, name)(x, dim=1), (ZEROS,), lambda x: f(x, axis=1)),
        Sample("int", lambda M, x: getattr(M, name)(x), (integers(3, 4, high=2),), f),
        Sample("uint8", lambda M, x: getattr(M, name)(x, dim=0), (np.eye(2, dtype=np.uint8),),
               lambda x: f(x, axis=0).astype(np.uint8)),
        Sample("empty", lambda M, x: getattr(M, name)(x, dim=1), (EMPTY,), lambda x: f(x, axis=1)),
        Sample("nan", lambda M, x: getattr(M, name)(x), (np.array([np.nan]),), f),
        errors=dim_errors(name))


_truth("all", np.all)
_truth("any", np.any)
row("count_nonzero",
    Sample("all", lambda M, x: M.count_nonzero(x), (ZEROS,), np.count_nonzero),
    Sample("dim", lambda M, x: x.count_nonzero(1), (ZEROS,), lambda x: np.count_nonzero(x, axis=1)),
    Sample("several", lambda M, x: M.count_nonzero(x, dim=(0, -1)), (integers(2, 3, 4, high=2),),
           lambda x: np.count_nonzero(x, axis=(0, 2))),
    Sample("bool", lambda M, x: M.count_nonzero(x), (masks(3, 4),), np.count_nonzero),
    Sample("0-dim", lambda M, x: M.count_nonzero(x), (np.array(2),), np.count_nonzero),
    Sample("empty", lambda M, x: M.count_nonzero(x, dim=1), (EMPTY,), lambda x: np.zeros((2, 3), int)),
    errors=dim_errors("count_nonzero"))


def _lse(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> Any:
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


row("logsumexp",
    Sample("dim", lambda M, x: M.logsumexp(x, 1), (M234,), lambda x: _lse(x, 1)),
    Sample("keepdim", lambda M, x: x.logsumexp(dim=-1, keepdim=True), (M234,),
           lambda x: _lse(x, -1, True)),
    Sample("several", lambda M, x: M.logsumexp(x, dim=(0, 2)), (M234,), lambda x: _lse(x, (0, 2))),
    Sample("large", lambda M, x: M.logsumexp(x, 0), (np.array([1000.0, 999.0, -1000.0]),),
           lambda x: 999 + np.log(1 + np.e)),
    Sample("-inf", lambda M, x: M.logsumexp(x, 1), (np.array([[-np.inf, 0.0], [-np.inf, -np.inf]]),),
           lambda x: np.array([0.0, -np.inf]), grad=False),
    Sample("+inf", lambda M, x: M.logsumexp(x, 0), (np.array([np.inf, 0.0]),), lambda x: np.inf,
           grad=False),
    Sample("0-dim", lambda M, x: M.logsumexp(x, 0), (np.array(2.0),), lambda x: x),
    Sample("empty", lambda M, x: M.logsumexp(x, 1), (EMPTY,), lambda x: np.full((2, 3), -np.inf),
           grad=False),
    Sample("int", lambda M, x: M.logsumexp(x, 0), (integers(3, 2),),
           lambda x: _lse(x, 0).astype(np.float32)),
    errors=[("dim out of range", lambda M: M.logsumexp(M.ones(2), 1), IndexError, "dim=1"),
            ("not a tensor", lambda M: M.logsumexp([1.0], 0), TypeError, "must be a Tensor")])
