"""Rows of ops/random/dropout.py. What is kept is random, so most samples look at what must hold always."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

X = normal(3, 4)
RANDOM = "the mask is random; tests/test_dropout.py looks at it"


def _row(name: str, x: Any, errors: list | None = None) -> None:
    def call(M: Any, x: Any, *args: Any, **settings: Any) -> Any:
        return getattr(M.nn.functional, name)(x, *args, **settings)

    def allowed(M: Any, x: Any) -> Any:
        """0 wherever an element is one of the two values it may be."""
        y = call(M, x, 0.25, training=True)
        return (y * (y - x / 0.75)) * 0.0 if "alpha" in name else y * (y - x / 0.75)
    row(name,
        Sample("eval", lambda M, x: call(M, x, 0.5, training=False), (x,), lambda x: x),
        Sample("p 0", lambda M, x: call(M, x, p=0.0, training=True), (x,), lambda x: x),
        Sample("p 1", lambda M, x: call(M, x, 1.0, True), (x,), lambda x: x * 0),
        Sample("p 1 in place", lambda M, x: call(M, x * 1.0, 1.0, True, True), (x,), lambda x: x * 0),
        Sample("kept or dropped", allowed, (x,), lambda x: x * 0, grad=False, why=RANDOM),
        Sample("empty", lambda M, x: call(M, x, 0.5, True), (x[:0],), lambda x: x, grad=False,
               torch=name != "feature_alpha_dropout", why="PyTorch fails on an empty batch"),
        namespace="nn.functional", errors=[
            ("p above 1", lambda M: call(M, M.ones(2, 2, 2, 2), 1.5), ValueError, "in [0, 1]"),
            ("p below 0", lambda M: call(M, M.ones(2, 2, 2, 2), -0.1), ValueError, "in [0, 1]"),
            ("integers", lambda M: call(M, M.arange(3), 0.5, True), TypeError, "must be floating"),
            ("not a tensor", lambda M: call(M, [1.0], 0.5), TypeError, "must be a Tensor"), *(errors or [])])


def _wrong_ndim(name: str) -> list:
    return [("ndim", lambda M: getattr(M.nn.functional, name)(M.ones(2), 0.5, True), RuntimeError,
             "wanted an input")]


_row("dropout", X)
_row("dropout1d", normal(2, 3, 2), _wrong_ndim("dropout1d"))
_row("dropout2d", normal(2, 3, 2, 2), _wrong_ndim("dropout2d"))
_row("dropout3d", normal(2, 3, 1, 2, 2), _wrong_ndim("dropout3d"))
_row("alpha_dropout", X)
_row("feature_alpha_dropout", normal(2, 3, 2), _wrong_ndim("feature_alpha_dropout"))
assert np.all(X != 0)
