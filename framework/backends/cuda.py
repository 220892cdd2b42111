"""CuPy: the array module and memory of NVIDIA GPUs. Imported from CuPy only when a GPU is named."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from threading import get_ident
from typing import Any

import numpy as np

from .. import dtypes
from ..config import need
from ..config.listing import own as _own
from ..device import Device
from ..errors import DeviceError, MissingExtraError
from . import nvml, precision, sdp
from .gpu_memory import Allocator, install

_cupy: Any = None
array_type: Any = None  # of CuPy's arrays, once it is imported
_allocator: Allocator | None = None
_forked = False  # whether the parent of this process, which was forked, uses a GPU
owners: Callable[[int], list[str]] = lambda device: []  # who has a device's memory; framework says it


def cupy() -> Any:
    """The cupy module, imported at first use."""
    global _cupy, _allocator, array_type
    if _cupy is None:
        if _forked:
            raise DeviceError("cuda: this process was forked from one that uses a GPU, which only that one "
                              "can; start workers by multiprocessing_context='spawn', or leave the GPU to "
                              "the parent")
        _cupy = need("cupy", "cuda12", "device 'cuda'")
        array_type = _cupy.ndarray
        _allocator = install(_cupy, lambda device: owners(device))
        dtypes.plain = False
    return _cupy


def _after_fork() -> None:
    global _cupy, _forked
    if _cupy is not None:
        _cupy, _forked = None, True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def is_loaded() -> bool:
    """Whether the cupy module has been imported."""
    return _cupy is not None


def allocator() -> Allocator | None:
    """What stands before CuPy's pool; None before CuPy is imported, and where another was chosen."""
    return _allocator


def keep_for(array: Any, stream: Any) -> None:
    """Let the memory of an array go to others only after what a stream holds when the array is gone."""
    if _allocator is None:
        raise DeviceError("record_stream: this program has chosen an allocator of its own for CuPy, which "
                          "has to know of streams itself")
    _allocator.keep_for(array, stream)


def nccl() -> Any:
    """``cupy.cuda.nccl``, which CuPy loads only by its full name; MissingExtraError without it."""
    need("cupy", "cuda13", "NCCL")
    found = need("cupy.cuda.nccl", "cuda13", "NCCL")
    if not getattr(found, "available", False):
        raise MissingExtraError("NCCL is not there: CuPy finds no libnccl; install it with: pip install "
                                "nvidia-nccl-cu13")
    return found


def is_built() -> bool:
    """Whether CuPy is installed, GPU or not."""
    return find_spec("cupy") is not None


def is_available() -> bool:
    """Whether CuPy is installed and there is a GPU, without starting CUDA where that can be avoided."""
    if not is_built():
        return False
    count = None if is_loaded() else nvml.device_count()
    return (device_count() if count is None else count) > 0


_counted: tuple[Any, int] = (None, 0)  # of which module, how many devices: as many as the process began with


def device_count() -> int:
    """How many CUDA devices CuPy sees; 0 when CuPy or the driver is missing."""
    global _counted
    if _counted[0] is not None and _counted[0] is _cupy:
        return _counted[1]
    try:
        count = int(cupy().cuda.runtime.getDeviceCount())
    except Exception:  # any driver or import failure means: no device here
        return 0
    if count:
        _counted = _cupy, count
    return count


def is_alone() -> bool:
    """Whether there is one device, which is the current one."""
    module, count = _counted
    return (count if module is _cupy is not None else device_count()) == 1


def is_current(index: int) -> bool:
    """Whether a device is the current one of this thread."""
    return int(cupy().cuda.runtime.getDevice()) == index


def require(device: Device) -> None:
    """Raise DeviceError unless ``device`` exists."""
    cupy()
    count = device_count()
    if count == 0:
        raise DeviceError(f"device '{device}' was asked for, but CuPy sees no CUDA device; use 'cpu'")
    if device.index is not None and device.index >= count:
        raise DeviceError(f"device '{device}' was asked for, but there are {count} CUDA devices "
                          f"(cuda:0 to cuda:{count - 1})")


def index_of(device: Device) -> int:
    """The number of the device; ``cuda`` alone is CuPy's current device."""
    return int(cupy().cuda.runtime.getDevice()) if device.index is None else device.index


_HERE: AbstractContextManager = nullcontext()


def on(device: Device) -> AbstractContextManager:
    """Make a device the current one for a block; nothing where it is."""
    if device.index is None or is_alone() or is_current(device.index):
        return _HERE
    return cupy().cuda.Device(device.index)


def use(device: Device) -> None:
    """Make a device the current one of this thread."""
    cupy().cuda.Device(index_of(device)).use()


def properties(device: Device) -> dict[str, Any]:
    """What the driver says of a device."""
    return cupy().cuda.runtime.getDeviceProperties(index_of(device))


_multiprocessors: dict[int, int] = {}


def multiprocessors() -> int:
    """How many multiprocessors the current device has."""
    device = int(cupy().cuda.runtime.getDevice())
    if device not in _multiprocessors:
        _multiprocessors[device] = int(cupy().cuda.runtime.getDeviceProperties(device)["multiProcessorCount"])
    return _multiprocessors[device]


