"""Nested Python data as JSON, with its tensors by name: ``encode`` and ``Decoder``.

``docs/checkpoint-format.md`` lists the kinds. Nothing is looked up by a name from a file but in the
tables here.
"""

import base64
import importlib
import struct
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from ..backends import array_module, move
from ..device import CPU, Device
from ..doors import through
from ..dtypes import BY_NAME, DType
from ..errors import CheckpointError, DeviceError, MissingExtraError, add_note
from ..size import Size
from ..sparse_door import is_sparse, sparse
from ..tensor import Tensor, counter_of, wrap
from .map_location import MapLocation
from .memory import Window, array_over, lay_out, lies_inside

MAX_DEPTH = 200
_CLASSES = ("Parameter", "Buffer")
_NUMPY = {np.dtype(f"{kind}{size}") for kind, sizes in {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8),
                                                        "c": (8, 16), "b": (1,)}.items() for size in sizes}
_MEMBERS = (str, int, float, complex, bool, bytes, type(None))  # what a set may hold; tuples of these, too


class Plan(NamedTuple):
    """What a file will hold: the JSON structure, and the arrays by name."""

    structure: Any
    arrays: dict[str, Any]

    def frozen(self) -> "Plan":
        """With copies of the arrays in host memory: later changes of the tensors are not seen."""
        return Plan(self.structure, {name: np.array(a) if isinstance(a, np.ndarray) else move(a, CPU)
                                     for name, a in self.arrays.items()})


def encode(obj: Any) -> Plan:
    """``obj`` as a plan; raises TypeError or ValueError naming the place of what cannot be saved."""
    encoder = _Encoder()
    structure = encoder.encode(obj, "obj", "", 0)
    return Plan(structure, encoder.finish())


class _Encoder:
    """Turns an object into JSON data, gathering its tensors."""

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []
        self._names: list[str] = []
        self._references: list[dict[str, Any]] = []
        self._objects: dict[int, dict] = {}  # tensor object -> its reference
        self._open: set[int] = set()
        self._kept: list = []

    def encode(self, x: Any, path: str, name: str, depth: int) -> Any:
        kind = type(x)
        if x is None or kind is bool:
            return x
        if kind is str:
            return _text(x, path)
        if kind is int:
            return x if -(1 << 63) <= x < 1 << 63 else {"int": hex(x)}
        if kind is float:
            return _float(x)
        if is_sparse(x):
            return self._sparse(x, path, name, depth)
        if isinstance(x, Tensor):
            return self._tensor(x, path, name)
        if kind in (list, tuple, dict, OrderedDict, Size):
            return self._container(x, path, name, depth)
        if kind is complex:
            return {"complex": [_float(x.real), _float(x.imag)]}
        if kind is bytes:
            return {"bytes": base64.b64encode(x).decode()}
        if kind is DType:
            return {"dtype": x.name}
        if kind is Device:
            return {"device": str(x)}
        if kind is np.ndarray or isinstance(x, np.generic):
            return self._numpy(x, path, name)
        if kind in (set, frozenset) or _is_namespace(kind):
            return self._container(x, path, name, depth)
        raise TypeError(f"save: {path} is a {kind_name(x)}, which cannot be saved as data; {_remedy(x)}")

    def _container(self, x: Any, path: str, name: str, depth: int) -> Any:
        if id(x) in self._open:
            raise ValueError(f"save: {path} holds itself; break the cycle before saving")
        if depth >= MAX_DEPTH:
            raise ValueError(f"save: {path} is nested more than {MAX_DEPTH} deep; flatten it")
        self._open.add(id(x))
        try:
            if isinstance(x, dict):
                items: list = [[_key(k, path), self.encode(v, f"{path}[{k!r}]", _join(name, k), depth + 1)]
                               for k, v in x.items()]
                return {"ordered" if type(x) is OrderedDict else "dict": items}
            if _is_namespace(type(x)):
                return {"namespace": [[_key(k, path), self.encode(v, f"{path}.{k}", _join(name, k),
                                                                  depth + 1)] for k, v in vars(x).items()]}
            if isinstance(x, (set, frozenset)):
                return {type(x).__name__: [self._member(v, path, depth) for v in _sorted(x)]}
            items = [self.encode(v, f"{path}[{i}]", _join(name, i), depth + 1) for i, v in enumerate(x)]
            return {"tuple": items} if type(x) in (tuple, Size) else items
        finally:
            self._open.discard(id(x))

    def _sparse(self, x: Any, path: str, name: str, depth: int) -> dict:
        """A sparse tensor: plain data, and the dense tensors of its values and indices."""
        told, tensors = sparse().taken_apart(x)
        self._kept.append(tensors)  # an object's number is its own while it lives
        return {"sparse": {**told, **{part: self._tensor(t, path, _join(name, part))
                                      for part, t in tensors.items()}}}

    def _member(self, x: Any, path: str, depth: int) -> Any:
        if not isinstance(x, (*_MEMBERS, tuple)):
            raise TypeError(f"save: a member of {path} is a {kind_name(x)}; sets of numbers, text, bytes and "
                            f"tuples of those can be saved")
        return self.encode(x, f"a member of {path}", "", depth + 1)

    def _numpy(self, x: Any, path: str, name: str) -> dict:
        """NumPy's arrays lie where tensors lie; a number is an array of no dimensions."""
        if x.dtype.newbyteorder("=") not in _NUMPY:
            kind = "array" if isinstance(x, np.ndarray) else "number"
            raise TypeError(f"save: {path} is a NumPy {kind} of {x.dtype}, which cannot be saved as data; "
                            f"convert it to numbers, or to lists of text")
        held = wrap(np.array(x, x.dtype.newbyteorder("="), order="C", copy=None))
        return {"array" if isinstance(x, np.ndarray) else "number": self._tensor(held, path, name)}

    def _tensor(self, x: Tensor, path: str, name: str) -> dict:
        known = self._objects.get(id(x))
        if known is not None:
            return known
        reference: dict[str, Any] = {"tensor": ""}
        kind = type(x)
        if kind is not Tensor:
            if kind.__name__ not in _CLASSES or getattr(through("parameters"), kind.__name__) is not kind:
                raise TypeError(f"save: {path} is a {kind_name(x)}, a tensor of a class of your own, which "
                                f"cannot be saved as data; save x.detach().data")
            reference["class"] = kind.__name__
            if not getattr(x, "persistent", True):
                reference["persistent"] = False
        if x.requires_grad:
            reference["requires_grad"] = True
        if x.is_cuda:
            reference["device"] = str(x.device)
        self._tensors.append(x)
        self._names.append(name or "tensor")
        self._references.append(reference)
        self._objects[id(x)] = reference
        return reference

    def finish(self) -> dict[str, Any]:
        """The arrays to store, by name; completes the references with their positions in them."""
        stored, windows = lay_out(self._tensors)
        names = _unique([self._names[i] for i in _first_of_each(windows)])
        taken: set[int] = set()
        for number, (x, window, reference) in enumerate(zip(self._tensors, windows, self._references)):
            reference["tensor"] = names[window.home]
            if window.offset is not None:
                reference["view"] = {"dtype": x.dtype.name, "shape": list(x.shape),
                                     "offset": window.offset, "strides": list(window.strides or ())}
            elif x.is_complex():
                reference["complex"] = True
            if window.offset is not None or window.home in taken:
                reference["alias"] = number  # another object over memory that has one
            else:
                taken.add(window.home)
        return {name: _plain(array) for name, array in zip(names, stored)}


