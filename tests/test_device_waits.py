"""Calls of training that look at values on the CPU and must not wait for a device: they give the CPU's
numbers, and what is wrong is told when somebody waits.
"""

import os

import numpy as np
import pytest
from device_common_steps import STEPS
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw

F = fw.nn.functional
CALLS = {
    "binary_cross_entropy": lambda t: F.binary_cross_entropy(t["x"].sigmoid(), t["p"]),
    "gaussian_nll_loss": lambda t: F.gaussian_nll_loss(t["x"], t["p"], t["p"] + 0.1),
    "multi_margin_loss": lambda t: F.multi_margin_loss(t["x"], t["i"]),
    "max_unpool2d": lambda t: F.max_unpool2d(
        *F.max_pool2d(t["x"].reshape(1, 1, 4, 6), 2, return_indices=True), 2),
    "embedding_bag of offsets": lambda t: F.embedding_bag(t["i"], t["x"], t["offsets"]),
    "embedding_bag, padded": lambda t: F.embedding_bag(
        t["i"], t["x"], t["offsets"], mode="sum", padding_idx=2),
    "embedding_bag, greatest": lambda t: F.embedding_bag(
        t["i"], t["x"], t["offsets"], mode="max", padding_idx=1),
    "attention that is masked": lambda t: F.multi_head_attention_forward(
        t["q"], t["q"], t["q"], 6, 2, t["w"], None, None, None, False, 0.0, t["v"], None, True,
        t["mask"])[0],
    "products without zeros": lambda t: t["x"].cumprod(1),
    "products": lambda t: t["zeros"].cumprod(1),
    "products, downwards": lambda t: t["zeros"].cumprod(0),
    "logcumsumexp": lambda t: (t["x"] * 40).logcumsumexp(1),
    "logcumsumexp of nothing": lambda t: t["x"][:0].logcumsumexp(1),
    "logsumexp": lambda t: t["x"].logsumexp((0, 1)) + t["x"].logsumexp(1),
    "quantile": lambda t: t["x"].quantile(t["q25"], 1),
    "fractional pooling": lambda t: F.fractional_max_pool2d(
        t["x"][None, None], 2, 2, _random_samples=t["p"][:1, :2][None]),
    "a mask written": lambda t: _written(t["x"] * 1, t["x"].detach() > 0, t["zeros"], t["mask"].any(1)),
    "masked_scatter": lambda t: t["x"].masked_scatter(t["zeros"] != 0, t["p"]),
    "the median but for nan": lambda t: t["x"].nanmedian() + t["zeros"].nanmedian(1).values,
    "istft": lambda t: t["zeros"].reshape(-1).stft(
        8, window=t["p"].detach().reshape(-1)[:8] + 1, return_complex=True, pad_mode="constant").istft(
            8, window=t["p"].detach().reshape(-1)[:8] + 1),
    "embedding with padding": lambda t: F.embedding(t["i"], t["x"], 1),
    "embedding by frequency": lambda t: F.embedding(t["i"], t["x"], scale_grad_by_freq=True),
    "embedding of limited norm": lambda t: F.embedding(t["i"], t["x"], max_norm=1.0),
    "histc": lambda t: t["x"] + t["x"].detach().histc(6),
    "det": lambda t: fw.linalg.det(t["x"][:, :4]) + fw.linalg.det(t["x"][:, :1] @ t["x"][:1, :4]),
    "histogram": lambda t: t["x"][:, :5] + t["x"].detach().histogram(5).hist,
    "histogram of edges": lambda t: t["x"][:, :1] + t["x"].detach().histogram(t["q25"].detach()).hist,
    "histogramdd": lambda t: t["x"][:3, :2] + fw.histogramdd(t["x"].detach()[:, :2], [3, 2]).hist,
    "ctc_loss": lambda t: F.ctc_loss(t["x"].reshape(4, 1, 6).log_softmax(2), t["i"][None, :1] + 1,
                                     t["offsets"][3:] + 1, t["offsets"][1:2], reduction="none"),
    "median": lambda t: t["x"].median() + t["x"].median(1).values + t["x"].mode(1).values,
}


def _written(x, where, row, rows):
    x[where] = 2.0
    x[rows.repeat(2)] = row[0]
    x[x > 1.5] = row.sum()
    x[:, 1:][where[:, 1:]] = 7
    return x


