"""The CUDA paths, on real CuPy where a device is, else on the stand-in for it over NumPy."""

import gc
import json
import pickle
import sys
import time
import types
import warnings
from collections import namedtuple
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from device_dtypes import LEAVES_THE_DEVICE, difference
from table import (
    ROWS,
    assert_close,
    cast_inputs,
    changes_inputs,
    cotangents,
    flat,
    floating_leaves,
    is_floating,
    numpy_of,
    row_id,
    tensors,
)

import framework as fw
from framework.backends import cuda as backend
from framework.backends import cudnn_graphs, cudnn_recurrent, device_code, device_products, gpu_memory
from framework.data.pinning import pinned as pinned_batch
from framework.errors import DeviceError, MissingExtraError

STANDIN = str(Path(__file__).parent / "standin")


def _forget():
    """Take back what was compiled for an array module that is about to go, and the module itself."""
    backend._cupy = None
    for name in [n for n in sys.modules if n.partition(".")[0] in ("cupy", "cupyx")]:
        del sys.modules[name]
    for op in fw.ops.OPS:
        for rule in getattr(op, "rules", None) or ():
            if hasattr(rule, "_cupy"):
                rule._cupy = rule._mended = rule._summed = None
        if hasattr(op, "_functions"):
            op._functions = {m: f for m, f in op._functions.items() if m is np}


def _real_device_count():
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:
        return 0


@pytest.fixture(scope="module")
def cupy():
    """CuPy with a device: the real one, or the stand-in; everything is put back afterwards."""
    if _real_device_count():
        import cupy as module

        yield module
        backend._cupy = None
        return
    saved = {n: m for n, m in sys.modules.items() if n.partition(".")[0] in ("cupy", "cupyx")}
    kernels, device_code.enabled = device_code.enabled, False  # their tests: test_device_kernels.py
    _forget()
    sys.path.insert(0, STANDIN)
    frontend, paths, cublas = cudnn_graphs._frontend, cudnn_recurrent.paths, device_products.cublas
    cudnn_graphs._frontend, cudnn_recurrent.paths = False, tuple  # real cuDNN knows no stand-in
    try:
        import cupy as module

        device_products.cublas = module.cuda.cublas.Library
        yield module
    finally:
        cudnn_graphs._frontend, cudnn_recurrent.paths, device_products.cublas = frontend, paths, cublas
        sys.path.remove(STANDIN)
        _forget()
        sys.modules.update(saved)
        device_code.enabled = kernels


class On:
    """The framework, with new tensors on a device unless the call says otherwise."""

    MAKERS = {
        "tensor",
        "as_tensor",
        "ones",
        "zeros",
        "full",
        "empty",
        "arange",
        "linspace",
        "logspace",
        "eye",
        "rand",
        "randn",
        "randint",
        "randperm",
        "tril_indices",
        "triu_indices",
        "scalar_tensor",
    }

    def __init__(self, device):
        self._device = device

    def __getattr__(self, name):
        value = getattr(fw, name)
        if name == "from_numpy":
            return lambda a: fw.from_numpy(a).to(self._device)
        return partial(value, device=self._device) if name in self.MAKERS else value


