"""Layers and what follows them as one native call: linear or convolution, batch norm in evaluation, relu.

The numbers are those of the calls one by one (with a norm, which is folded into the weights, up to rounding),
and so is the graph: a node of the product, one of relu behind it, with the derivatives they have; a norm is
only joined where nothing is recorded. Every function returns None where it cannot be done: the caller then
calls one after the other, which also says what is wrong.
"""

from collections.abc import Callable
from typing import Any

from ... import _native, dtypes
from ...autograd.mode import state
from ...node import Node
from ...quiet import quiet
from ...tensor import Tensor, wrap
from ..linalg.matmul import linear_op
from ..pointwise.activations import _relu as relu_function
from ..record import autocast
from ..record.op import Op
from ..record.road import Declined, road
from .conv import conv

_linear_relu: Any = getattr(_native.module, "linear_relu", None)
_conv_then: Any = getattr(_native.module, "conv_then", None)
_relu_op = relu_function.op
_KERNELS = {op: op.cpu for op in (linear_op, conv)}


class _Joined(Op):
    """Several ops as one function of the CPU's kernels, which may decline."""

    def __init__(self, name: str, inputs: str, native: Callable | None, layer: Op, **record: Any) -> None:
        super().__init__(name, inputs, kernel=lambda xp, *arrays, **settings: NotImplemented, cpu=native,
                          loose_from=layer.loose_from, **record)


class _WithRelu(_Joined):
    """A layer and relu; two nodes, that of relu behind the layer's."""

    def __init__(self, name: str, inputs: str, native: Callable | None, layer: Op) -> None:
        self.layer = layer
        super().__init__(name, inputs, native, layer, vjp=lambda g: None, infer=layer.infer)

    def node(self, inputs: tuple, arrays: Any, results: tuple, settings: dict) -> Node:
        between = wrap(results[0]._array, node=self.layer.node(inputs, arrays, results, settings))
        return _relu_op.node((between,), [between._array], results, {})


def _conv_and_relu(x: Any, w: Any, b: Any, **settings: Any) -> Any:
    return _conv_then(x, w, b, **settings, norm=None, relu=True)


def _conv_and_norm(x: Any, w: Any, b: Any, *norm: Any, **settings: Any) -> Any:
    return _conv_then(x, w, b, **settings, norm=norm)


_linear_relu_op = _WithRelu("linear_relu", "x w b", _linear_relu, linear_op)
_conv_relu_op = _WithRelu("conv_relu", "x w b", _conv_and_relu, conv)
_conv_norm_op = _Joined("conv_norm", "x w b mean var weight bias eps", _conv_and_norm, conv)


def _joined(op: Op, inputs: tuple, found: tuple[list, bool], settings: dict) -> Tensor | None:
    try:
        return road(op, inputs, found[0], settings, found[1])
    except Declined:
        return None


def _operands(op: Op, x: Any, w: Tensor, b: Tensor | None) -> tuple[list, bool] | None:
    """(arrays, whether a node is wanted), or None where the functions themselves are to be called."""
    mode = state.enabled
    if (mode is not True and mode is not False) or not quiet.whole:
        return None
    if autocast.used and autocast.thread.choose is not None:
        return None
    if not isinstance(x, Tensor):
        return None
    arrays = [x._array, w._array, None if b is None else b._array]
    if arrays[0].dtype.kind != "f" or (op.cpu if dtypes.plain else op.kernel_for(arrays)) is not _KERNELS[op]:
        return None
    recorded = x._node is not None or w._node is not None or b is not None and b._node is not None
    return arrays, mode and recorded


def linear_relu(x: Any, w: Tensor, b: Tensor | None) -> Tensor | None:
    """``relu(linear(x, w, b))``"""
    if _linear_relu is None or (found := _operands(linear_op, x, w, b)) is None:
        return None
    try:
        return road(_linear_relu_op, (x, w, b), found[0], {}, found[1])
    except Declined:
        return None


def conv_then(x: Any, w: Tensor, b: Tensor | None, stride: tuple, padding: tuple, dilation: tuple,
              groups: int, norm: tuple | None, active: bool) -> Tensor | None:
    """A convolution, then the norm (mean, var, weight, bias, eps) in evaluation if there is one, then relu if
    ``active``. With a norm, only where nothing is recorded."""
    found = None if _conv_then is None or not 1 <= len(stride) <= 3 else _operands(conv, x, w, b)
    if found is None:
        return None
    parts = norm or ()
    if parts and state.enabled and (found[1] or any(getattr(p, "_node", None) for p in parts)):
        return None
    found[0].extend([p._array if isinstance(p, Tensor) else p for p in parts])
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if parts:
        return _joined(_conv_norm_op, (x, w, b, *parts), found, {**settings, "relu": active})
    return _joined(_conv_relu_op, (x, w, b), found, settings)
