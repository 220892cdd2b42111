"""Kernels launched through the driver by the native module: here by a library with its functions."""

import ctypes
import gc
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest
from device_steps import Run
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
from framework.backends import device_code, device_launcher
from framework.ops.language.cuda import DeviceKernel
from framework.ops.language.elementwise import Elementwise


class Refused(Exception):
    """What the driver's status becomes."""


class Driver:
    """The library's variables."""

    def __init__(self, library):
        self._library = library

    def __getattr__(self, name):
        kind = ctypes.c_long if name == "launches" else ctypes.c_void_p if name == "stream" else ctypes.c_int
        return kind.in_dll(self._library, f"driver_{name}").value

    def set(self, **values):
        for name, value in values.items():
            ctypes.c_int.in_dll(self._library, f"driver_{name}").value = value


def forget_kernels():
    """Have elementwise records make theirs anew."""
    for op in fw.ops.OPS:
        if isinstance(op, Elementwise):
            op._device_kernel = op._quick = None


@pytest.fixture
def driver(raw, cupy, monkeypatch):  # noqa: F811
    """The driver's functions, with which CuPy's stand-in is launched."""
    if device_launcher._native_module() is None:
        pytest.skip("the native launcher is not built here")
    library, path = raw.driver()
    monkeypatch.setattr(cupy.cuda, "driver", types.SimpleNamespace(CUDADriverError=Refused), raising=False)
    monkeypatch.setattr(cupy.cuda, "stream", types.SimpleNamespace(), raising=False)
    monkeypatch.setattr(device_launcher, "LIBRARY", path)
    monkeypatch.setattr(device_launcher, "_started", (None, None))
    forget_kernels()
    before = dict(device_code._modules), [(s, dict(s._kernels)) for s in device_code.SOURCES]
    device_code._modules.clear()
    for source in device_code.SOURCES:
        source._kernels.clear()
    driver = Driver(library)
    driver.set(does=1, backward=0, device=0, status=0)
    yield driver
    driver.set(does=1, backward=0, device=0, status=0)
    device_launcher.launcher().stop()
    forget_kernels()
    from cupy import streams

    fw.cuda.graph.default_capture_stream = None
    streams.clear()
    device_code._modules.clear()
    device_code._modules.update(before[0])
    for source, kernels in before[1]:
        source._kernels.clear()
        source._kernels.update(kernels)