def on_cuda(row, sample, device):
    """Results and first gradients of a sample on a device, as NumPy arrays."""
    inputs = tensors(cast_inputs(sample, np.float64), device=device)
    for x in inputs:
        if sample.grad and isinstance(x, fw.Tensor) and (x.is_floating_point() or x.is_complex()):
            x.requires_grad_()
    out = sample.call(
        On(device), *[x * 1 if isinstance(x, fw.Tensor) and changes_inputs(row) else x for x in inputs]
    )
    leaves = floating_leaves(out)
    if (
        device != "cpu"
        and row.name not in LEAVES_THE_DEVICE
        and any(isinstance(x, fw.Tensor) for x in inputs)
    ):
        for y in flat(out):
            assert not isinstance(y, fw.Tensor) or y.is_cuda, "the result left the device"
    found = [numpy_of(y) for y in flat(out)]
    if leaves and any(is_floating(a) for a in sample.inputs):
        wanted = [x for x in inputs if isinstance(x, fw.Tensor) and x.requires_grad]
        seeds = [fw.tensor(g, dtype=y.dtype, device=y.device) for g, y in zip(cotangents(leaves), leaves)]
        found += [numpy_of(g) for g in fw.autograd.grad(leaves, wanted, seeds, materialize_grads=True)]
    return found


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_samples_equal_the_cpus(row, cupy):
    """Every sample gives on the device what it gives on the CPU, with its first gradient."""
    # without kernels the incomplete gamma functions are thousands of launches
    for sample in row.samples[:1] if row.name in ("igamma", "igammac") else row.samples:
        try:
            got, want = on_cuda(row, sample, "cuda:0"), on_cuda(row, sample, "cpu")
            assert len(got) == len(want)
            for a, b in zip(got, want):
                assert a.dtype == b.dtype
                assert_close(a, b, str(b.dtype) if b.dtype.kind in "fc" else "float64", 10 * sample.tol)
        except Exception as error:
            error.add_note(f"in sample {sample.label!r} of {row_id(row)} on cuda:0")
            raise


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_other_dtypes_equal_the_cpus(dtype, cupy):
    """By CuPy's functions, each row in one of them. By kernels: test_device_samples.py; all dtypes, all
    samples: tests/stress/cuda_dtypes.py."""
    turn = ("float16", "bfloat16", "int32").index(dtype)
    pytest.importorskip("ml_dtypes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [f"{row_id(row)}, {sample.label!r}: {text}" for row in ROWS[turn::3]
                 for sample in row.samples[:2] if (text := difference(row, sample, dtype, On))]
    assert not found, f"{len(found)} samples differ in {dtype}:\n" + "\n".join(found)


def test_no_cupy_names_the_extra(monkeypatch):
    saved = backend._cupy
    monkeypatch.setattr(backend, "_cupy", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match=r"framework\[cuda12\]"):
        fw.ones(2, device="cuda")
    assert backend._cupy is None
    backend._cupy = saved


def test_moving(cupy):
    x = fw.tensor([1.0, 2.0])
    y = x.cuda()
    assert y.device == fw.device("cuda:0") and y.is_cuda and y.get_device() == 0
    assert x.to("cuda:0").is_cuda and y.cuda() is y and y.to("cuda:0") is y and x.cpu() is x
    assert y.cpu().tolist() == [1.0, 2.0] and y.to("cpu", fw.float64).dtype is fw.float64
    assert y.tolist() == [1.0, 2.0] and y[1].item() == 2.0 and y.numpy(force=True).tolist() == [1.0, 2.0]
    with pytest.raises(DeviceError, match=r"x.cpu\(\).numpy\(\)"):
        y.numpy()


def test_gradient_through_a_move(cupy):
    x = fw.tensor([1.0, 2.0], requires_grad=True)
    (x.cuda() ** 2).sum().cpu().backward()
    assert x.grad.device == fw.device("cpu") and x.grad.tolist() == [2.0, 4.0]


def test_a_singular_matrix_is_told(cupy):
    """CuPy's default is to give NaN."""
    with pytest.raises(fw.linalg.LinAlgError, match="inv: the matrix is singular"):
        fw.linalg.inv(fw.zeros(2, 2, device="cuda"))
    with pytest.raises(fw.linalg.LinAlgError, match="not positive definite"):
        fw.linalg.cholesky(-fw.eye(2, device="cuda"))


def test_second_derivative_on_the_device(cupy):
    x = fw.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    (g,) = fw.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = fw.autograd.grad(g.sum(), x)
    assert h.is_cuda and h.tolist() == [6.0, 12.0]


def test_accumulation_and_inplace_on_the_device(cupy):
    x = fw.ones(3, device="cuda", requires_grad=True)
    for _ in range(2):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [4.0] * 3
    y = fw.zeros(3, device="cuda")
    y += 1
    y[0] = 5
    y.mul_(2.0)
    assert y.tolist() == [10.0, 2.0, 2.0] and y.is_cuda


def test_mixing_devices_names_the_op_and_both(cupy):
    a, b = fw.ones(2, device="cuda:0"), fw.ones(2)
    for call, name in ((lambda: a + b, "add"), (lambda: b * a, "mul"), (lambda: a @ b, "matmul")):
        with pytest.raises(DeviceError) as caught:
            call()
        text = str(caught.value)
        assert name in text and "cuda:0" in text and "cpu" in text and ".to(" in text
    assert (a + fw.tensor(1.0)).is_cuda  # a 0-dim tensor of the CPU is a number


