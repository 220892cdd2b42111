"""Mixed precision on a device: autocast, and the scaler, which never waits; beside the CPU."""

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw

F = fw.nn.functional


def network():
    fw.manual_seed(0)
    return fw.nn.Sequential(fw.nn.Linear(6, 8), fw.nn.LayerNorm(8), fw.nn.GELU(), fw.nn.Linear(8, 3))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_as_on_the_cpu(dtype, raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    dtype, found = getattr(fw, dtype), []
    x = fw.tensor(np.random.default_rng(0).standard_normal((5, 6)).astype("f"))
    for device in ("cpu", "cuda"):
        net, given, target = network().to(device), x.to(device), fw.tensor([0, 1, 2, 0, 1], device=device)
        assert fw.amp.is_autocast_available(device)
        with fw.autocast(device, dtype):
            assert fw.is_autocast_enabled(device) and fw.get_autocast_dtype(device) is dtype
            assert not fw.is_autocast_enabled("cpu" if device == "cuda" else "cuda")
            y = net(given)
            loss = F.cross_entropy(y, target)
            other = fw.ones(2, 2, device="cpu" if device == "cuda" else "cuda")
            assert (other @ other).dtype is fw.float32  # the block is for one kind of device
            with fw.autocast(device, enabled=False):
                assert (given @ given.t()).dtype is fw.float32
        loss.backward()
        assert y.dtype is dtype and loss.dtype is fw.float32
        assert {p.grad.dtype for p in net.parameters()} == {fw.float32}
        found.append([loss.item(), *[p.grad.cpu().numpy() for p in net.parameters()]])
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, 2e-2, 2e-2)
    assert fw.get_autocast_dtype("cuda") is fw.float16 and not fw.is_autocast_enabled("cuda")


def test_checkpoints_find_the_blocks_of_a_device(raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    net, x, seen = network().cuda(), fw.ones(2, 6, device="cuda", requires_grad=True), []

    def part(x):
        y = net(x)
        seen.append(y.dtype)
        return y

    with fw.autocast("cuda", fw.bfloat16):
        y = fw.utils.checkpoint.checkpoint(part, x, use_reentrant=False)
    y.float().sum().backward()
    assert seen == [fw.bfloat16] * 2 and x.grad.dtype is fw.float32
