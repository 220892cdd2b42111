"""Maxima over windows whose places are drawn: pooling by a factor that need not be whole."""

import math
from typing import Any

import numpy as np

from ... import random
from ...backends import move, on_device
from ...device import as_device
from ...errors import ShapeError
from ...tensor import Tensor, wrap
from ..index.scatter import gather
from ..record.args import ntuple, real_arg
from ..record.public import public
from ..reduce.extremes import max as maximum_along
from ..shape.view import take_shape
from . import cuda
from .conv import batched


def _starts(sample: Any, size: int, out: int, kernel: int) -> Any:
    """Where the windows of one dimension begin, for each sample u in [0, 1): with the step
    ``a = (size - kernel) / (out - 1)``, ``floor((i + u) a) - floor(u a)``, the last one at the end."""
    if out == 1:
        return np.full((*sample.shape, 1), size - kernel, np.int64)
    step = sample.dtype.type(size - kernel) / sample.dtype.type(out - 1)
    places = np.arange(out, dtype=sample.dtype)
    starts = ((places + sample[..., None]) * step).astype(np.int64)
    starts -= (sample[..., None] * step).astype(np.int64)
    starts[..., -1] = size - kernel
    return starts


def _target(op: str, d: int, size: tuple[int, ...], output_size: Any, output_ratio: Any) -> tuple[int, ...]:
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{op}: exactly one of output_size and output_ratio is wanted, got "
                         f"{'neither' if output_size is None else 'both'}")
    if output_size is not None:
        return ntuple(output_size, d, op, "output_size")
    ratios = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * d
    if len(ratios) != d or not all(0 < r < 1 for r in ratios):
        raise ValueError(f"{op}: output_ratio must be a number between 0 and 1 or {d} of them, got "
                         f"{output_ratio!r}")
    return tuple(int(s * r) for s, r in zip(size, ratios))


def _largest(d: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any,
             samples: Tensor | None, order: slice) -> tuple[Any, Any]:
    op = f"fractional_max_pool{d}d"
    x, alone = batched(real_arg(input, op), d, op)
    size, (n, c) = x.shape[2:], x.shape[:2]
    kernel = ntuple(kernel_size, d, op, "kernel_size")
    out = _target(op, d, size, output_size, output_ratio)
    if any(o < 1 or o + k - 1 > s for s, o, k in zip(size, out, kernel)):
        raise ShapeError(f"{op}: {list(out)} windows of {list(kernel)} do not fit into an image of "
                         f"{list(size)}; output_size + kernel_size - 1 must not exceed it")
    if samples is None:
        drawn = random.uniform_array((n, c, d), np.float64 if x._array.dtype.itemsize == 8 else np.float32,
                                     x.device)
    else:
        drawn = samples._array
        if drawn.ndim == 2:
            drawn = drawn[None]
        if alone:
            drawn = drawn[:1]
        if drawn.shape != (n, c, d):
            raise ShapeError(f"{op}: _random_samples must be ({n}, {c}, {d}), got {list(samples.shape)}")
    final = (c, *out) if alone else (n, c, *out)
    with on_device(x._array):
        found = cuda.fractional_places(x._array, drawn, kernel, out, order.step == -1)
    if found is not NotImplemented:
        at = wrap(found.reshape(n, c, -1))
        values: Any = gather(take_shape(x, (n, c, math.prod(size))), 2, at)
        return take_shape(values, final), take_shape(at, final)
    places = wrap(move(_windows(drawn, size, kernel, out, order), x.device))
    flat: Any = take_shape(x, (n, c, math.prod(size)))
    windows = gather(flat, 2, places)
    windows = take_shape(windows, (n, c, math.prod(out), math.prod(kernel)))
    values, best = maximum_along(windows, 3)
    places = take_shape(places, (n, c, math.prod(out), math.prod(kernel)))
    chosen = gather(places, 3, best.unsqueeze(3))
    return take_shape(values, final), take_shape(chosen, final)


def _windows(drawn: Any, size: tuple, kernel: tuple, out: tuple, order: slice) -> Any:
    """The places in the flattened image of all elements of all windows: (n, c, windows * elements)."""
    (n, c, d), host = drawn.shape, move(drawn, as_device("cpu"))[..., order]
    index: Any = np.zeros((n, c) + (1,) * (2 * d), np.int64)
    for i in range(d):  # index of the element (window i.., place in it j..) in the flattened image
        starts = _starts(host[..., i], size[i], out[i], kernel[i])
        places = starts[..., None] + np.arange(kernel[i])
        shape = [n, c] + [1] * (2 * d)
        shape[2 + i], shape[2 + d + i] = out[i], kernel[i]
        index = index * size[i] + places.reshape(shape)
    return index.reshape(n, c, -1)


@public("nn.functional")
def fractional_max_pool2d(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
    """The largest element of windows at random places, evenly spread: (n, c, h, w) or (c, h, w) ->
    (n, c, h', w').

    The size is ``output_size``, or ``output_ratio`` (between 0 and 1) of the input's; windows of a size
    follow each other in steps of which the mean is ``(h - kernel) / (h' - 1)``. return_indices: also the
    places of the elements in the flattened image. _random_samples: (n, c, 2) numbers in [0, 1) that decide
    the places, of the columns first. B. Graham, "Fractional max-pooling", 2015. Raises ValueError unless
    one of output_size and output_ratio is given, ShapeError where the windows do not fit.

    >>> x = fw.arange(25.0).reshape(1, 1, 5, 5)
    >>> fw.nn.functional.fractional_max_pool2d(x, 2, output_size=1)
    tensor([[[[24.]]]])
    """
    values, places = _largest(2, input, kernel_size, output_size, output_ratio, _random_samples,
                              slice(None, None, -1))
    return (values, places) if return_indices else values


@public("nn.functional")
def fractional_max_pool3d(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
    """The largest element of windows at random places: (n, c, d, h, w) or (c, d, h, w) -> (n, c, d', h', w').

    As ``fractional_max_pool2d``; the samples are (n, c, 3), of the depth first.

    >>> fw.nn.functional.fractional_max_pool3d(fw.ones(1, 1, 4, 4, 4), 2, output_ratio=0.5).shape
    (1, 1, 2, 2, 2)
    """
    values, places = _largest(3, input, kernel_size, output_size, output_ratio, _random_samples, slice(None))
    return (values, places) if return_indices else values


@public("nn.functional")
def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: Any, output_size: Any = None,
                                       output_ratio: Any = None, return_indices: bool = False,
                                       _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """``fractional_max_pool2d`` with ``return_indices=True``.

    >>> fw.nn.functional.fractional_max_pool2d_with_indices(fw.arange(9.0).reshape(1, 3, 3), 2, 1)
    (tensor([[[8.]]]), tensor([[[8]]]))
    """
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, True, _random_samples)


@public("nn.functional")
def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: Any, output_size: Any = None,
                                       output_ratio: Any = None, return_indices: bool = False,
                                       _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """``fractional_max_pool3d`` with ``return_indices=True``.

    >>> fw.nn.functional.fractional_max_pool3d_with_indices(fw.arange(8.0).reshape(1, 2, 2, 2), 2, 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return fractional_max_pool3d(input, kernel_size, output_size, output_ratio, True, _random_samples)
