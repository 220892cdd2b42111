"""Rows of ops/normalization/moments.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, positive, row
from . import F, standard

X, W, B = normal(3, 4), positive(4), normal(4)
row("layer_norm",
    Sample("plain", lambda M, x: F(M).layer_norm(x, (4,)), (X,), lambda x: standard(x, (1,))),
    Sample("affine", lambda M, x, w, b: F(M).layer_norm(x, [4], w, b), (X, W, B),
           lambda x, w, b: standard(x, (1,)) * w + b),
    Sample("weight", lambda M, x, w: F(M).layer_norm(x, (4,), w), (X, W), lambda x, w: standard(x, (1,)) * w),
    Sample("two dims", lambda M, x, w, b: F(M).layer_norm(x, (3, 2), w, b, eps=0.1),
           (normal(2, 3, 2), positive(3, 2), normal(3, 2)),
           lambda x, w, b: standard(x, (1, 2), 0.1) * w + b),
    Sample("empty", lambda M, x: F(M).layer_norm(x, (4,)), (np.zeros((0, 4)),), lambda x: x),
    namespace="nn.functional", errors=[
        ("shape", lambda M: F(M).layer_norm(M.ones(2, 3), (4,)), RuntimeError, "normalized_shape [4]"),
        ("weight", lambda M: F(M).layer_norm(M.ones(2, 3), (3,), M.ones(2)), RuntimeError,
         "weight must have"),
        ("integers", lambda M: F(M).layer_norm(M.ones(2, 3).long(), (3,)), TypeError, "floating"),
        ("not a tensor", lambda M: F(M).layer_norm([1.0], (1,)), TypeError, "must be a Tensor")])


def _rms(x: Any, axes: tuple, eps: float) -> Any:
    return x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + eps)


row("rms_norm",
    Sample("plain", lambda M, x: F(M).rms_norm(x, (4,)), (X,), lambda x: _rms(x, (1,), 2.3e-16)),
    Sample("weight", lambda M, x, w: F(M).rms_norm(x, (4,), w, eps=0.1), (X, W),
           lambda x, w: _rms(x, (1,), 0.1) * w),
    Sample("two dims", lambda M, x, w: F(M).rms_norm(x, (3, 2), w), (normal(2, 3, 2), positive(3, 2)),
           lambda x, w: _rms(x, (1, 2), 2.3e-16) * w),
    namespace="nn.functional", errors=[
        ("shape", lambda M: F(M).rms_norm(M.ones(2, 3), (4,)), RuntimeError, "normalized_shape [4]"),
        ("weight", lambda M: F(M).rms_norm(M.ones(2, 3), (3,), M.ones(2)), RuntimeError, "weight must have")])
