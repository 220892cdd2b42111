"""Cutting a tensor into a tuple of views: split, chunk, unbind and their relatives."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ... import _native
from ...autograd.mode import masked_walks, state
from ...backends import array_module
from ...errors import ShapeError
from ...node import GraphOp, Node, Pick
from ...seam import OP, Event, intercepted
from ...tensor import Tensor, wrap
from ..record.aliases import view_maker
from ..record.args import one_dim, tensor_arg
from ..record.batched import PutOff
from ..record.deferred import InSteps
from ..record.meta import Meta
from ..record.public import public
from .join import cat_op, stack_op
from .slices import slice_along, slice_op

_pieces_of, _chunks_of, _sections_of = view_maker("pieces"), view_maker("chunks"), view_maker("sections")


def _dim_of(x: Tensor, dim: Any, op: str) -> int:
    ndim = tensor_arg(x, op).ndim
    if ndim == 0:
        raise ShapeError(f"{op}: a tensor of 0 dimensions cannot be cut; unsqueeze it first")
    return one_dim(dim, ndim, op)


class Cut(GraphOp):
    """The op of a node whose outputs are the pieces of a tensor.

    As slices, each piece would give back zeros of the whole tensor's size, and backward add them all up.
    """

    name = "split"
    arguments = ("input",)

    def __init__(self, dim: int, join: Any, pieces: tuple[Tensor, ...]) -> None:
        self.dim, self.join, self.shapes = dim, join, [x.shape for x in pieces]
        self.differentiable = len(pieces)

    def pull(self, node: Node, g: list, edges: tuple, live: bool) -> list:
        """The gradient of the whole: the pieces' joined, zeros for those that got none."""
        parts = list(g)
        if any(part is None for part in g):
            if state.walk is not None:
                masked_walks.add(state.walk)
            given = next(part for part in g if part is not None)
            array = given._array if live else given
            xp = array_module(array)
            zero = xp.zeros((), array.dtype)
            for i, shape in enumerate(self.shapes):
                if parts[i] is None:
                    zeros = xp.broadcast_to(zero, shape)
                    parts[i] = wrap(zeros) if live else zeros
        return [self.join(*parts, dim=self.dim)]


class Parts:
    """Cutting in one way, as one operation of several results, where calls are put off (``batching``).

    The kernels of slices give views and run by themselves otherwise, so this is no record.
    """

    name = "split"
    view = has_vjp = True
    kernel = None

    def __init__(self, dim: int, keys: tuple, join: Any) -> None:
        self.dim, self.join = dim, join
        self.keys = [key if type(key) is int else slice(*key) for key in keys]
        self.outputs = ("piece",) * len(keys)
        self.differentiable = len(keys)

    def infer(self, x: Any) -> Any:
        before, length, behind = x.shape[:self.dim], x.shape[self.dim], x.shape[self.dim + 1:]
        return [Meta((*before, *([len(range(*key.indices(length)))] if type(key) is slice else []), *behind),
                     x.dtype) for key in self.keys]

    def run(self, x: Tensor) -> tuple[Tensor, ...]:
        return _cut(x, self.dim, self.keys, self.join)

    def run_many(self, count: int, inputs: list, batched: tuple) -> tuple[Tensor, ...]:
        """The pieces of many tensors, which are the rows of one."""
        return _cut(inputs[0], self.dim + 1, self.keys, self.join)


_parts = lru_cache(maxsize=256)(Parts)


def _cut(x: Tensor, dim: int, keys: Any, join: Any = cat_op) -> tuple[Tensor, ...]:
    """The parts of x at ``keys`` along ``dim``, which are all of it, in order."""
    if isinstance(x._array, PutOff) and len(keys) > 1:
        whole = _parts(dim, tuple([k if type(k) is int else (k.start, k.stop) for k in keys]), join)
        return intercepted(Event(OP, whole, (x,), {}), whole.run)
    pieces = tuple([slice_along(x, dim, key) for key in keys])
    if state.enabled is True and x._node is not None and len(pieces) > 1:
        node = Node(Cut(dim, join, pieces), (x._node,), None, None, {}, None)
        for i, piece in enumerate(pieces):
            piece._node = Pick(node, i)
    return pieces


def _node_of_pieces(x: Tensor, dim: int, positions: bool, pieces: tuple[Tensor, ...]) -> Node:
    return Node(Cut(dim, stack_op if positions else cat_op, pieces), (x._node,), None, None, {}, None)


