"""Optimizer steps by the native kernels: one call for all parameters that are at the same step.

The kernels do the operations of ``Optimizer.update`` in their order, so both give the same bits. What they
do not take (other dtypes and devices, odd layouts, memory that parameters share, options that are not
Python's numbers) is left to ``update``.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from ..backends import array_module
from ..tensor import Tensor, bump

if TYPE_CHECKING:
    from .optimizer import Optimizer


class Fused(NamedTuple):
    """One step as a native function: its name, the state it changes, the numbers it takes, in its order."""

    function: str
    states: tuple[str, ...]
    numbers: tuple[float, ...]


def gradients_fit(params: list[Tensor], grads: list[Tensor]) -> bool:
    """Whether all gradients surely fit their parameters; False where it takes a closer look."""
    check = getattr(_native.module, "gradients_fit", None)
    return check is not None and check([p._array for p in params], [g._array for g in grads])


def fused_step(optimizer: "Optimizer", params: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
    """Update those of ``params`` that the kernels take; the others are returned."""
    if _native.module is None or type(params[0]._array) is not np.ndarray:
        return params
    if optimizer.fused(group, 1) is None:
        return params
    by_step: dict[int, list[tuple[Tensor, dict]]] = {}
    for p in params:
        entry = optimizer.state.get(p) or {**optimizer.first_state(p, group), "step": 0}
        by_step.setdefault(entry["step"] + 1, []).append((p, entry))
    left: list[Tensor] = []
    for step, work in by_step.items():
        left += _run(optimizer, work, group, step)
    return left


def _run(optimizer: "Optimizer", work: list[tuple[Tensor, dict]], group: dict[str, Any],
         step: int) -> list[Tensor]:
    """Update parameters, each with its state, that are all at the same step."""
    function, names, numbers = optimizer.fused(group, step)  # type: ignore[misc]
    arrays: list[Any] = []
    try:
        for p, entry in work:
            arrays += p._array, p.grad._array  # type: ignore[union-attr]
            for name in names:
                arrays.append(entry[name]._array)
    except (KeyError, AttributeError):  # options that need more state were switched on after the first step
        return [p for p, _ in work]
    skipped = getattr(_native.module, function)(arrays, numbers)
    if skipped is NotImplemented:
        return [p for p, _ in work]
    left = [work[i][0] for i in skipped]
    if left:
        work = [pair for i, pair in enumerate(work) if i not in set(skipped)]
    label = f"{type(optimizer).__name__}.step"
    for p, entry in work:
        entry["step"] = step
        if step == 1:
            optimizer.state[p] = entry
        bump(p, label)
    return left


def denominator(v: Any, eps: float, inside: bool, correction: float = 1.0) -> Any:
    """``sqrt(v / correction) + eps``, or with ``inside`` ``sqrt(v / correction + eps)``; a new array."""
    xp = array_module(v)
    if inside:
        return xp.sqrt(v / correction + eps)
    d = xp.sqrt(v)
    if correction != 1.0:
        d /= correction ** 0.5
    d += eps
    return d


def fused_gradient(group: dict[str, Any], decay: bool = True) -> tuple[float, ...]:
    """What the native functions want to know of the gradient: whether its sign is turned, its decay."""
    return group["maximize"], group["weight_decay"] if decay else 0


def fused_denominator(group: dict[str, Any], correction: float = 1.0) -> tuple[float, ...]:
    """What the native functions want to know of ``denominator``."""
    return group["eps"], correction, correction ** 0.5, group["eps_inside"], correction != 1.0
