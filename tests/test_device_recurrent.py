"""Recurrent layers by cuDNN: its functions are called as its header says, here in a library that looks at
every argument and has the layers computed by their formulas; real cuDNN takes the descriptors, where it is
installed, and tells where parameters lie.
"""

import ctypes
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from device_libraries import in_place
from device_steps import Run, counted
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
from framework.backends import cudnn, cudnn_recurrent

nn = fw.nn
MODES = ("RNN_RELU", "RNN_TANH", "LSTM", "GRU")
_NAMES = "kind mode dirs type math input hidden proj layers steps batch training ticket"
_POINTERS = "lengths starts x hx cx weights dy dhy dcy y hy cy dx dhx dcx dweights stream"


class Call(ctypes.Structure):
    """What cudnn_rnn.c hands over to be computed."""

    _fields_ = [*[(n, ctypes.c_int) for n in _NAMES.split()],
                *[(n, ctypes.c_void_p) for n in _POINTERS.split()]]


def step(mode, a, r, b, rb, h, c, hr):
    """The state after a step, of what enters from outside (w_ih x) and the state before it."""
    inner = r @ h + rb
    if mode == "GRU":
        (ar, az, an), (hr_, hz, hn) = (a + b).chunk(3), inner.chunk(3)
        z = (az + hz).sigmoid()
        return (1 - z) * (an + (ar + hr_).sigmoid() * hn).tanh() + z * h, c
    a = a + b + inner
    if mode != "LSTM":
        return (a.relu() if mode == "RNN_RELU" else a.tanh()), c
    i, f, g, o = a.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if hr is None else hr @ h), c


