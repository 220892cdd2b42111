"""Convolutions and pooling on GPUs, in any memory format: one kernel each (``conv.cu``, ``pool.cu``), or
cuDNN's where it is installed and has a plan (``backends/cudnn_graphs.py``)."""

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, cudnn_graphs, device_code, device_launcher, turned
from ...memory_formats import back, format_of, laid_as, order
from ..language.cuda_fold import fold_of_elements

_CONV = device_code.source(Path(__file__).with_name("conv.cu"))
_POOL = device_code.source(Path(__file__).with_name("pool.cu"))
_SPATIAL = [(name, "i8", (3,)) for name in ("size", "out", "kernel", "stride", "padding", "dilation")]
_WINDOWS = np.dtype(
    [
        *[(n, "i8") for n in ("images", "groups", "channels", "outs")],
        *_SPATIAL,
        *[(n, "i8") for n in ("area", "out_area", "taps")],
    ]
)
_PLACES = np.dtype([*[(n, "i8") for n in ("rows", "area", "out_area")], *_SPATIAL])
_TILE, _BUSY, _MOST_SHARES = 32, 512, 64


def _filled(plan: Any, **named: Any) -> Any:
    for name, value in named.items():
        if isinstance(value, tuple):
            plan[name] = 0 if name == "padding" else 1
            plan[name][0, 3 - len(value) :] = value
        else:
            plan[name] = value
    return plan


@lru_cache(4096)
def _windows(
    x_shape: tuple, w_shape: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int
) -> Any:
    """The plan of a convolution; None where nothing is to be done, or in more than 3 dimensions."""
    size, kernel = x_shape[2:], w_shape[2:]
    out = tuple(
        (s + 2 * p - d * (k - 1) - 1) // st + 1
        for s, k, st, p, d in zip(size, kernel, stride, padding, dilation)
    )
    if len(size) > 3 or not math.prod(x_shape) or not math.prod(w_shape) or min(out) < 1:
        return None
    return out, _filled(
        np.zeros(1, _WINDOWS),
        images=x_shape[0],
        groups=groups,
        channels=w_shape[1],
        outs=w_shape[0] // groups,
        size=size,
        out=out,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        area=math.prod(size),
        out_area=math.prod(out),
        taps=math.prod(kernel),
    )


