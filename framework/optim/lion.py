"""Lion: the sign of a momentum, found by a search over programs."""

from typing import Any

from ..backends import array_module
from .arrays import zeros_like
from .fused import Fused
from .groups import LIMITS, ParamsT
from .optimizer import Optimizer


class Lion(Optimizer):
    r"""Steps of one size in every element, by the sign of the momentum with the gradient.

    With ``b1, b2 = betas``::

        p = p * (1 - lr * weight_decay)
        p = p - lr * sign(b1 * m + (1 - b1) * g)
        m = b2 * m + (1 - b2) * g

    Not in PyTorch's package. Its rates are 3 to 10 times smaller, and its weight decay larger, than
    AdamW's. Chen et al., Symbolic discovery of optimization algorithms, NeurIPS 2023.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.Lion([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.7500, 1.7500])
    """

    limits = LIMITS

    def __init__(self, params: ParamsT, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
                 weight_decay: float = 0.0, *, maximize: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay,
                                  "maximize": maximize})

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The momentum."""
        return {"exp_avg": zeros_like(p)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        (b1, b2), lr, m = group["betas"], group["lr"], state["exp_avg"]
        if group["weight_decay"]:
            p *= 1 - lr * group["weight_decay"]
        p -= lr * array_module(p).sign(b1 * m + (1 - b1) * g)
        m *= b2
        m += (1 - b2) * g

    def fused_on_gpu(self, group: dict[str, Any], step: int, kept: dict[str, Any]) -> Fused | None:
        """``update`` as a kernel."""
        (b1, b2), lr = group["betas"], group["lr"]
        return Fused("lion_step", ("exp_avg",), {
            "maximize": group["maximize"], "shrink": 1 - lr * group["weight_decay"], "lr": lr, "b1": b1,
            "rest1": 1 - b1, "b2": b2, "rest2": 1 - b2})