class Library:
    """The stand-in for libcudnn: its switches, and the layers that it was handed."""

    def __init__(self, library):
        self._library, self.done, self.wrong, self._forward = library, [], [], {}
        self._called = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Call))(self._compute)
        at = ctypes.cast(self._called, ctypes.c_void_p).value
        ctypes.c_void_p.in_dll(library, "rnn_compute").value = at

    def __getattr__(self, name):
        return ctypes.c_int.in_dll(self._library, f"rnn_{name}").value

    def set(self, **values):
        for name, value in values.items():
            ctypes.c_int.in_dll(self._library, f"rnn_{name}").value = value

    def _compute(self, at):
        from cupy import graphs

        try:
            call = Call.from_buffer_copy(at.contents)
            if graphs.recording is not None:  # done at each launch; these stand in memory of the library
                places = call.layers * call.dirs
                kept = [(kind * n).from_buffer_copy((kind * n).from_address(where)) for kind, n, where in (
                    (ctypes.c_int, call.batch, call.lengths), (ctypes.c_int64, 5 * places, call.starts))]
                call.lengths, call.starts = map(ctypes.addressof, kept)
                graphs.recording.append(lambda kept=kept: self._of(call))
            else:
                self._of(call)
        except Exception as error:  # which ctypes would print and forget
            self.wrong.append(error)
            return 13
        return 0

    @staticmethod
    def _memory(at, *shape, kind):
        from cupy.cublas import _memory

        strides = np.cumprod((1, *shape[:0:-1]))[::-1].tolist()
        return _memory(int(at), shape, strides, kind)

    @fw.enable_grad()
    def _of(self, p):
        kind = np.dtype({0: "f4", 1: "f8", 2: "f2"}.get(p.type) or "bfloat16")
        lengths = list((ctypes.c_int * p.batch).from_address(p.lengths))
        sizes = [sum(n > t for n in lengths) for t in range(p.steps)]
        places, rows = p.layers * p.dirs, sum(sizes)
        starts = np.array((ctypes.c_int64 * (5 * places)).from_address(p.starts)).reshape(places, 5)
        mode, gates = MODES[p.mode], {"LSTM": 4, "GRU": 3}.get(MODES[p.mode], 1)
        shapes = [[(gates * p.hidden, p.input if k < p.dirs else p.proj * p.dirs), (gates * p.hidden, p.proj),
                   (gates * p.hidden,), (gates * p.hidden,), (p.proj, p.hidden)] for k in range(places)]
        sized = {"x": (rows, p.input), "hx": (places, p.batch, p.proj), "cx": (places, p.batch, p.hidden),
                 "y": (rows, p.proj * p.dirs)}

        def read(name, like=None):
            if not getattr(p, name):
                return fw.zeros(sized[like or name], dtype=fw.float64)
            return fw.tensor(self._memory(getattr(p, name), *sized[like or name], kind=kind).astype("d"))

        def write(name, value, like):
            if getattr(p, name):
                self._memory(getattr(p, name), *sized[like], kind=kind)[...] = value.detach().numpy()

        self.done.append((("forward", "data", "weights")[p.kind], mode, p.type, p.math, p.layers, p.dirs,
                          p.training))
        if p.kind == 0:
            w = [[None if s < 0 else fw.tensor(self._memory(
                p.weights + s * kind.itemsize, *shape, kind=kind).astype("d")).requires_grad_()
                for s, shape in zip(starts[k], shapes[k])] for k in range(places)]
            given = [read(n).requires_grad_() for n in ("x", "hx", "cx")]
            outs = self._layers(mode, p, lengths, sizes, *given, w)
            for name, value, like in zip(("y", "hy", "cy"), outs, ("y", "hx", "cx")):
                write(name, value, like)
            self._forward[p.ticket] = given, w, outs, None
            return
        given, w, outs, gs = self._forward[p.ticket]
        if p.kind == 1:
            gs = [read("dy", "y"), read("dhy", "hx"), read("dcy", "cx")]
            found = fw.autograd.grad(outs, given, gs, retain_graph=True, allow_unused=True,
                                     materialize_grads=True)
            for name, value, like in zip(("dx", "dhx", "dcx"), found, ("x", "hx", "cx")):
                write(name, value, like)
            self._forward[p.ticket] = given, w, outs, gs
            return
        for k in range(places):
            for s, shape, one in zip(starts[k], shapes[k], w[k]):
                if s >= 0:
                    (g,) = fw.autograd.grad(outs, one, gs, retain_graph=True, allow_unused=True,
                                            materialize_grads=True)
                    self._memory(p.dweights + int(s) * kind.itemsize, *shape, kind=kind)[...] += g.numpy()

    @staticmethod
    def _layers(mode, p, lengths, sizes, x, hx, cx, w):
        first = [0, *accumulate(sizes)]
        hs, cs = [], []
        for layer in range(p.layers):
            outs = []
            for d in range(p.dirs):
                k = layer * p.dirs + d
                w_ih, w_hh, b, rb, hr = w[k]
                zero = fw.zeros(w_hh.shape[0], dtype=fw.float64)
                b, rb = (zero if v is None else v for v in (b, rb))
                found, ends = {}, []
                for i, n in enumerate(lengths):
                    h, c = hx[k, i], cx[k, i]
                    for t in reversed(range(n)) if d else range(n):
                        h, c = step(mode, w_ih @ x[first[t] + i], w_hh, b, rb, h, c, hr)
                        found[first[t] + i] = h
                    ends.append((h, c))
                outs.append(fw.stack([found[row] for row in range(len(found))]))
                hs.append(fw.stack([h for h, _ in ends]))
                cs.append(fw.stack([c for _, c in ends]))
            x = fw.cat(outs, 1)
        return x, fw.stack(hs), fw.stack(cs)


@pytest.fixture
def rnn(raw, cupy, monkeypatch):  # noqa: F811
    if not hasattr(cupy, "_new"):
        pytest.skip("this is a real CuPy")
    library, path = raw.library("cudnn_rnn")
    monkeypatch.setattr(cudnn_recurrent, "paths", lambda: [path])
    with in_place(cudnn_recurrent, Library(library), monkeypatch, fails=0, refuses=0) as found:
        yield found


def made(mode, *sizes, **settings):
    if mode.startswith("RNN"):
        return nn.RNN(*sizes, nonlinearity=mode[4:].lower(), **settings)
    return getattr(nn, mode)(*sizes, **settings)