def test_an_index_on_another_device_is_refused(cupy):
    x, i = fw.arange(4.0), fw.tensor([1, 2], device="cuda")
    for key in (i, i > 1, (None, i)):
        with pytest.raises(DeviceError, match=r"the index is on cuda:0, the tensor on cpu; .*to\(x.device\)"):
            x[key]
    with pytest.raises(DeviceError, match="the index is on cuda:0"):
        x[i] = 1.0
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert x.cuda()[fw.tensor([1, 2])].tolist() == [1.0, 2.0]  # a small one of the CPU is taken along


def test_missing_device(cupy):
    with pytest.raises(DeviceError, match="cuda:99"):
        fw.ones(2, device="cuda:99")


def test_two_devices(cupy):
    if backend.device_count() < 2:
        pytest.skip("one device")
    a, b = fw.ones(2, device="cuda:0"), fw.ones(2, device="cuda:1")
    assert (b * 3).device == fw.device("cuda:1") and b.exp().sum().device == fw.device("cuda:1")
    assert b.to("cuda:0").device == fw.device("cuda:0")
    with pytest.raises(DeviceError, match=r"cuda:0, cuda:1"):
        a + b
    c = fw.ones(2, device="cuda:1", requires_grad=True)
    (c.exp() * c).sum().backward()
    assert c.grad.device == fw.device("cuda:1")


def test_factories(cupy):
    made = [
        fw.zeros(2, device="cuda"),
        fw.ones(2, 2, device="cuda"),
        fw.full((2,), 3.0, device="cuda"),
        fw.empty(2, device="cuda"),
        fw.arange(3, device="cuda"),
        fw.linspace(0, 1, 3, device="cuda"),
        fw.eye(2, device="cuda"),
        fw.tensor([1, 2], device="cuda"),
    ]
    made += [fw.zeros_like(made[0]), fw.ones_like(made[1])]
    for name in ("rand", "randn"):
        if hasattr(fw, name):
            made.append(getattr(fw, name)(2, device="cuda"))
    assert all(x.device == fw.device("cuda:0") for x in made)
    assert made[5].tolist() == [0.0, 0.5, 1.0]


def test_pickle_and_print(cupy):
    x = fw.tensor([1.5, 2.0], device="cuda", requires_grad=True)
    y = pickle.loads(pickle.dumps(x))
    assert y.device == x.device and y.tolist() == x.tolist() and y.requires_grad
    assert repr(x).startswith("tensor([1.5000, 2.0000], device=") and "cuda:0" in repr(x)


def test_from_numpy_arrays_never_meet_device_arrays(cupy):
    with pytest.raises(TypeError):
        np.asarray(fw.ones(2, device="cuda")._array)


def test_module_and_optimizer(cupy):
    nn, optim = fw.nn, fw.optim
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    assert model.to("cuda") is model and all(p.is_cuda for p in model.parameters())
    x, y = fw.ones(5, 3, device="cuda"), fw.zeros(5, dtype=fw.int64, device="cuda")
    for name, settings in (
        ("SGD", {"momentum": 0.9}),
        ("Adam", {}),
        ("AdamW", {}),
        ("RMSprop", {}),
        ("Adagrad", {}),
    ):
        optimizer = getattr(optim, name)(model.parameters(), lr=0.01, **settings)
        before = [p.detach().cpu() for p in model.parameters()]
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0], name
        assert all(p.is_cuda for p in model.parameters())
        assert any(
            not np.array_equal(a.numpy(), p.detach().cpu().numpy())
            for a, p in zip(before, model.parameters())
        )


def test_dlpack(cupy):
    """Memory on the device is shared with CuPy; the host gets a copy through the producer."""
    x = fw.arange(3, device="cuda")
    theirs = cupy.from_dlpack(x)
    x[0] = 7
    assert type(theirs) is cupy.ndarray and theirs.tolist() == [7, 1, 2]
    view = fw.from_dlpack(theirs)
    theirs[1] = 8
    assert view.device.type == "cuda" and view.tolist() == [7, 8, 2]
    assert fw.from_dlpack(x, device="cpu").tolist() == [7, 8, 2]
    with pytest.raises(ValueError, match="copy=False, but the memory is on cuda:0"):
        fw.from_dlpack(x, device="cpu", copy=False)


