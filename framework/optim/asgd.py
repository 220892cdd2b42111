"""ASGD: gradient descent with a falling step length, and the average of the way."""

from typing import Any

from .arrays import zeros_like
from .fused import Fused, fused_gradient
from .groups import AT_LEAST_ZERO, LIMITS, ParamsT
from .optimizer import Optimizer


class ASGD(Optimizer):
    r"""Averaged stochastic gradient descent.

    With ``g`` the gradient plus ``weight_decay * p`` and ``t`` the number of the step::

        s = lr / (1 + lambd * lr * (t - 1)) ** alpha        (lr at the first step)
        p = p * (1 - lambd * s) - s * g
        a = a + (p - a) / max(1, t - 1 - t0)

    ``a`` is kept in ``state[p]["ax"]``: the average of the parameters from step ``t0`` on. Polyak and
    Juditsky, Acceleration of stochastic approximation by averaging, 1992.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.ASGD([w], lr=0.25, t0=0)
    >>> for step in range(3):
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> w.detach(), optimizer.state[w]["ax"]
    (tensor([0.1250, 0.2500]), tensor([0.1875, 0.3750]))
    """

    limits = {**LIMITS, "lambd": AT_LEAST_ZERO}

    def __init__(self, params: ParamsT, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False, capturable: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable})

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The step length, the weight of the next average, the average."""
        return {"eta": float(group["lr"]), "mu": 1.0, "ax": zeros_like(p)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        lambd, t, a = group["lambd"], state["step"], state["ax"]
        if group["weight_decay"]:
            g = g + group["weight_decay"] * p
        p *= 1 - lambd * state["eta"]
        p -= state["eta"] * g
        if state["mu"] == 1:
            a[...] = p
        else:
            a += (p - a) * state["mu"]
        state.update(_following(group, t))

    def launch_key(self, kept: dict[str, Any]) -> Any:
        """The step length and the weight of the next average."""
        return kept["eta"], kept["mu"]

    def fused_on_gpu(self, group: dict[str, Any], step: int, kept: dict[str, Any]) -> Fused | None:
        """``update`` as a kernel."""
        return Fused("asgd_step", ("ax",), {
            **fused_gradient(group), "shrink": 1 - group["lambd"] * kept["eta"], "lr": kept["eta"],
            "share": kept["mu"]}, _following(group, step))


def _following(group: dict[str, Any], t: int) -> dict[str, float]:
    """The numbers of the state after step ``t``."""
    lr = group["lr"]
    return {"eta": lr / (1 + group["lambd"] * lr * t) ** group["alpha"], "mu": 1 / max(1, t - group["t0"])}