def ends(model, x, device, dtype, hx=None, lengths=None):
    """Outputs, states and all gradients on a device."""
    model = model.to(device, dtype)
    model.zero_grad()
    at = x.detach().to(device, dtype).requires_grad_()
    given = None if hx is None else tuple([h.to(device, dtype).requires_grad_() for h in hx])
    entered = at if lengths is None else nn.utils.rnn.pack_padded_sequence(
        at, lengths, batch_first=model.batch_first, enforce_sorted=False)
    y, state = model(entered, given[0] if given and len(given) == 1 else given)
    y = y if lengths is None else y.data
    states = state if isinstance(state, tuple) else (state,)
    slopes = [1 + fw.arange(t.numel(), device=device).reshape(t.shape) % 3 for t in (y, *states)]
    sum((t * slope).sum() for t, slope in zip((y, *states), slopes)).backward()
    found = [y, *states, at.grad, *[h.grad for h in given or ()], *[p.grad for p in model.parameters()]]
    return [a.detach().double().cpu().numpy() for a in found]


def alike(got, want, close):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, close, close * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("settings", [
    {}, {"bias": False}, {"num_layers": 2}, {"bidirectional": True, "batch_first": True},
    {"num_layers": 2, "bidirectional": True, "bias": False}, {"proj_size": 2, "num_layers": 2}], ids=str)
