"""Rows of what one run gave: handed out to the runs that need them and to the user, gathered from several.

What is handed out of one result goes back as one gradient: a result of many rows is not visited once per row.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backends.native import native_or
from ..node import GraphOp, Node, Pick
from ..ops.index.embedding import add_rows, embedding_op
from ..ops.shape.join import cat_op, stack_op
from ..tensor import Tensor, wrap

_summed = native_or("add_rows", lambda x, indices, *, rows: add_rows.plain(x, indices, rows=rows))


class _Dealt(GraphOp):
    """Rows of a tensor as several tensors."""

    name = "deal_rows"

    def __init__(self, size: int, pieces: Sequence[np.ndarray]) -> None:
        self.size = size
        self.pieces = pieces
        self.differentiable = len(pieces)

    def pull(self, node: Any, g: Any, edges: tuple, live: bool) -> tuple:
        gs = [g] if self.differentiable == 1 else g
        total: Any = None
        for part, rows in zip(gs, self.pieces):
            if part is None:
                continue
            if live or part.dtype.kind == "V":
                whole = add_rows(part, wrap(rows) if live else rows, rows=self.size)
                total = whole if total is None else total + whole
                continue
            if total is None:
                total = np.zeros((self.size, *part.shape[1:]), part.dtype)
            if _is_run(rows):
                total[rows[0]:rows[-1] + 1] += part
            elif len(set(rows.tolist())) == len(rows):
                total[rows] += part
            else:
                total += _summed(part, rows, rows=self.size)
        return (total,)


class _Single(GraphOp):
    """The rows of a tensor, each as a tensor."""

    name = "unbind_rows"

    def __init__(self, count: int) -> None:
        self.differentiable = count

    def pull(self, node: Any, g: Any, edges: tuple, live: bool) -> tuple:
        gs = [g] if self.differentiable == 1 else g
        some = next(part for part in gs if part is not None)
        zero = some * 0 if any(part is None for part in gs) else None
        parts = [zero if part is None else part for part in gs]
        return (stack_op(*parts, dim=0),)


def _is_run(rows: np.ndarray) -> bool:
    """Whether the rows follow each other."""
    n = len(rows)
    return bool(rows[-1] - rows[0] == n - 1 and (n < 3 or (np.diff(rows) == 1).all()))


def deal(whole: Tensor, requests: Sequence[np.ndarray]) -> list[Tensor]:
    """For each request the rows of the tensor that it names."""
    array, size = whole._array, whole._array.shape[0]
    pieces: list = []
    own = []
    for rows in requests:
        if _is_run(rows):
            pieces.append(whole if len(rows) == size else array[rows[0]:rows[-1] + 1])
        else:
            pieces.append(array[rows])
        if pieces[-1] is not whole:
            own.append(len(pieces) - 1)
    node = None
    if own and whole._node is not None:
        op = _Dealt(size, [requests[i] for i in own])
        node = Node(op, (whole._node,), None, None, {}, None)
    for k, i in enumerate(own):
        place = None if node is None else node if len(own) == 1 else Pick(node, k)
        pieces[i] = wrap(pieces[i], node=place)
    return pieces


def singles(whole: Tensor) -> list[tuple[Any, Any]]:
    """(array, place in the graph) of each row, in memory of their own."""
    array = whole._array.copy()
    node = None
    if whole._node is not None:
        node = Node(_Single(len(array)), (whole._node,), None, None, {}, None)
    alone = len(array) == 1
    return [(array[i, ...], node if node is None or alone else Pick(node, i)) for i in range(len(array))]


def gathered(pieces: Sequence[Tensor], order: np.ndarray | None) -> Tensor:
    """The rows of all pieces, those of the first one first, then put in order."""
    whole = pieces[0] if len(pieces) == 1 else cat_op.run(*pieces, dim=0)
    if order is None:
        return whole
    return embedding_op.run(whole, wrap(order), padding=None, by_frequency=False)


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors of one shape as rows."""
    if any(t._node is not None for t in tensors):
        return stack_op.run(*tensors, dim=0)
    return wrap(np.stack([t._array for t in tensors]))
