"""Operators of images: convolution, pooling, resizing, sampling."""

import io
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import framework as fw
from framework import Tensor
from framework.errors import MissingExtraError

from .shapes import pad
from .table import floating, ints, number, op

F = fw.nn.functional
_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_CONV_T = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def _paddings(x: Tensor, kernel: list, strides: list, dilations: list, pads: Any, auto_pad: str) -> list:
    """The padding in front of and behind each dimension, all in front first."""
    d = len(kernel)
    if auto_pad in ("NOTSET", "", "VALID"):
        return list(pads) if pads is not None and auto_pad != "VALID" else [0] * (2 * d)
    low, high = [], []
    for n, k, s, t in zip(x.shape[2:], kernel, strides, dilations):
        total = max((-(-n // s) - 1) * s + (k - 1) * t + 1 - n, 0)
        small, large = total // 2, total - total // 2
        low.append(small if auto_pad == "SAME_UPPER" else large)
        high.append(large if auto_pad == "SAME_UPPER" else small)
    return low + high


@op("Conv")
def conv(x: Tensor, w: Tensor, b: Any = None, *, kernel_shape: Any = None, strides: Any = None,
         pads: Any = None,
         dilations: Any = None, group: int = 1, auto_pad: str = "NOTSET") -> Tensor:
    d = x.ndim - 2
    strides, dilations = strides or [1] * d, dilations or [1] * d
    around = _paddings(x, list(w.shape[2:]), strides, dilations, pads, auto_pad)
    if around[:d] != around[d:] or d not in _CONV:
        x = pad(x, around, axes_=list(range(2, x.ndim)))
        around = [0] * (2 * d)
    return _CONV[d](x, w, b, tuple(strides), tuple(around[:d]), tuple(dilations), group)


@op("ConvTranspose")
def conv_transpose(x: Tensor, w: Tensor, b: Any = None, *, kernel_shape: Any = None, strides: Any = None,
                   pads: Any = None, dilations: Any = None, group: int = 1, auto_pad: str = "NOTSET",
                   output_padding: Any = None, output_shape: Any = None) -> Tensor:
    d = x.ndim - 2
    kernel = list(w.shape[2:])
    strides, dilations = strides or [1] * d, dilations or [1] * d
    more = output_padding or [0] * d
    around = list(pads) if pads is not None else [0] * (2 * d)
    full = [s * (n - 1) + t * (k - 1) + 1 for n, s, t, k in zip(x.shape[2:], strides, dilations, kernel)]
    if output_shape is not None or auto_pad.startswith("SAME"):
        wanted = output_shape[-d:] if output_shape is not None else [n * s for n,
                                                                     s in zip(x.shape[2:], strides)]
        for i in range(d):
            total = full[i] + more[i] - wanted[i]
            small, large = total // 2, total - total // 2
            around[i], around[d + i] = (small, large) if auto_pad != "SAME_UPPER" else (large, small)
            if auto_pad == "SAME_UPPER":
                around[i], around[d + i] = small, large
            if total < 0:
                around[i], around[d + i] = 0, total
    y = _CONV_T[d](x, w, None, tuple(strides), 0, 0, group, tuple(dilations))
    for i in range(d):
        n = full[i] + more[i] - around[i] - around[d + i]
        if around[i] + n > full[i]:
            y = pad(y, [0, around[i] + n - full[i]], axes_=[2 + i])
        y = y.narrow(2 + i, around[i], n)
    return y if b is None else y + b.reshape(-1, *[1] * d)


# -- pooling ----------------------------------------------------------------------------------------------


def _pooled_sizes(x: Tensor, kernel: list, strides: list, dilations: list, around: list,
                  ceil_mode: int) -> list[int]:
    sizes = []
    for i, (n, k, s, t) in enumerate(zip(x.shape[2:], kernel, strides, dilations)):
        room = n + around[i] + around[len(kernel) + i] - t * (k - 1) - 1
        m = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (m - 1) * s >= n + around[i]:
            m -= 1  # a window that begins in the padding behind is none
        sizes.append(m)
    return sizes


def _windows(x: Tensor, kernel: list, strides: list, dilations: list, around: list, out: list,
             value: float) -> Tensor:
    """Every place of the windows, stacked in front; outside of the image there is ``value``."""
    d = len(kernel)
    behind = [max((m - 1) * s + t * (k - 1) + 1 - n - a, 0) for m, s, t, k, n, a in zip(
        out, strides, dilations, kernel, x.shape[2:], around)]
    x = pad(x, [*around[:d], *behind], value, list(range(2, x.ndim)))
    parts = []
    for at in itertools.product(*map(range, kernel)):
        key = tuple(slice(k * t, k * t + s * (m - 1) + 1, s) for k, t, s,
                    m in zip(at, dilations, strides, out))
        parts.append(x[(slice(None), slice(None), *key)])
    return fw.stack(parts)


def _set(x: Tensor, kernel: list, strides: Any, dilations: Any, pads: Any,
         auto_pad: str) -> tuple[list, list, list]:
    d = len(kernel)
    strides, dilations = list(strides or [1] * d), list(dilations or [1] * d)
    return strides, dilations, _paddings(x, kernel, strides, dilations, pads, auto_pad)


@op("MaxPool")
def max_pool(x: Tensor, *, kernel_shape: list, strides: Any = None, pads: Any = None, dilations: Any = None,
             ceil_mode: int = 0, auto_pad: str = "NOTSET", storage_order: int = 0, outputs: int = 1) -> Any:
    kernel, d = list(kernel_shape), len(kernel_shape)
    strides, dilations, around = _set(x, kernel, strides, dilations, pads, auto_pad)
    even = around[:d] == around[d:] and all(2 * p <= k for p, k in zip(around, kernel))
    if outputs == 1 and d <= 3 and even and floating(x) and not ceil_mode:
        plain: Callable = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[d - 1]
        return plain(x, tuple(kernel), tuple(strides), tuple(around[:d]), tuple(dilations))
    out = _pooled_sizes(x, kernel, strides, dilations, around, ceil_mode)
    lowest = -math.inf if floating(x) else np.iinfo(x.numpy().dtype).min
    best, where = fw.max(_windows(x, kernel, strides, dilations, around, out, lowest), 0)
    if outputs == 1:
        return best
    size = list(x.shape[2:])
    place = np.arange(math.prod(size)).reshape(size)
    if storage_order:
        place = np.arange(math.prod(size)).reshape(size[::-1]).transpose()
    image = fw.from_numpy(np.ascontiguousarray(place)).reshape(1, 1, *size)
    places = _windows(image, kernel, strides, dilations, around, out, 0)
    lead = fw.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1], *[1] * d) * math.prod(size)
    return best, fw.gather(places.expand(-1, *best.shape), 0, where.unsqueeze(0)).squeeze(0) + lead


def _averaged(x: Tensor, kernel: list, strides: list, dilations: list, around: list, ceil_mode: int,
              count_include_pad: int) -> Tensor:
    d = len(kernel)
    even = around[:d] == around[d:] and all(2 * p <= k for p, k in zip(around, kernel))
    if even and not ceil_mode and d <= 3 and all(t == 1 for t in dilations):
        plain: Callable = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[d - 1]
        return plain(x, tuple(kernel), tuple(strides), tuple(around[:d]), False, bool(count_include_pad))
    out = _pooled_sizes(x, kernel, strides, dilations, around, ceil_mode)
    ones = fw.ones(1, 1, *x.shape[2:], dtype=x.dtype)
    if count_include_pad:
        ones = pad(ones, around, 1.0, list(range(2, x.ndim)))
        counts = _windows(ones, kernel, strides, dilations, [0] * (2 * d), out, 0)
    else:
        counts = _windows(ones, kernel, strides, dilations, around, out, 0)
    return fw.sum(_windows(x, kernel, strides, dilations, around, out, 0), 0) / fw.sum(counts, 0)


@op("AveragePool")
def average_pool(x: Tensor, *, kernel_shape: list, strides: Any = None, pads: Any = None,
                 dilations: Any = None,
                 ceil_mode: int = 0, auto_pad: str = "NOTSET", count_include_pad: int = 0) -> Tensor:
    kernel = list(kernel_shape)
    strides, dilations, around = _set(x, kernel, strides, dilations, pads, auto_pad)
    return _averaged(x, kernel, strides, dilations, around, ceil_mode, count_include_pad)


@op("LpPool")
def lp_pool(x: Tensor, *, kernel_shape: list, p: Any = 2, strides: Any = None, pads: Any = None,
            dilations: Any = None,
            ceil_mode: int = 0, auto_pad: str = "NOTSET") -> Tensor:
    kernel = list(kernel_shape)
    strides, dilations, around = _set(x, kernel, strides, dilations, pads, auto_pad)
    out = _pooled_sizes(x, kernel, strides, dilations, around, ceil_mode)
    return fw.sum(_windows(fw.abs(x) ** p, kernel, strides, dilations, around, out, 0), 0) ** (1 / p)


def _inner(x: Tensor) -> list[int]:
    return list(range(2, x.ndim))


@op("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    return fw.mean(x, _inner(x), True)


@op("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    return fw.amax(x, _inner(x), True)


@op("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: Any = 2) -> Tensor:
    return fw.sum(fw.abs(x) ** p, _inner(x), True) ** (1 / p)


@op("MaxUnpool")
def max_unpool(x: Tensor, index: Tensor, output_shape: Any = None, *, kernel_shape: list, strides: Any = None,
               pads: Any = None) -> Tensor:
    d = len(kernel_shape)
    strides, pads = strides or [1] * d, pads or [0] * (2 * d)
    own = [(n - 1) * s - pads[i] - pads[d + i] + k for i,
           (n, s, k) in enumerate(zip(x.shape[2:], strides, kernel_shape))]
    n, c = x.shape[:2]
    flat = fw.zeros(n * c * math.prod(own), dtype=x.dtype)
    y = fw.scatter(flat, 0, index.reshape(-1), x.reshape(-1)).reshape(n, c, *own)
    if output_shape is not None:
        behind = [m - k for m, k in zip(ints(output_shape)[2:], own)]
        y = pad(y, [*[0] * d, *behind], axes_=_inner(x))
    return y


@op("Col2Im")
def col2im(x: Tensor, image_shape: Tensor, block_shape: Tensor, *, dilations: Any = None, pads: Any = None,
           strides: Any = None) -> Tensor:
    size, kernel = ints(image_shape), ints(block_shape)
    d = len(size)
    strides, dilations, pads = strides or [1] * d, dilations or [1] * d, pads or [0] * (2 * d)
    n, c = x.shape[0], x.shape[1] // math.prod(kernel)
    out = [(m + pads[i] + pads[d + i] - t * (k - 1) - 1) // s + 1
           for i, (m, k, s, t) in enumerate(zip(size, kernel, strides, dilations))]
    whole = [m + pads[i] + pads[d + i] for i, m in enumerate(size)]
    place = np.arange(math.prod(whole)).reshape(whole)
    parts = [place[tuple(slice(k * t, k * t + s * (m - 1) + 1, s) for k, t, s,
                         m in zip(at, dilations, strides, out))]
             for at in itertools.product(*map(range, kernel))]
    index = fw.from_numpy(np.stack(parts).reshape(-1)).expand(n * c, -1)
    image = fw.zeros(n * c, math.prod(whole), dtype=x.dtype)
    y = fw.scatter_add(image, 1, index, x.reshape(n * c, -1)).reshape(n, c, *whole)
    return y[(slice(None), slice(None), *[slice(pads[i], pads[i] + m) for i, m in enumerate(size)])]


# -- resizing --------------------------------------------------------------------------------------------


def _places(n: int, m: int, scale: float, mode: str, roi: tuple[float, float], rounded: bool) -> np.ndarray:
    """Where in the input each output element lies along one axis."""
    i = np.arange(m, dtype=np.float64)
    if mode == "align_corners":
        whole = n * scale
        return i * ((n - 1) / (whole - 1)) if whole != 1 else np.zeros(m)
    if mode == "asymmetric":
        return i / scale
    if mode == "pytorch_half_pixel":
        return (i + 0.5) / scale - 0.5 if n * scale > 1 else np.full(m, -0.5)
    if mode == "half_pixel_symmetric":
        whole = scale * n
        adjusted = m / whole
        return n / 2 * (1 - adjusted) + (i + 0.5) / scale - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "tf_crop_and_resize":
        a, b = roi
        return a * (n - 1) + i * (b - a) * (n - 1) / (m - 1) if m > 1 else np.full(m, 0.5 * (a + b) * (n - 1))
    return (i + 0.5) / scale - 0.5


_NEAREST: dict[str, Callable] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5), "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor, "ceil": np.ceil}


def _weights(n: int, at: np.ndarray, mode: str, a: float, exclude: int, scale: float,
             antialias: int) -> np.ndarray:
    """The (outputs, inputs) matrix of linear or cubic interpolation."""
    stretch = min(scale, 1.0) if antialias else 1.0
    reach = (1 if mode == "linear" else 2) / stretch
    low = np.floor(at - reach).astype(int)
    count = 2 * math.ceil(reach) + 2
    index = low[:, None] + np.arange(count)
    s = np.abs((index - at[:, None]) * stretch)
    if mode == "linear":
        w = np.maximum(1 - s, 0)
    else:
        w = np.where(s <= 1, ((a + 2) * s - (a + 3)) * s * s + 1,
                     np.where(s < 2, ((a * s - 5 * a) * s + 8 * a) * s - 4 * a, 0.0))
    if exclude:
        w = np.where((index < 0) | (index >= n), 0.0, w)
    if exclude or antialias:
        w /= w.sum(1, keepdims=True)
    matrix = np.zeros((len(at), n))
    np.add.at(matrix, (np.arange(len(at))[:, None], index.clip(0, n - 1)), w)
    return matrix


@op("Resize", since=11)
def resize(x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None, *, mode: str = "nearest",
           coordinate_transformation_mode: str = "half_pixel", nearest_mode: str = "round_prefer_floor",
           cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0,
           antialias: int = 0, axes: Any = None, keep_aspect_ratio_policy: str = "stretch") -> Tensor:
    dims = [d % x.ndim for d in ints(axes, range(x.ndim))]
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    regions = roi.tolist() if roi is not None and roi.numel() else [0.0] * len(dims) + [1.0] * len(dims)
    if sizes is not None and sizes.numel():
        out = ints(sizes)
        factors = [m / x.shape[d] for m, d in zip(out, dims)]
        if keep_aspect_ratio_policy != "stretch":
            factor = (min if keep_aspect_ratio_policy == "not_larger" else max)(factors)
            factors = [factor] * len(dims)
            out = [int(math.floor(factor * x.shape[d] + 0.5)) for d in dims]
    else:
        factors = [float(np.float32(f)) for f in scales.tolist()]
        out = [int(math.floor(x.shape[d] * f)) for f, d in zip(factors, dims)]
    y = x if floating(x) or mode == "nearest" else x.to(fw.float64)
    outside: list[tuple[int, np.ndarray]] = []
    for i, (d, m, f) in enumerate(zip(dims, out, factors)):
        n = x.shape[d]
        if m == n and f == 1 and not crop:
            continue
        region = (regions[i], regions[len(dims) + i])
        at = _places(n, m, f, coordinate_transformation_mode, region, sizes is not None)
        if crop:
            outside.append((d, (at < 0) | (at > n - 1)))
        if mode == "nearest":
            places = _NEAREST[nearest_mode](at).clip(0, n - 1).astype(np.int64)
            y = fw.index_select(y, d, fw.from_numpy(places))
            continue
        matrix = fw.from_numpy(_weights(n, at, mode, cubic_coeff_a, exclude_outside, f,
                                        antialias)).to(y.dtype)
        y = fw.matmul(y.movedim(d, -1), matrix.t()).movedim(-1, d)
    for d, where in outside:
        mask = fw.from_numpy(where).reshape([-1 if k == d else 1 for k in range(x.ndim)])
        y = fw.where(mask, fw.tensor(extrapolation_value, dtype=y.dtype), y)
    if not floating(x) and mode != "nearest":
        info = np.iinfo(x.numpy().dtype)
        y = fw.clamp(fw.round(y), info.min, info.max)
    return y.to(x.dtype)


@op("Upsample")
def upsample(x: Tensor, factors: Any = None, *, scales: Any = None, mode: str = "nearest",
             height_scale: float = 1.0,
             width_scale: float = 1.0) -> Tensor:
    if factors is None:
        factors = fw.tensor(scales if scales is not None else [1.0, 1.0, height_scale, width_scale])
    return resize(x, None, factors, mode="linear" if "linear" in mode else mode,
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@op("Resize")
def resize_as_was(x: Tensor, factors: Tensor, *, mode: str = "nearest") -> Tensor:
    return upsample(x, factors, mode=mode)


@op("GridSample")
def grid_sample(x: Tensor, grid: Tensor, *, mode: str = "linear", padding_mode: str = "zeros",
                align_corners: int = 0) -> Tensor:
    names = {"linear": "bilinear", "cubic": "bicubic"}
    return F.grid_sample(x, grid, names.get(mode, mode), padding_mode, bool(align_corners))


@op("AffineGrid")
def affine_grid(theta: Tensor, size: Tensor, *, align_corners: int = 0) -> Tensor:
    return F.affine_grid(theta, ints(size), bool(align_corners))


@op("ImageDecoder")
def decode_image(data: Tensor, *, pixel_format: str = "RGB") -> Tensor:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("ImageDecoder needs the package pillow; install it with: pip install "
                                "'framework[images]'") from error
    image = Image.open(io.BytesIO(data.numpy().tobytes()))
    if pixel_format == "Grayscale":
        return fw.from_numpy(np.array(image.convert("L"))[..., None])
    pixels = np.array(image.convert("RGB"))
    return fw.from_numpy(pixels if pixel_format == "RGB" else pixels[..., ::-1].copy())


# -- regions ----------------------------------------------------------------------------------------------


@op("RoiAlign")
def roi_align(x: Tensor, rois: Tensor, batch: Tensor, *, coordinate_transformation_mode: str = "half_pixel",
              mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
              spatial_scale: float = 1.0) -> Tensor:
    half = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    h, w = x.shape[2:]
    found = []
    for box, b in zip(rois.tolist(), ints(batch)):
        left, up, right, down = [v * spatial_scale - half for v in box]
        wide, high = right - left, down - up
        if not half:
            wide, high = max(wide, 1.0), max(high, 1.0)
        ny = sampling_ratio or math.ceil(high / output_height)
        nx = sampling_ratio or math.ceil(wide / output_width)
        ys = up + (np.arange(output_height * ny) + 0.5) * high / output_height / ny
        xs = left + (np.arange(output_width * nx) + 0.5) * wide / output_width / nx
        my, mx = _bilinear(ys, h), _bilinear(xs, w)
        if mode == "avg":
            rows = fw.from_numpy(my.reshape(output_height, ny, h).mean(1)).to(x.dtype)
            columns = fw.from_numpy(mx.reshape(output_width, nx, w).mean(1)).to(x.dtype)
            found.append(fw.matmul(fw.matmul(rows, x[b]), columns.t()))
            continue
        parts = []  # the largest of the four weighted neighbours, as the operator has it
        for (iy, wy), (ix, wx) in itertools.product(_corners(ys, h), _corners(xs, w)):
            part = x[b][:, fw.from_numpy(iy)][:, :, fw.from_numpy(ix)]
            parts.append(part * fw.from_numpy(wy[:, None] * wx).to(x.dtype))
        best = fw.amax(fw.stack(parts), 0)
        best = best.reshape(best.shape[0], output_height, ny, output_width, nx)
        found.append(fw.amax(best, (2, 4)))
    return fw.stack(found)


def _corners(at: np.ndarray, n: int) -> list:
    inside = (at >= -1) & (at <= n)
    at = at.clip(0, None)
    low = np.minimum(np.floor(at), n - 1).astype(np.int64)
    high = np.minimum(low + 1, n - 1)
    share = np.where(low >= n - 1, 0.0, at - low)
    return [(low, (1 - share) * inside), (high, share * inside)]


def _bilinear(at: np.ndarray, n: int) -> np.ndarray:
    matrix = np.zeros((len(at), n))
    for index, weight in _corners(at, n):
        np.add.at(matrix, (np.arange(len(at)), index), weight)
    return matrix


@op("NonMaxSuppression")
def non_max_suppression(boxes: Tensor, scores: Tensor, most: Any = None, overlap: Any = None,
                        least: Any = None, *,
                        center_point_box: int = 0) -> Tensor:
    limit, close = int(number(most, 0)), float(number(overlap, 0.0))
    found = []
    for b, of_batch in enumerate(scores.detach().numpy()):
        at = boxes[b].detach().numpy().astype(np.float64)
        if center_point_box:
            at = np.concatenate([at[:, :2] - at[:, 2:] / 2, at[:, :2] + at[:, 2:] / 2], 1)
        at = np.concatenate([np.minimum(at[:, :2], at[:, 2:]), np.maximum(at[:, :2], at[:, 2:])], 1)
        area = (at[:, 2] - at[:, 0]) * (at[:, 3] - at[:, 1])
        for c, score in enumerate(of_batch):
            kept: list[int] = []
            for i in np.argsort(-score, kind="stable"):
                if len(kept) >= limit or least is not None and score[i] <= number(least):
                    break
                low, high = np.maximum(at[kept, :2], at[i, :2]), np.minimum(at[kept, 2:], at[i, 2:])
                inner = np.prod(np.maximum(high - low, 0), 1)
                union = area[kept] + area[i] - inner
                if not (inner > close * union).any():
                    kept.append(int(i))
                    found.append((b, c, int(i)))
    return fw.tensor(found, dtype=fw.int64).reshape(-1, 3)


@op("DeformConv")
def deform_conv(x: Tensor, w: Tensor, offset: Tensor, b: Any = None, mask: Any = None, *,
                kernel_shape: Any = None,
                strides: Any = None, pads: Any = None, dilations: Any = None, group: int = 1,
                offset_group: int = 1) -> Tensor:
    kh, kw = w.shape[2:]
    (sy, sx), (ty, tx) = strides or [1, 1], dilations or [1, 1]
    top, left = (pads or [0] * 4)[:2]
    dtype, (n, c, height, width) = x.dtype, x.shape
    oh, ow = offset.shape[2:]
    x, w, offset = [a.to(fw.float64) for a in (x, w, offset)]  # places at the very edge lie inside or not
    offsets = offset.reshape(n, offset_group, kh * kw, 2, oh, ow)
    columns = []
    for k in range(kh * kw):
        y = (fw.arange(oh) * sy - top + (k // kw) * ty).reshape(1, 1, -1, 1) + offsets[:, :, k, 0]
        z = (fw.arange(ow) * sx - left + (k % kw) * tx).reshape(1, 1, 1, -1) + offsets[:, :, k, 1]
        grid = fw.stack([(2 * z + 1) / width - 1, (2 * y + 1) / height - 1], -1)
        part = F.grid_sample(x.reshape(n * offset_group, c // offset_group, height, width),
                             grid.reshape(n * offset_group, oh, ow, 2), align_corners=False)
        if mask is not None:
            part = part * mask.reshape(n * offset_group, kh * kw, oh, ow)[:, k:k + 1]
        columns.append(part.reshape(n, c, oh * ow))
    laid = fw.stack(columns, 2).reshape(n, group, c // group * kh * kw, oh * ow)
    y = fw.matmul(w.reshape(1, group, w.shape[0] // group, -1), laid).reshape(n, w.shape[0], oh, ow)
    return (y if b is None else y + b.reshape(1, -1, 1, 1)).to(dtype)
