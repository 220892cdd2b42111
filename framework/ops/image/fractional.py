"""Maxima over windows whose places are drawn: pooling by a factor that need not be whole."""

import math
import operator
from functools import partial
from typing import Any

import numpy as np

from ... import random
from ...backends import move
from ...device import as_device
from ...dtypes import float32, int64
from ...errors import ShapeError
from ...tensor import Tensor, wrap
from ..convert.cast import cast, from_array
from ..index.scatter import gather
from ..record.args import ntuple, real_arg
from ..record.batched import merged
from ..record.op import Meta, Op
from ..record.planned import Step, planned, writes_graphs
from ..record.public import public
from ..shape.view import take_shape
from . import cuda
from .conv import check_images
from .places import pick, put


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


def _windows(samples: Any, size: tuple, kernel: tuple, out: tuple, last_first: bool) -> Any:
    """The places in the flattened image of all elements of all windows: (n, c, windows, elements)."""
    (n, c, d), host = samples.shape, move(samples, as_device("cpu"))
    index: Any = np.zeros((n, c) + (1,) * (2 * d), np.int64)
    for i in range(d):  # index of the element (window i.., place in it j..) in the flattened image
        starts = _starts(host[..., d - 1 - i if last_first else i], size[i], out[i], kernel[i])
        places = starts[..., None] + np.arange(kernel[i])
        shape = [n, c] + [1] * (2 * d)
        shape[2 + i], shape[2 + d + i] = out[i], kernel[i]
        index = index * size[i] + places.reshape(shape)
    return index.reshape(n, c, math.prod(out), math.prod(kernel))


def _kernel(xp: Any, x: Any, samples: Any, *, kernel: tuple, out: tuple, last_first: bool) -> tuple:
    (n, c), size = x.shape[:2], x.shape[2:]
    places = xp.asarray(_windows(samples, size, kernel, out, last_first))
    rows = x.reshape(n, c, math.prod(size))
    windows = xp.take_along_axis(rows, places.reshape(n, c, -1), 2).reshape(places.shape)
    best = windows.argmax(axis=3)[..., None]
    y, at = (xp.take_along_axis(a, best, 3).reshape(n, c, *out) for a in (windows, places))
    return y, at


def _on_device(x: Any, samples: Any, *, kernel: tuple, out: tuple, last_first: bool) -> Any:
    places = cuda.fractional_places(x, samples, kernel, out, last_first)
    return places if places is NotImplemented else (pick(x, places, d=len(out)), places)


def _infer(x: Meta, samples: Meta, *, out: tuple, **settings: Any) -> list[Meta]:
    shape = x.shape[:2] + out
    return [Meta(shape, x.dtype), Meta(shape, int64)]


fractional_max = Op("fractional_max_pool", "x samples", outputs="y places", differentiable=1, kernel=_kernel,
                    native="fractional_max", device=_on_device, infer=_infer, batch=merged(),
                    vjp={"x": lambda g, places, x_shape, out: put(g, places, d=len(out), x_shape=x_shape)})


def _largest(x: Tensor, samples: Tensor | None, **layout: Any) -> tuple[Tensor, Tensor]:
    """Maxima and their places, by samples that are drawn unless given."""
    if samples is None:
        wide = np.float64 if x._array.dtype.itemsize == 8 else np.float32
        samples = wrap(random.uniform_array((*x._array.shape[:2], len(layout["out"])), wide, x.device))
    if x._array.dtype.itemsize == 2:
        if samples._array.dtype.itemsize == 2:
            samples = cast.run(samples, dtype=float32)
        y, places = fractional_max.run(cast.run(x, dtype=float32), samples, **layout)
        return cast.run(y, dtype=x.dtype), places
    return (_formula if writes_graphs() else fractional_max.run)(x, samples, **layout)


def _formula(x: Tensor, samples: Tensor, **layout: Any) -> tuple[Tensor, Tensor]:
    """The maxima by other ops: what graphs are written of."""
    (n, c), size, out = x.shape[:2], x.shape[2:], layout["out"]
    places: Any = from_array(_windows(samples._array, size, **layout), x)
    windows: Any = gather(take_shape(x, (n, c, math.prod(size))), 2, places.reshape(n, c, -1))
    values, best = windows.reshape(places.shape).max(3)
    chosen: Any = gather(places, 3, best.unsqueeze(3))
    return values.reshape(n, c, *out), chosen.reshape(n, c, *out)


def _steps(d: int, input: Tensor, samples: Tensor | None, kernel_size: Any, output_size: Any,
           output_ratio: Any, return_indices: bool) -> list[Step]:
    op = f"fractional_max_pool{d}d"
    alone = check_images(real_arg(input, op), d, op)
    size, (n, c) = input.shape[-d:], input.shape[:2] if not alone else (1, input.shape[0])
    kernel = ntuple(kernel_size, d, op, "kernel_size")
    out = _target(op, d, size, output_size, output_ratio)
    if any(o < 1 or o + k - 1 > s for s, o, k in zip(size, out, kernel)):
        raise ShapeError(f"{op}: {list(out)} windows of {list(kernel)} do not fit into an image of "
                         f"{list(size)}; output_size + kernel_size - 1 must not exceed it")
    if samples is not None:
        given = samples.shape if samples.ndim != 2 else (1, *samples.shape)
        if given[1:] != (c, d) or given[0] != n and not alone:
            raise ShapeError(f"{op}: _random_samples must be ({n}, {c}, {d}), got {list(samples.shape)}")
    layout = {"kernel": kernel, "out": out, "last_first": d == 2}
    steps: list[Step] = [(_largest, 2, layout)]
    if alone or samples is not None and samples.ndim == 2:
        steps = [(_of_one, 2, layout)]
    return steps if return_indices else [*steps, (operator.itemgetter(0), 1, {})]


def _of_one(x: Tensor, samples: Tensor | None, **layout: Any) -> tuple[Tensor, ...]:
    """``_largest`` where the image, or the samples, stand without a batch."""
    d = len(layout["out"])
    alone = x.ndim == d + 1
    if samples is not None:
        samples = take_shape(samples, (-1, *samples.shape[-2:]))[:1]  # type: ignore[index]
    made = _largest(take_shape(x, (1, *x.shape)) if alone else x, samples, **layout)
    return tuple([take_shape(t, t.shape[1:]) for t in made]) if alone else made


_pool2, _pool3 = (planned(partial(_steps, d)) for d in (2, 3))


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
    return _pool2(input, _random_samples, kernel_size, output_size, output_ratio, return_indices)


@public("nn.functional")
def fractional_max_pool3d(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
    """The largest element of windows at random places: (n, c, d, h, w) or (c, d, h, w) -> (n, c, d', h', w').

    As ``fractional_max_pool2d``; the samples are (n, c, 3), of the depth first.

    >>> fw.nn.functional.fractional_max_pool3d(fw.ones(1, 1, 4, 4, 4), 2, output_ratio=0.5).shape
    (1, 1, 2, 2, 2)
    """
    return _pool3(input, _random_samples, kernel_size, output_size, output_ratio, return_indices)


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
