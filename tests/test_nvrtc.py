"""Every kernel of GPUs as NVIDIA's compiler sees it, for three architectures: no device is needed, but its
library is.

pip install nvidia-cuda-nvrtc && python -m pytest tests/test_nvrtc.py

The sources of rooms are compiled as they are shipped, to machine code. Expressions, of which there are
hundreds for each dtype, are read as they are shipped, and compiled to machine code many at a time.
Where FRAMEWORK_NVRTC is "needed", as in .ci/run, nothing is skipped for want of a library.
"""

import ctypes
import functools
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
from framework.ops.language.cuda import FLOATS, write
from framework.ops.language.cuda_fold import fold_source

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
PARTS = 2  # of the expressions of a dtype
KERNEL = 'extern "C" __global__'
ASSEMBLED = "--ptxas-options=-v"  # says of each kernel what it keeps in registers, and what it does not
READ = "-dlto"  # ends before the assembler


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

    def log(self, source, arch, *further):
        """What the compiler says of a source; further options: the source's, ASSEMBLED or READ."""
        program = ctypes.c_void_p()
        self.lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        # the last is CuPy's
        options = [f"-arch={arch}", *device_code.OPTIONS, *further, "--device-as-default-execution-space"]
        given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        failed = self.lib.nvrtcCompileProgram(program, len(options), given)
        log = self._text(program, "ProgramLog")
        self.lib.nvrtcDestroyProgram(ctypes.byref(program))
        assert not failed, log[:3000]
        return log


@pytest.fixture(scope="module")
def nvrtc():
    lib = library()
    if os.environ.get("FRAMEWORK_NVRTC") != "needed":
        if lib is None:
            pytest.skip("NVRTC is not here; pip install nvidia-cuda-nvrtc")
        pytest.importorskip("ml_dtypes")
    assert lib is not None, "FRAMEWORK_NVRTC=needed, but NVRTC is not here; pip install nvidia-cuda-nvrtc"
    fw.empty(1, dtype=fw.bfloat16)
    return Compiler(lib)


@functools.cache
def expressions(char):
    """The kernels of expressions for a dtype, each text once."""
    return list(dict.fromkeys(row[5] for row in written(char)))


@functools.cache
def folds():
    """The kernels that sum up what expressions of float32 compute; of each dtype the folds of one."""
    made = [("Sum", write(*row[1:3], row[4])) for row in written("f")]
    made += [(how, write("x * y", ("x", "y"), (c, c))) for how in ("Sum", "Max", "Min") for c in "fdeE"]
    return list(dict.fromkeys(fold_source(how, one) for how, one in made if one.result in FLOATS))


def together(sources):
    """Many sources as one, each in a namespace of its own, so that the prelude is read once."""
    spaces = [f"namespace s{i} {{\n{s.replace(KERNEL, '__global__')}\n}}\n" for i, s in enumerate(sources)]
    return device_code.prelude() + "".join(spaces)


def check(log, kernels):
    found = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    assert len(found) >= kernels, f"{len(found)} of {kernels} kernels were assembled"
    names = re.findall(r"Compiling entry function '(\w+)'", log)
    spilled = [n for n, (_, stores, loads) in zip(names, found) if int(stores) or int(loads)]
    assert not spilled, f"registers are spilled in {spilled}"


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("char", "fdeE?bBhHiIlL")
def test_kernels_of_rooms_compile_without_spills(char, arch, nvrtc):
    for source in device_code.SOURCES:
        if char in source.dtypes:
            text = source.text(char)
            log = nvrtc.log(device_code.prelude() + text, arch, *source.options, ASSEMBLED)
            check(log, text.count(KERNEL))


@pytest.mark.parametrize("char", "fdeEl")
def test_expressions_are_read_as_they_are_shipped(char, nvrtc):
    for source in expressions(char) if char != "f" else [*expressions(char), *folds()]:
        nvrtc.log(device_code.prelude() + source, "sm_90", READ)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("char", "fdeEl")
def test_expressions_compile_without_spills(char, part, arch, nvrtc):
    sources = expressions(char)[part::PARTS]
    check(nvrtc.log(together(sources), arch, ASSEMBLED), sum(s.count(KERNEL) for s in sources))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("part", range(PARTS))
def test_sums_of_expressions_compile_without_spills(part, arch, nvrtc):
    sources = folds()[part::PARTS]
    check(nvrtc.log(together(sources), arch, ASSEMBLED), len(sources))


def test_names_that_the_compiler_has_are_refused(nvrtc):
    """A kernel of the name of one of CUDA's functions compiles in a namespace only."""
    source = KERNEL + " void norm(float* y, const float* x) { *y = *x; }"
    nvrtc.log(together([source]), "sm_90", READ)
    with pytest.raises(AssertionError, match="norm"):
        nvrtc.log(device_code.prelude() + source, "sm_90", READ)
