"""Recurrent layers and cells, packed sequences: beside PyTorch, by numbers, and with wrong arguments."""

import copy
import os
import pickle
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framework as fw
from framework import nn
from framework.autograd import gradcheck, gradgradcheck
from framework.nn.utils import rnn as R

LENGTHS = [5, 3, 3, 1]
LAYERS = {"RNN": {}, "relu": {"nonlinearity": "relu"}, "LSTM": {}, "GRU": {}, "projected": {"proj_size": 2}}
CLASSES = {"relu": "RNN", "projected": "LSTM"}


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).normal(size=shape)


def pair(kind: str, **settings: Any) -> tuple:
    """Our layer and PyTorch's, in float64 with equal parameters."""
    torch = pytest.importorskip("torch")
    name = CLASSES.get(kind, kind)
    settings |= LAYERS[kind]
    ours, theirs = [getattr(M.nn, name)(3, 4, **settings).double() for M in (fw, torch)]
    assert repr(ours) == repr(theirs)
    assert [(k, v.shape) for k, v in ours.state_dict().items()] == [
        (k, tuple(v.shape)) for k, v in theirs.state_dict().items()]
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    return ours, theirs, torch


def flat(out: Any) -> list:
    return [leaf for part in out for leaf in flat(part)] if isinstance(out, (tuple, list)) else [out]


def start(kind: str, M: Any, count: int, *batch: int) -> Any:
    """hx for a layer, to be differentiated."""
    sizes = (2 if kind == "projected" else 4, 4)
    h, c = [M.tensor(data(count, *batch, size, seed=k), requires_grad=True) for k, size in enumerate(sizes)]
    return (h, c) if CLASSES.get(kind, kind) == "LSTM" else h


