"""Sequences of different lengths in one batch: padded, or packed step by step."""

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...config.listing import own as _own
from ...creation import full
from ...errors import DeviceError, DTypeError, ShapeError, kind_of
from ...ops.convert.cast import from_array
from ...ops.index.index import index_copy, index_select
from ...ops.shape.join import cat
from ...ops.shape.view import take_shape
from ...tensor import Tensor, wrap


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


class PackedSequence(_Packed):
    """Sequences of different lengths, step by step without padding: what recurrent layers take and give.

    data (sum of lengths, *): the first elements of all sequences, longest first, then the second ones, ...;
    batch_sizes (longest,): how many sequences have a t-th element, int64 on the CPU. sorted_indices: which of
    the original sequences comes where; unsorted_indices: the other way. ``pack_padded_sequence`` and
    ``pack_sequence`` make it. Raises ValueError or DeviceError for fields that cannot be.

    >>> p = fw.nn.utils.rnn.pack_sequence([fw.tensor([1, 2, 3]), fw.tensor([4])])
    >>> p.data, p.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

    __slots__ = ()

    def __new__(cls, data: Tensor, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
                unsorted_indices: Tensor | None = None) -> "PackedSequence":
        if batch_sizes is None:
            raise ValueError("PackedSequence: batch_sizes is missing; pack_padded_sequence(...) makes it")
        if batch_sizes.device.type != "cpu":
            raise DeviceError("PackedSequence: batch_sizes must be on the CPU; call batch_sizes.cpu()")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """``data.to(...)`` in the place of ``data``; itself where nothing changes."""
        data: Any = self.data.to(*args, **kwargs)  # type: ignore[attr-defined]
        if data is self.data:
            return self
        order: list[Any] = [i if i is None else i.to(data.device) for i in self[2:]]
        return type(self)(data, self.batch_sizes, *order)

    def cpu(self) -> "PackedSequence":
        """In host memory."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> "PackedSequence":
        """On a CUDA device."""
        return self.to("cuda" if device is None else device)

    @property
    def is_cuda(self) -> bool:
        """Whether ``data`` is on a CUDA device."""
        return self.data.is_cuda  # type: ignore[attr-defined]

    def double(self) -> "PackedSequence":
        """``data`` as float64."""
        return self.to(dtypes.float64)

    def half(self) -> "PackedSequence":
        """``data`` as float16."""
        return self.to(dtypes.float16)

    def float(self) -> "PackedSequence":
        """``data`` as float32."""
        return self.to(dtypes.float32)


# orders by the identity of the tensors that hold them on a GPU: the tensor, its version, the order
_orders: dict[int, tuple[Any, int, np.ndarray]] = {}


def _ordered(order: np.ndarray, like: Tensor) -> Tensor:
    """An order as a tensor where ``like`` is; the host keeps it, and needs not wait for it later."""
    there = from_array(order, like)
    if there.is_cuda:
        key = id(there)
        _orders[key] = weakref.ref(there, lambda _: _orders.pop(key, None)), there._version, order
    return there


def _order_of(indices: Tensor) -> np.ndarray:
    found = _orders.get(id(indices))
    if found is not None and found[0]() is indices and found[1] == indices._version:
        return found[2]
    return indices.cpu().numpy()  # type: ignore[attr-defined]


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another; None for None.

    >>> fw.nn.utils.rnn.invert_permutation(fw.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else permutation.argsort()  # type: ignore[attr-defined]


def _lengths(op: str, lengths: Any, most: int, count: int | None) -> np.ndarray:
    found = np.asarray(lengths.detach().cpu().numpy() if isinstance(lengths, Tensor) else lengths)
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise DTypeError(f"{op}: lengths must be integers in one dimension, got {found.dtype} of shape "
                         f"{list(found.shape)}")
    if count is not None and len(found) != count:
        raise ShapeError(f"{op}: lengths has {len(found)} entries for a batch of {count}")
    if len(found) and not 1 <= found.min() <= found.max() <= most:
        raise ValueError(f"{op}: lengths must lie in [1, {most}], got {found.tolist()}; leave out sequences "
                         f"of length 0")
    return found.astype(np.int64)


def _places(sizes: np.ndarray, order: np.ndarray, steps: int, batch_first: bool) -> np.ndarray:
    """Where each packed row stands among the rows of the padded tensor."""
    time = np.repeat(np.arange(len(sizes)), sizes)
    which = order[np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)]
    return which * steps + time if batch_first else time * len(order) + which


