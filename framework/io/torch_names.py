"""What the names in files of ``torch.save`` stand for: tensors, storages, plain data of Python and NumPy.

The whole table of what such a file may name. All of it makes data; nothing is looked up by a name that the
file gives.
"""

import codecs
import importlib
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ..device import Device
from ..doors import through
from ..dtypes import BY_NAME, DType
from ..errors import DeviceError, MissingExtraError, add_note
from ..tensor import Tensor, counter_of, wrap
from .map_location import MapLocation
from .memory import array_over, lies_inside
from .pickled import Call, hashable

_STORAGES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "Untyped": "uint8",
}
_DTYPES = {
    **{name: name for name in BY_NAME},
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
_NUMBERS = re.compile(r"[<>=|]?(b1|[iu][1248]|f[248]|c(8|16)|[SU]\d{1,6}|V0)")


class _Kind:
    """A class of storages, as a file names it."""

    def __init__(self, dtype: DType, typed: bool) -> None:
        self.dtype, self.typed = dtype, typed


class Storages:
    """The storages of one file, and the table of names for its pickle.

    read: ``read(key, size)`` gives the bytes of a storage as an array. big: whether they are big-endian.
    """

    def __init__(self, locations: MapLocation, what: str, read: Callable, big: bool) -> None:
        self.locations, self.what, self.read, self.big = locations, what, read, big
        self.items: dict[str, int] = {}  # bytes of an element of each storage
        self._bytes: dict[str, np.ndarray] = {}
        self._placed: dict[tuple, Tensor] = {}
        self.known = {
            **_PLAIN,
            ("argparse", "Namespace"): Call(self.namespace),
            **_TORCH,
            ("torch._utils", "_rebuild_tensor"): Call(self.tensor),
            ("torch._utils", "_rebuild_tensor_v2"): Call(self.tensor),
            ("torch._utils", "_rebuild_tensor_v3"): Call(self.tensor_of),
            ("torch._utils", "_rebuild_parameter"): Call(parameter),
            ("torch._utils", "_rebuild_parameter_with_state"): Call(parameter),
            ("torch._tensor", "_rebuild_from_type_v2"): Call(_from_type),
        }
        self.states: dict[type, Callable] = {
            OrderedDict: _ordered_state,
            np.dtype: _numpy_order,
            np.ndarray: _numpy_state,
        }

    def namespace(self) -> Any:
        """An ``argparse.Namespace``, which gets its attributes as a state."""
        kind = importlib.import_module("argparse").Namespace
        self.states[kind] = _attributes
        return kind()

    def persistent(self, key: Any) -> "_Storage":
        """The storage of a persistent id: ("storage", class, key, device, number of elements[, view])."""
        if (
            type(key) is not tuple
            or len(key) not in (5, 6)
            or key[0] != "storage"
            or type(key[1]) is not _Kind
        ):
            raise ValueError("a persistent id that names no storage")
        _, kind, name, device, count, *view = key
        if (
            type(name) not in (str, int)
            or type(device) is not str
            or type(count) is not int
            or count < 0
            or view not in ([], [None])
        ):
            raise ValueError("a bad persistent id")
        name, item = str(name), kind.dtype.numpy.itemsize
        if name not in self._bytes:
            self.items[name] = item
            self._bytes[name] = self.read(name, count * item)
            if self.big:
                self._bytes[name] = _swapped(self._bytes[name], kind, name)
        elif self._bytes[name].size != count * item:
            raise ValueError(f"storage {name!r} of two sizes")
        return _Storage(self, name, kind, device)

    def placed(self, name: str, device: str) -> Tensor:
        """The bytes of a storage on the device where they belong; once, so that tensors share them."""
        if (name, device) not in self._placed:
            try:
                Device(device)
            except DeviceError:
                if not (self.locations.all or self.locations.function or device in self.locations.table):
                    raise DeviceError(
                        f"{self.what}: storage {name!r} was saved from {device!r}, a kind of "
                        f"device that is not known here; pass map_location='cpu'"
                    ) from None
            try:
                self._placed[name, device] = self.locations.put(self._bytes[name], device)
            except (DeviceError, MissingExtraError) as error:
                add_note(
                    error,
                    f"{self.what}: storage {name!r} was saved from {device}; pass "
                    f"map_location='cpu' to load it in host memory"
                )
                raise
        return self._placed[name, device]

    def tensor(
        self,
        storage: Any,
        offset: int,
        shape: tuple,
        strides: tuple,
        requires_grad: bool = False,
        hooks: Any = None,
        extra: Any = None,
    ) -> Tensor:
        """A tensor over a storage; offset and strides count elements of the storage's type."""
        if type(storage) is not _Storage or not storage.kind.typed:
            raise ValueError("a tensor without a storage of numbers")
        return self._tensor(storage, offset, shape, strides, requires_grad, storage.kind.dtype, extra)

    def tensor_of(
        self,
        storage: Any,
        offset: int,
        shape: tuple,
        strides: tuple,
        requires_grad: bool,
        hooks: Any,
        dtype: Any,
        extra: Any = None,
    ) -> Tensor:
        """The same with a dtype of its own, over a storage of bytes."""
        if type(storage) is not _Storage or type(dtype) is not DType:
            raise ValueError("a tensor without a storage or dtype")
        return self._tensor(storage, offset, shape, strides, requires_grad, dtype, extra)

    def _tensor(
        self,
        storage: "_Storage",
        offset: Any,
        shape: Any,
        strides: Any,
        requires_grad: Any,
        dtype: DType,
        extra: Any,
    ) -> Tensor:
        if (
            type(shape) is not tuple
            or type(strides) is not tuple
            or len(shape) > 64
            or not all(type(n) is int for n in (offset, *shape, *strides))
            or type(requires_grad) is not bool
        ):
            raise ValueError("a tensor with sizes that are no sizes")
        whole = self.placed(storage.name, storage.device)
        kind = dtype.numpy
        start, steps = offset * kind.itemsize, tuple(s * kind.itemsize for s in strides)
        if not lies_inside(whole._array.nbytes, kind.itemsize, shape, start, steps):
            raise ValueError(f"a tensor of shape {list(shape)} that leaves its storage {storage.name!r}")
        array = array_over(whole._array, kind, shape, start, steps)
        repeated = array.nbytes > whole._array.nbytes  # its elements share memory
        once = whole._array if repeated else array
        if kind.kind == "b" and bool((once.view(np.uint8) > 1).any()):
            raise ValueError(f"storage {storage.name!r} is of bools and holds bytes other than 0 and 1")
        if extra is not None and type(extra) is not dict:
            raise ValueError("a tensor with settings that are no dict")
        if extra and repeated:
            raise ValueError(
                f"a tensor of shape {list(shape)}, larger than its storage, that is to be conjugated or "
                f"negated; save it as contiguous()"
            )
        for name, turn in (("conj", np.conj), ("neg", np.negative)):
            if extra and extra.get(name):
                array = turn(array)
        made = wrap(array)
        if not extra:
            made._counter = counter_of(whole)
        if requires_grad and not (made.is_floating_point() or made.is_complex()):
            raise ValueError(f"a tensor of {made.dtype} that requires gradients")
        return made.requires_grad_(requires_grad)


class _Storage:
    """A storage as the pickle refers to it."""

    def __init__(self, owner: Storages, name: str, kind: _Kind, device: str) -> None:
        self.owner, self.name, self.kind, self.device = owner, name, kind, device


def _swapped(raw: np.ndarray, kind: _Kind, name: str) -> np.ndarray:
    """The bytes in the other order."""
    if not kind.typed:
        raise ValueError(f"storage {name!r} is big-endian and does not say of what type")
    return raw.view(kind.dtype.numpy).byteswap().view(np.uint8) if kind.dtype.numpy.itemsize > 1 else raw


def parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Tensor:
    """A Parameter over the memory of ``data``."""
    if not isinstance(data, Tensor) or type(requires_grad) is not bool:
        raise ValueError("a parameter that holds no tensor")
    return through("parameters").Parameter(data.detach(), requires_grad)


def _from_type(make: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor of one of the classes that are plain data: Tensor, Parameter, Buffer."""
    if type(make) is not Call or type(args) is not tuple or kind not in ("Tensor", "Parameter", "Buffer"):
        raise ValueError("a tensor of an unknown class")
    made = make.function(*args)
    if not isinstance(made, Tensor):
        raise ValueError("a tensor that is none")
    if kind == "Tensor" or type(made) is not Tensor:
        return made
    home = through("parameters")
    return home.Parameter(made.detach(), made.requires_grad) if kind == "Parameter" else home.Buffer(made)


# -- plain data of Python and NumPy ----------------------------------------------------------------


def _encoded(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise ValueError(f"bytes encoded as {encoding!r}")
    return codecs.encode(text, encoding)


def _numpy_dtype(text: Any, align: Any = False, copy: Any = True) -> np.dtype:
    if type(text) is not str or not _NUMBERS.fullmatch(text):
        raise ValueError(f"a NumPy array of {text!r}, which is not numbers or text")
    return np.dtype(text)


def _numpy_order(dtype: np.dtype, state: Any) -> np.dtype:
    """The dtype in the byte order of its state: (version, order, ...)."""
    if type(state) is not tuple or len(state) < 2 or state[1] not in ("<", ">", "=", "|"):
        raise ValueError("a bad state of a NumPy dtype")
    return dtype if state[1] == "|" else dtype.newbyteorder(state[1])


def _numpy_scalar(dtype: Any, data: Any = b"") -> np.generic:
    if not isinstance(dtype, np.dtype) or type(data) is not bytes or len(data) != dtype.itemsize:
        raise ValueError("a bad NumPy number")
    return np.frombuffer(data, dtype)[0] if dtype.itemsize else dtype.type()


def _numpy_array(dtype: np.dtype, shape: tuple, data: bytes, in_columns: bool) -> np.ndarray:
    if (
        not isinstance(dtype, np.dtype)
        or type(shape) is not tuple
        or type(data) not in (bytes, bytearray)
        or not all(type(n) is int and n >= 0 for n in shape)
        or len(shape) > 64
    ):
        raise ValueError("a bad NumPy array")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if in_columns else "C").copy(order="K")


def _numpy_empty(kind: Any, shape: Any, code: Any) -> np.ndarray:
    return np.empty(0, np.int8)  # the state that follows says what it is


def _numpy_state(array: np.ndarray, state: Any) -> np.ndarray:
    if type(state) is not tuple or len(state) != 5:
        raise ValueError("a bad state of a NumPy array")
    _, shape, dtype, in_columns, data = state
    return _numpy_array(dtype, shape, data, bool(in_columns))


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    return _numpy_array(dtype, shape, data, order == "F")


def _attributes(made: Any, state: Any) -> Any:
    if type(state) is not dict or not all(type(k) is str for k in state):
        raise ValueError("a bad state of a Namespace")
    made.__dict__.update(state)
    return made


def _ordered_state(made: OrderedDict, state: Any) -> OrderedDict:
    """Of a state_dict: its ``_metadata``; other attributes of a dict are not data anybody reads."""
    if type(state) is dict and "_metadata" in state:
        made._metadata = state["_metadata"]  # type: ignore[attr-defined]
    return made


class _Type(Call):
    """A type of Python's own: makes a container of items that are there, or the default of a defaultdict."""

    def __init__(self, kind: type, make: Callable | None = None) -> None:
        super().__init__(make or self._refuse)
        self.kind = kind

    def _refuse(self, *args: Any) -> Any:
        raise ValueError(f"a call of {self.kind.__name__}")


def _items(kind: Callable) -> Callable:
    """``kind(items)``, for items that stand in the file: nothing is made that is larger than it."""

    def make(items: Any = ()) -> Any:
        if type(items) not in (list, tuple, bytes):
            raise ValueError("items that are no list")
        return kind(hashable(items) if kind in (set, frozenset) else items)

    return make


def _ordered(pairs: Any = ()) -> OrderedDict:
    if type(pairs) not in (list, tuple) or not all(type(p) in (list, tuple) and len(p) == 2 for p in pairs):
        raise ValueError("an OrderedDict of what are no pairs")
    return OrderedDict(zip(hashable([k for k, _ in pairs]), [v for _, v in pairs]))


def _default_dict(factory: Any = None) -> defaultdict:
    if factory is not None and type(factory) is not _Type:
        raise ValueError("a defaultdict whose default is made by code")
    return defaultdict(None if factory is None else factory.kind)


def _counter(counts: Any = None) -> Counter:
    if counts is not None and type(counts) is not dict:
        raise ValueError("a Counter of what is no dict")
    return Counter(counts)


def _deque(items: Any = (), length: Any = None) -> deque:
    if type(items) not in (list, tuple):
        raise ValueError("a deque of what is no list")
    return deque(items, length)


def _range(*bounds: Any) -> range:
    if not all(type(n) is int for n in bounds):
        raise ValueError("a range of what are no numbers")
    return range(*bounds)


def _device(name: Any, index: Any = None) -> Device:
    return Device(name if index is None else f"{name}:{index}")


def _complete(kinds: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """For modules that are called otherwise in Python 2 or older NumPy: each entry under all names."""
    return {
        (module, name): value
        for modules, names in kinds.items()
        for module in modules.split()
        for name, value in names.items()
    }


_PLAIN: dict[tuple[str, str], Any] = _complete(
    {
        "builtins __builtin__": {
            **{
                kind.__name__: _Type(kind, _items(kind))
                for kind in (list, set, frozenset, tuple, bytes, bytearray)
            },
            **{kind.__name__: _Type(kind) for kind in (dict, int, float, str, bool)},
            "complex": Call(complex),
            "slice": Call(slice),
            "range": Call(_range),
            "xrange": Call(_range),
        },
        "collections": {
            "OrderedDict": Call(_ordered),
            "defaultdict": Call(_default_dict),
            "Counter": Call(_counter),
            "deque": Call(_deque),
        },
        "_codecs": {"encode": Call(_encoded)},
        "numpy": {
            "dtype": Call(_numpy_dtype),
            "ndarray": np.ndarray,
            **{t.__name__: np.dtype(t) for t in (np.float64, np.float32, np.int64, np.int32, np.bool_)},
        },
        "numpy.core.multiarray numpy._core.multiarray": {
            "scalar": Call(_numpy_scalar),
            "_reconstruct": Call(_numpy_empty),
        },
        "numpy.core.numeric numpy._core.numeric": {"_frombuffer": Call(_from_buffer)},
    }
)
_TORCH: dict[tuple[str, str], Any] = {
    **{
        ("torch", f"{name}Storage"): _Kind(BY_NAME[dtype], name != "Untyped")
        for name, dtype in _STORAGES.items()
    },
    ("torch.storage", "UntypedStorage"): _Kind(BY_NAME["uint8"], False),
    **{
        (f"torch{where}", f"{name}Storage"): _Kind(BY_NAME[dtype], True)
        for name, dtype in _STORAGES.items()
        for where in (".cuda", ".storage")
        if name != "Untyped"
    },
    **{("torch", name): BY_NAME[own] for name, own in _DTYPES.items()},
    ("torch", "device"): Call(_device),
    ("torch", "Size"): Call(lambda sizes=(): tuple(sizes)),
    ("torch", "Tensor"): "Tensor",
    ("torch._tensor", "Tensor"): "Tensor",
    ("torch.nn.parameter", "Parameter"): "Parameter",
    ("torch.nn", "Parameter"): "Parameter",
    ("torch.nn.parameter", "Buffer"): "Buffer",
}
