"""Elements replaced by what a Python function makes of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _native
from ...backends.native import converted
from ...dtypes import FLOATING
from ...errors import AutogradError, ShapeError
from ...tensor import Tensor, wrap
from ..convert.cast import to
from ..record.args import tensor_arg
from ..record.public import public
from ..record.rounded import widened
from ..shape.broadcast import broadcast_shape, take_size
from .inplace import copy_

_native_mapped: Callable = getattr(_native.module, "mapped", lambda function, arrays: NotImplemented)
FEW = 64  # numbers of 16 bits that are not worth being widened first


def _mapped(x: Tensor, function: Callable, *others: Tensor, name: str) -> Tensor:
    if x._node is not None or others and others[0]._node is not None:
        raise AutogradError(f"{name}: a Python function of the elements is not recorded; use x.detach()")
    for other in others:
        if x._array.shape != other._array.shape and broadcast_shape((x.shape, other.shape), name) != x.shape:
            raise ShapeError(f"{name}: other of shape {list(other.shape)} does not broadcast to "
                             f"{list(x.shape)}")
    arrays = [t._array if type(t._array) is np.ndarray else to(t, "cpu")._array for t in (x, *others)]
    shape, dtype = arrays[0].shape, x._array.dtype
    narrow = x._array.size > FEW and dtype.itemsize == 2 and dtype.kind in FLOATING
    if others and arrays[1].shape != shape:
        arrays[1] = take_size(wrap(arrays[1]), shape)._array
    made = _native_mapped(function, tuple(arrays))
    if type(made) is np.ndarray:
        return copy_(x, wrap(made))
    found: Any = made
    if made is NotImplemented:
        rows = [(widened(a) if narrow else a).ravel().tolist() for a in arrays]
        found = list(map(function, *rows))
    try:
        if narrow or dtype.char in "fdl":
            flat = np.fromiter(found, np.float64 if narrow else dtype, len(found))
        else:
            flat = np.array(found, dtype)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: the function must give a number for each element; {error}") from None
    flat = converted(flat, dtype) if narrow else flat
    if len(shape) != 1:
        flat.shape = shape
    return copy_(x, wrap(flat))


@public("", method=True)
def apply_(input: Tensor, callable: Callable) -> Tensor:
    """Replace every element by ``callable(element)``, one Python call each; returns this tensor.

    Slow, and unrecorded: AutogradError where grad is required.

    >>> fw.tensor([1.0, 2.0]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    return _mapped(input, callable, name="apply_")


@public("", method=True)
def map_(input: Tensor, other: Tensor, callable: Callable) -> Tensor:
    """Replace every element by ``callable(element, that of other)``; shapes broadcast to this tensor's.

    Slow, and unrecorded: AutogradError where grad is required.

    >>> fw.tensor([1.0, 2.0]).map_(fw.tensor([3.0]), lambda a, b: a * b)
    tensor([3., 6.])
    """
    return _mapped(input, callable, tensor_arg(other, "map_", "other"), name="map_")
