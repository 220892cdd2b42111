"""Layers and what follows them as one native call: linear or convolution, batch norm in evaluation, relu.

The numbers are those of the calls one by one, and so is the graph: a node of the product, one of relu behind
it, with the derivatives they have; a norm is only joined where nothing is recorded. Every function returns
None where it cannot be done: the caller then calls one after the other, which also says what is wrong.
"""

from typing import Any

from ... import _native, dtypes
from ...autograd.mode import state
from ...node import Node
from ...quiet import quiet
from ...tensor import Tensor, wrap
from ..linalg.matmul import linear, linear_op
from ..pointwise.activations import _relu as relu_function
from ..record.op import Op
from .conv import conv, conv1d, conv2d, conv3d

_linear_relu: Any = getattr(_native.module, "linear_relu", None)
_conv_then: Any = getattr(_native.module, "conv_then", None)
_relu_op = relu_function.op
_KERNELS = {op: op.cpu for op in (linear_op, conv)}
# autocast gives the functions other code: they are to be called then
_OWN: list[Any] = [(f, f.__code__) for f in (linear, conv1d, conv2d, conv3d)]


def _operands(op: Op, x: Any, w: Tensor, b: Tensor | None, public: int) -> tuple[list, bool] | None:
    """(arrays, whether a node is wanted), or None where the functions themselves are to be called."""
    function, code = _OWN[public]
    mode = state.enabled
    if function.__code__ is not code or (mode is not True and mode is not False) or state.anomaly is not None:
        return None
    if not isinstance(x, Tensor):
        return None
    arrays = [x._array, w._array, None if b is None else b._array]
    if arrays[0].dtype.kind != "f" or (op.cpu if dtypes.plain else op.kernel_for(arrays)) is not _KERNELS[op]:
        return None
    recorded = x._node is not None or w._node is not None or b is not None and b._node is not None
    return arrays, mode and recorded


def _result(op: Op, inputs: tuple, arrays: list, out: Any, settings: dict, recorded: bool,
            active: bool) -> Tensor:
    """The tensor of ``out`` with the nodes of the op and of relu, if it was ``active``."""
    result = wrap(out)
    if recorded:
        node: Node = op.node(inputs, arrays, (result,), settings)
        if active:
            node = _relu_op.node((wrap(out, node=node),), [out], (result,), {})
        result._node = node
    return result


def linear_relu(x: Any, w: Tensor, b: Tensor | None) -> Tensor | None:
    """``relu(linear(x, w, b))``"""
    found = None if _linear_relu is None else _operands(linear_op, x, w, b, 0)
    if found is None:
        return None
    arrays, recorded = found
    out = quiet.run(_linear_relu, *arrays)
    return None if out is NotImplemented else _result(linear_op, (x, w, b), arrays, out, {}, recorded, True)


def conv_then(x: Any, w: Tensor, b: Tensor | None, stride: tuple, padding: tuple, dilation: tuple,
              groups: int, norm: tuple | None, active: bool) -> Tensor | None:
    """A convolution, then the norm (mean, var, weight, bias, eps) in evaluation if there is one, then relu if
    ``active``. With a norm, only where nothing is recorded."""
    found = None if _conv_then is None or not 1 <= len(stride) <= 3 else _operands(conv, x, w, b, len(stride))
    if found is None:
        return None
    arrays, recorded = found
    if norm is not None and state.enabled and (recorded or any(getattr(p, "_node", None) for p in norm)):
        return None
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    parts = norm and tuple([p._array if isinstance(p, Tensor) else p for p in norm])
    out = quiet.run(_conv_then, *arrays, **settings, norm=parts, relu=active)
    if out is NotImplemented:
        return None
    return _result(conv, (x, w, b), arrays, out, settings, recorded, active)
