"""libframework: the kernels behind a C interface, used from C without Python, and with what does not fit."""

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import framework as fw
import framework.nn.functional as F
from framework import _native
from framework.random import numpy_integers

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
    kind = {"float32": 0, "float64": 1, "int64": 3, "int32": 4, "bool": 5}.get(str(a.dtype), 7)
    made = View(a.ctypes.data, kind, a.ndim, sizes(*shape), sizes(*a.strides))
    made.array = a
    return ctypes.pointer(made)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize("name", ["baseline", "avx2", "avx512"])
def test_the_instruction_set_is_the_one_that_is_named(name):
    """As in Python: programs that compare bits, or look for a fault, want one set for both."""
    if not list(LIBRARY.parent.glob(f"{name}.*so")):
        pytest.skip(f"{name} is not built")
    code = ("import ctypes, sys; asked = ctypes.CDLL(sys.argv[1]).fw_instruction_set; "
            "asked.restype = ctypes.c_char_p; print(asked().decode())")
    done = subprocess.run([sys.executable, "-c", code, str(LIBRARY)], capture_output=True, text=True,
                          check=True, env={**os.environ, "FRAMEWORK_NATIVE": name})
    runs = _native._FLAGS[name] <= _native.processor_flags()
    assert (done.stdout.strip() == name) == runs, done.stdout


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("nm"), reason="asks for nm of Linux")
def test_programs_see_the_interface_alone():
    """Not what the compiler made of the standard library, in instructions that may not be the program's."""
    shown = subprocess.run(["nm", "-D", "--defined-only", "-P", str(LIBRARY)],
                           capture_output=True, text=True, check=True)
    names = {line.split()[0] for line in shown.stdout.splitlines()}
    assert {"fw_conv", "framework_model_load"} <= names
    assert not {name for name in names if not name.startswith(("fw_", "framework_"))}


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


def compiler(*names):
    """A compiler of programs for this processor; the test is skipped without one."""
    for path in filter(None, map(shutil.which, names)):
        machine = subprocess.run([path, "-dumpmachine"], capture_output=True, text=True).stdout.split("-")[0]
        # under emulation one finds the compiler of the machine around
        if sys.platform != "linux" or machine == platform.machine():
            return path
    pytest.skip(f"none of {', '.join(names)} for this processor")


