"""Convolution, pooling, padding and resampling in ONNX."""

import math
from typing import Any

import numpy as np

from ...ops.image.resample import Plan, taps
from ..graph import Edge, Graph, Unsupported
from ..sizes import Extent, Varies


def convolved(g: Graph, x: Edge, w: Edge, b: Any, stride: tuple, padding: tuple, dilation: tuple,
              groups: int) -> Edge:
    return g.emit("Conv", (x, w, b), {"strides": stride, "pads": [*padding, *padding], "dilations": dilation,
                                      "group": groups, "kernel_shape": w.shape[2:]})


def transposed(g: Graph, y: Edge, w: Edge, x_shape: tuple, stride: tuple, padding: tuple, dilation: tuple,
               groups: int) -> Edge:
    kernel = w.shape[2:]
    more = []
    for n, m, s, p, d, k in zip(y.shape[2:], x_shape[2:], stride, padding, dilation,
                                kernel):
        more.append(m - ((n - 1) * s - 2 * p + d * (k - 1) + 1))
    return g.emit("ConvTranspose", (y, w),
                  {"strides": stride, "pads": [*padding, *padding], "dilations": dilation,
                                            "group": groups, "kernel_shape": kernel, "output_padding": more})


def pooled(g: Graph, op: str, x: Edge, kernel: tuple, stride: tuple, padding: tuple, out: tuple,
           dilation: tuple | None = None, include: bool = True, divisor: Any = None) -> Edge:
    """MaxPool, AveragePool; where the window is the image, the global one."""
    d = len(kernel)
    size = x.shape[-d:]
    whole = tuple(kernel) == tuple(size) and not any(padding) and all(n == 1 for n in out)
    if whole and divisor is None and x.ndim == d + 2:
        return g.emit("Global" + op, (x,))
    dilation = dilation or (1,) * d
    ceil = 0
    for n, k, s, p, t, o in zip(size, kernel, stride, padding, dilation, out):
        if (n + (2 * p - t * (k - 1) - 1)) // s + 1 != o:
            ceil = 1
    attributes = {"kernel_shape": kernel, "strides": stride, "pads": [*padding, *padding], "ceil_mode": ceil}
    if op == "MaxPool":
        attributes["dilations"] = dilation
    else:
        attributes["count_include_pad"] = int(include or divisor is not None)
    lead = x.shape[:-d]
    if len(lead) != 2:  # ONNX wants batch and channels
        x = g.emit("Reshape", (x, g.sizes([1, -1, *size])))
    y = g.emit(op, (x,), attributes)
    if divisor is not None:
        y = y * (math.prod(kernel) / divisor)
    return y if len(lead) == 2 else g.emit("Reshape", (y, g.sizes([*lead, *out])))


def padded(g: Graph, x: Edge, pads: tuple, value: Any) -> Edge:
    amounts = g.sizes([lo for lo, _ in pads] + [hi for _, hi in pads])
    return g.emit("Pad", (x, amounts, g.like(value, x)), {"mode": "constant"})


_PADDINGS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def resampled(g: Graph, x: Edge, dim: int, plan: Any, back: bool) -> Edge:
    """Resizing or padding along one dimension, of fixed sizes: as weighted choices of elements."""
    if any(isinstance(n, (Extent, Varies)) for n in plan) or back:
        raise Unsupported(f"resampling ({plan.kind}) along a dynamic axis")
    out: Any = None
    for index, weight in taps(plan, back):
        part = g.emit("Gather", (x, g.ints(index)), {"axis": dim})
        if weight is not None:
            part = part * g.constant(np.asarray(weight).reshape(-1, *(1,) * (x.ndim - 1 - dim)), x.dtype)
        out = part if out is None else out + part
    return out


