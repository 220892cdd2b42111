"""Adadelta: steps in the units of the parameter, without a learning rate to tune."""

from typing import Any

from ..backends import array_module
from .arrays import zeros_like
from .fused import Fused, fused_gradient
from .groups import LIMITS, UNIT, ParamsT
from .optimizer import Optimizer


class Adadelta(Optimizer):
    r"""Scales the gradient by the ratio of running root mean squares of steps and gradients.

    With ``g`` the gradient plus ``weight_decay * p``::

        v = rho * v + (1 - rho) * g ** 2
        u = g * sqrt(a + eps) / sqrt(v + eps)
        a = rho * a + (1 - rho) * u ** 2
        p = p - lr * u

    Zeiler, ADADELTA: an adaptive learning rate method, 2012.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.Adadelta([w], eps=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.1056, 1.0299])
    """

    _flushes = True
    limits = {**LIMITS, "rho": UNIT}

    def __init__(self, params: ParamsT, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
                 maximize: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "capturable": capturable, "foreach": foreach,
            "differentiable": differentiable})

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The mean squares of gradients and of steps."""
        return {"square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        rho, eps, v, a = group["rho"], group["eps"], state["square_avg"], state["acc_delta"]
        if group["weight_decay"]:
            g = g + group["weight_decay"] * p
        v *= rho
        v += (1 - rho) * g * g
        u = a + eps
        u /= v + eps
        u = array_module(p).sqrt(u)
        u *= g
        a *= rho
        a += (1 - rho) * u * u
        p -= group["lr"] * u

    def fused(self, group: dict[str, Any], step: int) -> Fused | None:
        """``update`` as a native function."""
        rho = group["rho"]
        return Fused("adadelta_step", ("square_avg", "acc_delta"), {
            **fused_gradient(group), "lr": group["lr"], "rho": rho, "rest": 1 - rho, "eps": group["eps"]})