def device_of(array: Any) -> Device:
    """The device that holds ``array``."""
    return Device("cuda", int(array.device.id))


def follow(g: Any) -> None:
    """Make the device of a gradient (array, tensor, or list of parts) the current one."""
    if type(g) is array_type:  # nearly always
        g.device.use()
        return
    for array in arrays_in(g):
        array.device.use()
        return


def arrays_in(g: Any) -> Iterator[Any]:
    """The arrays of GPUs in a gradient: an array, a tensor, or a list of parts."""
    for part in g if isinstance(g, list) else (g,):
        values = getattr(part, "_entries", part)  # a sparse tensor's are where it is
        array = getattr(values, "_array", values)
        if isinstance(array, _cupy.ndarray):
            yield array


@contextmanager
def current_device_kept() -> Iterator[None]:
    """Put CuPy's current device back at the end of the block."""
    before = None if _cupy is None or not device_count() else _cupy.cuda.Device()
    try:
        yield
    finally:
        if before is not None:
            before.use()


def is_pinned(array: np.ndarray) -> bool:
    """Whether the system may not move the memory of an array: what ``pin_memory`` gave."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    owner = array.base.obj if isinstance(array.base, memoryview) else array.base
    return type(owner).__module__.startswith("cupy")


def from_any(array: Any, device: Device, wait: bool = True) -> Any:
    """A copy on ``device`` of a NumPy array, or of a CuPy array of another device.

    CuPy copies through a buffer of its own, but pinned memory directly, while the program goes on: unless it
    knows that (``wait=False``), wait, or the next write to that memory would be copied, too.
    """
    number = index_of(device)
    if not isinstance(array, np.ndarray) and int(array.device.id) == number:
        return array
    here = isinstance(array, np.ndarray)
    pinned = here and is_pinned(array)
    if here and not (pinned and array.flags.c_contiguous):
        refuse_in_capture("a copy from memory of the host that is not pinned, or not in rows",
                          "copy it to the device before, and into the tensor that the graph reads")
    with on(device):
        if here and capture_here() is not None:
            return _recorded_copy(array)
        return cupy().asarray(array, blocking=wait and pinned)


def _recorded_copy(pinned: np.ndarray) -> Any:
    """A copy of pinned memory that a graph makes anew at each replay. (CuPy's own functions refuse to copy
    from the host in a capture, of any memory.)"""
    runtime, there = cupy().cuda.runtime, cupy().empty(pinned.shape, pinned.dtype)
    if pinned.nbytes:
        runtime.memcpyAsync(int(there.data.ptr), pinned.ctypes.data, pinned.nbytes,
                            runtime.memcpyHostToDevice, int(cupy().cuda.get_current_stream().ptr))
    capture.kept.append(pinned)
    return there


def asarray(obj: Any, dtype: np.dtype | None, device: Device) -> Any:
    """An array of ``obj`` on ``device``; no copy if it is one already."""
    array = obj if hasattr(obj, "device") and not isinstance(obj, np.ndarray) else np.asarray(obj)
    moved = from_any(array, device)
    if dtype is None or moved.dtype == dtype:
        return moved
    with on(device):
        return moved.astype(dtype)


def empty(shape: tuple[int, ...], dtype: np.dtype, device: Device) -> Any:
    """Uninitialised memory on ``device``."""
    with on(device):
        return cupy().empty(shape, dtype)



capture: Any = None  # the work that is being recorded for a graph (framework.cuda.graphs), of one thread


def capture_here() -> Any:
    """The capture under way, if this thread records it."""
    return capture if capture is not None and capture.thread == get_ident() else None


def refuse_in_capture(what: str, instead: str) -> None:
    """Raise where work is being recorded for a graph, which cannot hold this."""
    if capture is not None and capture_here():
        raise RuntimeError(f"{what} while work is recorded for a CUDA graph, which cannot do that again; "
                           f"{instead}")


before_captures: list[Callable[[], None]] = []  # called when one is about to begin, with nothing under way
at_waits: list[Callable[[], None]] = []  # called whenever the host is about to wait
after_waits: list[Callable[..., None]] = []  # called when it has waited for a stream, or for a device


def waits(what: str) -> None:
    """To be called where the host is about to wait for the device: a value is read, or a size."""
    refuse_in_capture(f"{what} waits for the device", "read values after the capture")
    if sync_debug_mode:
        say_wait(what)
    for look in at_waits:
        look()


def about_to_read(array: Any, what: str) -> None:
    """``waits``, if the array is a GPU's."""
    if _cupy is not None and isinstance(array, _cupy.ndarray):
        waits(what)


sync_debug_mode = 0  # what ``cuda.set_sync_debug_mode`` asked for: 0 nothing, 1 a warning, 2 an error


def say_wait(what: str) -> None:
    """Name who waits, as a warning or an error."""
    text = f"{what} waits for the device (cuda.set_sync_debug_mode asked to be told)"
    if sync_debug_mode > 1:
        raise RuntimeError(text)
    warnings.warn(text, UserWarning, stacklevel=3)