def interpolated(g: Graph, x: Edge, size: Any, scale_factor: Any, mode: str, align_corners: Any,
                 recompute: Any, antialias: bool, out: tuple) -> Edge:
    """Resize, by factors where these were given, so that it holds for images of all sizes."""
    modes = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear",
             "trilinear": "linear", "bicubic": "cubic"}
    if mode == "area":
        for i, (n, m) in enumerate(zip(x.shape[2:], out)):
            before = x
            x = resampled(g, x, 2 + i, Plan("area", n, m, 1.0), False)
            x.shape = (*before.shape[:2 + i], m, *before.shape[3 + i:])
        return x
    attributes: dict[str, Any] = {"mode": modes[mode]}
    if mode == "nearest":
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif mode == "nearest-exact":
        attributes |= {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
    elif align_corners:
        attributes |= {"coordinate_transformation_mode": "align_corners"}
    else:
        places = "half_pixel" if mode == "bicubic" else "pytorch_half_pixel"
        attributes |= {"coordinate_transformation_mode": places}
    if mode == "bicubic":
        attributes |= {"cubic_coeff_a": -0.75}
    if antialias:
        if g.opset < 18:
            raise Unsupported("antialias=True before opset 18")
        attributes |= {"antialias": 1, "exclude_outside": 1}  # weights inside the image sum to 1
        if mode == "bicubic":
            attributes["cubic_coeff_a"] = -0.5
    d = x.ndim - 2
    if size is None and not recompute:
        factors = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * d
        if not any(isinstance(f, (Varies, Extent)) for f in factors):
            scales = g.constant(np.array([1.0, 1.0, *factors], np.float32))
            return g.emit("Resize", (x, None, scales), attributes)
    return g.emit("Resize", (x, None, None, g.sizes([*x.shape[:2], *out])), attributes)


def sampled(g: Graph, x: Edge, grid: Edge, mode: str, padding_mode: str, align: bool) -> Edge:
    names = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}
    shown = names[mode] if g.opset >= 20 else mode
    return g.emit("GridSample", (x, grid),
                  {"mode": shown, "padding_mode": padding_mode, "align_corners": int(align)})


def _one_hot_kernels(channels: int, kernel: tuple) -> np.ndarray:
    """For each channel and place of the window the kernel that takes this element."""
    count = math.prod(kernel)
    return np.tile(np.eye(count).reshape(count, 1, *kernel), (channels, *(1,) * (1 + len(kernel))))


def columns(g: Graph, x: Edge, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> Edge:
    """``nn.Unfold``: a convolution with the kernels that take one element each."""
    n, c = x.shape[:2]
    w = g.constant(_one_hot_kernels(c, kernel), x.dtype)
    y = g.emit("Conv", (x, w),
               {"strides": stride, "pads": [*padding, *padding], "dilations": dilation, "group": c})
    return g.emit("Reshape", (y, g.sizes([0, c * math.prod(kernel), -1])))


def folded(g: Graph, y: Edge, x_shape: tuple, kernel: tuple, stride: tuple, padding: tuple,
           dilation: tuple) -> Edge:
    """``nn.Fold``, the transposed convolution with the same kernels."""
    c = x_shape[1]
    out = [(m + 2 * p - d * (k - 1) - 1) // s + 1
           for m, k, s, p, d in zip(x_shape[2:], kernel, stride, padding, dilation)]
    image = g.emit("Reshape", (y, g.sizes([0, c * math.prod(kernel), *out])))
    image.shape = (x_shape[0], c * math.prod(kernel), *out)
    w = g.constant(_one_hot_kernels(c, kernel), y.dtype)
    w.shape = (c * math.prod(kernel), 1, *kernel)
    return transposed(g, image, w, x_shape, stride, padding, dilation, c)


def adaptive_max(g: Graph, x: Edge, d: int, out: tuple) -> Edge:
    size = x.shape[-d:]
    if all(n == 1 for n in out):
        return pooled(g, "MaxPool", x, size, size, (0,) * d, out)
    if any(isinstance(n, Extent) or n % m for n, m in zip(size, out)):
        raise Unsupported("adaptive pooling whose windows are not all of one size, or of a dynamic one")
    kernel = tuple(n // m for n, m in zip(size, out))
    return pooled(g, "MaxPool", x, kernel, kernel, (0,) * d, out)
