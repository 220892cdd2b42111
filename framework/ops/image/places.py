"""Elements of images by their places in the flattened image, and back: what maxima have chosen."""

import math
from typing import Any

import numpy as np

from ...backends import array_module
from ...backends.sums import add_at
from ...memory_formats import for_images, laid_as
from ..index.cuda import gather, ungather
from ..record.batched import merged
from ..record.op import Meta, Op
from ..record.road import NEVER


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


@for_images
def _unpool_kernel(xp: Any, y: Any, index: Any, *, d: int, x_shape: tuple) -> Any:
    rows, size = _rows(index, d), x_shape[len(x_shape) - d:]
    total = math.prod(size)
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < total:
        raise IndexError(f"max_unpool{d}d: indices must lie in [0, {total - 1}], the places of an image of "
                         f"size {list(size)}; they go from {int(rows.min())} to {int(rows.max())}")
    out = xp.zeros((rows.shape[0], total), y.dtype)
    xp.put_along_axis(out, rows.astype(np.int64), _rows(y, d), 1)
    return out.reshape(x_shape)


def _pick_on_device(x: Any, index: Any, *, d: int) -> Any:
    found = gather(_rows(x, d), _rows(index, d), dim=1) if x.size else NotImplemented
    return found if found is NotImplemented else laid_as(array_module(x), found.reshape(index.shape), x)


def _put_on_device(y: Any, index: Any, *, d: int, x_shape: tuple) -> Any:
    shape = math.prod(x_shape[:len(x_shape) - d]), math.prod(x_shape[len(x_shape) - d:])
    found = ungather(_rows(y, d), _rows(index, d), dim=1, shape=shape) if y.size else NotImplemented
    return found if found is NotImplemented else laid_as(array_module(y), found.reshape(x_shape), y)


pick = Op("pick_places", "x index", batch=merged(), kernel=_pick_kernel, native="pick_places", jvp="linear",
          device=_pick_on_device,
          infer=lambda x, index, *, d: Meta(index.shape, x.dtype),
          vjp={"x": lambda g, index, x_shape, d: put(g, index, d=d, x_shape=x_shape)}, loose_from=NEVER)
put = Op("put_places", "y index", batch=merged(), kernel=_put_kernel, native="put_places", jvp="linear",
         device=_put_on_device,
         infer=lambda y, index, *, d, x_shape: Meta(x_shape, y.dtype),
         vjp={"y": lambda g, index, d: pick(g, index, d=d)}, loose_from=NEVER)
# of two numbers at one place the last one stays
unpool = Op("unpool_places", "y index", batch=merged(), kernel=_unpool_kernel, native="unpool_places",
            infer=lambda y, index, *, d, x_shape: Meta(x_shape, y.dtype),
            vjp={"y": lambda g, index, d: pick(g, index, d=d)}, loose_from=NEVER)