def tensors(device):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 6))
    given = {"x": x, "p": rng.uniform(0, 1, (4, 6)), "zeros": x * (rng.random((4, 6)) < 0.7),
             "q": rng.standard_normal((5, 2, 6)), "w": rng.standard_normal((18, 6)), "v": np.eye(6),
             "q25": np.array([0.25, 0.7])}
    found = {k: fw.tensor(a, device=device, requires_grad=k != "q25") for k, a in given.items()}
    found["i"], found["offsets"] = (fw.tensor(a, device=device) for a in ([1, 0, 2, 3], [0, 1, 1, 3]))
    found["mask"] = fw.tensor([[False] * 4 + [True], [True] * 5], device=device)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_nobody_waits(name, raw, cupy):  # noqa: F811
    from cupy import counts

    found = []
    for device in ("cpu", "cuda"):
        given = tensors(device)
        counts.clear()
        out = CALLS[name](given)
        leaves = [t for t in given.values() if t.requires_grad]
        grads = fw.autograd.grad((out * out).sum(), leaves, allow_unused=True)
        assert not counts.waits, dict(counts.waits)
        found.append([out, *[g for g in grads if g is not None]])
    assert len(found[0]) == len(found[1]) > 1
    for want, got in zip(*found):
        np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), 1e-9, 1e-9)


@pytest.mark.parametrize("call, error, text", [
    (lambda x, i: F.binary_cross_entropy(x * 3, x), ValueError, "input must hold .*, found 1.5; apply sig"),
    (lambda x, i: F.binary_cross_entropy(x, -x), ValueError, "target must lie in .0, 1., found -0.5"),
    (lambda x, i: F.gaussian_nll_loss(x, x, -x), ValueError, "var must not be negative, found -0.5"),
    (lambda x, i: F.multi_margin_loss(x, i + 2), IndexError, "multi_margin_loss: .*3"),
    (lambda x, i: F.embedding_bag(i, x, i), ValueError, "offsets must start with 0.*got 1 first"),
    (lambda x, i: F.embedding_bag(i, x, i - 1, include_last_offset=True), ValueError, "got 0 last"),
    (lambda x, i: F.ctc_loss(x[:, None], i[None] + 3, [2], [1]), ValueError, "ctc_loss: targets must lie in"),
    (lambda x, i: F.ctc_loss(x[:, None], i[None], i[:1] * 3, i[:1]), ValueError,
     "ctc_loss: input_lengths must"),
    (lambda x, i: x.masked_scatter(x > 0, x[0, :2]), fw.errors.ShapeError,
     "masked_scatter: the mask chooses more elements than source has, which are 2"),
    (lambda x, i: (x / 0).histc(3), ValueError, "histc: the range must be finite, the elements reach inf"),
    (lambda x, i: (x / 0).histogram(3), ValueError, "histogram: the range must be finite, .* reach inf"),
    (lambda x, i: x.histogram(-x[0].cumsum(0)), ValueError,
     "histogram: the edges of bins must rise, that behind number 0 falls"),
    (lambda x, i: fw.histogramdd(x[:, :2], [x[0], -x[0].cumsum(0)]), ValueError,
     "histogramdd: the edges of bins must rise, that behind number 0 falls"),
    (lambda x, i: x.quantile(x[0] * 4, 1), ValueError, "every q must lie in .0, 1., got 2"),
])
def test_what_is_wrong_is_told_at_the_next_wait(call, error, text, raw, cupy):  # noqa: F811
    from cupy import counts

    x, i = fw.full((2, 3), 0.5, device="cuda"), fw.tensor([1, 1], device="cuda")
    counts.clear()
    call(x, i)
    assert not counts.waits, dict(counts.waits)
    with pytest.raises(error, match=text + ".*found on cuda:0"):
        fw.cuda.synchronize()
    fw.cuda.synchronize()  # told once


def test_ranges_are_made_on_the_device(raw, cupy):  # noqa: F811
    """The CPU's bits, and no copy of them: a step that asks for positions can be recorded as a graph."""
    from cupy import counts

    for given in ((7,), (2, 9), (9, 2, -3), (0.0, 1.0, 0.1), (1, 2, 0.25), (3, 3), (-1.5, 4), (0, 10, 7)):
        for dtype in (None, fw.float32, fw.int32, fw.float16):
            counts.clear()
            got = fw.arange(*given, dtype=dtype, device="cuda")
            assert not counts.copies and not counts.waits
            want = fw.arange(*given, dtype=dtype)
            assert got.dtype is want.dtype and got.tolist() == want.tolist(), (given, dtype)
    counts.clear()
    got = fw.eye(3, 4, device="cuda"), fw.eye(2, dtype=fw.int64, device="cuda")
    assert not counts.copies and [t.tolist() for t in got] == [fw.eye(3, 4).tolist(), [[1, 0], [0, 1]]]


