"""Padding, resizing, and other rearrangements of images.

Reflecting, repeating and wrapping pads, and every kind of interpolation, are one record, ``resample``:
along one dimension each output element is a weighted sum of a few input elements. A ``Plan`` says
which; run backward it is the record's own derivative.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import floating, pair, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.view import permute_op, reshape_op, slice_op
from .conv import at_least, batched, column_view, inner, out_sizes, strided, windows

# -- resample ------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """Which input elements make each output element along one dimension.

    kind: a key of ``_KINDS``. size, out: elements before and after. step: input elements per output
    element, for interpolation. offset: elements added in front, for padding.
    """

    kind: str
    size: int
    out: int
    step: float = 1.0
    offset: int = 0


def _nearest(p: Plan) -> list:
    i = np.arange(p.out)
    index = i * p.size // max(p.out, 1) if p.step == p.size / max(p.out, 1) else np.floor(i * p.step)
    return [(np.minimum(index, p.size - 1), None)]


def _nearest_exact(p: Plan) -> list:
    return [(np.minimum(np.floor((np.arange(p.out) + 0.5) * p.step), p.size - 1), None)]


def _linear(p: Plan, corners: bool = False) -> list:
    i = np.arange(p.out)
    at = i * p.step if corners else np.maximum((i + 0.5) * p.step - 0.5, 0)
    low = np.minimum(np.floor(at), p.size - 1)
    share = at - low
    return [(low, 1 - share), (np.minimum(low + 1, p.size - 1), share)]


def _cubic(p: Plan, corners: bool = False) -> list:
    """Keys' cubic convolution with a = -0.75 (R. Keys, 1981)."""
    a, i = -0.75, np.arange(p.out)
    at = i * p.step if corners else (i + 0.5) * p.step - 0.5
    low = np.floor(at)
    t = at - low

    def near(s: Any) -> Any:
        return ((a + 2) * s - (a + 3)) * s * s + 1

    def far(s: Any) -> Any:
        return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a
    weights = far(t + 1), near(t), near(1 - t), far(2 - t)
    return [(np.clip(low + k - 1, 0, p.size - 1), w) for k, w in enumerate(weights)]


def _area(p: Plan) -> list:
    i = np.arange(p.out)
    low, high = i * p.size // p.out, -(-(i + 1) * p.size // p.out)
    most = int((high - low).max(initial=0))
    return [(np.minimum(low + k, high - 1), np.where(low + k < high, 1 / (high - low), 0.0))
            for k in range(most)]


def _padding(fold: Callable) -> Callable:
    return lambda p: [(fold(np.arange(-p.offset, p.out - p.offset), p.size), None)]


def _reflect(i: Any, size: int) -> Any:
    return (size - 1) - np.abs((size - 1) - np.abs(i))


_KINDS: dict[str, Callable[[Plan], list]] = {
    "nearest": _nearest, "nearest-exact": _nearest_exact, "area": _area, "linear": _linear,
    "linear-corners": lambda p: _linear(p, True), "cubic": _cubic,
    "cubic-corners": lambda p: _cubic(p, True), "reflect": _padding(_reflect),
    "replicate": _padding(lambda i, size: np.clip(i, 0, size - 1)),
    "circular": _padding(lambda i, size: i % size),
}


@lru_cache(maxsize=512)
def _taps(plan: Plan, back: bool) -> list:
    """[(index of one input element, its weight or None for 1), ...] for every output element."""
    taps = [(np.asarray(i, np.int64), w) for i, w in _KINDS[plan.kind](plan)]
    return _turned(taps, plan.size, plan.out) if back else taps


def _turned(taps: list, size: int, out: int) -> list:
    """The taps of the transposed map: every input element gathers from where it was used.

    Elements used less often than others take part with weight 0 (at an element they do use, or any).
    """
    source = np.concatenate([np.arange(out)] * len(taps))
    target = np.concatenate([i for i, _ in taps])
    weight = np.concatenate([np.ones(out) if w is None else w for _, w in taps])
    source, target, weight = source[weight != 0], target[weight != 0], weight[weight != 0]
    order = np.argsort(target, kind="stable")
    source, target, weight = source[order], target[order], weight[order]
    counts = np.bincount(target, minlength=size)
    first = np.concatenate([[0], np.cumsum(counts)])[:-1]
    turned = []
    for k in range(int(counts.max(initial=0))):
        at = np.minimum(first + np.minimum(k, np.maximum(counts - 1, 0)), len(source) - 1)
        turned.append((source[at], np.where(k < counts, weight[at], 0.0)))
    return turned


