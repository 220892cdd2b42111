"""What programs ask of devices that are not there, settings of backends, determinism, storage, replicas."""

import gc
import importlib
import threading

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in

import framework as fw
from framework.backends import cuda, nvml
from framework.backends.precision import check_deterministic
from framework.errors import DeviceError, OutOfMemoryError

no_gpu = pytest.mark.skipif(fw.cuda.is_available(), reason="there is a GPU here")


@no_gpu
def test_cuda_without_a_gpu_answers():
    c = fw.cuda
    assert c.device_count() == 0 and not c.is_available() and not c.is_bf16_supported()
    assert c.memory_allocated() == c.max_memory_allocated() == c.memory_reserved() == c.memory_cached() == 0
    assert c.memory_snapshot() == [] == c.memory._snapshot()["segments"]
    assert c.max_memory_reserved() == 0 and c.memory_stats() == {} and "no CUDA device" in c.memory_summary()
    assert c.get_rng_state_all() == [] and c.set_rng_state_all([]) is None and c.get_arch_list() == []
    for nothing in (c.empty_cache, c.reset_peak_memory_stats, c.reset_max_memory_allocated, c.ipc_collect,
                    c.seed, c.seed_all, lambda: c.set_device(-1), lambda: c.manual_seed_all(3)):
        assert nothing() is None
    with c.device(None), c.device(-1), c.device_of(fw.ones(1)), c.stream(None):
        assert fw.ones(1).device.type == "cpu"
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        c.manual_seed_all("x")


@no_gpu
@pytest.mark.parametrize("call", [
    "init()", "current_device()", "set_device(0)", "synchronize()", "get_device_name()", "Stream()",
    "get_device_capability()", "get_device_properties(0)", "get_rng_state()", "mem_get_info()", "Event()",
    "initial_seed()", "current_stream()", "default_stream()",
    "device(0).__enter__()", "nvtx.range_push('a')", "nvtx.mark('a')",
    "is_current_stream_capturing()", "can_device_access_peer(0, 1)", "set_per_process_memory_fraction(0.5)",
    "profiler.start()", "FloatTensor(2)", "nvtx.range_pop()"])
def test_cuda_without_a_gpu_refuses(call):
    with pytest.raises((RuntimeError, ImportError), match="cuda|GPU|CuPy"):
        eval(f"fw.cuda.{call}")


def test_cuda_amp_is_amp_of_cuda():
    with pytest.warns(UserWarning, match="there is none for device_type='cuda'"):
        block = fw.cuda.amp.autocast()
    assert isinstance(block, fw.autocast) and block.device == "cuda"
    scaler = fw.cuda.amp.GradScaler(enabled=False)
    assert isinstance(scaler, fw.amp.GradScaler) and not scaler.is_enabled()


def test_cpu_amp_is_amp_of_the_cpu():
    with fw.cpu.amp.autocast(dtype=fw.float16):
        assert (fw.ones(2, 2) @ fw.ones(2, 2)).dtype is fw.float16


def test_types_of_cuda():
    assert not isinstance(fw.ones(1), fw.cuda.FloatTensor) and fw.cuda.FloatTensor.place == "cuda"
    assert repr(fw.cuda.LongTensor) == "<class 'framework.cuda.LongTensor'>"


def test_sums_on_gpus_are_refused_where_determinism_is_wanted():
    try:
        check_deterministic("scatter_add", True)
        fw.use_deterministic_algorithms(True)
        with pytest.raises(RuntimeError, match="scatter_add: on a GPU"):
            check_deterministic("scatter_add", True)
        check_deterministic("scatter_add", False)
        fw.use_deterministic_algorithms(True, warn_only=True)
        assert fw.is_deterministic_algorithms_warn_only_enabled() and fw.get_deterministic_debug_mode() == 1
        with pytest.warns(UserWarning, match="scatter_add"):
            check_deterministic("scatter_add", True)
        assert fw.empty(2).isnan().all() and (fw.empty(2, dtype=fw.int8) == 127).all()
        for mode in (0, 1, 2):
            fw.set_deterministic_debug_mode(mode)
            assert fw.get_deterministic_debug_mode() == mode
        assert fw.are_deterministic_algorithms_enabled()
        with pytest.raises(ValueError, match="wanted 0, 1, 2"):
            fw.set_deterministic_debug_mode("loud")
    finally:
        fw.use_deterministic_algorithms(False)


