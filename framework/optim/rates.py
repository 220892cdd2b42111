"""Learning rates that lie on a GPU: nobody reads them, kernels find numbers that are made of them there."""

from collections.abc import Callable
from math import isclose
from typing import Any

from ..backends import device_code
from ..tensor import Tensor
from .fused import Fused


def is_on_gpu(rate: Any) -> bool:
    """Whether a learning rate is a tensor on a GPU."""
    return isinstance(rate, Tensor) and device_code.is_device_array(rate._array) \
        and device_code.char_of(rate._array) in device_code.FLOATS


def by_rate(make: Callable[[float], Fused | None], rate: Tensor) -> Fused | None:
    """The step that ``make`` gives for a learning rate, for one on a GPU: its numbers for 0, and how they
    grow with the rate. None where there is no kernel, or a number is no linear function of the rate.
    """
    plans = [make(lr) for lr in (0.0, 1.0, 2.0)]
    if any(plan is None for plan in plans):
        return None
    none, one, two = (plan.numbers for plan in plans)  # type: ignore[union-attr]
    slopes = {name: float(one[name]) - float(none[name]) for name in none}
    linear = all(isclose(two[n], none[n] + 2 * slopes[n], rel_tol=1e-12, abs_tol=1e-300) for n in none)
    if not linear or any(plan.kept != plans[0].kept for plan in plans):  # type: ignore[union-attr]
        return None
    return plans[0]._replace(slopes=slopes, rate=rate._array)  # type: ignore[union-attr]
