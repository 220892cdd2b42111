"""Kernels launched through NVIDIA's driver by a native module, where both are there; by CuPy otherwise.

``FRAMEWORK_CUDA_LAUNCHER`` is "off", or the path of another library that has the driver's functions.
"""

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native
from . import cuda

LIBRARY = os.environ.get("FRAMEWORK_CUDA_LAUNCHER", "libcuda.so.1")
_CAPSULE = "get_current_stream_ptr"  # CuPy's own function for its Cython modules
_started: tuple[Any, Any] = (None, None)  # (the cupy module, the native module or None)


def _native_module() -> Any:
    if _native.module is None or LIBRARY == "off":
        return None
    try:
        return importlib.import_module("framework._native.launcher")
    except ImportError:  # a build of before
        return None


def launcher() -> Any:
    """The native module, ready to launch; None where CuPy launches."""
    global _started
    module = cuda._cupy
    if _started[0] is not module:
        _started = module, _start(module, LIBRARY)
    return _started[1]


def _start(module: Any, library: str) -> Any:
    native = _native_module()
    driver = getattr(module.cuda, "driver", None)
    if native is None or driver is None or getattr(module.cuda.runtime, "is_hip", False):
        return None
    stream = getattr(module.cuda.stream, "__pyx_capi__", {}).get(_CAPSULE)
    if stream is None:
        def stream() -> int:
            return int(module.cuda.get_current_stream().ptr)

    def fail(status: int) -> None:
        raise driver.CUDADriverError(status)
    try:
        started = native.start(library, module.ndarray, module.cuda.MemoryPointer, stream, fail)
    except (AttributeError, ValueError):  # another CuPy, which has other names
        return None
    if started and (allocator := cuda.allocator()) is not None:
        allocator.before_full.append(native.forget)
    return native if started else None


def empty(shape: Any, dtype: Any) -> Any:
    """Memory on the current device for what a kernel makes: that of a small result of before, which nobody
    has any more, or new."""
    native = launcher()
    if native is not None and hasattr(native, "empty"):  # not a build of before
        if type(shape) is not tuple:
            shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        out = native.empty(shape, dtype if isinstance(dtype, np.dtype) else np.dtype(dtype))
        if out is not NotImplemented:
            return out
    return cuda._cupy.empty(shape, dtype)


def current_stream() -> int:
    """The driver's handle of the stream that work goes into now."""
    native = launcher()
    found = native.current_stream() if native is not None and hasattr(native, "current_stream") else None
    return int(cuda._cupy.cuda.get_current_stream().ptr) if found is None else found


def handle(kernel: Any) -> int:
    """The driver's handle of a kernel of CuPy's on the current device, where it is loaded."""
    return int(kernel.kernel.ptr)


def launched(kernel: Callable) -> Callable:
    """A kernel of CuPy's as it is to be called: by the driver where that can be."""
    native = launcher()
    return kernel if native is None else native.kernel(kernel, handle)


def quick(otherwise: Callable | None = None) -> Any:
    """An elementwise kernel over operands that lie alike, without variants yet; None where CuPy launches."""
    native = launcher()
    return None if native is None else native.quick(cuda._cupy.ndarray, otherwise)


def idle_bytes(device: int) -> int:
    """Bytes in small results that are kept to be handed out again, and that nobody has."""
    return int(_started[1].idle_bytes(device)) if _started[1] is not None else 0


def forget() -> None:
    """Give such results back to CuPy's pool."""
    if _started[1] is not None:
        _started[1].forget()


def keep_results(on: bool) -> bool:
    """Whether small results are kept from here on; returns what held before."""
    return bool(_started[1].set_keeping(on)) if _started[1] is not None else on


def exchange_capture_mode(mode: int) -> int | None:
    """What this thread may do while a stream is captured: 0 what is safe, 2 anything, as taking memory and
    loading kernels are not; returns what held before, None where there is no saying."""
    native = launcher()
    return None if native is None else int(native.exchange_capture_mode(mode))
