"""``save`` and ``load``: nested Python data with tensors, in one safe file.

The tensors stand in the file as safetensors, under the names of their places ("model.conv.weight");
what holds them stands as JSON in the metadata:

* None, bool, str, ordinary ints and finite floats, and lists, as themselves;
* all else as an object of one key: ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``,
  ``{"tensor": name, ...}``, ``{"bytes": base64}``, ``{"float": "nan"}``, ``{"int": hex}``,
  ``{"complex": [re, im]}``, ``{"dtype": name}``, ``{"device": name}``.

No pickle: loading a file runs no code of it.
"""

import base64
import binascii
import json
import struct
from collections import OrderedDict
from typing import Any

import numpy as np

from ..backends import backend_for, move
from ..device import Device, as_device
from ..dtypes import BY_NAME, DType
from ..errors import CheckpointError, DeviceError, MissingExtraError
from ..tensor import Tensor, wrap
from .safetensors import host_arrays, open_source, parse_json, read_layout, write_target

VERSION = "1"
FORMAT = "framework.checkpoint"
MAX_DEPTH = 200


def save(obj: Any, f: Any) -> None:
    """Write ``obj`` to a path or an open binary file.

    obj: dicts (text or int keys), lists, tuples, None, bool, int, float, complex, str, bytes, dtypes,
    devices and tensors, nested. A tensor that stands at several places, or under several objects
    (tied weights, ``.detach()``), is stored once and is shared again after loading. An OrderedDict is
    loaded as a dict; views of other parts of one memory are stored apart.

    A path is replaced atomically: after a failure or a crash the old file or the new one is there, whole.
    Raises TypeError naming the place of anything else in ``obj``, ValueError for one that holds itself.

    >>> import io
    >>> file = io.BytesIO()
    >>> fw.save({"step": 3, "weights": [fw.ones(2)]}, file)
    >>> fw.load(io.BytesIO(file.getvalue()))
    {'step': 3, 'weights': [tensor([1., 1.])]}
    """
    writer = _Writer()
    structure = writer.encode(obj, "obj", "", 0)
    metadata = {"format": FORMAT, "version": VERSION,
                "structure": json.dumps(structure, separators=(",", ":"))}
    arrays = {name: _plain(a) for name, a in host_arrays(writer.tensors.items()).items()}
    write_target(f, arrays, metadata, "save")