def _is_namespace(kind: type) -> bool:
    """Whether a class is argparse's Namespace; that module takes long to import."""
    return kind.__module__ == "argparse" and kind.__name__ == "Namespace"


def _sorted(members: Any) -> list:
    """In an order that does not depend on the hashes of this process, where there is one."""
    return sorted(members, key=lambda m: (kind_name(m), repr(m)))


def _first_of_each(windows: list[Window]) -> list[int]:
    first: dict[int, int] = {}
    for i, window in enumerate(windows):
        first.setdefault(window.home, i)
    return [first[home] for home in sorted(first)]


def _unique(names: list[str]) -> list[str]:
    """The names, with a number where two are the same ({"a.b": x, "a": {"b": y}})."""
    used: dict[str, int] = {}
    found: dict[str, None] = {}
    for name in names:
        name = unique = name.encode("utf-8", "backslashreplace").decode()
        while unique in found or unique == "__metadata__":
            used[name] = used.get(name, 0) + 1
            unique = f"{name}#{used[name]}"
        found[unique] = None
    return list(found)


def _plain(array: Any) -> Any:
    """Complex numbers as pairs of floats, which every reader of the layout knows."""
    if array.dtype.kind != "c":
        return array
    pairs = array_module(array).ascontiguousarray(array).view(f"f{array.dtype.itemsize // 2}")
    return pairs.reshape(*array.shape, 2)


