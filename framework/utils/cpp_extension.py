"""Functions in C++, compiled when they are asked for and kept: ``load_inline`` for source text, ``load``
for files.

They are written with the header ``framework/extension.h``, which stands in this package: a function takes and
returns tensors (address, sizes, strides and dtype), numbers, text and lists of these, and is found under
its name in the module that is returned. Of PyTorch's own C++ (ATen, ``torch/extension.h``, pybind11)
nothing is here: source that uses it is refused with a sentence. Functions see the memory of the CPU; they
run without Python's lock and outside of autograd, so one that is to have a derivative stands in an
``autograd.Function``.

The compiler is ``$CXX``, or ``c++``, ``g++`` or ``clang++`` on the path. What it makes is kept in
``get_default_build_root()`` under the hash of the source with all that it includes, of the flags and of the
compiler; a file comes into its place whole, so that processes may compile side by side.
"""

import ctypes
import functools
import hashlib
import math
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from .. import dtypes
from ..autograd.mode import is_grad_enabled
from ..config.listing import own as _own
from ..errors import AutogradError, DeviceError, DTypeError
from ..tensor import Tensor, bump, wrap

__all__ = [
    "BuildExtension",  # noqa: F822 - made when it is named
    "CUDAExtension",
    "CppExtension",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "load",
    "load_inline",
]

INCLUDE = Path(__file__).with_name("include")
CUDA_HOME = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
# what shows that a source is written for PyTorch's C++, and not for the header here
_PYTORCH = re.compile(
    r"#\s*include\s*[<\"](torch|ATen|c10|pybind11)/[\w./]*|\btorch::|\bat::|\bPYBIND11_MODULE\b|"
    r"\bTORCH_LIBRARY\w*\b"
)
DTYPES = (
    dtypes.bool_,
    dtypes.uint8,
    dtypes.int8,
    dtypes.int16,
    dtypes.uint16,
    dtypes.int32,
    dtypes.uint32,
    dtypes.int64,
    dtypes.uint64,
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.float32,
    dtypes.float64,
)


class Value(ctypes.Structure):
    """``fw_value`` of the header."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("integer", ctypes.c_int64),
        ("real", ctypes.c_double),
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("writable", ctypes.c_int32),
        ("written", ctypes.c_int32),
        ("owner", ctypes.c_void_p),
    )


# -- the compiler -----------------------------------------------------------------------------------


def get_default_build_root() -> str:
    """The folder of what was compiled: $TORCH_EXTENSIONS_DIR, else ~/.cache/framework_extensions.

    >>> fw.utils.cpp_extension.get_default_build_root() != ""
    True
    """
    named = os.environ.get("TORCH_EXTENSIONS_DIR")
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join(os.path.expanduser("~"), ".cache"))
    return named or os.path.join(cache, "framework_extensions")


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folder that ``framework/extension.h`` is in."""
    return [str(INCLUDE)]


def is_ninja_available() -> bool:
    """Whether Ninja is on the path; it is not needed here."""
    return shutil.which("ninja") is not None


def _compiler(op: str) -> list[str]:
    """The command of the compiler; RuntimeError without one."""
    named = os.environ.get("CXX")
    if named:
        command = shlex.split(named)
        if shutil.which(command[0]) is None:
            raise RuntimeError(f"{op}: there is no compiler {named!r}, which $CXX names")
        return command
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise RuntimeError(
        f"{op}: there is no C++ compiler on the path (c++, g++ or clang++); install one, or name it in $CXX"
    )


@functools.cache
def _version(command: tuple[str, ...]) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, text=True).stdout


def _checked_source(text: str, what: str) -> None:
    found = _PYTORCH.search(text)
    if found:
        raise RuntimeError(
            f"{what} is written for PyTorch's C++ (it says {found[0].strip()!r}), which is not here; "
            f"include <framework/extension.h> instead and take fw::Tensor: its beginning shows how"
        )


def _run(command: list[str], op: str, verbose: bool) -> str:
    if verbose:
        print(shlex.join(command))
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if verbose and done.stderr:
        print(done.stderr)
    if done.returncode:
        raise RuntimeError(f"{op}: the compiler failed ({shlex.join(command)}):\n{done.stderr.strip()}")
    return done.stdout