def test_the_accelerator_without_a_gpu():
    if fw.cuda.is_available():
        pytest.skip("there is a GPU here")
    a = fw.accelerator
    assert not a.is_available() and a.current_accelerator() is None and a.device_count() == 0
    for name in ("current_device_index", "synchronize", "current_stream", "empty_cache", "memory_allocated",
                 "memory_reserved", "max_memory_allocated", "reset_peak_memory_stats"):
        with pytest.raises(RuntimeError, match="no accelerator"):
            getattr(a, name)()
    for name in ("set_device_index", "set_stream"):
        with pytest.raises(RuntimeError, match="no accelerator"):
            getattr(a, name)(0)
    with a.device_index(None):
        pass


@pytest.mark.parametrize("name", ["xpu", "mps"])
def test_backends_that_are_not_there(name):
    module = getattr(fw, name)
    assert not module.is_available() and module.device_count() == 0 and module.manual_seed(3) is None
    with pytest.raises(RuntimeError, match=f"{name}.synchronize: there is no device"):
        module.synchronize()
    assert (fw.xpu.memory_allocated(), fw.xpu.empty_cache(), fw.xpu.is_bf16_supported()) == (0, None, False)


def test_settings_of_backends_are_kept_and_checked():
    b = fw.backends
    before = b.cudnn.benchmark
    b.cudnn.benchmark = True
    assert b.cudnn.benchmark
    b.cudnn.benchmark = before
    with pytest.raises(TypeError, match="benchmark must be of type bool"):
        b.cudnn.benchmark = "yes"
    with b.cudnn.flags(enabled=False, deterministic=True), b.mkldnn.flags(enabled=False):
        assert not b.cudnn.enabled and b.cudnn.deterministic and not b.mkldnn.enabled
    assert b.cudnn.enabled and not b.cudnn.deterministic and b.mkldnn.enabled
    assert b.cudnn.version() is None and not b.cudnn.is_acceptable(fw.ones(1))
    for name in ("cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"):
        assert importlib.import_module(f"framework.backends.{name}").is_available() is False
    assert not b.mps.is_built() and not b.mps.is_macos_or_newer(13, 0)
    assert b.opt_einsum.get_opt_einsum() is None and not b.opt_einsum.enabled
    assert b.cuda.is_built() in (True, False)


def test_precision_of_products():
    products = fw.backends.cuda.matmul
    assert fw.get_float32_matmul_precision() == "highest" and not products.allow_tf32
    products.allow_tf32 = True
    assert fw.get_float32_matmul_precision() == "high"
    fw.set_float32_matmul_precision("highest")
    assert not products.allow_tf32
    with pytest.raises(ValueError, match="wanted one of"):
        fw.set_float32_matmul_precision("foo")


def test_version():
    assert fw.version.__version__ == fw.__version__ and fw.version.hip is None
    assert fw.version.cuda is None or isinstance(fw.version.cuda, str)
    assert issubclass(fw.OutOfMemoryError, RuntimeError) and fw.cuda.OutOfMemoryError is OutOfMemoryError


def test_variable():
    x = fw.ones(2)
    v = fw.autograd.Variable(x, requires_grad=True)
    assert v.requires_grad and isinstance(x, fw.autograd.Variable) and type(v) is fw.Tensor
    assert not fw.autograd.Variable(v).requires_grad and v.data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="no_grad"):
        fw.autograd.Variable(x, volatile=True)
    with pytest.raises(TypeError, match="must be a Tensor"):
        fw.autograd.Variable([1.0])


def test_storage():
    x = fw.arange(6).reshape(2, 3).float()
    s, part = x.storage(), x[1:].untyped_storage()
    assert s.tolist() == [0, 1, 2, 3, 4, 5] == list(s) and len(s) == 6 and s.dtype is fw.float32
    assert part.nbytes() == 24 == part.size() and part.data_ptr() == x.data_ptr() and s.element_size() == 4
    assert part == x.untyped_storage() and part != fw.ones(2).untyped_storage() and s.untyped() == part
    s[0] = 7
    assert x[0, 0] == 7 and x._version == 1 and s[1:3] == [1, 2]
    s.fill_(2)
    assert (x == 2).all()
    s.copy_(fw.ones(6).storage())
    assert (x == 1).all() and s.clone() != s and s.cpu() is s
    with pytest.raises(ValueError, match="cannot take 2"):
        s.copy_(fw.ones(2).storage())
    y = fw.arange(6).reshape(2, 3).t()
    assert y.storage().tolist() == [0, 1, 2, 3, 4, 5] and y.is_set_to(y) and not y.is_set_to(y.t())
    assert fw.Tensor().untyped_storage().nbytes() == 0 and "of size 6" in repr(s)
    assert not x.is_pinned() and not s.is_pinned() and not s.is_cuda and s.device.type == "cpu"
    assert x.storage_type() is fw.TypedStorage and isinstance(s, fw.UntypedStorage) and fw.is_storage(s)


