"""SparseTensor: a dense tensor of values, and the pattern of their places.

The values are in the graph, not the sparse tensor: what is computed of it is computed of its values, by
records like any other, so derivatives of every order follow. ``requires_grad``, ``grad_fn`` and ``grad`` are
those of the values, the gradient with their pattern. There is no array of the elements: whatever asks for one
(an operation without a sparse form) raises a LayoutError that names the dense way.
"""

import math
import sys
from collections.abc import Iterable
from functools import wraps
from typing import Any

from ..autograd.frames import is_ours
from ..autograd.mode import no_grad
from ..backends import on_device
from ..device import Device
from ..dtypes import DType
from ..errors import AutogradError, LayoutError, ShapeError
from ..layouts import Layout, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..ops.record.torch_function import disabled
from ..printing import node_name
from ..size import Size
from ..sparse_door import sparse as door
from ..tensor import More, Tensor, wrap
from .pattern import Compressed, Coordinates, Pattern

_new = object.__new__


def there(function: Any) -> Any:
    """A function during which the device of the first tensor among its arguments is the current one."""
    @wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        with on_device(_first_array((*args, *settings.values()))):
            return function(*args, **settings)
    return call


def _first_array(args: Iterable) -> Any:
    for x in args:
        values = getattr(x, "_entries", x)
        if isinstance(values, Tensor):
            return values._array
        if isinstance(x, tuple) and (array := _first_array(x)) is not None:
            return array
    return None


COMPRESSED = {sparse_csr: ("row", False), sparse_csc: ("column", False),
              sparse_bsr: ("row", True), sparse_bsc: ("column", True)}


