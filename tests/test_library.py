"""libframework: the kernels behind a C interface, used from C without Python, and with what does not fit."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import framework as fw
import framework.nn.functional as F
from framework import _native

SOURCES = Path(_native.__file__).with_name("library")
LIBRARY = Path(getattr(_native.module, "__file__", None) or "none").with_name("libframework.so")
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="libframework is not beside the extension")
OK, INVALID, MISMATCH, UNSUPPORTED, NO_MEMORY = range(5)


class View(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int), ("ndim", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


def view(a, shape=None):
    shape = a.shape if shape is None else shape
    sizes = ctypes.c_int64 * max(a.ndim, 1)
    kind = {"float32": 0, "float64": 1}.get(str(a.dtype), 7)
    made = View(a.ctypes.data, kind, a.ndim, sizes(*shape), sizes(*a.strides))
    made.array = a
    return ctypes.pointer(made)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


@pytest.fixture(scope="module")
def library():
    return ctypes.CDLL(str(LIBRARY))


class Numbers:
    """The rule of ``example.c``."""

    def __init__(self):
        self.state = 12345

    def __call__(self, *shape):
        made = np.empty(shape, np.float32)
        for i in range(made.size):
            self.state = (self.state * 1664525 + 1013904223) % 2 ** 32
            made.flat[i] = np.float32(self.state >> 8) / np.float32(8388608) - np.float32(1)
        return fw.from_numpy(made)


def test_a_network_in_c_computes_the_bits_of_python(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path / "example"
    linked = [f"-L{LIBRARY.parent}", "-lframework", f"-Wl,-rpath,{LIBRARY.parent}", "-o", program]
    done = subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-std=c99", SOURCES / "example.c",
                           f"-I{SOURCES}", *linked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split("\n", 1)
    assert said[0] == _native.isa
    numbers = Numbers()
    x, w1, b1, w2, b2 = (numbers(*shape) for shape in ((9, 50), (37, 50), (37,), (10, 37), (10,)))
    wanted = F.softmax(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), 1)
    assert [float.fromhex(word) for word in said[1].split()] == wanted.numpy().ravel().tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_functions_give_what_python_gives(library, dtype):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 1, 20, 33)).astype(dtype), rng.standard_normal((3, 33, 17)).astype(dtype)
    out = np.full((2, 3, 20, 17), np.nan, dtype)
    assert library.fw_matmul(view(a), view(b), view(out)) == OK
    assert np.array_equal(out, (fw.from_numpy(a) @ fw.from_numpy(b)).numpy())
    turned = rng.standard_normal((33, 20)).astype(dtype).T  # at any strides
    out = np.empty((3, 20, 17), dtype)
    assert library.fw_matmul(view(turned), view(b), view(out)) == OK
    assert np.array_equal(out, (fw.from_numpy(turned) @ fw.from_numpy(b)).numpy())
    for dim in range(3):
        for log, function in enumerate((F.softmax, F.log_softmax)):
            y = np.empty_like(out)
            assert library.fw_softmax(view(out), dim, log, view(y)) == OK
            assert np.array_equal(y, function(fw.from_numpy(out), dim).numpy())


def test_what_does_not_fit_is_a_status_and_changes_nothing(library):
    x, w, out = zeros(4, 5), zeros(3, 5), np.full((4, 3), 7, np.float32)
    linear, matmul, softmax = library.fw_linear, library.fw_matmul, library.fw_softmax
    cases = [
        (INVALID, lambda: linear(None, view(w), None, 0, view(out))),
        (INVALID, lambda: linear(view(x.astype(np.int64)), view(w), None, 0, view(out))),
        (INVALID, lambda: linear(view(x, (-4, 5)), view(w), None, 0, view(out))),
        (INVALID, lambda: matmul(view(x, (2 ** 40, 2 ** 40)), view(w), view(out))),
        (INVALID, lambda: softmax(view(out), 2, 0, view(out))),
        (INVALID, lambda: softmax(view(out), -1, 0, view(out))),
        (INVALID, lambda: library.fw_set_threads(0)),
        (INVALID, lambda: library.fw_set_allocator(None)),
        (MISMATCH, lambda: linear(view(x), view(zeros(3, 6)), None, 0, view(out))),
        (MISMATCH, lambda: linear(view(x), view(w), view(zeros(4)), 0, view(out))),
        (MISMATCH, lambda: linear(view(x), view(w.astype(np.float64)), None, 0, view(out))),
        (MISMATCH, lambda: linear(view(x), view(w), None, 0, view(zeros(3, 4)))),
        (MISMATCH, lambda: linear(view(x), view(w), None, 0, view(out.astype(np.float64)))),
        (MISMATCH, lambda: matmul(view(zeros(2, 4, 5)), view(zeros(3, 5, 6)), view(out))),
        (UNSUPPORTED, lambda: linear(view(x), view(w), None, 0, view(np.asfortranarray(out)))),
        (UNSUPPORTED, lambda: softmax(view(out.T), 0, 0, view(zeros(3, 4)))),
    ]
    for number, (wanted, call) in enumerate(cases):
        assert call() == wanted, f"case {number}"
    assert (out == 7).all()
    library.fw_status_text.restype = ctypes.c_char_p
    assert len({library.fw_status_text(i) for i in range(5)}) == 5
    empty = zeros(0, 5)
    assert linear(view(empty), view(w), None, 0, view(zeros(0, 3))) == OK


def test_memory_comes_from_the_caller(tmp_path):
    """A program of its own: the allocator is chosen before the first kernel runs."""
    program = tmp_path / "memory.py"
    program.write_text(f"""
import ctypes, os, sys
sys.path[:0] = {[str(Path(__file__).parent), str(Path(fw.__file__).parents[1])]!r}
from test_library import View, view, zeros, LIBRARY, OK, NO_MEMORY
import numpy as np
library = ctypes.CDLL(str(LIBRARY))
taken, room = [], []
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
def take(size, context):
    if not generous:
        return None
    taken.append(size)
    room.append(np.empty(size + 4096, np.uint8))
    return (room[-1].ctypes.data + 4095) // 4096 * 4096
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
def give_back(p, size, context):
    pass
class Allocator(ctypes.Structure):
    _fields_ = [("take", type(take)), ("give_back", type(give_back)), ("context", ctypes.c_void_p)]
assert library.fw_set_allocator(ctypes.byref(Allocator(take, give_back, None))) == OK
assert library.fw_set_threads(1) == OK
a, out = np.ones((300, 300), np.float32), zeros(300, 300)
generous = False
assert library.fw_matmul(view(a), view(a), view(out)) == NO_MEMORY
generous = True
assert library.fw_matmul(view(a), view(a), view(out)) == OK
assert (out == 300).all() and taken
os._exit(0)  # scratch goes back when threads end, and Python's functions are gone then
""")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
