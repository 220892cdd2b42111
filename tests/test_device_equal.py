"""Calls on a device beside the same calls on the CPU: what is taken, what is refused, and how results lie."""

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_cuda import cupy, limited  # noqa: F401 - the fixtures: CuPy, or its stand-in; little memory
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
import framework.nested
import framework.optim
from framework import _native, nn
from framework.backends import device_code

F = nn.functional
BOTH = ("cpu", "cuda")


def numbers(x):
    return x.detach().cpu().to_dense().tolist()


def test_gradients_that_are_sparse(raw, cupy):  # noqa: F811
    """Once CuPy is loaded, of tensors of the CPU, too."""
    found = []
    for device in (*BOTH, "cuda:1"):
        fw.manual_seed(0)
        table = nn.Embedding(4, 2, sparse=True).to(device)
        bags = nn.EmbeddingBag(4, 2, mode="sum", sparse=True).to(device)
        steps = [fw.optim.SparseAdam(table.parameters()), fw.optim.SGD(bags.parameters(), lr=0.1)]
        for _ in range(2):
            for optimizer in steps:
                optimizer.zero_grad()
            table(fw.tensor([1, 1], device=device)).sum().backward()
            bags(fw.tensor([[1, 2]], device=device)).sum().backward()
            assert table.weight.grad.is_sparse and bags.weight.grad.is_sparse
            for optimizer in steps:
                optimizer.step()
        found.append([numbers(t) for t in (table.weight, table.weight.grad, bags.weight, bags.weight.grad)])
    np.testing.assert_allclose(found[1], found[0], 1e-6)
    np.testing.assert_allclose(found[2], found[0], 1e-6)


def test_memory_that_is_out_while_a_sparse_tensor_lives(limited):  # noqa: F811
    gradient = fw.sparse_coo_tensor([[1]], fw.ones(1, 1 << 14, device="cuda"), (4, 1 << 14))
    with pytest.raises(fw.OutOfMemoryError, match="64.0 KiB: framework.float32"):
        fw.ones(1 << 19, device="cuda")
    assert gradient.is_cuda


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_a_step_whose_memory_is_out_changes_nothing_and_may_be_made_again(raw, limited, name):  # noqa: F811
    """In forward, backward and step: parameters are as before, and so is memory; then training goes on."""

    def tight(room):
        gc.collect()
        fw.cuda.empty_cache()
        limited.set_limit(size=limited.used_bytes() + room)

    def run(device, limit):
        fw.manual_seed(0)
        net = fw.nn.Sequential(fw.nn.Linear(96, 96), fw.nn.Tanh(), fw.nn.Linear(96, 96)).to(device)
        given = {"momentum": 0.9} if name == "SGD" else {}
        optimizer = getattr(fw.optim, name)(net.parameters(), lr=0.1, **given)
        x = fw.linspace(-1.0, 1.0, 64 * 96).reshape(64, 96).to(device)
        before = [p.detach().cpu() for p in net.parameters()]

        def survives(call):
            if not limit:
                return 0
            tight(4096)
            used = fw.cuda.memory_allocated()
            with pytest.raises(fw.cuda.OutOfMemoryError, match="were asked for"):
                call()
            limited.set_limit(size=0)
            assert all(fw.equal(a, p.detach().cpu()) for a, p in zip(before, net.parameters()))
            return used

        def forgotten(used):
            gc.collect()
            assert not limit or fw.cuda.memory_allocated() == used

        forgotten(survives(lambda: net(x)))
        held = fw.cuda.memory_allocated() if limit else 0
        loss = net(x).square().sum()
        survives(loss.backward)
        del loss
        optimizer.zero_grad()
        forgotten(held)
        net(x).square().sum().backward()
        forgotten(survives(optimizer.step))
        optimizer.step()
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
        return [p.detach().cpu().numpy() for p in net.parameters()]

    there = run("cpu", False)
    run("cuda", False)  # counters and tables are made once
    for got, want in zip(run("cuda", True), there, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)


