"""The memory behind a tensor, as PyTorch's programs ask for it: its address, size and elements."""

from typing import Any

import numpy as np

from .backends import array_module, cuda, move
from .config import need
from .device import CPU, Device, as_device
from .dtypes import DType
from .errors import AutogradError, DeviceError, DTypeError, MissingExtraError
from .quiet import settle
from .tensor import Tensor, bump, counter_of, hand_out, wrap


def _memory(x: Tensor) -> Any:
    """All bytes of the array that owns the memory of ``x``."""
    hand_out(x)
    array = x._array
    if x.device.type == "meta":
        raise DeviceError("storage: a tensor on 'meta' has no memory")
    owner = array
    while isinstance(owner.base, type(array)) and owner.base.flags.c_contiguous:
        owner = owner.base
    if not owner.flags.c_contiguous:  # laid out otherwise, without gaps
        owner = owner.transpose(sorted(range(owner.ndim), key=lambda d: -owner.strides[d]))
    return owner.reshape(-1).view(np.uint8) if owner.size else owner.reshape(-1)[:0].view(np.uint8)


class UntypedStorage:
    """Bytes. Two tensors that share memory have storages of one ``data_ptr()``; indexing reads and writes it.

    >>> x = fw.arange(4)
    >>> x[1:].untyped_storage().nbytes(), x[1:].untyped_storage().data_ptr() == x.data_ptr()
    (32, True)
    """

    dtype: DType | None = None

    def __init__(self, x: Tensor) -> None:
        self._tensor, self._bytes = x, _memory(x)

    @property
    def device(self) -> Device:
        """Where the bytes lie."""
        return self._tensor.device

    @property
    def is_cuda(self) -> bool:
        """Whether they lie on a GPU."""
        return self.device.type == "cuda"

    def _elements(self) -> Any:
        return self._bytes

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._bytes.nbytes)

    def __sizeof__(self) -> int:
        """What ``sys.getsizeof`` says: the bytes are part of it, as in PyTorch."""
        return object.__sizeof__(self) + self.nbytes()

    def size(self) -> int:
        """The number of elements: of bytes here."""
        return len(self._elements())

    __len__ = size

    def element_size(self) -> int:
        """Bytes per element."""
        return int(self._elements().itemsize)

    def data_ptr(self) -> int:
        """The address of the first byte; 0 where there is none."""
        settle()
        if not self._bytes.size:
            return 0
        if self.is_cuda:
            return int(self._bytes.data.ptr)
        return int(self._bytes.__array_interface__["data"][0])

    def tolist(self) -> list:
        """The elements as Python numbers."""
        return self._elements().tolist()

    def __getitem__(self, i: Any) -> Any:
        found = self._elements()[i]
        return found.tolist()

    def __setitem__(self, i: Any, value: Any) -> None:
        settle()
        self._elements()[i] = value
        bump(self._tensor, "storage")

    def fill_(self, value: Any) -> "UntypedStorage":
        """Set all elements."""
        self[:] = value
        return self

    def copy_(self, source: "UntypedStorage", non_blocking: bool | None = None) -> "UntypedStorage":
        """Take the elements of another storage of this size."""
        if source.size() != self.size():
            raise ValueError(f"copy_: a storage of {self.size()} elements cannot take {source.size()}")
        self[:] = move(source._elements(), self.device)
        return self

    def clone(self) -> Any:
        """A storage of its own with the same elements."""
        return type(self)(wrap(self._elements().copy()))

    def cpu(self) -> Any:
        """In the memory of the CPU: itself where it is there."""
        return type(self)(wrap(move(self._elements(), CPU))) if self.is_cuda else self

    def is_shared(self) -> bool:
        """Whether other processes see it."""
        return self._tensor.is_shared()  # type: ignore[attr-defined]

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether the system may not move it: what ``pin_memory`` gave."""
        return is_pinned(self._tensor)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, UntypedStorage) and (self.data_ptr(), self.nbytes()) == (
            other.data_ptr(), other.nbytes())

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def __repr__(self) -> str:
        return f"{self.tolist()}\n[{type(self).__name__}(device={self.device}) of size {self.size()}]"


class TypedStorage(UntypedStorage):
    """The same memory as elements of a dtype.

    >>> fw.tensor([1.0, 2.0]).storage().tolist()
    [1.0, 2.0]
    """

    def __init__(self, x: Tensor) -> None:
        super().__init__(x)
        self.dtype = x.dtype

    def _elements(self) -> Any:
        return self._bytes.view(self._tensor._array.dtype)

    def untyped(self) -> UntypedStorage:
        """As bytes."""
        return UntypedStorage(self._tensor)

    _untyped_storage = property(untyped)


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory behind the tensor as bytes."""
    return UntypedStorage(self)