class SparseTensor(Tensor):
    """A tensor that stores some of its elements; the others are 0.

    Made by ``sparse_coo_tensor``, ``sparse_csr_tensor`` and their kin, by ``x.to_sparse()``, and as the
    gradient of an embedding with ``sparse=True``.

    >>> x = fw.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    >>> x @ fw.tensor([[1.0], [10.0]])
    tensor([[20.],
            [ 3.]])
    """

    __slots__ = ("_entries", "_pattern", "_size")
    # NumPy's functions refuse it, and its operators ask ours
    __array_ufunc__: Any = None  # type: ignore[assignment]
    __torch_function__ = disabled  # results are what operations make them, not tensors of this class
    base = None  # asked of gradients in backward: memory is never another's

    _entries: Tensor
    _pattern: Pattern
    _size: tuple[int, ...]

    # -- what it is ------------------------------------------------------------------------------

    @property
    def _array(self) -> Any:  # type: ignore[override]
        raise LayoutError(f"{_asked()}: a sparse tensor (layout {self.layout}, shape {list(self._size)}) is "
                          f"not taken here; use x.to_dense(), or x.values() for its values alone")

    @property
    def shape(self) -> Size:
        """The lengths of the dimensions, a tuple (`Size`)."""
        return Size(self._size)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._size)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dimension."""
        if dim is None:
            return Size(self._size)
        if not -len(self._size) <= dim < len(self._size):
            raise IndexError(f"size: dim={dim} is out of range for a tensor of {len(self._size)} dimensions")
        return self._size[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._size)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements, those that are not stored included."""
        return math.prod(self._size)

    nelement = numel

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return self._entries.dtype

    @property
    def device(self) -> Device:
        """Where the values lie."""
        return self._entries.device

    @property
    def itemsize(self) -> int:
        """Bytes per value."""
        return self._entries.itemsize

    def element_size(self) -> int:
        """Bytes per value."""
        return self._entries.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of the values and of what says where they lie."""
        p = self._pattern
        arrays = (p.indices,) if isinstance(p, Coordinates) else (p.starts, p.others)
        return self._entries.nbytes + sum(int(a.nbytes) for a in arrays)

    @property
    def is_cuda(self) -> bool:
        """Whether the values lie on a GPU."""
        return self._entries.is_cuda

    def is_floating_point(self) -> bool:
        """Whether the dtype is floating (complex is not)."""
        return self._entries.is_floating_point()

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._entries.is_complex()

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is COO, as PyTorch means it."""
        return isinstance(self._pattern, Coordinates)

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is CSR."""
        return self.layout is sparse_csr

    @property
    def layout(self) -> Layout:
        """How the values are stored."""
        return self._pattern.layout

    def __len__(self) -> int:
        if not self._size:
            raise TypeError("len() of a 0-dim tensor")
        return self._size[0]

    # -- its parts -------------------------------------------------------------------------------

    def sparse_dim(self) -> int:
        """The number of dimensions that are stored by coordinates."""
        return len(self._pattern.sizes)

    def dense_dim(self) -> int:
        """The number of dimensions that each value has."""
        return len(self._size) - len(self._pattern.sizes)

    def _nnz(self) -> int:
        return len(self._pattern)

    def is_coalesced(self) -> bool:
        """Whether the coordinates are in order, and none twice."""
        return self._coordinates("is_coalesced").coalesced

    def indices(self) -> Tensor:
        """The coordinates, (sparse_dim, nnz); AutogradError unless coalesced."""
        self._must_be_merged("indices")
        return wrap(self._coordinates("indices").indices)

    def values(self) -> Tensor:
        """The values, (nnz, *dense) or (nnz, rows, columns) of blocks, at their place in the graph."""
        if isinstance(self._pattern, Coordinates):
            self._must_be_merged("values")
        return self._entries

    def _indices(self) -> Tensor:
        return wrap(self._coordinates("_indices").indices)

    def _values(self) -> Tensor:
        return self._entries

    def crow_indices(self) -> Tensor:
        """Where each row begins, (rows + 1), of CSR and BSR."""
        return wrap(self._compressed("crow_indices", "row").starts)

    def col_indices(self) -> Tensor:
        """The column of each value, of CSR and BSR."""
        return wrap(self._compressed("col_indices", "row").others)

    def ccol_indices(self) -> Tensor:
        """Where each column begins, (columns + 1), of CSC and BSC."""
        return wrap(self._compressed("ccol_indices", "column").starts)

    def row_indices(self) -> Tensor:
        """The row of each value, of CSC and BSC."""
        return wrap(self._compressed("row_indices", "column").others)

    def _coordinates(self, name: str) -> Coordinates:
        if isinstance(self._pattern, Coordinates):
            return self._pattern
        raise LayoutError(f"{name}: this tensor has layout {self.layout}; use x.to_sparse_coo() first")

    def _compressed(self, name: str, by: str) -> Compressed:
        if isinstance(self._pattern, Compressed) and self._pattern.by == by:
            return self._pattern
        other = "csr() or to_sparse_bsr(size)" if by == "row" else "csc() or to_sparse_bsc(size)"
        raise LayoutError(f"{name}: this tensor has layout {self.layout}; use x.to_sparse_{other} first")

    def _must_be_merged(self, name: str) -> None:
        if not self._coordinates(name).coalesced:
            raise AutogradError(f"{name}: this tensor may hold a place twice or out of order (it is not "
                                f"coalesced); use x.coalesce().{name}(), or x._{name}() for them as they are")

    # -- its place in the graph ------------------------------------------------------------------

    @property
    def _node(self) -> Any:  # type: ignore[override]
        return self._entries._node

    @_node.setter
    def _node(self, node: Any) -> None:
        self._entries._node = node

    def _extras(self) -> More:
        return self._entries._extras()

    def requires_grad_(self, requires_grad: bool = True) -> "SparseTensor":
        """Start (or stop) gathering the gradient of the values; returns the tensor itself."""
        self._entries.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient with respect to the stored values, at their places."""
        g = self._entries.grad
        return None if g is None else sparse(self._pattern, g, self._size)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            if not isinstance(value, SparseTensor) or len(value._pattern) != len(self._pattern) \
                    or value._size != self._size:
                raise ShapeError(f"grad: a sparse tensor of shape {list(self._size)} with "
                                 f"{len(self._pattern)} "
                                 f"values takes a gradient with the same places, got {value!r:.60}")
            value = value._entries
        self._entries.grad = value

    @grad.deleter
    def grad(self) -> None:
        self._entries.grad = None

    def backward(self, gradient: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, inputs: Any = None) -> None:
        """Backward from the values; ``gradient`` is sparse with the same places."""
        if not isinstance(gradient, SparseTensor) or len(gradient._pattern) != len(self._pattern):
            raise AutogradError("backward: a sparse result needs a sparse gradient with the same places; "
                                "reduce it (e.g. framework.sparse.sum(x)) or use x.to_dense()")
        self._entries.backward(gradient._entries, retain_graph, create_graph, inputs)

    def detach(self) -> "SparseTensor":
        """The same memory outside the graph."""
        return sparse(self._pattern, self._entries.detach(), self._size)

    def detach_(self) -> "SparseTensor":
        """Cut this tensor out of its graph."""
        self._entries = self._entries.detach()
        return self

    @property
    def data(self) -> Tensor:
        """The same memory outside the graph; changes to it are not noticed by autograd."""
        return sparse(self._pattern, self._entries.data, self._size)

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, SparseTensor):
            raise TypeError(f"data: wanted a sparse tensor, got {type(value).__name__}")
        self._entries.data = value._entries
        self._pattern, self._size = value._pattern, value._size

    @property
    def _version(self) -> int:
        return self._entries._version

    def register_hook(self, hook: Any) -> Any:
        """Call ``hook`` with the gradient, a sparse tensor, when it is known."""
        pattern, size = self._pattern, self._size

        def sparsely(g: Tensor) -> Any:
            result = hook(sparse(pattern, g, size))
            return None if result is None else result._entries
        return self._entries.register_hook(sparsely)  # type: ignore[attr-defined]

    # -- copies ----------------------------------------------------------------------------------

    def _on_values(self, method: str, *args: Any, **settings: Any) -> "SparseTensor":
        made = getattr(self._entries, method)(*args, **settings)
        return self if made is self._entries else sparse(self._pattern, made, self._size)

    def clone(self, *, memory_format: Any = None) -> "SparseTensor":
        """A copy of the values, through which gradients flow; patterns never change and are shared."""
        return self._on_values("clone")

    def to(self, *args: Any, **settings: Any) -> "SparseTensor":
        """The values in another dtype or on another device; the tensor itself if nothing changes."""
        made = self._entries.to(*args, **settings)  # type: ignore[attr-defined]
        if made is self._entries:
            return self
        pattern = self._pattern if made.device == self.device else moved(self._pattern, made.device)
        return sparse(pattern, made, self._size)

    def cpu(self) -> "SparseTensor":
        """The tensor in host memory."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> "SparseTensor":
        """The tensor on a CUDA device."""
        return self.to("cuda" if device is None else device)

    def contiguous(self, memory_format: Any = None) -> "SparseTensor":
        """The tensor itself: values lie in the order of their places."""
        return self

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the values lie in order."""
        return self._entries.is_contiguous()

    def share_memory_(self) -> "SparseTensor":
        """Move the values to memory that processes share."""
        self._entries.share_memory_()  # type: ignore[attr-defined]
        return self

    def numpy(self, *, force: bool = False) -> Any:
        """Raises: NumPy has no sparse arrays."""
        raise LayoutError("numpy: NumPy has no sparse arrays; use x.to_dense().numpy(), or "
                          "framework.sparse.to_scipy(x)")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        """Raises: lists would hold all elements."""
        raise LayoutError("tolist: lists hold all elements; use x.to_dense().tolist()")

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ShapeError(f"the truth of a tensor of shape {list(self._size)} is ambiguous")
        return bool(self._entries.any())  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return id(self)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuild, door().taken_apart(self)

    def __deepcopy__(self, memo: dict) -> "SparseTensor":
        if id(self) not in memo:
            memo[id(self)] = sparse(self._pattern, self._entries.__deepcopy__(memo), self._size)
        return memo[id(self)]

    def __copy__(self) -> "SparseTensor":
        return sparse(self._pattern, self._entries, self._size)

    # -- text ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        p = self._pattern
        if isinstance(p, Coordinates):
            parts = {"indices": p.indices}
        elif p.by == "row":
            parts = {"crow_indices": p.starts, "col_indices": p.others}
        else:
            parts = {"ccol_indices": p.starts, "row_indices": p.others}
        with no_grad():
            shown = [("tensor(" if not i else " " * 7) + f"{name}={_indented(wrap(a), len(name) + 8)}"
                     for i, (name, a) in enumerate(parts.items())]
            shown.append(f"       values={_indented(self._entries.detach(), 14)}")
        notes = [f"size={self._size}", f"nnz={len(p)}", f"layout={p.layout}"]
        if self.grad_fn is not None:
            notes.append(f"grad_fn=<{node_name(self.grad_fn)}>")
        elif self.requires_grad:
            notes.append("requires_grad=True")
        return ",\n".join(shown) + f",\n       {', '.join(notes)})"