def test_the_largest_tensors_are_told_to_programs_that_never_named_cuda(cupy):  # noqa: F811
    if "standin" not in cupy.__version__:
        pytest.skip("the limits of a real device are another's")
    program = """
import framework as fw
x = fw.ones(256, 256, device="cuda", requires_grad=True)
import cupy
pool = cupy.get_default_memory_pool()
pool.set_limit(size=pool.used_bytes() + (1 << 20))
with fw.autograd.detect_anomaly():
    y = x * 2
plain = x * 3
try:
    fw.cat([y] * 5)
except fw.OutOfMemoryError as error:
    print(error)
"""
    standin = str(Path(__file__).parent / "standin")
    program = f"import sys; sys.path.insert(0, {standin!r}){program}"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program],
                          capture_output=True, text=True)
    assert "256.0 KiB: framework.float32 [256, 256], made by mul\n" in done.stdout, done
    assert "made by mul at <string>:8 in <module>" in done.stdout, done.stdout


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool", "float32"])
def test_numbers_written_where_a_mask_holds(dtype, raw, cupy):  # noqa: F811
    """What NumPy leaves of a number in this dtype, and its refusals."""
    for value in (2.5, -2.7, True, -1, 300, 1e30, float("nan"), np.float32(1.5)):
        found = []
        for device in BOTH:
            x = fw.tensor([1, 0, 1], dtype=getattr(fw, dtype), device=device)
            try:
                x[x > 0] = value
                found.append(str(x.tolist()))
            except (ValueError, OverflowError) as error:
                found.append(f"{type(error).__name__}: {error}")
        assert found[0] == found[1], (value, found)


def test_nested_tensors(raw, cupy):  # noqa: F811
    found = []
    for device in BOTH:
        parts = [fw.arange(6.0).reshape(2, 3), fw.ones(1, 3)]
        x = fw.nested.nested_tensor(parts, device=device, requires_grad=True)
        q = fw.nested.nested_tensor([p.reshape(-1, 1, 3) for p in parts], device=device).transpose(1, 2)
        results = [
            x.to_padded_tensor(0.5), x.to_padded_tensor(0.5, (3, 4, 3)), x.sum(1), (x * 2).amax(1),
            x.softmax(1).values(), x.offsets(), x.lengths(), fw.nn.utils.ragged.mask(x),
            fw.nn.utils.ragged.from_padded(x.to_padded_tensor(0.0), fw.tensor([2, 1])).values(),
            F.scaled_dot_product_attention(q, q, q).values(),
            fw.nn.utils.ragged.recurrent(nn.RNN(3, 2).to(device), x)[0].values() * 0,
        ]
        assert all(y.device.type == device for y in results)
        fw.autograd.backward([y.sum() for y in results if y.requires_grad])
        found.append([numbers(y) for y in (*results, x.grad.values())])
    for want, got in zip(*found):
        np.testing.assert_allclose(got, want, 1e-6, 1e-6)


def test_models_on_a_device_are_exported(raw, cupy, tmp_path):  # noqa: F811
    pytest.importorskip("onnx")
    model, files = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 2)), []
    for device in BOTH:
        files.append(tmp_path / f"{device}.onnx")
        fw.onnx.export(model.to(device), (fw.ones(2, 3, device=device),), str(files[-1]))
        assert next(model.parameters()).device.type == device
    assert files[0].read_bytes() == files[1].read_bytes()
    fw.onnx.export(lambda x: x * 2, (fw.ones(2, 3, device="cuda"),), str(tmp_path / "function.onnx"))
    with pytest.raises(fw.errors.DeviceError, match=r"give the module, or move it: model.cpu\(\)"):
        fw.onnx.export(model.forward, (fw.ones(2, 3, device="cuda"),), str(tmp_path / "method.onnx"))


