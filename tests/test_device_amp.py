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


def i(*shape):
    return fw.zeros(shape, dtype=fw.int64, device="cuda")


LOWER = {  # of ``x(*shape)``, a tensor of float32: what PyTorch's list for CUDA has in the block's dtype
    "matmul": lambda x: x(2, 3) @ x(3, 2), "mm": lambda x: fw.mm(x(2, 3), x(3, 2)),
    "bmm": lambda x: fw.bmm(x(3, 2, 4), x(3, 4, 2)), "mv": lambda x: fw.mv(x(2, 3), x(3)),
    "mv as a method": lambda x: x(2, 3).mv(x(3)), "addr": lambda x: fw.addr(x(2, 4), x(2), x(4)),
    "addmm": lambda x: fw.addmm(x(2, 2), x(2, 4), x(4, 2)), "addmv": lambda x: fw.addmv(x(2), x(2, 4), x(4)),
    "addbmm": lambda x: fw.addbmm(x(2, 2), x(3, 2, 4), x(3, 4, 2)),
    "baddbmm": lambda x: fw.baddbmm(x(3, 2, 2), x(3, 2, 4), x(3, 4, 2)),
    "multi_dot": lambda x: fw.linalg.multi_dot([x(2, 3), x(3, 4), x(4, 2)]),
    "linear": lambda x: F.linear(x(2, 3), x(4, 3), x(4)), "prelu": lambda x: F.prelu(x(2, 3), x(3)),
    "conv1d": lambda x: F.conv1d(x(1, 2, 5), x(3, 2, 2)),
    "conv2d": lambda x: F.conv2d(x(1, 2, 5, 5), x(3, 2, 2, 2)),
    "conv3d": lambda x: F.conv3d(x(1, 2, 5, 5, 5), x(3, 2, 2, 2, 2)),
    "conv_transpose1d": lambda x: F.conv_transpose1d(x(1, 2, 5), x(2, 3, 2)),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x(1, 2, 5, 5), x(2, 3, 2, 2)),
    "conv_transpose3d": lambda x: F.conv_transpose3d(x(1, 2, 5, 5, 5), x(2, 3, 2, 2, 2)),
    "attention": lambda x: F.scaled_dot_product_attention(x(1, 2, 3, 4), x(1, 2, 3, 4), x(1, 2, 3, 4)),
    "RNNCell": lambda x: fw.nn.RNNCell(3, 4, device="cuda")(x(2, 3)),
    "GRUCell": lambda x: fw.nn.GRUCell(3, 4, device="cuda")(x(2, 3)),
    "LSTMCell": lambda x: fw.nn.LSTMCell(3, 4, device="cuda")(x(2, 3))[0],
    "GRU": lambda x: fw.nn.GRU(3, 4, device="cuda")(x(2, 1, 3))[0],
    "LSTM": lambda x: fw.nn.LSTM(3, 4, device="cuda")(x(2, 1, 3))[0],
}
LOSSES = {  # of tensors of the block's dtype: float32
    "binary_cross_entropy_with_logits": lambda x: F.binary_cross_entropy_with_logits(x(2), x(2)),
    "cosine_embedding_loss": lambda x: F.cosine_embedding_loss(x(2, 3), x(2, 3), i(2) + 1),
    "cross_entropy": lambda x: F.cross_entropy(x(2, 3), i(2)),
    "nll_loss": lambda x: F.nll_loss(x(2, 3), i(2)),
    "hinge_embedding_loss": lambda x: F.hinge_embedding_loss(x(2), x(2) * 0 + 1),
    "kl_div": lambda x: F.kl_div(x(2), x(2), reduction="sum"), "l1_loss": lambda x: F.l1_loss(x(2), x(2)),
    "margin_ranking_loss": lambda x: F.margin_ranking_loss(x(2), x(2), x(2)),
    "mse_loss": lambda x: F.mse_loss(x(2), x(2)),
    "soft_margin_loss": lambda x: F.soft_margin_loss(x(2), x(2)),
    "multilabel_margin_loss": lambda x: F.multilabel_margin_loss(x(2, 3), i(2, 3)),
    "multi_margin_loss": lambda x: F.multi_margin_loss(x(2, 3), i(2)),
    "poisson_nll_loss": lambda x: F.poisson_nll_loss(x(2), x(2)),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x(2), x(2)),
    "triplet_margin_loss": lambda x: F.triplet_margin_loss(x(2, 3), x(2, 3) * 2, x(2, 3)),
    "cdist": lambda x: fw.cdist(x(2, 3), x(2, 3)), "pdist": lambda x: F.pdist(x(3, 2)),
    "prod": lambda x: x(2, 3).prod(), "prod of rows": lambda x: x(2, 3).prod(1),
}
WIDEST = {  # of ``x(*shape)`` of one dtype and ``y(*shape)`` of another
    "addcdiv": lambda x, y: fw.addcdiv(x(2), y(2), x(2)),
    "addcmul": lambda x, y: fw.addcmul(x(2), y(2), x(2)),
    "atan2": lambda x, y: fw.atan2(x(2), y(2)), "cross": lambda x, y: fw.cross(x(2, 3), y(2, 3)),
    "bilinear": lambda x, y: F.bilinear(x(2, 3), y(2, 4), x(5, 3, 4), y(5)),
    "dot": lambda x, y: fw.dot(x(3), y(3)), "dot as a method": lambda x, y: x(3).dot(y(3)),
    "vdot": lambda x, y: fw.vdot(x(3), y(3)), "inner": lambda x, y: fw.inner(x(3), y(3)),
    "tensordot": lambda x, y: fw.tensordot(x(2, 3), y(3, 2), 1),
    "grid_sample": lambda x, y: F.grid_sample(x(1, 1, 3, 3), y(1, 2, 2, 2)),
    "index_put": lambda x, y: fw.index_put(x(3), (i(2),), y(2)),
    "index_put as a method": lambda x, y: x(3).index_put((i(2),), y(2), accumulate=True),
    "scatter_add": lambda x, y: fw.scatter_add(x(3), 0, i(2), y(2)),
    "scatter_add as a method": lambda x, y: x(3).scatter_add(0, i(2), y(2)),
    "cat": lambda x, y: fw.cat([x(2), y(2)]), "stack": lambda x, y: fw.stack([x(2), y(2)]),
    "add": lambda x, y: x(2) + y(2), "where": lambda x, y: fw.where(x(2) > 0, x(2), y(2)),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_lists_of_gpus(dtype, raw, cupy):  # noqa: F811
    """What PyTorch documents for CUDA: products lower, losses float32, the rest the widest of what comes."""
    pytest.importorskip("ml_dtypes")
    low = getattr(fw, dtype)

    def narrow(*shape):
        return fw.full(shape, 0.5, dtype=low, device="cuda")

    def wide(*shape):
        return fw.full(shape, 0.5, device="cuda")

    with fw.autocast("cuda", low):
        for calls, given, wanted in ((LOWER, (wide,), low), (LOSSES, (narrow,), fw.float32),
                                     (WIDEST, (narrow, wide), fw.float32),
                                     (WIDEST, (wide, narrow), fw.float32),
                                     (WIDEST, (narrow, narrow), low), (WIDEST, (wide, wide), fw.float32)):
            found = {name: call(*given).dtype for name, call in calls.items()}
            assert found == dict.fromkeys(calls, wanted)
        for call in (F.binary_cross_entropy, fw.nn.BCELoss()):
            with pytest.raises(RuntimeError, match="binary_cross_entropy: .*use .*entropy_with_logits"):
                call(wide(2), wide(2))
        out = fw.empty((), device="cuda")
        assert fw.dot(wide(3), wide(3), out=out) is out and out.tolist() == 0.75
        with pytest.raises(fw.errors.DTypeError, match="scatter_add: src must be"):  # in place: as it comes
            narrow(3).scatter_add_(0, i(2), wide(2))
        assert (wide(2, 3).double() @ wide(3, 2).double()).dtype is fw.float64
        x = wide(3).requires_grad_()
        fw.dot(x, narrow(3)).backward()
        assert x.grad.dtype is fw.float32 and x.grad.tolist() == [0.5] * 3
    with pytest.raises(fw.errors.DTypeError, match="dot"):
        fw.dot(wide(3), narrow(3))
    with fw.autocast("cpu", low):  # PyTorch's list for the CPU has none of these
        x = fw.full((3,), 0.5)
        assert fw.mv(fw.ones(2, 3), x).dtype is fw.float32 and F.binary_cross_entropy(x, x).item() > 0
        with pytest.raises(fw.errors.DTypeError, match="dot"):
            fw.dot(x, x.to(low))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_compiled_functions_in_blocks_of_a_device(dtype, raw, cupy):  # noqa: F811
    """Results and gradients in the dtypes of a plain call, also of a function called in and out of blocks."""
    pytest.importorskip("ml_dtypes")
    low, net = getattr(fw, dtype), network().cuda()
    rng = np.random.default_rng(0)
    x, v = (fw.tensor(rng.standard_normal(s).astype("f"), device="cuda") for s in ((5, 6), (8,)))
    target = fw.tensor([0, 1, 2, 0, 1], device="cuda")

    def step(x):
        h = net[1](net[0](x))
        more = fw.dot(h[0], v) + (h.exp() + 1).log().sum(1).mean() + fw.mv(h, v).float().sum() * 0.1
        y = net[3](F.gelu(h * 2 + 1))
        return F.cross_entropy(y, target) + more, y, h, F.softmax(y, 1), (y + 1).relu() * 2

    def inside(x):
        with fw.autocast("cuda", low):
            return step(x)

    def found(function, around):
        net.zero_grad()
        with fw.autocast("cuda", low, enabled=around):
            out = function(x)
        out[0].backward()
        all_of_it = [*out, *[p.grad for p in net.parameters()]]
        return [(str(t.dtype), t.detach().float().cpu().numpy()) for t in all_of_it]

    compiled = {f: fw.compile(f) for f in (step, inside)}
    close = 2e-3 if dtype == "float16" else 2e-2
    for function, around in ((step, True), (step, False), (inside, False), (step, True), (inside, True)):
        for _ in range(2):
            plain, ours = found(function, around), found(compiled[function], around)
            for (kind, want), (got_kind, got) in zip(plain, ours):
                assert got_kind == kind
                np.testing.assert_allclose(got, want, close, close)


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
