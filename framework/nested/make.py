"""Nested tensors from lists, from values and offsets, and from padded tensors; and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..creation import full
from ..errors import DTypeError, ShapeError
from ..from_data import as_tensor
from ..layouts import jagged, strided
from ..ops.convert.cast import from_array
from ..ops.shape.join import cat
from ..tensor import Tensor
from .tensor import HANDLERS, NestedTensor, Ragged, nested, rows


def _starts(lengths: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)


def _integers(x: Any, op: str, name: str) -> np.ndarray:
    found = np.asarray(x.detach().cpu().numpy() if isinstance(x, Tensor) else x)
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise DTypeError(f"{op}: {name} must hold integers in one dimension, got {found.dtype} of shape "
                         f"{list(found.shape)}")
    return found.astype(np.int64)


def _joined(op: str, tensors: Sequence, layout: Any, dtype: Any, device: Any, copy: bool) -> NestedTensor:
    if layout not in (None, jagged, strided):
        raise ValueError(f"{op}: layout must be framework.jagged, got {layout!r}")
    if isinstance(tensors, NestedTensor):
        return tensors
    parts = [as_tensor(t, dtype=dtype, device=device) for t in tensors]
    if not parts:
        raise ValueError(f"{op}: the list is empty, so the shape of the sequences cannot be learned")
    for i, t in enumerate(parts):
        if not t.ndim or t.shape[1:] != parts[0].shape[1:]:
            raise ShapeError(f"{op}: sequences may differ in their first size only, but number {i} has shape "
                             f"{list(t.shape)} and the first one {list(parts[0].shape)}")
    values = cat([t.detach() for t in parts] if copy else parts)
    return nested(values, Ragged(_starts([len(t) for t in parts])), 1)


def nested_tensor(tensor_list: Sequence, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> NestedTensor:
    """A nested tensor with a copy of sequences (L_i, *), which differ in their first size only.

    The layout is always ``framework.jagged``. Raises ShapeError for other sizes that differ.

    >>> x = fw.nested.nested_tensor([[1.0, 2.0], [3.0]])
    >>> x.values(), x.offsets()
    (tensor([1., 2., 3.]), tensor([0, 2, 3]))
    """
    made = _joined("nested_tensor", tensor_list, layout, dtype, device, copy=True)
    return made.requires_grad_(requires_grad)


def as_nested_tensor(ts: Sequence, dtype: Any = None, device: Any = None, layout: Any = None) -> NestedTensor:
    """A nested tensor of sequences, through which gradients flow to them; see ``nested_tensor``.

    >>> a, b = fw.ones(2, requires_grad=True), fw.ones(1)
    >>> fw.nested.as_nested_tensor([a, b]).values().sum().backward()
    >>> a.grad
    tensor([1., 1.])
    """
    return _joined("as_nested_tensor", ts, layout, dtype, device, copy=False)


def nested_tensor_from_jagged(values: Tensor, offsets: Any = None, lengths: Any = None,
                              jagged_dim: int | None = None, min_seqlen: int | None = None,
                              max_seqlen: int | None = None) -> NestedTensor:
    """A nested tensor over ``values``, the elements of all sequences, (total, *), at their place in the
    graph.

    offsets (batch + 1): where each sequence begins, and the end; or lengths (batch); or both, where there is
    something between the sequences, which is left out then. jagged_dim: the place of the ragged dimension,
    from 1 on; values have it one place before. min_seqlen, max_seqlen: taken for PyTorch's sake. Raises
    ValueError for offsets that do not fit.

    >>> x = fw.nested.nested_tensor_from_jagged(fw.arange(5), fw.tensor([0, 2, 5]))
    >>> x.unbind()
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    op = "nested_tensor_from_jagged"
    place = 1 if jagged_dim is None else jagged_dim % (values.ndim + 1)
    if not 1 <= place <= values.ndim:
        raise ValueError(f"{op}: jagged_dim must lie between 1 and {values.ndim}, got {jagged_dim}")
    packed = values if place == 1 else values.movedim(place - 1, 0)  # type: ignore[attr-defined]
    if offsets is None and lengths is None:
        raise ValueError(f"{op}: give offsets, or lengths")
    if offsets is None:
        starts = _starts(_integers(lengths, op, "lengths"))
        if starts[-1] != len(packed):
            raise ValueError(f"{op}: lengths add up to {starts[-1]}, values have {len(packed)} elements")
        return nested(packed, Ragged(starts), place)
    starts = _integers(offsets, op, "offsets")
    if not len(starts) or starts[0] < 0 or (np.diff(starts) < 0).any() or starts[-1] > len(packed):
        raise ValueError(f"{op}: offsets must rise from 0 to {len(packed)}, got {starts.tolist()[:8]}")
    if lengths is None and starts[0] == 0 and starts[-1] == len(packed):
        return nested(packed, Ragged(starts), place)
    long = np.diff(starts) if lengths is None else _integers(lengths, op, "lengths")
    begins = starts[:len(long)]
    if (begins + long > len(packed)).any() or (long < 0).any():
        raise ValueError(f"{op}: lengths {long.tolist()[:8]} reach beyond the {len(packed)} values")
    sizes = Ragged(_starts(long))
    index = np.arange(sizes.starts[-1]) - sizes.starts[:-1][sizes.index] + begins[sizes.index]
    return nested(rows(packed, index), sizes, place)


