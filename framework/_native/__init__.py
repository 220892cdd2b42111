"""The native kernels: ``module`` is the extension for this machine, or None where there is none.

The C++ sources are compiled once for each instruction set that is wanted, as modules ``baseline``, ``avx2``
and ``avx512``; the widest one that the processor has is taken. Without any (no compiler when the package was
installed) every operation runs its NumPy formula. Three variables change the choice:

FRAMEWORK_NATIVE: "off", or the name of an instruction set; one that cannot be loaded raises.
FRAMEWORK_NATIVE_PATH: a folder with another build of the modules, e.g. with sanitizers.
FRAMEWORK_AMX: "off": the matrix unit of x86, where there is one, is left alone.
"""

import importlib
import os
import sys
import threading
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

_FLAGS = {  # what the processor must have
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "bmi2"},
    "avx2": {"avx2", "fma", "bmi2"},
    "baseline": set(),
}
_CHOICE = os.environ.get("FRAMEWORK_NATIVE", "").lower()
if os.environ.get("FRAMEWORK_NATIVE_PATH"):
    __path__.insert(0, os.environ["FRAMEWORK_NATIVE_PATH"])
_NO_COMPILER = "there was no C++ compiler when the package was installed"


def processor_flags() -> set[str]:
    """The features of the processor, by cpuid; none without the module for that, which every build has."""
    try:
        return set(importlib.import_module(f"{__name__}.processor").flags())
    except ImportError:
        return set()


def _load() -> tuple[Any, str]:
    """(the module or None, the instruction set or why there is none)."""
    if _CHOICE in ("off", "0", "none"):
        return None, "switched off by FRAMEWORK_NATIVE"
    if _CHOICE and _CHOICE not in _FLAGS:
        raise ImportError(f"FRAMEWORK_NATIVE must be 'off' or one of {sorted(_FLAGS)}, got {_CHOICE!r}")
    has = processor_flags()
    fitting = [name for name, needs in _FLAGS.items() if needs <= has]
    for name in [_CHOICE] if _CHOICE else fitting:
        if name not in fitting:
            raise ImportError(f"FRAMEWORK_NATIVE={name}: this processor lacks "
                              f"{sorted(_FLAGS[name] - has)}; choose one of {fitting}")
        try:
            return importlib.import_module(f"{__name__}.{name}"), name
        except ModuleNotFoundError:
            if _CHOICE:
                raise ImportError(f"FRAMEWORK_NATIVE={name}: the extension was not built; install the "
                                  f"package with FRAMEWORK_SETS={name}, or unset it") from None
        except ImportError as error:  # built for another Python or C library
            if _CHOICE:
                raise
            return None, _said(f"could not be loaded: {error}")
    return None, _why_not_built()


def _why_not_built() -> str:
    from importlib import util

    others = [name for name in _FLAGS if util.find_spec(f"{__name__}.{name}")]
    if others:
        return _said(f"built for {' and '.join(others)} only, which this processor lacks; install the "
                     f"package again here, or with FRAMEWORK_SETS=all")
    note = _build_note()
    if note is None:
        return "not built"
    if "CMAKE_CXX_COMPILER" in note:
        return f"not built: {_NO_COMPILER}"
    return _said(f"not built: {note}")


def _build_note() -> str | None:
    """What the compiler said last, which stands beside the package's metadata. Python's own reader of them
    would bring 25 modules, a quarter of the import, where there is no extension."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # no folder
            continue
        for name in names:
            if name.startswith("framework-") and name.endswith(".dist-info"):
                try:
                    with open(os.path.join(folder, name, "native_build.txt"), encoding="utf-8") as file:
                        return file.read()
                except FileNotFoundError:
                    return None
    return None


def _said(why: str) -> str:
    """The reason, said as a warning: somebody wanted the kernels."""
    warnings.warn(f"framework runs on NumPy alone, slower: its native kernels are {why}", RuntimeWarning,
                  stacklevel=4)
    return why


module: ModuleType | Any
isa: str  # or why there is none
module, isa = _load()

if TYPE_CHECKING or module is None:
    Local = threading.local
else:
    Local = module.Local  # the same for what lives as long as the program, asked in a third of the time
