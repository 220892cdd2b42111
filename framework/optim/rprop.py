"""Rprop: a step length per element that looks only at the sign of the gradient."""

from typing import Any

from ..backends import array_module
from .arrays import zeros_like
from .fused import Fused
from .groups import LIMITS, ParamsT
from .optimizer import Optimizer


class Rprop(Optimizer):
    r"""Resilient propagation: longer steps while the sign of the gradient stays, shorter after a change.

    With ``down, up = etas`` and ``s`` a step length per element, ``lr`` at first::

        f = up where g * before > 0, down where g * before < 0, else 1
        s = min(max(s * f, step_sizes[0]), step_sizes[1])
        g = 0 where f = down, else g
        p = p - sign(g) * s
        before = g

    For gradients of all the data. Riedmiller and Braun, A direct adaptive method for faster
    backpropagation learning: the RPROP algorithm, 1993.

    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = fw.optim.Rprop([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.5000, 1.5000])
    """

    limits = LIMITS

    def __init__(self, params: ParamsT, lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable})

    def check_group(self, group: dict[str, Any]) -> None:
        """Raise ValueError for factors that do not shorten and lengthen."""
        super().check_group(group)
        down, up = group["etas"]
        if not 0 < down < 1 < up:
            raise ValueError(f"Rprop: etas={group['etas']!r} must be a factor in (0, 1) and one above 1")

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The last gradient and the step lengths."""
        return {"prev": zeros_like(p), "step_size": array_module(p).full_like(p, group["lr"])}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        xp, s, before, (down, up) = array_module(p), state["step_size"], state["prev"], group["etas"]
        same = xp.sign(g * before)
        s *= xp.where(same > 0, up, xp.where(same < 0, down, 1)).astype(s.dtype)
        xp.clip(s, *group["step_sizes"], out=s)
        before[...] = xp.where(same < 0, 0, g)
        p -= xp.sign(before) * s

    def fused_on_gpu(self, group: dict[str, Any], step: int, kept: dict[str, Any]) -> Fused | None:
        """``update`` as a kernel."""
        (shorter, longer), (least, most) = group["etas"], group["step_sizes"]
        return Fused("rprop_step", ("prev", "step_size"), {
            "maximize": group["maximize"], "shorter": shorter, "longer": longer, "least": least,
            "most": most})
