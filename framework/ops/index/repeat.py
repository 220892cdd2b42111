"""Elements repeated and combined: repeat_interleave, combinations."""

import math
from itertools import combinations as _combinations
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from ...backends import cuda, device_code, device_flags
from ...backends.native import native_or
from ...dtypes import INTEGER
from ...errors import DTypeError, ShapeError
from ...quiet import quiet
from ...tensor import Tensor, wrap
from ..convert.cast import from_array
from ..record.args import one_dim, size_args, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.alone import flattened, led
from ..shape.broadcast import expand
from ..shape.view import take_shape
from .index import index_op


def _choices_plain(n: int, r: int, repeated: bool, count: int) -> np.ndarray:
    make = combinations_with_replacement if repeated else _combinations
    return np.array(list(make(range(n), r)), np.int64).reshape(count, r)


_choices = native_or("choices", _choices_plain)
# along the last dimension, of what is in no graph on the CPU
repeat_op = Op("repeat_each", "x", kernel=lambda xp, x, *, times: xp.repeat(x, times, axis=-1),
               native="repeat_each", moves=True,
               infer=lambda x, *, times: Meta((*x.shape[:-1], x.shape[-1] * times), x.dtype))


@public(method=True)
def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Every entry along ``dim`` repeated in its place; without ``dim``, of the flattened tensor.

    repeats: an int, or a vector of ints, one for each entry. With one argument alone, the positions
    themselves: ``repeat_interleave([2, 1])`` is ``[0, 0, 1]``.

    >>> fw.repeat_interleave(fw.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    tensor_arg(input, "repeat_interleave")
    if repeats is None:
        return _repeated(input.numel(), input, input)
    if dim is None or input.ndim == 0:
        input, at = flattened(input), 0
    else:
        at = one_dim(dim, input.ndim, "repeat_interleave")
    if type(repeats) is int and repeats > 0 and at == input.ndim - 1 and input.numel() \
            and output_size in (None, repeats * input.shape[at]):
        own = input.shape
        if input._node is None and type(input._array) is np.ndarray and quiet.run is not None:
            return repeat_op.run(input, times=repeats)
        each = expand.run(take_shape(input, (*own, 1)), size=(*own, repeats))
        return take_shape(each, (*own[:at], own[at] * repeats))
    if output_size is not None and isinstance(repeats, Tensor):
        placed = _repeated_there(input.shape[at], repeats, output_size)
        if placed is not None:
            return index_op.run(input, led(placed), dims=(at,))
    places = _repeated(input.shape[at], repeats, input)
    if output_size is not None and output_size != places.numel():
        raise ShapeError(f"repeat_interleave: output_size={output_size}, but the repeats sum to "
                         f"{places.numel()}")
    return index_op.run(input, led(places), dims=(at,))


def _repeated_there(size: int, repeats: Tensor, total: int) -> Tensor | None:
    """0..size-1, each repeated, ``total`` together, made on a GPU without a wait; None for others.

    What is wrong with the repeats is told at the next wait for the device.
    """
    counts = repeats._array
    if not device_code.is_device_array(counts) or counts.dtype.kind not in "iu" or not size or total < 1 \
            or counts.shape not in ((), (1,), (size,)):
        return None
    module = cuda.cupy()
    with counts.device:
        counts = module.broadcast_to(counts.astype(np.int64), (size,))
        ends = module.cumsum(counts)
        least = "repeat_interleave: repeats must not be negative"
        if not device_flags.check(counts, 0, 2**62, least, error=ValueError):
            return None
        device_flags.check(ends[-1:], total, total + 1, f"repeat_interleave: output_size={total}, but the "
                           "repeats sum to {value}", error=ShapeError)
        places = module.searchsorted(ends, module.arange(total), side="right")
        return wrap(module.minimum(places.astype(np.int64), size - 1))


def _repeated(size: int, repeats: Any, like: Tensor) -> Tensor:
    """0..size-1, each repeated, as an int64 tensor on the device of ``like``."""
    if isinstance(repeats, Tensor):
        if repeats.dtype.category > INTEGER or repeats.ndim > 1:
            raise DTypeError(f"repeat_interleave: repeats must be integers of at most one dimension, got "
                             f"{repeats.dtype} of shape {list(repeats.shape)}")
        counts = np.asarray(repeats.tolist(), np.int64)
    else:
        counts = np.asarray(size_args((repeats,), "repeat_interleave", "repeats"), np.int64)
    if counts.size and counts.min() < 0:
        raise ValueError("repeat_interleave: repeats must not be negative")
    if counts.ndim and len(counts) not in (1, size):
        raise ShapeError(f"repeat_interleave: {len(counts)} repeats for {size} entries")
    return from_array(np.repeat(np.arange(size), counts), like)


@public()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of ``r`` elements of a vector, as rows in order of position.

    >>> fw.combinations(fw.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if tensor_arg(input, "combinations").ndim != 1:
        raise ShapeError(f"combinations: wanted a vector, got shape {list(input.shape)}")
    if r < 0:
        raise ValueError(f"combinations: r must not be negative, got {r}")
    n = input.numel()
    count = 0 if not r or not n else math.comb(n + r - 1 if with_replacement else n, r)
    places = _choices(n, r, with_replacement, count) if r else np.zeros((0,), np.int64)
    return index_op.run(input, led(from_array(places, input)), dims=(0,))
