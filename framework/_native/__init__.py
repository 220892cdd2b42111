"""The native kernels: ``module`` is the extension for this machine, or None where there is none.

The C++ sources are compiled once for each instruction set, as modules ``baseline``, ``avx2`` and ``avx512``;
the widest one that the processor has is taken. Without any (no compiler when the package was installed)
every operation runs its NumPy formula. Two variables change the choice:

FRAMEWORK_NATIVE: "off", or the name of an instruction set; one that cannot be loaded raises.
FRAMEWORK_NATIVE_PATH: a folder with another build of the modules, e.g. with sanitizers.
"""

import importlib
import os
from types import ModuleType
from typing import Any

_FLAGS = {  # what the processor must have, by the names Linux gives
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c"},
    "avx2": {"avx2", "fma", "f16c"},
    "baseline": set(),
}
_CHOICE = os.environ.get("FRAMEWORK_NATIVE", "").lower()
if os.environ.get("FRAMEWORK_NATIVE_PATH"):
    __path__.insert(0, os.environ["FRAMEWORK_NATIVE_PATH"])


def processor_flags() -> set[str]:
    """The features of the processor, as Linux lists them; elsewhere none, and the baseline is used."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("flags"):
                    return set(line.split())
    except OSError:
        pass
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
                                  f"package where there is a C++ compiler, or unset it") from None
        except ImportError as error:  # built for another Python or C library
            if _CHOICE:
                raise
            return None, f"could not be loaded: {error}"
    return None, "not built: there was no C++ compiler when the package was installed"


module: ModuleType | Any
isa: str  # or why there is none
module, isa = _load()