if hasattr(_native.module, "set_up_pieces"):
    _native.module.set_up_picks(Pick)
    _native.module.set_up_pieces(_node_of_pieces)


def _pieces(x: Tensor, dim: int, bounds: list[int]) -> tuple[Tensor, ...]:
    """The slices between consecutive bounds."""
    out = _pieces_of(x, dim, [b - a for a, b in zip(bounds, bounds[1:])], slice_op)
    if out is not NotImplemented:
        return out
    keys = [slice(a, b) for a, b in zip(bounds, bounds[1:])]
    whole = bounds[0] == 0 and bounds[-1] == x.shape[dim] and sorted(bounds) == bounds
    return _cut(x, dim, keys) if whole else tuple([slice_along(x, dim, key) for key in keys])


def _equal_pieces(x: Tensor, dim: int, size: int, length: int) -> tuple[Tensor, ...]:
    """Slices of one size, the last one perhaps shorter, of a dimension of that length above 0."""
    return _cut(x, dim, [slice(a, a + size) for a in range(0, length, size)])


def _by_sizes(x: Tensor, sizes: Any, dim: int, op: str) -> tuple[Tensor, ...]:
    bounds = [0]
    for size in sizes:
        if size < 0:
            raise ShapeError(f"{op}: sizes must not be negative, got {list(sizes)}")
        bounds.append(bounds[-1] + int(size))
    if bounds[-1] != x.shape[dim]:
        raise ShapeError(f"{op}: the sizes {list(sizes)} sum to {bounds[-1]}, but dimension {dim} has "
                         f"size {x.shape[dim]}")
    return _cut(x, dim, [slice(a, b) for a, b in zip(bounds, bounds[1:])])


