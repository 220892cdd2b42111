"""What a call costs the host on the way to a device: CuPy's own arrays over memory that is never touched, and
a driver whose kernels do nothing. No GPU is needed, but CuPy is.   python tests/device_road.py [cupy]
"""

import subprocess
import sys
import tempfile
import time
import timeit
import types
from pathlib import Path

import cupy
import numpy as np
from cupy.cuda import memory

sys.path.insert(0, str(Path(__file__).parent / "standin/cupy"))

import framework as fw
from framework import dtypes
from framework.backends import cuda, device_launcher, device_products
from framework.ops.record import op as records
from framework.tensor import wrap


class Nothing:
    """A kernel, a module of kernels, and a device."""

    kernel = types.SimpleNamespace(ptr=1)
    id = 0

    def __init__(self, **given):
        pass

    def __call__(self, *given, **more):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def get_function(self, name):
        return Nothing()


def built(name):
    """A library that stands for one of NVIDIA's, of which nothing is wanted."""
    so = Path(tempfile.mkdtemp()) / f"{name}.so"
    source = Path(__file__).parent / f"standin/cupy/device/{name}.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", so], check=True)
    return so


def prepare(driver):
    """Have arrays made of memory that is not there; driver: whether the native module launches."""
    cuda._cupy, cuda.array_type, dtypes.plain = cupy, cupy.ndarray, False
    cupy.cuda.set_allocator(
        lambda n: memory.MemoryPointer(memory.UnownedMemory(1 << 20, n, None, 0), 0))
    cupy.RawModule = Nothing
    records._common_device = lambda op, arrays: Nothing()
    cupy.cuda.device.get_cublas_handle = lambda: 1
    cupy.cuda.cublas = types.SimpleNamespace(gemmEx=lambda *given: None)
    nowhere = types.SimpleNamespace(ptr=1)
    cupy.cuda.get_current_stream = lambda: nowhere
    device_products.library = lambda: str(built("cublas_lt")) if driver else "none"
    native = None
    if driver:
        import ctypes

        so = built("driver")
        ctypes.c_int.in_dll(ctypes.CDLL(str(so)), "driver_does").value = 0
        native = device_launcher._native_module()
        # CuPy's own function for the current stream looks for a device; int() is quicker by 0.03 us
        assert native.start(str(so), cupy.ndarray, memory.MemoryPointer, int, print)
    device_launcher._started = cupy, native


def cost(text, names):
    """Microseconds of the processor."""
    runs = timeit.repeat(text, globals=names, number=20000, repeat=9, timer=time.process_time)
    return min(runs) / 20000 * 1e6


if __name__ == "__main__":
    prepare(sys.argv[1:] != ["cupy"])
    a, b = (wrap(cupy.ndarray((4, 4), np.float32)) for _ in range(2))
    c, d, linear = fw.ones(4, 4), wrap(cupy.ndarray((4,), np.float32)), fw.nn.functional.linear
    for text in ("c + c", "a + b", "a * 2.0", "a.exp()", "a @ b", "linear(a, b, d)"):
        eval(text)
        print(f"{text:16} {cost(text, globals()):6.2f} us")
