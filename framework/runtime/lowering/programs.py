"""Elementwise records: their expression becomes a program (``ops/language/program.py``), the very one that
Python's kernels run."""

from typing import Any

import numpy as np

from ...onnx.trace import Ref, Step
from ...ops.language.program import NoProgram, compile_program
from .model import Model, Unsupported

_COMPUTED = {"float32", "float64", "int64", "int32"}


def elementwise(to: Model, step: Step) -> None:
    op = step.op
    try:
        program = compile_program(op.expr, (*op.inputs, *op.settings), op.settings)
    except NoProgram as error:
        raise Unsupported(f"its expression has no program ({error})") from None
    kinds = {to.dtype(x) for x, truth in zip(step.inputs, program.truth) if isinstance(x, Ref) and not truth}
    if len(kinds) != 1 or not kinds <= _COMPUTED:
        raise Unsupported(f"programs do not compute with {' and '.join(sorted(kinds)) or 'truth values'}")
    inputs, reals = [], []
    for x in (*step.inputs, *[step.settings[n] for n in op.settings]):
        if not isinstance(x, Ref) and isinstance(x, (bool, int, float, np.floating, np.integer)):
            inputs.append(-1)
            reals.append(float(x))
        else:
            inputs.append(to.value(x))
    numbers = [sum(1 << i for i, truth in enumerate(program.truth) if truth), program.registers, program.once,
               int(program.truth_result)]
    for s in program.steps:
        numbers += [s.result, *(s.operands * 3)[:3]]
    to.give("program", inputs, numbers, [float(len(program.constants)), *program.constants, *reals],
            [s.name for s in program.steps])


def truth(to: Model, word: str, *operands: Any) -> None:
    """Of truth values, which programs do not compute with, a step of their own; of numbers the program."""
    if not all(isinstance(x, Ref) and to.dtype(x) == "bool" for x in operands):
        return elementwise(to, to.step)
    wide = [to.add("expand", [to.value(x)], to.result().shape, dtype="bool") for x in operands]
    to.give("logic", wide, words=[word])
