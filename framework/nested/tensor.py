"""NestedTensor: sequences of different lengths in one tensor, without padding.

The elements of all sequences lie behind each other in ``packed``, (total, ...), the ragged dimension in
front; ``starts`` says where each begins. ``ragged`` is the place of that dimension in the shape that is
shown, (batch, ..., j, ...). The values are in the graph, the nested tensor is not: what is computed of it is
computed of its values, so derivatives of every order follow.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..device import Device
from ..dtypes import DType
from ..errors import AutogradError, LayoutError, ShapeError
from ..layouts import Layout, jagged
from ..ops.convert.cast import from_array
from ..ops.index.embedding import embedding_op
from ..ops.record.arming import arm
from ..size import Size
from ..tensor import More, Tensor

_new = object.__new__


class Ragged:
    """The size of a ragged dimension: no number, but the lengths. Two are equal if their lengths are."""

    __slots__ = ("name", "starts", "lengths", "_index")

    def __init__(self, starts: np.ndarray) -> None:
        self.starts = starts
        self.lengths = np.diff(starts)
        self.name = "j"
        self._index: np.ndarray | None = None

    @property
    def index(self) -> np.ndarray:
        """For each element, the number of its sequence."""
        if self._index is None:
            self._index = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return self._index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ragged) and (self is other or np.array_equal(self.starts, other.starts))

    def __hash__(self) -> int:
        return hash(self.starts.tobytes())

    def __repr__(self) -> str:
        return self.name


class NestedTensor(Tensor):
    """Sequences of different lengths, (batch, ..., j, ...): see ``framework.nested``.

    >>> x = fw.nested.nested_tensor([fw.ones(2, 3), fw.zeros(1, 3)])
    >>> x.shape, x.offsets()
    ((2, j, 3), tensor([0, 2, 3]))
    >>> (x + 1).sum(1)
    tensor([[4., 4., 4.],
            [1., 1., 1.]])
    """

    __slots__ = ("_packed", "_sizes", "_place")
    __array_ufunc__: Any = None  # type: ignore[assignment]  # NumPy's functions refuse it

    _packed: Tensor
    _sizes: Ragged
    _place: int

    is_nested = True  # type: ignore[assignment]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return HANDLERS.call(func, args, kwargs or {})

    @property
    def _array(self) -> Any:  # type: ignore[override]
        raise LayoutError(f"a nested tensor of shape {self.shape} is not taken here; use "
                          f"x.to_padded_tensor(padding) for one with padding, x.values() for the elements of "
                          f"all sequences, or x.unbind() for the sequences")

    # -- what it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """(batch, ..., j, ...), where j is the ragged dimension."""
        rest = self._packed.shape[1:]
        at = self._place - 1
        return tuple.__new__(Size, (len(self._sizes.lengths), *rest[:at], self._sizes, *rest[at:]))

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one size."""
        return self.shape if dim is None else self.shape[dim]

    @property
    def ndim(self) -> int:
        return self._packed.ndim + 1

    def dim(self) -> int:
        """The number of dimensions."""
        return self._packed.ndim + 1

    ndimension = dim

    def numel(self) -> int:
        """The number of elements of all sequences."""
        return self._packed.numel()

    nelement = numel

    @property
    def dtype(self) -> DType:
        return self._packed.dtype

    @property
    def device(self) -> Device:
        return self._packed.device

    @property
    def layout(self) -> Layout:
        """``framework.jagged``."""
        return jagged

    @property
    def itemsize(self) -> int:
        return self._packed.itemsize

    def element_size(self) -> int:
        """Bytes per element."""
        return self._packed.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of the elements and of the offsets."""
        return self._packed.nbytes + self._sizes.starts.nbytes

    @property
    def is_cuda(self) -> bool:
        return self._packed.is_cuda

    def is_floating_point(self) -> bool:
        """Whether the dtype is floating (complex is not)."""
        return self._packed.is_floating_point()

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._packed.is_complex()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the ragged dimension is the first one behind the batch, and the elements lie in order."""
        return self._place == 1 and self._packed.is_contiguous()

    def __len__(self) -> int:
        return len(self._sizes.lengths)

    # -- its parts -------------------------------------------------------------------------------

    def values(self) -> Tensor:
        """The elements of all sequences, (total, ...), at their place in the graph."""
        if self._place == 1:
            return self._packed
        return self._packed.movedim(0, self._place - 1)  # type: ignore[attr-defined]

    def offsets(self) -> Tensor:
        """Where each sequence begins, and the end: (batch + 1)."""
        return from_array(self._sizes.starts, self._packed)

    def lengths(self) -> Tensor:
        """How long each sequence is: (batch)."""
        return from_array(self._sizes.lengths, self._packed)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The sequences, as tensors."""
        if dim not in (0, -self.ndim):
            raise NotImplementedError(f"unbind: a nested tensor has its sequences along dim 0, got dim={dim}")
        if not len(self):
            return ()
        parts = self._packed.split(self._sizes.lengths.tolist())  # type: ignore[attr-defined]
        at = self._place - 1
        return tuple([p.movedim(0, at) if at else p for p in parts])

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            if not -len(self) <= key < len(self):
                raise IndexError(f"index {key} is out of range for {len(self)} sequences")
            a, b = self._sizes.starts[key % len(self):][:2]
            part = self._packed[int(a):int(b)]
            return part.movedim(0, self._place - 1) if self._place > 1 else part
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) == 2 and keys[0] == slice(None) and isinstance(keys[1], int) and self._place == 1:
            return self.step(keys[1])
        whole = keys[:2] == (slice(None), slice(None))
        if self._place == 1 and (whole or keys[:1] == (Ellipsis,) and len(keys) <= self.ndim - 1):
            return nested(self._packed[(slice(None), *keys[2:]) if whole else keys], self._sizes, 1)
        raise NotImplementedError(f"a nested tensor takes x[i], x[:, i] and x[:, :, ...], got x[{key}]; use "
                                  f"x.unbind(), or x.to_padded_tensor(padding)[...]")

    def step(self, i: int) -> Tensor:
        """Element ``i`` of each sequence (negative: from its end), (batch, ...)."""
        found = self._sizes.starts[1:] + i if i < 0 else self._sizes.starts[:-1] + i
        if ((i if i >= 0 else -i - 1) >= self._sizes.lengths).any():
            raise IndexError(f"index {i} is out of range for a sequence of length "
                             f"{int(self._sizes.lengths.min())}")
        return rows(self._packed, found)

    # -- its place in the graph ------------------------------------------------------------------

    @property
    def _node(self) -> Any:  # type: ignore[override]
        return self._packed._node

    @_node.setter
    def _node(self, node: Any) -> None:
        self._packed._node = node

    def _extras(self) -> More:
        return self._packed._extras()

    def requires_grad_(self, requires_grad: bool = True) -> "NestedTensor":
        """Start (or stop) gathering the gradient of the values; returns the tensor itself."""
        self._packed.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient, nested as this tensor is."""
        g = self._packed.grad
        return None if g is None else nested(g, self._sizes, self._place)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None and (not isinstance(value, NestedTensor) or value._sizes != self._sizes):
            raise ShapeError(f"grad: wanted a nested tensor of shape {self.shape}")
        self._packed.grad = None if value is None else value._packed

    def backward(self, gradient: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, inputs: Any = None) -> None:
        """Backward from the values; ``gradient`` is nested with the same lengths."""
        if not isinstance(gradient, NestedTensor) or gradient._sizes != self._sizes:
            raise AutogradError("backward: a nested result needs a nested gradient of its lengths; reduce it "
                                "(e.g. x.values().sum())")
        self._packed.backward(gradient._packed, retain_graph, create_graph, inputs)

    def detach(self) -> "NestedTensor":
        """The same memory outside the graph."""
        return nested(self._packed.detach(), self._sizes, self._place)

    @property
    def data(self) -> Tensor:
        """The same memory outside the graph; changes to it are not noticed by autograd."""
        return nested(self._packed.data, self._sizes, self._place)

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, NestedTensor):
            raise TypeError(f"data: wanted a nested tensor, got {type(value).__name__}")
        self._packed.data = value._packed
        self._sizes, self._place = value._sizes, value._place

    @property
    def _version(self) -> int:
        return self._packed._version

    # -- out of the framework --------------------------------------------------------------------

    def numpy(self, *, force: bool = False) -> Any:
        """Raises: NumPy has no ragged arrays."""
        raise LayoutError("numpy: NumPy has no ragged arrays; use [s.numpy() for s in x.unbind()], or "
                          "x.to_padded_tensor(padding).numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.numpy()

    def tolist(self) -> list:
        """The elements as a list for each sequence."""
        return [s.tolist() for s in self.detach().unbind()]

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """See ``framework.nested.to_padded_tensor``."""
        return HANDLERS.padded(self, padding, output_size)

    def __bool__(self) -> bool:
        raise ShapeError("the truth of a nested tensor is ambiguous; use x.values().any() or .all()")

    def __hash__(self) -> int:
        return id(self)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuild, (self._packed, self._sizes.starts, self._place)

    def __deepcopy__(self, memo: dict) -> "NestedTensor":
        if id(self) not in memo:
            memo[id(self)] = nested(self._packed.__deepcopy__(memo), self._sizes, self._place)
        return memo[id(self)]

    def __copy__(self) -> "NestedTensor":
        return nested(self._packed, self._sizes, self._place)

    def __repr__(self) -> str:
        note = f", grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else \
            ", requires_grad=True" if self.requires_grad else ""
        return f"NestedTensor(size={self.shape}, offsets={self._sizes.starts.tolist()}{note})"


class _Handlers:
    """The forms of functions for nested tensors; ``functions.py`` fills it."""

    call: Any
    padded: Any


HANDLERS = _Handlers()


def nested(packed: Tensor, sizes: Ragged, place: int) -> NestedTensor:
    """A nested tensor of these values, (total, ...), which stay at their place in the graph."""
    if packed.shape[0] != sizes.starts[-1]:
        raise ShapeError(f"a nested tensor of {int(sizes.starts[-1])} elements got {packed.shape[0]} values")
    arm()
    made = _new(NestedTensor)
    made._packed, made._sizes, made._place = packed, sizes, place
    made._counter = made._more = None
    return made


def rows(values: Tensor, index: np.ndarray) -> Tensor:
    """The rows of the values at an index of any shape."""
    if values.ndim == 1:
        return rows(values.reshape(-1, 1), index).reshape(index.shape)  # type: ignore[attr-defined]
    places = from_array(np.asarray(index, np.int64), values)
    return embedding_op.run(values, places, padding=None, by_frequency=False)



def _rebuild(packed: Tensor, starts: np.ndarray, place: int) -> NestedTensor:
    return nested(packed, Ragged(starts), place)
