"""Adamax: Adam with the greatest gradient in the place of its mean square."""

from typing import Any

from ..backends import array_module
from .arrays import zeros_like
from .fused import Fused, fused_gradient
from .groups import LIMITS, ParamsT
from .optimizer import Optimizer


class Adamax(Optimizer):
    r"""Steps by the running mean of the gradient over its decaying greatest magnitude.

    With ``g`` the gradient plus ``weight_decay * p``, ``b1, b2 = betas`` and ``t`` the number of the
    step::

        m = b1 * m + (1 - b1) * g
        n = max(b2 * n, abs(g) + eps)
        p = p - lr / (1 - b1 ** t) * m / n

    Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.Adamax([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.5000, 1.5000])
    """

    _flushes = True
    limits = LIMITS

    def __init__(self, params: ParamsT, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, capturable: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable})

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The mean and the greatest magnitude."""
        return {"exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        (b1, b2), xp = group["betas"], array_module(p)
        m, n = state["exp_avg"], state["exp_inf"]
        if group["weight_decay"]:
            g = g + group["weight_decay"] * p
        m *= b1
        m += (1 - b1) * g
        n *= b2
        n[...] = xp.maximum(n, abs(g) + group["eps"])
        u = m / n
        u *= group["lr"] / (1 - b1 ** state["step"])
        p -= u

    def fused(self, group: dict[str, Any], step: int) -> Fused | None:
        """``update`` as a native function."""
        b1, b2 = group["betas"]
        return Fused("adamax_step", ("exp_avg", "exp_inf"), {
            **fused_gradient(group), "lr": group["lr"] / (1 - b1 ** step), "b1": b1, "rest1": 1 - b1,
            "b2": b2, "eps": group["eps"]})
