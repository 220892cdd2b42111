"""Mixed precision on a device: autocast, and the scaler, which never waits; beside the CPU."""

import math

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


def test_softmax_and_norms_are_in_float32_on_a_gpu_alone(raw, cupy):  # noqa: F811
    """PyTorch's lists for the CPU and for CUDA differ in these."""
    pytest.importorskip("ml_dtypes")
    calls = (lambda x: F.softmax(x, dim=1), lambda x: F.log_softmax(x, dim=1),
             lambda x: F.layer_norm(x, (6,)), lambda x: F.group_norm(x, 2),
             lambda x: x.cumsum(1), lambda x: x.cumprod(1),
             lambda x: x.logsumexp(1), lambda x: F.normalize(x))
    for device, kept in (("cpu", fw.bfloat16), ("cuda", fw.float32)):
        x = fw.full((4, 6), 0.5, device=device, dtype=fw.bfloat16)
        with fw.autocast(device, fw.bfloat16):
            assert {call(x).dtype for call in calls} == {kept}
            assert F.gelu(x).dtype is fw.bfloat16
        assert {call(x).dtype for call in calls} == {fw.bfloat16}


_NAMES = "acos asin cosh erfinv exp expm1 log log10 log1p log2 norm reciprocal rsqrt sinh sum tan"
FLOAT32_ON_A_GPU = {
    **{name: (lambda x, name=name: getattr(fw, name)(x)) for name in _NAMES.split()},
    "exp as a method": lambda x: x.exp(), "pow": lambda x: x.pow(3), "square by pow": lambda x: x ** 2,
    "number to a power": lambda x: 2.0 ** x, "number over": lambda x: 1 / x,
    "pow of two": lambda x: fw.pow(x, x),
    "sum of rows": lambda x: x.sum(1),
    "vector_norm": lambda x: fw.linalg.vector_norm(x, 1), "matrix_norm": fw.linalg.matrix_norm,
    "renorm": lambda x: fw.renorm(x, 2, 0, 1.0), "dist": lambda x: fw.dist(x, x), "softplus": F.softplus,
    "cosine_similarity": lambda x: F.cosine_similarity(x, x), "softmin": lambda x: F.softmin(x, 1),
    "rms_norm": lambda x: F.rms_norm(x, (6,)),
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
}
AS_GIVEN_ON_A_GPU = {
    "sin": fw.sin, "sqrt": fw.sqrt, "mean": fw.mean, "tanh": fw.tanh, "add": lambda x: x + x,
    "div": lambda x: x / x,
    "exp_": lambda x: x.clone().exp_(), "sum of a dtype": lambda x: x.sum(dtype=fw.bfloat16), "relu": fw.relu,
    "exp(out=)": lambda x: fw.exp(x, out=fw.empty_like(x)),
}


def test_the_list_of_float32_of_gpus(raw, cupy):  # noqa: F811
    """As PyTorch documents them; its list for the CPU, which test_amp.py looks at, has none of them."""
    pytest.importorskip("ml_dtypes")
    for device, kept in (("cpu", fw.bfloat16), ("cuda", fw.float32)):
        x = fw.full((4, 6), 0.5, device=device, dtype=fw.bfloat16)
        with fw.autocast(device, fw.bfloat16):
            found = {name: call(x).dtype for name, call in FLOAT32_ON_A_GPU.items()}
            assert found == dict.fromkeys(found, kept)
            found = {name: call(x).dtype for name, call in AS_GIVEN_ON_A_GPU.items()}
            assert found == dict.fromkeys(found, fw.bfloat16)
    x.requires_grad_()
    with fw.autocast("cuda", fw.bfloat16):
        y = x.exp().sum()
    y.backward()
    assert x.grad.dtype is fw.bfloat16 and abs(float(y) - 24 * math.exp(0.5)) < 1e-4


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


