"""Pooling to a given size: window i of n runs from floor(i * size / n) to ceil((i + 1) * size / n)."""

import math
from functools import partial
from typing import Any

import numpy as np

from ...dtypes import int64
from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import floating, real_arg
from ..record.batched import merged
from ..record.op import Meta, Op
from ..record.planned import Step, planned
from ..record.public import public
from ..record.road import NEVER
from ..record.whole import Whole
from . import cuda
from .conv import check_images
from .places import pick, put
from .pool import avg_pool
from .resample import Plan, resample


def _target(op: str, size: tuple[int, ...], output_size: Any) -> tuple[int, ...]:
    """``output_size`` as one size per dimension; None keeps a size."""
    d = len(size)
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * d
    if len(given) != d or any(o is not None and (isinstance(o, bool) or not hasattr(o, "__index__"))
                              for o in given):
        raise TypeError(f"{op}: output_size must be an int or {d} ints (None keeps a size), got "
                        f"{output_size!r}")
    out = tuple(s if o is None else int(o) for s, o in zip(size, given))
    if min(out) < 0 or min(size) < 1:
        raise ShapeError(f"{op}: cannot pool an image of size {list(size)} to {list(out)}")
    return out


def _average(d: int, x: Tensor, output_size: Any) -> list[Step]:
    op = f"adaptive_avg_pool{d}d"
    check_images(x, d, op)
    floating(x, op)
    size = x.shape[-d:]
    out = _target(op, size, output_size)
    if 0 not in out and not any(s % o for s, o in zip(size, out)):
        kernel = tuple([s // o for s, o in zip(size, out)])
        return [(avg_pool.run, 1, {"kernel": kernel, "stride": kernel, "padding": (0,) * d, "out": out,
                                   "include": True, "divisor": None})]
    return [(resample.run, 1, {"dim": i, "plan": Plan("area", s, o, s / max(o, 1)), "back": False})
            for i, (s, o) in enumerate(zip(size, out), x.ndim - d) if s != o]


_average1, _average2, _average3 = [planned(partial(_average, d)) for d in (1, 2, 3)]


@public("nn.functional", deferred=True)
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that give ``output_size`` elements: (n, c, l) or (c, l) -> (n, c, output_size).

    Raises DTypeError for integers, TypeError for a wrong size.

    >>> fw.nn.functional.adaptive_avg_pool1d(fw.tensor([[1.0, 3.0, 5.0]]), 2)
    tensor([[2., 4.]])
    """
    return _average1(input, output_size)


@public("nn.functional", deferred=True)
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that give ``output_size``: (n, c, h, w) or (c, h, w) -> (n, c, h', w').

    >>> fw.nn.functional.adaptive_avg_pool2d(fw.ones(1, 2, 5, 7), (1, None)).shape
    (1, 2, 1, 7)
    """
    return _average2(input, output_size)


@public("nn.functional", autocast="float32", deferred=True)
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that give ``output_size``: (n, c, d, h, w) -> (n, c, d', h', w').

    >>> fw.nn.functional.adaptive_avg_pool3d(fw.ones(1, 1, 2, 3, 4), 1).flatten()
    tensor([1.])
    """
    return _average3(input, output_size)


# -- maxima, by the place of each ----------------------------------------------------------------


def _place_kernel(xp: Any, x: Any, *, out: tuple) -> Any:
    """The place, in the flattened image, of every window's largest element (the first; nan wins)."""
    d = len(out)
    size = x.shape[x.ndim - d:]
    lead = x.ndim - d
    places = xp.arange(math.prod(size)).reshape(size)
    for i, (s, o) in enumerate(zip(size, out)):  # every dimension becomes (windows, positions)
        low = np.arange(o) * s // max(o, 1)
        high = -(-(np.arange(o) + 1) * s // max(o, 1))
        most = int((high - low).max(initial=1))
        index = xp.asarray(np.minimum(low[:, None] + np.arange(most), high[:, None] - 1))
        x = xp.take(x, index, axis=lead + 2 * i)
        places = xp.take(places, index, axis=2 * i)
    order = (*range(0, 2 * d, 2), *range(1, 2 * d, 2))
    x = x.transpose(*range(lead), *(lead + a for a in order)).reshape(*x.shape[:lead], *out, -1)
    places = xp.broadcast_to(places.transpose(order).reshape(*out, -1), x.shape)
    best = x.argmax(axis=-1)[..., None]
    return xp.take_along_axis(places, best, -1)[..., 0]


def _largest_kernel(xp: Any, x: Any, *, out: tuple) -> tuple:
    places = _place_kernel(xp, x, out=out)
    return pick.kernel(xp, x, places, d=len(out)), places


def _largest_on_device(x: Any, *, out: tuple) -> Any:
    places = cuda.max_place(x, out=out)
    return places if places is NotImplemented else (pick(x, places, d=len(out)), places)


adaptive_max = Op("adaptive_max", "x", outputs="y places", differentiable=1, batch=merged(),
                  kernel=_largest_kernel, native="adaptive_max", device=_largest_on_device,
                  infer=lambda x, *, out: [Meta(x.shape[:x.ndim - len(out)] + out, x.dtype),
                                           Meta(x.shape[:x.ndim - len(out)] + out, int64)],
                  vjp={"x": lambda g, places, x_shape, out: put(g, places, d=len(out), x_shape=x_shape)},
                  loose_from=NEVER)


def _largest(d: int, x: Tensor, output_size: Any, return_indices: bool) -> list[Step]:
    op = f"adaptive_max_pool{d}d"
    check_images(real_arg(x, op), d, op)
    out = _target(op, x.shape[-d:], output_size)
    return [(adaptive_max.run, 1, {"out": out}) if return_indices else (_whole, 1, {"d": d, "out": out})]


_whole = Whole("adaptive_max_pool", "x", lambda x, *, d, out: adaptive_max.run(x, out=out)[0],
               onnx="adaptive_max(x, d, out)", runtime="adaptive_max(x, out)")
_largest1, _largest2, _largest3 = [planned(partial(_largest, d)) for d in (1, 2, 3)]


@public("nn.functional", deferred=True)
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that give ``output_size`` elements: (n, c, l) or (c, l) -> (n, c, output_size).

    return_indices: also the places of the elements, the first of equals, as int64.

    >>> fw.nn.functional.adaptive_max_pool1d(fw.tensor([[1.0, 3.0, 5.0]]), 2)
    tensor([[3., 5.]])
    """
    return _largest1(input, output_size, return_indices)


@public("nn.functional", deferred=True)
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that give ``output_size``: (n, c, h, w) or (c, h, w) -> (n, c, h', w').

    return_indices: also the places of the elements in the flattened image.

    >>> fw.nn.functional.adaptive_max_pool2d(fw.arange(6.0).reshape(1, 2, 3), 1)
    tensor([[[5.]]])
    """
    return _largest2(input, output_size, return_indices)


@public("nn.functional", autocast="float32", deferred=True)
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that give ``output_size``: (n, c, d, h, w) -> (n, c, d', h', w').

    return_indices: also the places of the elements in the flattened image.

    >>> fw.nn.functional.adaptive_max_pool3d(fw.arange(8.0).reshape(1, 2, 2, 2), 1).flatten()
    tensor([7.])
    """
    return _largest3(input, output_size, return_indices)
