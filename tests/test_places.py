"""Names in PyTorch's further places: ways of attention, counted operations, safe globals, old modules."""

import types

import pytest

import framework as fw
from framework import serialization
from framework.nn import attention as ways

F = fw.nn.functional


def test_ways_of_attention():
    q, k, v = (fw.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3))
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert "attention" in whole.grad_fn.name().lower()
    with ways.sdpa_kernel([ways.SDPBackend.MATH]):
        parts = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        assert fw.backends.cuda.math_sdp_enabled() and not fw.backends.cuda.flash_sdp_enabled()
    assert "matmul" in parts.grad_fn.name().lower() and fw.allclose(whole, parts, atol=1e-6)
    with ways.sdpa_kernel(ways.SDPBackend.FLASH_ATTENTION):
        assert fw.equal(F.scaled_dot_product_attention(q, k, v, is_causal=True), whole)
    with fw.backends.cuda.sdp_kernel(enable_flash=False, enable_mem_efficient=False):
        assert fw.equal(F.scaled_dot_product_attention(q, k, v, is_causal=True), parts)
    with ways.sdpa_kernel(ways.SDPBackend.CUDNN_ATTENTION), pytest.raises(RuntimeError, match="no way"):
        F.scaled_dot_product_attention(q, k, v)
    with pytest.raises(ValueError, match="sdpa_kernel"):
        ways.sdpa_kernel(ways.SDPBackend.ERROR)
    fw.backends.cuda.enable_flash_sdp(False)
    fw.backends.cuda.enable_mem_efficient_sdp(False)
    try:
        assert "matmul" in F.scaled_dot_product_attention(q, k, v).grad_fn.name().lower()
    finally:
        fw.backends.cuda.enable_flash_sdp(True)
        fw.backends.cuda.enable_mem_efficient_sdp(True)
    assert fw.equal(F.scaled_dot_product_attention(q, k, v, is_causal=True), whole)


def count(lib, counter):
    with counter(display=False) as counted:
        net = lib.nn.Sequential(lib.nn.Conv2d(3, 8, 3), lib.nn.ReLU(), lib.nn.Flatten(),
                                lib.nn.Linear(8 * 36, 10))
        net(lib.ones(4, 3, 8, 8)).sum().backward()
        (lib.ones(2, 3) @ lib.ones(3, 4, requires_grad=True)).sum().backward()
    return counted.get_total_flops()


def test_flops():
    counter = fw.utils.flop_counter.FlopCounterMode
    forward = 2 * (4 * 8 * 36 * 27 + 4 * 288 * 10 + 2 * 3 * 4)
    backward = 2 * (4 * 8 * 36 * 27 + 2 * 4 * 288 * 10 + 2 * 3 * 4)
    assert count(fw, counter) == forward + backward
    with counter(display=False, custom_mapping={"exp": lambda event, out: 7}) as counted:
        fw.ones(2).exp()
        F.scaled_dot_product_attention(*[fw.ones(1, 2, 5, 4)] * 3)
    assert counted.get_flop_counts() == {
        "Global": {"exp": 7, "scaled_dot_product_attention": 2 * 2 * 5 * 5 * 8}}
    assert "exp" in counted.get_table() and "807" in counted.get_table()


def test_flops_beside_pytorch(capsys):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode
    assert count(fw, fw.utils.flop_counter.FlopCounterMode) == count(torch, FlopCounterMode)
    with fw.utils.flop_counter.FlopCounterMode():
        fw.ones(2, 2) @ fw.ones(2, 2)
    assert "matmul" in capsys.readouterr().out


class Own:
    pass


def test_safe_globals(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"own": Own()}, tmp_path / "f.pt")
    assert serialization.load is fw.load and serialization.save is fw.save
    with serialization.safe_globals([Own, (Own, "old.Name")]):
        assert serialization.get_safe_globals() == [Own, (Own, "old.Name")]
        with pytest.raises(fw.errors.CheckpointError, match="add_safe_globals listed .*Own, but no class"):
            fw.load(tmp_path / "f.pt")
    assert serialization.get_safe_globals() == []
    with pytest.raises(fw.errors.CheckpointError) as refused:
        fw.load(tmp_path / "f.pt")
    assert "add_safe_globals" not in str(refused.value)
    with pytest.raises(TypeError, match="wanted classes"):
        serialization.add_safe_globals(["name"])


def test_further_places():
    from framework.nn import common_types
    from framework.nn.utils import clip_grad, convert_parameters
    assert clip_grad.clip_grad_norm_ is fw.nn.utils.clip_grad_norm_
    assert convert_parameters.parameters_to_vector is fw.nn.utils.parameters_to_vector
    assert isinstance((1, 2), common_types._size_any_t.__args__[1].__origin__)
    assert fw.autograd.profiler.EventList is fw.profiler.Averages
    assert fw.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": fw.float64}}) == {
        "device": "cpu", "dtype": fw.float64}
    for wrong in ({"other": 1}, {"device": 1, "factory_kwargs": {"device": 1}}):
        with pytest.raises(TypeError, match="factory_kwargs"):
            fw.nn.factory_kwargs(wrong)


def test_emit_nvtx(monkeypatch):
    seen = []
    home = fw.cuda.nvtx
    for name in ("range_push", "mark"):
        monkeypatch.setattr(home, name, seen.append)
    monkeypatch.setattr(home, "range_pop", lambda: seen.append("end"))
    assert isinstance(home, types.ModuleType)
    x = fw.ones(2, requires_grad=True)
    with fw.autograd.profiler.emit_nvtx(record_shapes=True):
        x.exp().sum().backward()
    assert seen[:3] == ["emit_nvtx", "exp[[2]]", "end"] and any("exp_backward" in s for s in seen)
    with fw.autograd.profiler.emit_nvtx(enabled=False):
        x.exp()
    assert seen.count("emit_nvtx") == 1
