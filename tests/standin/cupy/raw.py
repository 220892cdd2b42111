"""``RawModule``: the source of kernels, compiled by the compiler of this machine and run over NumPy's memory.

``settings``: "backward" lets threads and blocks run in the other order; "guarded" copies the arrays of a
launch to memory that ends where a page begins that must not be touched, and back.
"""

import ctypes
import hashlib
import mmap
import os
import re
import shutil
import subprocess
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np

from . import counts, graphs, streams

HERE = Path(__file__).parent / "device"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
_KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(')
_BARRIERS = re.compile(r"__syncthreads|__syncwarp|__shfl|block_total|warp_total|block_of")
_PAGE = mmap.PAGESIZE
_mprotect = ctypes.CDLL(None).mprotect
_mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_ANY_REGISTERS = 256  # threads of a block for which there are as many registers as each can name
settings = {"backward": False, "guarded": False}
compiled: dict[str, Any] = {}  # code: library
_engine: Any = None
# kernels need none of C++'s libraries, without which a module is there in three quarters of the time
_KERNELS = ("-O0", "-pipe", "-nostdlib")
# memory of templates (shared memory of blocks) is each library's own, though their names are the same
_OWN = ("-fvisibility-inlines-hidden", *(["-fno-gnu-unique"] if COMPILER and "clang" not in COMPILER else []))


def _cache() -> Path:
    folder = Path(
        os.environ.get("CUDA_ON_CPU_CACHE") or Path(tempfile.gettempdir()) / f"cuda-on-cpu-{os.getuid()}"
    )
    folder.mkdir(exist_ok=True)
    return folder


def _library(text: str, flags: tuple[str, ...], mode: int = ctypes.DEFAULT_MODE) -> Any:
    if COMPILER is None:
        raise NotImplementedError("there is no C++ compiler here to compile kernels with (g++ or clang++)")
    header = (HERE / "cuda_on_cpu.h").read_text()
    key = hashlib.sha1((text + header + str((flags, _OWN)) + COMPILER).encode()).hexdigest()
    so = _cache() / f"{key}.so"
    if not so.exists():
        with tempfile.TemporaryDirectory(dir=_cache()) as folder:
            (Path(folder) / "it.cpp").write_text(text)
            done = subprocess.run(
                [
                    COMPILER,
                    "-std=c++17",
                    *_OWN,
                    *flags,
                    "-w",
                    "-fPIC",
                    "-shared",
                    "-I",
                    str(HERE),
                    "it.cpp",
                    "-o",
                    "it.so",
                    "-lgcc",
                    "-lm",
                ],
                cwd=folder,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise RuntimeError(f"a kernel does not compile:\n{done.stderr[:3000]}")
            os.replace(Path(folder) / "it.so", so)
    return ctypes.CDLL(str(so), mode)


def engine() -> Any:
    """What runs threads; compiled once."""
    global _engine
    if _engine is None:
        _engine = _library((HERE / "engine.cpp").read_text(), ("-O1",), ctypes.RTLD_GLOBAL)
        _engine.cuda_on_cpu_message.restype = ctypes.c_char_p
    return _engine


def _text(code: str, prefix: str = "") -> str:
    names = _KERNEL.findall(code)
    exports = "".join(f"\nCUDA_ON_CPU_EXPORT({prefix}{n}, {n})" for n in names)
    return (code.replace('extern "C" __global__', "__global__") if prefix else code) + exports


def prepare(prelude: str, sources: list[str], flags: tuple[str, ...] = _KERNELS) -> None:
    """Compile many modules that begin with one text at once, which takes a tenth of the time."""
    engine()
    new = [s for s in dict.fromkeys(sources) if prelude + s not in compiled]
    spaces = [f"namespace module_{i} {{\n{_text(s, f'm{i}_')}\n}}\n" for i, s in enumerate(new)]
    if new:
        library = _library('#include "cuda_on_cpu.h"\n' + prelude + "".join(spaces), flags)
        compiled.update({prelude + s: (library, f"m{i}_") for i, s in enumerate(new)})


class RawModule:
    """Kernels of a source text."""

    def __init__(
        self,
        *,
        code: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        path: Any = None,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Any = None,
        jitify: bool = False,
    ) -> None:
        assert backend == "nvrtc" and not (path or translate_cucomplex or name_expressions or jitify)
        engine()
        self.code, self.cooperative = code, enable_cooperative_groups
        if code not in compiled:
            compiled[code] = _library('#include "cuda_on_cpu.h"\n' + _text(code), _KERNELS), ""
        self.library, self.prefix = compiled[code]

    def get_function(self, name: str) -> "Kernel":
        return Kernel(self, name)


class Kernel:
    """One kernel: ``kernel(grid, block, args, shared_mem=0)``."""

    def __init__(self, module: RawModule, name: str) -> None:
        self.name, self.module = name, module
        bounds = r"(?:__launch_bounds__\((\d*)[^)]*\)\s+)?"
        takes = re.search(rf"__global__ void\s+{bounds}{name}\(([^)]*)\)", module.code)
        self.most_threads = int(takes[1] or _ANY_REGISTERS)  # type: ignore[index]
        self.written = [  # flags are raised by atomic operations, in any order
            "*" in p and "const" not in p and "Flag*" not in p
            for p in takes[2].split(",")  # type: ignore[index]
        ]
        exported = _Exported.in_dll(module.library, f"cuda_on_cpu_{module.prefix}{name}")
        self.run, sizes = exported.run, exported.sizes
        self.sizes = sizes[1:1 + sizes[0]]
        self.barriers = 2 if module.cooperative else int(bool(_BARRIERS.search(module.code)))
        self._handle = _Handle(self.run, self.barriers)
        self.kernel = types.SimpleNamespace(ptr=ctypes.addressof(self._handle))  # what CuPy hands the driver

    def __call__(
        self, grid: tuple, block: tuple, args: Any, *, shared_mem: int = 0, stream: Any = None
    ) -> None:
        import cupy

        counts.launch(self.name)
        threads = int(np.prod(block))
        if threads > self.most_threads:
            raise ValueError(f"{self.name}: {threads} threads of a block may find no registers; say "
                             f"__launch_bounds__({threads}) in its source")
        if len(args) != len(self.sizes):
            raise TypeError(f"{self.name} takes {len(self.sizes)} arguments, got {len(args)}")
        if graphs.recording is not None:
            args = tuple([a.copy() if isinstance(a, np.ndarray) else a for a in args])
            graphs.recording.append(lambda: self(grid, block, args, shared_mem=shared_mem))
            return
        if streams.used:
            for a, written in zip(args, self.written):
                if isinstance(a, cupy.ndarray):
                    cupy._use(a, written)
        keep: list = []
        guards: list = []
        pointers = (ctypes.c_void_p * len(args))()
        for i, a in enumerate(args):
            value = self._value(a, cupy, guards)
            if value.nbytes != self.sizes[i]:
                raise TypeError(
                    f"{self.name}: argument {i} has {value.nbytes} bytes, the kernel takes {self.sizes[i]}"
                )
            keep.append(value)
            pointers[i] = value.ctypes.data
        shape = [(ctypes.c_uint * 3)(*[int(v) for v in (*given, 1, 1)[:3]]) for given in (grid, block)]
        failed = engine().cuda_on_cpu_launch(
            ctypes.c_void_p(self.run),
            *shape,
            ctypes.c_size_t(shared_mem),
            pointers,
            self.barriers,
            int(settings["backward"]),
        )
        for guard in guards:
            guard.back()
        if failed:
            raise RuntimeError(f"{self.name}: {engine().cuda_on_cpu_message().decode()}")

    def _value(self, a: Any, cupy: Any, guards: list) -> np.ndarray:
        """What the kernel is handed: a pointer, or a number as CuPy passes Python's."""
        if isinstance(a, cupy.ndarray):
            here = int(cupy.cuda.runtime.getDevice())
            if a._device != here:
                raise ValueError(f"{self.name}: an array of device {a._device}, while {here} is current")
            if settings["guarded"] and a.size:
                guard = next((g for g in guards if g.array is a._a), None)
                if guard is None:
                    guards.append(guard := _Guard(a._a))
                return np.array([guard.address], np.uintp)
            return np.array([a._a.ctypes.data], np.uintp)
        if isinstance(a, np.ndarray):
            if a.size != 1:
                raise TypeError("an array of NumPy's of more than one element is no argument of a kernel")
            return a
        if isinstance(a, np.generic):
            return np.asarray(a)
        if isinstance(a, (bool, int, float)):
            return np.asarray(a, {bool: np.bool_, int: np.int64, float: np.float64}[type(a)])
        if a is None:
            return np.zeros(1, np.uintp)
        raise TypeError(f"{self.name}: unsupported type {type(a)}")


class _Exported(ctypes.Structure):
    """``CudaOnCpuKernel``: a kernel's address; how many arguments it takes, and the bytes of each."""

    _fields_ = [("run", ctypes.c_void_p), ("sizes", ctypes.POINTER(ctypes.c_int))]


class _Handle(ctypes.Structure):
    _fields_ = [("run", ctypes.c_void_p), ("barriers", ctypes.c_int)]


def library(name: str) -> Any:
    """A library that stands for one of NVIDIA's (``name``.c), and the path of it."""
    text = (HERE / f"{name}.c").read_text()
    key = hashlib.sha1(text.encode()).hexdigest()
    so = _cache() / f"{name}-{key}.so"
    if not so.exists():
        with tempfile.TemporaryDirectory(dir=_cache()) as folder:
            flags = ["-x", "c", "-O1", "-fPIC", "-shared"]
            subprocess.run([COMPILER, *flags, HERE / f"{name}.c", "-o", f"{folder}/it.so"], check=True)
            os.replace(f"{folder}/it.so", so)
    return ctypes.CDLL(str(so), ctypes.RTLD_GLOBAL), str(so)


def driver() -> Any:
    """A library with the driver's functions for launches (driver.c), and the path of it."""
    engine()
    return library("driver")


class _Guard:
    """A copy of an array's memory that ends at a page that must not be touched."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        low, high = np.lib.array_utils.byte_bounds(array)
        self.low, self.nbytes = low, high - low
        room = -(-self.nbytes // _PAGE) * _PAGE
        self.map = mmap.mmap(-1, room + _PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        if _mprotect(start + room, _PAGE, 0):
            raise OSError("mprotect")
        self.start = start + room - self.nbytes
        ctypes.memmove(self.start, low, self.nbytes)
        self.address = self.start + array.ctypes.data - low

    def back(self) -> None:
        """What the kernel wrote, to where the array is."""
        ctypes.memmove(self.low, self.start, self.nbytes)