def _resample_kernel(xp: Any, x: Any, *, dim: int, plan: Plan, back: bool) -> Any:
    out = None
    for index, weight in _taps(plan, back):
        part = xp.take(x, xp.asarray(index), axis=dim)
        if weight is not None:
            part *= xp.asarray(weight.astype(x.dtype)).reshape(-1, *(1,) * (x.ndim - 1 - dim))
        if out is None:
            out = part
        else:
            out += part
    if out is None:
        out = xp.zeros(x.shape[:dim] + (plan.size if back else plan.out,) + x.shape[dim + 1:], x.dtype)
    return out


def _resample_infer(x: Meta, *, dim: int, plan: Plan, back: bool) -> Meta:
    return Meta(x.shape[:dim] + (plan.size if back else plan.out,) + x.shape[dim + 1:], x.dtype)


resample = Op("resample", "x", kernel=_resample_kernel, infer=_resample_infer, jvp="linear",
              vjp={"x": lambda g, dim, plan, back: resample(g, dim=dim, plan=plan, back=not back)})

# -- pad -----------------------------------------------------------------------------------------


def _pad_key(x_shape: tuple, pads: tuple) -> tuple:
    return tuple(slice(lo, lo + s) for s, (lo, _) in zip(x_shape, pads))


def _pad_kernel(xp: Any, x: Any, *, pads: tuple, value: Any) -> Any:
    shape = tuple(s + lo + hi for s, (lo, hi) in zip(x.shape, pads))
    out = xp.zeros(shape, x.dtype) if value == 0 else xp.full(shape, value, x.dtype)
    out[_pad_key(x.shape, pads)] = x
    return out


pad_op = Op("pad", "x", kernel=_pad_kernel, native="pad",
            infer=lambda x, *, pads, value: Meta(
                tuple(s + lo + hi for s, (lo, hi) in zip(x.shape, pads)), x.dtype),
            vjp={"x": lambda g, x_shape, pads: slice_op(g, key=_pad_key(x_shape, pads))})


def _cropped(x: Tensor, pads: tuple) -> tuple[Tensor, tuple]:
    """``x`` without what negative pads take off, and what is left to add."""
    for d, (lo, hi) in enumerate(pads):
        if x.shape[d] + lo + hi < 0 or x.shape[d] + min(lo, 0) + min(hi, 0) < 0:
            raise ShapeError(f"pad: {(lo, hi)} takes more from dimension {d} than its size {x.shape[d]}")
    if any(p < 0 for sides in pads for p in sides):
        x = slice_op.run(x, key=tuple(slice(max(-lo, 0), s - max(-hi, 0))
                                      for s, (lo, hi) in zip(x.shape, pads)))
        pads = tuple((max(lo, 0), max(hi, 0)) for lo, hi in pads)
    return x, pads


