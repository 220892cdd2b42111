"""A batch norm folded into the convolution or linear layer before it, for inference.

In evaluation ``bn(y) = (y - mean) * s + beta`` with ``s = gamma / sqrt(var + eps)``, so that for
``y = w x + b`` the two are one layer with weights ``s w`` and bias ``(b - mean) s + beta``.
"""

import copy
from typing import Any

from ...autograd.mode import no_grad
from ...tensor import Tensor
from ..module import Module
from ..parameter import Parameter


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of ``conv`` that also does what ``bn`` does in evaluation; both stay as they are.

    transpose: conv is a transposed convolution. Raises ValueError for modules in training, a norm without
    running statistics, and sizes that do not fit.

    >>> conv, bn = fw.nn.Conv2d(3, 4, 3).eval(), fw.nn.BatchNorm2d(4).eval()
    >>> fw.nn.utils.fuse_conv_bn_eval(conv, bn).bias.shape
    (4,)
    """
    channels = conv.weight.shape[1] * conv.groups if transpose else conv.weight.shape[0]
    _check("fuse_conv_bn_eval", conv, bn, (channels,), channels)
    return _with(conv, fuse_conv_bn_weights(conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps,
                                            bn.weight, bn.bias, transpose))


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                         bn_w: Tensor | None, bn_b: Tensor | None,
                         transpose: bool = False) -> tuple[Parameter, Parameter]:
    """The weight and bias of a convolution with a batch norm behind it, from theirs; see the module.

    >>> one = fw.ones(1)
    >>> w, b = fw.nn.utils.fuse_conv_bn_weights(fw.ones(1, 1, 1), None, one, one * 3, 1.0, one, one)
    >>> w.item(), b.item()
    (0.5, 0.5)
    """
    scale, shift = _affine(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    with no_grad():
        if not transpose:
            w: Any = conv_w * scale.reshape(-1, *(1,) * (conv_w.ndim - 1))
        else:  # (channels, out / groups, ...): the channels of a group have scales of their own
            each = conv_w.shape[1]
            parts = conv_w.reshape(scale.numel() // each, -1, *conv_w.shape[1:])
            w = (parts * scale.reshape(-1, 1, each, *(1,) * (conv_w.ndim - 2))).reshape(conv_w.shape)
        w = w.to(conv_w.dtype).contiguous()
    needs = conv_w.requires_grad
    return Parameter(w, needs), Parameter(shift, needs if conv_b is None else conv_b.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of ``linear`` that also does what ``bn`` (of 1d) does in evaluation; both stay as they are.

    Raises ValueError for modules in training, a norm without running statistics, and sizes that do not fit.

    >>> linear, bn = fw.nn.Linear(3, 4).eval(), fw.nn.BatchNorm1d(4).eval()
    >>> fw.nn.utils.fuse_linear_bn_eval(linear, bn).weight.shape
    (4, 3)
    """
    _check("fuse_linear_bn_eval", linear, bn, (linear.out_features, 1), linear.out_features)
    return _with(linear, fuse_linear_bn_weights(linear.weight, linear.bias, bn.running_mean, bn.running_var,
                                                bn.eps, bn.weight, bn.bias))


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor,
                           bn_eps: float, bn_w: Tensor | None,
                           bn_b: Tensor | None) -> tuple[Parameter, Parameter]:
    """The weight and bias of a linear layer with a batch norm behind it, from theirs; see the module.

    >>> one = fw.ones(1)
    >>> w, b = fw.nn.utils.fuse_linear_bn_weights(fw.ones(1, 2), None, one, one * 3, 1.0, None, one)
    >>> w.tolist(), b.item()
    ([[0.5, 0.5]], 0.5)
    """
    scale, shift = _affine(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    with no_grad():
        w: Any = (linear_w * scale.reshape(-1, 1)).to(linear_w.dtype)
        shift = shift.expand(linear_w.shape[0]).clone()  # type: ignore[attr-defined]
    needs = linear_w.requires_grad
    return Parameter(w, needs), Parameter(shift, needs if linear_b is None else linear_b.requires_grad)


def _affine(b: Tensor | None, mean: Any, var: Any, eps: float, gamma: Any, beta: Any) -> tuple[Any, Any]:
    """(scale, shift) of each channel."""
    with no_grad():
        scale = (var + eps).rsqrt()
        if gamma is not None:
            scale = scale * gamma
        shift = (-mean if b is None else b - mean) * scale
        return scale, (shift if beta is None else shift + beta).to(shift.dtype if b is None else b.dtype)


def _check(op: str, layer: Module, bn: Any, sizes: tuple[int, ...], channels: int) -> None:
    if layer.training or bn.training:
        raise ValueError(f"{op}: both modules must be in evaluation; call eval() on them first")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError(f"{op}: {bn} keeps no running statistics, which are what is folded in")
    if bn.num_features not in sizes:
        raise ValueError(f"{op}: {bn} is for {bn.num_features} channels, but {layer} gives {channels}")


def _with(layer: Any, parameters: tuple[Parameter, Parameter]) -> Any:
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = parameters
    return fused