def test_a_graph_replays_in_another_stream_than_it_was_recorded_in(raw, cupy):  # noqa: F811
    """The flag that its kernels may raise has been cleared by then."""
    table, index = fw.ones(4, 2, device="cuda"), fw.tensor([1, 2], device="cuda")
    stream, graph = fw.cuda.Stream(), fw.cuda.CUDAGraph()
    F.embedding(index, table)
    with fw.cuda.graph(graph, stream=stream):
        out = F.embedding(index, table)
    graph.replay()
    assert out.tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_says_that_the_gpu_is_its_parents(raw, cupy):  # noqa: F811
    fw.ones(2, device="cuda")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            assert (fw.ones(2) + 1).tolist() == [2.0, 2.0]
            fw.ones(2, device="cuda")
            text = "nothing was raised"
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        assert "DeviceError: cuda: this process was forked" in said.read()
    os.waitpid(child, 0)
    assert fw.ones(2, device="cuda").tolist() == [1.0, 1.0]


def test_log_sums_of_bfloat16_are_derived_in_float32(raw, cupy):  # noqa: F811
    """Values far apart, whose differences 16 bits do not hold."""
    pytest.importorskip("ml_dtypes")
    found = []
    for device in ("cpu", "cuda"):
        x = fw.tensor([[-300.0, 100.0, 101.0, -5.0, 99.5]], device=device).bfloat16().requires_grad_()
        found.append(fw.autograd.grad(x.logcumsumexp(1).sum(), x)[0].float().tolist()[0])
    np.testing.assert_allclose(found[1], found[0], 2e-2, 2e-2)


# who waits, and why; PyTorch waits there, too
WAIT = {
    "adaptive softmax": "how many targets a cluster has, which is the size of what follows",
    "linear algebra": "whether there is a factor or an inverse, or an error to be raised",
    "normal of several": "whether there is a factor, or an error to be raised",
    "sparse embedding": "how many rows a gradient has once each stands in it once",
    "SparseAdam": "how many rows a gradient has once each stands in it once",
}


@pytest.mark.parametrize("name", STEPS)
def test_common_steps_do_not_wait(name, raw, cupy):  # noqa: F811
    """From the second one on: the first brings constants to the device."""
    pytest.importorskip("ml_dtypes")
    from cupy import counts

    fw.manual_seed(0)
    step = STEPS[name]()
    step()
    counts.clear()
    step()
    waits = dict(counts.waits)
    fw.cuda.synchronize()  # and nothing was wrong
    assert bool(waits) is (name in WAIT), waits


def test_truncated_normal_numbers_are_the_cpus(raw, cupy):  # noqa: F811
    from cupy import counts

    for dtype, close in ((fw.float32, 1e-5), (fw.float64, 1e-12)):
        for given in ((0.0, 1.0, -2.0, 2.0), (0.0, 0.02, -2.0, 2.0), (0.0, 1.0, 3.0, 7.0)):
            ends = []
            for device in ("cpu", "cuda"):
                x, source = fw.empty(3, 5, dtype=dtype, device=device), fw.Generator(device).manual_seed(3)
                counts.clear()
                fw.nn.init.trunc_normal_(x, *given, generator=source)
                assert not counts.waits and counts.launches.total() <= 4
                ends.append(x.tolist())
            np.testing.assert_allclose(ends[1], ends[0], close)


def test_first_calls_of_new_sizes_do_not_wait(raw, cupy):  # noqa: F811
    """The positions that an interpolation, a padding or a spectrum reads; any stream finds them copied."""
    from cupy import counts

    x = fw.ones(1, 2, 6, 7, device="cuda")
    window = fw.hann_window(8, device="cuda")
    counts.clear()
    F.interpolate(x, size=(9, 11), mode="bilinear")
    F.pad(x, (2, 2, 1, 1), mode="reflect")
    x.reshape(-1).stft(8, window=window, return_complex=True)
    assert not counts.waits, dict(counts.waits)
    other = fw.cuda.Stream()
    other.wait_stream(fw.cuda.current_stream())
    with fw.cuda.stream(other):
        again = F.interpolate(x, size=(9, 11), mode="bilinear")
    fw.cuda.current_stream().wait_stream(other)
    assert bool((again.cpu() == 1).all()) and again.shape == (1, 2, 9, 11)


def test_packed_sequences_keep_their_order_on_the_host(raw, cupy):  # noqa: F811
    from cupy import counts

    rnn = fw.nn.utils.rnn
    x = fw.arange(24.0).reshape(4, 3, 2)
    ends = []
    for device in ("cpu", "cuda"):
        packed = rnn.pack_padded_sequence(x.to(device), [2, 4, 1], enforce_sorted=False)
        counts.clear()
        ends.append(rnn.pad_packed_sequence(packed))
        assert not counts.waits
    assert ends[0][0].tolist() == ends[1][0].tolist() and ends[0][1].tolist() == ends[1][1].tolist()
    packed.sorted_indices.copy_(packed.sorted_indices.flip(0))  # the device's order is what counts
    changed = rnn.pad_packed_sequence(packed)
    assert changed[1].tolist() == [2, 1, 4]
    del packed
    assert not rnn._orders


