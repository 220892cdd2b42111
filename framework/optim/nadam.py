"""NAdam: Adam with Nesterov's momentum."""

from typing import Any

from ..backends import array_module
from .adam import moments, with_decay
from .arrays import zeros_like
from .fused import Fused, fused_moments
from .groups import AT_LEAST_ZERO, LIMITS, ParamsT
from .optimizer import Optimizer


def _momenta(group: dict[str, Any], t: int) -> tuple[float, float]:
    """The momenta of step ``t`` and of the one after it."""
    now, after = (group["betas"][0] * (1 - 0.5 * 0.96 ** (i * group["momentum_decay"])) for i in (t, t + 1))
    return now, after


class NAdam(Optimizer):
    r"""Adam that looks one step ahead with its momentum, which grows from step to step.

    With ``g`` the gradient plus ``weight_decay * p``, ``b1, b2 = betas`` and ``t`` the number of the
    step::

        u(t) = b1 * (1 - 0.96 ** (t * momentum_decay) / 2)
        c = u(1) * u(2) * ... * u(t)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g ** 2
        n = (1 - u(t)) / (1 - c) * g + u(t + 1) / (1 - c * u(t + 1)) * m
        p = p - lr * n / (sqrt(v / (1 - b2 ** t)) + eps)

    ``decoupled_weight_decay=True`` decays the parameter as AdamW does. Dozat, Incorporating Nesterov
    momentum into Adam, ICLR 2016.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.NAdam([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.4718, 1.4718])
    """

    limits = {**LIMITS, "momentum_decay": AT_LEAST_ZERO}

    def __init__(self, params: ParamsT, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable})

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The product of the momenta so far, the mean and the mean of squares."""
        return {"mu_product": 1.0, "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        (b1, b2), lr, t = group["betas"], group["lr"], state["step"]
        g = with_decay(p, g, group)
        now, after = _momenta(group, t)
        state["mu_product"] *= now
        product = state["mu_product"]
        m, v = moments(state, g, b1, b2)
        d = array_module(p).sqrt(v / (1 - b2 ** t))
        d += group["eps"]
        p -= lr * (1 - now) / (1 - product) * g / d
        p -= lr * after / (1 - product * after) * m / d

    def launch_key(self, kept: dict[str, Any]) -> Any:
        """The product of the momenta so far."""
        return kept["mu_product"]

    def fused_on_gpu(self, group: dict[str, Any], step: int, kept: dict[str, Any]) -> Fused | None:
        """``update`` as a kernel."""
        lr, (now, after) = group["lr"], _momenta(group, step)
        product = kept["mu_product"] * now
        return Fused("nadam_step", ("exp_avg", "exp_avg_sq"), {
            **fused_moments(group), "correction": 1 - group["betas"][1] ** step,
            "by_gradient": lr * (1 - now) / (1 - product),
            "by_mean": lr * after / (1 - product * after)}, {"mu_product": product})
