"""libframework from Python: a model file run by the library that programs in C use, to compare with
eager."""

import ctypes
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .. import _native
from ..dtypes import BY_NAME, BY_NUMPY
from ..errors import CheckpointError, FrameworkError, kind_of
from ..tensor import Tensor, wrap
from .format import TYPES

_NAMES = {number: name for name, number in TYPES.items()}
_MOST_AXES = 12
_FILE = {"darwin": "libframework.dylib", "win32": "framework.dll"}.get(sys.platform, "libframework.so")


class _View(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("type", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class _Port(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.c_int64 * _MOST_AXES),
    ]


class _Request:
    """A request of the library, and the memory in which calls say what they are given and get."""

    def __init__(self, pointer: Any, inputs: int, outputs: int) -> None:
        self.pointer = pointer
        self.why = ctypes.create_string_buffer(480)
        self.given, self.wanted = (_View * inputs)(), (_View * outputs)()
        numbers = ctypes.c_int64 * _MOST_AXES
        self.sizes = [(numbers(), numbers()) for _ in range(inputs)]
        for view, sizes in zip(self.given, self.sizes):
            view.shape, view.strides = sizes
        self.call = (pointer, self.given, inputs, self.wanted, outputs, self.why)


class RuntimeModelError(FrameworkError, RuntimeError):
    """A model file that the library does not load, or inputs that it does not take."""


_opened: list = []


def _library() -> Any:
    if _opened:
        return _opened[0]
    where = getattr(_native.module, "__file__", None)
    path = Path(where).with_name(_FILE) if where else None
    if path is None or not path.exists():
        raise RuntimeModelError(
            "runtime: libframework is not beside the native kernels; install the package with "
            "them (framework.config says why they are missing)"
        )
    found = ctypes.CDLL(str(path))
    for name in (
        "framework_model_load",
        "framework_model_read",
        "framework_model_run",
        "framework_request_new",
        "framework_model_input",
        "framework_model_output",
        "framework_model_inputs",
        "framework_model_outputs",
        "fw_set_threads",
        "fw_threads",
        "fw_version",
    ):
        getattr(found, name).restype = ctypes.c_int
    found.framework_model_bytes.restype = ctypes.c_int64
    found.framework_model_free.restype = found.framework_request_free.restype = None
    _opened.append(found)
    return found


class CompiledModel:
    """A model file in libframework: called with tensors, it gives tensors, by the code that runs without
    Python.

        Each call has a request of its own unless one thread calls after another; a model may be used by
    several threads.

        >>> fw.runtime.load("model.fwk")(fw.randn(2, 3))  # doctest: +SKIP
    """

    def __init__(self, source: bytes | str) -> None:
        self._lib = _library()
        self._model = ctypes.c_void_p()
        self._free: list[Any] = []
        why = ctypes.create_string_buffer(480)
        if isinstance(source, bytes):
            status = self._lib.framework_model_read(
                source, ctypes.c_size_t(len(source)), ctypes.byref(self._model), why
            )
        else:
            status = self._lib.framework_model_load(source.encode(), ctypes.byref(self._model), why)
        if status:
            raise CheckpointError(f"runtime.load: {why.value.decode(errors='replace')}")
        self.inputs = self._ports("input")
        self.outputs = self._ports("output")

    def _ports(self, kind: str) -> list[tuple[str, str, tuple]]:
        """(name, dtype, shape) of each; None for a size that each run may choose."""
        found = []
        for i in range(getattr(self._lib, f"framework_model_{kind}s")(self._model)):
            port = _Port()
            getattr(self._lib, f"framework_model_{kind}")(self._model, i, ctypes.byref(port))
            shape = tuple([None if n < 0 else n for n in port.shape[: max(port.ndim, 0)]])
            found.append((port.name.decode(), _NAMES[port.type], shape))
        return found

    def run(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The outputs for these arrays, as copies."""
        if len(arrays) != len(self.inputs):
            names = ", ".join(name for name, *_ in self.inputs)
            raise RuntimeModelError(
                f"runtime: the model takes {len(self.inputs)} inputs ({names}), got {len(arrays)}"
            )
        request = self._free.pop() if self._free else self._request()
        try:
            for view, sizes, a in zip(request.given, request.sizes, arrays):
                _show(view, sizes, a)
            if self._lib.framework_model_run(*request.call):
                raise RuntimeModelError(f"runtime: {request.why.value.decode(errors='replace')}")
            return [_array(v) for v in request.wanted]
        finally:
            self._free.append(request)

    def _request(self) -> "_Request":
        made = ctypes.c_void_p()
        if self._lib.framework_request_new(self._model, ctypes.byref(made)):
            raise MemoryError("runtime: no memory for a request")
        return _Request(made, len(self.inputs), len(self.outputs))

    @property
    def nbytes(self) -> int:
        """How many bytes the model holds, weights that kernels packed included; results lie elsewhere."""
        return self._lib.framework_model_bytes(self._model)

    def __call__(self, *inputs: Tensor) -> Any:
        """A tensor, or a list of them if the model has several outputs.

        Raises TypeError for what is no tensor, RuntimeModelError for shapes and dtypes that do not fit.
        """
        for number, t in enumerate(inputs):
            if not isinstance(t, Tensor):
                raise TypeError(f"runtime: input {number} must be a Tensor, got {kind_of(t)}; for NumPy "
                                f"arrays use model.run(*arrays)")
        made = [wrap(a) for a in self.run(*[t.detach()._array for t in inputs])]
        return made[0] if len(made) == 1 else made

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            for request in self._free:
                self._lib.framework_request_free(request.pointer)
            self._lib.framework_model_free(self._model)
            self._model = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        def shown(ports: list) -> str:
            return ", ".join(f"{name}: {dtype}{list(shape)}" for name, dtype, shape in ports)

        return f"CompiledModel({shown(self.inputs)} -> {', '.join(o[0] for o in self.outputs)})"


def load(f: str | Path) -> CompiledModel:
    """The model of a file that ``runtime.export`` wrote, run by libframework.

        Raises CheckpointError for another or a damaged file, RuntimeModelError where the library is not
    installed.

        >>> model = fw.runtime.load("model.fwk")  # doctest: +SKIP
    """
    return CompiledModel(str(f))


def set_threads(n: int) -> None:
    """How many threads share a call of the library, which has a pool of its own."""
    _library().fw_set_threads(n)


def _type_of(dtype: np.dtype) -> int:
    known = BY_NUMPY.get(dtype)  # bfloat16 is there once its package is in use
    return -1 if known is None else TYPES.get(known.name, -1)


def _show(view: _View, sizes: tuple, a: np.ndarray) -> None:
    ndim = a.ndim
    view.data, view.type, view.ndim = a.ctypes.data, _type_of(a.dtype), ndim
    if ndim <= _MOST_AXES:  # the library refuses more before it looks at them
        shape, strides = sizes
        shape[:ndim], strides[:ndim] = a.shape, a.strides


def _array(v: _View) -> np.ndarray:
    shape, strides = tuple(v.shape[: v.ndim]), tuple(v.strides[: v.ndim])
    dtype = np.dtype(BY_NAME[_NAMES[v.type]].numpy)  # bfloat16 is an extra, asked for where it is met
    size = dtype.itemsize * math.prod(shape)
    rows, step = True, size
    for n, s in zip(shape, strides):
        step //= n
        rows = rows and (s == step or n == 1)
    if rows:
        return np.ndarray(shape, dtype, (ctypes.c_char * size).from_address(v.data)).copy()
    reach = sum((n - 1) * s for n, s in zip(shape, strides) if s > 0) + dtype.itemsize
    low = sum((n - 1) * s for n, s in zip(shape, strides) if s < 0)
    raw = (ctypes.c_char * (reach - low)).from_address(v.data + low)
    return np.array(np.ndarray(shape, dtype, raw, -low, strides))
