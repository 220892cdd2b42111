"""RMSprop: a learning rate per element, by a running mean of its squared gradients."""

from typing import Any

from ..backends import array_module
from .arrays import zeros_like
from .fused import Fused, denominator, fused_denominator, fused_gradient
from .groups import AT_LEAST_ZERO, LIMITS, ParamsT
from .optimizer import Optimizer


def _names(group: dict[str, Any]) -> tuple[str, ...]:
    return ("square_avg",) + ("grad_avg",) * group["centered"] + (
        ("momentum_buffer",) if group["momentum"] else ())


class RMSprop(Optimizer):
    r"""Divides each element's step by the root of a running mean of its squared gradients.

    With ``g`` the gradient plus ``weight_decay * p``::

        v = alpha * v + (1 - alpha) * g ** 2
        m = alpha * m + (1 - alpha) * g             (centered only)
        u = g / (sqrt(v - m ** 2) + eps)            (sqrt(v) where not centered)
        b = momentum * b + u                        (b = u where there is no momentum)
        p = p - lr * b

    ``eps_inside=True`` divides by ``sqrt(v + eps)`` (TensorFlow's form) instead. Rounding that makes
    ``v - m ** 2`` negative counts as 0. Hinton, Neural networks for machine learning, lecture 6e,
    2012; centered: Graves, Generating sequences with recurrent neural networks, 2013.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.RMSprop([w], lr=0.05)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.5000, 1.5000])
    """

    _flushes = True
    limits = {**LIMITS, "alpha": AT_LEAST_ZERO}

    def __init__(self, params: ParamsT, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0, momentum: float = 0, centered: bool = False,
                 capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False, *, eps_inside: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
            "centered": centered, "maximize": maximize, "capturable": capturable, "foreach": foreach,
            "differentiable": differentiable, "eps_inside": eps_inside})

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The mean of squares; the mean where centered; the buffer where there is momentum."""
        return {name: zeros_like(p) for name in _names(group)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        alpha, v = group["alpha"], state["square_avg"]
        if group["weight_decay"]:
            g = g + group["weight_decay"] * p
        v *= alpha
        v += (1 - alpha) * g * g
        if group["centered"]:
            m = state["grad_avg"]
            m *= alpha
            m += (1 - alpha) * g
            v = array_module(p).maximum(v - m * m, 0)
        u = g / denominator(v, group["eps"], group["eps_inside"])
        if group["momentum"]:
            if "momentum_buffer" not in state:  # switched on after the first step
                state["momentum_buffer"] = zeros_like(p)
            b = state["momentum_buffer"]
            b *= group["momentum"]
            b += u
            u = b
        p -= group["lr"] * u

    def fused(self, group: dict[str, Any], step: int) -> Fused | None:
        """``update`` as a native function."""
        alpha, momentum = group["alpha"], group["momentum"]
        return Fused("rmsprop_step", _names(group), {
            **fused_gradient(group), **fused_denominator(group), "lr": group["lr"], "alpha": alpha,
            "rest": 1 - alpha, "momentum": momentum, "centered": group["centered"],
            "has_momentum": bool(momentum)})
