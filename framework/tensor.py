"""Tensor: one NumPy or CuPy array, a version, and a place in the graph.

This file knows no op: the op records bind their methods here (see ``ops/__init__``), so the whole
list of methods is in ``tensor.pyi``.
"""

import warnings
import weakref
from collections.abc import Callable
from types import NoneType
from typing import Any

import numpy as np

from . import _native, dtypes
from .backends import backend_of, cuda, meta, move
from .backends.capsule import export_bfloat16
from .device import CPU, Device, as_device
from .dtypes import BY_NUMPY, FLOATING, INEXACT, DType, of_numpy
from .errors import AutogradError, DeviceError, DTypeError, ShapeError, SharingError, kind_of
from .memory_formats import MemoryFormat, checked, contiguous_format, lies_in
from .node import Dual, Leaf, Node, Pick, PlainNode
from .quiet import quiet
from .seam import MAKE, Event, Maker, intercepted
from .size import KNOWN, Size, known


class More:
    """What only few tensors have: a stored gradient, the tensor that they are a view of, views of them.

    Every view gets one, which the kernels make where it was taken by them.
    """

    __slots__ = ("grad", "leaf", "base", "links", "views", "followed")

    grad: "Tensor | None"
    leaf: Leaf | None
    base: "Tensor | None"
    links: tuple | None  # (those of the view this is a view of, *the last step), see ``step_of``
    views: list[weakref.ref] | None
    followed: bool  # whether a view of it may be in the graph: a write has to look for those

    def __init__(self) -> None:
        self.grad = self.leaf = self.base = self.links = self.views = None
        self.followed = False

    @property
    def chain(self) -> tuple:
        """The steps, (op, settings), that lead from the base to this view."""
        steps = []
        links = self.links
        while links is not None:
            steps.append(step_of(links))
            links = links[0]
        return tuple(reversed(steps))

    @chain.setter
    def chain(self, steps: tuple) -> None:
        self.links = None
        for op, settings in steps:
            self.links = (self.links, op, None, settings)


def step_of(links: tuple) -> tuple[Any, dict]:
    """The last step of these links, (op, settings).

    It is kept as the op, the name of its only setting and that one, which makes a view quicker to create than
    a dict would; or as the op, None and the dict of its settings; a piece is kept as the op of slices, a
    dimension, and where along it the piece begins and ends.
    """
    if len(links) == 5:
        _, op, dim, start, stop = links
        return op, {"key": (*(slice(None),) * dim, slice(start, stop))}
    _, op, name, value = links
    return op, value if name is None else {name: value}