def _built(
    name: str, sources: Sequence[str], flags: Sequence[str], folder: str, op: str, verbose: bool
) -> str:
    """The path of the library of these sources, which is compiled unless it is there."""
    if os.name == "nt":
        raise RuntimeError(f"{op}: functions in C++ are compiled on Linux and macOS only")
    compiler = _compiler(op)
    # what is before -l and -L is needed to read the source, so that a changed header is seen
    reading = [
        flag for flag in flags if flag.startswith(("-I", "-D", "-U", "-std", "-m", "-f", "-include", "-O"))
    ]
    text = _run([*compiler, *_FLAGS[:1], *reading, f"-I{INCLUDE}", "-E", "-P", *sources], op, False)
    digest = hashlib.sha256(
        "\0".join(
            (text, *_FLAGS, *flags, _version(tuple(compiler)), platform.machine(), sys.platform)
        ).encode()
    ).hexdigest()
    path = os.path.join(folder, f"{name}-{digest[:24]}.so")
    if os.path.exists(path):
        return path
    os.makedirs(folder, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{name}-", suffix=".so", dir=folder)
    os.close(handle)
    try:
        _run([*compiler, *_FLAGS, f"-I{INCLUDE}", *sources, *flags, "-o", beside], op, verbose)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)
    return path


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Any = None,
    extra_sycl_cflags: Any = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> Any:
    """A module of the functions that files of C++ export by ``FW_EXPORT(name)``.

    sources: paths; compiled with C++17 and ``extra_cflags``, linked with ``extra_ldflags``.
    build_directory: default `get_default_build_root`. verbose: print the command and the compiler's
    warnings. is_python_module: False to get the path of the library instead. Raises RuntimeError without a
    compiler, for what it refuses, for source written for PyTorch's C++, and for CUDA, which CuPy compiles
    (``cupy.RawModule``).
    """
    op = f"cpp_extension.load({name!r})"
    paths = [os.fspath(s) for s in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)]
    _refuse_cuda(
        op, with_cuda or with_sycl or is_standalone or any(p.endswith((".cu", ".sycl")) for p in paths)
    )
    for path in paths:
        _checked_source(Path(path).read_text(errors="replace"), f"{op}: {path}")
    flags = [*(extra_cflags or ()), *(f"-I{p}" for p in extra_include_paths or ()), *(extra_ldflags or ())]
    library = _built(_word(name, op), paths, flags, build_directory or get_default_build_root(), op, verbose)
    return _module(name, library) if is_python_module else library


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: Any = None,
    sycl_sources: Any = None,
    functions: Sequence[str] | dict[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Any = None,
    extra_sycl_cflags: Any = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> Any:
    """A module of functions written in C++ in a string, whose names are in ``functions``.

    cpp_sources: one text, or several that are put together; ``framework/extension.h`` is included before.
    functions: names, or {name: docstring}. Otherwise as `load`.

    >>> source = "double half(double x) { return x / 2; }"
    >>> fw.utils.cpp_extension.load_inline("halves", source, functions=["half"]).half(3.0)  # doctest: +SKIP
    1.5
    """
    op = f"cpp_extension.load_inline({name!r})"
    _refuse_cuda(op, bool(cuda_sources) or bool(sycl_sources) or bool(with_cuda) or bool(with_sycl))
    text = "\n".join([cpp_sources] if isinstance(cpp_sources, str) else cpp_sources)
    _checked_source(text, f"{op}: the source")
    docs = dict(functions) if isinstance(functions, dict) else dict.fromkeys(functions or (), "")
    for function in docs:
        _word(function, op)
    head = "" if no_implicit_headers else "#include <framework/extension.h>\n#include <cmath>\n"
    exports = "".join(f"FW_EXPORT({function})\n" for function in docs)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "main.cpp")
        Path(path).write_text(f'{head}#line 1 "{name}.cpp"\n{text}\n{exports}')
        flags = [
            *(extra_cflags or ()),
            *(f"-I{p}" for p in extra_include_paths or ()),
            *(extra_ldflags or ()),
        ]
        library = _built(
            _word(name, op), [path], flags, build_directory or get_default_build_root(), op, verbose
        )
    return _module(name, library, docs) if is_python_module else library


