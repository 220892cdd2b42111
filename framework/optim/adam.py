"""Adam and AdamW: steps by running means of the gradient and its square."""

from typing import Any

from ..backends import array_module
from ..config.listing import own as _own
from .arrays import zeros_like
from .fused import Fused, denominator, fused_denominator, fused_gradient
from .groups import LIMITS, ParamsT
from .optimizer import Optimizer


def _names(group: dict[str, Any]) -> tuple[str, ...]:
    return ("exp_avg", "exp_avg_sq") + ("max_exp_avg_sq",) * group["amsgrad"]


def with_decay(p: Any, g: Any, group: dict[str, Any]) -> Any:
    """The gradient with the decay of the weights in it; a decoupled decay is done to ``p`` itself."""
    decay = group["weight_decay"]
    if not decay:
        return g
    if not group["decoupled_weight_decay"]:
        return g + decay * p
    p *= 1 - group["lr"] * decay
    return g


def moments(state: dict[str, Any], g: Any, b1: float, b2: float) -> tuple[Any, Any]:
    """The running means of the gradient and of its square, moved on by ``g``."""
    m, v = state["exp_avg"], state["exp_avg_sq"]
    m *= b1
    m += (1 - b1) * g
    v *= b2
    v += (1 - b2) * g * g
    return m, v


class Adam(Optimizer):
    r"""Steps by the running mean of the gradient over the root of that of its square.

    With ``g`` the gradient plus ``weight_decay * p``, ``b1, b2 = betas`` and ``t`` the number of the
    step::

        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g ** 2              (amsgrad: its greatest value so far is used)
        p = p - lr * (m / (1 - b1 ** t)) / (sqrt(v / (1 - b2 ** t)) + eps)

    ``eps_inside=True`` puts eps under the root. ``decoupled_weight_decay=True`` is AdamW. Kingma and
    Ba, Adam: a method for stochastic optimization, ICLR 2015; amsgrad: Reddi, Kale and Kumar, On the
    convergence of Adam and beyond, ICLR 2018.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.Adam([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.5000, 1.5000])
    """

    _flushes = True
    limits = LIMITS

    _foreach_takes_tensors = False  # as in PyTorch

    def __init__(self, params: ParamsT, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None,
                 decoupled_weight_decay: bool = False, eps_inside: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay, "eps_inside": eps_inside})

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The mean, the mean of squares, and where amsgrad its greatest value."""
        return {name: zeros_like(p) for name in _names(group)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        (b1, b2), lr, t = group["betas"], group["lr"], state["step"]
        g = with_decay(p, g, group)
        m, v = moments(state, g, b1, b2)
        if group["amsgrad"]:
            top = state["max_exp_avg_sq"]
            top[...] = array_module(p).maximum(top, v)
            v = top
        u = m / denominator(v, group["eps"], group["eps_inside"], 1 - b2 ** t)
        u *= lr / (1 - b1 ** t)
        p -= u

    def fused(self, group: dict[str, Any], step: int) -> Fused | None:
        """``update`` as a native function."""
        (b1, b2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        decoupled = bool(decay and group["decoupled_weight_decay"])
        return Fused("adam_step", _names(group), {
            **fused_gradient(group, not decoupled), **fused_denominator(group, 1 - b2 ** step),
            "lr": lr / (1 - b1 ** step), "shrink": 1 - lr * decay, "b1": b1, "rest1": 1 - b1, "b2": b2,
            "rest2": 1 - b2, "decoupled": decoupled, "amsgrad": group["amsgrad"]})


class AdamW(Adam):
    r"""Adam with decoupled weight decay: ``p = p * (1 - lr * weight_decay)``, then Adam's step without it.

    Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.AdamW([w], lr=0.5, weight_decay=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.4500, 1.4000])
    """

    def __init__(self, params: ParamsT, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
                 differentiable: bool = False, fused: bool | None = None, eps_inside: bool = False) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True, eps_inside=eps_inside)


__dir__ = _own(globals())