class Tensor:
    """An n-dimensional array that can record how it was computed.

    Make one with ``framework.tensor(data)``, ``zeros``, ``randn`` and their kin.

    >>> x = fw.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[2., 4.],
            [6., 8.]])
    """

    __slots__ = ("_array", "_node", "_counter", "_more", "_promise", "__weakref__")
    __array_priority__ = 1000.0

    _array: Any
    _node: Node | PlainNode | Pick | Leaf | None
    _counter: list | None
    _more: More | None

    # -- what it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The lengths of the dimensions, a tuple (`Size`)."""
        shape = self._array.shape
        try:
            return KNOWN[shape]
        except KeyError:
            return known(shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return BY_NUMPY[self._array.dtype]

    @property
    def device(self) -> Device:
        """Where the elements lie."""
        array = self._array
        return CPU if type(array) is np.ndarray else backend_of(array).device_of(array)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.nbytes

    @property
    def is_cuda(self) -> bool:
        """Whether the elements lie on a GPU."""
        return not isinstance(self._array, np.ndarray) and backend_of(self._array) is cuda

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dimension."""
        shape = self._array.shape
        if dim is None:
            return self.shape
        if not -len(shape) <= dim < len(shape):
            raise IndexError(f"size: dim={dim} is out of range for a tensor of {len(shape)} dimensions")
        return shape[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return int(self._array.size)

    nelement = numel

    def element_size(self) -> int:
        """Bytes per element."""
        return self._array.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Elements to step in memory for one step along each dimension (or along ``dim``)."""
        array = self._array
        size = array.itemsize
        strides = tuple([s // size for s in array.strides])  # a generator would take twice as long
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: MemoryFormat = contiguous_format) -> bool:
        """Whether the elements lie in memory in row-major order, or as the format says, without gaps."""
        if memory_format is contiguous_format:
            return bool(self._array.flags.c_contiguous)
        return lies_in(self._array, checked(memory_format, "is_contiguous"))

    def data_ptr(self) -> int:
        """The address of the first element."""
        if quiet.settle is not None:
            quiet.settle()
        if self.is_cuda:
            return int(self._array.data.ptr)
        if type(self._array) is meta.MetaArray:
            return 0
        return int(self._array.__array_interface__["data"][0])

    def is_floating_point(self) -> bool:
        """Whether the dtype is floating (complex is not)."""
        return self._array.dtype.kind in FLOATING

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._array.dtype.kind == "c"

    def get_device(self) -> int:
        """The CUDA device number, or -1 on the CPU."""
        index = self.device.index
        return -1 if index is None else index

    # -- its place in the graph ------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether what is computed with it is recorded; set it on leaves only."""
        return self._node is not None and type(self._node) is not Dual

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Start (or stop) gathering this leaf's gradient in ``.grad``; returns the tensor itself."""
        node = self._node
        if not requires_grad:
            if type(node) not in (NoneType, Leaf, Dual):
                raise AutogradError("requires_grad_(False) is for leaf tensors; this one was computed "
                                    "(use .detach() for a copy outside the graph)")
            if type(node) is Leaf:
                self._extras().leaf = node
                self._node = None
        elif node is None or type(node) is Dual:
            if self._array.dtype.kind not in INEXACT:
                raise AutogradError(f"only floating and complex tensors can require gradients, this one is "
                                    f"{self.dtype}; convert it first, e.g. x.float()")
            more = self._more
            self._node = more.leaf if more is not None and more.leaf is not None else Leaf(weakref.ref(self))
            if more is not None and more.grad is not None:
                self._node.grad, more.grad = more.grad, None
            if node is not None:  # its tangents stay
                self._node.tangents = dict(node.tangents)
                for level in node.tangents:
                    level.nodes.add(self._node)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether nothing recorded has made it: `backward` gathers ``.grad`` here."""
        return type(self._node) in (NoneType, Leaf, Dual)

    @property
    def grad_fn(self) -> Node | PlainNode | Pick | None:
        """The node of the graph that made it; None for leaves."""
        node = self._node
        return None if type(node) in (Leaf, Dual) else node

    @property
    def grad(self) -> "Tensor | None":
        """The gradient that `backward` has gathered; None before, and for tensors that gather none."""
        if type(self._node) is Leaf:
            return self._node.grad
        more = self._more
        if self._node is None:
            return None if more is None else more.grad if more.leaf is None else more.leaf.grad
        if more is not None and more.grad is not None:
            return more.grad
        self._warn_of_no_grad()
        return None

    @grad.setter
    def grad(self, value: "Tensor | None") -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad must be a Tensor or None, got {kind_of(value)}")
            check_fits(value, self, "grad")
        if type(self._node) is Leaf:
            self._node.grad = value
        elif self._node is None and self._more is not None and self._more.leaf is not None:
            self._more.leaf.grad = value
        elif value is not None or self._more is not None:
            self._extras().grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _warn_of_no_grad(self) -> None:
        """A computed tensor gathers no gradient unless it was asked to: reading it is mostly a mistake."""
        node = self._node
        if type(node) is not Dual and not any(getattr(h, "retains", False) for h in node.hooks or ()):
            warnings.warn(f"grad: this tensor of shape {list(self.shape)} was computed (by {node.name()}) "
                          "and keeps no gradient, so .grad is None; call retain_grad() on it before "
                          "backward, or read the leaf's", stacklevel=3)

    @property
    def data(self) -> "Tensor":
        """The same memory outside the graph; changes to it are not noticed by autograd."""
        hand_out(self)
        return wrap(self._array)

    @data.setter
    def data(self, value: "Tensor") -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"data must be a Tensor, got {kind_of(value)}")
        if self._node is not None and value._array.dtype.kind not in INEXACT:
            raise DTypeError(f"data of {value.dtype} cannot replace that of a tensor that requires grad")
        hand_out(value)
        self._array = value._array

    @property
    def _version(self) -> int:
        return 0 if self._counter is None else self._counter[0]

    @property
    def _base(self) -> "Tensor | None":
        return None if self._more is None else self._more.base

    def _is_view(self) -> bool:
        return self._base is not None

    def detach(self) -> "Tensor":
        """The same memory outside the graph; in-place changes to either are noticed by backward."""
        hand_out(self)
        out = wrap(self._array)
        out._counter = counter_of(self)
        return out

    def _extras(self) -> More:
        more = self._more
        if more is None:
            more = self._more = More()
        return more

    # -- out of the framework --------------------------------------------------------------------

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The tensor as a NumPy array over the same memory.

        Raises AutogradError if it requires grad and DeviceError if it is on a GPU, unless
        ``force=True``, which detaches and copies to the host.
        """
        if self._node is not None and not force:
            what = "requires grad" if self.requires_grad else "has a tangent"
            raise AutogradError(f"this tensor {what}, and NumPy would not record what happens to it; use "
                                f"x.detach().numpy()")
        hand_out(self)
        if quiet.settle is not None:
            quiet.settle()
        if not isinstance(self._array, np.ndarray):
            if not force and self.is_cuda:
                raise DeviceError(f"this tensor is on {self.device}; use x.cpu().numpy()")
            return move(self._array, as_device("cpu"))
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ValueError(f"cannot convert {array.dtype} to {dtype} without a copy")
        return np.array(array, dtype=dtype, copy=True) if copy else array.astype(
            array.dtype if dtype is None else dtype, copy=False)

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """A DLPack capsule over the same memory, which it keeps alive; refused where grad is required."""
        if self._node is not None:
            raise SharingError("this tensor requires grad and cannot be exported, for what others do to it "
                              "is not recorded; use x.detach()")
        if quiet.settle is not None:
            quiet.settle()
        wanted = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        export = export_bfloat16 if self._array.dtype.kind == "V" else type(self._array).__dlpack__
        return export(self._array, **{k: v for k, v in wanted.items() if v is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def item(self) -> Any:
        """The only element as a Python number; raises ShapeError for any other number of elements."""
        if self._array.size != 1:
            raise ShapeError(f"item: wanted a tensor of one element, this one has shape "
                             f"{list(self.shape)}; use .tolist(), or reduce it first")
        array = self._array
        if type(array) is not np.ndarray:
            cuda.about_to_read(array, "item")
        return array.item()

    def tolist(self) -> Any:
        """The elements as (nested) Python lists, or a number for a 0-dim tensor."""
        if type(self._array) is not np.ndarray:
            cuda.about_to_read(self._array, "tolist")
        return self._array.tolist()

    def _value(self, what: str) -> Any:
        if type(self._array) is not np.ndarray:
            cuda.about_to_read(self._array, what)
        return self._array.item()

    def _number(self, kind: Callable) -> Any:
        if self._array.size != 1:
            raise ShapeError(f"{kind.__name__}(): only a tensor of one element converts to a Python "
                             f"number, this one has shape {list(self.shape)}")
        return kind(self._value(kind.__name__))

    def __float__(self) -> float:
        return self._number(float)

    def __int__(self) -> int:
        return self._number(int)

    def __complex__(self) -> complex:
        return self._number(complex)

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iu":
            raise DTypeError(f"only an integer tensor can be an index, this one is {self.dtype}")
        return self._number(int)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ShapeError(f"the truth of a tensor of shape {list(self.shape)} is ambiguous; "
                             f"use x.any() or x.all()")
        return bool(self._value("bool"))

    def __dir__(self) -> list[str]:
        """What completion shows: no names that begin with one underscore."""
        return [name for name in super().__dir__() if not name.startswith("_") or name.startswith("__")]

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-dim tensor")
        return self._array.shape[0]

    __hash__ = object.__hash__  # by identity; set again, since a class with its own ``__eq__`` loses it

    def __reduce_ex__(self, protocol: Any) -> tuple:
        state = self.__dict__ if hasattr(self, "__dict__") else None
        array = np.array(move(self._array, as_device("cpu")), order="C")
        args = (type(self), array, str(self.device), self.requires_grad)
        return (_rebuild, args, state) if state else (_rebuild, args)

    def __deepcopy__(self, memo: dict) -> "Tensor":
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise AutogradError("deepcopy is for leaf tensors (a computed one drags its graph along); "
                                "use x.detach().clone()")
        copy = wrap(_copied(self._array, memo), type(self))
        memo[id(self)] = copy
        if self._counter is not None:
            copy._counter = memo.setdefault(id(self._counter), [0, None])
        copy.requires_grad_(self.requires_grad)
        if self.grad is not None:
            copy.grad = self.grad.__deepcopy__(memo)
        if hasattr(self, "__dict__"):
            copy.__dict__.update(self.__dict__)
        return copy

    def __copy__(self) -> "Tensor":
        hand_out(self)
        copy = wrap(self._array, type(self))
        copy._counter = counter_of(self)
        return set_node(copy, self._node)


_new = object.__new__


def wrap(array: Any, cls: type = Tensor, node: Any = None) -> Tensor:
    """A tensor over ``array``, which must be an array of a backend (never a NumPy scalar)."""
    t = _new(cls)
    t._array = array
    t._node = node
    t._counter = None
    t._more = None
    return t


if hasattr(_native.module, "set_up_wrap"):
    wrap = _native.module.set_up_wrap(Tensor, wrap)


def made(maker: Maker, array: Any, *data: Any) -> Tensor:
    """A new tensor, over what the function of this record made of ``data`` that are no tensors."""
    t = wrap(array)
    if quiet.run is None:
        return intercepted(Event(MAKE, maker, data, {}), lambda *_: t)
    return t


def _copied(array: Any, memo: dict) -> Any:
    """A copy for ``deepcopy``, in which arrays over one memory stay that: the memory is copied once.

    Memory that is not NumPy's own (a mapped file, say) is not copied as a whole, nor is that of a GPU.
    """
    if not isinstance(array, np.ndarray):
        return array.copy()
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if owner.base is not None:
        return array.copy()
    twin = memo.setdefault(id(owner), None)
    if twin is None:
        twin = memo[id(owner)] = owner.copy(order="K")
    if array is owner:
        return twin
    start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, twin.ravel(order="K"), start, array.strides)


def set_node(t: Tensor, node: Any) -> Tensor:
    """Let this be the node of ``t``."""
    t._node = node
    if type(node) is Dual:
        node.owners.append(weakref.ref(t))
    return t


def as_array(value: Any) -> Any:
    """A kernel's result as an array: NumPy gives scalars where the result has no dimension."""
    kind = type(value)
    if kind is np.ndarray or kind is cuda.array_type:  # a GPU's takes 0.2 us to say that it is no number
        return value
    return np.asarray(value) if isinstance(value, (np.generic, int, float, complex)) else value


def as_tensor(value: Any) -> Tensor:
    """The tensor itself, or a tensor over an array or NumPy scalar."""
    return value if isinstance(value, Tensor) else wrap(as_array(value))


def check_fits(value: Tensor, t: Tensor, what: str) -> None:
    """Raise unless ``value``, a gradient or tangent of ``t``, has its shape, dtype and device."""
    if type(value) is type(t) is Tensor:  # nearly every call: no need of properties
        have, want = value._array, t._array
        if type(have) is type(want) is np.ndarray and have.shape == want.shape and have.dtype == want.dtype:
            return
    if value.shape != t.shape:
        raise ShapeError(f"{what} of shape {list(value.shape)} does not fit a tensor of shape "
                         f"{list(t.shape)}")
    if value.dtype is not t.dtype:
        raise DTypeError(f"{what} of {value.dtype} does not fit a tensor of {t.dtype}")
    if not dtypes.plain and value.device != t.device:
        raise DeviceError(f"{what} on {value.device} does not fit a tensor on {t.device}")


def counter_of(t: Tensor) -> list:
    """The version counter of ``t``: [changes so far, last op that changed it], shared with views."""
    counter = t._counter
    if counter is None:
        counter = t._counter = [0, None]
    return counter


def keep_result(t: Tensor) -> None:
    """Let the call that wrote ``t`` in place keep a copy, if backward wants its result.

    It keeps the memory of ``t`` itself, so that activations in place take none besides, until ``t`` is to be
    changed again, or is handed out to where changes are not noticed.
    """
    node, counter = t._node, t._counter
    if counter is None or not counter[0] or type(node) is not Node or not node.kept or not node.versions:
        return
    array = t._array
    for name, kept in node.kept.items():
        if kept is array:
            if any(c is counter and n == counter[0] for c, n in node.versions):  # else backward tells of it
                node.kept[name] = array.copy(order="K")
                own = ([0, None], 0)
                node.versions = [own if stamp[0] is counter else stamp for stamp in node.versions]
            return


def hand_out(t: Tensor) -> None:
    """Call it before the memory of ``t`` goes to where changes are not noticed, or not as those of ``t``."""
    more = t._more
    owner = t if more is None or more.base is None else more.base
    if owner._node is not None:
        keep_result(owner)


def bump(t: Tensor, name: str) -> None:
    """Count a change of the memory of ``t``, by ``name``."""
    counter = t._counter  # ``counter_of``, written out
    if counter is None:
        counter = t._counter = [0, None]
    counter[0] += 1
    counter[1] = name if quiet.site is None else quiet.site(name)


def _rebuild(cls: type, array: np.ndarray, device: str, requires_grad: bool) -> Tensor:
    target = as_device(device)
    of_numpy(array.dtype)  # a fresh process does not know bfloat16 yet
    # this may be the first tensor of a class that overrides functions: they have to ask from now on
    return wrap(move(array, target)).as_subclass(cls).requires_grad_(requires_grad)  # type: ignore[attr-defined]
