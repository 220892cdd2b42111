"""Muon: momentum whose matrix is made orthogonal."""

from math import sqrt
from typing import Any

import numpy as np

from ..backends import array_module
from .arrays import zeros_like
from .fused import Fused
from .groups import LIMITS, ParamsT, real_only
from .optimizer import Optimizer


class Muon(Optimizer):
    r"""Steps along the matrix nearest to the momentum whose rows (or columns) are orthonormal.

    For matrices [A, B] only, as the hidden layers of a network have them; use AdamW for the rest::

        m = m + (1 - momentum) * (g - m)
        u = g + momentum * (m - g)                  (m where not nesterov)
        p = p * (1 - lr * weight_decay) - lr * ratio * orthogonal(u)

    ``orthogonal`` is ``ns_steps`` times ``x = a x + (b x x' + c (x x')^2) x``, with ``a, b, c =
    ns_coefficients``, from ``x = u / max(norm(u), eps)``, in bfloat16 as the method is defined: all
    singular values come near 1. adjust_lr_fn: ``ratio`` is sqrt(max(1, A / B)) for "original" or None,
    0.2 sqrt(max(A, B)) for "match_rms_adamw", so that rates of AdamW fit.

    Raises ValueError for parameters that are no matrices, DTypeError for complex ones. Jordan et al.,
    Muon: an optimizer for hidden layers in neural networks, 2024; Liu et al., Muon is scalable for LLM
    training, 2025.

    >>> w = fw.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> optimizer = fw.optim.Muon([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([[1.0584, 1.8984],
            [2.8966, 3.9353]])
    """

    _unsaved = ("step",)  # PyTorch's optimizer does not count steps
    limits = {**LIMITS, "ns_steps": (lambda v: 0 <= v < 100, "in [0, 100)")}

    def __init__(self, params: ParamsT, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
                 nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315), eps: float = 1e-7,
                 ns_steps: int = 5, adjust_lr_fn: str | None = None) -> None:
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn})

    def check_group(self, group: dict[str, Any]) -> None:
        """Raise ValueError for options out of range and for parameters that are no real matrices."""
        super().check_group(group)
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Muon: adjust_lr_fn={group['adjust_lr_fn']!r} must be 'original', "
                             f"'match_rms_adamw' or None")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError(f"Muon: ns_coefficients={group['ns_coefficients']!r} must be three numbers")
        for p in group.get("params", ()):
            if p.ndim != 2:
                raise ValueError(f"Muon: takes matrices only, got a parameter of shape {list(p.shape)}; give "
                                 f"the others to another optimizer, e.g. AdamW")
        real_only("Muon", group)

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The momentum."""
        return {"momentum_buffer": zeros_like(p)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter."""
        lr, momentum, m = group["lr"], group["momentum"], state["momentum_buffer"]
        m += (1 - momentum) * (g - m)
        u = orthogonal(g + momentum * (m - g) if group["nesterov"] else m, group["ns_coefficients"],
                       int(group["ns_steps"]), group["eps"])
        p *= 1 - lr * group["weight_decay"]
        p -= lr * _ratio(p.shape, group["adjust_lr_fn"]) * u

    def fused_on_gpu(self, group: dict[str, Any], step: int, kept: dict[str, Any]) -> Fused | None:
        """``update`` as kernels and products."""
        (a, b, c), lr, momentum = group["ns_coefficients"], group["lr"], group["momentum"]
        return Fused("muon_step", ("momentum_buffer",), {
            "momentum": momentum, "rest": 1 - momentum, "nesterov": group["nesterov"], "lr": lr,
            "shrink": 1 - lr * group["weight_decay"], "adamw": group["adjust_lr_fn"] == "match_rms_adamw",
            "eps": group["eps"], "a": a, "b": b, "c": c, "steps": int(group["ns_steps"])})


def _ratio(shape: tuple[int, int], how: str | None) -> float:
    rows, columns = shape
    if how == "match_rms_adamw":
        return 0.2 * sqrt(max(rows, columns))
    return sqrt(max(1, rows / columns)) if columns else 1.0


def orthogonal(u: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """The quintic Newton-Schulz iteration on a matrix [m, n]; the result has the dtype of ``u``.

    >>> from framework.optim.muon import orthogonal
    >>> x = orthogonal(np.diag([4.0, 1.0, 0.5]), (3.4445, -4.7750, 2.0315), 5, 1e-7)
    >>> bool(((0.6 < np.diag(x)) & (np.diag(x) < 1.3)).all())
    True
    """
    a, b, c = coefficients
    x = _bfloat16(u)
    tall = u.shape[0] > u.shape[1]
    x = x.T if tall else x
    norm = _bfloat16(array_module(x).sqrt((x * x).sum(keepdims=True)))
    x = _bfloat16(x / array_module(x).maximum(norm, eps))
    for _ in range(steps):
        gram = _bfloat16(x @ x.T)
        x = _bfloat16(a * x + _bfloat16(b * gram + c * (gram @ gram)) @ x)
    return (x.T if tall else x).astype(u.dtype)


def _bfloat16(x: Any) -> Any:
    """Numbers as float32, rounded to the nearest ones that bfloat16 has, ties to even."""
    xp = array_module(x)
    x = xp.ascontiguousarray(x, dtype=np.float32)
    bits = x.view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + 0x7fff).astype(np.uint32)) & np.uint32(0xffff0000)
    return xp.where(xp.isfinite(x), rounded.view(np.float32), x)
