"""Causal masks for attention of as many queries as keys or not, with the corner that they start from."""

from enum import IntEnum
from typing import Any

from ...creation import ones
from ...ops.record.torch_function import disabled
from ...tensor import Tensor, wrap


class CausalVariant(IntEnum):
    """Which corner of the table of scores the diagonal begins in."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask (L, S), True where a query may attend: an ``attn_mask``."""

    __torch_function__ = disabled
    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> "CausalBias":
        if not isinstance(variant, CausalVariant):
            raise TypeError(f"CausalBias: variant must be a CausalVariant, got {type(variant).__name__}")
        shift = 0 if variant is CausalVariant.UPPER_LEFT else seq_len_kv - seq_len_q
        mask: Any = ones(seq_len_q, seq_len_kv).tril(shift).bool()  # type: ignore[attr-defined]
        made: Any = wrap(mask._array, cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        pass


def _sizes(size: Any, op: str) -> tuple[int, int]:
    size = size[0] if len(size) == 1 else size
    if len(size) != 2:
        raise RuntimeError(f"{op}: wanted the number of queries and that of keys, got {tuple(size)}")
    return size[0], size[1]


def causal_upper_left(*size: Any) -> CausalBias:
    """The mask (L, S) by which query i attends to keys 0 to i: ``is_causal=True``.

    >>> fw.nn.attention.bias.causal_upper_left(2, 3).int().tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_sizes(size, "causal_upper_left"))


def causal_lower_right(*size: Any) -> CausalBias:
    """The mask (L, S) by which the last query attends to all keys: for queries that come after others.

    >>> fw.nn.attention.bias.causal_lower_right(2, 3).int().tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_sizes(size, "causal_lower_right"))