@public("nn.functional", op=pad_op)
def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """The tensor with elements added at the ends of its last dimensions (or, if negative, taken).

    pad: (before, after) of the last dimension, then of the one before it, and so on. mode: "constant"
    adds ``value`` (0); "reflect" mirrors without repeating the edge; "replicate" repeats the edge;
    "circular" goes on at the other end. Raises ShapeError where a mode has too few elements.

    >>> fw.nn.functional.pad(fw.tensor([1.0, 2.0, 3.0]), (2, 1))
    tensor([0., 0., 1., 2., 3., 0.])
    >>> fw.nn.functional.pad(fw.tensor([1.0, 2.0, 3.0]), (2, 1), mode="reflect")
    tensor([3., 2., 1., 2., 3., 2.])
    """
    tensor_arg(input, "pad")
    if not isinstance(pad, (tuple, list)) or len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ValueError(f"pad: wanted pairs (before, after) for at most {input.ndim} dimensions, last one "
                         f"first, got {pad!r} for shape {list(input.shape)}")
    sides = [(int(pad[i]), int(pad[i + 1])) for i in range(0, len(pad), 2)]
    pads = ((0, 0),) * (input.ndim - len(sides)) + tuple(sides[::-1])
    if mode == "constant":
        input, pads = _cropped(input, pads)
        return pad_op.run(input, pads=pads, value=0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise ValueError(f"pad: mode must be 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}")
    if value not in (None, 0):
        raise ValueError(f"pad: mode={mode!r} takes no value, got {value!r}")
    if mode == "circular":
        input, pads = _cropped(input, pads)
    for d, (lo, hi) in enumerate(pads):
        if not lo and not hi:
            continue
        size = input.shape[d]
        most = size - 1 if mode == "reflect" else size if mode == "circular" else math.inf
        if max(lo, hi) > most or size + lo + hi < 0 or (size == 0 and max(lo, hi) > 0):
            raise ShapeError(f"pad: mode={mode!r} cannot add {(lo, hi)} to dimension {d} of size {size}"
                             + (f"; at most {most} on a side" if most < math.inf else ""))
        input = resample.run(input, dim=d, plan=Plan(mode, size, size + lo + hi, offset=lo), back=False)
    return input


# -- interpolate ---------------------------------------------------------------------------------

_MODES = {"nearest": ("nearest", (1, 2, 3)), "nearest-exact": ("nearest-exact", (1, 2, 3)),
          "area": ("area", (1, 2, 3)), "linear": ("linear", (1,)), "bilinear": ("linear", (2,)),
          "trilinear": ("linear", (3,)), "bicubic": ("cubic", (2,))}


@public("nn.functional", op=resample)
def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """The image resized to ``size`` or by ``scale_factor``; it is (n, c, sizes...) with 1 to 3.

    mode: "nearest", "nearest-exact", "area" for any, "linear" for 1, "bilinear" and "bicubic" for 2,
    "trilinear" for 3 sizes. align_corners: the corner elements' centres stay at the corners (linear
    kinds and bicubic). Raises ShapeError or ValueError for what does not fit, and for ``antialias=True``:
    every output is taken from its nearest inputs, however much the image shrinks.

    >>> fw.nn.functional.interpolate(fw.tensor([[[1.0, 3.0]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    d = tensor_arg(input, "interpolate").ndim - 2
    if mode not in _MODES:
        raise ValueError(f"interpolate: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if antialias:
        raise ValueError("interpolate: antialias=True is not offered; shrink with avg_pool2d or mode='area'")
    kind, takes = _MODES[mode]
    if d not in takes:
        sizes = " or ".join(str(t + 2) for t in takes)
        raise ShapeError(f"interpolate: mode={mode!r} wants input of {sizes} dimensions (n, c, sizes...), "
                         f"got shape {list(input.shape)}")
    if align_corners is not None and kind not in ("linear", "cubic"):
        raise ValueError(f"interpolate: align_corners does not apply to mode={mode!r}")
    if kind in ("linear", "cubic", "area"):
        floating(input, "interpolate")
    out, steps = _target(input, d, size, scale_factor, recompute_scale_factor)
    for i in range(d):
        n, m = input.shape[2 + i], out[i]
        if align_corners:
            plan = Plan(f"{kind}-corners", n, m, (n - 1) / (m - 1) if m > 1 else 0.0)
        else:
            plan = Plan(kind, n, m, steps[i])
        if n != m or plan.step != 1.0:
            input = resample.run(input, dim=2 + i, plan=plan, back=False)
    return input


def _target(x: Tensor, d: int, size: Any, scale: Any, recompute: bool | None) -> tuple[tuple, tuple]:
    """The sizes asked for, and how many input elements make one output element."""
    if (size is None) == (scale is None):
        raise ValueError(f"interpolate: give either size or scale_factor, got size={size!r} and "
                         f"scale_factor={scale!r}")
    spatial = x.shape[2:]
    if size is not None:
        out = pair(size, d, "interpolate", "size")
        steps = tuple(n / max(m, 1) for n, m in zip(spatial, out))
    else:
        scales = tuple(scale) if isinstance(scale, (tuple, list)) else (scale,) * d
        if len(scales) != d:
            raise ValueError(f"interpolate: scale_factor must be a number or {d} of them, got {scale!r}")
        out = tuple(math.floor(n * s) for n, s in zip(spatial, scales))
        steps = tuple(n / max(m, 1) if recompute else 1 / s for n, m, s in zip(spatial, out, scales))
    if min(out) < 1 or min(spatial) < 1:
        raise ShapeError(f"interpolate: cannot resize {list(spatial)} to {list(out)}; sizes must be at "
                         f"least 1")
    return out, steps


# -- windows as columns --------------------------------------------------------------------------


def _unfold_kernel(xp: Any, x: Any, *, kernel: tuple, stride: tuple, padding: tuple,
                   dilation: tuple) -> Any:
    n, c = x.shape[:2]
    at = windows(x.shape[2:], kernel, stride, padding, dilation)._replace(flat=False)
    if any(padding):
        image = xp.zeros((n, c, *at.padded), x.dtype)
        image[(slice(None), slice(None), *inner(at))] = x
        x = image
    view = column_view(xp, xp.ascontiguousarray(x).reshape(-1), n, c, at)
    d = len(kernel)
    columns = view.transpose(d + 1, *range(d + 1), *range(d + 2, 2 * d + 2))
    return xp.ascontiguousarray(columns).reshape(n, c * math.prod(kernel), math.prod(at.out))


def _fold_kernel(xp: Any, y: Any, *, x_shape: tuple, kernel: tuple, stride: tuple, padding: tuple,
                 dilation: tuple) -> Any:
    n, c = x_shape[:2]
    at = windows(x_shape[2:], kernel, stride, padding, dilation)
    columns = y.reshape(n, c, math.prod(kernel), *at.out)
    image = xp.zeros(n * c * at.row, y.dtype)
    for i, offset in enumerate(at.positions):
        target = strided(xp, image, (n, c, *at.out), (c * at.row, at.row, *at.steps), offset)
        target += columns[:, :, i]
    image = image.reshape(n, c, *at.padded)[(slice(None), slice(None), *inner(at))]
    return xp.ascontiguousarray(image)


def _unfold_infer(x: Meta, *, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> Meta:
    out = out_sizes(x.shape[2:], kernel, stride, padding, dilation)
    if min(out) < 1:
        raise ShapeError(f"unfold: a kernel of size {list(kernel)} with dilation {list(dilation)} does not "
                         f"fit into an image of size {list(x.shape[2:])} with padding {list(padding)}")
    return Meta((x.shape[0], x.shape[1] * math.prod(kernel), math.prod(out)), x.dtype)


unfold_op = Op("nn_unfold", "x", kernel=_unfold_kernel, infer=_unfold_infer, jvp="linear",
               vjp={"x": lambda g, x_shape, kernel, stride, padding, dilation: fold_op(
                   g, x_shape=x_shape, kernel=kernel, stride=stride, padding=padding, dilation=dilation)})
fold_op = Op("nn_fold", "y", kernel=_fold_kernel, jvp="linear",
             infer=lambda y, *, x_shape, **settings: Meta(x_shape, y.dtype),
             vjp={"y": lambda g, kernel, stride, padding, dilation: unfold_op(
                 g, kernel=kernel, stride=stride, padding=padding, dilation=dilation)})


def _window_settings(op: str, kernel: Any, dilation: Any, padding: Any, stride: Any) -> dict[str, Any]:
    return {"kernel": at_least(pair(kernel, 2, op, "kernel_size"), 1, op, "kernel_size"),
            "stride": at_least(pair(stride, 2, op, "stride"), 1, op, "stride"),
            "padding": at_least(pair(padding, 2, op, "padding"), 0, op, "padding"),
            "dilation": at_least(pair(dilation, 2, op, "dilation"), 1, op, "dilation")}


@public("nn.functional", op=unfold_op)
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of an image as columns: (n, c, h, w) -> (n, c * kh * kw, windows).

    Raises ShapeError where no window fits.

    >>> fw.nn.functional.unfold(fw.arange(9.0).reshape(1, 1, 3, 3), 2)[0, :, 0]
    tensor([0., 1., 3., 4.])
    """
    input, alone = batched(input, 2, "unfold")
    settings = _window_settings("unfold", kernel_size, dilation, padding, stride)
    _unfold_infer(Meta(input.shape, input.dtype), **settings)
    out = unfold_op.run(input, **settings)
    return reshape_op.run(out, shape=out.shape[1:]) if alone else out


@public("nn.functional", op=fold_op)
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
         stride: Any = 1) -> Tensor:
    """The sum of windows laid back into an image: (n, c * kh * kw, windows) -> (n, c, h, w).

    The transpose of ``unfold``. Raises ShapeError where the sizes do not belong together.

    >>> fw.nn.functional.fold(fw.ones(1, 4, 4), (3, 3), 2)[0, 0, 1]
    tensor([2., 4., 2.])
    """
    size = pair(output_size, 2, "fold", "output_size")
    settings = _window_settings("fold", kernel_size, dilation, padding, stride)
    alone = tensor_arg(input, "fold").ndim == 2
    if alone:
        input = reshape_op.run(input, shape=(1, *input.shape))
    each = math.prod(settings["kernel"])
    out = out_sizes(size, settings["kernel"], settings["stride"], settings["padding"],
                    settings["dilation"])
    if input.ndim != 3 or input.shape[1] % each or min(out) < 1 or input.shape[2] != math.prod(out):
        raise ShapeError(f"fold: input of shape {list(input.shape)} does not fit: wanted (n, c * {each}, "
                         f"{math.prod(out)}) for output_size {list(size)}, {list(out)} windows")
    image = fold_op.run(input, x_shape=(input.shape[0], input.shape[1] // each, *size), **settings)
    return reshape_op.run(image, shape=image.shape[1:]) if alone else image


# -- channels to pixels --------------------------------------------------------------------------


def _factor(factor: Any, op: str, name: str) -> int:
    if isinstance(factor, bool) or not hasattr(factor, "__index__") or factor < 1:
        raise ValueError(f"{op}: {name} must be a positive int, got {factor!r}")
    return int(factor)


@public("nn.functional")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels spread over pixels: (*, c * r * r, h, w) -> (*, c, h * r, w * r).

    W. Shi et al., "Real-Time Single Image and Video Super-Resolution", 2016. Raises ShapeError where
    the channels are not divisible by r * r.

    >>> fw.nn.functional.pixel_shuffle(fw.arange(4.0).reshape(1, 4, 1, 1), 2)[0, 0]
    tensor([[0., 1.],
            [2., 3.]])
    """
    r = _factor(upscale_factor, "pixel_shuffle", "upscale_factor")
    if tensor_arg(input, "pixel_shuffle").ndim < 3 or input.shape[-3] % (r * r):
        raise ShapeError(f"pixel_shuffle: wanted input (*, c * {r * r}, h, w), got shape {list(input.shape)}")
    *lead, c, h, w = input.shape
    n = len(lead)
    y = reshape_op.run(input, shape=(*lead, c // (r * r), r, r, h, w))
    y = permute_op.run(y, dims=(*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape_op.run(y, shape=(*lead, c // (r * r), h * r, w * r)) if r > 1 else input.clone()


@public("nn.functional")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels gathered into channels: (*, c, h * r, w * r) -> (*, c * r * r, h, w).

    The reverse of ``pixel_shuffle``. Raises ShapeError where the sizes are not divisible by r.

    >>> fw.nn.functional.pixel_unshuffle(fw.ones(1, 1, 2, 4), 2).shape
    (1, 4, 1, 2)
    """
    r = _factor(downscale_factor, "pixel_unshuffle", "downscale_factor")
    if tensor_arg(input, "pixel_unshuffle").ndim < 3 or input.shape[-1] % r or input.shape[-2] % r:
        raise ShapeError(f"pixel_unshuffle: wanted input (*, c, h * {r}, w * {r}), got shape "
                         f"{list(input.shape)}")
    *lead, c, h, w = input.shape
    n = len(lead)
    y = reshape_op.run(input, shape=(*lead, c, h // r, r, w // r, r))
    y = permute_op.run(y, dims=(*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape_op.run(y, shape=(*lead, c * r * r, h // r, w // r)) if r > 1 else input.clone()


@public("nn.functional")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of ``groups`` groups taken in turn, one of each: (n, c, *) -> (n, c, *).

    X. Zhang et al., "ShuffleNet", 2017. Raises ShapeError where c is not divisible by groups.

    >>> fw.nn.functional.channel_shuffle(fw.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    g = _factor(groups, "channel_shuffle", "groups")
    if tensor_arg(input, "channel_shuffle").ndim < 3 or input.shape[1] % g:
        raise ShapeError(f"channel_shuffle: wanted input (n, c, *) with c divisible by {g}, got shape "
                         f"{list(input.shape)}")
    n, c, *rest = input.shape
    y = reshape_op.run(input, shape=(n, g, c // g, *rest))
    y = permute_op.run(y, dims=(0, 2, 1, *range(3, y.ndim)))
    return reshape_op.run(y, shape=input.shape) if 1 < g < c else input.clone()