def to_numpy(array: Any) -> np.ndarray:
    """A copy in host memory."""
    waits("a copy to the host")
    return cupy().asnumpy(array)


def sent(array: np.ndarray) -> tuple[Any, bool]:
    """Numbers of the host on the device, and whether later calls may have them, too.

    While a graph is recorded they go with it: it sends them each time, from memory that does not move.
    """
    capture = capture_here()
    if capture is None:
        return cupy().asarray(array), True
    pinned = need("cupyx", "cuda12", "pinned memory").empty_pinned(array.shape, array.dtype)
    pinned[...] = array
    return _recorded_copy(pinned), False


def read_later(array: Any) -> Callable[[], np.ndarray]:
    """Send a copy of a small array to the host; who calls the result waits for what was queued before it."""
    module = cupy()
    with array.device:
        host = need("cupyx", "cuda12", "pinned memory").empty_pinned(array.shape, array.dtype)
        stream = module.cuda.get_current_stream()
        array.get(stream=stream, out=host, blocking=False)
        mark = stream.record()

    def read() -> np.ndarray:
        mark.synchronize()
        return host.copy()

    return read


def linalg_raises(name: str) -> AbstractContextManager:
    """A block in which CuPy waits to see whether a matrix is singular, where it gives NaN otherwise."""
    waits(name)
    return need("cupyx", "cuda12", "linear algebra on a GPU").errstate(linalg="raise")


def synchronize(device: Device) -> None:
    """Wait until all work queued on ``device`` is done."""
    refuse_in_capture("synchronize waits for the device", "wait after the capture")
    if sync_debug_mode:
        say_wait("synchronize")
    cupy().cuda.Device(index_of(device)).synchronize()
    for look in after_waits:
        look(everywhere=True)


def waited_for(stream: int) -> None:
    """To be called where the host has waited for a stream of the current device."""
    for look in after_waits:
        look(stream=stream)


class _Products:
    """Settings of products on GPUs; ``allow_tf32`` says in one bit what the precision of float32 says."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may be rounded to TF32: unless their precision is "highest"."""
        return precision.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        precision.set_float32_matmul_precision("high" if allowed else "highest")

    @property
    def fp32_precision(self) -> str:
        """The same as a word: "tf32" or "ieee"."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, word: str) -> None:
        self.allow_tf32 = precision.is_tf32(word, "backends.cuda.matmul")


matmul = _Products()


def preferred_linalg_library(backend: str | None = None) -> str:
    """Who factors matrices on GPUs: "cusolver", which is CuPy's; a warning for another wish."""
    return _only("preferred_linalg_library", backend, "cusolver")


def preferred_blas_library(backend: str | None = None) -> str:
    """Who multiplies matrices on GPUs: "cublaslt", where it has a way, else cuBLAS; a warning for another
    wish."""
    return _only("preferred_blas_library", backend, "cublaslt")


def _only(name: str, wanted: str | None, there: str) -> str:
    if wanted not in (None, "default", there):
        warnings.warn(f"{name}: {wanted!r} is not there; {there} computes", UserWarning, stacklevel=3)
    return there


class _Plans:
    """The plans of Fourier transforms that CuPy keeps for a device: the current one, or ``cache[1]``."""

    def __init__(self, index: int | None = None) -> None:
        self._index = index

    def _cache(self) -> Any:
        require(device := Device("cuda", self._index))
        with on(device):
            return cupy().fft.config.get_plan_cache()

    def __getitem__(self, device: Any) -> "_Plans":
        return _Plans(device if isinstance(device, int) else index_of(Device(device)))

    @property
    def size(self) -> int:
        """How many there are; DeviceError without a GPU."""
        return int(self._cache().get_curr_size())

    @property
    def max_size(self) -> int:
        """How many are kept at most."""
        return int(self._cache().get_size())

    @max_size.setter
    def max_size(self, size: int) -> None:
        self._cache().set_size(int(size))

    def clear(self) -> None:
        """Let all go."""
        self._cache().clear()


cufft_plan_cache = _Plans()


def is_flash_attention_available() -> bool:
    """Whether there is a GPU: attention without a table of weights is one kernel on all."""
    return is_available()


def _switches(way: str) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    def enable(enabled: bool) -> None:
        sdp.allow(**{way: bool(enabled)})

    def enabled() -> bool:
        return sdp.WAYS[way]
    enable.__doc__ = f"Let attention be computed in the way {way!r}, or not: ``nn.attention.sdpa_kernel``."
    enabled.__doc__ = f"Whether attention may be computed in the way {way!r}."
    return enable, enabled


enable_flash_sdp, flash_sdp_enabled = _switches("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switches("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switches("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switches("cudnn")


def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> AbstractContextManager:
    """A block in which attention is computed in these ways only; the older ``nn.attention.sdpa_kernel``."""
    chosen = {"flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient,
              "cudnn": enable_cudnn}
    return sdp.only(name for name, allowed in chosen.items() if allowed)


__dir__ = _own(globals())