def _rows(x: Tensor) -> Tensor:
    return take_shape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """The first ``lengths[i]`` elements of each sequence of a padded tensor (L, N, *), packed.

    batch_first: the tensor is (N, L, *). enforce_sorted: the sequences must come longest first; if False
    they are sorted. Recorded by autograd. Raises ShapeError, DTypeError or ValueError.

    >>> x = fw.tensor([[1, 2, 3], [4, 0, 0]])
    >>> fw.nn.utils.rnn.pack_padded_sequence(x, [3, 1], batch_first=True).data
    tensor([1, 4, 2, 3])
    """
    op = "pack_padded_sequence"
    if not isinstance(input, Tensor) or input.ndim < 2:
        what = f"shape {list(input.shape)}" if isinstance(input, Tensor) else type(input).__name__
        raise ShapeError(f"{op}: input must be a Tensor (length, batch, ...), got {what}")
    steps, n = input.shape[1::-1] if batch_first else input.shape[:2]
    found = _lengths(op, lengths, steps, n)
    if not n:
        raise ValueError(f"{op}: the batch of shape {list(input.shape)} is empty; wanted a sequence")
    if enforce_sorted and (np.diff(found) > 0).any():
        raise ValueError(f"{op}: lengths {found.tolist()} do not decrease; sort the batch by length, or pass "
                         f"enforce_sorted=False")
    order = np.arange(n) if enforce_sorted else np.argsort(-found, kind="stable")
    sizes = (found[None] > np.arange(found.max())[:, None]).sum(1)
    places = from_array(_places(sizes, order, steps, batch_first), input)
    data = index_select(_rows(input), 0, places)
    return PackedSequence(data, wrap(sizes), None if enforce_sorted else _ordered(order, input))


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """(padded, lengths): a packed batch as a tensor (L, N, *), in the order it had before it was packed.

    batch_first: (N, L, *). padding_value stands behind the shorter ones; total_length: L, if it is to be
    more than the longest. Recorded by autograd. Raises ValueError if that is too short.

    >>> p = fw.nn.utils.rnn.pack_sequence([fw.tensor([1, 2, 3]), fw.tensor([4])])
    >>> fw.nn.utils.rnn.pad_packed_sequence(p, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"pad_packed_sequence: sequence must be a PackedSequence, got "
                        f"{type(sequence).__name__}; pack_padded_sequence(...) makes one")
    data, sizes = sequence.data, sequence.batch_sizes.numpy()
    n, steps = int(sizes[0]), len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(f"pad_packed_sequence: total_length={total_length} is less than the longest "
                             f"sequence, {steps}")
        steps = total_length
    order = np.arange(n) if sequence.sorted_indices is None else _order_of(sequence.sorted_indices)
    rest = data.shape[1:]
    padding = full((n * steps, *rest), padding_value, dtype=data.dtype, device=data.device)
    places = from_array(_places(sizes, order, steps, batch_first), data)
    padded = index_copy(padding, 0, places, data)
    lengths = np.empty(n, np.int64)
    lengths[order] = (sizes[None] > np.arange(n)[:, None]).sum(1)
    return take_shape(padded, ((n, steps) if batch_first else (steps, n)) + rest), wrap(lengths)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Tensors (L_i, *) of different lengths, packed; see ``pack_padded_sequence``.

    >>> fw.nn.utils.rnn.pack_sequence([fw.tensor([4]), fw.tensor([1, 2])], enforce_sorted=False).data
    tensor([1, 4, 2])
    """
    padded = pad_sequence(sequences)
    return pack_padded_sequence(padded, [len(x) for x in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch, as tensors (L_i, *).

    >>> rnn = fw.nn.utils.rnn
    >>> rnn.unpack_sequence(rnn.pack_sequence([fw.tensor([1, 2]), fw.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The first ``lengths[i]`` elements of each sequence of a padded tensor (L, N, *), as a list.

    batch_first: the tensor is (N, L, *). Raises ShapeError, DTypeError or ValueError for wrong lengths.

    >>> fw.nn.utils.rnn.unpad_sequence(fw.tensor([[1, 3], [2, 0]]), [2, 1])
    [tensor([1, 2]), tensor([3])]
    """
    steps, n = padded_sequences.shape[1::-1] if batch_first else padded_sequences.shape[:2]
    found = _lengths("unpad_sequence", lengths, steps, n)
    x: Any = padded_sequences if batch_first else padded_sequences.transpose(0, 1)  # type: ignore[attr-defined]
    return [row[:length] for row, length in zip(x, found.tolist())]


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
    shapes = []
    for i, x in enumerate(rows):
        if not isinstance(x, Tensor):
            raise TypeError(f"pad_sequence: sequences[{i}] must be a Tensor, got {kind_of(x)}")
        shapes.append(shape := tuple(x.shape))
        if not shape or shape[1:] != shapes[0][1:]:
            raise ShapeError(f"pad_sequence: sequences[{i}] has shape {list(shape)}, sequences[0] "
                             f"{list(shapes[0])}; they may differ in the first size only")
    lengths, sizes = [shape[0] for shape in shapes], shapes[0][1:]
    longest = max(lengths)
    padding = full((longest, *sizes), padding_value, dtype=rows[0].dtype, device=rows[0].device)
    rests = {length: padding[length:] for length in set(lengths)}
    parts: list[Any] = []  # one join, of the tensors and of pieces of one padding
    for x, length in zip(rows, lengths, strict=True):
        parts += (x, rests[length]) if padding_side == "right" else (rests[length], x)
    padded = cat(parts).view(len(rows), longest, *sizes)
    return padded if batch_first else padded.transpose(0, 1).contiguous()


__dir__ = _own(globals())
