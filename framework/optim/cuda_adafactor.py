"""Adafactor's steps on GPUs: six launches for all matrices of a dtype, three for all vectors."""

import math
from pathlib import Path
from typing import Any

from ..backends import device_code, device_launcher, tensor_lists

NUMBERS = "maximize weight e2 rate shrink d e1"
_E1 = NUMBERS.split().index("e1")
_PRECISION = {"e": 2.0**-10, "E": 2.0**-7, "f": 2.0**-23, "d": 2.0**-52}
_SOURCE = device_code.source(Path(__file__).with_name("adafactor.cu"), tensor_lists.HEADER)
_WARPS, _COLUMNS = device_code.THREADS // 32, 32  # of a block


def fits(tensors: list[Any]) -> str:
    """The letter of the dtype of parameter, gradient and states that kernels can take; "" of others."""
    char = device_code.char_of(*tensors)
    plain = all(a.flags.c_contiguous for a in tensors)
    return char if plain and char in device_code.FLOATS else ""


def _table(group: list[list[Any]]) -> tuple[Any, int, int, int, int]:
    """The table of ``adafactor.cu``, and how many blocks, rows, columns and matrices there are."""
    further, rows, columns, matrices = [], 0, 0, 0
    for p, *states in group:
        if len(states) == 2:  # the gradient and the mean of squares of a vector
            further.append([0, 1, 1, 0, 0, 0])  # no address, then as one below
            continue
        further.append([*p.shape[-2:], rows, columns, matrices])
        rows += p.size // p.shape[-1]
        columns += p.size // p.shape[-2]
        matrices += p.size // math.prod(p.shape[-2:])
    made, blocks = tensor_lists.table(group, "adafactor", further)
    return made, blocks, rows, columns, matrices


def step(char: str, group: list[list[Any]], numbers: Any, skip: Any) -> None:
    """Update rows of (parameter, gradient, states) of one dtype, which are all matrices or all vectors."""
    made, blocks, rows, columns, matrices = _table(group)
    e1, empty, wide = float(numbers["at"][0, _E1]), device_launcher.empty, "f8" if char == "d" else "f4"
    least, given = _PRECISION[char] if e1 < 0 else e1, (made, len(group), 11)

    def launch(name: str, count: int, *arguments: Any) -> None:
        _SOURCE.kernel(name, char)((count,), (device_code.THREADS,), (*given, *arguments))

    means = None
    if matrices:
        means = empty(matrices, wide)
        launch("adafactor_rows", -(-rows // _WARPS), numbers, skip, rows)
        launch("adafactor_columns", -(-columns // _COLUMNS), numbers, skip, columns)
        launch("adafactor_means", -(-matrices // _WARPS), means, skip, matrices)
    parts, lengths = empty(2 * blocks, wide), empty(len(group), wide)
    launch("adafactor_squares", blocks, numbers, skip, least, means, parts)
    launch("adafactor_lengths", len(group), numbers, skip, parts, blocks, lengths)
    launch("adafactor_step", blocks, numbers, skip, least, means, lengths)