@no_gpu
def test_pinned_memory_needs_a_gpu():
    with pytest.raises(RuntimeError, match="pin_memory|CUDA device"):
        fw.ones(1).pin_memory()


@pytest.mark.parametrize("name", ["uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "sparse",
                                  "xavier_normal", "kaiming_uniform", "kaiming_normal", "orthogonal"])
def test_initialisations_without_underscore(name):
    given = {"constant": (3.0,), "sparse": (0.5,)}.get(name, ())
    x, y = fw.zeros((4, 4, 3) if name == "dirac" else (4, 4)), None
    fw.manual_seed(0)
    with pytest.warns(FutureWarning, match=f"old name of nn.init.{name}_"):
        y = getattr(fw.nn.init, name)(x, *given)
    fw.manual_seed(0)
    assert y is x and (getattr(fw.nn.init, name + "_")(fw.zeros(x.shape), *given) == x).all() and x.any()


# -- DataParallel ----------------------------------------------------------------------------------


class Net(fw.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.ReLU(), fw.nn.Linear(4, 2))
        self.register_buffer("shift", fw.ones(2))
        self.threads = set()

    def forward(self, x, scale=1.0):
        self.threads.add(threading.current_thread())
        return {"y": (self.body(x) + self.shift) * scale}


def test_data_parallel_gives_the_results_and_gradients_of_one_call():
    net, x = Net(), fw.randn(5, 3)
    want = net(x, scale=2.0)["y"]
    want.square().sum().backward()
    grads = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net.threads.clear()
    model = fw.nn.DataParallel(net, ["cpu", "cpu"])
    got = model(x, scale=2.0)["y"]
    got.square().sum().backward()
    np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-6)
    for p, g in zip(net.parameters(), grads):
        np.testing.assert_allclose(p.grad, g, rtol=1e-5, atol=1e-6)
    assert len(net.threads) == 2 and next(iter(model.state_dict())).startswith("module.")
    assert fw.nn.parallel.data_parallel(net, x, ["cpu"])["y"].shape == (5, 2)


@no_gpu
def test_data_parallel_without_gpus_passes_through():
    net = Net()
    model = fw.nn.DataParallel(net)
    assert model.device_ids == [] and model.module is net
    assert (model(fw.ones(2, 3))["y"] == net(fw.ones(2, 3))["y"]).all() and len(net.threads) == 1


def test_data_parallel_raises_what_a_replica_raises():
    class Wrong(fw.nn.Module):
        def forward(self, x):
            raise KeyError("lost")

    with pytest.raises(KeyError, match="lost") as caught:
        fw.nn.DataParallel(Wrong(), ["cpu", "cpu"])(fw.ones(2, 1))
    assert any("in replica" in note for note in caught.value.__notes__)


def test_pieces_of_nested_arguments():
    p = fw.nn.parallel
    parts = p.scatter([fw.arange(4), {"a": fw.ones(2), "b": 1}, None], ["cpu", "cpu"])
    assert [part[1]["b"] for part in parts] == [1, 1] and parts[1][0].tolist() == [2, 3]
    joined = p.gather([x[0] for x in parts], "cpu")
    assert joined.tolist() == [0, 1, 2, 3] and p.gather([fw.tensor(1.0), fw.tensor(2.0)], "cpu").shape == (2,)
    assert p.gather([{"a": fw.ones(1)}, {"a": fw.zeros(1)}], "cpu")["a"].tolist() == [1, 0]
    some, named = p.scatter_kwargs((fw.arange(3),), {"k": fw.arange(3)}, ["cpu"] * 3)
    assert len(some) == len(named) == 3 and named[2]["k"].tolist() == [2]
    with pytest.raises(ValueError, match="different keys"):
        p.gather([{"a": fw.ones(1)}, {"b": fw.ones(1)}], "cpu")
    with pytest.raises(TypeError, match="results must be tensors"):
        p.gather(["a", "b"], "cpu")


# -- last, as CuPy's stand-in stays imported until the end of this file -----------------------------