class Loud(fw.nn.Module):
    """A linear layer; ``blow`` makes a gradient overflow."""

    def __init__(self):
        super().__init__()
        fw.manual_seed(1)
        self.a, self.b, self.blow = fw.nn.Linear(4, 3), fw.nn.Linear(3, 2), 1.0

    def forward(self, x):
        return self.b(self.a(x).tanh()) * self.blow


def trained(device, make, iterations, **settings):
    """Parameters and scale after iterations, some of which overflow; what is counted in one of them."""
    net = Loud().to(device)
    optimizer, scaler = make(net.parameters()), fw.amp.GradScaler(device, 8.0, growth_interval=2, **settings)
    x, seen = fw.tensor(np.random.default_rng(0).standard_normal((5, 4)).astype("f"), device=device), []
    for overflows in iterations:
        if device == "cuda":
            from cupy import counts

            counts.clear()
        net.blow = float("inf") if overflows else 1.0
        optimizer.zero_grad()
        scaler.scale((net(x) ** 2).mean()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        if device == "cuda":
            seen.append((dict(counts.waits), dict(counts.launches)))
    state = optimizer.state_dict()
    steps = [s.get("step") for s in state["state"].values()]
    return [p.detach().cpu().numpy() for p in net.parameters()], scaler.state_dict(), steps, seen


@pytest.mark.parametrize("make", [
    lambda p: fw.optim.Adam(p, lr=0.1, weight_decay=0.1), lambda p: fw.optim.SGD(p, 0.1, 0.9, dampening=0.5),
    lambda p: fw.optim.RMSprop(p, 0.01)], ids=["Adam", "SGD", "RMSprop"])
def test_the_scaler_leaves_steps_out_without_waiting(make, raw, cupy):  # noqa: F811
    """Parameters, counts of steps and the factor are the CPU's, whichever iterations overflow; no wait."""
    for overflows in ((1, 0, 0, 0, 1, 1, 0, 0), (0, 0, 0, 1), (1, 1)):
        params, state, steps, _ = trained("cpu", make, overflows)
        theirs, their_state, their_steps, seen = trained("cuda", make, overflows)
        assert their_state == state and their_steps == steps
        for a, b in zip(params, theirs):
            np.testing.assert_allclose(b, a, 1e-5, 1e-6)
        for waits, launches in seen:
            assert not waits
            assert launches["unscale_all"] == launches["adapt"] == 1
            assert sum(n for k, n in launches.items() if k.endswith("_step")) == 1


def test_the_scaler_beside_what_has_no_kernel(raw, cupy):  # noqa: F811
    """Optimizers without a kernel, a new factor, pickles: the host is told, and goes on as the CPU does."""
    import pickle

    def nadam(p):
        return fw.optim.NAdam(p, lr=0.1)

    for a, b in zip(trained("cpu", nadam, (0, 1, 0))[0], trained("cuda", nadam, (0, 1, 0))[0]):
        np.testing.assert_allclose(b, a, 1e-5, 1e-6)
    w = fw.ones(2, device="cuda", requires_grad=True)
    optimizer, scaler = fw.optim.SGD([w], lr=1.0), fw.amp.GradScaler("cuda", 4.0)
    assert scaler.is_enabled() and scaler.scale(fw.ones(1, device="cuda")).tolist() == [4.0]
    scaler.scale((w * w).sum()).backward()
    assert w.grad.tolist() == [8.0, 8.0]
    scaler.step(optimizer)
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0 and w.tolist() == [-1.0, -1.0]
    assert pickle.loads(pickle.dumps(scaler)).get_scale() == 16.0
    again = fw.amp.GradScaler("cuda")
    again.load_state_dict(scaler.state_dict())
    assert again.scale(fw.ones((), device="cuda")).item() == 16.0
    again.load_state_dict({**scaler.state_dict(), "scale": 2.0})
    assert again.scale(fw.ones((), device="cuda")).item() == 2.0
    pickle.loads(pickle.dumps(optimizer))
