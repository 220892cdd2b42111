"""Every kernel of GPUs as NVIDIA's compiler sees it, for three architectures: no device is needed, but its
library is.

pip install nvidia-cuda-nvrtc && python -m pytest tests/test_nvrtc.py

The sources of rooms are compiled as they are shipped, to machine code. Expressions, of which there are
hundreds for each dtype, are read as they are shipped, in float32, and compiled to machine code many at once.
Where that much is done for one architecture, the compiler reads fewer names of CUDA's for the others.
Options are those that CuPy gives (tests/test_cupy_names.py asks it for them).
Where FRAMEWORK_NVRTC is "needed", as in .ci/run, nothing is skipped for want of a library.

In float32 everything is compiled for all architectures, and so is every file in all floating dtypes. Of the
rest (whole numbers; expressions in other dtypes) each is compiled for one of the three, which go round: they
are the same text with other types. FRAMEWORK_NVRTC=all compiles those, too, for each, which takes three times
as long.
"""

import ctypes
import functools
import os
import re
from pathlib import Path

import pytest
from cupy_facts import COMPILES_WITH
from test_device_kernels import summed, written

import framework as fw
from framework.backends import device_code
from framework.ops.language.cuda import FLOATS, write
from framework.ops.language.cuda_fold import fold_source

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
PARTS = 4  # of the expressions of a dtype
AT_ONCE = 24  # sources that are compiled as one: the compiler takes longer for each of more, and of fewer
KERNEL = 'extern "C" __global__'
ASSEMBLED = "--ptxas-options=-v"  # says of each kernel what it keeps in registers, and what it does not
READ = "-dlto"  # ends before the assembler
FEWER = "--minimal"  # less of CUDA's own names to read; the machine code is the same


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
        """What the compiler says of a source; further options: the source's, ASSEMBLED, READ or FEWER."""
        program = ctypes.c_void_p()
        self.lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        options = [f"-arch={arch}", *device_code.OPTIONS, *further, *COMPILES_WITH]
        given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        failed = self.lib.nvrtcCompileProgram(program, len(options), given)
        log = self._text(program, "ProgramLog")
        self.lib.nvrtcDestroyProgram(ctypes.byref(program))
        assert not failed, log[:3000]
        return log


@pytest.fixture(scope="module")
def nvrtc():
    lib = library()
    if os.environ.get("FRAMEWORK_NVRTC") not in ("needed", "all"):
        if lib is None:
            pytest.skip("NVRTC is not here; pip install nvidia-cuda-nvrtc")
        pytest.importorskip("ml_dtypes")
    assert lib is not None, "NVRTC is asked for, but is not here; pip install nvidia-cuda-nvrtc"
    fw.empty(1, dtype=fw.bfloat16)
    return Compiler(lib)


@functools.cache
def expressions(char):
    """The kernels of expressions for a dtype, each text once; rules in narrow and wide floats as they mend,
    which is the same and one comparison more."""
    rules = {row[0]: row for row in written(char, True)} if char in "deE" else {}
    return list(dict.fromkeys(rules.get(row[0], row)[5] for row in written(char)))


@functools.cache
def folds(arch=ARCHITECTURES[0]):
    """The kernels of folds in float32, which are of rules with several operands and those that rooms have; of
    each dtype the folds of one expression. For newer architectures than the first every second rule mends."""
    rules = [row[3] for row in summed("f", True)]
    sources = [row[3] for row in summed("f")]
    turned = ARCHITECTURES.index(arch)
    if turned:
        sources[:len(rules)] = [rule if i % 2 == turned - 1 else source
                                for i, (rule, source) in enumerate(zip(rules, sources))]
    sources += [fold_source(how, write("x * y", ("x", "y"), (c, c))) for how in ("Sum", "Max", "Min")
                for c in "fdeE"]
    return list(dict.fromkeys(sources))


def together(sources):
    """Some sources as one, each in a namespace of its own, so that the prelude is read once."""
    spaces = [f"namespace s{i} {{\n{s.replace(KERNEL, '__global__')}\n}}\n" for i, s in enumerate(sources)]
    return device_code.prelude() + "".join(spaces)


def check_together(sources, arch, nvrtc):
    for i in range(0, len(sources), AT_ONCE):
        some = sources[i:i + AT_ONCE]
        check(nvrtc.log(together(some), arch, ASSEMBLED, FEWER), sum(s.count(KERNEL) for s in some))


