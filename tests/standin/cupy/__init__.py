"""A stand-in for CuPy over NumPy, for machines without a GPU: two devices, the same refusals.

It has the names of CuPy 14 and no others, its functions take the arguments CuPy's take, its arrays
refuse to become NumPy arrays by themselves or to meet them, and carry a device id. It computes nothing
on a GPU and says nothing about speed. Where CuPy is lenient by chance (NumPy arrays as indices) it is
strict.
"""

import contextlib
import ctypes as _ctypes
import sys
import threading
import types
import weakref
from functools import partial
from typing import Any

import cupyx as _cupyx
import numpy as _np

from . import counts as _counts
from . import cublas as _cublas
from . import graphs as _graphs
from . import memory as _memory
from . import names as _names
from . import nccl as _nccl
from . import nvtx as _nvtx
from . import raw as _raw
from . import streams as _streams
from . import strict as _strict

__version__ = "14.2.0+standin"
_DEVICES = 2
_NO_CONVERSION = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct "
    "a NumPy array explicitly."
)


class _Current(threading.local):
    def __init__(self) -> None:
        self.stack = [0]


_current = _Current()


class Device:
    """A device number; ``with Device(1):`` makes it the current one."""

    def __init__(self, device: Any = None) -> None:
        self.id = _current.stack[-1] if device is None else int(device)

    def __enter__(self) -> "Device":
        if not 0 <= self.id < _DEVICES:
            raise cuda.runtime.CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        _current.stack.append(self.id)
        return self

    def __exit__(self, *exception: Any) -> None:
        _current.stack.pop()

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def use(self) -> None:
        """Make it the current device from here on."""
        _current.stack[-1] = self.id

    def synchronize(self) -> None:
        """Wait for all streams."""
        _counts.wait("synchronize")
        _streams.wait_for_all()


def _here(array: Any) -> None:
    """Kernels run on the current device, with arrays of it."""
    if array._device != _current.stack[-1]:
        raise ValueError(f"Array device must be same as the current device: array device = {array._device} "
                         f"while current = {_current.stack[-1]}")


def _unwrap(value: Any) -> Any:
    """CuPy arrays as the NumPy arrays inside; NumPy arrays are refused."""
    if isinstance(value, ndarray):
        _here(value)
        if _streams.used:
            _use(value, False)
        return value._a
    if isinstance(value, _np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (list, tuple)):
        return type(value)([_unwrap(v) for v in value]) if not hasattr(value, "_fields") else value
    return value


def _use(array: "ndarray", writes: bool) -> None:
    """The current stream reads or writes the memory of an array."""
    block = getattr(array if array._parent is None else array._parent, "_block", None)
    if block is not None and _graphs.recording is not None:
        _graphs.recording.append(partial(block.uses.use, _counts.caller(), writes))
    elif block is not None:
        block.uses.use(_counts.caller(), writes)


_places: Any = weakref.WeakValueDictionary()  # arrays by their addresses


def _use_at(address: int, writes: bool) -> None:
    """The current stream reads or writes the memory at an address."""
    for start, array in list(_places.items()):
        if start <= address < start + array._a.nbytes:
            _use(array, writes)


def _arrays(values: Any) -> list:
    found = []
    for v in values:
        if isinstance(v, ndarray):
            found.append(v)
        elif isinstance(v, (list, tuple)):
            found += _arrays(v)
    return found