def test_numpy_and_the_array_api_stay_on_the_device(cupy):
    xp, x = fw.array_api, fw.tensor([[1.0, -2.0], [3.0, 4.0]], device="cuda", requires_grad=True)
    a = xp.asarray(x)
    made = [xp.ones(2, device=x.device), xp.linspace(0, 1, 3, device="cuda"), xp.full_like(a, 2),
            xp.sum(a, axis=0), xp.cumulative_sum(a, axis=1, include_initial=True), a[::-1], xp.sort(a),
            a // 2, 2 - a, xp.fft.fftfreq(4, device="cuda"),
            xp.take(a, xp.asarray([0], device="cuda"), axis=1),
            np.exp(x), np.mean(x, axis=0, keepdims=True), np.where(x > 0, x, 0.0), np.add.accumulate(x)]
    assert {str(t.device) for t in made} == {"cuda:0"}
    np.sum(np.sin(x) * 2.0).backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * np.cos(x.detach().cpu().numpy()), rtol=1e-6)
    with pytest.raises(DeviceError, match="on different devices"):
        np.add(x, np.ones((2, 2)))


def test_anomaly_mode_looks_at_the_gpu(cupy):
    x = fw.tensor([1.0, 0.0], device="cuda", requires_grad=True)
    with fw.autograd.detect_anomaly():
        with pytest.raises(fw.errors.AnomalyError, match=r"log made 1 Inf among 2 numbers.*at index \[1\]"):
            x.log()
        y = x.sqrt()
        with pytest.raises(fw.errors.AnomalyError, match="backward of sqrt made 1 Inf"):
            y.sum().backward()
        (x * 2).exp().sum().backward()
    assert x.grad.is_cuda


def test_saved_tensors_go_to_the_host_and_come_back(cupy):
    def gradient():
        x = fw.tensor([1.0, 2.0], device="cuda", requires_grad=True)
        (x.exp() * x).sum().backward()
        return x.grad.cpu().numpy()

    with fw.autograd.graph.save_on_cpu():
        x = fw.ones(2, device="cuda", requires_grad=True)
        kept = x.exp().grad_fn.kept["out"]
        assert not kept.packed[1].is_cuda
        np.testing.assert_array_equal(gradient(), gradient())
        hooked = gradient()
    np.testing.assert_array_equal(hooked, gradient())


def test_transforms_and_checkpoints(cupy):
    """Forward mode, Jacobians and recomputation stay on the device, and so do its random numbers."""
    F, dropout = fw.func, fw.nn.functional.dropout
    x = fw.randn(3, 4, device="cuda")
    net = fw.nn.Sequential(fw.nn.Linear(4, 3), fw.nn.Tanh()).to("cuda")
    pushed = F.jvp(net, (x,), (x,))[1]
    assert pushed.is_cuda and fw.allclose(pushed, fw.autograd.functional.jvp(net, x, x)[1])
    for transform in (F.jacfwd, F.jacrev, F.hessian, F.vmap):
        assert transform(lambda x: net(x).sum())(x).is_cuda
    grads = []
    for call in (lambda f, x: f(x), fw.utils.checkpoint.checkpoint):
        fw.manual_seed(0)
        y = x.clone().requires_grad_()
        call(lambda x: dropout(net(x), 0.5), y).sum().backward()
        grads.append(y.grad)
    assert fw.allclose(*grads)
    z = fw.randn(2, dtype=fw.float64, device="cuda").requires_grad_()
    assert fw.autograd.gradcheck(lambda x: x.sin() * x, (z,), check_forward_ad=True)


class Mark:
    """An event in a queue of a GPU that has done everything at once."""

    def record(self, stream=None):
        self.time = time.perf_counter_ns()

    def synchronize(self):
        pass