def storage(self: Tensor) -> TypedStorage:
    """The memory behind the tensor as elements of its dtype."""
    return TypedStorage(self)


def storage_type(self: Tensor) -> type:
    """The class of ``storage()``."""
    return TypedStorage


def is_storage(obj: Any) -> bool:
    """Whether ``obj`` is a storage.

    >>> fw.is_storage(fw.ones(1).storage()), fw.is_storage(fw.ones(1))
    (True, False)
    """
    return isinstance(obj, UntypedStorage)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same elements of the same memory."""
    return (self.data_ptr(), self.shape, self.stride()) == (tensor.data_ptr(), tensor.shape, tensor.stride())


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the system may not move the memory: what ``pin_memory`` gave."""
    return type(self._array) is np.ndarray and cuda.is_pinned(self._array)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in memory that the system does not move, for copies to a GPU; DeviceError without one."""
    if self.device.type != "cpu":
        raise DeviceError(f"pin_memory: only memory of the CPU is pinned, this tensor is on '{self.device}'")
    try:
        cuda.require(as_device("cuda" if device is None else device))
    except MissingExtraError as error:
        raise DeviceError(f"pin_memory: there is no GPU that copies from it: {error}") from error
    pinned = need("cupyx", "cuda12", "pin_memory").empty_pinned(self.shape, self._array.dtype)
    pinned[...] = self._array
    return wrap(pinned)


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None,
         stride: Any = None) -> Tensor:
    """Let the tensor see other memory: that of a tensor, of a storage, or none; returns it.

    source: a tensor of this dtype, whose shape is taken unless ``size`` is given, or a storage, all of which
    is seen as a vector then. size, stride, storage_offset: as ``as_strided`` takes them, from the beginning
    of the memory. Raises AutogradError where grad is required, DTypeError for another dtype, ShapeError for
    places outside the memory.

    >>> x, y = fw.arange(4), fw.zeros(0, dtype=fw.int64)
    >>> y.set_(x, 1, (2,), (2,)).fill_(7).tolist(), x
    ([7, 7], tensor([0, 7, 2, 7]))
    """
    if self._node is not None:
        raise AutogradError("set_: this tensor requires grad, and a change of its memory is not recorded; "
                            "use x.detach(), or x.data = other")
    if source is None:
        owner = seen = wrap(array_module(self._array).empty(0, self._array.dtype))
    elif isinstance(source, UntypedStorage):
        owner, seen = source._tensor, wrap(source._bytes.view(self._array.dtype))
    elif isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise DTypeError(f"set_: source is {source.dtype}, this tensor {self.dtype}; they must "
                             f"be of one dtype")
        owner, seen = source, source.detach()
        if size is not None:
            seen = wrap(_memory(source).view(source._array.dtype))
    else:
        raise TypeError(f"set_: source must be a Tensor or a storage, got {type(source).__name__}")
    if size is not None:
        if stride is None:
            stride = wrap(np.empty(size)).stride()  # type: ignore[attr-defined]
        seen = seen.as_strided(size, stride, storage_offset)  # type: ignore[attr-defined]
    self._array, self._more = seen._array, None
    self._counter = counter_of(owner)
    return self


for _method in (set_, untyped_storage, storage, storage_type, is_set_to, is_pinned, pin_memory):
    setattr(Tensor, _method.__name__, _method)
