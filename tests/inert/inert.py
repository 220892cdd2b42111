"""CuPy over a CUDA that does nothing (README.md): import this before the framework."""

import ctypes
import os
import sys
from pathlib import Path

LIB = os.environ.get("INERT") or sys.exit("build it first: bash tests/inert/build.sh FOLDER; . FOLDER/env.sh")
sys.path.insert(0, str(Path(__file__).parents[1]))
for _name in ("cublasLt.so.13", "cublas.so.13", "cusparse.so.12", "cusolver.so.12", "cufft.so.12",
              "curand.so.10"):
    ctypes.CDLL(f"{LIB}/lib{_name}", ctypes.RTLD_GLOBAL)  # CuPy finds them loaded

from cupy.cuda import compiler, thrust  # noqa: E402

runtime, driver = ctypes.CDLL(f"{LIB}/libinert_cudart.so"), ctypes.CDLL("libcuda.so.1")
runtime.inert_count.restype = driver.inert_launches.restype = ctypes.c_long


class _Nothing:
    """No kernel is kept."""

    def load(self, name):
        return None

    def save(self, name, payload, source):
        pass


def _uncompiled(source, options=(), arch=None, filename="", name_expressions=None, *others, **more):
    return b"a kernel", {n: n for n in name_expressions} if name_expressions else None


compiler._preprocess = lambda *given: ""
compiler._compile_using_nvrtc_no_warning = _uncompiled
compiler._kernel_cache_backend = _Nothing()
for _name in dir(thrust):  # sorts are CUDA code of CuPy's own, with a runtime of its own
    if "sort" in _name and callable(getattr(thrust, _name)):
        setattr(thrust, _name, lambda *given: None)


def clear():
    """Count from nothing."""
    runtime.inert_clear()
    driver.inert_clear_launches()


def calls(*names):
    """How often functions of the runtime were called, those that were."""
    found = {n: runtime.inert_count(n.encode()) for n in names}
    return {n: k for n, k in found.items() if k}


def launches():
    """How many kernels were started."""
    return driver.inert_launches(None)
