"""Pooling to a given size: window i of n runs from floor(i * size / n) to ceil((i + 1) * size / n)."""

import math
from typing import Any

import numpy as np

from ...backends import array_module
from ...backends.sums import add_at
from ...errors import ShapeError
from ...memory_formats import for_images, laid_as
from ...tensor import Tensor
from ..index.cuda import gather, ungather
from ..record.args import floating, real_arg
from ..record.batched import merged
from ..record.op import Meta, Op
from ..record.public import public
from ..record.road import NEVER
from ..record.whole import Whole
from ..shape.view import take_shape
from . import cuda
from .conv import batched
from .pool import avg_pool
from .resample import Plan, resample


def _target(op: str, x: Tensor, d: int, output_size: Any) -> tuple[int, ...]:
    """``output_size`` as one size per dimension; None keeps a size."""
    size = x._array.shape[2:]
    if type(output_size) is int and output_size >= 0 and 0 not in size:  # the usual case
        return (output_size,) * d
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * d
    if len(given) != d or any(o is not None and (isinstance(o, bool) or not hasattr(o, "__index__"))
                              for o in given):
        raise TypeError(f"{op}: output_size must be an int or {d} ints (None keeps a size), got "
                        f"{output_size!r}")
    out = tuple(s if o is None else int(o) for s, o in zip(size, given))
    if min(out) < 0 or min(size) < 1:
        raise ShapeError(f"{op}: cannot pool an image of size {list(size)} to {list(out)}")
    return out


