"""Elements replaced by what a Python function makes of them."""

from collections.abc import Callable

import numpy as np

from ...errors import AutogradError, ShapeError
from ...tensor import Tensor, wrap
from ..convert.cast import to
from ..record.args import tensor_arg
from ..record.public import public
from ..shape.broadcast import broadcast_shape
from .inplace import copy_


def _mapped(x: Tensor, function: Callable, *others: Tensor, name: str) -> Tensor:
    if x._node is not None or others and others[0]._node is not None:
        raise AutogradError(f"{name}: a Python function of the elements is not recorded; use x.detach()")
    for other in others:
        if x._array.shape != other._array.shape and broadcast_shape((x.shape, other.shape), name) != x.shape:
            raise ShapeError(f"{name}: other of shape {list(other.shape)} does not broadcast to "
                             f"{list(x.shape)}")
    arrays = [t._array if type(t._array) is np.ndarray else to(t, "cpu")._array for t in (x, *others)]
    if others and arrays[0].shape != arrays[1].shape:
        spread = np.empty(arrays[0].shape, arrays[1].dtype)
        spread[...] = arrays[1]
        arrays[1] = spread
    rows, dtype = [a.reshape(-1).tolist() for a in arrays], x._array.dtype
    found = map(function, *rows)
    flat = np.fromiter(found, dtype, len(rows[0])) if dtype.char in "fdl" else np.array(list(found), dtype)
    return copy_(x, wrap(flat.reshape(arrays[0].shape)))


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
