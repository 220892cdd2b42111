"""Adafactor: a mean of squares in the memory of a row and a column."""

from typing import Any

import numpy as np

from ..backends import array_module
from ..dtypes import finfo
from ..tensor import wrap
from .arrays import zeros_like
from .fused import Fused
from .groups import AT_LEAST_ZERO, LIMITS, ParamsT, real_only
from .optimizer import Optimizer


class Adafactor(Optimizer):
    r"""Adam's scaling from the means over rows and columns of the squared gradient, without momentum.

    With ``e1, e2 = eps`` (``e1=None``: the precision of the dtype), ``t`` the number of the step and
    ``rms(x)`` the root of the mean square::

        p = p * (1 - lr * weight_decay)
        w = t ** beta2_decay
        r = r + w * (mean(g ** 2, -1) - r);  c = c + w * (mean(g ** 2, -2) - c)
        v = r * c / max(mean(r), e1)                (v = v + w * (g ** 2 - v) for fewer than two dims)
        u = g / sqrt(max(v, e1 ** 2))
        p = p - max(e2, rms(p)) * min(lr, 1 / sqrt(t)) * u / max(1, rms(u) / d)

    ``rms(p)`` is that from before the decay. Raises DTypeError for complex parameters. Shazeer and
    Stern, Adafactor: adaptive learning rates with sublinear memory cost, ICML 2018.

    >>> w = fw.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> optimizer = fw.optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach(), [tuple(optimizer.state[w][k].shape) for k in ("row_var", "col_var")]
    (tensor([[0.7879, 1.7000],
            [2.7154, 3.7317]]), [(2, 1), (1, 2)])
    """

    limits = {**{k: v for k, v in LIMITS.items() if k != "eps"}, "d": (lambda v: v >= 1, "at least 1"),
              "beta2_decay": (lambda v: v <= 0, "at most 0")}

    def __init__(self, params: ParamsT, lr: float = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
                 *, foreach: bool | None = None, maximize: bool = False) -> None:
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize})

    def check_group(self, group: dict[str, Any]) -> None:
        """Raise for options out of range and for complex parameters."""
        super().check_group(group)
        for i, value in enumerate(group["eps"]):
            if not (i == 0 and value is None) and not AT_LEAST_ZERO[0](value):
                raise ValueError(f"Adafactor: eps={group['eps']!r} must be two finite numbers >= 0, or None "
                                 f"and one")
        real_only("Adafactor", group)

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The means over rows and over columns, or the mean of squares itself."""
        if p.ndim < 2:
            return {"variance": zeros_like(p)}
        return {"row_var": zeros_like(p[..., :1]), "col_var": zeros_like(p[..., :1, :])}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        if not p.size:
            return
        xp, lr, t, (e1, e2) = array_module(p), group["lr"], state["step"], group["eps"]
        e1 = finfo(wrap(p).dtype).eps if e1 is None else e1
        wide = np.result_type(p.dtype, np.float32)  # sums over many elements want more than 16 bits
        length = max(e2, _rms(p.astype(wide))) * min(lr, t ** -0.5)
        if group["weight_decay"]:
            p *= 1 - lr * group["weight_decay"]
        w, g = float(t) ** group["beta2_decay"], g.astype(wide)
        square = g * g
        if p.ndim < 2:
            v = state["variance"]
            v[...] = v + w * (square - v)
        else:
            r, c = state["row_var"], state["col_var"]
            r[...] = r + w * (square.mean(-1, keepdims=True) - r)
            c[...] = c + w * (square.mean(-2, keepdims=True) - c)
            v = r.astype(wide) * c / xp.maximum(r.astype(wide).mean(-2, keepdims=True), e1)
        u = g / xp.sqrt(xp.maximum(v.astype(wide), e1 * e1))
        p[...] = p - length / max(1.0, _rms(u) / group["d"]) * u

    def launch_key(self, kept: dict[str, Any]) -> Any:
        """Whether the parameters are matrices."""
        return "row_var" in kept

    def fused_on_gpu(self, group: dict[str, Any], step: int, kept: dict[str, Any]) -> Fused | None:
        """``update`` as kernels."""
        lr, (e1, e2) = group["lr"], group["eps"]
        states = ("row_var", "col_var") if "row_var" in kept else ("variance",)
        return Fused("adafactor_step", states, {
            "maximize": group["maximize"], "weight": float(step) ** group["beta2_decay"],
            "e1": -1.0 if e1 is None else e1, "e2": e2, "rate": min(lr, step ** -0.5),
            "shrink": 1 - lr * group["weight_decay"], "d": group["d"]})


def _rms(x: Any) -> float:
    return float((x * x).sum()) ** 0.5 / x.size ** 0.5