def test_norms_of_what_is_beyond_the_range_of_sums(raw, cupy):  # noqa: F811
    """Sums and squares overflow, the results do not; inf and nan are told apart from that."""
    rows = np.array([[1e38, -1e38, 3e38, 2e38], [1e19, 2e19, -1e19, 0], [1e38] * 4, [1e-30, 0, 0, -1e-30],
                     [np.inf, 0, 0, 1], [np.nan, 1e38, 1e38, 0]])
    for dtype, factor in ((fw.float32, 1.0), (fw.float64, 1e269)):
        for call in (lambda x: F.layer_norm(x, (4,), eps=1e-12), lambda x: F.rms_norm(x, (4,), eps=1e-12),
                     lambda x: F.group_norm(x.reshape(-1, 2, 2), 1, eps=1e-12)):
            with np.errstate(over="ignore"):
                x = fw.tensor(rows[:3] * factor, dtype=dtype)
                want = call(x.double() / x.double().abs().amax(1, keepdim=True)).to(dtype)
                np.testing.assert_allclose(call(x.to("cuda")).tolist(), want.tolist(), 1e-5, 1e-5)
            x = fw.tensor(rows[3:], dtype=dtype)
            np.testing.assert_allclose(call(x.to("cuda")).tolist(), call(x).tolist(), 1e-5, 1e-5)
    x = fw.tensor(rows[1:2], dtype=fw.float32)
    grads = []
    for device, dtype in (("cpu", fw.float64), ("cuda", fw.float32)):  # NumPy's formula overflows in float32
        y = x.to(device, dtype).detach().requires_grad_()
        F.layer_norm(y, (4,)).backward(fw.arange(4.0, device=device, dtype=dtype)[None])
        grads.append(y.grad.tolist())
    np.testing.assert_allclose(grads[1], grads[0], 1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_zeros_are_no_nan_when_normalized(dtype, raw, cupy):  # noqa: F811
    """Though the least divisor, 1e-12, is 0 in float16."""
    pytest.importorskip("ml_dtypes")
    x = fw.tensor([[0.0, 0.0, 0.0], [3.0, 4.0, 0.0]], dtype=getattr(fw, dtype))
    for device in BOTH:
        for settings in ({}, {"p": 1.0}, {"p": 3.0}, {"dim": (1,)}):
            y = F.normalize(x.to(device), **settings).float()
            assert y[0].tolist() == [0.0, 0.0, 0.0] and y[1, 2].item() == 0.0 < y[1, 0].item() < 1.0


LAID = {
    "cat": lambda x: fw.cat([x, x], 1),
    "cat of rows": lambda x: fw.cat([x, x.contiguous()], 2),
    "cat in front": lambda x: fw.cat([x, x * 2, x], 0),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "bilinear": lambda x: F.interpolate(x, size=(4, 9), mode="bilinear"),
    "adaptive average": lambda x: F.adaptive_avg_pool2d(x, 3),
    "adaptive maximum": lambda x: F.adaptive_max_pool2d(x, 3),
    "reflected": lambda x: F.pad(x, (1, 1, 2, 1), "reflect"),
    "replicated": lambda x: F.pad(x, (1, 1, 2, 1), "replicate"),
    "maximum": lambda x: F.max_pool2d(x, 2),
    "average": lambda x: F.avg_pool2d(x, 2),
    "normalized": lambda x: F.batch_norm(x, None, None, training=True),
    "masked": lambda x: x.masked_fill(x > 0, 0.0),
}


@pytest.mark.parametrize("name", LAID)
def test_channels_stay_last(name, raw, cupy):  # noqa: F811
    """Forward and backward, as by the CPU's kernels, with the CPU's numbers."""
    found = []
    for device in BOTH:
        x = fw.tensor(np.random.default_rng(0).standard_normal((2, 4, 6, 5)), dtype=fw.float32, device=device)
        x = x.to(memory_format=fw.channels_last).requires_grad_()
        y = LAID[name](x)
        seed = fw.arange(y.numel(), device=device).reshape(y.shape).float().to(memory_format=fw.channels_last)
        (g,) = fw.autograd.grad(y, x, seed)
        found.append([(t.stride(), t.detach().cpu().numpy()) for t in (y, g)])
    for (want_stride, want), (stride, got) in zip(*found):
        last = fw.empty(got.shape).to(memory_format=fw.channels_last).stride()
        assert stride == want_stride or _native.module is None and stride == last
        np.testing.assert_allclose(got, want, 1e-5, 1e-4)


@pytest.mark.parametrize("kernels", [True, False])
def test_positions_in_a_dimension_without_elements(kernels, raw, cupy):  # noqa: F811
    """No position is within it, which needs no look at them; ours are the words."""
    device_code.enabled = kernels
    for device in BOTH:
        x, i = fw.ones(0, 3, device=device), fw.zeros(2, dtype=fw.int64, device=device)
        y = fw.ones(2, 3, device=device)
        for name, call in {
            "index": lambda: x[i], "index_select": lambda: x.index_select(0, i), "take": lambda: x.take(i),
            "gather": lambda: x.gather(0, i[:, None]), "scatter": lambda: x.scatter(0, i[:, None], 1.0),
            "index_add": lambda: x.index_add(0, i, y), "index_copy": lambda: x.index_copy(0, i, y),
        }.items():
            with pytest.raises(IndexError, match=f"{name}: index .* for dimension 0 of size 0"):
                call()
        with pytest.raises(IndexError, match="embedding: input.* is .*, but the table has 0 rows"):
            F.embedding(i, x)
        none = i[:0]
        assert x[none].shape == x.index_select(0, none).shape == F.embedding(none, x).shape == (0, 3)


def test_arrays_of_cupy_and_capsules(raw, cupy):  # noqa: F811
    a = cupy.asarray(np.arange(4.0, dtype="f"))
    for make in (fw.as_tensor, fw.asarray, fw.from_dlpack):
        y = make(a)
        assert y.device.type == "cuda"
        y += 1
    assert a.get().tolist() == [3.0, 4.0, 5.0, 6.0] == fw.tensor(a).tolist()
    assert fw.as_tensor(a, device="cpu").device.type == "cpu"
    assert fw.as_tensor(a, dtype=fw.float64).dtype is fw.float64
    for device in BOTH:
        x = fw.arange(6.0, device=device).reshape(2, 3)
        capsule = fw.utils.dlpack.to_dlpack(x)
        y = fw.from_dlpack(capsule)
        x[0] = 7.0
        assert y.device == x.device and y[0].tolist() == [7.0] * 3
        with pytest.raises(TypeError, match="export the tensor again"):
            fw.from_dlpack(capsule)
        assert hasattr(x, "__cuda_array_interface__") is x.is_cuda
    assert not hasattr(fw.ones(2, device="cuda").to_sparse(), "__cuda_array_interface__")
    told = x.__cuda_array_interface__
    assert told["shape"] == (2, 3) and told["typestr"] == "<f4" and told["data"] == (x.data_ptr(), False)
    with pytest.raises(RuntimeError, match=r"use x.detach\(\)"):
        cupy.asarray(getattr((x * 1).requires_grad_(), "__cuda_array_interface__"))  # noqa: B009


def test_weighted_counts_in_order(raw, cupy):  # noqa: F811
    from cupy import counts

    i, w = np.random.default_rng(0).integers(0, 5, 300), np.random.default_rng(1).standard_normal(300)
    try:
        fw.use_deterministic_algorithms(True)
        for dtype in (fw.float32, fw.float64, fw.int64):
            x = fw.tensor(w * 10).to(dtype)
            counts.clear()
            got = fw.tensor(i, device="cuda").bincount(x.to("cuda"))
            assert counts.launches["add_in_order"] == 1
            want = fw.tensor(i).bincount(x)
            assert got.dtype is want.dtype
            np.testing.assert_allclose(got.tolist(), want.tolist(), 1e-5, 1e-5)
    finally:
        fw.use_deterministic_algorithms(False)


def test_further_figures_of_memory(limited):  # noqa: F811
    before = fw.cuda.memory_stats()
    with pytest.raises(fw.OutOfMemoryError):
        fw.ones(1 << 19, device="cuda")
    after = fw.cuda.memory_stats()
    assert after["num_ooms"] == before["num_ooms"] + 1
    assert after["num_alloc_retries"] == before["num_alloc_retries"] + 1
    assert after["active_bytes.all.current"] == after["allocated_bytes.all.current"]
    assert after["inactive_split_bytes.all.current"] == fw.cuda.memory_reserved() - fw.cuda.memory_allocated()


def test_a_snapshot_of_memory(limited):  # noqa: F811
    """Segments in PyTorch's form, which sum up to the figures, with what made their tensors."""
    gc.collect()
    with fw.autograd.detect_anomaly():
        weight = fw.ones(300, device="cuda", requires_grad=True)
        product = weight * 2
    kept = fw.ones(5000, device="cuda")
    del kept
    segments = fw.cuda.memory_snapshot(0)
    assert sum(s["total_size"] for s in segments) == fw.cuda.memory_reserved()
    assert sum(s["allocated_size"] for s in segments) == fw.cuda.memory_allocated()
    at = {s["address"]: s for s in segments}
    assert len(at) == len(segments)
    assert at[0]["blocks"][0]["state"] == "inactive" and at[0]["total_size"] >= 20480
    for tensor, text in ((weight, "a leaf that requires grad"), (product, "made by mul")):
        segment = at[tensor.data_ptr()]
        assert segment["device"] == 0 and segment["total_size"] == 1536 and segment["requested_size"] == 1200
        (block,) = segment["blocks"]
        assert block["state"] == "active_allocated" and block["size"] == 1536
        assert text in block["frames"][0]["name"]
    assert block["frames"][0]["filename"].endswith("test_device_equal.py") and block["frames"][0]["line"] > 0
    assert fw.cuda.memory._snapshot()["segments"] == [
        s for i in range(fw.cuda.device_count()) for s in fw.cuda.memory_snapshot(i)]
