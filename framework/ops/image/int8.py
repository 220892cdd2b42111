"""Convolutions of 8-bit numbers, for inference; what the numbers mean is told in ``linalg/int8.py``."""

from typing import Any

import numpy as np

from ..linalg.int8 import centred, check, scaled
from ..record.op import Meta, Op
from ..record.road import NEVER
from .conv import _conv_infer, _conv_kernel, _flops


def _kernel(
    xp: Any,
    x: Any,
    w: Any,
    scale: Any,
    b: Any,
    *,
    stride: tuple,
    padding: tuple,
    dilation: tuple,
    groups: int,
    input_scale: float | None,
    input_zero: int,
) -> Any:
    x, w = (
        xp.ascontiguousarray(x),
        xp.ascontiguousarray(w),
    )  # so is the result then, whatever the memory formats
    q, s = centred(xp, x.astype(np.float32), input_scale, input_zero)
    sums = _conv_kernel(
        xp, q, w.astype(np.float64), None, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
    ones = (1,) * len(stride)
    factor = (scale.astype(np.float32) * s).reshape(-1, *ones)
    return scaled(xp, sums, factor, None if b is None else b.reshape(-1, *ones)).astype(x.dtype)


def _infer(
    x: Meta,
    w: Meta,
    scale: Meta,
    b: Meta | None,
    *,
    input_scale: float | None,
    input_zero: int,
    **settings: Any,
) -> Meta:
    out = _conv_infer(x, w, b, **settings)
    check(f"int8 conv{len(settings['stride'])}d", x, w, scale, b)
    return out


int8_conv = Op(
    "int8_conv",
    "x w scale b",
    arguments="input weight weight_scale bias",
    onnx="convolution_of_int8(x, w, scale, b, stride, padding, dilation, groups, input_scale, input_zero)",
    runtime="int8_conv(x, w, scale, b, stride, padding, dilation, groups, input_scale, input_zero)",
    native="int8_conv",
    kernel=_kernel,
    infer=_infer,
    vjp="undefined",
    loose_from=NEVER,
    flops=lambda x, w, scale, b, out_shape: _flops(x, w, b, out_shape),
)
