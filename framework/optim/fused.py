"""Optimizer steps by the native kernels: one call for all parameters that are at the same step.

The kernels do the operations of ``Optimizer.update`` in their order, so both give the same bits. What they
do not take (other dtypes and devices, odd layouts, memory that parameters share, options that are not
Python's numbers) is left to ``update``. This file knows parameters and arrays, not optimizers.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from ..backends import array_module, device_code
from ..tensor import Tensor
from . import cuda

LEAST = 1e-22  # the square of an ``eps`` beside which the root of a number below the normal format vanishes


class Fused(NamedTuple):
    """One step as a native function: its name, the state it changes, and by name the numbers it takes.

    kept: numbers of the state as they are after the step. rate: a learning rate on a GPU, for which
    ``numbers`` take 0; slopes: how much they grow with it.
    """

    function: str
    states: tuple[str, ...]
    numbers: dict[str, float]
    kept: dict[str, float] = {}
    rate: Any = None
    slopes: dict[str, float] = {}


def gradients_fit(params: list[Tensor], grads: list[Tensor]) -> bool:
    """Whether all gradients surely fit their parameters; False where a closer look is needed."""
    check = getattr(_native.module, "gradients_fit", None)
    return check is not None and check([p._array for p in params], [g._array for g in grads])


def kernels_for(p: Tensor) -> bool:
    """Whether there are native kernels where ``p`` is."""
    if type(p._array) is np.ndarray:
        return _native.module is not None
    return device_code.enabled and device_code.is_device_array(p._array)


@contextmanager
def flushing(group: dict[str, Any], state: dict[str, Any]) -> Iterator[None]:
    """In a step with running means, numbers below the normal format (1.2e-38 of float32) count as 0, as in
    the kernels: means of gradients that are 0 get there after some hundred steps and stay, and a processor
    takes twenty times as long for them. So do parameters and gradients. Not with an ``eps`` beside which the
    root of a mean would count, divided by ``1 - betas[1]`` at the most.
    """
    here = getattr(_native.module, "flush_denormals_here", None)
    has_means = any(hasattr(v, "dtype") for v in state.values())
    eps, (_, b2) = group.get("eps", 1), group.get("betas", (0, 0))
    if here is None or not has_means or not (eps >= 0 and eps * eps * (1 - b2) >= LEAST):
        yield
        return
    before = here(_native.module.FLUSH_BOTH)
    try:
        yield
    finally:
        here(before)


def run(fused: Fused, work: list[tuple[Tensor, dict[str, Any]]], skip: Any = None,
        again: Callable[[], Fused] | None = None) -> Collection[int]:
    """Update parameters, each with its state; gives the positions of those that are left to ``update``.

    skip: on a GPU, a number there that says whether the step is to be left out. again: gives the step that
    comes next, where this one is recorded for a graph.
    """
    function, names, numbers, *_ = fused
    arrays: list[Any] = []
    try:
        for p, kept in work:
            arrays += p._array, p.grad._array  # type: ignore[union-attr]
            for name in names:
                arrays.append(kept[name]._array)
    except (KeyError, AttributeError):  # options that need more state were switched on after the first step
        return range(len(work))
    if type(arrays[0]) is not np.ndarray:
        width = 2 + len(names)
        rows = [arrays[i:i + width] for i in range(0, len(arrays), width)]
        if not cuda.takes(function):
            return range(len(work))
        return cuda.step(fused, rows, skip, again)
    skipped = getattr(_native.module, function)(arrays, numbers)
    return range(len(work)) if skipped is NotImplemented else skipped


def run_rows(function: str, arrays: list[Any], indices: tuple, numbers: dict[str, float]) -> bool:
    """Change rows of a parameter, ``arrays`` being it, the gradient of the rows and its states; False where
    that is left to NumPy."""
    native = getattr(_native.module, function, None)
    return native is not None and len(indices) == 1 and native(arrays, indices[0], numbers)


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


def fused_gradient(group: dict[str, Any], decay: bool = True) -> dict[str, float]:
    """What the native functions want to know of the gradient: whether its sign is turned, its decay."""
    return {"maximize": group["maximize"], "weight_decay": group["weight_decay"] if decay else 0}


def fused_moments(group: dict[str, Any]) -> dict[str, float]:
    """What kernels want to know of the gradient, of a decay that is decoupled, and of running means."""
    (b1, b2), decay = group["betas"], group["weight_decay"]
    decoupled = bool(decay and group["decoupled_weight_decay"])
    return {**fused_gradient(group, not decoupled), "shrink": 1 - group["lr"] * decay if decoupled else 1,
            "b1": b1, "rest1": 1 - b1, "b2": b2, "rest2": 1 - b2, "eps": group["eps"]}


def fused_denominator(group: dict[str, Any], correction: float = 1.0) -> dict[str, float]:
    """What the native functions want to know of ``denominator``."""
    return {"eps": group["eps"], "eps_inside": group["eps_inside"], "correction": correction,
            "root_correction": correction ** 0.5, "corrected": correction != 1.0}
