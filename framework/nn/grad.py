"""The gradients of convolutions as functions: with respect to the input, and to the weight."""

from typing import Any

from ..autograd import engine
from ..autograd.mode import enable_grad
from ..config.listing import own as _own
from ..creation import zeros
from ..tensor import Tensor
from . import functional as F


def _gradient(n: int, of: str, x: Any, w: Any, g: Tensor, settings: tuple) -> Tensor:
    """The convolution is linear in each, so the value at which it is differentiated does not matter."""
    with enable_grad():
        x = (zeros(x, dtype=g.dtype, device=g.device) if of == "input" else x).detach()
        w = (zeros(w, dtype=g.dtype, device=g.device) if of == "weight" else w).detach()
        wanted = (x if of == "input" else w).requires_grad_()
        y = getattr(F, f"conv{n}d")(x, w, None, *settings)
        return engine.grad(y, wanted, g)[0]


def conv1d_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of ``conv1d`` with respect to its input, of shape ``input_size``.

    >>> fw.nn.grad.conv1d_input((1, 1, 4), fw.ones(1, 1, 2), fw.ones(1, 1, 3)).flatten()
    tensor([1., 2., 2., 1.])
    """
    return _gradient(1, "input", tuple(input_size), weight, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of ``conv1d`` with respect to its weight, of shape ``weight_size``.

    >>> fw.nn.grad.conv1d_weight(fw.arange(4.0).reshape(1, 1, 4), (1, 1, 2), fw.ones(1, 1, 3)).flatten()
    tensor([3., 6.])
    """
    return _gradient(1, "weight", input, tuple(weight_size), grad_output, (stride, padding, dilation, groups))


def conv2d_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of ``conv2d`` with respect to its input, of shape ``input_size``."""
    return _gradient(2, "input", tuple(input_size), weight, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of ``conv2d`` with respect to its weight, of shape ``weight_size``."""
    return _gradient(2, "weight", input, tuple(weight_size), grad_output, (stride, padding, dilation, groups))


def conv3d_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of ``conv3d`` with respect to its input, of shape ``input_size``."""
    return _gradient(3, "input", tuple(input_size), weight, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of ``conv3d`` with respect to its weight, of shape ``weight_size``."""
    return _gradient(3, "weight", input, tuple(weight_size), grad_output, (stride, padding, dilation, groups))


__dir__ = _own(globals())