def _wrap(value: Any, sources: list, out: Any = None) -> Any:
    """NumPy's results as CuPy arrays of the current device; views know their base."""
    if isinstance(out, ndarray) and value is out._a:
        if _streams.used:
            _use(out, True)
        return out
    if isinstance(value, (_np.ndarray, _np.generic)):
        array = _np.asarray(value)
        base = None
        if array.base is not None or any(array is s._a for s in sources):
            base = next((s for s in sources if _np.may_share_memory(array, s._a)), None)
        return _new(array, _current.stack[-1], base if base is None or base.base is None else base.base)
    if isinstance(value, tuple):
        parts = [_wrap(v, sources) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [_wrap(v, sources) for v in value]
    return value


def _poisoned(array: _np.ndarray) -> None:
    """Fill memory that nobody has written with what nobody wants: nan, and the number -1."""
    if array.size and array.flags.c_contiguous:
        array.reshape(-1).view(_np.uint8)[...] = 1 if array.dtype == bool else 255


def _is_view(result: Any, source: _np.ndarray) -> bool:
    """Whether a result is memory of the source's."""
    first = result[0] if isinstance(result, (tuple, list)) and result else result
    return isinstance(first, _np.ndarray) and first.size > 0 and _np.may_share_memory(first, source)


_pool = _memory.MemoryPool(lambda: _current.stack[-1])
_allocators = [_pool.malloc]


@contextlib.contextmanager
def _using_allocator(allocator: Any) -> Any:
    _allocators.append(allocator)
    try:
        yield
    finally:
        _allocators.remove(allocator)


def get_default_memory_pool() -> Any:
    """The pool of all devices."""
    return _pool


def _new(array: _np.ndarray, device: int, base: Any = None) -> "ndarray":
    self = object.__new__(ndarray)
    self._a, self._device, self._parent = array, device, base
    if _graphs.recording is not None:
        _graphs.arrays.append(array)
    if base is None:
        if array.nbytes:
            _places[array.__array_interface__["data"][0]] = self
        _current.stack.append(device)
        try:
            self._block = _memory.block_of(_allocators[-1], array)
            if _streams.used:
                _use(self, True)
        finally:
            _current.stack.pop()
    return self


class _Memory:
    """A pointer into the memory of an array; ``pointer + bytes`` is another."""

    __slots__ = ("owner", "device_id", "ptr", "root", "mem")

    def __init__(self, array: _np.ndarray, offset: int, owner: "ndarray") -> None:
        self.owner, self.device_id = owner, owner._device
        self.ptr = array.__array_interface__["data"][0] + offset
        while isinstance(array.base, _np.ndarray):
            array = array.base
        self.root = array
        whole = owner if owner._parent is None else owner._parent
        self.mem = types.SimpleNamespace(
            ptr=array.__array_interface__["data"][0],
            size=array.nbytes,
            device_id=owner._device,
            block=getattr(whole, "_block", None),
        )

    def __add__(self, offset: int) -> "_Memory":
        return _Memory(self.root, self.ptr - self.mem.ptr + offset, self.owner)

    def __sub__(self, offset: int) -> "_Memory":
        return self + -offset

    def seen_as(self, shape: Any, dtype: Any, strides: Any) -> _np.ndarray:
        """The memory from here on as an array."""
        root = self.root if self.root.flags.c_contiguous else self.root.T
        return _np.ndarray(
            shape, dtype, root.reshape(-1).view(_np.uint8), self.ptr - self.mem.ptr, strides
        )


class _Flags:
    def __init__(self, array: _np.ndarray) -> None:
        self.c_contiguous, self.f_contiguous = array.flags.c_contiguous, array.flags.f_contiguous
        self.owndata, self.forc, self.fnc = array.flags.owndata, array.flags.forc, array.flags.fnc


class ndarray:
    """An array of a device."""

    __slots__ = ("_a", "_device", "_parent", "_block", "__weakref__")
    __array_ufunc__ = None  # NumPy's functions and arrays do not meet these
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __new__(
        cls, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> "ndarray":
        array = (
            _np.zeros(shape, dtype, order) if memptr is None else memptr.seen_as(shape, dtype, strides)
        )
        return _new(array, _current.stack[-1])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(_NO_CONVERSION)

    shape = property(lambda self: self._a.shape, lambda self, value: setattr(self._a, "shape", value))
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    itemsize = property(lambda self: self._a.itemsize)
    nbytes = property(lambda self: self._a.nbytes)
    strides = property(lambda self: self._a.strides)
    flags = property(lambda self: _Flags(self._a))
    _c_contiguous = property(lambda self: self._a.flags.c_contiguous)
    data = property(lambda self: _Memory(self._a, 0, self))
    device = property(lambda self: Device(self._device))
    base = property(lambda self: self._parent)
    T = property(lambda self: self._view(self._a.T))
    mT = property(lambda self: self._view(self._a.mT))
    real = property(lambda self: self._view(self._a.real))
    imag = property(lambda self: self._view(self._a.imag))

    def _view(self, array: _np.ndarray) -> "ndarray":
        return _new(array, self._device, self.base if self.base is not None else self)

    def get(
        self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True
    ) -> _np.ndarray:
        """A copy in host memory; into pinned memory, without waiting, where that is asked for."""
        if _streams.used:
            _use(self, False)
        if blocking or out is None or not _is_pinned(out):
            _counts.wait("get")
            _streams.merge(_streams.host, _streams.current.stream.clock)
            return self._a.copy(order)
        out[...] = self._a
        return out

    def set(self, array: _np.ndarray, stream: Any = None) -> None:
        """Copy from host memory."""
        _counts.copy("set")
        _graphs.refuse_copies()
        self._a[...] = array

    def item(self, *args: Any) -> Any:
        _counts.wait("item")
        return self._read().item(*args)

    def tolist(self) -> Any:
        _counts.wait("tolist")
        return self._read().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        _counts.wait("tobytes")
        return self._a.tobytes(order)

    def _read_here(self) -> _np.ndarray:
        if _streams.used:
            _use(self, False)
        return self._a

    def _read(self) -> _np.ndarray:
        if _streams.used:
            _use(self, False)
            _streams.merge(_streams.host, _streams.current.stream.clock)
        return self._a

    def fill(self, value: Any) -> None:
        _here(self)
        if _streams.used:
            _use(self, True)
        _counts.launch("fill")
        _graphs.run(self._a.fill, (_unwrap(value),), {}, self._a)

    def __getattr__(self, name: str) -> Any:
        if name not in _names.NDARRAY or name.startswith("_"):
            raise AttributeError(f"'cupy.ndarray' object has no attribute '{name}'")
        method = getattr(self._a, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if "where" in kwargs or "initial" in kwargs:
                raise TypeError(f"{name}() got an unexpected keyword argument 'where' or 'initial'")
            if _streams.used:
                _use(self, name in _WRITING)
            result = _graphs.run(
                method, [_unwrap(v) for v in args], {k: _unwrap(v) for k, v in kwargs.items()},
                _written(kwargs) if name not in _WRITING else self._a,
            )
            if name == "diagonal" and self._a.flags.writeable:
                result.flags.writeable = True  # NumPy's is read-only, CuPy's is not
            is_view = _is_view(result, self._a)
            if not is_view and self.size:
                _here(self)
            _counts.result_of(name, is_view)
            with Device(self._device):
                return _wrap(result, [self], kwargs.get("out"))

        return call

    def __getitem__(self, index: Any) -> "ndarray":
        index = _around(self._a.shape, _unwrap(index))
        part = _graphs.run(self._a.__getitem__, (index,), {})
        if not _is_view(part, self._a) and not isinstance(part, _np.generic) and part.size:
            _here(self)
        with Device(self._device):
            if _streams.used and not _is_view(part, self._a):
                _use(self, False)
            if isinstance(part, _np.generic):  # a view of no dimensions, where NumPy copies out a scalar
                part = self._a[(*index, ...) if isinstance(index, tuple) else (index, ...)]
            _counts.gathered("getitem", index, _is_view(part, self._a))
            return _wrap(part, [self])

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, _np.ndarray) and value.size:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        _here(self)
        index = _around(self._a.shape, _unwrap(index))
        _counts.gathered("setitem", index, False)
        if _streams.used:
            _use(self, True)
        _graphs.run(self._a.__setitem__, (index, _unwrap(value)), {}, self._a)

    def __len__(self) -> int:
        return len(self._a)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self._a)))

    def __bool__(self) -> bool:
        _counts.wait("bool")
        return bool(self._read())

    def __int__(self) -> int:
        _counts.wait("int")
        return int(self._read())

    def __float__(self) -> float:
        _counts.wait("float")
        return float(self._read())

    def __complex__(self) -> complex:
        _counts.wait("complex")
        return complex(self._a)

    def __repr__(self) -> str:
        _counts.wait("repr")
        return repr(self._a)

    def __str__(self) -> str:
        _counts.wait("str")
        return str(self._a)

    def __copy__(self) -> "ndarray":
        return self._view(self._a)

    def __deepcopy__(self, memo: Any) -> "ndarray":
        _counts.launch("copy")
        return _new(self._read_here().copy(), self._device)

    def __reduce__(self) -> tuple:
        return array, (self._a,)

    def __dlpack__(self, **kwargs: Any) -> Any:
        _streams.hand_over(kwargs.get("stream"))
        return _told(self._a.__dlpack__(max_version=kwargs.get("max_version")), 2, self._device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._device

    @property
    def __cuda_array_interface__(self) -> dict:
        found = {k: v for k, v in self._a.__array_interface__.items() if k != "offset"}
        return {**found, "version": 3, "stream": _streams.current.stream.ptr or 1}


def _around(shape: tuple, index: Any) -> Any:
    """Positions as CuPy takes them: those outside of a dimension begin again at its start."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if not all(isinstance(p, (_np.ndarray, slice)) for p in parts) or len(parts) > len(shape):
        return index
    for d, p in enumerate(parts):
        if isinstance(p, _np.ndarray) and p.dtype.kind == "b":
            return index
        if isinstance(p, _np.ndarray) and p.dtype.kind in "iu" and shape[d]:
            parts[d] = p % shape[d]
    return tuple(parts)


def _written(kwargs: dict) -> Any:
    """The array inside what a function is told to write into."""
    return kwargs["out"]._a if isinstance(kwargs.get("out"), ndarray) else None


_WRITING = {"put", "sort", "partition", "partial_fill"}  # methods that change their array


def _operator(name: str) -> Any:
    method = getattr(_np.ndarray, name)

    def call(self: ndarray, *others: Any) -> Any:
        for other in others:
            if not isinstance(other, (ndarray, int, float, complex, _np.generic, _np.ndarray)):
                return NotImplemented
        if "matmul" in name:
            _refuse_library("matmul", (self, *others))
        with Device(self._device):
            into = self._a if name.startswith("__i") and name != "__invert__" else None
            result = _graphs.run(method, (self._a, *[_unwrap(v) for v in others]), {}, into)
            _counts.operator(name, (self, *others))
            if _streams.used:
                _use(self, result is self._a)
            return self if result is self._a else _wrap(result, [])

    return call


for _name in [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "divmod",
]:
    for _form in ("__{}__", "__r{}__", "__i{}__"):
        if hasattr(_np.ndarray, _form.format(_name)) and (_name, _form[:3]) != ("divmod", "__i"):
            setattr(ndarray, _form.format(_name), _operator(_form.format(_name)))
for _name in ["lt", "le", "eq", "ne", "gt", "ge", "neg", "pos", "abs", "invert"]:
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))


class ufunc:
    """An elementwise function."""

    _METHODS = {
        "at": "add subtract maximum minimum bitwise_and bitwise_or bitwise_xor",
        "reduce": "add multiply",
        "accumulate": "add multiply",
        "reduceat": "add",
    }

    def __init__(self, name: str) -> None:
        self.__name__ = self.name = name
        self._f = getattr(_np, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if set(kwargs) - {"out", "dtype", "casting"}:
            raise TypeError(f"Wrong arguments {sorted(set(kwargs) - {'out', 'dtype', 'casting'})}")
        for a in args:
            if isinstance(a, (list, tuple)):
                raise TypeError(f"Unsupported type {type(a)}")
        given = {k: _unwrap(v) for k, v in kwargs.items()}
        result = _graphs.run(self._f, [_unwrap(a) for a in args], given, _written(kwargs))
        _counts.launch(self.name)
        return _wrap(result, [], kwargs.get("out"))

    def _method(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if self.name not in self._METHODS[method].split():
            raise NotImplementedError(f"`{self.name}.{method}` is not supported yet")
        _counts.launch(f"{self.name}.{method}")
        given = {k: _unwrap(v) for k, v in kwargs.items()}
        into = _unwrap(args[0]) if method == "at" else None
        return _wrap(_graphs.run(getattr(self._f, method), [_unwrap(a) for a in args], given, into), [])

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        if _streams.used:
            _use(a, True)
        self._method("at", a, indices, b)

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        return self._method("reduce", array, axis=axis, dtype=dtype, keepdims=keepdims)

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        return self._method("accumulate", array, axis=axis, dtype=dtype)

    def reduceat(
        self, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        return self._method("reduceat", array, indices, axis=axis, dtype=dtype)

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        _counts.launch(self.name)
        return _wrap(self._f.outer(_unwrap(a), _unwrap(b), **kwargs), [])


def _room_for(shape: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> None:
    """Ask for the memory of a large new array first, so that it is the device's that is out of it."""
    kinds = [a for a in (dtype, *args) if isinstance(a, (type, _np.dtype, str))]
    kind = kinds[0] if kinds else float
    size = int(_np.prod(shape, dtype=object)) * _np.dtype(kind).itemsize
    if size > 1 << 26:
        _allocators[-1](size)


_BY_LIBRARIES = {
    **dict.fromkeys(("matmul", "dot", "vdot", "inner", "tensordot", "einsum"), "cuBLAS"),
    **dict.fromkeys(("inv", "solve", "svd", "qr", "cholesky", "eigh", "eigvalsh", "eig", "eigvals", "lstsq",
                     "pinv", "det", "slogdet", "matrix_rank"), "cuSOLVER"),
}


def _refuse_library(name: str, arrays: Any) -> None:
    """CuPy calls no library of NVIDIA's for linear algebra in a capture."""
    if name in _BY_LIBRARIES and any(isinstance(a, ndarray) and a.dtype.kind not in "biu" for a in arrays):
        _cublas.refuse_in_capture(_BY_LIBRARIES[name])


def _function(home: Any, name: str, signature: str) -> Any:
    """A function of NumPy's with the parameters of CuPy's."""
    target = getattr(home, name)
    takes = signature.split()
    free = any(p.startswith("**") for p in takes)
    any_number = any(p.startswith("*") and not p.startswith("**") for p in takes)

    def call(*args: Any, **kwargs: Any) -> Any:
        strange = [] if free else [k for k in kwargs if k not in takes]
        if strange or (not any_number and len(args) > len(takes)):
            raise TypeError(f"{name}() got an unexpected argument {strange or args[len(takes) :]}")
        sources = _arrays([*args, *kwargs.values()])
        _refuse_library(name, sources)
        given = {k: _unwrap(v) for k, v in kwargs.items()}
        if name in ("empty", "zeros", "ones", "full"):
            _room_for(*args, **kwargs)
        if name in ("empty", "empty_like"):
            result = target(*[_unwrap(a) for a in args], **given)
        else:
            into = _unwrap(args[0]) if name in ("copyto", "put", "fill_diagonal") else _written(kwargs)
            result = _graphs.run(target, [_unwrap(a) for a in args], given, into)
        if name == "diagonal" and sources[0]._a.flags.writeable:
            result.flags.writeable = True  # NumPy's is read-only, CuPy's is not
        if name in ("empty", "empty_like"):
            _poisoned(result)
        if name in ("matmul", "dot"):
            _counts.operator("__matmul__", sources)
        else:
            _counts.result_of(name, any(_is_view(result, s._a) for s in sources) and "out" not in kwargs)
        return _wrap(result, sources, kwargs.get("out"))

    call.__name__ = call.__qualname__ = name
    return call


def asnumpy(
    a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True
) -> Any:
    """A copy in host memory."""
    return a.get(order=order) if isinstance(a, ndarray) else _np.asarray(a, order=order)


def _is_pinned(a: Any) -> bool:
    while isinstance(a, _np.ndarray):
        a = a.base
    return isinstance(a.obj if isinstance(a, memoryview) else a, _cupyx.PinnedMemory)


def array(
    obj: Any,
    dtype: Any = None,
    copy: Any = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> ndarray:
    """A new array on the current device, of anything."""
    here = _current.stack[-1]
    if isinstance(obj, ndarray):
        if not copy and obj._device == here and dtype in (None, obj.dtype):
            return obj
        if _streams.used:
            _use(obj, False)
        source = obj._a
        _counts.launch("copy")
        if _graphs.recording is not None:
            copied = partial(_np.array, dtype=dtype, order=order, ndmin=ndmin)
            return _new(_graphs.run(copied, (source,), {}), here)
    else:
        if _arrays([obj]):
            obj = [asnumpy(o) if isinstance(o, ndarray) else o for o in obj]
        source = obj
        _counts.copy("array")
        if _np.ndim(obj):
            _graphs.refuse_copies()
        if _is_pinned(obj) and dtype in (None, obj.dtype):
            if not blocking:
                return _new(obj.view(), here)  # read later: what is written there meanwhile is copied, too
            _counts.wait("array")
    return _new(_np.array(source, dtype, order=order, ndmin=ndmin), here)


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False
) -> ndarray:
    """The array itself, if it is of the current device, else a copy."""
    return array(a, dtype, copy=bool(copy), order=order or "K", blocking=blocking)


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """The array in row-major order on the current device."""
    a = asarray(a, dtype)
    if a.ndim == 0 or a._a.flags.c_contiguous:
        return a
    if _streams.used:
        _use(a, False)
    _counts.launch("ascontiguousarray")
    return _new(_graphs.run(_np.ascontiguousarray, (a._a,), {}), a._device)


def from_dlpack(x: Any, device: Any = None, copy: Any = None) -> ndarray:
    """The same memory, if it is a device's."""
    if x.__dlpack_device__()[0] != 2:
        raise RuntimeError("CPU array cannot be directly imported to CuPy")
    here = _streams.current.stream.ptr or 1  # DLPack calls the default stream 1
    capsule = _told(x.__dlpack__(stream=here, max_version=(1, 0)), 1, 0)
    return _new(_np.from_dlpack(_Capsule(capsule)), x.__dlpack_device__()[1])


def _told(capsule: Any, kind: int, number: int) -> Any:
    """The capsule with this device written into it."""
    api = _ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = _ctypes.c_char_p, [_ctypes.py_object]
    api.PyCapsule_GetPointer.restype = _ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [_ctypes.py_object, _ctypes.c_char_p]
    name = api.PyCapsule_GetName(capsule)
    place = api.PyCapsule_GetPointer(capsule, name) + (8 if name == b"dltensor" else 40)
    (_ctypes.c_int32 * 2).from_address(place)[:] = [kind, number]
    return capsule


class _Capsule:
    """What a producer exported, as NumPy wants to be given it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def get_array_module(*args: Any) -> Any:
    """This module if an argument is one of its arrays, else NumPy."""
    import sys

    return sys.modules[__name__] if any(isinstance(a, ndarray) for a in args) else _np


def is_available() -> bool:
    """Whether a device is there: the stand-in has two."""
    return True


def _kernel(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError("the stand-in for CuPy compiles kernels by RawModule only")


ElementwiseKernel = ReductionKernel = RawKernel = _kernel
RawModule = _raw.RawModule
_PARTS: dict[str, dict[str, str]] = {"linalg": _names.LINALG, "fft": _names.FFT, "random": _names.RANDOM}


class _Part(types.ModuleType):
    """``linalg``, ``fft`` or ``random``."""

    def __getattr__(self, name: str) -> Any:
        part = self.__name__.rpartition(".")[2]
        if name not in _PARTS[part]:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        value = _function(getattr(_np, part), name, _PARTS[part][name])
        setattr(self, name, value)
        return value


linalg, fft, random = (_Part(f"{__name__}.{_part}") for _part in _PARTS)


class _PlanCache:
    """Plans of Fourier transforms, of which there are none."""

    size = 16

    def set_size(self, size: int) -> None:
        self.size = size

    def get_size(self) -> int:
        return self.size

    def get_curr_size(self) -> int:
        return 0

    def clear(self) -> None:
        pass


_plans = [_PlanCache() for _ in range(_DEVICES)]
fft.config = types.SimpleNamespace(get_plan_cache=lambda: _plans[_current.stack[-1]])


def _as_strided(x: Any, shape: Any = None, strides: Any = None) -> ndarray:
    return _new(
        _np.lib.stride_tricks.as_strided(x._a, shape, strides),
        x._device,
        x.base if x.base is not None else x,
    )


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Looks at addresses, whatever device is current."""
    return a._device == b._device and _np.may_share_memory(a._a, b._a)


lib = types.SimpleNamespace(
    stride_tricks=types.SimpleNamespace(
        as_strided=_as_strided,
        sliding_window_view=lambda x, window_shape, axis=None, *, subok=False, writeable=False: _wrap(
            _np.lib.stride_tricks.sliding_window_view(_unwrap(x), window_shape, axis), [x]
        ),
    )
)


def _memcpy_async(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    """Copy pinned memory to a device's; a graph does it anew each time."""
    assert kind == 1 and stream == _streams.current.stream.ptr
    _counts.copy("memcpyAsync")
    if _streams.used:
        _use_at(dst, True)
    if _graphs.recording is not None:
        _graphs.recording.append(lambda: _ctypes.memmove(dst, src, size))
    _ctypes.memmove(dst, src, size)  # in a capture, too: what stands for cuDNN looks at lengths at once


cuda = types.SimpleNamespace(
    Device=Device,
    MemoryPointer=_Memory,
    Stream=_streams.Stream,
    Event=_streams.Event,
    get_elapsed_time=_streams.elapsed,
    is_available=is_available,
    get_current_stream=lambda device_id=None: _streams.current.stream,
    device=types.SimpleNamespace(
        Device=Device, get_cublas_handle=lambda: _cublas.HANDLE + _current.stack[-1]
    ),
    cublas=_cublas,
    nvtx=_nvtx,
    memory=_memory,
    MemoryPool=lambda: _memory.MemoryPool(lambda: _current.stack[-1]),
    using_allocator=_using_allocator,
    get_allocator=lambda: _allocators[-1],
    set_allocator=_allocators.append,
    runtime=types.SimpleNamespace(
        getDeviceCount=lambda: _DEVICES,
        runtimeGetVersion=lambda: 999000,  # of no CUDA: real libraries crash on the handles here
        deviceGetPCIBusId=lambda device: f"0000:{device:02x}:00.0",
        getDevice=lambda: _current.stack[-1],
        memGetInfo=lambda: (_memory.TOTAL - _pool.total_bytes(), _memory.TOTAL),
        getDeviceProperties=lambda n: {
            "name": b"stand-in", "major": 9, "minor": 0, "totalGlobalMem": _memory.TOTAL,
            "multiProcessorCount": 4, "warpSize": 32, "maxThreadsPerBlock": 1024, "l2CacheSize": 4 << 20,
            "maxThreadsPerMultiProcessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerBlock": 49152,
            "sharedMemPerBlockOptin": 49152, "sharedMemPerMultiprocessor": 49152, "clockRate": 10**6,
            "memoryClockRate": 10**6, "memoryBusWidth": 64, "integrated": 0, "isMultiGpuBoard": 0,
            "pciDomainID": 0, "pciBusID": n, "pciDeviceID": 0, "uuid": bytes([n] * 16)},
        deviceCanAccessPeer=lambda here, there: int(here != there),
        streamGetPriority=lambda stream: _streams.priorities.get(stream, 0),
        ipcGetEventHandle=lambda event: event.to_bytes(64, "little"),
        ipcOpenEventHandle=lambda handle: int.from_bytes(handle, "little"),
        eventDestroy=lambda event: None,
        profilerStart=lambda: None,
        profilerStop=lambda: None,
        setDevice=lambda n: Device(n).use(),
        memcpyAsync=_memcpy_async,
        memcpyHostToDevice=1,
        deviceSynchronize=lambda: Device().synchronize(),
        CUDARuntimeError=_graphs.CUDARuntimeError,
        streamCaptureModeGlobal=0,
        streamCaptureModeThreadLocal=1,
        streamCaptureModeRelaxed=2,
    ),
)


pinned_memory = types.SimpleNamespace(free_all_blocks=lambda: None, n_free_blocks=lambda: 0)


def get_default_pinned_memory_pool() -> Any:
    """Pinned memory that is kept for later: none."""
    return pinned_memory


def __getattr__(name: str) -> Any:
    if name in _names.PLAIN:
        value = getattr(_np, name)
    elif name in _names.UFUNCS:
        value = ufunc(name)
    elif name in _names.FUNCTIONS:
        value = _function(_np, name, _names.FUNCTIONS[name])
    else:
        raise AttributeError(f"module 'cupy' has no attribute '{name}'")
    globals()[name] = value
    return value


_strict.apply(sys.modules[__name__], _cupyx.linalg_mode)
sys.modules["cupy.cuda.nccl"] = _nccl  # as a module that has to be imported; cupy.cuda has no such attribute
