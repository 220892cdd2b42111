"""How numbers of several ranks become one: always in the order of ranks, so all get the same bits."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError

BLOCK = 32768  # elements: a block of float32 stays in the cache of its core


class ReduceOp:
    """What a reduction does: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR.

    Sums and products of float16 and bfloat16 are made in float32 and rounded once. For bool, SUM and MAX are
    "or", PRODUCT and MIN are "and".
    """

    SUM: "ReduceOp"
    AVG: "ReduceOp"
    PRODUCT: "ReduceOp"
    MIN: "ReduceOp"
    MAX: "ReduceOp"
    BAND: "ReduceOp"
    BOR: "ReduceOp"
    BXOR: "ReduceOp"

    def __init__(self, name: str, code: int, function: Callable) -> None:
        self.name, self.code, self.function = name, code, function

    def __repr__(self) -> str:
        return f"ReduceOp.{self.name}"

    def __reduce__(self) -> tuple:
        return getattr, (ReduceOp, self.name)


OPS: list[ReduceOp] = []
for _name, _function in (("SUM", np.add), ("AVG", np.add), ("PRODUCT", np.multiply), ("MIN", np.minimum),
                         ("MAX", np.maximum), ("BAND", np.bitwise_and), ("BOR", np.bitwise_or),
                         ("BXOR", np.bitwise_xor)):
    OPS.append(ReduceOp(_name, len(OPS), _function))
    setattr(ReduceOp, _name, OPS[-1])


def check(op: Any, dtype: np.dtype, what: str) -> ReduceOp:
    """``op`` if it is one that numbers of ``dtype`` have."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{what}: op must be a ReduceOp such as ReduceOp.SUM, got {op!r}")
    kind = dtype.kind
    if op is ReduceOp.AVG and kind in "biu":
        raise DTypeError(f"{what}: the mean of {dtype} is no {dtype}; use ReduceOp.SUM, or convert to a "
                         f"float")
    if op.name in ("BAND", "BOR", "BXOR") and kind not in "biu":
        raise DTypeError(f"{what}: {op} is for integers and bool, the tensor is {dtype}")
    if op.name in ("MIN", "MAX") and kind == "c":
        raise DTypeError(f"{what}: complex numbers have no order, so {op} is not possible")
    return op


def combine(op: ReduceOp, parts: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
    """The reduction of ``parts`` (in their order) into each of ``outs``.

    All are flat and equally long; ``outs[0]`` is ``parts[0]`` or lies apart from all parts, the others may be
    parts. Block by block, so that a block is read once and written from the cache.
    """
    dtype, n, size = parts[0].dtype, len(parts), parts[0].size
    wide = dtype.itemsize == 2 and dtype.kind in "fV"
    function, mean = op.function, op is ReduceOp.AVG
    first, others = parts[0], parts[1:]
    with np.errstate(all="ignore"):
        for start in range(0, size, BLOCK):
            s = slice(start, start + BLOCK)
            if wide:
                total = first[s].astype(np.float32)
                rest = others
            elif n > 1:
                total = function(first[s], others[0][s], out=outs[0][s])
                rest = others[1:]
            else:
                total = outs[0][s]
                if outs[0] is not first:
                    total[...] = first[s]
                rest = ()
            for p in rest:
                function(total, p[s], out=total)
            if mean and n > 1:
                np.true_divide(total, n, out=total)
            for out in outs if wide else outs[1:]:
                out[s] = total