def test_a_profiler_shows_the_work_in_each_stream(cupy, monkeypatch, tmp_path):
    backend.cupy()
    stream = [0]  # the handle of the current one
    for name, stands_in in (
        ("Event", Mark),
        ("get_elapsed_time", lambda a, b: (b.time - a.time) / 1e6),
        ("get_current_stream", lambda: types.SimpleNamespace(ptr=stream[0])),
    ):
        monkeypatch.setattr(cupy.cuda, name, stands_in, raising=False)
    x = fw.ones(8, 8, device="cuda", requires_grad=True)
    with fw.profiler.profile() as prof, fw.profiler.record_function("part"):
        y = (x * 2).exp()
        stream[0] = 0x7
        y.sum().backward()
        fw.ones(3) + 1  # on the CPU
    assert fw.profiler.ProfilerActivity.CUDA in fw.profiler.supported_activities()
    rows = {row.key: row for row in prof.key_averages()}
    spans = {span.name: span for span in prof.spans}
    assert spans["mul"].gpu == (0, 0) and spans["sum"].gpu == (0, 7) == spans["backward exp"].gpu
    assert spans["add"].gpu is None and rows["add"].device_time_total == 0 < rows["exp"].device_time_total
    for span in prof.spans:  # one clock for both
        assert span.gpu is None or abs(span.gpu_start - span.start) < 5e8 > span.gpu_end - span.end
    assert rows["part"].device_time_total == pytest.approx(sum(s.gpu_time for s in prof.spans if s.gpu) / 1e3)
    assert rows["part"].self_device_time_total == pytest.approx(0, abs=1e-6)
    table = prof.key_averages().table(sort_by="cuda_time_total")
    assert "GPU total" in table and table.splitlines()[3].startswith("part")

    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {names[e["pid"], e["tid"]] for e in events if e.get("cat") == "gpu" and e["ph"] == "X"} == {
        "default stream", "stream 0x7"}
    arrows = [[e["id"] for e in events if e["ph"] == ph] for ph in "sf"]
    assert arrows[0] == arrows[1] and len(arrows[0]) == len([s for s in prof.spans if s.gpu])

    with fw.profiler.profile([fw.profiler.ProfilerActivity.CPU]) as prof:
        x * 2
    assert prof.spans[0].gpu is None and "GPU" not in str(prof.key_averages())


@pytest.fixture
def limited(cupy):
    """A device that has 1 MB for the test, whatever others left there."""
    if "standin" not in cupy.__version__:
        pytest.skip("the limits of a real device are another's")
    backend.cupy()
    pool = cupy.get_default_memory_pool()
    gc.collect()
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + (1 << 20))
    yield pool
    pool.set_limit(size=0)
    fw.cuda.empty_cache()


def test_out_of_memory_says_who_has_it_and_leaves_all_as_it_was(limited):
    weight = fw.ones(256, 256, device="cuda", requires_grad=True)  # 256 KiB
    product = weight * 2
    used, limit = fw.cuda.memory_allocated(), limited.get_limit()
    with pytest.raises(fw.cuda.OutOfMemoryError, match="out of memory: 1.0 MiB were asked for") as found:
        fw.cat([product] * 4)
    text = str(found.value)
    assert f"allows {limit / 2**20:.1f} MiB" in text and "of 16.00 GiB are free" in text
    assert f"{used / 2**10:.1f} KiB are in use by arrays" in text
    assert "256.0 KiB: framework.float32 [256, 256], made by mul\n" in text and "a leaf that requires" in text
    assert isinstance(found.value, MemoryError) and isinstance(found.value, RuntimeError)
    del found
    gc.collect()
    assert fw.cuda.memory_allocated() == used
    product.sum().backward()  # and goes on
    assert float(weight.grad.sum()) == 2 * 256 * 256


def test_a_part_of_a_device_is_all_that_a_process_gets(cupy):
    if "standin" not in cupy.__version__:
        pytest.skip("a real device may hold other things")
    gc.collect()
    fw.cuda.empty_cache()
    total = fw.cuda.mem_get_info()[1]
    fw.cuda.set_per_process_memory_fraction((fw.cuda.memory_allocated() + (1 << 20)) / total)
    try:
        x = fw.ones(1 << 17, device="cuda")
        with pytest.raises(fw.cuda.OutOfMemoryError, match="1.0 MiB were asked for"):
            fw.ones(1 << 18, device="cuda")
        assert x.sum().item() == 1 << 17
    finally:
        fw.cuda.set_per_process_memory_fraction(0.0)
    assert fw.ones(1 << 18, device="cuda").is_cuda


def test_more_than_a_device_has_is_refused_by_the_device(cupy):
    """Not by the host, which may have more, or less; and the device goes on."""
    gc.collect()
    with pytest.raises(fw.cuda.OutOfMemoryError, match="4.00 TiB were asked for; .* are in use by arrays"):
        fw.empty(1 << 40, device="cuda")
    assert fw.zeros(3, device="cuda").tolist() == [0.0] * 3


def test_peaks_miss_nothing_between_two_looks(limited):
    fw.cuda.reset_peak_memory_stats()
    before = fw.cuda.memory_allocated()
    x = fw.ones(1 << 16, device="cuda")
    del x
    assert fw.cuda.memory_allocated() == before
    assert fw.cuda.max_memory_allocated() == before + (1 << 18) <= fw.cuda.max_memory_reserved()
    assert fw.cuda.memory_stats()["allocated_bytes.all.peak"] == before + (1 << 18)
    fw.cuda.empty_cache()
    fw.cuda.reset_peak_memory_stats()
    assert fw.cuda.max_memory_allocated() == before == fw.cuda.max_memory_reserved()


