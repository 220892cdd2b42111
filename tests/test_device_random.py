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
            kind = kinds[int(rng.integers(4 if k % 3 else 2))]
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
        with pytest.raises(RuntimeError, match="the same at each replay"), fw.cuda.graph(graph):
            fw.randn(3, device="cuda")
    finally:
        from cupy import streams

        fw.cuda.graph.default_capture_stream = None
        streams.clear()
