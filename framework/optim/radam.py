"""RAdam: Adam whose first steps are not scaled: the mean of squares rests on too few gradients then."""

from typing import Any

from ..backends import array_module
from .adam import moments, with_decay
from .arrays import zeros_like
from .fused import Fused, fused_moments
from .groups import LIMITS, ParamsT
from .optimizer import Optimizer


def _rectified(b2: float, t: int) -> float:
    """The factor of step ``t`` before the root of the mean of squares; 0 where that is left out."""
    known, longest = 1 - b2 ** t, 2 / (1 - b2) - 1
    length = longest - 2 * t * b2 ** t / known
    if length <= 5:
        return 0.0
    return ((length - 4) * (length - 2) * longest
            / ((longest - 4) * (longest - 2) * length)) ** 0.5 * known ** 0.5


class RAdam(Optimizer):
    r"""Adam with its step length rectified for the variance that the mean of squares has at first.

    With ``g`` the gradient plus ``weight_decay * p``, ``b1, b2 = betas`` and ``t`` the number of the
    step::

        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g ** 2
        n = 2 / (1 - b2) - 1
        k = n - 2 * t * b2 ** t / (1 - b2 ** t)
        r = sqrt((k - 4) * (k - 2) * n / ((n - 4) * (n - 2) * k))
        u = r * sqrt(1 - b2 ** t) / (sqrt(v) + eps)     (1 where k <= 5)
        p = p - lr * u * m / (1 - b1 ** t)

    ``decoupled_weight_decay=True`` decays the parameter as AdamW does. Liu et al., On the variance of
    the adaptive learning rate and beyond, ICLR 2020.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8000, 1.6000])
    """

    limits = LIMITS

    def __init__(self, params: ParamsT, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable})

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The mean and the mean of squares."""
        return {"exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        (b1, b2), lr, t = group["betas"], group["lr"], state["step"]
        m, v = moments(state, with_decay(p, g, group), b1, b2)
        u, rectified = m * (lr / (1 - b1 ** t)), _rectified(b2, t)
        if rectified:
            d = array_module(p).sqrt(v)
            d += group["eps"]
            u *= rectified
            u /= d
        p -= u

    def fused_on_gpu(self, group: dict[str, Any], step: int, kept: dict[str, Any]) -> Fused | None:
        """``update`` as a kernel."""
        b1, b2 = group["betas"]
        return Fused("radam_step", ("exp_avg", "exp_avg_sq"), {
            **fused_moments(group), "lr": group["lr"] / (1 - b1 ** step), "rectified": _rectified(b2, step)})