def turn(arch, i):
    """Whether it is this architecture's turn, where it is enough that one of them compiles the i-th thing."""
    return os.environ.get("FRAMEWORK_NVRTC") == "all" or ARCHITECTURES[i % len(ARCHITECTURES)] == arch


def compiled_for(arch, char):
    """The sources that are compiled in a dtype for an architecture."""
    for i, source in enumerate(device_code.SOURCES):
        always = char in FLOATS or len(source.dtypes) < len(ARCHITECTURES)
        if char in source.dtypes and (always or turn(arch, i + source.dtypes.index(char))):
            yield source


def test_every_file_is_compiled_for_every_architecture():
    for arch in ARCHITECTURES:
        assert {s.path for c in "fdeE?bBhHiIlL" for s in compiled_for(arch, c)} \
            == {s.path for s in device_code.SOURCES}


def check(log, kernels):
    """Every kernel was assembled, and neither it nor a function that it calls keeps registers in memory."""
    entries = set(re.findall(r"Compiling entry function '(\w+)'", log))
    found = re.findall(
        r"Function properties for (\w+)\n[^\n]* (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    assert len(entries) == kernels and entries <= {name for name, _, _ in found}, \
        f"{len(entries)} of {kernels} kernels were assembled"
    spilled = [name for name, stores, loads in found if int(stores) or int(loads)]
    assert not spilled, f"registers are spilled in {spilled}"


def said(name, spilled, entry=True):
    """What the assembler says of a kernel, or of a function that one calls."""
    first = f"ptxas info    : Compiling entry function '{name}' for 'sm_90'\n" if entry else ""
    return (f"{first}ptxas info    : Function properties for {name}\nptxas         .     0 bytes stack "
            f"frame, {spilled} bytes spill stores, {spilled} bytes spill loads\n")


def test_spills_are_told_wherever_they_are():
    """Of kernels behind functions that others call, and of these functions, too."""
    called, last = said("called", 0, False), said("last", 0)
    check(said("first", 0) + called + called + last, 2)
    with pytest.raises(AssertionError, match=r"spilled in \['last'\]"):
        check(said("first", 0) + called + called + said("last", 8), 2)
    with pytest.raises(AssertionError, match=r"spilled in \['called'\]"):
        check(said("first", 0) + said("called", 8, False) + last, 2)
    with pytest.raises(AssertionError, match="1 of 2 kernels"):
        check(said("first", 0) + called, 2)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("char", "fdeE?bBhHiIlL")
def test_kernels_of_rooms_compile_without_spills(char, arch, nvrtc):
    less = () if arch == "sm_90" else (FEWER,)
    for source in compiled_for(arch, char):
        text = source.text(char)
        log = nvrtc.log(device_code.prelude() + text, arch, *source.options, ASSEMBLED, *less)
        check(log, text.count(KERNEL))


@pytest.mark.parametrize("part", range(PARTS))
def test_expressions_are_read_as_they_are_shipped(part, nvrtc):
    """In float32: names, which are what can clash outside a namespace, are the same in all dtypes; of sources
    that have the same names, one."""
    shipped = [*expressions("f"), *folds(), *[row[5] for row in written("f", True)]]
    each = list({frozenset(re.findall(r"(\w+)\(", s)): s for s in shipped}.values())
    assert len(each) > 50
    for source in each[part::PARTS]:
        nvrtc.log(device_code.prelude() + source, "sm_90", READ)
    names = [{n for s in sources for n in re.findall(r"(\w+)\(", s)}
             for sources in (shipped, *map(expressions, "deEl"))]
    assert not set().union(*names[1:]) - names[0]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("char", "fdeEl")
def test_expressions_compile_without_spills(char, part, arch, nvrtc):
    mine = [s for i, s in enumerate(expressions(char)) if char == "f" or turn(arch, i + "deEl".index(char))]
    check_together(mine[part::PARTS], arch, nvrtc)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("part", range(PARTS))
def test_sums_of_expressions_compile_without_spills(part, arch, nvrtc):
    check_together(folds(arch)[part::PARTS], arch, nvrtc)


def test_names_that_the_compiler_has_are_refused(nvrtc):
    """A kernel of the name of one of CUDA's functions compiles in a namespace only."""
    source = KERNEL + " void norm(float* y, const float* x) { *y = *x; }"
    nvrtc.log(together([source]), "sm_90", READ)
    with pytest.raises(AssertionError, match="norm"):
        nvrtc.log(device_code.prelude() + source, "sm_90", READ)
