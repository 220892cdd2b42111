"""``framework.cuda`` and its kin by the names and in the ways of PyTorch's programs."""

import ctypes
import importlib
import pickle
from uuid import UUID

import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in

import framework as fw
from framework.errors import DeviceError


@pytest.fixture(autouse=True)
def streams_end(cupy):  # noqa: F811
    fw.cuda.graph.default_capture_stream = None
    yield
    fw.cuda.set_stream(fw.cuda.default_stream())
    if hasattr(cupy, "_memory"):
        from cupy import streams

        streams.clear()


def test_streams_are_blocks_and_tell_what_they_are(cupy):  # noqa: F811
    high, low = fw.cuda.Stream(priority=-1), fw.cuda.Stream()
    least, greatest = fw.cuda.Stream.priority_range()
    assert (high.priority, low.priority) == (greatest, least) == (-1, 0)
    assert high.device_index == 0 and high.device_type == 1 and high.stream_id == high.cuda_stream
    assert high.native_handle == high.cuda_stream and f"{high.cuda_stream:#x}" in repr(high)
    assert ctypes.c_void_p.from_param(high) is not None and high._as_parameter_.value == high.cuda_stream
    before = fw.cuda.current_stream()
    with high as inside:
        assert inside is high and fw.cuda.current_stream() == high
        with low, high:
            assert fw.cuda.current_stream() == high
        assert fw.cuda.current_stream() == high
    assert fw.cuda.current_stream() == before
    if fw.cuda.device_count() > 1:
        with fw.cuda.Stream(device=1) as other:
            assert fw.cuda.current_device() == 1 == other.device_index
            assert fw.ones(1, device="cuda").get_device() == 1
        assert fw.cuda.current_device() == 0
    with fw.Stream(device="cuda") as one:
        assert fw.accelerator.current_stream() == one