def assert_same(ours: Any, theirs: Any, leaves: list, their_leaves: list) -> None:
    """Equal results, and gradients of a random sum of them."""
    loss: list = [0.0, 0.0]
    for k, (y, z) in enumerate(zip(flat(ours), flat(theirs), strict=True)):
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-9, atol=1e-11)
        if y.is_floating_point():
            g = data(*y.shape, seed=k)
            loss = [loss[0] + (y * fw.tensor(g)).sum(), loss[1] + (z * z.new_tensor(g)).sum()]
    for side in loss:
        side.backward()
    for a, b in zip(leaves, their_leaves, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("layers,both,first,bias,given", [
    (1, False, False, True, False), (2, True, False, True, True), (1, True, True, False, True),
    (3, False, True, True, False), (2, False, False, False, True)])
def test_layers_beside_torch(kind: str, layers: int, both: bool, first: bool, bias: bool,
                             given: bool) -> None:
    ours, theirs, torch = pair(kind, num_layers=layers, bidirectional=both, batch_first=first, bias=bias)
    x, z = [M.tensor(data(5, 2, 3), requires_grad=True) for M in (fw, torch)]
    count = layers * (1 + both)
    hx = [start(kind, M, count, 5 if first else 2) if given else None for M in (fw, torch)]
    states = [flat(h) if given else [] for h in hx]
    assert_same(ours(x, hx[0]), theirs(z, hx[1]), [x, *states[0], *ours.parameters()],
                [z, *states[1], *theirs.parameters()])


@pytest.mark.parametrize("kind", LAYERS)
def test_no_batch(kind: str) -> None:
    ours, theirs, torch = pair(kind, num_layers=2, batch_first=True)
    hx = [start(kind, M, 2) for M in (fw, torch)]
    for mine, other in ((hx[0], hx[1]), (None, None)):
        y, z = ours(fw.tensor(data(5, 3)), mine), theirs(torch.tensor(data(5, 3)), other)
        assert_same(y, z, list(ours.parameters()), list(theirs.parameters()))


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("both,given,ordered", [
    (False, False, True), (True, True, True), (True, True, False)])
def test_packed_beside_torch(kind: str, both: bool, given: bool, ordered: bool) -> None:
    ours, theirs, torch = pair(kind, num_layers=2, bidirectional=both)
    lengths = LENGTHS if ordered else [3, 1, 5, 3]
    results, leaves = [], []
    for M, layer in ((fw, ours), (torch, theirs)):
        rnn = M.nn.utils.rnn
        x = M.tensor(data(5, 4, 3), requires_grad=True)
        hx = start(kind, M, 2 * (1 + both), 4) if given else None
        packed, state = layer(rnn.pack_padded_sequence(x, lengths, enforce_sorted=ordered), hx)
        results.append((rnn.pad_packed_sequence(packed, padding_value=0.5), state, packed.data))
        leaves.append([x, *(flat(hx) if given else []), *layer.parameters()])
    assert_same(*results, *leaves)


@pytest.mark.parametrize("kind", ["RNNCell", "relu", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_cells_beside_torch(kind: str, bias: bool) -> None:
    torch = pytest.importorskip("torch")
    settings = {"nonlinearity": "relu"} if kind == "relu" else {}
    name = "RNNCell" if kind == "relu" else kind
    ours, theirs = [getattr(M.nn, name)(3, 4, bias=bias, **settings).double() for M in (fw, torch)]
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    for batch, given in product([(), (2,)], [True, False]):
        leaves, results = [], []
        for M, cell in ((fw, ours), (torch, theirs)):
            x, h, c = [M.tensor(data(*batch, s, seed=s), requires_grad=True) for s in (3, 4, 4)]
            hx = None if not given else (h, c) if name == "LSTMCell" else h
            leaves.append([x, *(flat(hx) if given else []), *cell.parameters()])
            results.append(cell(cell(x, hx)[0] @ M.ones(4, 3).double() if name == "LSTMCell"
                                else cell(x, hx) @ M.ones(4, 3).double(), hx))
        assert_same(*results, *leaves)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("sizes,reverse", [
    ((2, 2), False), ((2, 2, 1), True), ((3, 1), False), ((2,), False)])
def test_derivatives_by_numbers(kind: str, sizes: tuple, reverse: bool) -> None:
    from framework.ops.sequence import rnn as records
    op = getattr(records, f"{kind.lower()}_op")
    gates, states = {"RNN": 1, "LSTM": 4, "GRU": 3}[kind], 2 if kind == "LSTM" else 1
    rows = gates * 2
    shapes = [(sum(sizes), 2), *[(sizes[0], 2)] * states, (rows, 2), (rows, 2), (rows,), (rows,)]
    inputs = [fw.tensor(data(*shape, seed=k), requires_grad=True) for k, shape in enumerate(shapes)]
    settings = {"relu": False} if kind == "RNN" else {}

    def function(*xs: Any) -> Any:
        return op.run(*xs, sizes=sizes, reverse=reverse, **settings)[:1 + states]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_third_derivative_and_forward_mode(kind: str) -> None:
    layer = getattr(nn, kind)(1, 1, dtype=fw.float64)

    def f(x: Any) -> Any:
        return layer(x.reshape(2, 1, 1))[0].sum()

    def second(x: Any) -> Any:
        (g,) = fw.autograd.grad(f(x), x, create_graph=True)
        return fw.autograd.grad((g * g).sum(), x, create_graph=True)[0]
    x = fw.tensor([0.3, -0.5], dtype=fw.float64, requires_grad=True)
    gradcheck(second, [x])
    v = fw.tensor([1.0, 2.0], dtype=fw.float64)
    _, pushed = fw.func.jvp(f, (x.detach(),), (v,))
    _, curved = fw.func.jvp(fw.func.grad(f), (x.detach(),), (v,))
    (g,) = fw.autograd.grad(f(x), x, create_graph=True)
    (hv,) = fw.autograd.grad((g * v).sum(), x)
    np.testing.assert_allclose(pushed.detach().numpy(), (g * v).sum().detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(curved.detach().numpy(), hv.numpy(), rtol=1e-9)


def test_dropout_between_layers() -> None:
    fw.manual_seed(0)
    layer = nn.GRU(3, 4, 2, dropout=1.0)
    x = fw.randn(5, 2, 3)
    y, _ = layer(x)
    np.testing.assert_allclose(y.detach().numpy(), layer(x * 0 - 7)[0].detach().numpy())
    assert not np.allclose(layer.eval()(x)[0].detach().numpy(), y.detach().numpy())
    with pytest.warns(UserWarning, match="between layers"):
        nn.LSTM(3, 4, dropout=0.5)


def test_copies_start_and_parts() -> None:
    fw.manual_seed(0)
    layer = nn.LSTM(3, 50, 2, bidirectional=True)
    for p in layer.parameters():
        a = p.detach().numpy()
        assert np.abs(a).max() <= 50 ** -0.5
        assert abs(a.std() * (3 * 50) ** 0.5 - 1) < 0.2
    assert layer.flatten_parameters() is None
    assert layer.all_weights[1][0] is layer.weight_ih_l0_reverse
    x = fw.randn(2, 1, 3)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        np.testing.assert_array_equal(twin(x)[0].detach().numpy(), layer(x)[0].detach().numpy())
    assert isinstance(layer, nn.RNNBase) and isinstance(nn.GRUCell(1, 1), nn.RNNCellBase)


def test_float32_and_narrow_dtypes() -> None:
    fw.manual_seed(0)
    for kind in ("RNN", "LSTM", "GRU"):
        layer = getattr(nn, kind)(3, 4)
        x = fw.randn(5, 2, 3)
        want = layer(x)[0].detach().numpy()
        assert want.dtype == np.float32
        for dtype, tolerance in ((fw.float64, 1e-5), (fw.float16, 1e-2), (fw.bfloat16, 5e-2)):
            twin = copy.deepcopy(layer).to(dtype)
            y, _ = twin(x.to(dtype))
            assert y.dtype is dtype
            np.testing.assert_allclose(y.detach().float().numpy(), want, atol=tolerance)
            y.sum().backward()
            assert twin.weight_hh_l0.grad.dtype is dtype


def test_large_numbers_do_not_overflow() -> None:
    for kind in ("LSTM", "GRU"):
        layer = getattr(nn, kind)(3, 4)
        x = (fw.randn(5, 2, 3) * 1e4).requires_grad_()
        y, _ = layer(x)
        y.sum().backward()
        assert np.isfinite(y.detach().numpy()).all() and np.isfinite(x.grad.numpy()).all()
    y, _ = layer(fw.full((2, 1, 3), float("nan")))
    assert np.isnan(y.detach().numpy()).all()


def test_no_sequences() -> None:
    for kind in ("RNN", "LSTM", "GRU"):
        layer = getattr(nn, kind)(3, 4)
        x = fw.zeros(5, 0, 3, requires_grad=True)
        y, _ = layer(x)
        y.sum().backward()
        assert y.shape == (5, 0, 4) and x.grad.shape == (5, 0, 3)
        assert (layer.weight_hh_l0.grad.numpy() == 0).all()


# -- sequences in one batch ----------------------------------------------------------------------


@pytest.mark.parametrize("first,ordered", list(product([False, True], repeat=2)))
def test_packing_beside_torch(first: bool, ordered: bool) -> None:
    torch = pytest.importorskip("torch")
    lengths = LENGTHS if ordered else [1, 5, 3, 4]
    rows = [data(n, 2) for n in lengths]
    found = []
    for M in (fw, torch):
        rnn = M.nn.utils.rnn
        x = M.tensor(data(4, 5, 2) if first else data(5, 4, 2), requires_grad=True)
        packed = rnn.pack_padded_sequence(x, lengths, first, ordered)
        padded, sizes = rnn.pad_packed_sequence(packed, first, -1.0, total_length=7)
        (padded * padded).sum().backward()
        listed = rnn.pack_sequence([M.tensor(r) for r in rows], enforce_sorted=ordered)
        back = rnn.unpack_sequence(listed)
        cut = rnn.unpad_sequence(padded.clone(), sizes, first)  # PyTorch turns it in place
        order = [] if ordered else [packed.sorted_indices, packed.unsorted_indices]
        assert ordered is (packed.sorted_indices is None)
        found.append([packed.data, packed.batch_sizes, padded, sizes, x.grad, listed.data])
        found[-1] += [*back, *cut, *order]
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    for row, mine in zip(rows, back):
        np.testing.assert_array_equal(mine.numpy(), row)


def test_packed_sequence_moves() -> None:
    p = R.pack_sequence([fw.tensor([1, 2, 3]), fw.tensor([4])])
    assert p.to(fw.int64) is p and p.cpu() is p and not p.is_cuda
    assert p.double().data.dtype is fw.float64 and p.half().data.dtype is fw.float16
    assert p.float().data.dtype is fw.float32 and isinstance(p.float(), R.PackedSequence)
    data, sizes, order, back = p
    assert order is None and back is None and sizes.tolist() == [2, 1, 1]
    assert R.PackedSequence(data, sizes, fw.tensor([1, 0])).unsorted_indices.tolist() == [1, 0]


# -- a program -----------------------------------------------------------------------------------


def test_language_model_learns(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be, that is the question\n" * 60)

    def run(*options: str) -> Any:
        command = [sys.executable, str(root / "examples/language_model.py"), "--width", "32", *options]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True,
                              text=True, timeout=120)
    done = run("--text", str(text), "--steps", "100", "--length", "16")
    assert done.returncode == 0, done.stderr
    found = re.search(r"step 100: (\S+) bits per character, (\S+) on other text", done.stdout)
    assert found and float(found[2]) < 2.0, done.stdout
    missing = run("--text", str(tmp_path / "none"))
    assert missing.returncode == 1 and "--text FILE" in missing.stderr


# -- wrong arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize("call,error,text", [
    (lambda: nn.LSTM(3, 0), ValueError, "LSTM: hidden_size=0"),
    (lambda: nn.GRU(3, 4.0), TypeError, "GRU: hidden_size=4.0 must be an int"),
    (lambda: nn.GRU(3, 4, 0), ValueError, "num_layers=0"),
    (lambda: nn.LSTM(3, 4, dropout=2), ValueError, "[0, 1]"),
    (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size=4"),
    (lambda: nn.RNN(3, 4, nonlinearity="sin"), ValueError, "'tanh' or 'relu'"),
    (lambda: nn.RNNCell(3, 4, nonlinearity="sin"), ValueError, "'tanh' or 'relu'"),
    (lambda: nn.LSTM(3, 4)([1.0]), TypeError, "LSTM: input must be a Tensor"),
    (lambda: nn.LSTM(3, 4)(fw.ones(3)), ValueError, "(length, batch, features)"),
    (lambda: nn.LSTM(3, 4)(fw.ones(5, 2, 4)), ValueError, "input_size=3"),
    (lambda: nn.LSTM(3, 4)(fw.ones(0, 2, 3)), ValueError, "length 0"),
    (lambda: nn.LSTM(3, 4)(fw.ones(5, 2, 3).double()), TypeError, "float64"),
    (lambda: nn.LSTM(3, 4)(fw.ones(5, 2, 3), fw.ones(1, 2, 4)), TypeError, "pair (h_0, c_0)"),
    (lambda: nn.LSTM(3, 4)(fw.ones(5, 2, 3), (fw.ones(1, 2, 4), None)), TypeError, "c_0 must be a Tensor"),
    (lambda: nn.GRU(3, 4)(fw.ones(5, 2, 3), fw.ones(2, 4)), ValueError, "[1, 2, 4]"),
    (lambda: nn.GRU(3, 4)(fw.ones(5, 3), fw.ones(1, 1, 4)), ValueError, "[1, 4]"),
    (lambda: nn.GRU(3, 4)(fw.ones(5, 2, 3), fw.ones(1, 2, 4).double()), TypeError, "hx is"),
    (lambda: nn.GRUCell(3, 4)(fw.ones(2, 4)), ValueError, "GRUCell: input"),
    (lambda: nn.GRUCell(3, 4)(fw.ones(2, 3), fw.ones(3, 4)), ValueError, "hx must have shape [2, 4]"),
    (lambda: nn.LSTMCell(3, 4)(fw.ones(2, 3), fw.ones(2, 4)), TypeError, "pair (h, c)"),
    (lambda: nn.LSTMCell(3, 4)(fw.ones(2, 3), (fw.ones(2, 4), 1)), TypeError, "c must be a Tensor"),
    (lambda: nn.LSTMCell(3, 4)(fw.ones(2, 3).double()), TypeError, "float64"),
    (lambda: R.pack_padded_sequence(fw.ones(3), [3]), ValueError, "(length, batch, ...)"),
    (lambda: R.pack_padded_sequence(fw.ones(3, 2), [1, 3]), ValueError, "enforce_sorted=False"),
    (lambda: R.pack_padded_sequence(fw.ones(3, 2), [3, 0]), ValueError, "[1, 3]"),
    (lambda: R.pack_padded_sequence(fw.ones(3, 2), [4, 1]), ValueError, "[1, 3]"),
    (lambda: R.pack_padded_sequence(fw.ones(3, 2), [3]), ValueError, "1 entries for a batch of 2"),
    (lambda: R.pack_padded_sequence(fw.ones(3, 2), [3.0, 1.0]), TypeError, "integers"),
    (lambda: R.pack_padded_sequence(fw.ones(3, 0), fw.tensor([], dtype=fw.int64)), ValueError, "is empty"),
    (lambda: R.pad_packed_sequence(fw.ones(3, 2)), TypeError, "PackedSequence"),
    (lambda: R.pad_packed_sequence(R.pack_sequence([fw.ones(3)]), total_length=2), ValueError,
     "total_length=2"),
    (lambda: R.PackedSequence(fw.ones(3)), ValueError, "batch_sizes is missing"),
])
def test_wrong_arguments(call: Any, error: type, text: str) -> None:
    with pytest.raises(error) as info:
        call()
    assert text in str(info.value)