def test_distributions_tell_values_outside_later(raw, cupy):  # noqa: F811
    from cupy import counts

    bad = fw.tensor([-1.0, 1.0], device="cuda")
    made = fw.distributions
    for call, text in (
        (lambda: made.Normal(bad, bad), "Normal: expected parameter scale to satisfy the constraint"),
        (lambda: made.Exponential(bad.abs()).log_prob(bad), "value argument to be within the support"),
        (lambda: made.Geometric(bad + 1), "expected parameter probs to"),
    ):
        counts.clear()
        call()
        assert not counts.waits, dict(counts.waits)
        with pytest.raises(ValueError, match=text + ".*found on cuda:0"):
            fw.cuda.synchronize()
    with pytest.raises(ValueError, match=r"Normal: expected parameter scale \(Tensor of shape \(2,\)\)"):
        made.Normal(bad.cpu(), bad.cpu())


def test_repeats_that_do_not_sum_up_are_told_later(raw, cupy):  # noqa: F811
    x = fw.tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda")
    for dtype in (fw.int64, fw.int32, fw.uint8):
        repeats = fw.tensor([2, 1], dtype=dtype, device="cuda")
        got = x.repeat_interleave(repeats, 0, output_size=3)
        assert got.tolist() == [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]
        assert x.repeat_interleave(repeats[:1], 1, output_size=4).shape == (2, 4)
    x.repeat_interleave(fw.tensor([2, 2], device="cuda"), 0, output_size=3)
    with pytest.raises(fw.errors.ShapeError, match="output_size=3, but the repeats sum to 4.*found on"):
        fw.cuda.synchronize()
    x.repeat_interleave(fw.tensor([-1, 4], device="cuda"), 0, output_size=3)
    with pytest.raises(ValueError, match="repeats must not be negative.*found on cuda:0"):
        fw.cuda.synchronize()


def test_batches_are_counted_on_the_host(raw, cupy):  # noqa: F811
    """The plain mean of a batch norm: the count that others set or load is read again."""
    ends = []
    for device in ("cpu", "cuda"):
        norm, rng = fw.nn.BatchNorm1d(2, momentum=None).to(device), np.random.default_rng(0)
        for step in range(6):
            if step == 3:
                norm.load_state_dict({k: v.clone() for k, v in norm.state_dict().items()})
            if step == 4:
                norm.num_batches_tracked.fill_(7)
            norm(fw.tensor(rng.standard_normal((5, 2)), dtype=fw.float32, device=device))
        ends.append([norm.num_batches_tracked.item(), *norm.running_mean.tolist()])
    assert ends[1] == pytest.approx(ends[0], rel=1e-5) and ends[0][0] == 9


def test_who_waits_is_named(raw, cupy):  # noqa: F811
    """By ``set_sync_debug_mode``: also where CuPy reads a size, or looks whether there is an inverse."""
    x, whole = fw.tensor([[4.0, 1.0], [1.0, 3.0]], device="cuda"), fw.tensor([3, 1, 1], device="cuda")
    calls = {
        "a mask": lambda: x[x > 1], "nonzero": lambda: x.nonzero(), "argwhere": lambda: fw.argwhere(x),
        "masked_select": lambda: x.masked_select(x > 1), "a mask and a slice": lambda: x[x[0] > 1, :1],
        "unique": lambda: whole.unique(), "unique_consecutive": lambda: whole.unique_consecutive(),
        "bincount": lambda: whole.bincount(), "one_hot": lambda: F.one_hot(whole),
        "repeat_interleave": lambda: whole.repeat_interleave(whole), "inv": lambda: x.inverse(),
        "solve": lambda: fw.linalg.solve(x, x), "cholesky": lambda: fw.linalg.cholesky(x),
        "svd": lambda: fw.linalg.svd(x), "eigh": lambda: fw.linalg.eigh(x), "equal": lambda: fw.equal(x, x),
        "item": lambda: x[0, 0].item(), "tolist": lambda: x.tolist(), "cpu": lambda: x.cpu(),
        "ldl_factor": lambda: fw.linalg.ldl_factor(x), "print": lambda: str(x),
        "int": lambda: int(whole[0]), "bool": lambda: bool(x[0, 0]), "index_put": lambda: fw.index_put(
            x, (x > 1, ), x[0, :1]), "matrix_exp": lambda: fw.matrix_exp(x.to(fw.complex64)),
        "synchronize": fw.cuda.synchronize, "event": lambda: fw.cuda.current_stream().synchronize(),
    }
    for call in calls.values():
        call()
        fw.cuda.set_sync_debug_mode("error")
        try:
            with pytest.raises(RuntimeError, match="waits for the device"):
                call()
        finally:
            fw.cuda.set_sync_debug_mode("default")