def said_in_c(source, tmp_path):
    """What an example beside the header prints."""
    program = tmp_path / "example"
    linked = [f"-L{LIBRARY.parent}", "-lframework", f"-Wl,-rpath,{LIBRARY.parent}", "-o", program]
    done = subprocess.run([compiler("cc", "gcc"), "-Wall", "-Wextra", "-Werror", "-std=c99", SOURCES / source,
                           f"-I{SOURCES}", *linked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_a_network_in_c_computes_the_bits_of_python(tmp_path):
    said = said_in_c("example.c", tmp_path).split("\n", 1)
    assert said[0] == _native.isa
    numbers = Numbers()
    x, w1, b1, w2, b2 = (numbers(*shape) for shape in ((9, 50), (37, 50), (37,), (10, 37), (10,)))
    wanted = F.softmax(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), 1)
    assert [float.fromhex(word) for word in said[1].split()] == wanted.numpy().ravel().tolist()


def lstm(x, h0, c0, *weights):
    cells = fw.nn.LSTM(x.shape[2], h0.shape[1])
    for own, given in zip(cells.parameters(), weights):
        own.data.copy_(given)
    with fw.no_grad():
        y, (_, c) = cells(x, (h0[None], c0[None]))
    return y, c


def calls_in_python():
    """The calls of ``kernels.c``."""
    numbers = Numbers()
    x, w, bias = numbers(2, 6, 9, 11), numbers(8, 3, 3, 3), numbers(8)
    yield "conv", F.conv2d(x, w, bias, (1, 2), (1, 0), groups=2).relu()
    yield "max_pool", F.max_pool2d(x, (2, 3), 2, (0, 1))
    yield "mean_pool", F.avg_pool2d(x, (2, 3), 2, (0, 1), count_include_pad=False)
    x, w, bias, mean, var = numbers(3, 5, 7), numbers(7), numbers(7), numbers(5), numbers(5) + 1.5
    yield "layer_norm", F.layer_norm(x, (7,), w, bias)
    yield "rms_norm", F.rms_norm(x, (7,), w, 1e-5)
    yield "batch_norm", F.batch_norm(x, mean, var)
    yield "softmax", F.softmax(x, 1)
    q, k = numbers(2, 3, 6, 8), numbers(2, 3, 9, 8)
    x, h0, c0 = numbers(4, 2, 5), numbers(2, 6), numbers(2, 6)
    y, c = lstm(x, h0, c0, numbers(24, 5), numbers(24, 6), numbers(24), numbers(24))
    yield "attention", F.scaled_dot_product_attention(q, k, k, scale=0.25)
    yield "lstm", y
    yield "cell", c
    x, y = numbers(4, 6), numbers(6)
    yield "program", x.sigmoid() * y + 0.5
    yield "above", x > 0.25
    x = numbers(4, 9)
    values, places = x.sort(1)
    yield "sort", values
    yield "places", places
    yield "gather", x.gather(1, places)
    yield "topk", x.topk(3).values
    yield "cumsum", x.cumsum(0)
    yield "cummax", x.cummax(1).values
    yield "sum", x.sum(0)
    yield "rows", x[fw.tensor([3, -3])]
    own = fw.Generator().manual_seed(5)
    yield "uniform", fw.rand(20, generator=own)
    yield "normal", fw.randn(20, generator=own, dtype=fw.float64)
    yield "integers", fw.from_numpy(numpy_integers(-3, 997, (20,), own))
    p = fw.nn.Parameter(numbers(5, 3))
    p.grad = numbers(5, 3)
    optimizer = fw.optim.SGD([p], lr=0.1, momentum=0.9, weight_decay=0.01)
    optimizer.step()
    yield "sgd", p.detach()
    yield "momentum", optimizer.state[p]["momentum_buffer"]
    yield "norm", fw.tensor([_native.module.norm_of_all([p.grad.numpy()])], dtype=fw.float64)


def test_every_kernel_from_c_computes_the_bits_of_python(tmp_path):
    said = [line.split() for line in said_in_c("kernels.c", tmp_path).splitlines()]
    wanted = list(calls_in_python())
    assert [line[0] for line in said] == [name for name, _ in wanted]
    for (name, *words), (_, tensor) in zip(said, wanted):
        read = float.fromhex if tensor.is_floating_point() else int
        assert [read(word) for word in words] == tensor.numpy().ravel().tolist(), name


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
        (INVALID, lambda: linear(view(x.astype(np.int16)), view(w), None, 0, view(out))),
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


class Windows(ctypes.Structure):
    _fields_ = [("dims", ctypes.c_int), ("size", ctypes.c_int64 * 3), ("stride", ctypes.c_int64 * 3),
                ("padding", ctypes.c_int64 * 3), ("dilation", ctypes.c_int64 * 3)]


def windows(size=(2, 2), stride=(1, 1), padding=(0, 0), dilation=(1, 1), dims=2):
    return ctypes.byref(Windows(dims, *((ctypes.c_int64 * 3)(*n) for n in (size, stride, padding, dilation))))


def test_operands_and_results_lie_anyhow(library):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((7, 5, 3)).astype(np.float32).T  # (3, 5, 7), columns first
    out = np.zeros((5, 3, 7), np.float32).transpose(1, 0, 2)
    eps = ctypes.c_double(1e-5)
    assert library.fw_layer_norm(view(x), 1, None, None, eps, view(out)) == OK
    assert np.array_equal(out, F.layer_norm(fw.from_numpy(x), (7,)).numpy())
    assert library.fw_cumulate(0, view(x), 1, 1, view(out), None) == OK
    assert np.array_equal(out, fw.from_numpy(x).flip(1).cumsum(1).flip(1).numpy())
    kept = np.zeros((3, 1, 7), np.float32)
    assert library.fw_fold(1, view(x), 2, view(kept)) == OK
    assert np.array_equal(kept, fw.from_numpy(x).mean(1, keepdim=True).numpy())


def test_calls_that_do_not_fit_are_a_status(library):
    x, w, out = zeros(2, 3, 6, 6), zeros(4, 3, 3, 3), np.full((2, 4, 4, 4), 7, np.float32)
    at, rows, flat = np.array([5, 0]), zeros(4, 5), np.full((4, 5), 7, np.float32)
    conv, pool, eps = library.fw_conv, library.fw_max_pool, ctypes.c_double(1e-5)
    cases = [
        (OK, lambda: conv(view(x), view(w), None, windows(), 1, 0, view(np.empty_like(out)))),
        (INVALID, lambda: conv(view(x), None, None, windows(), 1, 0, view(out))),
        (INVALID, lambda: conv(view(x), view(w), None, windows(dims=4), 1, 0, view(out))),
        (MISMATCH, lambda: conv(view(x), view(w), None, windows(), 2, 0, view(out))),
        (MISMATCH, lambda: conv(view(x), view(w), None, windows((0, 0), (0, 1)), 1, 0, view(out))),
        (MISMATCH, lambda: conv(view(x), view(w), None, windows(padding=(2 ** 61, 0)), 1, 0, view(out))),
        (MISMATCH, lambda: conv(view(x), view(w), None, windows(), 1, 0, view(out[:, :3]))),
        (MISMATCH, lambda: pool(view(x), windows(), view(zeros(2, 3, 9, 9)))),
        (MISMATCH, lambda: pool(view(x), windows(), view(zeros(2)))),
        (MISMATCH, lambda: library.fw_layer_norm(view(rows), 3, None, None, eps, view(flat))),
        (MISMATCH, lambda: library.fw_layer_norm(view(rows), 1, view(zeros(4)), None, eps, view(flat))),
        (MISMATCH, lambda: library.fw_attention(view(x), view(x), view(x[..., :5, :]), None, 0, eps,
                                                view(x))),
        (MISMATCH, lambda: library.fw_fold(0, view(rows), 4, view(flat))),
        (INVALID, lambda: library.fw_fold(7, view(rows), 1, view(flat))),
        (INVALID, lambda: library.fw_take_rows(view(rows), view(at), view(flat[:2]))),
        (MISMATCH, lambda: library.fw_take_rows(view(rows), view(rows), view(flat))),
        (INVALID, lambda: library.fw_gather(view(rows[0]), view(at), 0, view(flat[0, :2]))),
        (MISMATCH, lambda: library.fw_gather(view(rows), view(at), 0, view(flat))),
        (MISMATCH, lambda: library.fw_sort(view(rows), 2, 0, view(flat), None)),
        (MISMATCH, lambda: library.fw_topk(view(rows), 1, 1, view(zeros(4, 6)), None)),
        (MISMATCH, lambda: library.fw_cumulate(1, view(rows), 0, 1, view(flat), None)),
        (INVALID, lambda: library.fw_cumulate(5, view(rows), 0, 0, view(flat), None)),
        (INVALID, lambda: library.fw_random_uniform(None, view(flat))),
        (INVALID, lambda: library.fw_random_uniform((ctypes.c_uint64 * 13)(*[9] * 13), view(flat))),
        (INVALID, lambda: library.fw_sort(view(zeros(0, 5)), 1, 0, view(zeros(0, 5)), None)),
        (INVALID, lambda: library.fw_run_program(None, None, None, view(flat))),
    ]
    for number, (wanted, call) in enumerate(cases):
        assert call() == wanted, f"case {number}"
    assert (out == 7).all() and (flat == 7).all()


class Setting(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


def step_in_library(library, method, arrays, numbers, rows=None):
    settings = (Setting * len(numbers))(*((name.encode(), float(n)) for name, n in numbers.items()))
    views = (ctypes.POINTER(View) * len(arrays))(*map(view, arrays))
    return library.fw_optimizer_step(method.encode(), views, len(views), None if rows is None else view(rows),
                                     settings, len(settings))


@pytest.mark.parametrize("kind, options", [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("Adagrad", {"eps_inside": True}), ("RMSprop", {"centered": True, "momentum": 0.5}), ("Adadelta", {}),
    ("Adam", {"amsgrad": True, "maximize": True}), ("AdamW", {"weight_decay": 0.1}), ("Adamax", {})])
def test_steps_of_optimizers_are_those_of_python(library, kind, options):
    rng = np.random.default_rng(2)
    given = [rng.standard_normal(shape).astype(dtype) for shape, dtype in
             (((3, 5), np.float32), ((), np.float64), ((70, 40), np.float32), ((0, 2), np.float32))]
    given[2] = np.asfortranarray(given[2])
    params = [fw.from_numpy(a.copy("K")).requires_grad_() for a in given]
    optimizer = getattr(fw.optim, kind)(params, **options)
    group, states = optimizer.param_groups[0], None
    for step in (1, 2, 3):
        grads = [np.asarray(rng.standard_normal(a.shape), a.dtype, order="F" if a.flags.f_contiguous else "C")
                 for a in given]
        for p, g in zip(params, grads):
            p.grad = fw.from_numpy(g)
        optimizer.step()
        function, names, numbers, *_ = optimizer.fused(group, step)
        states = states or [[np.zeros_like(a) for _ in names] for a in given]
        arrays = [one for a, g, kept in zip(given, grads, states) for one in (a, g, *kept)]
        assert step_in_library(library, function.removesuffix("_step"), arrays, numbers) == OK
    for p, a, kept in zip(params, given, states):
        assert np.array_equal(p.detach().numpy(), a)
        assert all(np.array_equal(optimizer.state[p][name].numpy(), b) for name, b in zip(names, kept))
    norm = ctypes.c_double()
    assert library.fw_norm((ctypes.POINTER(View) * 3)(*map(view, given[:3])), 3, ctypes.byref(norm)) == OK
    assert norm.value == _native.module.norm_of_all(given[:3])


def test_steps_that_do_not_fit_change_nothing(library):
    scale, rng = {"factor": 2.0}, np.random.default_rng(0)
    x = rng.standard_normal((4, 6)).astype(np.float32)
    kept, adam = x.copy(), dict.fromkeys(("rest1", "rest2", "eps", "lr"), 0.1)
    rows, apart = np.array([0, 2]), [np.zeros((4, 6), np.float32) for _ in range(3)]
    cases = [
        (INVALID, "no method", [x], scale, None),
        (INVALID, "scale", [x], {}, None),
        (INVALID, "scale", [x], {**scale, "more": 1}, None),
        (INVALID, "scale", [x.astype(np.int64)], scale, None),
        (UNSUPPORTED, "scale", [x[:, ::2]], scale, None),
        (UNSUPPORTED, "scale", [x[1:], x[:2]], scale, None),
        (MISMATCH, "scale", [x], scale, rows),
        (MISMATCH, "sparse_adam", [x, *apart[:2]], adam, None),
        (MISMATCH, "sparse_adam", [x, apart[0][:2], *apart[1:]], adam, None),
        (MISMATCH, "sparse_adam", [x, apart[0][:2], apart[1], apart[2][:, :5]], adam, rows),
        (MISMATCH, "sparse_adam", [x, apart[0][:2], *apart[1:]], adam, rows.astype(np.int32)),
        (UNSUPPORTED, "sparse_adam", [x, apart[0][:3], *apart[1:]], adam, rows),
        (UNSUPPORTED, "sparse_adam", [x, apart[0][:2], *apart[1:]], adam, np.array([2, 0])),
        (UNSUPPORTED, "sparse_adam", [x, apart[0][:2], *apart[1:]], adam, np.array([2, 4])),
        (UNSUPPORTED, "sparse_adam", [x, apart[0][:2], x, apart[1]], adam, rows),
    ]
    for number, (wanted, method, arrays, numbers, at) in enumerate(cases):
        assert step_in_library(library, method, arrays, numbers, at) == wanted, f"case {number}"
    assert np.array_equal(x, kept)
    assert step_in_library(library, "sparse_adam", [x, apart[0][:2] + 1, *apart[1:]], adam, rows) == OK
    assert np.array_equal(x[[1, 3]], kept[[1, 3]]) and (x[rows] != kept[rows]).all()


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