def _word(name: str, op: str) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"{op}: {name!r} is no name that C++ and Python know")
    return name


def _refuse_cuda(op: str, wanted: Any) -> None:
    if wanted:
        raise RuntimeError(
            f"{op}: sources for GPUs are not compiled here; cupy.RawModule and cupy.RawKernel compile "
            f"CUDA, and work on the arrays of tensors on a GPU"
        )


# -- calls ------------------------------------------------------------------------------------------


def _module(name: str, path: str, docs: dict[str, str] | None = None) -> ModuleType:
    """The functions of a library as a module."""
    library = ctypes.CDLL(path)
    call = library.fw_extension_call
    call.argtypes = (
        ctypes.c_char_p,
        ctypes.POINTER(Value),
        ctypes.c_int64,
        ctypes.POINTER(Value),
        ctypes.c_char_p,
        ctypes.c_int64,
    )
    library.fw_extension_free.argtypes = (ctypes.c_void_p,)
    text = ctypes.create_string_buffer(library.fw_extension_names(None, 0))
    library.fw_extension_names(text, len(text))
    module = ModuleType(name, f"Functions in C++, from {path}.")
    module.__file__ = path
    for function in text.value.decode().split():
        setattr(module, function, _function(library, name, function, (docs or {}).get(function, "")))
    return module


def _function(library: Any, module: str, name: str, doc: str) -> Callable:
    def call(*args: Any) -> Any:
        where = f"{module}.{name}"
        packed = _Packed(where)
        values = packed.values(args)
        result, message = Value(), ctypes.create_string_buffer(2000)
        failed = library.fw_extension_call(
            name.encode(), values, len(args), ctypes.byref(result), message, 2000
        )
        packed.tell_of_writes(where)
        if failed:
            error = message.value.decode(errors="replace")
            raise (
                TypeError(f"{where}: {error}")
                if "argument" in error and failed == 1
                else RuntimeError(f"{where}: {error}")
            )
        owner = _Owner(library.fw_extension_free, result.owner)
        return packed.unpacked(result, owner)

    call.__name__ = call.__qualname__ = name
    call.__module__, call.__doc__ = module, doc or None
    return call


class _Owner:
    """Frees what a result points to when nothing refers to it any more."""

    def __init__(self, free: Callable, owner: int | None) -> None:
        self._free, self._owner = free, owner

    def __del__(self) -> None:
        self._free(self._owner)


