"""cuDNN's road: graphs, what a plan is handed, and what happens without one, by a stand-in for the frontend
that computes on the CPU; real cuDNN's plans for an H100, where its packages are installed (cudnn_plans.py).
"""

import re
import shutil
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
from framework.backends import cudnn, cudnn_graphs

F = fw.nn.functional


def test_plans_for_an_h100():
    """Real cuDNN has a plan for every convolution, and for attention of heads of a multiple of 8."""
    if find_spec("cudnn") is None or find_spec("nvidia") is None or not shutil.which("gcc"):
        pytest.skip("pip install nvidia-cudnn-frontend nvidia-cudnn-cu13 nvidia-cublas nvidia-cuda-nvrtc")
    program = Path(__file__).with_name("cudnn_plans.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300)
    assert not done.returncode, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    without = [line for line in lines if "no plan" in line]
    assert len(lines) > 100 and [line.partition(":")[0] for line in without] == [
        "attention forward E 64 20", "attention backward E 64 20"]
    last, in_rows = (int(re.search(rf"conv 3x3 fprop E {way}: (\d+)", done.stdout)[1])
                     for way in ("channels_last", "rows"))
    assert last < 1 << 20 < in_rows  # rows are turned in a workspace


class Unsupported(RuntimeError):
    pass


class Operand:
    def __init__(self, dim=None, stride=None, data_type=None, name=""):
        self.dim, self.stride, self.kind, self.name = dim, stride, data_type, name

    def set_output(self, _):
        return self

    def set_data_type(self, kind):
        self.kind = kind
        return self

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self


class Graph:
    """A graph that is computed on the CPU, in float32, at the addresses that it is handed."""

    refuse = False
    made: list = []

    def __init__(self, **settings):
        assert settings["handle"] is Frontend.handle
        self.barred, self.what, self.active = [], None, False
        Graph.made.append(self)

    def tensor(self, name, dim, stride, data_type, is_pass_by_value=False):
        return Operand(dim, stride, data_type, name)

    def _one(self, *what):
        self.what = what
        self.out = Operand()
        return self.out

    def conv_fprop(self, image, weight, **windows):
        return self._one("fprop", image, weight, windows)

    def conv_dgrad(self, loss, filter, **windows):
        return self._one("dgrad", loss, filter, windows)

    def conv_wgrad(self, image, loss, **windows):
        return self._one("wgrad", image, loss, windows)

    def bias(self, name, input, bias):
        self.added = bias
        self.what, self.out = (*self.what, bias), Operand()
        return self.out

    def relu(self, name, input):
        self.active, self.out = True, Operand()
        return self.out

    def batchnorm(self, name, **given):
        self.what, self.out = ("batchnorm", given), tuple(Operand() for _ in range(5))
        return self.out

    def batchnorm_backward(self, name, **given):
        self.what, self.out = ("batchnorm_backward", given), tuple(Operand() for _ in range(3))
        return self.out

    def sdpa(self, **given):
        self.what, self.out = ("sdpa", given), (Operand(), Operand())
        return self.out

    def sdpa_backward(self, **given):
        self.what, self.out = ("sdpa_backward", given), (Operand(), Operand(), Operand())
        return self.out

    def validate(self):
        pass

    build_operation_graph = build_plans = validate

    def create_execution_plans(self, modes):
        assert modes == ["A", "FALLBACK"]

    def deselect_numeric_notes(self, notes):
        self.barred = notes

    def check_support(self):
        if Graph.refuse:
            raise Unsupported("no engine")

    def get_workspace_size(self):
        return 1000

    @fw.enable_grad()
    def execute(self, pointers, workspace, handle):
        from cupy.cublas import _memory

        assert workspace and handle is Frontend.handle
        at = {o: _memory(p, tuple(o.dim), tuple(o.stride), np.dtype(o.kind)) for o, p in pointers.items()}
        value = {o: fw.from_numpy(a.astype("f")) for o, a in at.items()}
        if self.what[0].startswith("sdpa"):
            given = self.what[1]
            q, k, v = (value[given[n]].requires_grad_() for n in "qkv")
            score = q @ k.mT * given["attn_scale"]
            if given["use_causal_mask"]:
                score = score.masked_fill(~fw.ones(score.shape[-2:], dtype=fw.bool).tril(), -np.inf)
            out, lse = score.softmax(-1) @ v, score.logsumexp(-1, keepdim=True)
            found = (out, lse) if len(self.out) == 2 else fw.autograd.grad(out, (q, k, v), value[given["dO"]])
            outs = self.out
        elif self.what[0].startswith("batchnorm"):
            given, outs = {name: value[operand] for name, operand in self.what[1].items()}, self.out
            x, scale = given["input"], given["scale"]
            if self.what[0] == "batchnorm":
                n, before = x.numel() // x.shape[1], [given["in_running_mean"], given["in_running_var"]]
                dims = (0, *range(2, x.ndim))
                mean, var = x.mean(dims, keepdim=True), x.var(dims, keepdim=True, correction=0)
                inverse = (var + given["epsilon"]).rsqrt()
                share = given["momentum"]
                after = [b + share * (a - b) for a, b in zip((mean, var * n / max(n - 1, 1)), before)]
                found = [(x - mean) * inverse * scale + given["bias"], mean, inverse, *after]
            else:
                dims, g = (0, *range(2, x.ndim)), given["grad"]
                normed = (x - given["mean"]) * given["inv_variance"]
                gw, gb = (g * normed).sum(dims, keepdim=True), g.sum(dims, keepdim=True)
                n = x.numel() // x.shape[1]
                found = [scale * given["inv_variance"] * (g - gb / n - normed * gw / n), gw, gb]
        else:
            kind, first, second, windows, *bias = self.what
            convolve = {4: F.conv2d, 5: F.conv3d}[len(first.dim)]
            out = self.out
            shapes = {"fprop": (first, second), "dgrad": (out, second), "wgrad": (first, out)}[kind]
            x, w = (fw.zeros(o.dim) if o is out else value[o] for o in shapes)
            x.requires_grad_(), w.requires_grad_()
            y = convolve(x, w, None, windows["stride"], windows["padding"], windows["dilation"],
                         groups=x.shape[1] // w.shape[1])
            if kind == "fprop":
                y = y + value[bias[0]] if bias else y
                found = [y.relu() if self.active else y]
            else:
                slope, wanted = (value[first], x) if kind == "dgrad" else (value[second], w)
                found = fw.autograd.grad(y, [wanted], [slope])
            outs = (out,)
        for o, result in zip(outs, found):
            at[o][...] = result.detach().numpy().astype(at[o].dtype)


class Frontend:
    handle = object()
    data_type = SimpleNamespace(FLOAT="f", HALF="e", BFLOAT16="bfloat16")
    numerical_note = SimpleNamespace(NONDETERMINISTIC="changing", TENSOR_CORE="tensor core")
    heur_mode = SimpleNamespace(A="A", FALLBACK="FALLBACK")
    cudnnGraphNotSupportedError = Unsupported
    pygraph = Graph
    streams: list = []

    @staticmethod
    def create_handle():
        return Frontend.handle

    @staticmethod
    def set_stream(handle, stream):
        Frontend.streams.append(stream)


@pytest.fixture
def frontend(raw, cupy, monkeypatch):  # noqa: F811
    monkeypatch.setattr(cudnn_graphs, "_frontend", Frontend)
    monkeypatch.setattr(cudnn_graphs, "_plans", {})
    monkeypatch.setattr(cudnn_graphs, "_handles", {})
    monkeypatch.setattr(Graph, "refuse", False)
    Graph.made = []
    return Graph


def gradients(call, arrays, device, dtype, last=False):
    xs = [fw.tensor(a).to(device, getattr(fw, dtype)) for a in arrays]
    if last:
        xs[0] = xs[0].contiguous(memory_format=fw.channels_last)
    xs = [x.requires_grad_() for x in xs]
    y = call(*xs)
    g = fw.tensor(np.cos(np.arange(y.numel())).reshape(y.shape)).to(device, y.dtype)
    found = [y, *fw.autograd.grad(y, xs, g)]
    assert found[0].is_contiguous(memory_format=fw.channels_last) or not last
    return [a.detach().double().cpu().numpy() for a in found]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_relu_is_part_of_the_convolution(dtype, frontend, raw, cupy):  # noqa: F811
    """Values, gradients and second ones of convolutions with relu behind them; under autocast, too."""
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    nn, close = fw.nn, {"float32": 1e-4}.get(dtype, 6e-2)
    for layer, shape in ((nn.Conv1d(3, 4, 3, bias=False), (2, 3, 8)),
                         (nn.Conv2d(4, 6, 3, groups=2), (2, 4, 5, 6)),
                         (nn.Conv3d(2, 3, 2, stride=2, padding=1), (1, 2, 4, 5, 3))):
        net, x, ends = nn.Sequential(layer, nn.ReLU()), fw.randn(shape), []
        for device in ("cuda", "cpu"):
            net.to(device, getattr(fw, dtype)).zero_grad()
            at = x.to(device, getattr(fw, dtype)).requires_grad_()
            counts.clear()
            y = net(at)
            launches = dict(counts.launches)
            y.sin().sum().backward()
            ends.append([a.detach().double().cpu().numpy()
                         for a in (y, at.grad, *[p.grad for p in net.parameters()])])
            if device == "cuda":
                assert Graph.made[-3].active and not launches
        for a, b in zip(*ends, strict=True):
            np.testing.assert_allclose(a, b, close, close * 10)
    net.to("cuda", fw.float32)
    cudnn_graphs._plans.clear()
    with fw.autocast("cuda", dtype=fw.float16):
        y = net(x.to("cuda"))
    assert y.dtype is fw.float16 and Graph.made[-1].active
    Graph.refuse = True
    y = fw.nn.Sequential(fw.nn.Conv2d(3, 4, 3), fw.nn.ReLU()).to("cuda")(fw.randn(1, 3, 4, 4, device="cuda"))
    assert y.min().item() >= 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_convolutions_go_to_cudnn(dtype, frontend, raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    rng, close = np.random.default_rng(0), {"float32": 1e-5}.get(dtype, 3e-2)
    for x, w, settings, last in (
        ((2, 4, 7, 6), (6, 4, 3, 3), {"padding": 1, "stride": 2}, False),
        ((2, 4, 7, 6), (6, 2, 3, 2), {"groups": 2, "dilation": (2, 1)}, True),
        ((2, 3, 9), (4, 3, 3), {"padding": 2}, False),
        ((1, 2, 4, 5, 4), (3, 2, 2, 2, 2), {}, False),
    ):
        arrays = [rng.standard_normal(s).astype("f") for s in (x, w, (w[0],))]
        convolve = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(x)]
        counts.clear()
        got, want = (gradients(lambda *xs: convolve(*xs, **settings), arrays, d, dtype, last)
                     for d in ("cuda", "cpu"))
        assert not {"conv", "conv_input_grad", "conv_weight_grad"} & set(counts.launches)
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, close, close * 10)
    plans = len(Graph.made)
    gradients(lambda *xs: convolve(*xs, **settings), arrays, "cuda", dtype)
    assert len(Graph.made) == plans == 12  # plans are kept
    with cudnn.flags(deterministic=True, allow_tf32=False):
        gradients(lambda *xs: convolve(*xs, **settings), arrays, "cuda", dtype)
    wanted = ["changing", "tensor core"] if dtype == "float32" else ["changing"]
    assert [g.barred for g in Graph.made[plans:]] == [wanted] * 3


@pytest.mark.parametrize("shape", [(3, 8, 5, 4), (2, 8, 2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_batch_norms_of_channels_last_go_to_cudnn(dtype, shape, frontend, raw, cupy):  # noqa: F811
    """Elements of 16 bits, too, as autocast has them, with weights and moments of float32."""
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    last = {4: fw.channels_last, 5: fw.channels_last_3d}[len(shape)]
    make = {4: fw.nn.BatchNorm2d, 5: fw.nn.BatchNorm3d}[len(shape)]
    start, ends = fw.randn(shape, generator=fw.Generator().manual_seed(0)) * 3 + 1, []
    for device in ("cuda", "cpu"):
        model = make(8, eps=1e-3).to(device)
        x = start.to(device, getattr(fw, dtype)).contiguous(memory_format=last).requires_grad_()
        counts.clear()
        y = model(x)
        assert y.dtype is x.dtype
        y.sin().sum().backward()
        assert y.is_contiguous(memory_format=last)
        if device == "cuda":
            assert not {"norm_rows", "norm_grad"} & set(counts.launches) and len(Graph.made) == 2
        ends.append([a.detach().double().cpu().numpy()
                     for a in (y, x.grad, *[p.grad for p in model.parameters()], model.running_mean,
                               model.running_var)])
    close = 1e-4 if dtype == "float32" else 3e-2
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, close, close / 10 if dtype == "float32" else close)
    model.to("cuda")(fw.randn(shape, device="cuda"))
    assert len(Graph.made) == 2  # channels that lie apart are for our own kernel
    Graph.refuse = True
    x = fw.randn(2, 8, 3, 3, device="cuda").contiguous(memory_format=fw.channels_last)
    assert F.batch_norm(x, None, None, fw.ones(8, device="cuda"), fw.zeros(8, device="cuda"),
                        training=True).is_contiguous(memory_format=fw.channels_last)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_attention_goes_to_cudnn(dtype, frontend, raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 5, 3, 8)).astype("f") for _ in range(3)]
    for causal in (False, True):
        def call(q, k, v, causal=causal):
            heads = [x.transpose(1, 2) for x in (q, k, v)]
            return F.scaled_dot_product_attention(*heads, is_causal=causal)
        counts.clear()
        got, want = (gradients(call, arrays, d, dtype) for d in ("cuda", "cpu"))
        assert not [name for name in counts.launches if name.startswith("attention")]
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, 3e-2, 3e-2)
    with fw.nn.attention.sdpa_kernel(fw.nn.attention.SDPBackend.FLASH_ATTENTION):
        counts.clear()
        gradients(call, arrays, "cuda", dtype)
        assert counts.launches["attention"] == 1  # cuDNN is not among the ways