def test_marks_tell_times_only_when_they_can(cupy):  # noqa: F811
    start, end = (fw.Event("cuda", enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="must be put into a queue first"):
        start.elapsed_time(end)
    start.record()
    end.record()
    fw.cuda.synchronize()
    assert start.elapsed_time(end) >= 0 and start.device == fw.device("cuda:0")
    untimed = fw.cuda.Event()
    untimed.record()
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(untimed)
    with pytest.raises(ValueError, match="interprocess=True"):
        untimed.ipc_handle()
    shared = fw.cuda.Event(interprocess=True)
    assert shared.cuda_event == shared.event_id
    if hasattr(cupy, "_memory"):  # the driver refuses it within one process
        assert fw.cuda.Event.from_ipc_handle(0, shared.ipc_handle()).cuda_event == shared.cuda_event
    with pytest.raises(ValueError, match="external=True"):
        fw.cuda.Event(external=True)
    with pytest.raises(DeviceError, match="work on cpu is not queued"):
        fw.Event("cpu")


def test_properties_of_a_device(cupy):  # noqa: F811
    found = fw.cuda.get_device_properties(0)
    assert found.warp_size == 32 and found.max_threads_per_block >= 512 and isinstance(found.uuid, UUID)
    for name in ("L2_cache_size", "max_threads_per_multi_processor", "regs_per_multiprocessor", "pci_bus_id",
                 "shared_memory_per_block", "shared_memory_per_block_optin", "is_integrated", "clock_rate",
                 "shared_memory_per_multiprocessor", "memory_bus_width", "is_multi_gpu_board"):
        assert isinstance(getattr(found, name), int), name
    assert fw.cuda.get_device_name() == found.name
    assert fw.cuda.get_device_capability() == (found.major, found.minor)
    assert fw.cuda.get_gencode_flags() == "" and not fw.cuda.can_device_access_peer(0, 0)


def test_the_runtime_by_the_names_of_c(cupy):  # noqa: F811
    runtime = fw.cuda.cudart()
    fw.cuda.check_error(runtime.cudaProfilerStart())
    fw.cuda.check_error(runtime.cudaProfilerStop())
    assert runtime.cudaMemGetInfo(0) == fw.cuda.mem_get_info(0) == fw.accelerator.get_memory_info()
    assert runtime.cudaGetDeviceCount() == fw.cuda.device_count()
    for name in ("cudaNoSuchThing", "memGetInfo"):
        with pytest.raises(AttributeError, match=name):
            getattr(runtime, name)
    with pytest.raises(fw.cuda.CudaError, match="gave back 34"):
        fw.cuda.check_error(fw.cuda.cudaStatus.ERROR_NOT_READY)
    assert fw.cuda.has_half and not fw.cuda.has_magma


def test_ranges_for_profilers(cupy):  # noqa: F811
    nvtx = fw.cuda.nvtx

    @nvtx.range("step {}", 3)
    def step():
        return 7
    number = nvtx.range_start("beside")
    assert step() == step() == 7
    nvtx.range_end(number)
    nvtx.mark("here")
    if hasattr(cupy, "_memory"):
        said = cupy.cuda.nvtx.said
        assert said == [("start", "beside", number), *[("push", "step 3"), ("pop",)] * 2, ("end", number),
                        ("mark", "here")]
        said.clear()


def test_places_of_mixed_precision():
    for place, names in {
        "amp.autocast_mode": "autocast custom_fwd custom_bwd is_autocast_available",
        "cuda.amp.autocast_mode": "autocast custom_fwd custom_bwd",
        "cuda.amp.grad_scaler": "GradScaler",
        "cuda.random": "manual_seed_all get_rng_state",
        "cuda.memory": "MemPool use_mem_pool caching_allocator_alloc list_gpu_processes",
    }.items():
        module = importlib.import_module(f"framework.{place}")
        home = getattr(fw, place.split(".")[0])
        home = home.amp if place.startswith("cuda.amp") else home
        for name in names.split():
            assert getattr(module, name) is getattr(home, name) and name in dir(module), (place, name)
    common = importlib.import_module("framework.cuda.amp.common")
    assert common.amp_definitely_not_available() is not fw.cuda.is_available()
    before = fw.get_autocast_gpu_dtype(), fw.get_autocast_cpu_dtype()
    try:
        fw.set_autocast_gpu_dtype(fw.bfloat16)
        fw.set_autocast_cpu_dtype(fw.float16)
        fw.set_autocast_cpu_enabled(True)
        assert fw.get_autocast_dtype("cuda") is fw.bfloat16 and fw.is_autocast_enabled("cpu")
        assert fw.get_autocast_dtype("cpu") is fw.float16
    finally:
        fw.set_autocast_gpu_dtype(before[0])
        fw.set_autocast_cpu_dtype(before[1])
        fw.set_autocast_cpu_enabled(False)


def test_random_numbers_are_restored_by_kind_of_device(cupy):  # noqa: F811
    start = fw.cuda.random.get_rng_state()
    for given in ({"devices": [0]}, {"devices": range(fw.cuda.device_count())}, {"device_type": "cuda"}):
        with fw.random.fork_rng(**given):
            fw.rand(3, device="cuda")
        assert (fw.cuda.get_rng_state() == start).all(), given
    with fw.random.fork_rng(device_type="cpu"):
        fw.rand(3, device="cuda")
    assert not (fw.cuda.get_rng_state() == start).all()
    with pytest.raises(DeviceError, match="no generators of 'xpu'"), fw.random.fork_rng(device_type="xpu"):
        pass


def test_memory_is_told_and_written_down(cupy, tmp_path):  # noqa: F811
    x = fw.ones(1000, device="cuda")
    file = tmp_path / "memory.pickle"
    with pytest.warns(UserWarning, match="no history of memory is noted"):
        fw.cuda.memory._record_memory_history(max_entries=100)
    fw.cuda.memory._record_memory_history(enabled=None)
    fw.cuda.memory._dump_snapshot(str(file))
    blocks = [b for s in pickle.loads(file.read_bytes())["segments"] for b in s["blocks"]]
    assert any(b["requested_size"] == x.nbytes and b["address"] == x.data_ptr() for b in blocks)
    stats = fw.accelerator.memory_stats()
    assert stats["allocated_bytes.all.current"] >= 4000 and fw.accelerator.max_memory_reserved() >= 4000
    fw.accelerator.reset_accumulated_memory_stats()
    fw.accelerator.empty_host_cache()


def test_storages_of_a_device(cupy):  # noqa: F811
    x = fw.arange(6, device="cuda").reshape(2, 3)
    part, whole = x[1:].untyped_storage(), x.storage()
    assert part == x.untyped_storage() and part.data_ptr() == x.data_ptr() and part.nbytes() == 48
    assert part.is_cuda and part.device == x.device and whole.size() == 6 and whole.element_size() == 8
    assert whole.tolist() == list(range(6)) and whole.cpu().device.type == "cpu" and whole[2] == 2
    assert x.t().untyped_storage().data_ptr() == x.data_ptr() and not part.is_pinned()
    whole[0] = 9
    whole.copy_(fw.arange(1, 7).storage())
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]] and x._version == 2
    assert fw.zeros(0, device="cuda").untyped_storage().data_ptr() == 0
    y = fw.ones(3, device="cuda")
    assert y.set_().device == y.device == x.device and y.numel() == 0
    with pytest.raises(DeviceError, match="no memory"):
        fw.ones(2, device="meta").untyped_storage()


