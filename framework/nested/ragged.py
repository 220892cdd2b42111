"""Ragged batches by hand: from and to padded and packed ones, through recurrent layers, masks.

Also ``framework.nn.utils.ragged``. A ragged batch is a nested tensor (``framework.nested``).
"""

from typing import Any

import numpy as np

from ..nn.utils.rnn import PackedSequence
from ..ops.convert.cast import from_array
from ..tensor import Tensor, wrap
from .make import from_padded as from_padded
from .make import to_padded_tensor
from .per_sequence import attention as attention
from .tensor import NestedTensor, Ragged, nested, rows


def to_padded(x: NestedTensor, padding: float = 0.0) -> tuple[Tensor, Tensor]:
    """(padded (N, L, *), lengths (N)).

    >>> fw.nn.utils.ragged.to_padded(fw.nested.nested_tensor([[1, 2], [3]]))
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    return to_padded_tensor(x, padding), x.lengths()


def _in_steps(sizes: Ragged) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(where each packed row is in the values, how many sequences have a t-th element, the longest first)."""
    order = np.argsort(-sizes.lengths, kind="stable")
    counts = (sizes.lengths[order][None] > np.arange(sizes.lengths.max())[:, None]).sum(1)
    time = np.repeat(np.arange(len(counts)), counts)
    which = order[np.arange(len(time)) - np.repeat(np.cumsum(counts) - counts, counts)]
    return sizes.starts[which] + time, counts, order


def to_packed(x: NestedTensor) -> PackedSequence:
    """The sequences step by step, as recurrent layers take them; none may be empty.

    >>> fw.nn.utils.ragged.to_packed(fw.nested.nested_tensor([[1], [2, 3]])).data
    tensor([2, 1, 3])
    """
    if not len(x) or not x._sizes.lengths.all():
        raise ValueError("to_packed: recurrent layers take no sequence of length 0, and at least one")
    places, counts, order = _in_steps(x._sizes)
    return PackedSequence(rows(x.values(), places), wrap(counts), from_array(order, x.values()))


def from_packed(sequence: PackedSequence) -> NestedTensor:
    """A packed batch as a nested tensor, in the order that it had before it was packed.

    >>> packed = fw.nn.utils.rnn.pack_sequence([fw.tensor([1, 2]), fw.tensor([3])])
    >>> fw.nn.utils.ragged.from_packed(packed).values()
    tensor([1, 2, 3])
    """
    counts = sequence.batch_sizes.numpy()
    n = int(counts[0])
    own = sequence.sorted_indices
    order = np.arange(n) if own is None else own.cpu().numpy()
    lengths = np.empty(n, np.int64)
    lengths[order] = (counts[None] > np.arange(n)[:, None]).sum(1)
    sizes = Ragged(np.concatenate([[0], np.cumsum(lengths)]))
    time = np.repeat(np.arange(len(counts)), counts)
    which = order[np.arange(len(time)) - np.repeat(np.cumsum(counts) - counts, counts)]
    back = np.empty(len(time), np.int64)
    back[sizes.starts[which] + time] = np.arange(len(time))
    return nested(rows(sequence.data, back), sizes, 1)


def recurrent(module: Any, x: NestedTensor, hx: Any = None) -> tuple[NestedTensor, Any]:
    """What an RNN, LSTM or GRU gives for a ragged batch (N, j, features): (outputs, last states).

    >>> x = fw.nested.nested_tensor([fw.ones(3, 2), fw.ones(1, 2)])
    >>> y, (h, c) = fw.nn.utils.ragged.recurrent(fw.nn.LSTM(2, 4), x)
    >>> y.shape, h.shape
    ((2, j, 4), (1, 2, 4))
    """
    out, state = module(to_packed(x), hx)
    return nested(from_packed(out)._packed, x._sizes, 1), state


def mask(x: NestedTensor) -> Tensor:
    """Where a padded tensor of these sequences has elements: bool, (N, L).

    >>> fw.nn.utils.ragged.mask(fw.nested.nested_tensor([[1, 2], [3]]))
    tensor([[ True,  True],
            [ True, False]])
    """
    lengths = x._sizes.lengths
    return from_array(np.arange(lengths.max(initial=0)) < lengths[:, None], x._packed)