def test_layers_go_to_cudnn(mode, settings, rnn, cupy):  # noqa: F811
    """Values and gradients are the CPU's, with and without first states, of one length and of several."""
    if "proj_size" in settings and mode != "LSTM":
        pytest.skip("only LSTMs have projections")
    model = made(mode, 3, 4, **settings)
    count = model.num_layers * (2 if model.bidirectional else 1)
    x = fw.randn(3, 5, 3) if model.batch_first else fw.randn(5, 3, 3)
    states = [fw.randn(count, 3, s) for s in (model.proj_size or 4, 4)][:2 if mode == "LSTM" else 1]
    for hx in (None, states):
        for lengths in (None, [2, 5, 3]):
            rnn.done.clear()
            got = ends(model, x, "cuda", fw.float64, hx, lengths)
            assert [d[0] for d in rnn.done] == ["forward", "data", "weights"]
            assert rnn.done[0][-3:] == (model.num_layers, 2 if model.bidirectional else 1, 1)
            alike(got, ends(model, x, "cpu", fw.float64, hx, lengths), 1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_shapes_without_values(mode, rnn, cupy, monkeypatch):  # noqa: F811
    """The rules give what cuDNN gives, but for what it keeps, whose size it alone tells."""
    from framework.ops.record.meta import Meta
    from framework.ops.sequence.stacked import stack_grad, stack_op

    seen = []

    def noted(name):
        plain = getattr(cudnn_recurrent, name)

        def call(*args):
            seen.append((args, plain(*args)))
            return seen[-1][1]
        monkeypatch.setattr(cudnn_recurrent, name, call)
    noted("forward"), noted("backward")

    def as_meta(a):
        return None if a is None else Meta(a.shape, fw.float64 if a.dtype == np.float64 else fw.uint8)
    model = made(mode, 3, 4, num_layers=2, bidirectional=True).to("cuda", fw.float64)
    x = fw.randn(5, 2, 3).to("cuda", fw.float64).requires_grad_()
    model(x)[0].sum().backward()
    with fw.no_grad():
        model(x)
    (forward, found), (backward, slopes), (inference, less) = seen
    for (stack, sizes, *arrays, training), got in ((forward, found), (inference, less)):
        told = stack_op.infer(*map(as_meta, arrays), stack=stack, lying=None, sizes=sizes, training=training)
        assert told == (*map(as_meta, got[:3]), None if training else as_meta(got[3]))
    stack, sizes, *arrays, wanted = backward
    told = stack_grad.infer(*map(as_meta, arrays), stack=stack, lying=None, sizes=sizes, wanted=wanted)
    assert [t for t, want in zip(told, wanted) if want] == [as_meta(a) for a in slopes if a is not None]
    assert [t.shape for t, want in zip(told, wanted) if not want] == [(0,)] * wanted.count(False)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("mode", ["LSTM", "GRU"])
def test_dtypes_and_what_is_asked_of_exactness(mode, dtype, rnn, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    fw.empty(1, dtype=fw.bfloat16)
    model, x = made(mode, 3, 4), fw.randn(5, 2, 3)
    close = 1e-4 if dtype == "float32" else 6e-2
    alike(ends(model, x, "cuda", getattr(fw, dtype)), ends(model, x, "cpu", getattr(fw, dtype)), close)
    number, math = {"float32": (0, 0), "float16": (2, 1), "bfloat16": (9, 1)}[dtype]
    assert {d[2:4] for d in rnn.done} == {(number, math)}
    if dtype == "float32":
        with cudnn.flags(allow_tf32=False):
            model.to("cuda")(x.to("cuda"))
        assert rnn.done[-1][3] == 3


def test_inference_keeps_nothing_and_packs_alike(rnn, cupy):  # noqa: F811
    model, x = nn.LSTM(3, 4, 2), fw.randn(5, 3)  # without a batch
    with fw.no_grad():
        want = model(x)[0].numpy()
        got = model.to("cuda")(x.to("cuda"))[0].cpu().numpy()
    np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    assert [d[0] for d in rnn.done] == ["forward"] and rnn.done[0][-1] == 0


def test_frozen_parameters_get_no_gradient(rnn, cupy):  # noqa: F811
    model = nn.GRU(3, 4).to("cuda").requires_grad_(False)
    x = fw.randn(5, 2, 3, device="cuda", requires_grad=True)
    model(x)[0].sum().backward()
    assert [d[0] for d in rnn.done] == ["forward", "data"] and x.grad is not None


def test_dropout_between_layers_is_ours(rnn, cupy):  # noqa: F811
    """The coins are the CPU's, so each layer is a call of its own while they are thrown."""
    model, x, found = nn.LSTM(3, 4, 3, dropout=0.5, bidirectional=True), fw.randn(5, 2, 3), []
    for device in ("cuda", "cpu"):
        fw.manual_seed(3)
        found.append(ends(model, x, device, fw.float64))
    alike(*found, 1e-9)
    assert [d[0] for d in rnn.done].count("forward") == 3
    rnn.done.clear()
    model.eval().to("cuda")(x.to("cuda").double())
    assert len(rnn.done) == 1


def test_backward_again_and_derivatives_of_it(rnn, cupy):  # noqa: F811
    for mode in ("LSTM", "GRU", "RNN_TANH"):
        model, x, found = made(mode, 3, 4, 2, bidirectional=True).double(), fw.randn(4, 2, 3).double(), []
        for device in ("cpu", "cuda"):
            model.to(device)
            at = x.to(device).requires_grad_()
            y = model(at)[0]
            first = [fw.autograd.grad(y.square().sum(), at, retain_graph=True)[0] for _ in range(2)]
            np.testing.assert_array_equal(*[g.cpu().numpy() for g in first])
            (g,) = fw.autograd.grad(y.square().sum(), at, create_graph=True)
            second = fw.autograd.grad(g.square().sum(), [at, *model.parameters()])
            found.append([a.detach().cpu().numpy() for a in (*first, g, *second)])
        alike(found[1], found[0], 1e-8)


def test_what_is_kept_may_be_elsewhere_meanwhile(rnn, cupy):  # noqa: F811
    """Saved tensors on the host, layers computed again by checkpoints, and functions of functions."""
    model, x = nn.LSTM(3, 4, 2).to("cuda"), fw.randn(5, 2, 3, device="cuda", requires_grad=True)
    (want,) = fw.autograd.grad(model(x)[0].square().sum(), x)
    with fw.autograd.graph.save_on_cpu():
        y = model(x)[0]
    again = fw.utils.checkpoint.checkpoint(lambda x: model(x)[0], x, use_reentrant=False)
    found = [fw.autograd.grad(z.square().sum(), x)[0] for z in (y, again)]
    found.append(fw.func.grad(lambda x: model(x)[0].square().sum())(x.detach()).detach())
    with fw.autograd.detect_anomaly():
        found.append(fw.autograd.grad(model(x)[0].square().sum(), x)[0])
    for g in found:
        np.testing.assert_allclose(g.cpu().numpy(), want.cpu().numpy(), 1e-5, 1e-6)
    many = fw.func.vmap(lambda x: model(x)[0])(x.detach().expand(2, 5, 2, 3))
    _, slope = fw.func.jvp(lambda x: model(x)[0], (x.detach(),), (fw.ones_like(x),))
    assert many.shape == (2, 5, 2, 4) and slope.shape == (5, 2, 4)


def test_what_cudnn_does_not_take_goes_to_our_kernels(rnn, cupy):  # noqa: F811
    from cupy import counts

    model, x = nn.LSTM(3, 4), fw.randn(5, 2, 3)
    want = model(x)[0].detach().numpy()
    model.to("cuda")
    x = x.to("cuda")

    def by_ours():
        counts.clear()
        np.testing.assert_allclose(model(x)[0].detach().cpu().numpy(), want, 1e-5, 1e-6)
        return not rnn.done and counts.launches["lstm"] == 1

    with cudnn.flags(enabled=False):
        assert by_ours()
    with cudnn.flags(deterministic=True):
        assert by_ours()
    rnn.set(refuses=1)
    assert by_ours() and by_ours()  # asked once
    cudnn_recurrent._plans.clear()
    rnn.set(refuses=0, fails=5000)
    with pytest.warns(UserWarning, match="cudnnRNNForward of cuDNN failed.*5000.*kernels of this package"):
        assert by_ours()
    rnn.set(fails=0)
    assert by_ours()  # said once
    with pytest.warns(UserWarning, match="failed to plan .*BAD_PARAM"):
        cudnn_recurrent.weights_of(cudnn_recurrent.Stack("LSTM", "f", 3, 4, 0, 1, 1, True))
    y = nn.GRU(3, 4).to("cuda")(x)[0]
    with cudnn.flags(enabled=False), pytest.raises(RuntimeError, match="switched off since then"):
        y.sum().backward()
    rnn.done.clear()


def test_without_the_library_nothing_changes(rnn, cupy, monkeypatch):  # noqa: F811
    for path in ("libnothing.so", "libc.so.6"):  # not there, or another one
        monkeypatch.setattr(cudnn_recurrent, "paths", lambda path=path: [path])
        monkeypatch.setattr(cudnn_recurrent, "_started", (None, None))
        assert cudnn_recurrent.library() is None
        nn.LSTM(3, 4).to("cuda")(fw.randn(5, 2, 3, device="cuda"))
    monkeypatch.setattr(cudnn_recurrent, "paths", lambda: [rnn._library._name])
    monkeypatch.setattr(cudnn_recurrent, "_started", (None, None))
    rnn.set(fails=1001)
    with pytest.warns(UserWarning, match="cuDNN is installed but cannot be used .cudnnCreate .*1001"):
        nn.LSTM(3, 4).to("cuda")(fw.randn(5, 2, 3, device="cuda"))
    assert not rnn.done


def test_autocast_lowers_layers(rnn, cupy):  # noqa: F811
    model, x = nn.LSTM(3, 4).to("cuda"), fw.randn(5, 2, 3, device="cuda")
    with fw.autocast("cuda", dtype=fw.float16):
        y = model(x)[0]
    y.sum().backward()
    assert y.dtype is fw.float16 and {d[2] for d in rnn.done} == {2}
    assert model.weight_ih_l0.grad.dtype is fw.float32


@pytest.mark.parametrize("mode", MODES)
def test_nothing_beyond_the_memory_is_touched(mode, rnn, cupy, monkeypatch):  # noqa: F811
    """Results, gradients, what is kept and room to work in end where pages begin that must not be touched."""
    from cupy.raw import _Guard

    kept = []

    def empty(shape, dtype=float):
        shape, dtype = shape if isinstance(shape, tuple) else (shape,), np.dtype(dtype)
        like = np.full(max(1, int(np.prod(shape))), 7, dtype)
        kept.append(_Guard(like))
        room = (ctypes.c_char * like.nbytes).from_address(kept[-1].start)
        return cupy._new(np.ndarray(shape, dtype, room), 0)

    model, x = made(mode, 3, 5, 2, bidirectional=True), fw.randn(4, 3, 3)
    want = ends(model, x, "cpu", fw.float32)
    monkeypatch.setattr(cupy, "empty", empty)
    alike(ends(model, x, "cuda", fw.float32), want, 1e-4)
    assert len(kept) >= 6 and [d[0] for d in rnn.done] == ["forward", "data", "weights"]


def test_training_and_inference_in_a_graph(rnn, cupy, monkeypatch):  # noqa: F811
    """What cuDNN is handed is captured, on a stream that it has not seen before."""
    from cupy import streams

    monkeypatch.setattr(streams.Uses, "use", lambda *given: None)
    monkeypatch.setattr(streams.Uses, "free", lambda *given: None)
    model, x = nn.LSTM(3, 4, 2).to("cuda"), fw.randn(5, 2, 3, device="cuda")
    x.requires_grad_()
    values, graph = fw.randn(5, 2, 3, device="cuda"), fw.cuda.CUDAGraph()
    model(x)[0].sum().backward()  # descriptors are made before
    rnn.done.clear()
    with fw.cuda.graph(graph):
        y = model(x)[0]
        (g,) = fw.autograd.grad(y.square().sum(), x)
    assert not rnn.done
    with fw.no_grad():
        x.copy_(values)
    graph.replay()
    fw.cuda.synchronize()
    assert [d[0] for d in rnn.done] == ["forward", "data"]
    found = [y.detach().cpu().numpy(), g.cpu().numpy()]
    z = model(x)[0]
    want = [z.detach().cpu().numpy(), fw.autograd.grad(z.square().sum(), x)[0].cpu().numpy()]
    alike(found, want, 1e-6)
    gc.collect()
    fw.cuda.graph.default_capture_stream = None
    streams.clear()


def test_launches_and_losses_of_training_steps(rnn, cupy):  # noqa: F811
    launches, waits, _ = counted("lstm")
    assert launches.total() <= 35 and not waits, (launches.total(), launches)
    assert [d[0] for d in rnn.done][:3] == ["forward", "data", "weights"]
    losses = []
    for device in ("cpu", "cuda"):
        run = Run("lstm", device)
        losses.append([run.step().item() for _ in range(3)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


REAL = """
import ctypes, types
import numpy
from math import prod
from framework.backends import cudnn_recurrent as r
library = ctypes.CDLL("libcudnn.so.9")
library.cudnnGetVersion.restype = ctypes.c_size_t
found = r.Library("libcudnn.so.9")
lengths = (5, 4, 4, 1)
for mode in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU"):
    for char, (kind, computed, math) in r._KINDS.items():
        for hidden, outputs in ((16, 16), (16, 4)) if mode == "LSTM" else ((16, 16),):
            for biased in (0, 2):
                for way in {math, r._NO_TF32 if char == "f" else math}:
                    r.Descriptor(found, "RNN", 0, r._MODES[mode][0], biased, 1, 0, kind, computed, way, 8,
                                 hidden, outputs, 3, None, 0, setter="cudnnSetRNNDescriptor_v8")
        for layout, each in ((0, (5,) * 4), (1, lengths)):
            r.Descriptor(found, "RNNData", kind, layout, 5, 4, 8, r._ints(each), None)
        r.Descriptor(found, "Tensor", kind, 3, r._ints((6, 4, 16)), r._ints((64, 16, 1)),
                     setter="cudnnSetTensorNdDescriptor")
for name, *wrong in (("RNN", 0, 2, 2, 0, 0, 0, 0, 0, 8, 16, 0, 1, None, 0),
                     ("RNN", 0, 2, 2, 0, 0, 9, 9, 1, 8, 16, 16, 1, None, 0),
                     ("RNNData", 0, 1, 5, 3, 8, r._ints((2, 4, 5)), None)):
    try:
        r.Descriptor(found, name, *wrong, setter="cudnnSetRNNDescriptor_v8" if name == "RNN" else "")
    except r.Failed as error:
        print(error.status, end=" ")
r.cuda.cupy = lambda: types.SimpleNamespace(cuda=types.SimpleNamespace(
    get_current_stream=lambda: types.SimpleNamespace(ptr=0)))
try:
    found.handle(0)
except r.Failed as error:
    print(error.status, library.cudnnGetVersion())
if library.cudnnGetVersion() // 100 != 928:  # what follows counts on what a version does
    raise SystemExit
# where parameters lie depends on no device, so memory of zeros does for a handle
r.cuda.cupy = lambda: types.SimpleNamespace(
    empty=lambda n, kind: types.SimpleNamespace(data=types.SimpleNamespace(ptr=1 << 30)))
zeros = ctypes.create_string_buffer(1 << 20)
handle = ctypes.addressof(zeros)
for mode in ("LSTM", "GRU", "RNN_TANH"):
    for char in "fdeE":
        for sizes in ((8, 16, 16, 2, 2), (5, 7, 7, 3, 1), (3, 12, 5 if mode == "LSTM" else 12, 2, 2)):
            for biased in (False, True):
                stack = r.Stack(mode, char, *sizes, biased)
                lying = r._made(found, handle, stack, True).weights
                pieces = sorted((start, prod(shape)) for k in range(stack.states)
                                for start, shape in zip(lying.starts[k], stack.shapes(k)))
                ends = [start + n for start, n in pieces]
                assert [start for start, _ in pieces[1:]] == ends[:-1] and ends[-1] <= lying.size
# a call is looked at before a device is wanted, whose lack is status 5003; what is wrong is status 2000
class Array:
    def __init__(self, *shape):
        n = int(numpy.prod(shape)) if shape else 1
        self.shape, self.size, self.nbytes = shape, n, 4 * n
        self.memory = ctypes.create_string_buffer(4 * n + 64)
        self.data = types.SimpleNamespace(ptr=ctypes.addressof(self.memory))
    dtype = property(lambda self: "f4")
    __len__ = lambda self: self.shape[0]
made = lambda shape, kind=None: Array(*shape if type(shape) is tuple else (shape,))
stream = types.SimpleNamespace(ptr=0)
r.cuda.cupy = lambda: types.SimpleNamespace(
    empty=made, zeros=made, empty_like=lambda a: Array(*a.shape), asarray=made_of,
    cuda=types.SimpleNamespace(get_current_stream=lambda: stream,
                               runtime=types.SimpleNamespace(getDevice=lambda: 0)))
def made_of(values):
    array = Array(len(values))
    ctypes.memmove(array.data.ptr, values.ctypes.data, values.nbytes)
    return array
real, statuses = found.call, []
def call(name, *arguments):
    try:
        real(name, *arguments)
    except r.Failed as error:
        if name == "cudnnSetStream":
            return
        statuses.append((name, error.status))
        if error.status != 5003:
            raise
found.call, found.handles[0] = call, handle
r.library = lambda: found
for mode in ("LSTM", "GRU"):
    for sizes in ((3, 3, 3), (3, 2, 1, 1)):
        stack = r.Stack(mode, "f", 8, 16, 4 if mode == "LSTM" else 16, 2, 2, True)
        rows, c = sum(sizes), Array(4, 3, 16) if mode == "LSTM" else None
        w = Array(r.weights_of(stack).size)
        x, h = Array(rows, 8), Array(4, 3, stack.outputs)
        y, _, _, kept = r.forward(stack, sizes, x, h, c, w, True)
        r.forward(stack, sizes, x, None, None, w, False)
        r.backward(stack, sizes, y, h, c, x, h, c, w, y, kept, (True,) * 4)
print({status for _, status in statuses}, len({name for name, _ in statuses}))
"""


def test_the_real_library_takes_what_it_is_told():
    """Descriptors need no GPU: NVIDIA's own library takes them, and refuses what the stand-in refuses.

    It tells where parameters lie, and finds the arguments of all calls right before it misses a device.
    """
    if find_spec("nvidia") is None or not shutil.which("gcc"):
        pytest.skip("pip install nvidia-cudnn-cu13")
    import nvidia
    from cudnn_plans import environment

    if not any((Path(root) / "cudnn/lib/libcudnn.so.9").exists() for root in nvidia.__path__):
        pytest.skip("pip install nvidia-cudnn-cu13")
    with tempfile.TemporaryDirectory() as folder:
        place = {**environment(Path(folder)), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", REAL], capture_output=True, text=True, env=place,
                              timeout=300)
    assert not done.returncode, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert lines[0].split()[:4] == ["2000", "3000", "2000", "1001"], done.stdout  # the last: no device
    if lines[0].split()[4].startswith("928"):
        assert lines[1:] == ["{5003} 4"], done.stdout + done.stderr[-2000:]
