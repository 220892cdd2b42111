"""Adagrad: a learning rate per element, by the sum of its squared gradients."""

from typing import Any

from ..backends import array_module, on_device
from ..ops.convert.share import share
from .fused import Fused, denominator, fused_denominator, fused_gradient, run_rows
from .groups import AT_LEAST_ZERO, LIMITS, ParamsT
from .optimizer import Optimizer


class Adagrad(Optimizer):
    r"""Divides each element's step by the root of the sum of its squared gradients.

    With ``g`` the gradient plus ``weight_decay * p`` and ``t`` the number of the step::

        s = s + g ** 2                              (s starts at initial_accumulator_value)
        p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    ``eps_inside=True`` divides by ``sqrt(s + eps)`` instead. Duchi, Hazan and Singer, Adaptive
    subgradient methods for online learning and stochastic optimization, JMLR 2011.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.Adagrad([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.5000, 1.5000])
    """

    _flushes = True
    limits = {**LIMITS, "lr_decay": AT_LEAST_ZERO, "initial_accumulator_value": AT_LEAST_ZERO}

    def __init__(self, params: ParamsT, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
                 eps_inside: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "differentiable": differentiable, "fused": fused, "eps_inside": eps_inside})

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The sum of squares."""
        return {"sum": array_module(p).full_like(p, group["initial_accumulator_value"])}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take further parameters; their sums exist from now on, as in PyTorch, since libraries read them."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in group["params"]:
            self._start(p, group)

    def _start(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        kept = self.state[p]
        if not kept and not getattr(p, "cls_to_become", None):  # a lazy layer's has no shape yet
            with on_device(p._array):
                kept.update(self.first_state(p, group), step=0)
        return kept

    def share_memory(self) -> None:
        """Move the sums to memory that processes share; the number of steps stays each process's own."""
        for group in self.param_groups:
            for p in group["params"]:
                share([self._start(p, group)["sum"]])

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        if group["weight_decay"]:
            g = g + group["weight_decay"] * p
        s = state["sum"]
        s += g * g
        u = g / denominator(s, group["eps"], group["eps_inside"])
        u *= group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        p -= u

    def update_where(self, p: Any, indices: tuple, values: Any, state: dict[str, Any],
                     group: dict[str, Any]) -> None:
        """One step of one parameter at ``p[indices]``, whose gradient is ``values``; no place twice."""
        numbers = {**self._numbers(group, state["step"]), "maximize": False}
        if run_rows("adagrad_rows", [p, values, state["sum"]], indices, numbers):
            return
        s = state["sum"][indices] + values * values
        state["sum"][indices] = s
        p[indices] -= values / denominator(s, group["eps"], group["eps_inside"]) * numbers["lr"]

    def fused(self, group: dict[str, Any], step: int) -> Fused | None:
        """``update`` as a native function."""
        return Fused("adagrad_step", ("sum",), self._numbers(group, step))

    def _numbers(self, group: dict[str, Any], step: int) -> dict[str, float]:
        return {**fused_gradient(group), **fused_denominator(group),
                "lr": group["lr"] / (1 + (step - 1) * group["lr_decay"])}
