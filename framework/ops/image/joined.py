"""Layers and what follows them as one call: linear or convolution, batch norm in evaluation, relu or gelu.

The numbers are those of the calls one by one (with a norm, which is folded into the weights, up to rounding),
and so is the graph: a node of the product, one of the activation behind it, with the derivatives they have; a
norm is only joined where nothing is recorded. On GPUs linear layers end in relu or the approximate gelu,
which cuBLASLt computes before it rounds. Every function returns None where it cannot be done: the caller then
calls one after the other, which also says what is wrong.
"""

from collections.abc import Callable
from typing import Any

from ... import _native, dtypes
from ...autograd.mode import FORWARD, state
from ...backends.device_code import is_device_array
from ...node import Node
from ...quiet import quiet
from ...tensor import Tensor, wrap
from ..linalg import cuda
from ..linalg.matmul import linear_op
from ..pointwise.activations import _gelu_tanh as gelu_op
from ..pointwise.activations import _relu as relu_function
from ..record import autocast
from ..record.declining import Declining
from ..record.op import Op
from ..record.road import NEVER, Declined
from . import cuda as image_cuda
from .conv import conv

_linear_relu: Any = getattr(_native.module, "linear_relu", None)
_conv_then: Any = getattr(_native.module, "conv_then", None)
_relu_op = relu_function.op


class _Joined(Declining):
    """A layer and what follows it as one function of the CPU's kernels or of a GPU's, which may decline."""

    def __init__(self, name: str, inputs: str, native: Callable | None, layer: Op, **record: Any) -> None:
        self.layer, self.layer_kernel = layer, layer.cpu
        super().__init__(name, inputs, kernel=lambda xp, *arrays, **settings: NotImplemented, cpu=native,
                          bare=True, **record)  # kernels write in rows



class _WithRelu(_Joined):
    """A layer and relu; two nodes, that of relu behind the layer's."""

    def __init__(self, name: str, inputs: str, native: Callable | None, layer: Op, **record: Any) -> None:
        super().__init__(name, inputs, native, layer, vjp=lambda g: None, infer=layer.infer, **record)

    def node(self, inputs: tuple, arrays: Any, results: tuple, settings: dict) -> Node:
        between = wrap(results[0]._array, node=self.layer.node(inputs, arrays, results, settings))
        return _relu_op.node((between,), [between._array], results, {})


class _WithGelu(_Joined):
    """A layer and gelu, with what gelu was of as a second result; two nodes."""

    def __init__(self, name: str, inputs: str, layer: Op, **record: Any) -> None:
        super().__init__(name, inputs, None, layer, vjp=lambda g: None, outputs="out before",
                         differentiable=1, loose_from=NEVER, infer=layer.infer, **record)

    def node(self, inputs: tuple, arrays: Any, results: tuple, settings: dict) -> Node:
        out, before = results
        between = wrap(before._array, node=self.layer.node(inputs, arrays, (before,), settings))
        return gelu_op.node((between,), [before._array], (out,), {})


def _conv_and_relu(x: Any, w: Any, b: Any, **settings: Any) -> Any:
    return NotImplemented if _conv_then is None else _conv_then(x, w, b, **settings, norm=None, relu=True)


def _conv_and_norm(x: Any, w: Any, b: Any, *norm: Any, **settings: Any) -> Any:
    return NotImplemented if _conv_then is None else _conv_then(x, w, b, **settings, norm=norm)


_linear_relu_op = _WithRelu("linear_relu", "x w b", _linear_relu, linear_op,
                            runtime="linear(x, w, b, True)", device=cuda.linear_relu)
_linear_gelu_op = _Joined("linear_gelu", "x w b", None, linear_op, infer=linear_op.infer,
                          device=cuda.linear_gelu)
_linear_gelu_kept = _WithGelu("linear_gelu_kept", "x w b", linear_op, device=cuda.linear_gelu_kept)
_conv_relu_op = _WithRelu("conv_relu", "x w b", _conv_and_relu, conv,
                          device=image_cuda.conv_relu,
                          runtime="conv(x, w, b, stride, padding, dilation, groups, relu=True)")
_conv_norm_op = _Joined("conv_norm", "x w b mean var weight bias eps", _conv_and_norm, conv, runtime=(
    "conv(x, w, b, stride, padding, dilation, groups, (mean, var, weight, bias), eps, relu)"))


def _joined(op: _Joined, inputs: tuple, arrays: tuple, settings: dict) -> Tensor | None:
    """One call, or None where the functions themselves are to be called."""
    if state.enabled is FORWARD or quiet.run is None and not quiet.whole \
            or autocast.used and autocast.thread.choose is not None:
        return None
    if dtypes.plain or not is_device_array(arrays[0]):
        layer = op.layer
        if arrays[0].dtype.kind != "f" \
                or (layer.cpu if dtypes.plain else layer.kernel_for(arrays)) is not op.layer_kernel:
            return None
    elif op.device is None:
        return None
    try:
        return op.run(*inputs, **settings)
    except Declined:
        return None


def _linear(op: _Joined, x: Tensor, w: Tensor, b: Tensor | None) -> Any:
    return _joined(op, (x, w, b), (x._array, w._array, None if b is None else b._array), {})


def linear_relu(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor | None:
    """``relu(linear(x, w, b))``"""
    if _linear_relu is None and dtypes.plain:
        return None
    if autocast.used and (choose := autocast.thread.choose) is not None:
        return choose("lower", linear_relu, (x, w, b), {}) if is_device_array(x._array) else None
    return _linear(_linear_relu_op, x, w, b)


def linear_gelu(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor | None:
    """``gelu(linear(x, w, b), "tanh")``, on GPUs."""
    if dtypes.plain or not is_device_array(x._array):
        return None
    if autocast.used and (choose := autocast.thread.choose) is not None:
        return choose("lower", linear_gelu, (x, w, b), {})
    recorded = x._node is not None or w._node is not None or b is not None and b._node is not None
    if not (recorded and state.enabled):
        return _linear(_linear_gelu_op, x, w, b)
    found = _linear(_linear_gelu_kept, x, w, b)
    return None if found is None else found[0]


def conv_then(x: Tensor, w: Tensor, b: Tensor | None, stride: tuple, padding: tuple, dilation: tuple,
              groups: int, norm: tuple | None, active: bool) -> Tensor | None:
    """A convolution, then the norm (mean, var, weight, bias, eps) in evaluation if there is one, then relu if
    ``active``. With a norm, only where nothing is recorded."""
    if _conv_then is None and dtypes.plain or not 1 <= len(stride) <= 3:
        return None
    if autocast.used and (choose := autocast.thread.choose) is not None:
        if norm is not None or not is_device_array(x._array):
            return None
        return choose("lower", conv_then, (x, w, b, stride, padding, dilation, groups, norm, active), {})
    inputs = (x, w, b, *(norm or ()))
    arrays = tuple([i._array if isinstance(i, Tensor) else i for i in inputs])
    settings: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if norm is None:
        return _joined(_conv_relu_op, inputs, arrays, settings)
    if state.enabled and any(isinstance(i, Tensor) and i._node is not None for i in inputs):
        return None
    settings["relu"] = active
    return _joined(_conv_norm_op, inputs, arrays, settings)
