"""Stochastic gradient descent."""

from typing import Any

from ..config.listing import own as _own
from .arrays import zeros_like
from .fused import Fused, fused_gradient, run_rows
from .groups import AT_LEAST_ZERO, LIMITS, ParamsT
from .optimizer import Optimizer


class SGD(Optimizer):
    r"""Gradient descent, with momentum, Nesterov's variant and weight decay.

    With ``g`` the gradient plus ``weight_decay * p`` (minus the gradient if ``maximize``)::

        b = momentum * b + (1 - dampening) * g      (b = g at the first step)
        p = p - lr * b                              (nesterov: p - lr * (g + momentum * b))

    Without momentum ``p = p - lr * g``. Momentum: Polyak, 1964. Nesterov's form: Sutskever et al., On
    the importance of initialization and momentum in deep learning, ICML 2013.

    Raises ValueError for negative options and for nesterov without momentum or with dampening.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.SGD([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0., 0.])
    """

    _unsaved = ("step",)  # PyTorch's optimizer does not count steps
    _flushes = True
    limits = {**LIMITS, "dampening": AT_LEAST_ZERO}

    def __init__(self, params: ParamsT, lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: float = 0, nesterov: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused})

    def check_group(self, group: dict[str, Any]) -> None:
        """Raise ValueError for options that do not fit together."""
        super().check_group(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError(f"SGD: nesterov=True needs momentum > 0 and dampening=0, got momentum="
                             f"{group['momentum']!r} and dampening={group['dampening']!r}")

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The momentum buffer, if there is momentum."""
        return {"momentum_buffer": zeros_like(p)} if group["momentum"] else {}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        momentum = group["momentum"]
        if group["weight_decay"]:
            g = g + group["weight_decay"] * p
        if momentum:
            first = state["step"] == 1 or "momentum_buffer" not in state
            if first:  # momentum may have been switched on after the first step
                state["momentum_buffer"] = zeros_like(p)
            b = state["momentum_buffer"]
            b *= momentum
            b += g if first or not group["dampening"] else (1 - group["dampening"]) * g
            g = g + momentum * b if group["nesterov"] else b
        p -= group["lr"] * g

    def update_where(self, p: Any, indices: tuple, values: Any, state: dict[str, Any],
                     group: dict[str, Any]) -> None:
        """One step of one parameter at ``p[indices]``, whose gradient is ``values``; no place twice.

        With momentum the other rows move, too, and the step is that of a dense gradient.
        """
        if group["momentum"]:
            g = zeros_like(p)
            g[indices] = values
            self.update(p, g, state, group)
        elif not run_rows("sgd_rows", [p, values], indices, self._numbers(group, 2, False)):
            p[indices] -= group["lr"] * values

    def fused(self, group: dict[str, Any], step: int) -> Fused | None:
        """``update`` as a native function."""
        return Fused("sgd_step", ("momentum_buffer",) if group["momentum"] else (),
                     self._numbers(group, step, group["maximize"]))

    def _numbers(self, group: dict[str, Any], step: int, maximize: bool) -> dict[str, float]:
        momentum, dampening = group["momentum"], group["dampening"]
        return {**fused_gradient(group), "maximize": maximize, "lr": group["lr"], "momentum": momentum,
                "share": 1 - dampening, "has_momentum": bool(momentum), "first": step == 1,
                "dampened": step > 1 and bool(dampening), "nesterov": group["nesterov"]}


__dir__ = _own(globals())
