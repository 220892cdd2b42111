"""Steps of recurrent cells in a plan: their weights, which all of them read, are packed for products once."""

from functools import cache
from typing import Any

import numpy as np

from .. import _native
from ..backends.native import asked
from ..ops.sequence.rnn import gru_op, lstm_op, rnn_op
from .kernels import Array, Step

FEW = 3  # steps with the same weights: packing them alone is a call, too


@cache
def _cells() -> dict[Any, tuple[Any, int]]:
    """By the native function of a cell: the kernel that takes packed weights, and where the weights stand."""
    module: Any = _native.module
    if not hasattr(module, "recurrent_panels"):
        return {}

    def with_panels(kernel: Any) -> Any:
        def without(*operands: Any, packed: Any, **settings: Any) -> Any:
            return kernel(*operands, **settings)
        return module.preferring(asked(kernel), without)
    places = (rnn_op, 2), (lstm_op, 3), (gru_op, 2)
    return {asked(op.cpu): (with_panels(op.cpu), at) for op, at in places if asked(op.cpu) is not None}


def _none(*_: Any) -> np.ndarray:
    """In place of panels where the kernel does not apply: cells that get these take their plain formula."""
    return np.empty(0)


def _weights(step: Step) -> tuple | None:
    """What the panels depend on, where the step is a single one; None of other steps."""
    found = _cells().get(asked(step.kernel))
    if found is None or len(step.settings["sizes"]) != 1 or "packed" in step.settings:
        return None
    w_ih, w_hh = step.operands[found[1]:found[1] + 2]
    if type(w_ih) is not Array or type(w_hh) is not Array:
        return None
    return w_ih.name, w_hh.name, step.settings["sizes"]


def panels_shared(steps: list[Step]) -> list[Step]:
    """The steps, where cells with the same weights and as many rows are handed these weights' panels."""
    groups: dict[tuple, list[int]] = {}
    for at, step in enumerate(steps):
        weights = _weights(step)
        if weights is not None:
            groups.setdefault(weights, []).append(at)
    packing: dict[int, Step] = {}
    steps = list(steps)
    for number, places in enumerate(groups.values()):
        if len(places) < FEW:
            continue
        name = f"p{number}"
        for at in places:
            step = steps[at]
            kernel, _ = _cells()[asked(step.kernel)]
            settings = {**step.settings, "packed": Array(name)}
            steps[at] = Step(kernel, step.operands, settings, step.results, step.shapes)
        first = steps[places[0]]
        _, begin = _cells()[asked(first.kernel)]
        operands = (*first.operands[:2], *first.operands[begin:begin + 2])
        packing[places[0]] = Step(_packed(), operands, {}, name, None)
    return [s for at, step in enumerate(steps) for s in ((packing[at], step) if at in packing else (step,))]


@cache
def _packed() -> Any:
    return _native.module.preferring(_native.module.recurrent_panels, _none)
