"""What a Sequential hands to one call: a layer with the norm and the activation right behind it; on GPUs, in
training, two linear layers with an activation between them.

Only modules of exactly these classes are joined, without hooks, and only while the methods and functions
that they would call are this package's own: whoever replaces one (``nn.Linear.forward``, ``F.relu``,
``nn.Module.__call__``) gets it called. The bits are those of the modules one by one, but for a batch norm
behind a convolution, in evaluation where nothing is recorded: that is folded into the weights, and the last
bits differ.
"""

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..ops.image.joined import conv_then, linear_gelu, linear_relu
from ..ops.linalg.feed_forward import feed_forward
from ..ops.record.torch_function import modes_open
from ..tensor import Tensor
from . import functional as F
from .activation import GELU, ReLU
from .conv import Conv1d, Conv2d, Conv3d
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d


def _methods(kind: Any) -> tuple:
    return kind.forward, getattr(kind, "_conv_forward", None), getattr(kind, "_function", None)


_FUNCTIONS: dict[Any, str] = {
    Linear: "linear", ReLU: "relu", GELU: "gelu", Dropout: "dropout", Conv1d: "conv1d", Conv2d: "conv2d",
    Conv3d: "conv3d",
    **dict.fromkeys((BatchNorm1d, BatchNorm2d, BatchNorm3d), "batch_norm")}
_WITHIN = ("forward", "_conv_forward", "_function")  # methods that a call of a layer goes through
_OWN: dict[Any, tuple] = {kind: (_methods(kind), name, getattr(F, name)) for kind, name in _FUNCTIONS.items()}
_CALL, _HOME = Module.__call__, vars(F)
_NORMS: dict[type, type] = {Conv1d: BatchNorm1d, Conv2d: BatchNorm2d, Conv3d: BatchNorm3d}


def _runs_as_written(module: Any, kind: Any) -> bool:
    """Whether a call of this module, of this very class, is what this package wrote and nothing besides."""
    methods, name, function = _OWN[kind]  # hooks of all modules replace ``__call__``
    return _methods(kind) == methods and kind.__call__ is _CALL and _HOME[name] is function \
        and not module._hooks and module.__dict__.keys().isdisjoint(_WITHIN)


def _follows(items: list, at: int, kind: Any) -> bool:
    """Whether a module of this very class comes next, to be called as it was written."""
    return at < len(items) and type(items[at]) is kind and _runs_as_written(items[at], kind)


def _is_plain(input: Any) -> bool:
    """Whether it is a tensor whose class overrides no functions."""
    return type(input) is Tensor and not modes_open[0]


def _linear_code() -> tuple:
    """What a call of a Linear and a ReLU runs."""
    return Linear.forward, ReLU.forward, Linear.__call__, ReLU.__call__, F.linear, F.relu


_LINEAR_CODE, _RELU = _linear_code(), F.relu


def _linear(items: list, at: int, input: Any) -> tuple[Any, int] | None:
    if not dtypes.plain and at + 2 < len(items) and type(items[at + 2]) is Linear \
            and type(input) is Tensor and input.is_cuda \
            and not (at + 3 < len(items) and _activation(items[at + 3])):  # which joins the second layer
        both = two_layers(items[at], items[at + 1], items[at + 2], input)
        if both is not None:
            return both, 2
    if at + 1 == len(items) or type(items[at + 1]) is not ReLU:  # the common case
        return None if dtypes.plain or not _follows(items, at + 1, GELU) else _gelu(items, at, input)
    layer = items[at]
    own, next_own = layer.__dict__, items[at + 1].__dict__
    # ``_runs_as_written`` of both, written out: that is half of what joining two small layers costs
    if _linear_code() != _LINEAR_CODE or own["_hooks"] or next_own["_hooks"] \
            or "forward" in own or "forward" in next_own or not _is_plain(input):
        return None
    out = linear_relu(input, layer.weight, layer.bias)
    return None if out is None else (out, 1)


def _gelu(items: list, at: int, input: Any) -> tuple[Any, int] | None:
    """A Linear with GELU behind it, which GPUs join."""
    layer = items[at]
    if items[at + 1].approximate != "tanh" or not _is_plain(input) or not _runs_as_written(layer, Linear):
        return None
    out = linear_gelu(input, layer.weight, layer.bias)
    return None if out is None else (out, 1)


def _activation(active: Any) -> str:
    """What is joined with a layer before it: "relu", "gelu" (the approximate one, on GPUs), "" for others."""
    if active is _RELU or type(active) is ReLU and _runs_as_written(active, ReLU):
        return "relu"
    approximate = not dtypes.plain and type(active) is GELU and active.approximate == "tanh"
    return "gelu" if approximate and _runs_as_written(active, GELU) else ""


def linear_then(layer: Any, active: Any, input: Any) -> Any:
    """``active(layer(input))``, a function or module behind a layer; on GPUs in one call where it can be."""
    if not dtypes.plain and type(layer) is Linear and _is_plain(input) and input.is_cuda \
            and _runs_as_written(layer, Linear):
        joined = {"relu": linear_relu, "gelu": linear_gelu}.get(_activation(active))
        out = None if joined is None else joined(input, layer.weight, layer.bias)
        if out is not None:
            return out
    return active(layer(input))


def two_layers(first: Any, active: Any, second: Any, input: Any) -> Tensor | None:
    """``second(active(first(input)))`` of linear layers in one call; None where it cannot be."""
    layers = first, second
    if dtypes.plain or not _is_plain(input) \
            or not all(type(layer) is Linear and _runs_as_written(layer, Linear) for layer in layers):
        return None
    name = _activation(active)
    return feed_forward(input, first.weight, first.bias, second.weight, second.bias, name) if name else None


def drops_nothing(drop: Any) -> bool:
    """Whether a call of this dropout does nothing."""
    return type(drop) is Dropout and not (drop.training and drop.p) and _runs_as_written(drop, Dropout)


def _conv(items: list, at: int, input: Any) -> tuple[Any, int] | None:
    layer, end, norm = items[at], at + 1, None
    if not _is_plain(input):
        return None
    if _follows(items, end, _NORMS[type(layer)]):
        n = items[end]
        if not n.training and n.running_mean is not None:
            norm = (n.running_mean, n.running_var, n.weight, n.bias, n.eps)
            end += 1
    active = _follows(items, end, ReLU)
    if end + active == at + 1 or not _runs_as_written(layer, type(layer)) or layer.padding_mode != "zeros" \
            or not type(layer.stride) is type(layer.padding) is type(layer.dilation) is tuple:
        return None
    out = conv_then(input, layer.weight, layer.bias, layer.stride, layer.padding, layer.dilation,
                    layer.groups, norm, active)
    return None if out is None else (out, end + active - at - 1)


# (modules, place of a layer of the class, input) to (output, how many modules behind it are done), or to None
JOINS: dict[type, Callable] = {Linear: _linear, Conv1d: _conv, Conv2d: _conv, Conv3d: _conv}
