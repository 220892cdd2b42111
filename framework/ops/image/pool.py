"""Pooling: the largest or the mean element of every window, in 1, 2 and 3 dimensions.

Kernels go over the kernel positions, not the windows: position k of all windows is one strided slice
of the image. Maxima and sums go dimension by dimension, which takes kh + kw slices, not kh * kw.
Backward of a maximum finds the position that gave it again, which is cheaper than to note it on every
forward.
"""

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from ...dtypes import int32, int64, uint8
from ...errors import ShapeError
from ...memory_formats import for_images
from ...tensor import Tensor
from ..record.args import floating, ntuple, number_arg, real_arg
from ..record.batched import merged
from ..record.op import Meta, Op
from ..record.planned import Step, planned
from ..record.public import public
from ..record.road import NEVER
from ..record.rounded import is_numpy
from . import cuda
from .conv import at_least, check_images
from .places import put

_MANY = 8  # positions from which a sum over a reshaped axis beats adding slices


# -- the windows ---------------------------------------------------------------------------------


def _out_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    """How many windows: with ``ceil`` also one that reaches over the end, if it starts before it."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    out = (span + (stride - 1 if ceil else 0)) // stride + 1
    return out - 1 if ceil and (out - 1) * stride >= size + padding else out


def _reach(size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple,
           out: tuple) -> tuple[int, ...]:
    """The padded sizes that hold the image and every window."""
    return tuple(max(p + s, (o - 1) * st + d * (k - 1) + 1) for s, k, st, p, d, o in
                 zip(size, kernel, stride, padding, dilation, out))


def _inside(size: tuple, padding: tuple) -> tuple:
    return (Ellipsis, *(slice(p, p + s) for s, p in zip(size, padding)))


def _padded(xp: Any, x: Any, padding: tuple, reach: tuple, value: Any) -> Any:
    """The image with ``value`` around it; itself where nothing is added."""
    size = x.shape[x.ndim - len(padding):]
    if reach == size:
        return x
    out = xp.full(x.shape[:x.ndim - len(padding)] + reach, value, x.dtype)
    out[_inside(size, padding)] = x
    return out


def _axis_slice(after: int, k: int, stride: int, dilation: int, out: int) -> tuple:
    """Position k of all windows along one dimension that has ``after`` dimensions behind it."""
    start = k * dilation
    return (Ellipsis, slice(start, start + stride * (out - 1) + 1, stride), *(slice(None),) * after)


def _positions(kernel: tuple, stride: tuple, dilation: tuple, out: tuple) -> Iterator[tuple]:
    """The slices of all kernel positions, in order."""
    for at in product(*map(range, kernel)):
        yield (Ellipsis, *(slice(k * d, k * d + s * (o - 1) + 1, s)
                           for k, s, d, o in zip(at, stride, dilation, out)))


def _disjoint(kernel: tuple, stride: tuple, dilation: tuple) -> bool:
    return all(s >= d * (k - 1) + 1 for k, s, d in zip(kernel, stride, dilation))


# -- the largest element -------------------------------------------------------------------------


def _lowest(dtype: Any) -> Any:
    return -math.inf if dtype.kind == "f" else np.iinfo(dtype).min if dtype.kind in "iu" else False


@for_images
def _max_kernel(xp: Any, x: Any, *, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple,
                out: tuple) -> Any:
    d = len(kernel)
    reach = _reach(x.shape[x.ndim - d:], kernel, stride, padding, dilation, out)
    x = source = _padded(xp, x, padding, reach, _lowest(x.dtype))
    for i in range(d):
        slices = [x[_axis_slice(d - 1 - i, k, stride[i], dilation[i], out[i])] for k in range(kernel[i])]
        if len(slices) == 1:
            x = slices[0]
            continue
        x = xp.maximum(slices[0], slices[1])
        for part in slices[2:]:
            xp.maximum(x, part, out=x)
    return xp.array(x, copy=True, order="C") if x is source or x.base is not None else x


def _starts(xp: Any, i: int, stride: tuple, padding: tuple, out: tuple) -> Any:
    """Where along dimension i each window starts; negative in the padding."""
    window = xp.arange(out[i], dtype=np.int64).reshape(-1, *(1,) * (len(out) - 1 - i))
    return window * stride[i] - padding[i]


def _first_inside(xp: Any, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, out: tuple) -> Any:
    """The number of each window's first element that is in the image, not in the padding."""
    number = 0
    for i, k in enumerate(kernel):
        ahead = -(_starts(xp, i, stride, padding, out) // dilation[i])
        number = number * k + xp.clip(ahead, 0, k - 1)
    return number


@for_images
def _max_position_kernel(xp: Any, x: Any, *, kernel: tuple, stride: tuple, padding: tuple,
                         dilation: tuple, out: tuple) -> Any:
    """The kernel position that holds the window's largest element: the first, or a nan."""
    d, count = len(kernel), math.prod(kernel)
    largest = _max_kernel(xp, x, kernel=kernel, stride=stride, padding=padding, dilation=dilation, out=out)
    reach = _reach(x.shape[x.ndim - d:], kernel, stride, padding, dilation, out)
    x = _padded(xp, x, padding, reach, _lowest(x.dtype))
    has_nan = x.dtype.kind == "f" and (xp is not np or bool((largest != largest).any()))
    where = xp.zeros(largest.shape, np.uint8 if count < 256 else np.int32)
    missing = xp.ones(largest.shape, bool)  # windows whose element is not found yet
    for k, position in enumerate(_positions(kernel, stride, dilation, out)):
        part = x[position]
        hit = part == largest
        if has_nan:
            hit |= part != part
        hit &= missing
        missing ^= hit
        where += hit * where.dtype.type(k)  # bytes all the way: far quicker than a masked copy
    if any(padding):  # which is as low as a window of the lowest numbers
        first = _first_inside(xp, kernel, stride, padding, dilation, out)
        xp.maximum(where, first.astype(where.dtype), out=where)
    return where


def _select(xp: Any, y: Any) -> Any:
    """A function giving y where a mask holds and 0 elsewhere; a product, unless y has nan or inf."""
    if xp is np and np.isfinite(y.sum()):
        return lambda mask: y * mask
    return lambda mask: xp.where(mask, y, y.dtype.type(0))


@for_images
def _spread_kernel(xp: Any, y: Any, where: Any, *, x_shape: tuple, kernel: tuple, stride: tuple,
                   padding: tuple, dilation: tuple, out: tuple) -> Any:
    d = len(kernel)
    size = x_shape[len(x_shape) - d:]
    reach = _reach(size, kernel, stride, padding, dilation, out)
    full = xp.zeros(x_shape[:len(x_shape) - d] + reach, y.dtype)
    disjoint = _disjoint(kernel, stride, dilation)
    chosen = _select(xp, y)
    for k, part in enumerate(_positions(kernel, stride, dilation, out)):
        mine = chosen(where == k)
        if disjoint:
            full[part] = mine
        else:
            full[part] += mine
    return full if reach == size else xp.ascontiguousarray(full[_inside(size, padding)])


@for_images
def _collect_kernel(xp: Any, x: Any, where: Any, *, kernel: tuple, stride: tuple, padding: tuple,
                    dilation: tuple, out: tuple) -> Any:
    d = len(kernel)
    x = _padded(xp, x, padding, _reach(x.shape[x.ndim - d:], kernel, stride, padding, dilation, out), 0)
    y = xp.zeros(where.shape, x.dtype)
    for k, part in enumerate(_positions(kernel, stride, dilation, out)):
        xp.copyto(y, x[part], where=where == k)
    return y


def _pool_infer(x: Meta, *, out: tuple, **settings: Any) -> Meta:
    return Meta(x.shape[:x.ndim - len(out)] + out, x.dtype)


def _layout(kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, out: tuple) -> dict[str, Any]:
    return {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "out": out}


def _max_vjp(g: Any, x: Any, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple,
             out: tuple) -> Any:
    layout = _layout(kernel, stride, padding, dilation, out)
    return max_spread(g, max_position(x, **layout), x_shape=x.shape, **layout)


# "out" is a setting here (the output's spatial sizes), so the outputs have other names
max_pool = Op("max_pool", "x", onnx="pooled('MaxPool', x, kernel, stride, padding, out, dilation)",
              runtime="max_pool(x, kernel, stride, padding, dilation, out)",
              kernel=_max_kernel, native="max_pool", whole="kept", infer=_pool_infer, outputs="y",
              device=cuda.max_pool,
              batch=merged(),
              vjp={"x": _max_vjp}, loose_from=NEVER)
max_position = Op("max_position", "x", kernel=_max_position_kernel, native="max_position", whole="kept",
                  outputs="y",
                  device=cuda.max_position,
                  batch=merged(),
                  infer=lambda x, *, out, kernel, **settings: Meta(
                      _pool_infer(x, out=out).shape, uint8 if math.prod(kernel) < 256 else int32),
                  loose_from=NEVER)
max_spread = Op("max_spread", "y where", kernel=_spread_kernel, native="max_spread", outputs="x",
                device=cuda.max_spread,
                batch=merged(),
                jvp="linear", infer=lambda y, where, *, x_shape, **settings: Meta(x_shape, y.dtype),
                vjp={"y": lambda g, where, kernel, stride, padding, dilation, out: max_collect(
                    g, where, **_layout(kernel, stride, padding, dilation, out))}, loose_from=NEVER)
max_collect = Op("max_collect", "x where", kernel=_collect_kernel, native="max_collect", outputs="y",
                 batch=merged(),
                 jvp="linear", infer=lambda x, where, **settings: Meta(where.shape, x.dtype),
                 vjp={"x": lambda g, where, x_shape, kernel, stride, padding, dilation, out: max_spread(
                     g, where, x_shape=x_shape, **_layout(kernel, stride, padding, dilation, out))},
                 loose_from=NEVER)


@for_images
def _flat_index_kernel(xp: Any, where: Any, *, size: tuple, kernel: tuple, stride: tuple, padding: tuple,
                       dilation: tuple, out: tuple) -> Any:
    """The place of the largest element in the flattened image."""
    d = len(kernel)
    rest = where.astype(np.int64)
    index, step = 0, 1
    for i in range(d - 1, -1, -1):
        rest, k = rest // kernel[i], rest % kernel[i]
        at = _starts(xp, i, stride, padding, out) + k * dilation[i]
        index = index + xp.clip(at, 0, size[i] - 1) * step
        step *= size[i]
    return index


def _with_places_infer(x: Meta, *, out: tuple, **settings: Any) -> list[Meta]:
    y = _pool_infer(x, out=out)
    return [y, Meta(y.shape, int64)]


def _with_places(xp: Any, x: Any, **layout: Any) -> tuple:
    where, size = _max_position_kernel(xp, x, **layout), x.shape[-len(layout["kernel"]):]
    return _max_kernel(xp, x, **layout), _flat_index_kernel(xp, where, size=size, **layout)


def _with_places_on_device(x: Any, **layout: Any) -> Any:
    y, where = cuda.max_pool(x, **layout), cuda.max_position(x, **layout)
    if y is NotImplemented or where is NotImplemented:
        return NotImplemented
    places = cuda.max_index(where, size=x.shape[-len(layout["kernel"]):], **layout)
    return places if places is NotImplemented else (y, places)


def _with_places_vjp(g: Any, x: Any, places: Any, kernel: tuple, stride: tuple, padding: tuple,
                     dilation: tuple, out: tuple) -> Any:
    if is_numpy(getattr(g, "_array", g)):
        return put(g, places, d=len(out), x_shape=x.shape)
    return _max_vjp(g, x, kernel, stride, padding, dilation, out)  # sums by places have no fixed order there


max_with_places = Op("max_with_places", "x", outputs="y places", differentiable=1, batch=merged(),
                     kernel=_with_places, native="max_with_places", whole="kept",
                     device=_with_places_on_device,
                     infer=_with_places_infer,
                     vjp={"x": _with_places_vjp},
                     loose_from=NEVER)


# -- the mean element ----------------------------------------------------------------------------


def _sum_windows(xp: Any, x: Any, kernel: tuple, stride: tuple, padding: tuple, out: tuple) -> Any:
    d = len(kernel)
    x = _padded(xp, x, padding, _reach(x.shape[x.ndim - d:], kernel, stride, padding, (1,) * d, out), 0)
    for i in range(d):
        axis = x.ndim - d + i
        if kernel[i] == stride[i] and kernel[i] >= _MANY and x.shape[axis] == kernel[i] * out[i]:
            shape = x.shape[:axis] + (out[i], kernel[i]) + x.shape[axis + 1:]
            x = x.reshape(shape).sum(axis=axis + 1, dtype=x.dtype)
            continue
        slices = [x[_axis_slice(d - 1 - i, k, stride[i], 1, out[i])] for k in range(kernel[i])]
        x = slices[0] + slices[1] if len(slices) > 1 else slices[0].copy()
        for part in slices[2:]:
            x += part
    return x


@lru_cache(maxsize=256)
def _shares(size: tuple, kernel: tuple, stride: tuple, padding: tuple, out: tuple, include: bool,
            divisor: int | None) -> Any:
    """What a window's sum is multiplied with: a float, or an array where windows differ."""
    if divisor is not None:
        return 1.0 / divisor
    total = np.ones(())
    for s, k, st, p, o in zip(size, kernel, stride, padding, out):
        start = np.arange(o) * st - p
        stop = np.minimum(start + k, s + p)
        count = stop - start if include else np.minimum(stop, s) - np.maximum(start, 0)
        total = total[..., None] * count
    return 1.0 / float(total.flat[0]) if total.size and (total == total.flat[0]).all() else 1 / total


def _share(xp: Any, y: Any, size: tuple, kernel: tuple, stride: tuple, padding: tuple, out: tuple,
           include: bool, divisor: int | None) -> Any:
    share = _shares(size, kernel, stride, padding, out, include, divisor)
    return y * (share if isinstance(share, float) else xp.asarray(share.astype(y.dtype)))


@for_images
def _avg_kernel(xp: Any, x: Any, *, kernel: tuple, stride: tuple, padding: tuple, out: tuple,
                include: bool, divisor: int | None) -> Any:
    size = x.shape[x.ndim - len(kernel):]
    return _share(xp, _sum_windows(xp, x, kernel, stride, padding, out), size, kernel, stride, padding,
                  out, include, divisor)


@for_images
def _avg_spread_kernel(xp: Any, y: Any, *, x_shape: tuple, kernel: tuple, stride: tuple, padding: tuple,
                       out: tuple, include: bool, divisor: int | None) -> Any:
    d = len(kernel)
    size = x_shape[len(x_shape) - d:]
    y = _share(xp, y, size, kernel, stride, padding, out, include, divisor)
    reach = _reach(size, kernel, stride, padding, (1,) * d, out)
    for i in range(d - 1, -1, -1):
        axis = y.ndim - d + i
        full = xp.zeros(y.shape[:axis] + (reach[i],) + y.shape[axis + 1:], y.dtype)
        for k in range(kernel[i]):
            full[_axis_slice(d - 1 - i, k, stride[i], 1, out[i])] += y
        y = full
    return y if reach == size else xp.ascontiguousarray(y[_inside(size, padding)])


def _avg_layout(kernel: tuple, stride: tuple, padding: tuple, out: tuple, include: bool,
                divisor: int | None) -> dict[str, Any]:
    return {"kernel": kernel, "stride": stride, "padding": padding, "out": out, "include": include,
            "divisor": divisor}


def _avg_on_device(x: Any, *, kernel: tuple, stride: tuple, padding: tuple, out: tuple, include: bool,
                   divisor: int | None) -> Any:
    share = _shares(x.shape[x.ndim - len(kernel):], kernel, stride, padding, out, include, divisor)
    shape = (*x.shape[:x.ndim - len(kernel)], *out)
    return cuda.sum_pool("sum_pool", x, shape, x.shape, share, include, kernel, stride, padding, out)


def _avg_spread_on_device(y: Any, *, x_shape: tuple, kernel: tuple, stride: tuple, padding: tuple, out: tuple,
                          include: bool, divisor: int | None) -> Any:
    share = _shares(x_shape[len(x_shape) - len(kernel):], kernel, stride, padding, out, include, divisor)
    return cuda.sum_pool("sum_pool_grad", y, x_shape, x_shape, share, include, kernel, stride, padding,
                         out)


avg_pool = Op("avg_pool", "x",
              onnx="pooled('AveragePool', x, kernel, stride, padding, out, None, include, divisor)",
              runtime="mean_pool(x, kernel, stride, padding, out, include, divisor)",
              kernel=_avg_kernel, native="avg_pool", infer=_pool_infer, outputs="y", device=_avg_on_device,
              batch=merged(),
              jvp="linear",
              vjp={"x": lambda g, x_shape, kernel, stride, padding, out, include, divisor: avg_spread(
                  g, x_shape=x_shape, **_avg_layout(kernel, stride, padding, out, include, divisor))},
              loose_from=NEVER)
avg_spread = Op("avg_spread", "y", kernel=_avg_spread_kernel, native="avg_spread", outputs="x", jvp="linear",
                device=_avg_spread_on_device,
                batch=merged(),
                infer=lambda y, *, x_shape, **settings: Meta(x_shape, y.dtype),
                vjp={"y": lambda g, kernel, stride, padding, out, include, divisor: avg_pool(
                    g, **_avg_layout(kernel, stride, padding, out, include, divisor))}, loose_from=NEVER)

# -- max and average, public ---------------------------------------------------------------------


def _settings(op: str, size: tuple[int, ...], kernel: Any, stride: Any, padding: Any, dilation: Any,
              ceil: bool) -> dict[str, Any]:
    d = len(size)
    kernel = at_least(ntuple(kernel, d, op, "kernel_size"), 1, op, "kernel_size")
    given = kernel if stride is None or stride in ((), []) else ntuple(stride, d, op, "stride")
    stride = at_least(given, 1, op, "stride")
    padding = at_least(ntuple(padding, d, op, "padding"), 0, op, "padding")
    dilation = at_least(ntuple(dilation, d, op, "dilation"), 1, op, "dilation")
    if any(2 * p > t * (k - 1) + 1 for p, k, t in zip(padding, kernel, dilation)):
        raise ValueError(f"{op}: padding {list(padding)} must be at most half of the kernel size "
                         f"{list(kernel)}, or a window would see nothing but padding")
    out = tuple(_out_size(*each, ceil) for each in zip(size, kernel, stride, padding, dilation))
    if min(out) < 1 or min(size) < 1:
        raise ShapeError(f"{op}: a window of {list(kernel)} (dilation {list(dilation)}) does not fit into an "
                         f"image of size {list(size)} with padding {list(padding)}")
    return _layout(kernel, stride, padding, dilation, out)


def _max(d: int, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool,
         return_indices: bool) -> list[Step]:
    op = f"max_pool{d}d"
    check_images(real_arg(x, op), d, op)
    layout = _settings(op, x.shape[-d:], kernel, stride, padding, dilation, ceil)
    return [((max_with_places if return_indices else max_pool).run, 1, layout)]


_max1, _max2, _max3 = [planned(partial(_max, d)) for d in (1, 2, 3)]


@public("nn.functional", op=max_pool, deferred=True)
def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """The largest element of every window: (n, c, l) or (c, l) -> (n, c, l').

    stride: kernel_size unless given. ceil_mode: windows may reach over the end. return_indices: also
    the places of the elements, the first of equals, as int64. l' = (l + 2 padding -
    dilation (k - 1) - 1) // stride + 1. Raises ShapeError where no window fits.

    >>> fw.nn.functional.max_pool1d(fw.tensor([[1.0, 3.0, 2.0, 5.0]]), 2)
    tensor([[3., 5.]])
    """
    return _max1(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@public("nn.functional", deferred=True)
def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """The largest element of every window: (n, c, h, w) or (c, h, w) -> (n, c, h', w').

    The settings are those of ``max_pool1d``, a number or one per dimension; an index counts along the
    flattened image.

    >>> fw.nn.functional.max_pool2d(fw.arange(16.0).reshape(1, 1, 4, 4), 2)[0, 0]
    tensor([[ 5.,  7.],
            [13., 15.]])
    """
    return _max2(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@public("nn.functional", autocast="float32", deferred=True)
def max_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """The largest element of every window: (n, c, d, h, w) or (c, d, h, w) -> (n, c, d', h', w').

    The settings are those of ``max_pool1d``.

    >>> fw.nn.functional.max_pool3d(fw.ones(1, 1, 2, 2, 2), 2).shape
    (1, 1, 1, 1, 1)
    """
    return _max3(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _avg(d: int, x: Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool,
         divisor: int | None) -> list[Step]:
    op = f"avg_pool{d}d"
    check_images(x, d, op)
    floating(x, op)
    divisor = number_arg(divisor, op, "divisor_override")
    if divisor == 0:
        raise ValueError(f"{op}: divisor_override must not be 0")
    layout = _settings(op, x.shape[-d:], kernel, stride, padding, 1, ceil)
    del layout["dilation"]
    return [(avg_pool.run, 1, {**layout, "include": bool(include), "divisor": divisor})]


_avg1, _avg2, _avg3 = [planned(partial(_avg, d)) for d in (1, 2, 3)]


@public("nn.functional", op=avg_pool, deferred=True)
def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    """The mean of every window: (n, c, l) or (c, l) -> (n, c, l').

    stride: kernel_size unless given. count_include_pad: padding counts as zeros; else it does not count.
    Raises ShapeError where no window fits, DTypeError for integers.

    >>> fw.nn.functional.avg_pool1d(fw.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[2., 3.]])
    """
    return _avg1(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@public("nn.functional", deferred=True)
def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean of every window: (n, c, h, w) or (c, h, w) -> (n, c, h', w').

    The settings are those of ``avg_pool1d``; divisor_override: divide by this, whatever the count.

    >>> fw.nn.functional.avg_pool2d(fw.arange(4.0).reshape(1, 1, 2, 2), 2)
    tensor([[[[1.5000]]]])
    """
    return _avg2(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@public("nn.functional", autocast="float32", deferred=True)
def avg_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean of every window: (n, c, d, h, w) or (c, d, h, w) -> (n, c, d', h', w').

    The settings are those of ``avg_pool2d``.

    >>> fw.nn.functional.avg_pool3d(fw.ones(1, 1, 2, 2, 2), 2).shape
    (1, 1, 1, 1, 1)
    """
    return _avg3(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
