"""Numbers drawn by kernels: those that the CPU draws from the same state, call after call."""

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw

NORMAL, UNIFORM = fw.randn, fw.rand


@pytest.mark.parametrize("backward", [False, True])
def test_numbers_equal_the_cpus(backward, raw, cupy):  # noqa: F811
    """Any sizes one after the other, of words and half words, from any state; one launch and no copy each."""
    from cupy import counts

    pytest.importorskip("ml_dtypes")
    raw.settings.update(backward=backward, guarded=True)
    cpu, gpu = fw.Generator(), fw.Generator("cuda")
    states = [fw.Generator().manual_seed(7).get_state()]
    words = states[0].numpy().view("<u8").copy()
    words[4:8] = [2 ** 64 - 2, 2 ** 64 - 1, 2 ** 64 - 1, 5]  # the counter carries over
    states.append(fw.tensor(words.view("u1")))
    rng, kinds = np.random.default_rng(0), (fw.float32, fw.float64, fw.float16, fw.bfloat16)
    for state in states:
        cpu.set_state(state), gpu.set_state(state)
        for k in range(60):
            draw = NORMAL if k % 3 else UNIFORM
            kind = kinds[int(rng.integers(4))]
            shape = (int(rng.integers(1, 12)), int(rng.integers(1, 4)) if k % 7 else 300)
            counts.clear()
            got = draw(shape, dtype=kind, generator=gpu, device="cuda")
            assert counts.launches == {"draw": 1} and not counts.copies and not counts.waits
            want = draw(shape, dtype=kind, generator=cpu)
            assert got.dtype == want.dtype and got.tolist() == want.tolist(), (k, kind, shape)
    assert cpu.get_state().tolist() == gpu.get_state().tolist()


def test_numbers_far_out_and_the_default_generator(raw, cupy):  # noqa: F811
    fw.cuda.manual_seed(3), fw.manual_seed(3)
    for kind in (fw.float32, fw.float64):
        got, want = fw.randn(40000, dtype=kind, device="cuda"), fw.randn(40000, dtype=kind)
        np.testing.assert_array_max_ulp(got.cpu().numpy(), want.numpy(), 2)
        assert got.abs().max().item() > 3.9
    before = fw.cuda.get_rng_state()
    x = fw.randn(5, device="cuda")
    fw.cuda.set_rng_state(before)
    assert fw.randn(5, device="cuda").tolist() == x.tolist()
    graph = fw.cuda.CUDAGraph()
    try:
        with fw.cuda.graph(graph):  # which takes nothing from the state until it is replayed
            fw.randn(3, device="cuda")
        assert fw.randn(5, device="cuda").tolist() != x.tolist()
        fw.cuda.set_rng_state(before)
        with fw.cuda.graph(graph := fw.cuda.CUDAGraph()):
            fw.randn(3, device="cuda")
        assert fw.cuda.get_rng_state().tolist() == before.tolist()
        graph.replay()
        assert fw.cuda.get_rng_state().tolist() != before.tolist()
    finally:
        from cupy import streams

        fw.cuda.graph.default_capture_stream = None
        streams.clear()


