"""Elements read and written by a mask."""

from typing import Any

import numpy as np

from ...backends import array_module, device_code, device_flags
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor, wrap
from ..pointwise.choose import where_op
from ..record.args import tensor_arg
from ..record.public import public
from ..shape.alone import flattened
from ..shape.broadcast import broadcast_shape, take_size
from ..shape.slices import take_slice
from ..shape.view import take_shape
from .index import count_true, mask_op, mask_put
from .scatter import gather_op


def _mask_arg(mask: Any, op: str) -> Tensor:
    if tensor_arg(mask, op, "mask")._array.dtype.kind != "b":
        raise DTypeError(f"{op}: mask must be bool, got {mask.dtype}; write a comparison, e.g. mask != 0")
    return mask


def _same_shape(x: Tensor, mask: Tensor, op: str) -> tuple[Tensor, Tensor]:
    if tensor_arg(x, op)._array.shape == mask._array.shape:
        return x, mask
    shape = broadcast_shape((x._array.shape, mask._array.shape), op)
    return (x if x._array.shape == shape else take_size(x, shape),
            mask if mask._array.shape == shape else take_size(mask, shape))


@public(method=True, op=mask_op, out=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the bool ``mask`` holds, in one dimension; the two shapes broadcast.

    >>> fw.masked_select(fw.tensor([1, 2, 3]), fw.tensor([True, False, True]))
    tensor([1, 3])
    """
    input, mask = _same_shape(input, _mask_arg(mask, "masked_select"), "masked_select")
    return mask_op.run(input, mask, count=count_true(mask))


@public(method=True, inplace=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """``input`` with the elements where ``mask`` holds replaced by the first of ``source``, in order.

    Raises ShapeError if ``source`` has too few.

    >>> fw.masked_scatter(fw.zeros(3), fw.tensor([True, False, True]), fw.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 2.])
    """
    input, mask = _same_shape(input, _mask_arg(mask, "masked_scatter"), "masked_scatter")
    if tensor_arg(source, "masked_scatter", "source")._array.dtype is not input._array.dtype \
            and source.dtype is not input.dtype:
        raise DTypeError(f"masked_scatter: source must be {input.dtype} like the tensor, got {source.dtype}")
    if device_code.enabled and device_code.is_device_array(input._array) and source.numel():
        return _scattered_by_place(input, mask, take_shape(source, (source.numel(),)))
    count = count_true(mask)
    if source._array.size < count:
        raise ShapeError(f"masked_scatter: the mask chooses {count} elements, source has "
                         f"{source.numel()}")
    value = flattened(source)
    if value._array.size != count:
        value = wrap(value._array[:count]) if value is not source and value._node is None \
            and type(value._array) is np.ndarray else take_slice(value, (slice(count),))
    return mask_put.run(input, value, mask, count=count)


def _scattered_by_place(input: Any, mask: Any, source: Any) -> Tensor:
    """On a GPU nobody waits for how many elements a mask chooses: every place reads its own element."""
    xp, n = array_module(mask._array), source.numel()
    with mask._array.device:
        place = xp.cumsum(mask._array.reshape(-1), dtype=np.int64) - 1
        device_flags.check(place, -1, n, "masked_scatter: the mask chooses more elements than source has, "
                                         "which are {size}", error=ShapeError)
        place = xp.clip(place, 0, n - 1)
    values = gather_op.run(source, wrap(place), dim=0)
    return where_op.run(mask, take_shape(values, mask.shape), input)
