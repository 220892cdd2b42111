"""Layers of 8-bit numbers in ONNX.

With a range of activations that is known they are in QDQ form: QuantizeLinear and DequantizeLinear around the
layer of floats, on activations, on the weight (a scale for each output) and on the bias (int32, of the scale
that sums have). Runtimes that have kernels of 8-bit numbers put them in place of the layer with what is
around it, the others compute with the dequantised numbers. Where the range is found at each call, the sums of
whole numbers are written as such (MatMulInteger, ConvInteger), and scaled.

The int8 numbers of weights are written as uint8 with 128 as zero: on x86 without VNNI, kernels for unsigned
times signed numbers clamp the sum of two products to 16 bits, those for unsigned times unsigned are exact.
"""

from typing import Any

import numpy as np

from ... import dtypes
from ..graph import Edge, Graph, Unsupported
from .images import convolved


def _floats(g: Graph, x: Edge) -> Edge:
    """The activations as float32, which all of these operators take in every opset."""
    shape = x.shape
    x = g.cast(x, dtypes.float32)
    x.shape = shape
    return x


def _rounded(g: Graph, x: Edge, scale: float, zero: int) -> Edge:
    """Activations through 8-bit numbers and back."""
    s, z = g.constant(scale, dtypes.float32), g.constant(zero, dtypes.uint8)
    y = g.emit("DequantizeLinear", (g.emit("QuantizeLinear", (x, s, z), dtype=dtypes.uint8), s, z),
               dtype=dtypes.float32)
    y.shape = x.shape
    return y


def _known(g: Graph, edge: Any, what: str) -> np.ndarray:
    """The numbers of a weight or constant."""
    array = g.weights.get(edge.name, g.constants.get(edge.name))
    if array is None:
        raise Unsupported(f"a layer of 8-bit numbers whose {what} is computed")
    return array


def _unsigned(g: Graph, w: Edge) -> Edge:
    """The int8 numbers of a weight as uint8 ones around 128, once for all layers that share it."""
    name = f"{w.name}.uint8"
    if name in g.constants:
        return Edge(g, name, dtypes.uint8, w.shape)
    return g.constant((_known(g, w, "weight").astype(np.int16) + 128).astype(np.uint8), name=name)


def _weight(g: Graph, w: Edge, scale: Edge, axis: int) -> Edge:
    zeros = g.constant(np.full(scale.shape, 128, np.uint8))
    y = g.emit("DequantizeLinear", (w, scale, zeros), {"axis": axis}, dtype=dtypes.float32)
    y.shape = w.shape
    return y


def _bias(g: Graph, b: Any, scale: Edge, input_scale: float) -> Any:
    """The bias as whole numbers of the scale of the sums, as kernels add it."""
    if b is None:
        return None
    step = _known(g, scale, "scale").astype(np.float32) * np.float32(input_scale)
    whole = np.rint(_known(g, b, "bias").astype(np.float64) / step)
    q = g.constant(np.clip(whole, -2**31 + 1, 2**31 - 1).astype(np.int32), name=f"{b.name}.int32")
    zeros = g.constant(np.zeros(step.shape, np.int32))
    return g.emit("DequantizeLinear", (q, g.constant(step), zeros), {"axis": 0}, dtype=dtypes.float32)


def _scaled(g: Graph, sums: Edge, step: Edge, scale: Edge, b: Any, shape: list[int] | None) -> Edge:
    """Sums of whole numbers as floats; ``shape``: in which the numbers of each output stand."""
    y = g.cast(sums, dtypes.float32)
    for op, each in (("Mul", scale * step), ("Add", b)):
        if each is not None:
            each = each if shape is None else g.emit("Reshape", (each, g.ints(shape)))
            y = g.emit(op, (y, each))
    return y


def _measured(g: Graph, x: Edge) -> list[Edge]:
    """(uint8 numbers, their scale, their zero point) by the smallest and largest number of this call."""
    q, step, zero = g.emit("DynamicQuantizeLinear", (x,), outputs=3)
    q.dtype, zero.dtype = dtypes.uint8, dtypes.uint8
    return [q, step, zero]


def linear_of_int8(g: Graph, x: Edge, w: Edge, scale: Edge, b: Any, input_scale: Any,
                   input_zero: int) -> Edge:
    kind, x, w = x.dtype, _floats(g, x), _unsigned(g, w)
    turned = g.emit("Transpose", (w,), {"perm": [1, 0]})
    turned.shape = w.shape[::-1]
    if input_scale is None:
        q, step, zero = _measured(g, x)
        sums = g.emit("MatMulInteger", (q, turned, zero, g.constant(128, dtypes.uint8)), dtype=dtypes.int32)
        return g.cast(_scaled(g, sums, step, scale, b, None), kind)
    rounded = _rounded(g, x, input_scale, input_zero)
    if x.ndim == 2:
        bias = _bias(g, b, scale, input_scale)
        return g.cast(g.emit("Gemm", (rounded, _weight(g, w, scale, 0), bias), {"transB": 1}), kind)
    y = g.emit("MatMul", (rounded, _weight(g, turned, scale, 1)))
    return g.cast(y if b is None else y + b, kind)


def convolution_of_int8(g: Graph, x: Edge, w: Edge, scale: Edge, b: Any, stride: tuple, padding: tuple,
                        dilation: tuple, groups: int, input_scale: Any, input_zero: int) -> Edge:
    kind, x, w = x.dtype, _floats(g, x), _unsigned(g, w)
    if input_scale is None:
        q, step, zero = _measured(g, x)
        sums = g.emit("ConvInteger", (q, w, zero, g.constant(128, dtypes.uint8)),
                      {"strides": stride, "pads": [*padding, *padding], "dilations": dilation,
                       "group": groups, "kernel_shape": w.shape[2:]}, dtype=dtypes.int32)
        return g.cast(_scaled(g, sums, step, scale, b, [1, -1, *[1] * len(stride)]), kind)
    rounded, bias = _rounded(g, x, input_scale, input_zero), _bias(g, b, scale, input_scale)
    y = convolved(g, rounded, _weight(g, w, scale, 0), bias, stride, padding, dilation, groups)
    return g.cast(y, kind)