def test_a_tensor_of_data_on_a_device_is_a_copy_there(cupy):  # noqa: F811
    x, array = fw.ones(3, device="cuda"), cupy.ones(3, "f4")
    for data in (x, array):
        for given in ({}, {"device": "cuda"}, {"dtype": fw.float32}, {"dtype": fw.float64}):
            made = fw.tensor(data, **given)
            assert made.is_cuda
            made.add_(1)
            assert x.tolist() == [1, 1, 1] and cupy.asnumpy(array).tolist() == [1, 1, 1]
        assert fw.tensor(data, device="cpu").device.type == "cpu"
    assert fw.as_tensor(array).data_ptr() == array.data.ptr  # which does share


def test_tensors_are_brought_to_devices_and_back(cupy):  # noqa: F811
    comm, x = fw.cuda.comm, fw.arange(8.0).reshape(4, 2).cuda()
    devices = list(range(fw.cuda.device_count()))
    copies = comm.broadcast(x, devices)
    assert [c.get_device() for c in copies] == devices and all((c.cpu() == x.cpu()).all() for c in copies)
    assert (comm.reduce_add(copies).cpu() == len(devices) * x.cpu()).all() and x[0, 1] == 1
    assert comm.reduce_add(copies, destination="cpu").device.type == "cpu"
    both = comm.broadcast_coalesced([x, x[0]], devices)
    assert [[t.get_device() for t in b] for b in both] == [[d, d] for d in devices]
    sums = comm.reduce_add_coalesced(both, 0)
    assert sums[1].tolist() == [0, len(devices)]
    for given in ({}, {"chunk_sizes": [3, 1][: len(devices)]} if len(devices) == 2 else {}):
        parts = comm.scatter(x, devices, **given)
        assert (comm.gather(parts).cpu() == x.cpu()).all() and comm.gather(parts).is_cuda
    out = fw.empty(4, 2)
    assert comm.gather(parts, out=out) is out and (out == x.cpu()).all()
    outs = [fw.empty(1, 2), fw.empty(3, 2)]
    assert comm.scatter(x, out=outs)[1].tolist() == x[1:].tolist()
    comm.broadcast(x, out=[fw.empty(4, 2, device=d) for d in devices])
    for call, words in ((lambda: comm.broadcast(x), "one of them"),
                        (lambda: comm.reduce_add([]), "one shape"),
                        (lambda: comm.broadcast(x, []), "one GPU or more"),
                        (lambda: comm.scatter(x, [0], chunk_sizes=[1, 3]), "2 chunk_sizes for 1 devices"),
                        (lambda: comm.gather([x, x], out=fw.empty(2, 2)), "out must have")):
        with pytest.raises(ValueError, match=words):
            call()


def test_settings_of_libraries(cupy):  # noqa: F811
    cuda, cudnn = fw.backends.cuda, fw.backends.cudnn
    assert cuda.matmul.fp32_precision == "ieee" and cudnn.conv.fp32_precision == "tf32"
    try:
        cuda.matmul.fp32_precision = "tf32"
        cudnn.rnn.fp32_precision = "ieee"
        assert cuda.matmul.allow_tf32 and not cudnn.allow_tf32 and cudnn.conv.fp32_precision == "ieee"
    finally:
        cuda.matmul.fp32_precision, cudnn.conv.fp32_precision = "ieee", "tf32"
    with pytest.raises(ValueError, match="wanted 'ieee', 'tf32' or 'none', got 'fp8'"):
        cuda.matmul.fp32_precision = "fp8"
    assert cuda.preferred_linalg_library() == "cusolver" == cuda.preferred_linalg_library("default")
    with pytest.warns(UserWarning, match="'magma' is not there; cusolver computes"):
        cuda.preferred_linalg_library("magma")
    assert cuda.preferred_blas_library("cublaslt") == "cublaslt" and cuda.is_flash_attention_available()
    plans, size = cuda.cufft_plan_cache, cuda.cufft_plan_cache.max_size
    plans[0].max_size = size + 1
    assert plans["cuda:0"].max_size == plans.max_size == size + 1 and plans.size >= 0
    plans.max_size = size
    plans.clear()


def test_numbers_of_devices():
    from framework.cuda._utils import _get_device_index

    assert _get_device_index("cuda:1") == 1 == _get_device_index(1) == _get_device_index(fw.device("cuda", 1))
    assert _get_device_index("cpu", allow_cpu=True) == -1
    for wrong in (None, "cpu"):
        with pytest.raises(ValueError, match="was expected"):
            _get_device_index(wrong)


def test_a_graph_is_drawn(cupy, tmp_path):  # noqa: F811
    graph, x = fw.cuda.CUDAGraph(), fw.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="nothing to dump"):
        graph.debug_dump("x")
    try:
        graph.enable_debug_mode()
        with fw.cuda.graph(graph):
            x + 1
        graph.debug_dump(str(tmp_path / "graph.dot"))
    finally:
        fw.cuda.graph.default_capture_stream = None
    assert "digraph" in (tmp_path / "graph.dot").read_text()
    assert not fw.cuda.graphs.is_current_stream_capturing()