def test_without_a_plan_our_kernel_runs(frontend, raw, cupy, monkeypatch):  # noqa: F811
    from cupy import counts

    Graph.refuse = True
    x, w = fw.ones(1, 2, 4, 4, device="cuda"), fw.ones(3, 2, 3, 3, device="cuda")
    counts.clear()
    assert F.conv2d(x, w).sum().item() == 3 * 4 * 18 and counts.launches["conv"] == 1
    F.conv2d(x, w)
    assert len(Graph.made) == 1  # asked once
    Graph.refuse = False
    monkeypatch.setattr(Graph, "check_support", lambda self: 1 / 0)
    with pytest.warns(UserWarning, match="cuDNN failed to plan .*division.* a kernel of this package runs"):
        assert F.conv2d(x, fw.ones(3, 2, 2, 2, device="cuda")).shape == (1, 3, 3, 3)
    with cudnn.flags(enabled=False):
        F.conv2d(x, fw.ones(5, 2, 2, 2, device="cuda"))
    assert len(Graph.made) == 2
    assert not cudnn.is_available() and cudnn.version() is None or find_spec("cudnn")


def test_a_cudnn_that_cannot_be_started_is_told_once(frontend, raw, cupy, monkeypatch):  # noqa: F811
    def fails():
        raise RuntimeError("no device")

    monkeypatch.setattr(Frontend, "create_handle", fails)
    conv, x = fw.nn.Conv2d(2, 3, 3).to("cuda"), fw.ones(1, 2, 5, 5, device="cuda")
    with pytest.warns(UserWarning, match="cannot be started .no device.; kernels of this package run"):
        first = conv(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bool((conv(x) == first).all())