def _plain(array: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs of floats, which every reader of the layout knows."""
    if array.dtype.kind != "c":
        return array
    return np.ascontiguousarray(array).view(f"f{array.itemsize // 2}").reshape(*array.shape, 2)


class _Writer:
    """Turns an object into JSON data, gathering its tensors by name."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[tuple, str] = {}  # memory -> name
        self._objects: dict[int, dict] = {}  # tensor object -> its reference
        self._used: dict[str, int] = {}
        self._open: set[int] = set()

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
        if isinstance(x, Tensor):
            return self._tensor(x, name)
        if kind in (list, tuple, dict, OrderedDict):
            return self._container(x, path, name, depth)
        if kind is complex:
            return {"complex": [_float(x.real), _float(x.imag)]}
        if kind is bytes:
            return {"bytes": base64.b64encode(x).decode()}
        if kind is DType:
            return {"dtype": x.name}
        if kind is Device:
            return {"device": str(x)}
        raise TypeError(f"save: {path} is a {_kind_name(x)}, which cannot be saved; {_remedy(x)}")

    def _container(self, x: Any, path: str, name: str, depth: int) -> Any:
        if id(x) in self._open:
            raise ValueError(f"save: {path} holds itself; break the cycle before saving")
        if depth >= MAX_DEPTH:
            raise ValueError(f"save: {path} is nested more than {MAX_DEPTH} deep; flatten it")
        self._open.add(id(x))
        try:
            if isinstance(x, dict):
                return {"dict": [[_key(k, path), self.encode(v, f"{path}[{k!r}]", _join(name, k), depth + 1)]
                                 for k, v in x.items()]}
            items = [self.encode(v, f"{path}[{i}]", _join(name, i), depth + 1) for i, v in enumerate(x)]
            return {"tuple": items} if type(x) is tuple else items
        finally:
            self._open.discard(id(x))

    def _tensor(self, x: Tensor, name: str) -> dict:
        known = self._objects.get(id(x))
        if known is not None:
            return known
        array = x._array
        memory = (x.data_ptr(), x.shape, array.strides, array.dtype, str(x.device)) if array.size \
            else (id(x),)
        stored = self._names.get(memory)
        if stored is None:
            stored = self._names[memory] = self._fresh(name or "tensor")
            self.tensors[stored] = x
        reference: dict[str, Any] = {"tensor": stored}
        if self.tensors[stored] is not x:
            reference["alias"] = len(self._objects)  # a second object over the same memory
        if x.requires_grad:
            reference["requires_grad"] = True
        if x.is_complex():
            reference["complex"] = True
        if x.is_cuda:
            reference["device"] = str(x.device)
        self._objects[id(x)] = reference
        return reference

    def _fresh(self, name: str) -> str:
        """``name``, or with a number where two places give the same ({"a.b": x, "a": {"b": y}})."""
        name = name.encode("utf-8", "backslashreplace").decode()
        unique = name
        while unique in self.tensors or unique == "__metadata__":
            self._used[name] = self._used.get(name, 0) + 1
            unique = f"{name}#{self._used[name]}"
        return unique


def _join(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _key(key: Any, path: str) -> Any:
    if type(key) is str:
        return _text(key, f"a key of {path}")
    if type(key) is int:
        return key if -(1 << 63) <= key < 1 << 63 else {"int": hex(key)}
    raise TypeError(f"save: {path} has the key {key!r} of type {_kind_name(key)}; keys must be str or int")


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


def _kind_name(x: Any) -> str:
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _remedy(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return "convert it with framework.from_numpy(array)"
    if isinstance(x, np.generic):
        return "convert it with .item()"
    if hasattr(x, "state_dict"):
        return "save its .state_dict()"
    if hasattr(x, "_asdict"):
        return "save its ._asdict(), or tuple(x)"
    if isinstance(x, (set, frozenset)):
        return "save sorted(x) or list(x)"
    if isinstance(x, (int, float, str, bytes, list, tuple, dict, bytearray)):
        base = next(t for t in (int, float, str, bytes, bytearray, list, tuple, dict) if isinstance(x, t))
        return f"convert it with {'bytes' if base is bytearray else base.__name__}(x)"
    if callable(x):
        return "code cannot be saved; keep its name as text"
    return "save what it consists of (numbers, text, lists, dicts, tensors)"


# -- loading ---------------------------------------------------------------------------------------


def load(f: Any, map_location: Any = None, *, weights_only: bool | None = None) -> Any:
    """What ``save`` wrote to a path or binary file.

    map_location: the device for all tensors, or a dict from saved to wanted device names; by default
    each returns to the device it was saved from. Parameters come back as tensors that require grad.
    weights_only: changes nothing: no file can run code here.

    Everything is checked before memory is taken, and a checksum after reading. Raises CheckpointError
    for a file that is damaged, cut short or of another program, FileNotFoundError where there is none,
    DeviceError if a device is not there (pass map_location="cpu").

    >>> fw.load("nowhere.ckpt")
    Traceback (most recent call last):
    FileNotFoundError: load: there is no file 'nowhere.ckpt'
    """
    places = _Places(map_location)
    file, size, name = open_source(f, "load")
    what = f"load: {name}"
    with file:
        header, arrays = read_layout(file, size, what)
    metadata = header.metadata
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{what}: this is a safetensors file of another program; read its tensors "
                              f"with framework.io.load_safetensors")
    if metadata.get("version") != VERSION:
        raise CheckpointError(f"{what}: the file has format version {metadata.get('version')!r}, this "
                              f"package reads version {VERSION}; use a newer version of the package")
    if "checksum" not in metadata:
        raise CheckpointError(f"{what}: the checksum is missing; the file is damaged")
    structure = parse_json(metadata.get("structure", ""), f"{what}: the structure")
    return _Reader(arrays, places, what).decode(structure, 0)


class _Places:
    """Where loaded tensors go."""

    def __init__(self, map_location: Any) -> None:
        self.table: dict[str, Device] = {}
        self.all: Device | None = None
        if isinstance(map_location, dict):
            self.table = {str(as_device(k)): as_device(v) for k, v in map_location.items()}
        elif map_location is not None:
            if not isinstance(map_location, (str, int, Device)) or isinstance(map_location, bool):
                raise TypeError(f"load: map_location must be a device, a dict of devices or None, got "
                                f"{type(map_location).__name__}")
            self.all = as_device(map_location)
        for device in (self.all, *self.table.values()):
            if device is not None:
                backend_for(device)

    def of(self, saved: str) -> Device:
        if self.all is not None:
            return self.all
        return self.table.get(saved) or as_device(saved)


class _Reader:
    """Turns checked JSON data and arrays back into the object."""

    def __init__(self, arrays: dict[str, np.ndarray], places: _Places, what: str) -> None:
        self.arrays, self.places, self.what = arrays, places, what
        self.tensors: dict[tuple, Tensor] = {}
        self.moved: dict[tuple, Tensor] = {}

    def fail(self, why: str) -> CheckpointError:
        return CheckpointError(f"{self.what}: the structure is not sound: {why}")

    def decode(self, x: Any, depth: int) -> Any:
        if x is None or isinstance(x, (bool, int, float, str)):
            return x
        if depth > MAX_DEPTH:
            raise self.fail(f"it is nested more than {MAX_DEPTH} deep")
        if isinstance(x, list):
            return [self.decode(v, depth + 1) for v in x]
        if "tensor" in x:
            return self.tensor(x)
        if len(x) != 1:
            raise self.fail(f"an object with the keys {sorted(x)[:4]}")
        (kind, value), = x.items()
        make = getattr(self, f"_{kind}", None) if kind in _KINDS else None
        if make is None:
            raise self.fail(f"an object of unknown kind {kind!r}")
        try:
            return make(value, depth)
        except CheckpointError:
            raise
        except (ValueError, TypeError, KeyError, binascii.Error, struct.error, OverflowError,
                DeviceError) as error:
            raise self.fail(f"a bad {kind} ({error})") from None

    def _tuple(self, value: Any, depth: int) -> tuple:
        if not isinstance(value, list):
            raise TypeError("not a list")
        return tuple(self.decode(v, depth + 1) for v in value)

    def _dict(self, value: Any, depth: int) -> dict:
        found: dict = {}
        for key, item in value:
            key = self._int(key["int"], depth) if isinstance(key, dict) else key
            if type(key) not in (str, int) or key in found:
                raise ValueError(f"key {key!r} is no text or int, or stands twice")
            found[key] = self.decode(item, depth + 1)
        return found

    def _int(self, value: Any, depth: int) -> int:
        return int(value, 16)

    def _float(self, value: Any, depth: int) -> float:
        if value in ("inf", "-inf"):
            return float(value)
        return struct.unpack(">d", bytes.fromhex(value))[0]

    def _complex(self, value: Any, depth: int) -> complex:
        real, imag = (self.decode(v, depth + 1) for v in value)
        if type(real) is not float or type(imag) is not float:
            raise TypeError("not two floats")
        return complex(real, imag)

    def _bytes(self, value: Any, depth: int) -> bytes:
        return base64.b64decode(value, validate=True)

    def _dtype(self, value: Any, depth: int) -> DType:
        return BY_NAME[value]

    def _device(self, value: Any, depth: int) -> Device:
        return Device(value)

    def tensor(self, reference: dict) -> Tensor:
        name, alias = reference["tensor"], reference.get("alias")
        requires_grad = reference.get("requires_grad", False)
        saved = reference.get("device", "cpu")
        if not isinstance(name, str) or name not in self.arrays or type(requires_grad) is not bool \
                or not isinstance(alias, int | None) or not isinstance(saved, str):
            raise self.fail(f"a reference to tensor {name!r}, which the file does not describe")
        key = (name, alias)
        if key not in self.tensors:
            first = self._memory(name, bool(reference.get("complex", False)), saved)
            if requires_grad and first._array.dtype.kind != "f":
                raise self.fail(f"tensor {name!r} of {first.dtype} cannot require gradients")
            self.tensors[key] = first.detach().requires_grad_(requires_grad)
        return self.tensors[key]

    def _memory(self, name: str, complex_pairs: bool, saved: str) -> Tensor:
        key = (name, complex_pairs, saved)
        if key not in self.moved:
            array = self.arrays[name]
            if complex_pairs:
                if array.dtype.kind != "f" or array.shape[-1:] != (2,) or array.itemsize == 2:
                    raise self.fail(f"tensor {name!r} does not hold pairs of floats")
                array = array.view(f"c{array.itemsize * 2}")[..., 0]
            self.moved[key] = wrap(self._move(array, saved, name))
        return self.moved[key]

    def _move(self, array: np.ndarray, saved: str, name: str) -> Any:
        try:
            Device(saved)
        except DeviceError as error:
            raise self.fail(f"tensor {name!r}: {error}") from None
        try:
            return move(array, self.places.of(saved))
        except (DeviceError, MissingExtraError) as error:
            error.add_note(f"{self.what}: tensor {name!r} was saved from {saved}; pass "
                           f"map_location='cpu' to load it in host memory")
            raise


_KINDS = ("tuple", "dict", "int", "float", "complex", "bytes", "dtype", "device")
