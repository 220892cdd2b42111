"""Constants that a rule makes: arrays while it runs on arrays, tensors while it runs on tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends import array_module, on_device
from ...tensor import Tensor, wrap


def raw(x: Any) -> Any:
    """The array, of a tensor or of itself."""
    return x._array if isinstance(x, Tensor) else x


def alike(array: Any, like: Any) -> Any:
    """A constant of a rule as what the rule runs on: a tensor where ``like`` is one."""
    return wrap(array) if isinstance(like, Tensor) else array


def like(x: Any, make: Callable) -> Any:
    """The constant array ``make(xp, dtype)``, as a tensor where x is one."""
    array = raw(x)
    if type(array) is np.ndarray:
        return alike(make(np, array.dtype), x)
    with on_device(array):
        return alike(make(array_module(array), array.dtype), x)
