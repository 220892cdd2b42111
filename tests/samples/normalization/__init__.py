"""Rows of the rooms in ops/normalization, and what the files share."""

from typing import Any

import numpy as np


def standard(x: Any, axes: tuple, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(var + eps)."""
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)


def F(M: Any) -> Any:
    """nn.functional of either library."""
    return M.nn.functional
