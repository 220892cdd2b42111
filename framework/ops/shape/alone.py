"""Tensors in another shape for a record alone, which nobody else sees: of one in no graph no view is noted.

A record may keep what it is given for its derivative, so they count changes of the memory with the tensor.
"""

from collections.abc import Callable

import numpy as np

from ...backends.native import native_or
from ...quiet import quiet
from ...tensor import Tensor, counter_of, wrap
from .view import take_shape


def _seen(array: np.ndarray, x: Tensor) -> Tensor:
    """The array, which shows the memory of ``x`` or is a copy of it."""
    out = wrap(array)
    if array.base is not None:
        out._counter = counter_of(x)
    return out


def _led(x: Tensor) -> Tensor:
    if quiet.run is None:  # interceptors see where it comes from
        return take_shape(x, (1, *x.shape))
    return _seen(x._array[None], x)


def _as_column(x: Tensor) -> Tensor:
    return take_shape(x, (x._array.size, 1))


def _flattened(x: Tensor) -> Tensor:
    array = x._array
    if array.ndim == 1:
        return x
    if x._node is None and quiet.run is not None and type(array) is np.ndarray:
        return _seen(array.reshape(-1), x)
    return take_shape(x, (array.size,))


# with a dimension in front, which positions have in records
led: Callable = native_or("led_alone", _led)
# a vector as a column
as_column: Callable = native_or("column_alone", _as_column)
# the elements in one dimension
flattened: Callable = native_or("flattened", _flattened)


def in_any_order(x: Tensor) -> Tensor:
    """``flattened`` for a record to which the order means nothing: that in memory, which is not copied."""
    array = x._array
    if type(array) is not np.ndarray or array.flags.c_contiguous or x._node is not None or quiet.run is None:
        return flattened(x)
    return _seen(array.ravel("K"), x)