def test_gpus_are_chosen_seeded_and_named(cupy):  # noqa: F811
    assert fw.cuda.is_available() and fw.cuda.device_count() >= 1 and fw.cuda.is_initialized()
    assert fw.accelerator.is_available() and fw.accelerator.current_accelerator() == fw.device("cuda")
    assert fw.accelerator.device_count() == fw.cuda.device_count()
    fw.cuda.manual_seed_all(5)
    state, x = fw.cuda.get_rng_state(), fw.rand(3, device="cuda")
    assert fw.cuda.initial_seed() == 5
    fw.cuda.set_rng_state(state)
    assert (fw.rand(3, device="cuda") == x).all()
    assert isinstance(x, fw.cuda.FloatTensor) and x.type() == "framework.cuda.FloatTensor"
    with fw.device("cuda"):
        assert fw.ones(2).is_cuda and fw.get_default_device().type == "cuda"
    last = fw.cuda.device_count() - 1
    with fw.cuda.device(last):
        assert fw.cuda.current_device() == last
    assert fw.cuda.current_device() == 0
    with pytest.raises(DeviceError):
        fw.cuda.set_device(99)


@pytest.mark.parametrize("chosen, count", [(None, 3), ("", 0), ("1,0", 2), ("0,5,1", 1), ("-1", 0),
                                           ("0,0", 0), (" 2 ", 1), ("GPU-8932f937", None)])
def test_gpus_are_counted_without_starting_cuda(monkeypatch, chosen, count):
    class Library:
        def nvmlInit_v2(self):
            return 0

        def nvmlDeviceGetCount_v2(self, found):
            found._obj.value = 3
            return 0

        def nvmlShutdown(self):
            closed.append(True)

    closed = []
    monkeypatch.setattr(nvml.ctypes, "CDLL", lambda name: Library())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert nvml.device_count() == count and closed == [True]
    monkeypatch.setattr(cuda, "is_built", lambda: True)
    monkeypatch.setattr(cuda, "is_loaded", lambda: False)
    if count is not None:
        monkeypatch.setattr(cuda, "cupy", lambda: pytest.fail("CUDA was started"))
        assert fw.cuda.is_available() == (count > 0)


def test_without_a_driver_nobody_is_counted(monkeypatch):
    def missing(name):
        raise OSError(name)
    monkeypatch.setattr(nvml.ctypes, "CDLL", missing)
    assert nvml.device_count() is None


class ManagementLibrary:
    """NVIDIA's, with a device on the second bus; fails of its functions say a code."""

    def __init__(self, log, failing=""):
        self.log, self.failing = log, failing

    def nvmlInit_v2(self):
        self.log.append("init")
        return 0

    def nvmlShutdown(self):
        self.log.append("shutdown")

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus, device):
        assert bus == b"0000:00:00.0"
        device._obj.value = 77
        return 0

    def _say(self, name, device, into, **values):
        assert device.value == 77
        for field, value in values.items():
            setattr(into._obj, field, value)
        return 999 if name == self.failing else 0

    def nvmlDeviceGetUtilizationRates(self, device, into):
        return self._say("rates", device, into, gpu=91, memory=34)

    def nvmlDeviceGetMemoryInfo(self, device, into):
        return self._say("memory", device, into, total=80 << 30, used=5 << 30)

    def nvmlDeviceGetTemperature(self, device, sensor, into):
        assert sensor == 0
        return self._say("temperature", device, into, value=61)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device, count, into):
        assert device.value == 77 and count._obj.value >= 3
        for i, (pid, used) in enumerate(((41, 3 << 19), (99, (1 << 64) - 1))[:self.processes]):
            into._obj[i].pid, into._obj[i].used = pid, used
        count._obj.value = self.processes
        return 0

    processes = 2

    def nvmlDeviceGetPowerUsage(self, device, into):
        return self._say("power", device, into, value=350_000)

    def nvmlDeviceGetClockInfo(self, device, clock, into):
        assert clock == 1
        return self._say("clock", device, into, value=1980)