def to_padded_tensor(input: NestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """The sequences side by side, (batch, ..., longest, ...), ``padding`` behind the shorter ones.

    output_size: the shape of the result, if it is to be larger. Recorded by autograd.

    >>> x = fw.nested.nested_tensor([[1.0, 2.0], [3.0]])
    >>> fw.nested.to_padded_tensor(x, 0.0)
    tensor([[1., 2.],
            [3., 0.]])
    """
    if not isinstance(input, NestedTensor):
        raise TypeError(f"to_padded_tensor: input must be nested, got {type(input).__name__}")
    sizes, packed, place = input._sizes, input._packed, input._place
    longest = int(sizes.lengths.max()) if len(sizes.lengths) else 0
    wanted = None if output_size is None else tuple(int(n) for n in output_size)
    if wanted is not None:
        longest = wanted[place] if len(wanted) == input.ndim else -1
        rest = [n for i, n in enumerate(wanted) if i not in (0, place)]
        if longest < sizes.lengths.max(initial=0) or wanted[0] < len(input) or any(
                a < b for a, b in zip(rest, packed.shape[1:])):
            raise ShapeError(f"to_padded_tensor: output_size {list(wanted)} does not hold {input.shape}, "
                             f"whose longest sequence has {int(sizes.lengths.max(initial=0))} elements")
    index = np.full((len(input), longest), len(packed), np.int64)
    inside = np.arange(longest) < sizes.lengths[:, None]
    index[inside] = np.arange(len(packed))
    spare = full((1, *packed.shape[1:]), padding, dtype=packed.dtype, device=packed.device)
    padded = rows(cat([packed, spare]), index)
    if place > 1:
        padded = padded.movedim(1, place)  # type: ignore[attr-defined]
    if wanted is not None and tuple(padded.shape) != wanted:
        whole = full(wanted, padding, dtype=packed.dtype, device=packed.device)
        whole[tuple(slice(n) for n in padded.shape)] = padded  # type: ignore[index]
        return whole
    return padded


HANDLERS.padded = to_padded_tensor


def from_padded(padded: Tensor, lengths: Any, batch_first: bool = True) -> NestedTensor:
    """The first ``lengths[i]`` elements of each sequence of a padded tensor (N, L, *), or (L, N, *).

    >>> fw.nn.utils.ragged.from_padded(fw.tensor([[1, 2], [3, 0]]), [2, 1]).values()
    tensor([1, 2, 3])
    """
    if not batch_first:
        padded = padded.transpose(0, 1)  # type: ignore[attr-defined]
    found = _integers(lengths, "from_padded", "lengths")
    n, steps = padded.shape[:2]
    if len(found) != n or (found < 0).any() or (found > steps).any():
        raise ValueError(f"from_padded: {n} lengths between 0 and {steps} are needed, got "
                         f"{found.tolist()[:8]}")
    return narrow(padded, 1, 0, from_array(found, padded))


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = strided) -> NestedTensor:
    """Of each row of ``tensor`` (N, L, *), ``length[i]`` elements from ``start[i]`` on, nested.

    dim must be 1. The elements are copied (PyTorch's look at the memory of ``tensor``).

    >>> x = fw.nested.narrow(fw.arange(6).reshape(2, 3), 1, fw.tensor([0, 1]), fw.tensor([2, 1]))
    >>> x.values()
    tensor([0, 1, 4])
    """
    if dim != 1 or tensor.ndim < 2:
        raise ValueError(f"narrow: dim must be 1 of a tensor (N, L, ...), got dim={dim} of shape "
                         f"{list(tensor.shape)}")
    n, steps = tensor.shape[:2]
    begins, long = [np.broadcast_to(np.asarray(x if isinstance(x, int) else _integers(x, "narrow", name)),
                                    (n,)) for x, name in ((start, "start"), (length, "length"))]
    if (begins < 0).any() or (long < 0).any() or (begins + long > steps).any():
        raise IndexError(f"narrow: start {begins.tolist()[:8]} with length {long.tolist()[:8]} reaches "
                         f"beyond the {steps} elements")
    sizes = Ragged(_starts(long))
    index = np.arange(sizes.starts[-1]) - sizes.starts[:-1][sizes.index] + (
        begins + np.arange(n) * steps)[sizes.index]
    flat = tensor.reshape(n * steps, *tensor.shape[2:])  # type: ignore[attr-defined]
    return nested(rows(flat, index), sizes, 1)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements of each row of ``tensor`` (N, L) where ``mask`` holds, nested.

    >>> x = fw.tensor([[1, 2], [3, 4]])
    >>> fw.nested.masked_select(x, x != 2).values()
    tensor([1, 3, 4])
    """
    found = np.broadcast_to(mask.detach().numpy(), tensor.shape)
    if tensor.ndim != 2 or found.dtype != bool:
        raise ShapeError(f"masked_select: wanted a tensor (N, L) and a mask of bools, got shapes "
                         f"{list(tensor.shape)} and {list(mask.shape)}")
    index = np.flatnonzero(found)
    return nested(rows(tensor.reshape(-1), index), Ragged(_starts(found.sum(1))), 1)  # type: ignore[attr-defined]
