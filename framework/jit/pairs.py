"""Kernels that read the same arrays, of which one native function computes two in one pass: a plan knows in
the forward pass what the backward is going to ask for.
"""

from functools import cache
from typing import Any

from .. import _native
from ..backends.native import asked
from ..ops.image.pool import max_pool, max_position
from .kernels import Array, Step


@cache
def _pairs() -> dict[Any, tuple[Any, Any]]:
    """By the first one's native function: that of the second, and what gives both."""
    module: Any = _native.module
    first, second = asked(max_pool.cpu), asked(max_position.cpu)
    if first is None or second is None or not hasattr(module, "max_with_position"):
        return {}

    def one_by_one(x: Any, **windows: Any) -> tuple:
        return max_pool.cpu(x, **windows), max_position.cpu(x, **windows)
    return {first: (second, module.preferring(module.max_with_position, one_by_one))}


def _reads(step: Step) -> tuple | None:
    """What the step takes, to be compared; None where that cannot be."""
    if not all(type(x) is Array for x in step.operands):
        return None
    key = tuple([x.name for x in step.operands]), tuple(sorted(step.settings.items()))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def paired(steps: list[Step]) -> list[Step]:
    """The steps, where two such are one."""
    kinds = _pairs()
    firsts = [i for i, step in enumerate(steps) if asked(step.kernel) in kinds]
    gone: set[int] = set()
    steps = list(steps)
    for i in firsts:
        step = steps[i]
        second, both = kinds[asked(step.kernel)]
        reads = _reads(step)
        at = next((j for j in range(i + 1, len(steps)) if j not in gone and asked(steps[j].kernel) is second
                   and _reads(steps[j]) == reads), None) if reads is not None else None
        if at is not None:
            steps[i] = Step(both, step.operands, step.settings, [step.results, steps[at].results], None)
            gone.add(at)
    return [step for i, step in enumerate(steps) if i not in gone]