F = fw.nn.functional
DRAWS = {  # a call of (a floating tensor in [0, 1), its device): how many launches it may take
    "bernoulli": (lambda x, d: fw.bernoulli(x), 4),
    "bernoulli of one chance": (lambda x, d: fw.bernoulli(x, 0.3), 3),
    "bernoulli_": (lambda x, d: fw.zeros(4, 30, device=d).bernoulli_(x), 6),
    "normal": (lambda x, d: fw.normal(x, x * 2), 4),
    "normal of one deviation": (lambda x, d: fw.normal(x, 0.5), 3),
    "normal of one mean": (lambda x, d: fw.normal(2.0, x), 4),
    "normal_": (lambda x, d: fw.empty_like(x).normal_(1.0, 3.0), 4),
    "uniform_": (lambda x, d: fw.empty_like(x).uniform_(), 2),
    "uniform_ of bounds": (lambda x, d: fw.empty_like(x).uniform_(-3, 5), 4),
    "exponential_": (lambda x, d: fw.empty_like(x).exponential_(2.0), 4),
    "cauchy_": (lambda x, d: fw.empty_like(x).cauchy_(1.0, 2.0), 4),
    "log_normal_": (lambda x, d: fw.empty_like(x).log_normal_(0.5, 0.3), 4),
    "geometric_": (lambda x, d: fw.empty_like(x).geometric_(0.2), 4),
    "geometric_ of integers": (lambda x, d: fw.empty(7, dtype=fw.int32, device=d).geometric_(0.2), 4),
    "complex numbers": (lambda x, d: fw.randn(5, dtype=fw.complex64, device=d), 2),
    "uniform complex numbers": (lambda x, d: fw.rand(5, dtype=fw.complex128, device=d), 1),
    "multinomial": (lambda x, d: fw.multinomial(x, 1), 2),
    "multinomial, replaced": (lambda x, d: fw.multinomial(x, 50, True), 2),
    "multinomial of a row": (lambda x, d: fw.multinomial(x.reshape(-1), 9, True), 2),
    "multinomial, none twice": (lambda x, d: fw.multinomial(x, 20), 3),
    "rrelu": (lambda x, d: F.rrelu(x - 0.5, training=True), 5),
    "gumbel_softmax": (lambda x, d: F.gumbel_softmax(x), 6),
    "dropout2d": (lambda x, d: F.dropout2d(x.reshape(2, 3, 4, 5), 0.4), 4),
    "alpha_dropout": (lambda x, d: F.alpha_dropout(x, 0.4, True), 7),
    "feature_alpha_dropout": (lambda x, d: F.feature_alpha_dropout(x.reshape(2, 3, 4, 5), 0.4, True), 7),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_what_is_made_of_draws_is_made_on_the_device(dtype, raw, cupy):  # noqa: F811
    """The CPU's numbers in few launches, in both orders of threads; nobody waits, nothing is copied."""
    from cupy import counts

    pytest.importorskip("ml_dtypes")
    raw.settings.update(guarded=True)
    chances = np.random.default_rng(0).random((4, 30))
    chances[1, :5] = 0
    close = {"float32": 2e-6, "float64": 1e-14, "bfloat16": 1e-2}[dtype]
    for name, (call, most) in DRAWS.items():
        found = []
        for device, backward in (("cpu", False), ("cuda", False), ("cuda", True)):
            raw.settings.update(backward=backward)
            fw.manual_seed(5), fw.cuda.manual_seed(5)
            x = fw.tensor(chances).to(device, getattr(fw, dtype))
            for _ in range(2):  # the flag of the stream is made by the first one
                counts.clear()
                y = call(x, device)
            assert not counts.waits and not counts.copies, (name, counts.waits, counts.copies)
            assert counts.launches.total() <= most + (dtype == "bfloat16"), (name, counts.launches)
            assert str(y.device).startswith(device)
            rest = fw.rand(3, device=device)  # which says where the generator is
            wide = fw.complex128 if y.is_complex() else fw.float64
            found.append((str(y.dtype), y.to(wide).cpu().numpy(), rest.cpu().numpy()))
        fw.cuda.synchronize()
        for got in found[1:]:
            assert got[0] == found[0][0] and got[2].tolist() == found[0][2].tolist(), name
            np.testing.assert_allclose(got[1], found[0][1], close, close, err_msg=name)
        assert found[1][1].tobytes() == found[2][1].tobytes(), name


def test_wrong_chances_are_told_at_the_next_wait(raw, cupy):  # noqa: F811
    from cupy import counts

    x, table = fw.tensor([0.5, 1.5], device="cuda"), fw.tensor([[1.0, 2.0], [0.0, 0.0]], device="cuda")
    for call, text in (
        (lambda: fw.bernoulli(x), "bernoulli: probabilities must be in .0, 1., found 1.5"),
        (lambda: fw.bernoulli(x * float("nan")), "bernoulli: .* found nan"),
        (lambda: fw.normal(x, -x), "normal: std must not be negative, got -"),
        (lambda: fw.multinomial(table, 1), "multinomial: the weights of row 1 are all 0"),
        (lambda: fw.multinomial(-x, 1), "multinomial: weights must be finite and not negative, found -"),
        (lambda: fw.multinomial(x / 0, 2), "multinomial: weights must be finite and not negative, found inf"),
        (lambda: fw.multinomial(table[:, :1] + table, 2), "multinomial: the weights of row 1 are all 0"),
        (lambda: fw.multinomial(table * (table < 2), 2), "2 samples .* need as many .* row 0 has 1"),
    ):
        counts.clear()
        call()
        assert not counts.waits, text
        with pytest.raises(ValueError, match=text + ".*found on cuda:0"):
            fw.cuda.synchronize()
    with pytest.raises(ValueError, match="3 samples without replacement .* there are 2 weights"):
        fw.multinomial(table, 3)
    fw.cuda.synchronize()  # told once


def test_states_of_the_devices_of_arguments(cupy):  # noqa: F811
    """``utils.checkpoint.get_device_states``: for code that computes something again by itself."""
    from framework.utils.checkpoint import get_device_states, set_device_states
    x = fw.ones(2, device="cuda")
    devices, states = get_device_states(fw.ones(2), [x, {"more": x}], 3)
    assert devices == [0] and len(states) == 1
    first = fw.rand(5, device="cuda").tolist()
    set_device_states(devices, states)
    assert fw.rand(5, device="cuda").tolist() == first
    with pytest.raises(ValueError, match="1 devices and 0 states"):
        set_device_states(devices, [])
    with pytest.raises(ValueError, match="device_type must be 'cuda', got 'xpu'"):
        set_device_states([], [], device_type="xpu")