def test_how_a_device_is(monkeypatch, cupy):  # noqa: F811
    """Its load, warmth and clock, which tensors have nothing to do with."""
    if "standin" not in cupy.__version__:
        pytest.skip("a device says other numbers")
    c, log = fw.cuda, []
    monkeypatch.setattr(nvml.ctypes, "CDLL", lambda name: ManagementLibrary(log))
    readings = c.utilization(0), c.memory_usage(), c.temperature("cuda"), c.power_draw(), c.clock_rate()
    assert readings == (91, 34, 61, 350_000, 1980) and c.device_memory_used() == 5 << 30
    assert log == ["init", "shutdown"] * 6
    assert c.list_gpu_processes() == "GPU:0\nprocess 41 has 1.5 MiB\nprocess 99 has unknown memory"
    monkeypatch.setattr(ManagementLibrary, "processes", 0)
    assert c.list_gpu_processes("cuda:0") == "GPU:0\nno process computes"
    monkeypatch.setattr(nvml.ctypes, "CDLL", lambda name: ManagementLibrary(log, "power"))
    with pytest.raises(DeviceError, match=r"power_draw: nvmlDeviceGetPowerUsage .* code 999"):
        c.power_draw()
    assert log[-1] == "shutdown"

    def missing(name):
        raise OSError(name)
    monkeypatch.setattr(nvml.ctypes, "CDLL", missing)
    with pytest.raises(DeviceError, match=r"cuda.utilization: .*libnvidia-ml.so.1 is not there"):
        c.utilization()


def test_memory_by_other_names(cupy):  # noqa: F811
    x = fw.ones(1024, device="cuda")
    figures, nested = fw.cuda.memory_stats(), fw.cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == figures["allocated_bytes.all.current"] >= x.nbytes
    assert fw.cuda.get_per_process_memory_fraction() == 1.0
    fw.cuda.set_per_process_memory_fraction(0.5)
    try:
        assert fw.cuda.get_per_process_memory_fraction(0) == pytest.approx(0.5, rel=1e-3)
    finally:
        fw.cuda.set_per_process_memory_fraction(0.0)


def test_pools_of_memory(cupy):  # noqa: F811
    """Tensors of a block take theirs from its pool, on its device; the common pool does not count that."""
    if "standin" not in cupy.__version__:
        pytest.skip("counts of a device's own pools are CuPy's")
    pool, before = fw.cuda.MemPool(), fw.cuda.memory_allocated()
    with fw.cuda.use_mem_pool(pool):
        x = fw.ones(1000, device="cuda")
        y = x + 1
        other = fw.ones(1000, device="cuda:1") if fw.cuda.device_count() > 1 else None
    assert fw.cuda.memory_allocated() == before and pool.id.own.used_bytes() == 2 * 4096
    z = y * 2
    assert fw.cuda.memory_allocated() == before + 4096 and z[0].item() == 4.0
    assert other is None or fw.cuda.memory_allocated(1) >= 4096
    del x, y
    gc.collect()
    assert pool.id.own.used_bytes() == 0
    pool.id.own.set_limit(size=8192)
    with pytest.raises(fw.cuda.OutOfMemoryError, match="out of memory: 15.6 KiB were asked for"), \
            fw.cuda.use_mem_pool(pool, "cuda:0"):
        fw.ones(4000, device="cuda")
    assert fw.ones(4000, device="cuda")[0].item() == 1.0  # the block has ended
    for call, error, text in (
        (lambda: fw.cuda.use_mem_pool("pool").__enter__(), TypeError, "must be a MemPool, got str"),
        (lambda: fw.cuda.MemPool(len), NotImplementedError, "allocator and use_on_oom are not offered"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_memory_that_no_tensor_stands_for(cupy):  # noqa: F811
    before = fw.cuda.memory_allocated()
    first, second = fw.cuda.caching_allocator_alloc(1000), fw.cuda.caching_allocator_alloc(
        5, "cuda:0", fw.cuda.Stream())
    assert first != second and fw.cuda.memory_allocated() == before + 1024 + 512
    fw.cuda.caching_allocator_delete(first)
    assert fw.cuda.memory_allocated() == before + 512
    fw.cuda.caching_allocator_delete(second)
    assert fw.cuda.memory_allocated() == before
    with pytest.raises(ValueError, match=f"did not give {first}, or it was given back"):
        fw.cuda.caching_allocator_delete(first)
    with pytest.raises(ValueError, match="size must be positive, got 0"):
        fw.cuda.caching_allocator_alloc(0)


def test_what_else_devices_say(cupy):  # noqa: F811
    generators = fw.cuda.default_generators
    assert len(generators) == fw.cuda.device_count() == len(list(generators)) == len(generators[:])
    fw.cuda.manual_seed_all(11)
    assert generators[0].initial_seed() == 11 and generators[-1].device.index == len(generators) - 1
    with pytest.raises(IndexError):
        generators[len(generators)]
    assert fw.cuda.is_tf32_supported() == (fw.cuda.get_device_capability() >= (8, 0))
    assert fw.cuda.get_allocator_backend() == "cupy" and isinstance(fw.cuda.current_blas_handle(), int)