def _average(d: int, x: Tensor, output_size: Any) -> Tensor:
    op = f"adaptive_avg_pool{d}d"
    x, alone = batched(x, d, op)
    floating(x, op)
    out = _target(op, x, d, output_size)
    size = x._array.shape[2:]
    if 0 not in out and not any(s % o for s, o in zip(size, out)):
        kernel = tuple([s // o for s, o in zip(size, out)])
        x = avg_pool.run(x, kernel=kernel, stride=kernel, padding=(0,) * d, out=out, include=True,
                         divisor=None)
    else:
        for i, (s, o) in enumerate(zip(size, out)):
            if s != o:
                x = resample.run(x, dim=2 + i, plan=Plan("area", s, o, s / max(o, 1)), back=False)
    return take_shape(x, x.shape[1:]) if alone else x


@public("nn.functional")
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that give ``output_size`` elements: (n, c, l) or (c, l) -> (n, c, output_size).

    Raises DTypeError for integers, TypeError for a wrong size.

    >>> fw.nn.functional.adaptive_avg_pool1d(fw.tensor([[1.0, 3.0, 5.0]]), 2)
    tensor([[2., 4.]])
    """
    return _average(1, input, output_size)


@public("nn.functional")
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that give ``output_size``: (n, c, h, w) or (c, h, w) -> (n, c, h', w').

    >>> fw.nn.functional.adaptive_avg_pool2d(fw.ones(1, 2, 5, 7), (1, None)).shape
    (1, 2, 1, 7)
    """
    return _average(2, input, output_size)


@public("nn.functional", autocast="float32")
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that give ``output_size``: (n, c, d, h, w) -> (n, c, d', h', w').

    >>> fw.nn.functional.adaptive_avg_pool3d(fw.ones(1, 1, 2, 3, 4), 1).flatten()
    tensor([1.])
    """
    return _average(3, input, output_size)


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


def _rows(x: Any, d: int) -> Any:
    return x.reshape(math.prod(x.shape[:x.ndim - d]), math.prod(x.shape[x.ndim - d:]))


@for_images
def _pick_kernel(xp: Any, x: Any, index: Any, *, d: int) -> Any:
    return xp.take_along_axis(_rows(x, d), _rows(index, d), -1).reshape(index.shape)


@for_images
def _put_kernel(xp: Any, y: Any, index: Any, *, d: int, x_shape: tuple) -> Any:
    out = xp.zeros(math.prod(x_shape), y.dtype)
    rows = _rows(index, d)
    places = rows + xp.arange(rows.shape[0])[:, None] * math.prod(x_shape[len(x_shape) - d:])
    add_at(xp, out, places.reshape(-1), y.reshape(-1))  # windows overlap
    return out.reshape(x_shape)


def _pick_on_device(x: Any, index: Any, *, d: int) -> Any:
    found = gather(_rows(x, d), _rows(index, d), dim=1) if x.size else NotImplemented
    return found if found is NotImplemented else laid_as(array_module(x), found.reshape(index.shape), x)


def _put_on_device(y: Any, index: Any, *, d: int, x_shape: tuple) -> Any:
    shape = math.prod(x_shape[:len(x_shape) - d]), math.prod(x_shape[len(x_shape) - d:])
    found = ungather(_rows(y, d), _rows(index, d), dim=1, shape=shape) if y.size else NotImplemented
    return found if found is NotImplemented else laid_as(array_module(y), found.reshape(x_shape), y)


max_place = Op("max_place", "x", batch=merged(), kernel=_place_kernel, native="max_place", outputs="y",
               device=cuda.max_place)
pick = Op("pick_places", "x index", batch=merged(), kernel=_pick_kernel, native="pick_places", jvp="linear",
          device=_pick_on_device,
          infer=lambda x, index, *, d: Meta(index.shape, x.dtype),
          vjp={"x": lambda g, index, x_shape, d: put(g, index, d=d, x_shape=x_shape)}, loose_from=NEVER)
put = Op("put_places", "y index", batch=merged(), kernel=_put_kernel, native="put_places", jvp="linear",
         device=_put_on_device,
         infer=lambda y, index, *, d, x_shape: Meta(x_shape, y.dtype),
         vjp={"y": lambda g, index, d: pick(g, index, d=d)}, loose_from=NEVER)


def _largest(d: int, x: Tensor, output_size: Any, return_indices: bool) -> Any:
    op = f"adaptive_max_pool{d}d"
    x, alone = batched(real_arg(x, op), d, op)
    out = _target(op, x, d, output_size)
    y, index = _places_and_maxima(x, d, out) if return_indices else (_whole(x, d=d, out=out), None)
    if alone:
        y, index = (t if t is None else take_shape(t, t.shape[1:]) for t in (y, index))
    return (y, index) if return_indices else y


def _places_and_maxima(x: Tensor, d: int, out: tuple) -> tuple[Tensor, Tensor]:
    index = max_place.run(x, out=out)
    return pick.run(x, index, d=d), index


_whole = Whole("adaptive_max_pool", "x", lambda x, *, d, out: _places_and_maxima(x, d, out)[0],
               onnx="adaptive_max(x, d, out)", runtime="adaptive_max(x, out)")


@public("nn.functional")
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that give ``output_size`` elements: (n, c, l) or (c, l) -> (n, c, output_size).

    return_indices: also the places of the elements, the first of equals, as int64.

    >>> fw.nn.functional.adaptive_max_pool1d(fw.tensor([[1.0, 3.0, 5.0]]), 2)
    tensor([[3., 5.]])
    """
    return _largest(1, input, output_size, return_indices)


@public("nn.functional")
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that give ``output_size``: (n, c, h, w) or (c, h, w) -> (n, c, h', w').

    return_indices: also the places of the elements in the flattened image.

    >>> fw.nn.functional.adaptive_max_pool2d(fw.arange(6.0).reshape(1, 2, 3), 1)
    tensor([[[5.]]])
    """
    return _largest(2, input, output_size, return_indices)


@public("nn.functional", autocast="float32")
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that give ``output_size``: (n, c, d, h, w) -> (n, c, d', h', w').

    return_indices: also the places of the elements in the flattened image.

    >>> fw.nn.functional.adaptive_max_pool3d(fw.arange(8.0).reshape(1, 2, 2, 2), 1).flatten()
    tensor([7.])
    """
    return _largest(3, input, output_size, return_indices)