@public(method=True, also="split_size=split_size_or_sections", deferred=True)
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of pieces of that size along ``dim`` (the last may be shorter), or of the listed sizes.

    Raises ShapeError if listed sizes do not sum to the dimension's.

    >>> fw.split(fw.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> fw.split(fw.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    if type(split_size_or_sections) is not int or split_size_or_sections > 0:
        out = _pieces_of(tensor, dim, split_size_or_sections, slice_op)
        if out is not NotImplemented:
            return out
    at = _dim_of(tensor, dim, "split")
    if isinstance(split_size_or_sections, (tuple, list)):
        return _by_sizes(tensor, split_size_or_sections, at, "split")
    size, length = split_size_or_sections.__index__(), tensor.shape[at]
    if size < 0 or (size == 0 and length):
        raise ShapeError(f"split: split_size must be positive, got {size}")
    return _equal_pieces(tensor, at, size, length) if length else _pieces(tensor, at, [0, 0])


@public(method=True)
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """``split`` in pieces of one size. Its results may be changed in place here as any view may.

    >>> fw.unsafe_split(fw.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    out = _pieces_of(input, dim, split_size, slice_op) if type(split_size) is int and split_size > 0 \
        else NotImplemented
    return split(input, split_size, dim) if out is NotImplemented else out


@public(method="split_with_sizes unsafe_split_with_sizes", alias="unsafe_split_with_sizes")
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of pieces of the listed sizes along ``dim``.

    >>> fw.split_with_sizes(fw.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    out = NotImplemented if type(split_sizes) is int else _pieces_of(input, dim, split_sizes, slice_op)
    if out is not NotImplemented:
        return out
    return _by_sizes(input, split_sizes, _dim_of(input, dim, "split_with_sizes"), "split_with_sizes")


@public(method="chunk unsafe_chunk", alias="unsafe_chunk", deferred=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` views of equal size along ``dim``, the last one perhaps shorter.

    >>> fw.chunk(fw.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    out = _chunks_of(input, dim, chunks, slice_op)
    if out is not NotImplemented:
        return out
    at = _dim_of(input, dim, "chunk")
    if chunks <= 0:
        raise ValueError(f"chunk: chunks must be positive, got {chunks}")
    length = input.shape[at]
    if not length:
        return _pieces(input, at, [0] * (chunks + 1))
    return _equal_pieces(input, at, -(-length // chunks), length)


def _sections(x: Tensor, sections: Any, dim: int, op: str) -> tuple[Tensor, ...]:
    """NumPy's array_split: a number of nearly equal pieces, or the places to cut at."""
    out = _sections_of(x, dim, sections, slice_op)
    if out is not NotImplemented:
        return out
    length = x.shape[dim]
    if isinstance(sections, Tensor):
        sections = sections.tolist()
    if isinstance(sections, (tuple, list)):
        cuts = [i if type(i) is int and 0 <= i <= length else slice(None, int(i)).indices(length)[1]
                for i in sections]
        return _pieces(x, dim, [0, *cuts, length])
    if sections <= 0:
        raise ValueError(f"{op}: the number of sections must be positive, got {sections}")
    size, longer = divmod(length, sections)
    bounds = [0]
    for i in range(sections):
        bounds.append(bounds[-1] + size + (i < longer))
    return _pieces(x, dim, bounds)


@public(method=True, also="indices=indices_or_sections sections=indices_or_sections "
                          "tensor_indices_or_sections=indices_or_sections")
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of nearly equal pieces along ``dim``, or cut at the listed places.

    >>> fw.tensor_split(fw.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> fw.tensor_split(fw.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    out = _sections_of(input, dim, indices_or_sections, slice_op)
    if out is not NotImplemented:
        return out
    return _sections(input, indices_or_sections, _dim_of(input, dim, "tensor_split"), "tensor_split")


def _even(x: Tensor, sections: Any, dim: int, op: str) -> tuple[Tensor, ...]:
    if hasattr(sections, "__index__") and not isinstance(sections, Tensor) and (
            sections <= 0 or x.shape[dim] % sections):
        raise ShapeError(f"{op}: dimension {dim} of size {x.shape[dim]} does not divide into "
                         f"{sections} equal pieces; use tensor_split()")
    return _sections(x, sections, dim, op)


@public(method=True, also="indices=indices_or_sections sections=indices_or_sections")
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """``tensor_split`` into equal pieces along dimension 1 (0 for a vector).

    >>> fw.hsplit(fw.tensor([[1, 2], [3, 4]]), 2)[1].shape
    (2, 1)
    """
    if tensor_arg(input, "hsplit").ndim < 1:
        raise ShapeError("hsplit: wanted at least 1 dimension, got a tensor of 0 dimensions")
    return _even(input, indices_or_sections, 0 if input.ndim == 1 else 1, "hsplit")


@public(method=True, also="indices=indices_or_sections sections=indices_or_sections")
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """``tensor_split`` into equal pieces along dimension 0 of at least two.

    >>> fw.vsplit(fw.tensor([[1, 2], [3, 4]]), 2)[1]
    tensor([[3, 4]])
    """
    if tensor_arg(input, "vsplit").ndim < 2:
        raise ShapeError(f"vsplit: wanted at least 2 dimensions, got shape {list(input.shape)}")
    return _even(input, indices_or_sections, 0, "vsplit")


@public(method=True, also="indices=indices_or_sections sections=indices_or_sections")
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """``tensor_split`` into equal pieces along dimension 2 of at least three.

    >>> fw.dsplit(fw.ones(1, 2, 4), 2)[0].shape
    (1, 2, 2)
    """
    if tensor_arg(input, "dsplit").ndim < 3:
        raise ShapeError(f"dsplit: wanted at least 3 dimensions, got shape {list(input.shape)}")
    return _even(input, indices_or_sections, 2, "dsplit")


@public(method=True, deferred=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """A view of every position along ``dim``, which is dropped.

    >>> fw.unbind(fw.tensor([[1, 2], [3, 4]]), 1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    out = _pieces_of(input, dim, 0, slice_op)
    if out is not NotImplemented:
        return out
    at = _dim_of(input, dim, "unbind")
    return _cut(input, at, range(input.shape[at]), stack_op)


def pieces(input: Tensor) -> tuple[Tensor, ...]:
    """What iteration gives, at once."""
    return unbind(input)


def _iterate_in_steps(input: Tensor) -> Any:
    return iter(pieces(input)) if input.ndim else NotImplemented


@public("", method="__iter__", name="__iter__", deferred=InSteps(_iterate_in_steps))
def _iterate(input: Tensor) -> Iterator[Tensor]:
    """The positions along dimension 0, as views."""
    out = _pieces_of(input, 0, 0, slice_op)
    if out is not NotImplemented:
        return iter(out)
    if input.ndim == 0:
        raise TypeError("iteration over a tensor of 0 dimensions; use .item()")
    return iter(_cut(input, 0, range(input.shape[0]), stack_op))