def test_another_allocator_stays(cupy):
    calls = []
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(lambda size: calls.append(size) or before(size))
    try:
        assert gpu_memory.install(cupy, lambda device: []) is None
        assert cupy.ones(3) is not None and calls
    finally:
        cupy.cuda.set_allocator(before)


def test_memory_that_a_stream_uses_goes_to_others_after_it(limited):
    class Late:
        done = False

        def synchronize(self):
            self.done = True

    marks = []
    queue = types.SimpleNamespace(record=lambda: marks.append(Late()) or marks[-1])
    stream = types.SimpleNamespace(own=queue)
    start = fw.cuda.memory_allocated()
    x = fw.ones(1 << 16, device="cuda")
    part = x[1:]
    part.record_stream(stream)
    with_x = fw.cuda.memory_allocated()
    del x
    assert not marks  # a view is there
    del part
    assert len(marks) == 1 and fw.cuda.memory_allocated() == with_x
    fw.ones(2, device="cuda")
    assert fw.cuda.memory_allocated() >= with_x
    marks[0].done = True
    fw.ones(2, device="cuda")
    assert fw.cuda.memory_allocated() == start
    y = fw.ones(3 << 16, device="cuda")
    y.record_stream(stream)
    del y
    z = fw.ones(3 << 16, device="cuda")  # there is room for one only: the stream is waited for
    assert marks[1].done and z.is_cuda
    with pytest.raises(DeviceError, match="on the CPU"):
        fw.ones(2).record_stream(stream)


def test_pinned_memory_is_copied_before_the_program_goes_on_unless_it_knows(cupy):
    if "standin" not in cupy.__version__:
        pytest.skip("when a real device reads is not to be seen")
    source = fw.arange(4.0)
    pinned = source.to("cpu").pin_memory()
    assert pinned.is_pinned() and pinned[1:].is_pinned() and not source.is_pinned()
    there, beside = pinned.to("cuda"), pinned.to("cuda", non_blocking=True)
    also = pinned.cuda(non_blocking=True)
    moved = fw.nn.Linear(4, 1).to("cuda", non_blocking=True)
    pinned.zero_()
    assert there.tolist() == [0, 1, 2, 3] and moved.weight.is_cuda
    assert beside.tolist() == also.tolist() == [0, 0, 0, 0]  # the stand-in reads as late as can be
    x = fw.ones(2, requires_grad=True)
    (x.to("cuda", non_blocking=True) * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_a_loader_pins_its_batches(cupy):
    backend.cupy()
    data = fw.data.TensorDataset(fw.arange(6.0), fw.arange(6))
    for workers in (0, 1):
        loader = fw.data.DataLoader(data, batch_size=4, pin_memory=True, num_workers=workers)
        batches = list(loader)
        assert [[t.is_pinned() for t in batch] for batch in batches] == [[True, True]] * 2
        assert [batch[0].tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5]]

    Pair = namedtuple("Pair", "x y")

    class Own:
        def pin_memory(self):
            return "pinned"

    nest = pinned_batch({"a": [fw.ones(2), Pair(fw.ones(1), "text")], "b": Own(), "c": fw.ones(2).cuda()})
    assert nest["a"][0].is_pinned() and nest["a"][1].x.is_pinned() and nest["a"][1].y == "text"
    assert nest["b"] == "pinned" and nest["c"].is_cuda


def test_numbers_that_do_not_fit_and_differences_of_bools_are_told_in_our_words(cupy):
    for device in ("cpu", "cuda"):
        x, truth = (fw.ones(3, dtype=kind, device=device) for kind in (fw.uint8, fw.bool))
        calls = {"fill_": x.fill_, "__setitem__": partial(x.__setitem__, 0),
                 "full": partial(fw.full, (2,), dtype=fw.uint8, device=device)}
        for name, call in calls.items():
            with pytest.raises(fw.errors.RangeError, match=f"{name}: the number 300 is out of bounds"):
                call(300)
        with pytest.raises(fw.errors.DTypeError, match="bools have no difference; use x . y"):
            truth.sub(truth)
        with pytest.raises(fw.errors.DTypeError, match="neg: bools have no sign; use ~x"):
            truth.neg()
