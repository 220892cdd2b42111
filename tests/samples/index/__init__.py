"""Rows of the rooms in ops/index, and what the files share."""

from typing import Any

import numpy as np

from ..base import Sample, masks, normal

V4, M34, M345 = normal(4), normal(3, 4), normal(3, 4, 5)
MASK3, MASK34 = np.array([True, False, True]), masks(3, 4)
I2, J2 = np.array([2, 0]), np.array([1, -1])
REPEATS = np.array([0, 2, 0, 0])
T21 = np.array([[1], [0]])


def one(label: str, call: Any, reference: Any, x: Any = M34, **more: Any) -> Sample:
    """A call of one tensor."""
    return Sample(label, call, (x,), reference, **more)


def many(label: str, call: Any, reference: Any, *inputs: Any, **more: Any) -> Sample:
    """A call of several tensors."""
    return Sample(label, call, inputs, reference, **more)


def put_reference(key: Any, value: Any) -> Any:
    """What ``x[key] = value`` makes of a copy."""
    def reference(x: np.ndarray) -> np.ndarray:
        out = x.copy()
        out[key] = value
        return out
    return reference