@pytest.mark.parametrize("name", ["mlp", "gpt", "lstm"])
def test_steps_launched_by_the_driver_equal_the_cpus(name, driver, cupy):  # noqa: F811
    losses = []
    for device in ("cpu", "cuda"):
        run = Run(name, device)
        losses.append([run.step().item() for _ in range(3)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    before = driver.launches
    run.step()
    assert driver.launches - before > 10  # all but the products and blocks that wait for each other


def test_what_launches_without_python(driver, cupy):  # noqa: F811
    """Operands that lie alike; what is left to Python gives the same numbers."""
    kernel = DeviceKernel("x * 3 - y", ("x", "y"), None)
    x = np.random.default_rng(0).standard_normal((4, 6)).astype("f")
    a, b = cupy.asarray(x), cupy.asarray(x[::-1].copy())
    first = kernel(a, b)  # CuPy launches, and gives the handle
    quick = kernel.quick[1]
    again = quick(a, b)
    assert again is not NotImplemented and again.tolist() == first.tolist() == (x * 3 - x[::-1]).tolist()
    strange = (a, b[0]), (a.T, b.T), (a[:, ::2], b[:, ::2]), (a, b.astype("d")), (a, 2.0), (a[:0], b[:0])
    for other in strange:
        assert quick(*other) is NotImplemented
    np.testing.assert_array_equal(kernel(a, b[0]).get(), x * 3 - x[::-1][0])
    kernel(a, 2.0)
    np.testing.assert_array_equal(quick(a, 2.0).get(), x * 3 - np.float32(2))
    assert quick(a, True) is quick(a, 2) is NotImplemented
    whole = DeviceKernel("x + y", ("x", "y"), None)
    i = cupy.asarray(np.arange(5, dtype="i1"))
    whole(i, 100)
    assert whole.quick[1](i, 100).tolist() == [100, 101, 102, 103, 104]
    assert whole.quick[1](i, 128) is whole.quick[1](i, 1 << 70) is NotImplemented  # too large
    x, y = (fw.ones(3, device="cuda", requires_grad=True) for _ in range(2))
    for _ in range(2):
        before = driver.launches
        (x * y).sum().backward()
        assert x.grad.tolist() == [1, 1, 1]
        x.grad = y.grad = None
    assert driver.launches - before == 5  # with the 1 that backward begins with


def test_results_are_written_into_memory_without_python(driver, cupy):  # noqa: F811
    """Over an operand, or beside all of them; what overlaps, lies otherwise or has another dtype is left."""
    kernel = DeviceKernel("x - y", ("x", "y"), None)
    a, b = (cupy.asarray(np.arange(12, dtype="f").reshape(3, 4) * k) for k in (1, 2))
    kernel(a, b)
    quick, out = kernel.quick[1], cupy.zeros((3, 4), "f")
    assert quick(a, b, out=out) is out and out.tolist() == (-np.arange(12.0).reshape(3, 4)).tolist()
    assert quick(a, b, out=a) is a and a.tolist() == out.tolist()
    assert quick(a, b, out=None).tolist() == (a.get() - b.get()).tolist()
    long = cupy.zeros(20, "f")
    for wrong in (cupy.zeros((4, 3), "f"), cupy.zeros((3, 4), "d"), cupy.zeros((4, 3), "f").T,
                  cupy.zeros((3, 8), "f")[:, ::2], np.zeros((3, 4), "f")):
        assert quick(a, b, out=wrong) is NotImplemented
    ahead, behind = long[:12].reshape(3, 4), long[4:16].reshape(3, 4)
    assert quick(ahead, b, out=behind) is quick(behind, b, out=ahead) is NotImplemented  # read elsewhere
    x = fw.arange(6.0, device="cuda")
    fw.ones(2, device="cuda").mul_(fw.ones(2, device="cuda"))  # CuPy launches each kernel's first time
    x.add_(1.0), x.add_(1.0)
    before = driver.launches
    x.add_(1.0).mul_(x)
    assert driver.launches - before == 2 and x.tolist() == [float((k + 3) ** 2) for k in range(6)]
    x[1:] += x[:-1]  # overlapping memory of one tensor
    assert x.tolist() == [9.0, *[float((k + 3) ** 2 + (k + 2) ** 2) for k in range(1, 6)]]


def test_launches_that_are_left_to_cupy(driver, cupy):  # noqa: F811
    """Threads without a context, other devices, arguments that are not known; a refusal is raised."""
    kernel = DeviceKernel("x + 1", ("x",), None)
    a = cupy.asarray(np.arange(4, dtype="f"))
    kernel(a), kernel(a)
    before = driver.launches
    driver.set(device=-1)
    assert kernel.quick[1](a) is NotImplemented and kernel(a).tolist() == [1, 2, 3, 4]
    driver.set(device=1)
    assert kernel.quick[1](a) is NotImplemented and kernel(a).tolist() == [1, 2, 3, 4]
    assert driver.launches == before
    driver.set(device=0, status=1)
    for call in (kernel, kernel.quick[1]):
        with pytest.raises(Refused, match="1"):
            call(a)
    driver.set(status=0)
    assert kernel(a).tolist() == [1, 2, 3, 4]
    with cupy.cuda.Stream() as stream:
        kernel(a)
        assert driver.stream == stream.ptr
    source = """
extern "C" __global__ void put(double* x, bool a, int b, i64* none) { x[0] = a + 10 * b + 100 * (none == 0); }
"""
    put = device_code.function(source, "put")
    for arguments, want in (((True, np.int32(3), None), 131), ((False, np.array(4, "i4"), None), 140)):
        for _ in range(2):
            x = cupy.asarray(np.zeros(1))
            put((1,), (1,), (x, *arguments))
            assert x.tolist() == [want]
    put((1,), (1,), (x, True, np.int32(1), None), shared_mem=64)
    with pytest.raises(TypeError):
        put((1,), (1,), (x, object(), 1, None))


def test_memory_may_be_taken_in_a_capture(driver):
    """A graph's pool asks the driver in the mode that allows it, and puts the thread's mode back."""
    graph, x = fw.cuda.CUDAGraph(), fw.ones(3, device="cuda")
    x + 1
    modes, before = [], device_launcher.keep_results(True)
    with fw.cuda.graph(graph):
        pool = fw.cuda.graphs._backend.capture.kept[0]
        malloc, pool.own.malloc = pool.own.malloc, lambda n: modes.append(driver.mode) or malloc(n)
        y = x + 1
        assert device_launcher.keep_results(False) is False  # no result of before, and none for later
    assert modes == [2] and driver.mode == 0 and device_launcher.keep_results(before) is True
    graph.replay()
    assert y.tolist() == [2, 2, 2]


class Pointer:
    """Memory as CuPy's class has it."""

    __slots__ = ("ptr", "mem", "device_id")

    def __init__(self, nbytes):
        self.mem, self.device_id = bytearray(nbytes), 0
        self.ptr = ctypes.addressof(ctypes.c_char.from_buffer(self.mem))


class Array:
    """An array as CuPy's class has it."""

    __slots__ = ("shape", "dtype", "data", "_c_contiguous", "nbytes", "__weakref__")

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self._c_contiguous = shape, dtype, True
        self.nbytes = int(np.prod(shape)) * dtype.itemsize
        self.data = Pointer(max(self.nbytes, 1))


def test_results_that_nobody_has_are_handed_out_again(driver):
    """And no others: not where a view, the memory, or a weak reference is left; not in another stream."""
    native, f4, made = device_launcher.launcher(), np.dtype("f4"), []

    def make(shape, dtype):
        made.append(shape)
        return Array(shape, dtype)
    stream = [0]
    assert native.start(device_launcher.LIBRARY, Array, Pointer, lambda: stream[0], print)
    driver.set(does=0)
    kernel = native.kernel(lambda *a, **k: None, lambda k: 1)
    kernel((1,), (1,), ())
    quick = native.quick(make, None)
    quick.add(kernel, 4, f4, "aa", (f4, f4), 0, 0)
    x, before = Array((3, 5), f4), driver.launches
    first = quick(x, x)
    assert quick(x, x) is not first and len(made) == 2
    assert quick(x, x) is not first and len(made) == 2 and driver.launches == before + 3
    second, first = quick(x, x), None
    assert quick(x, x) is not second and len(made) == 2
    del second
    for hold in (lambda a: a.data, lambda a: a.data.mem, lambda a: [a], weakref.ref):
        native.forget()
        held, n = hold(quick(x, x)), len(made)
        quick(x, x)
        assert len(made) == n + 1, hold
    del held
    stream[0], n = 256, len(made)
    quick(x, x)
    assert len(made) == n + 1
    native.forget()
    assert native.idle_bytes(0) == 0
    quick(x, x)
    assert native.idle_bytes(0) == 60 and native.idle_bytes(1) == 0
    assert native.set_keeping(False) is True
    n = len(made)
    quick(x, x), quick(x, x)
    assert len(made) == n + 2 and native.set_keeping(True) is False
    large, n = Array((1 << 19,), f4), len(made)
    quick(large, large), quick(large, large)
    assert len(made) == n + 2 and native.idle_bytes(0) == 60
    for k in range(3000):  # more shapes than there is room for
        y = Array((k % 1000 + 1,), f4)
        quick(y, y)
    gc.collect()
    assert native.idle_bytes(0) <= 32 << 20
    native.forget()
    assert native.idle_bytes(0) == 0


def test_memory_for_results_is_handed_out_again(driver, cupy):  # noqa: F811
    native = device_launcher.launcher()
    first = device_launcher.empty((3, 5), np.float32)
    assert first.shape == (3, 5) and first.dtype == np.float32
    second = device_launcher.empty((3, 5), np.dtype("f4"))
    assert second is not first and device_launcher.empty(7, "f8").shape == (7,)
    assert device_launcher.empty(fw.Size((2, 3)), np.int64).shape == (2, 3)
    assert device_launcher.empty((), np.float32).shape == () and device_launcher.empty((0, 2), "f4").size == 0
    assert device_launcher.current_stream() == 0
    with fw.cuda.stream(fw.cuda.Stream()) as _:
        assert device_launcher.current_stream() == fw.cuda.current_stream().cuda_stream != 0
    for wrong in (([3], np.dtype("f4")), ((3,), "f4"), ((3,),)):
        with pytest.raises(TypeError, match="wanted a tuple of sizes and a dtype"):
            native.empty(*wrong)
    with pytest.raises((TypeError, ValueError)):
        device_launcher.empty((-1,), np.float32)
    driver.set(device=-1)  # a thread without a context
    assert native.empty((3,), np.dtype("f4")) is NotImplemented
    assert device_launcher.empty((3,), np.float32).shape == (3,)
    driver.set(device=0)


def test_no_more_python_on_the_road_of_an_operator(driver):
    """Functions that ``a + b`` calls on a device, once its kernel is known (device_road.py says the time)."""
    fw.ones(1 << 14, device="cuda")  # a peak of memory, below which nobody looks for another
    a, b = (fw.ones(3, device="cuda") for _ in range(2))
    a + b
    fw.cuda.synchronize()  # what kernels of before reported is looked at, once
    found, root = [], Path(fw.__file__).parent

    def look(frame, event, argument):
        path = frame.f_code.co_filename  # the stand-in's stream is asked in Python, CuPy's is not
        if event == "call" and path.startswith(str(root)) and "launcher" not in path:
            found.append(frame.f_code.co_name)
    sys.setprofile(look)
    try:
        a + b
    finally:
        sys.setprofile(None)
    found = found[found.count("function") - 1:]  # autocast and __torch_function__, once used, stand before it
    if hasattr(fw._native.module, "short_road"):
        assert found == ["function", "kernel_for", "__call__"]  # the call: for memory
    else:
        assert found == ["function", "pair", "kernel_for", "__call__", "as_array"]


@pytest.mark.parametrize("alone", [False, True])
def test_calls_on_the_current_device_open_no_context(alone, raw, cupy, monkeypatch):  # noqa: F811
    """No context, no count of devices, and each array is asked once where it is; none where there is one
    device."""
    from framework.backends import cuda as backend

    x, w = fw.ones(4, 4, device="cuda"), fw.ones(4, 4, device="cuda", requires_grad=True)
    calls = [lambda: x @ w, lambda: x.softmax(1), lambda: x.view(16), lambda: x[1:3], lambda: x.sum(1),
             lambda: x.add_(1), lambda: fw.cat([x, x])]
    made = [lambda place=place, make=make: make(place) for place in ("cuda", "cuda:0") for make in (
        lambda d: fw.zeros(2, device=d), lambda d: fw.empty(2, device=d), lambda d: fw.ones(2, device=d),
        lambda d: fw.full((2,), 3.0, device=d), lambda d: fw.arange(3, device=d),
        lambda d: fw.eye(2, device=d), lambda d: fw.rand(2, device=d), lambda d: fw.tensor([1.0], device=d),
        lambda d: fw.randint(0, 3, (2,), device=d), lambda d: fw.zeros_like(x, device=d),
        lambda d: fw.ones(2).to(d), lambda d: x.new_zeros(2), lambda d: x.to(d, fw.float64))]
    for call in (*calls, *made):
        call()
    entered, counted, looked = [], [], []

    def caller():
        return sys._getframe(2).f_code.co_filename

    enter, count, device = cupy.cuda.Device.__enter__, cupy.cuda.runtime.getDeviceCount, cupy.ndarray.device
    monkeypatch.setattr(cupy.cuda.Device, "__enter__",
                        lambda self: (entered.append(caller()), enter(self))[1])
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: (counted.append(1), count())[1])
    monkeypatch.setattr(backend, "_counted", (cupy, 1 if alone else 2))
    look = property(lambda self: (looked.append(sys._getframe(1).f_code.co_name), device.fget(self))[1])
    monkeypatch.setattr(cupy.ndarray, "device", look)
    for call in calls:
        call()
    monkeypatch.setattr(cupy.ndarray, "device", device)
    assert looked.count("_common_device") == (0 if alone else len(calls) + 2)
    for call in made:
        call()
    assert all("standin" in path for path in entered) and not counted, set(entered)
    assert backend.device_count() == (1 if alone else 2)
