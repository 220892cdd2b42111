"""``python -m framework.config``: versions, native kernels and their instruction set, threads."""

import platform
from importlib import metadata

import framework
from framework import _native

_PACKAGES = ("numpy", "tqdm", "cupy-cuda12x", "cupy-cuda13x", "ml_dtypes", "pillow", "scikit-learn", "scipy")


def report() -> str:
    """What is active here, one line each."""
    kernels = "none, " + _native.isa if _native.module is None else _native.isa
    if _native.module is not None and _native.module.has_matrix_unit():
        kernels += " and AMX"
    lines = [("framework", _version("framework") or "from a checkout"),
             ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
             ("native kernels", kernels), ("threads", str(framework.get_num_threads()))]
    lines += [(name, version) for name in _PACKAGES if (version := _version(name))]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:{width}}  {value}" for name, value in lines)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    print(report())