def _join(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _key(key: Any, path: str) -> Any:
    if type(key) is str:
        return _text(key, f"a key of {path}")
    if type(key) is int:
        return key if -(1 << 63) <= key < 1 << 63 else {"int": hex(key)}
    raise TypeError(f"save: {path} has the key {key!r} of type {kind_name(key)}; keys must be str or int")


def _text(x: str, path: str) -> Any:
    try:
        x.encode("utf-8")
    except UnicodeEncodeError:
        raise TypeError(f"save: {path} holds text that is no valid Unicode (a lone surrogate); save it as "
                        f"bytes: x.encode('utf-8', 'surrogatepass')") from None
    return x


def _float(x: float) -> Any:
    if x - x == 0.0:
        return x  # JSON's shortest decimal gives back the same bits
    if x == x:
        return {"float": "inf" if x > 0 else "-inf"}
    return {"float": struct.pack(">d", x).hex()}


def kind_name(x: Any) -> str:
    """The type of ``x`` for messages."""
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _remedy(x: Any) -> str:
    if hasattr(x, "state_dict"):
        return "save its .state_dict(), or pickle everything with save(..., weights_only=False)"
    if hasattr(x, "_asdict"):
        return "save its ._asdict(), or tuple(x)"
    if isinstance(x, (int, float, str, bytes, list, tuple, dict, bytearray)):
        base = next(t for t in (int, float, str, bytes, bytearray, list, tuple, dict) if isinstance(x, t))
        return f"convert it with {'bytes' if base is bytearray else base.__name__}(x)"
    if callable(x):
        return "code cannot be saved; keep its name as text"
    return ("save what it consists of (numbers, text, lists, dicts, tensors), or pickle everything with "
            "save(..., weights_only=False)")


# -- loading ---------------------------------------------------------------------------------------


class Decoder:
    """Turns checked JSON data and arrays back into the object; raises CheckpointError."""

    def __init__(self, arrays: dict[str, np.ndarray], locations: MapLocation, what: str) -> None:
        self.arrays, self.locations, self.what = arrays, locations, what
        self.tensors: dict[tuple, Tensor] = {}
        self.moved: dict[tuple, Tensor] = {}

    def fail(self, why: str) -> CheckpointError:
        return CheckpointError(f"{self.what}: the structure is not sound: {why}")

    def decode(self, x: Any, depth: int = 0) -> Any:
        if x is None or isinstance(x, (bool, int, float, str)):
            return x
        if depth > MAX_DEPTH:
            raise self.fail(f"it is nested more than {MAX_DEPTH} deep")
        if isinstance(x, list):
            return [self.decode(v, depth + 1) for v in x]
        if "tensor" in x:
            return self._tensor(x)
        if len(x) != 1:
            raise self.fail(f"an object with the keys {sorted(x)[:4]}")
        (kind, value), = x.items()
        if kind in ("tuple", "dict", "ordered", "set", "frozenset", "namespace"):
            return self._container(kind, value, depth)
        if kind in ("array", "number"):
            return self._numpy(kind, value)
        if kind == "sparse":
            return self._sparse(value)
        read = _LEAVES.get(kind)
        if read is None:
            raise self.fail(f"an object of unknown kind {kind!r}")
        try:
            return read(value)
        except (ValueError, TypeError, KeyError, AttributeError, struct.error, OverflowError,
                DeviceError) as error:
            raise self.fail(f"a bad {kind} ({error})") from None

    def _container(self, kind: str, value: Any, depth: int) -> Any:
        if not isinstance(value, list):
            raise self.fail(f"a bad {kind} (it is no list)")
        if kind == "tuple":
            return tuple(self.decode(v, depth + 1) for v in value)
        if kind in ("set", "frozenset"):
            members = [self._checked_member(self.decode(v, depth + 1), kind) for v in value]
            return set(members) if kind == "set" else frozenset(members)
        found: dict = OrderedDict() if kind == "ordered" else {}
        for pair in value:
            if not isinstance(pair, list) or len(pair) != 2:
                raise self.fail(f"a bad {kind} (its items are no pairs)")
            key = self.decode(pair[0], depth + 1)
            if type(key) not in (str, int) or key in found:
                raise self.fail(f"a bad {kind} (the key {key!r} is no text or int, or stands twice)")
            found[key] = self.decode(pair[1], depth + 1)
        return found if kind != "namespace" else self._namespace(found)

    def _namespace(self, found: dict) -> Any:
        if not all(isinstance(key, str) for key in found):
            raise self.fail("a bad namespace (a name is no text)")
        made = importlib.import_module("argparse").Namespace()
        vars(made).update(found)
        return made

    def _checked_member(self, value: Any, kind: str, depth: int = 3) -> Any:
        if type(value) is tuple and depth:
            return tuple(self._checked_member(v, kind, depth - 1) for v in value)
        if not isinstance(value, _MEMBERS):
            raise self.fail(f"a bad {kind} (it holds a {type(value).__name__})")
        return value

    def _numpy(self, kind: str, value: Any) -> Any:
        if not isinstance(value, dict) or "tensor" not in value:
            raise self.fail(f"a bad {kind} (it names no tensor)")
        made = self._tensor({**value, "device": "cpu"})._array
        array = made if isinstance(made, np.ndarray) else move(made, CPU)
        if kind == "number" and array.ndim:
            raise self.fail("a bad number (it has dimensions)")
        return array if kind == "array" else array[()]

    def _sparse(self, value: Any) -> Tensor:
        if not isinstance(value, dict):
            raise self.fail("a bad sparse tensor")
        parts = {part: self._tensor(v) if isinstance(v, dict) and "tensor" in v else v
                 for part, v in value.items()}
        try:
            return sparse().put_together(**parts)
        except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError,
                NotImplementedError) as error:
            raise self.fail(f"a bad sparse tensor ({error})") from None

    def _tensor(self, reference: dict) -> Tensor:
        name, alias = reference["tensor"], reference.get("alias")
        requires_grad = reference.get("requires_grad", False)
        saved = reference.get("device", "cpu")
        if not isinstance(name, str) or name not in self.arrays or type(requires_grad) is not bool \
                or not isinstance(alias, int | None) or not isinstance(saved, str):
            raise self.fail(f"a reference to tensor {name!r}, which the file does not describe")
        key = (name, alias)
        if key not in self.tensors:
            whole = self._memory(name, bool(reference.get("complex", False)), saved)
            made = self._window(whole, reference["view"], name) if "view" in reference else whole.detach()
            if requires_grad and not (made.is_floating_point() or made.is_complex()):
                raise self.fail(f"tensor {name!r} of {made.dtype} cannot require gradients")
            self.tensors[key] = self._class(made, requires_grad, reference)
        return self.tensors[key]

    def _memory(self, name: str, complex_pairs: bool, saved: str) -> Tensor:
        key = (name, complex_pairs, saved)
        if key not in self.moved:
            array = self.arrays[name]
            if complex_pairs:
                if array.dtype.kind != "f" or array.shape[-1:] != (2,) or array.itemsize == 2:
                    raise self.fail(f"tensor {name!r} does not hold pairs of floats")
                array = array.view(f"c{array.itemsize * 2}")[..., 0]
            self.moved[key] = self._placed(array, saved, name)
        return self.moved[key]

    def _placed(self, array: np.ndarray, saved: str, name: str) -> Tensor:
        try:
            Device(saved)
        except DeviceError as error:
            raise self.fail(f"tensor {name!r}: {error}") from None
        try:
            return self.locations.put(array, saved)
        except (DeviceError, MissingExtraError) as error:
            add_note(error, f"{self.what}: tensor {name!r} was saved from {saved}; pass "
                            f"map_location='cpu' to load it in host memory")
            raise

    def _window(self, whole: Tensor, view: Any, name: str) -> Tensor:
        """A tensor over part of the memory of ``whole``."""
        try:
            dtype, shape, offset, strides = (view[k] for k in ("dtype", "shape", "offset", "strides"))
            if len(shape) > 64 or not all(type(n) is int for n in (offset, *shape, *strides)):
                raise ValueError("sizes that are no sizes")
            kind = BY_NAME[dtype].numpy
            array, sizes, steps = whole._array, tuple(shape), tuple(strides)
            if (kind.kind == "b") != (array.dtype.kind == "b"):
                raise ValueError("bools over other numbers")
            if not lies_inside(array.nbytes, kind.itemsize, sizes, offset, steps):
                raise ValueError("it leaves the memory")
            part = array_over(array, kind, sizes, offset, steps)
        except (ValueError, TypeError, KeyError, OverflowError, MissingExtraError) as error:
            raise self.fail(f"a bad view of tensor {name!r} ({error})") from None
        made = wrap(part)
        made._counter = counter_of(whole)
        return made

    def _class(self, made: Tensor, requires_grad: bool, reference: dict) -> Tensor:
        """The tensor as the class it was: a Parameter, a Buffer, or as it is."""
        kind, persistent = reference.get("class"), reference.get("persistent", True)
        if kind is None:
            return made.requires_grad_(requires_grad)
        if kind not in _CLASSES or type(persistent) is not bool:
            raise self.fail(f"a tensor of class {kind!r}")
        home = through("parameters")  # ours, whatever the file says
        if kind == "Parameter":
            return home.Parameter(made, requires_grad)
        return home.Buffer(made, persistent=persistent).requires_grad_(requires_grad)


def _read_float(value: Any) -> float:
    if value in ("inf", "-inf"):
        return float(value)
    return struct.unpack(">d", bytes.fromhex(value))[0]


def _read_complex(value: Any) -> complex:
    real, imag = (v if type(v) is float else _read_float(v["float"]) for v in value)
    return complex(real, imag)


_LEAVES = {"int": lambda v: int(v, 16), "float": _read_float, "complex": _read_complex,
           "bytes": lambda v: base64.b64decode(v, validate=True), "dtype": lambda v: BY_NAME[v],
           "device": Device}
