"""Rows of ops/random/activations.py. Samples look at what holds whatever was drawn."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

X = normal(3, 4)
RANDOM = "the numbers drawn differ between calls"


def _slope(lower: float, upper: float) -> Any:
    return lambda x: np.where(x > 0, x, (lower + upper) / 2 * x)


def _within(M: Any, x: Any) -> Any:
    """0 wherever the result is one that may come."""
    y = M.nn.functional.rrelu(x, 0.2, 0.6, training=True)
    fits = M.where(x > 0, y == x, (y >= 0.6 * x) & (y <= 0.2 * x))
    return (1 - fits.to(x.dtype)) + (y[x < 0] / x[x < 0]).std().gt(0).to(x.dtype) - 1


row("rrelu",
    Sample("eval", lambda M, x: M.nn.functional.rrelu(x), (X,), _slope(1 / 8, 1 / 3)),
    Sample("one slope", lambda M, x: M.nn.functional.rrelu(x, 0.25, 0.25, True), (X,), _slope(0.25, 0.25)),
    Sample("in place", lambda M, x: M.nn.functional.rrelu(x * 1.0, 0.25, 0.25, True, True), (X,),
           _slope(0.25, 0.25)),
    Sample("drawn", _within, (X,), lambda x: x * 0, grad=False, why=RANDOM),
    namespace="nn.functional", errors=[
        ("order", lambda M: M.nn.functional.rrelu(M.ones(2), 0.5, 0.25), ValueError, "must not exceed"),
        ("integers", lambda M: M.nn.functional.rrelu(M.arange(2)), TypeError, "floating")])
row("rrelu_", Sample("eval", lambda M, x: M.nn.functional.rrelu_(x * 1.0, 0.2, 0.4), (X,), _slope(0.2, 0.4)),
    namespace="nn.functional",
    errors=[("list", lambda M: M.nn.functional.rrelu_([1.0]), TypeError, "must be a Tensor")])


def _sums(M: Any, x: Any, **settings: Any) -> Any:
    return M.nn.functional.gumbel_softmax(x, 0.5, **settings).sum(settings.get("dim", -1))


def _ones(M: Any, x: Any) -> Any:
    """0 where the sample has one 1 in each row and else 0."""
    y = M.nn.functional.gumbel_softmax(x, hard=True)
    return (y.round() - y).abs().amax() + (y.amax(-1) - 1).abs().sum() < 1e-6


row("gumbel_softmax",
    Sample("soft", lambda M, x: _sums(M, x), (X,), lambda x: np.ones(3), grad=False, why=RANDOM),
    Sample("dim", lambda M, x: _sums(M, x, dim=0), (X,), lambda x: np.ones(4), grad=False, why=RANDOM),
    Sample("hard", _ones, (X,), lambda x: np.array(True), grad=False, why=RANDOM),
    Sample("sure", lambda M, x: M.nn.functional.gumbel_softmax(
        x * 0.0 + M.tensor([1e9, 0, 0, 0]).to((x * 0.0).dtype)), (X,), lambda x: np.eye(4)[[0, 0, 0]]),
    namespace="nn.functional", errors=[
        ("tau", lambda M: M.nn.functional.gumbel_softmax(M.ones(2), 0.0), ValueError, "tau"),
        ("integers", lambda M: M.nn.functional.gumbel_softmax(M.arange(2)), TypeError, "floating")])
