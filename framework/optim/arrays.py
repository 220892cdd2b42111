"""What optimizers do with arrays: places, complex numbers as pairs, casts of saved state."""

from typing import Any

import numpy as np

from ..backends import array_module, move, on_device
from ..dtypes import INEXACT
from ..ops.shape.complex_parts import as_complex_op, as_real_op
from ..tensor import Tensor, wrap


def zeros_like(p: Any) -> Any:
    """Zeros of the shape and dtype of the array ``p``, where it is."""
    with on_device(p):
        return array_module(p).zeros_like(p)


def real_view(array: Any) -> Any:
    """A complex array as pairs of real numbers, (*) -> (*, 2), over the same memory; a real one as it is."""
    return as_real_op(array) if array.dtype.kind == "c" else array


def as_kept(value: Any, p: Any) -> Any:
    """An array as a tensor, pairs of a complex parameter ``p`` as complex numbers; others as they are."""
    if not (hasattr(value, "dtype") and hasattr(value, "strides")) or isinstance(value, np.generic):
        return value
    paired = p.dtype.kind == "c" and value.shape == (*p.shape, 2)
    return wrap(as_complex_op(value) if paired else value)


def cast_to(value: Any, dtype: np.dtype, device: Any) -> Any:
    """A copy of a tensor on ``device``, floating ones as ``dtype``; also inside lists, tuples and dicts.

    A NumPy array becomes a tensor; anything else is given back.
    """
    if isinstance(value, dict):
        return {k: cast_to(v, dtype, device) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        cast = [cast_to(v, dtype, device) for v in value]
        return tuple(cast) if type(value) is tuple else cast
    if not isinstance(value, (Tensor, np.ndarray)):
        return value
    array = value._array if isinstance(value, Tensor) else value
    kind = array.dtype.kind
    # a real optimizer may keep integers, and a complex one real numbers: only like goes to like
    fits = kind in INEXACT and (kind == "c") == (dtype.kind == "c")
    with on_device(array):
        copy = array.astype(dtype if fits else array.dtype)
    return wrap(move(copy, device))


def laid_like(value: Any, like: Any) -> Any:
    """A tensor with its memory in the order of that of ``like``, as kernels want it; others as they are."""
    if not (isinstance(value, Tensor) and isinstance(like, Tensor)) or value.shape != like.shape \
            or value.dtype is not like.dtype or value._array.strides == like._array.strides:
        return value
    laid = zeros_like(like._array)
    laid[...] = value._array
    return wrap(laid)


def number(value: Any) -> Any:
    """A tensor or array of one element as Python's number; anything else as it is."""
    return value.item() if isinstance(value, (Tensor, np.ndarray, np.generic)) else value