def _indented(x: Tensor, by: int) -> str:
    return repr(x).replace("\n", "\n" + " " * by)


def sparse(pattern: Pattern, values: Tensor, size: tuple[int, ...] | None = None) -> SparseTensor:
    """A sparse tensor of these values, which stay at their place in the graph."""
    made = _new(SparseTensor)
    made._entries, made._pattern = values, pattern
    made._counter = made._more = None
    if size is None:
        width = values.ndim - 1 if isinstance(pattern, Coordinates) else 0
        size = (*pattern.sizes, *values.shape[values.ndim - width:])
    made._size = tuple(size)
    return made


def moved(pattern: Pattern, device: Device) -> Pattern:
    """The pattern on a device, worked out anew there."""
    from_cpu: Any = wrap
    if isinstance(pattern, Coordinates):
        indices = from_cpu(pattern.indices).to(device)._array
        return Coordinates(indices, pattern.sizes, pattern.coalesced)
    starts, others = from_cpu(pattern.starts).to(device)._array, from_cpu(pattern.others).to(device)._array
    return Compressed(starts, others, pattern.sizes, pattern.by, pattern.block if pattern.blocked else None)


def _rebuild(told: dict, tensors: dict) -> SparseTensor:
    return door().put_together(**told, **tensors)


def _asked() -> str:
    """What asked for an array: the innermost record on the way, or the first function of ours."""
    frame, name = sys._getframe(2), "this operation"
    while frame is not None and is_ours(frame.f_code.co_filename):
        op = frame.f_locals.get("op") or frame.f_locals.get("self")
        if op is not None and isinstance(getattr(op, "name", None), str) and hasattr(op, "kernel"):
            return str(op.name)
        if frame.f_code.co_name not in ("call", "function", "hand"):  # what stands around functions
            name = frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return name


