"""Every kernel of GPUs as NVIDIA's compiler sees it, for three architectures: no device is needed, but its
library is.

pip install nvidia-cuda-nvrtc && python -m pytest tests/test_nvrtc.py
"""

import ctypes
import os
import re
from pathlib import Path

import pytest
from test_device_kernels import written

import framework as fw
import framework.amp
import framework.nn.utils
import framework.optim
from framework.backends import device_code
from framework.ops.language.cuda import write
from framework.ops.language.cuda_fold import fold_source

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
ALL = os.environ.get("FRAMEWORK_NVRTC") == "all"


def test_all_sources_are_known():
    """Every file of kernels is compiled below and in test_device_rooms.py."""
    files = {str(p) for p in Path(fw.__file__).parent.rglob("*.cu")}
    assert files == {s.path for s in device_code.SOURCES}


def library():
    """NVRTC as a wheel brings it, or None."""
    try:
        import nvidia
    except ImportError:
        return None
    found = [p for root in nvidia.__path__ for p in Path(root).glob("*/lib/libnvrtc.so*")]
    found = [p for p in found if "builtins" not in p.name and "alt" not in p.name]
    return ctypes.CDLL(str(found[0])) if found else None


class Compiler:
    """NVRTC's functions that are needed."""

    def __init__(self, lib):
        self.lib = lib

    def _text(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.lib, f"nvrtcGet{what}")(program, text)
        return text.value.decode(errors="replace")

    def log(self, source, arch):
        """What the compiler and its assembler say of a source."""
        program = ctypes.c_void_p()
        self.lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        options = [f"-arch={arch}", *device_code.OPTIONS, "--ptxas-options=-v"]
        given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        failed = self.lib.nvrtcCompileProgram(program, len(options), given)
        log = self._text(program, "ProgramLog")
        assert not failed, log[:3000]
        return log


@pytest.fixture(scope="module")
def nvrtc():
    lib = library()
    if lib is None:
        pytest.skip("NVRTC is not here; pip install nvidia-cuda-nvrtc")
    pytest.importorskip("ml_dtypes")
    fw.empty(1, dtype=fw.bfloat16)
    return Compiler(lib)


def together(sources):
    """Many sources as one, each in a namespace of its own, so that the prelude is read once."""
    spaces = [
        f"namespace s{i} {{\n{re.sub('extern .C. __global__', '__global__', s)}\n}}\n"
        for i, s in enumerate(sources)
    ]
    return device_code.prelude() + "".join(spaces)


def check(log, kernels):
    found = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    assert len(found) >= kernels, f"{len(found)} of {kernels} kernels were assembled"
    names = re.findall(r"Compiling entry function '(\w+)'", log)
    spilled = [n for n, (_, stores, loads) in zip(names, found) if int(stores) or int(loads)]
    assert not spilled, f"registers are spilled in {spilled}"


@pytest.mark.parametrize(
    "char, arch", [(c, a) for c in "fdeE" for a in ARCHITECTURES if ALL or c == "f" or a == "sm_90"]
)
def test_kernels_of_rooms_compile_without_spills(char, arch, nvrtc):
    sources = [s.text(char) for s in device_code.SOURCES if char in s.dtypes]
    sources += [s.text("l") for s in device_code.SOURCES if "l" in s.dtypes]
    check(nvrtc.log(together(sources), arch), sum(s.count('extern "C" __global__') for s in sources))


@pytest.mark.parametrize("char", "fdeE")
def test_expressions_compile_without_spills(char, nvrtc):
    """Some of them, or with FRAMEWORK_NVRTC=all all; and folds of one."""
    rows = [row[5] for row in written(char)][:: 1 if ALL else 5 if char == "f" else 12]
    fold = write("x * y", ("x", "y"), (char, char))
    sources = [*rows, *[fold_source(how, fold) for how in ("Sum", "Max", "Min")]]
    check(nvrtc.log(together(sources), "sm_90"), 2 * len(rows) + 3)
