"""How many threads compute, in native kernels and in NumPy's BLAS, and how many cores the process may use."""

import ctypes
import math
import os
import re
from collections.abc import Callable
from functools import cache

import numpy as np

from .. import _native

# names that builds of OpenBLAS give the two functions, and MKL's
_NAMES = [(f"{a}openblas_get_num_threads{b}", f"{a}openblas_set_num_threads{b}")
          for a in ("scipy_", "") for b in ("64_", "_64", "")]
_NAMES.append(("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"))
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_CGROUP = "/sys/fs/cgroup/"


def set_num_threads(n: int) -> None:
    """Let native kernels and NumPy's BLAS use ``n`` threads each; not a BLAS other than OpenBLAS or MKL.

    Raises ValueError unless n is positive.

    >>> before = fw.get_num_threads()
    >>> fw.set_num_threads(1)
    >>> fw.get_num_threads()
    1
    >>> fw.set_num_threads(before)
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"set_num_threads: n must be an int, got {type(n).__name__}")
    if n < 1:
        raise ValueError(f"set_num_threads: n must be positive, got {n}")
    if _native.module is not None:
        _native.module.set_threads(int(n))
    for _, set_threads in _libraries():
        set_threads(int(n))


def get_num_threads() -> int:
    """How many threads native kernels use; without them NumPy's BLAS (1 if it is one we do not know)."""
    if _native.module is not None:
        return _native.module.threads()
    return _blas_threads()


def set_flush_denormal(mode: bool) -> bool:
    """Let numbers too small for the normal format become 0, in native kernels and this thread; off at first.

    Arithmetic on such numbers is many times slower on some processors. Returns whether that is possible here:
    it needs the native extension and an x86 processor.

    >>> possible = fw.set_flush_denormal(False)
    """
    if _native.module is None:
        return False
    _native.module.set_flush_denormals(bool(mode))
    return _native.module.flush_denormals() == bool(mode)


def _blas_threads() -> int:
    return max((get_threads() for get_threads, _ in _libraries()), default=1)


def usable_cores() -> int:
    """Cores that this process may use, by its CPU affinity and the quota of its cgroup, at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    quota, period = _quota()
    return max(min(cores, math.ceil(quota / period)), 1) if quota > 0 < period else cores


def _quota() -> tuple[float, float]:
    """Microseconds of CPU time per period of so many; no limit is 0."""
    words = _text("cpu.max").split()  # "max 100000" or "50000 100000"
    if not words:
        words = [_text("cpu/cpu.cfs_quota_us").strip(), _text("cpu/cpu.cfs_period_us").strip()]
    numbers = [float(w) if w.isdigit() else 0.0 for w in words]
    return (numbers[0], numbers[1]) if len(numbers) > 1 else (0.0, 0.0)


def _text(name: str) -> str:
    try:
        with open(_CGROUP + name) as file:
            return file.read()
    except OSError:
        return ""


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], None]]]:
    """How to ask and to tell each BLAS library that is loaded."""
    found = []
    for path in _paths():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for get_name, set_name in _NAMES:
            if hasattr(library, get_name) and hasattr(library, set_name):
                found.append((getattr(library, get_name), _setter(library, getattr(library, set_name))))
                break
    return found


def _setter(library: ctypes.CDLL, told: Callable[[int], None]) -> Callable[[int], None]:
    """``told``, but without starting OpenBLAS's threads where a fork has ended them.

    They wait for work by spinning, and a new worker process would lose a core to them for its first
    tens of milliseconds. OpenBLAS starts them by itself when a product needs them.
    """
    try:
        number, most, running = (ctypes.c_int.in_dll(library, name) for name in (
            "blas_cpu_number", "blas_num_threads", "blas_server_avail"))
    except ValueError:  # another library, or one that keeps its variables to itself
        return told

    def set_threads(n: int) -> None:
        if running.value or n > most.value:
            told(n)
        else:
            number.value = n
    return set_threads


def _paths() -> list[str]:
    try:
        with open("/proc/self/maps") as file:
            return sorted(set(re.findall(r"(/\S*(?:openblas|mkl_rt)\S*)$", file.read(), re.MULTILINE)))
    except OSError:  # no /proc: where NumPy's wheels keep theirs
        home = os.path.dirname(np.__file__)
        folders = [folder for folder in (f"{home}.libs", f"{home}/.dylibs") if os.path.isdir(folder)]
        return [f"{folder}/{name}" for folder in folders for name in os.listdir(folder) if "openblas" in name]


def _first_number() -> None:
    """As many threads as the process may use cores, unless a variable says otherwise.

    BLAS knows the affinity but not the quota of a container, and its waiting threads would use it up.
    """
    asked = [int(v) for v in map(os.environ.get, VARIABLES) if v and v.isdigit() and int(v) > 0]
    cores = usable_cores()
    if _native.module is not None:
        _native.module.set_threads(asked[0] if asked else cores)
    if not asked and _quota()[0] > 0 and cores < _blas_threads():
        set_num_threads(cores)


_first_number()
