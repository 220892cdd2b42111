"""Sequences of different lengths in one batch."""

from collections.abc import Sequence
from typing import Any

from ...creation import full
from ...errors import ShapeError
from ...ops.join import cat, stack
from ...tensor import Tensor


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Tensors (L_i, *) of different lengths in one tensor (L, N, *), or (N, L, *) with ``batch_first``.

    L is the longest; ``padding_value`` fills the rest, after the elements or, with padding_side="left",
    before them. Recorded by autograd. Raises ShapeError where other sizes than the first differ.

    >>> fw.nn.utils.rnn.pad_sequence([fw.ones(2), fw.ones(3)], batch_first=True)
    tensor([[1., 1., 0.],
            [1., 1., 1.]])
    """
    rows: Any = list(sequences)
    if padding_side not in ("left", "right"):
        raise ValueError(f"pad_sequence: padding_side={padding_side!r} must be 'left' or 'right'")
    if not rows:
        raise ValueError("pad_sequence: sequences is empty; wanted at least one tensor")
    for i, x in enumerate(rows):
        if not isinstance(x, Tensor):
            raise TypeError(f"pad_sequence: sequences[{i}] must be a Tensor, got {type(x).__name__}")
        if x.ndim == 0 or x.shape[1:] != rows[0].shape[1:]:
            raise ShapeError(f"pad_sequence: sequences[{i}] has shape {list(x.shape)}, sequences[0] "
                             f"{list(rows[0].shape)}; they may differ in the first size only")
    longest = max(len(x) for x in rows)
    padded = []
    for x in rows:
        rest = full((longest - len(x), *x.shape[1:]), padding_value, dtype=x.dtype, device=x.device)
        padded.append(cat([x, rest] if padding_side == "right" else [rest, x]))
    return stack(padded, 0 if batch_first else 1)
