"""Linear layers of 8-bit numbers, for inference: what quantised modules compute (``framework.ao``).

Weights are int8 with a scale for each output, ``w = scale[o] * q``. Activations become uint8 on the way in,
with one scale and zero point for the whole tensor, ``x = s * (q - z)``: the given ones, or by the smallest
and largest number (ONNX's DynamicQuantizeLinear). Sums of products of whole numbers are exact; they are
scaled in float32. Jacob et al. 2018, "Quantization and training of neural networks for efficient
integer-arithmetic-only inference".
"""

from typing import Any

import numpy as np

from ...dtypes import int8
from ...errors import DTypeError, ShapeError
from ..record.op import Meta, Op
from .matmul import product_flops

MOST_TERMS = 65536  # of products of 8-bit numbers whose sum fits into int32


def scale_of(xp: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The scale and zero point (as float32) for numbers from ``low`` to ``high``; 0 is always exact."""
    low, high = xp.minimum(low, np.float32(0)), xp.maximum(high, np.float32(0))
    scale = (high - low) / np.float32(255)
    scale = xp.where(scale == 0, np.float32(1), scale)
    return scale, xp.clip(xp.rint(-low / scale), 0, 255)


def centred(xp: Any, x: Any, input_scale: float | None, input_zero: int) -> tuple[Any, Any]:
    """``q - z`` of float32 numbers, as whole numbers in float64, and the scale; nan counts as 0.

    Where the scale comes from the numbers, one that is inf or nan makes it nan, and with it all results.
    """
    scale: Any
    if input_scale is not None:
        scale, zero = np.float32(input_scale), np.float32(input_zero)
    elif x.size:
        scale, zero = scale_of(xp, x.min(), x.max())
    else:
        scale, zero = np.float32(1), np.float32(0)
    q = xp.clip(xp.rint(x / scale) + zero, 0, 255)
    q = xp.where(q == q, q, zero) - zero
    return q.astype(np.float64), xp.where(xp.isfinite(scale), scale, np.float32(np.nan))


def scaled(xp: Any, sums: Any, factor: Any, b: Any) -> Any:
    """Sums in float64, which are exact, as results in float32."""
    y = sums.astype(np.float32) * factor
    return y if b is None else y + b.astype(np.float32)


def _kernel(
    xp: Any, x: Any, w: Any, scale: Any, b: Any, *, input_scale: float | None, input_zero: int
) -> Any:
    q, s = centred(xp, x.astype(np.float32), input_scale, input_zero)
    sums = xp.matmul(q, w.astype(np.float64).T)
    return scaled(xp, sums, scale.astype(np.float32) * s, b).astype(x.dtype)


def check(name: str, x: Meta, w: Meta, scale: Meta, b: Meta | None) -> None:
    """What linear layers and convolutions ask of their operands."""
    if not x.dtype.is_floating_point:
        raise DTypeError(
            f"{name}: input must be of floating numbers, got {x.dtype}; quantised layers take and give them"
        )
    if w.dtype is not int8:
        raise DTypeError(f"{name}: weight must be int8, got {w.dtype}")
    for what, given in (("weight_scale", scale), ("bias", b)):
        if given is not None and given.shape != (w.shape[0],):
            raise ShapeError(
                f"{name}: {what} of shape {list(given.shape)} does not fit a weight of shape "
                f"{list(w.shape)}; wanted [{w.shape[0]}]"
            )


def _infer(x: Meta, w: Meta, scale: Meta, b: Meta | None, **settings: Any) -> Meta:
    if not x.ndim or w.ndim != 2 or x.shape[-1] != w.shape[1]:
        raise ShapeError(
            f"int8_linear: input of shape {list(x.shape)} does not fit a weight of shape "
            f"{list(w.shape)}: wanted input (*, in) and weight (out, in), with equal 'in'"
        )
    check("int8_linear", x, w, scale, b)
    return Meta((*x.shape[:-1], w.shape[0]), x.dtype)


int8_linear = Op(
    "int8_linear",
    "x w scale b",
    arguments="input weight weight_scale bias",
    onnx="linear_of_int8(x, w, scale, b, input_scale, input_zero)",
    runtime="int8_linear(x, w, scale, b, input_scale, input_zero)",
    native="int8_linear",
    kernel=_kernel,
    infer=_infer,
    vjp="undefined",
    loose_from=3,
    flops=lambda x, w, *others, out_shape: product_flops(x, w, out_shape=out_shape),
)