class _Packed:
    """The arguments of a call as values, and what they point to."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.kept: list[Any] = []
        self.tensors: list[tuple[Tensor, Value]] = []

    def values(self, args: Iterable[Any]) -> Any:
        args = list(args)
        packed = (Value * max(len(args), 1))()
        self.kept.append(packed)
        for value, x in zip(packed, args):
            self._pack(value, x)
        return packed

    def _pack(self, value: Value, x: Any) -> None:
        if isinstance(x, Tensor):
            self._pack_tensor(value, x)
        elif isinstance(x, (bool, np.bool_)):
            value.kind, value.integer = 1, bool(x)
        elif isinstance(x, (int, np.integer)):
            if not -(1 << 63) <= int(x) < 1 << 63:
                raise OverflowError(f"{self.op}: {x} does not fit 64 bits")
            value.kind, value.integer = 2, int(x)
        elif isinstance(x, (float, np.floating)):
            value.kind, value.real = 3, float(x)
        elif isinstance(x, str):
            data = x.encode()
            buffer = ctypes.create_string_buffer(data, len(data) + 1)
            self.kept.append(buffer)
            value.kind, value.integer, value.data = 4, len(data), ctypes.addressof(buffer)
        elif isinstance(x, (list, tuple)):
            items = self.values(x)
            value.kind, value.integer, value.data = 6, len(x), ctypes.addressof(items)
        elif x is not None:
            raise TypeError(
                f"{self.op}: wanted tensors, numbers, text, None, or lists of these, got {type(x).__name__}"
            )

    def _pack_tensor(self, value: Value, x: Tensor) -> None:
        array = x._array
        if not isinstance(array, np.ndarray):
            raise DeviceError(
                f"{self.op}: functions in C++ see the memory of the CPU, this tensor is on '{x.device}'; "
                f"use x.cpu()"
            )
        if x.requires_grad and is_grad_enabled():
            raise AutogradError(
                f"{self.op}: this tensor requires grad, and what C++ does to it is not recorded; call it "
                f"in an autograd.Function, on x.detach(), or under no_grad()"
            )
        if x.dtype not in DTYPES:
            raise DTypeError(f"{self.op}: tensors of {x.dtype} are not passed to C++")
        if any(s % array.itemsize for s in array.strides):
            array = np.ascontiguousarray(array)  # a field of records: its steps are no whole elements
        sizes, steps = ctypes.c_int64 * max(array.ndim, 1), [s // array.itemsize for s in array.strides]
        shape, strides = sizes(*array.shape), sizes(*steps)
        self.kept += [array, shape, strides]
        value.kind, value.dtype, value.integer = 5, DTYPES.index(x.dtype), len(self.tensors)
        value.data, value.ndim = array.__array_interface__["data"][0], array.ndim
        value.shape, value.strides = shape, strides
        value.writable = array.flags.writeable and array is x._array
        self.tensors.append((x, value))

    def tell_of_writes(self, op: str) -> None:
        """Count the change of each tensor that was written into."""
        for x, value in self.tensors:
            if value.written:
                bump(x, op)

    def unpacked(self, value: Value, owner: _Owner) -> Any:
        """What a value of the result is in Python."""
        if value.kind == 5:
            return self._tensor(value, owner)
        if value.kind == 6:
            items = ctypes.cast(value.data, ctypes.POINTER(Value)) if value.integer else ()
            return tuple(self.unpacked(items[i], owner) for i in range(value.integer))  # type: ignore[index]
        if value.kind == 4:
            return ctypes.string_at(value.data, value.integer).decode(errors="replace")
        return (None, bool(value.integer), value.integer, value.real)[value.kind]

    def _tensor(self, value: Value, owner: _Owner) -> Tensor:
        if value.integer >= 0:  # an argument
            return self.tensors[value.integer][0]
        shape = value.shape[: value.ndim]
        dtype = DTYPES[value.dtype].numpy
        count = math.prod(shape)
        if count == 0:
            return wrap(np.empty(shape, dtype))
        memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(value.data)
        memory._owner = owner  # the array keeps ``memory``, which keeps what it lies in
        return wrap(np.frombuffer(memory, np.uint8).view(dtype).reshape(shape))


# -- setuptools -------------------------------------------------------------------------------------


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """``setuptools.Extension`` in C++17 that finds ``framework/extension.h``; the sources make the Python
    module.

    Raises RuntimeError for source written for PyTorch's C++.
    """
    from setuptools import Extension

    for source in sources:
        if os.path.exists(source):
            _checked_source(Path(source).read_text(errors="replace"), f"CppExtension({name!r}): {source}")
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", ()), *include_paths()]
    kwargs["language"] = "c++"
    extra = kwargs.get("extra_compile_args") or []
    flags = list(extra.get("cxx", ())) if isinstance(extra, dict) else list(extra)
    kwargs["extra_compile_args"] = [
        *(() if any(f.startswith("-std=") for f in flags) else _FLAGS[:1]),
        *flags,
    ]
    return Extension(name, list(sources), *args, **kwargs)


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: sources for GPUs are not compiled here; CuPy compiles CUDA (``cupy.RawModule``)."""
    _refuse_cuda(f"CUDAExtension({name!r})", True)
    raise AssertionError


def __getattr__(name: str) -> Any:
    """``BuildExtension``, whose base is of setuptools, which not every program needs."""
    if name != "BuildExtension":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from setuptools.command.build_ext import build_ext

    class BuildExtension(build_ext):
        """setuptools' ``build_ext``, with the options that programs of PyTorch give."""

        @classmethod
        def with_options(cls, **options: Any) -> Any:
            """The command with ``use_ninja=`` and others, which are taken and change nothing."""
            return cls

    globals()[name] = BuildExtension
    return BuildExtension


__dir__ = _own(globals(), "CUDA_HOME")