def _grid(groups: int, m: int, n: int) -> int:
    return min(groups * -(-m // _TILE) * -(-n // _TILE), 1 << 30)


def _new(shape: tuple[int, ...], *sources: Any) -> Any:
    """Memory that lies as ``laid_as`` would have it, channels last where one of the sources has them so."""
    ndim, empty = len(shape), device_launcher.empty
    if not any(format_of(s).ndim == ndim for s in sources):
        return empty(shape, sources[0].dtype)
    return empty(tuple([shape[d] for d in order(ndim)]), sources[0].dtype).transpose(back(ndim))


def _plain(a: Any) -> Any:
    """The array as cuDNN takes it: in rows or with channels last."""
    return a if format_of(a).ndim == a.ndim else turned.rows(a)


def conv(x: Any, w: Any, b: Any, *, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> Any:
    """The device function of conv."""
    char = device_code.char_of(*[a for a in (x, w, b) if a is not None])
    found = _windows(x.shape, w.shape, stride, padding, dilation, groups)
    if char not in device_code.FLOATS or found is None:
        return NotImplemented
    (out, plan), module = found, cuda.cupy()
    if cudnn_graphs.frontend() is not None:
        y = _new((x.shape[0], w.shape[0], *out), x, w)
        if cudnn_graphs.convolve(char, "fprop", _plain(x), _plain(w), y, b, (padding, stride, dilation)):
            return y
    y = device_launcher.empty((x.shape[0], w.shape[0], *out), x.dtype)
    rows = turned.rows
    _CONV.kernel("conv", char)(
        (_grid(groups, w.shape[0] // groups, x.shape[0] * math.prod(out)),),
        (device_code.THREADS,),
        (y, rows(x), rows(w), None if b is None else rows(b), plan),
    )
    return laid_as(module, y, x, w)


def conv_relu(x: Any, w: Any, b: Any, *, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> Any:
    """``relu(conv(...))`` by cuDNN; NotImplemented where it has no plan, or is not there."""
    char = device_code.char_of(*[a for a in (x, w, b) if a is not None])
    found = _windows(x.shape, w.shape, stride, padding, dilation, groups)
    if char not in device_code.FLOATS or found is None or cudnn_graphs.frontend() is None:
        return NotImplemented
    y, windows = _new((x.shape[0], w.shape[0], *found[0]), x, w), (padding, stride, dilation)
    done = cudnn_graphs.convolve(char, "fprop", _plain(x), _plain(w), y, b, windows, relu=True)
    return y if done else NotImplemented


def conv_input_grad(
    y: Any, w: Any, *, x_shape: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int
) -> Any:
    """That of conv_input_grad, which is the transposed convolution."""
    char = device_code.char_of(y, w)
    found = _windows(x_shape, w.shape, stride, padding, dilation, groups)
    if char not in device_code.FLOATS or found is None or found[0] != y.shape[2:]:
        return NotImplemented
    module = cuda.cupy()
    if cudnn_graphs.frontend() is not None:
        x = _new(x_shape, y, w)
        if cudnn_graphs.convolve(char, "dgrad", _plain(y), _plain(w), x, None, (padding, stride, dilation)):
            return x
    x = device_launcher.empty(x_shape, y.dtype)
    _CONV.kernel("conv_input_grad", char)(
        (_grid(groups, w.shape[1], x_shape[0] * math.prod(x_shape[2:])),),
        (device_code.THREADS,),
        (x, turned.rows(y), turned.rows(w), found[1]),
    )
    return laid_as(module, x, y, w)


def conv_weight_grad(
    x: Any, y: Any, *, w_shape: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int
) -> Any:
    """That of conv_weight_grad: where the weights are few, several blocks share the sum over the images."""
    char = device_code.char_of(x, y)
    found = _windows(x.shape, w_shape, stride, padding, dilation, groups)
    if char not in device_code.FLOATS or found is None or found[0] != y.shape[2:]:
        return NotImplemented
    (out, plan), module = found, cuda.cupy()
    if cudnn_graphs.frontend() is not None:
        w = _new(w_shape, x, y)
        if cudnn_graphs.convolve(char, "wgrad", _plain(x), _plain(y), w, None, (padding, stride, dilation)):
            return w
    grid = _grid(groups, w_shape[0] // groups, math.prod(w_shape[1:]))
    shares = max(1, min(_BUSY // grid, x.shape[0] * math.prod(out) // 256, _MOST_SHARES))
    wide = np.dtype(np.float64 if char == "d" else np.float32)
    parts = device_launcher.empty((shares, *w_shape), wide) if shares > 1 else None
    w = device_launcher.empty(w_shape, x.dtype) if parts is None else None
    _CONV.kernel("conv_weight_grad", char)(
        (grid, shares),
        (device_code.THREADS,),
        (w, parts, turned.rows(x), turned.rows(y), plan),
    )
    if parts is not None:
        w = fold_of_elements("sum", (0,), w_shape, parts)
        w = w if w.dtype == x.dtype else w.astype(x.dtype)
    return laid_as(module, w, x, y)


@lru_cache(4096)
def _places(x_shape: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, out: tuple) -> Any:
    size = x_shape[len(x_shape) - len(kernel) :]
    return _filled(
        np.zeros(1, _PLACES),
        rows=math.prod(x_shape) // max(1, math.prod(size)),
        size=size,
        out=out,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        area=math.prod(size),
        out_area=math.prod(out),
    )


def _pooled(name: str, char: str, n: int, *arguments: Any) -> None:
    _POOL.kernel(name, char)((device_code.blocks(n),), (device_code.THREADS,), arguments)


def _takes(x: Any, kernel: tuple) -> str:
    char = device_code.char_of(x)
    return char if char in device_code.FLOATS and x.size and len(kernel) <= 3 else ""


def max_pool(x: Any, *, kernel: tuple, out: tuple, **places: Any) -> Any:
    """The device function of max_pool."""
    char, module = _takes(x, kernel), cuda.cupy()
    if not char:
        return NotImplemented
    y = device_launcher.empty((*x.shape[: x.ndim - len(out)], *out), x.dtype)
    _pooled(
        "max_pool",
        char,
        y.size,
        y,
        module.ascontiguousarray(x),
        _places(x.shape, kernel=kernel, out=out, **places),
    )
    return laid_as(module, y, x)


def max_position(x: Any, *, kernel: tuple, out: tuple, **places: Any) -> Any:
    """That of max_position."""
    char, module = _takes(x, kernel), cuda.cupy()
    if not char:
        return NotImplemented
    small = math.prod(kernel) < 256
    where = device_launcher.empty((*x.shape[: x.ndim - len(out)], *out), np.uint8 if small else np.int32)
    _pooled(
        "max_position",
        char,
        where.size,
        where if small else None,
        None if small else where,
        module.ascontiguousarray(x),
        _places(x.shape, kernel=kernel, out=out, **places),
    )
    return where


def max_spread(y: Any, where: Any, *, x_shape: tuple, kernel: tuple, out: tuple, **places: Any) -> Any:
    """That of max_spread."""
    char, module = _takes(y, kernel), cuda.cupy()
    if not char or not math.prod(x_shape) or where.dtype not in (np.uint8, np.int32):
        return NotImplemented
    x, chosen, small = (
        device_launcher.empty(x_shape, y.dtype),
        module.ascontiguousarray(where),
        where.dtype == np.uint8,
    )
    _pooled(
        "max_spread",
        char,
        x.size,
        x,
        module.ascontiguousarray(y),
        chosen if small else None,
        None if small else chosen,
        _places(x_shape, kernel=kernel, out=out, **places),
    )
    return laid_as(module, x, y)


def sum_pool(
    name: str,
    like: Any,
    shape: tuple,
    x_shape: tuple,
    share: Any,
    include: bool,
    kernel: tuple,
    stride: tuple,
    padding: tuple,
    out: tuple,
) -> Any:
    """The sums of windows times ``share``, or ("sum_pool_grad") their transpose; of ``shape``.

    share: a float, or an array of where they differ; the kernel counts the elements of a window itself then,
    with those of the padding if ``include``.
    """
    char, module = _takes(like, kernel), cuda.cupy()
    if not char or not math.prod(shape):
        return NotImplemented
    found = device_launcher.empty(shape, like.dtype)
    _pooled(
        name,
        char,
        found.size,
        found,
        module.ascontiguousarray(like),
        share if isinstance(share, float) else 0.0,
        int(not include),
        _places(x_shape, kernel, stride, padding, (1,) * len(kernel), out),
    )
    return laid_as(module, found, like)


def max_index(where: Any, *, size: tuple, kernel: tuple, out: tuple, **places: Any) -> Any:
    """The device function of max_index."""
    if not device_code.enabled or not where.size or len(size) > 3 or where.dtype not in (np.uint8, np.int32):
        return NotImplemented
    module, small = cuda.cupy(), where.dtype == np.uint8
    index, chosen = device_launcher.empty(where.shape, np.int64), module.ascontiguousarray(where)
    shape = (*where.shape[: where.ndim - len(size)], *size)
    _pooled("max_index", "f", index.size, index, chosen if small else None, None if small else chosen,
            _places(shape, kernel=kernel, out=out, **places))
    return index


def _fitted(x: Any, kernel: tuple, out: tuple) -> Any:
    ones, none = (1,) * len(out), (0,) * len(out)
    return _places(x.shape, kernel, ones, none, ones, out)


def max_place(x: Any, *, out: tuple) -> Any:
    """The device function of max_place."""
    char, module = _takes(x, out), cuda.cupy()
    place = device_launcher.empty((*x.shape[: x.ndim - len(out)], *out), np.int64)
    if not char or not place.size:
        return NotImplemented
    _pooled("adaptive_place", char, place.size, place, module.ascontiguousarray(x),
            _fitted(x, (1,) * len(out), out))
    return place


def fractional_places(x: Any, samples: Any, kernel: tuple, out: tuple, last_first: bool) -> Any:
    """Where, in the flattened image, the largest elements of windows at random places are: (n, c, *out).

    samples (n, c, d), of the last dimension first or in order; NotImplemented for what has no kernel.
    """
    char, module = _takes(x, out) if device_code.is_device_array(x) else "", cuda._cupy
    wide = np.float64 if char == "d" else np.float32
    if not char or not device_code.is_device_array(samples) or samples.dtype != wide:
        return NotImplemented
    place = device_launcher.empty((*x.shape[:2], *out), np.int64)
    _pooled("fractional_place", char, place.size, place, module.ascontiguousarray(x),
            module.ascontiguousarray(samples), len(out), int(last_first), _fitted(x, kernel, out))
    return place


def fold(y: Any, *, x_shape: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> Any:
    """The device function of fold."""
    char, module = _takes(y, kernel), cuda.cupy()
    if not char or not math.prod(x_shape):
        return NotImplemented
    out = tuple([(s + 2 * p - d * (k - 1) - 1) // st + 1
                 for s, k, st, p, d in zip(x_shape[2:], kernel, stride, padding, dilation)])
    x = device_launcher.empty(x_shape, y.dtype)
    _pooled("fold_image", char, x.size, x, module.ascontiguousarray(y),
            _places(x_shape, kernel, stride, padding, dilation, out))
    return x
