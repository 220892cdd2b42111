"""Streams of a device: what has to wait for what, by the clocks of the stand-in (standin/cupy/streams.py)."""

import gc

import numpy as np
import pytest
from device_steps import Run
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw

F = fw.nn.functional


@pytest.fixture
def races(raw, cupy):  # noqa: F811
    """The stand-in looks for uses of memory that are not waited for."""
    from cupy import streams

    gc.collect()
    streams.clear()
    yield streams
    gc.collect()
    streams.clear()


def test_a_missing_wait_shows(races):
    side, x = fw.cuda.Stream(), fw.ones(4, device="cuda")
    waits = {
        "nobody": lambda: None,
        "wait_stream": lambda: fw.cuda.current_stream().wait_stream(side),
        "event": lambda: side.record_event().wait(),
        "host": side.synchronize,
        "device": fw.cuda.synchronize,
        "host event": lambda: side.record_event().synchronize(),
    }
    for name, wait in waits.items():
        side.wait_stream(fw.cuda.current_stream())
        with fw.cuda.stream(side):
            assert fw.cuda.current_stream() == side
            y = x * 2
        wait()
        for use in (lambda y=y: y + 1, lambda y=y: y.tolist(), lambda y=y: y @ y, lambda y=y: y.clone(),
                    lambda y=y: y.exp_(), lambda y=y: F.softmax(y, dim=0)):
            if name == "nobody":
                with pytest.raises(races.Race, match="not waited for"):
                    use()
            else:
                use()
        fw.cuda.synchronize()
    with pytest.raises(races.Race), fw.cuda.stream(side):
        x.add_(fw.ones(4, device="cuda"))
        fw.cuda.current_stream().wait_stream(fw.cuda.default_stream())
        with fw.cuda.stream(fw.cuda.default_stream()):
            x.add_(1)  # written there, and not waited for here
        x.add_(1)


@pytest.mark.parametrize("name", ["mlp", "lstm", "gpt"])
def test_steps_in_a_stream_of_their_own(name, races):
    """Made in the default stream, trained in another, which waits once; two networks beside each other."""
    made = [Run(name, "cuda"), Run(name, "cuda")]
    streams = [fw.cuda.Stream(), fw.cuda.Stream()]
    fw.cuda.synchronize()
    losses = [[], []]
    for _ in range(2):
        for run, stream, kept in zip(made, streams, losses):
            with fw.cuda.stream(stream):
                kept.append(run.step())
    fw.cuda.synchronize()
    assert [x.item() for x in losses[0]] == [x.item() for x in losses[1]]


def test_memory_that_another_stream_uses_is_kept_for_it(races):
    side = fw.cuda.Stream()
    for recorded in (True, False):
        x = fw.ones(1 << 10, device="cuda")
        side.wait_stream(fw.cuda.current_stream())
        with fw.cuda.stream(side):
            y = x * 2
        if recorded:
            x.record_stream(side)
        del x
        if recorded:
            fw.ones(3, device="cuda")
        else:
            with pytest.raises(races.Race, match="given back while stream .* record_stream was not called"):
                fw.ones(3, device="cuda")
        fw.cuda.synchronize()
        assert y.sum().item() == 2 << 10


def test_batches_copied_ahead(races):
    """Pinned batches go to the device in a stream of their own, while the last one is worked on."""
    data = fw.data.TensorDataset(fw.arange(12.0).reshape(6, 2), fw.arange(6) % 2)
    loader = fw.data.DataLoader(data, batch_size=2, pin_memory=True)
    net, copies, found = fw.nn.Linear(2, 2).cuda(), fw.cuda.Stream(), []
    optimizer = fw.optim.Adam(net.parameters())

    def ahead(batch):
        with fw.cuda.stream(copies):
            return [t.to("cuda", non_blocking=True) for t in batch]

    for waits in (True, False):
        batches = iter(loader)
        coming = ahead(next(batches))
        for _ in range(3):
            if waits:
                fw.cuda.current_stream().wait_stream(copies)
            x, y = coming
            if not waits:
                with pytest.raises(races.Race):
                    F.cross_entropy(net(x), y)
                break
            for t in (x, y):
                t.record_stream(fw.cuda.current_stream())
            following = next(batches, None)
            coming = ahead(following) if following is not None else None
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    assert len(found) == 3 and np.isfinite(found).all()


def test_the_scaler_and_the_profiler_in_a_stream(races):
    net, side = fw.nn.Linear(3, 2).cuda(), fw.cuda.Stream()
    optimizer, scaler = fw.optim.Adam(net.parameters()), fw.amp.GradScaler("cuda")
    side.wait_stream(fw.cuda.current_stream())
    with fw.cuda.stream(side), fw.profiler.profile() as prof:
        for _ in range(2):
            optimizer.zero_grad()
            scaler.scale(net(fw.ones(4, 3, device="cuda")).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 2.0**16
    assert {s.gpu for s in prof.spans if s.gpu} == {(0, side.cuda_stream)}


def test_faults_of_a_stream_are_told_when_it_is_waited_for(races):
    side, table, bad = fw.cuda.Stream(), fw.ones(3, 2, device="cuda"), fw.tensor([5], device="cuda")
    fw.cuda.synchronize()
    for wait in (side.synchronize, fw.cuda.synchronize, None):
        with fw.cuda.stream(side):
            out = F.embedding(bad, table)
        assert table.tolist() == [[1.0, 1.0]] * 3  # the default stream found nothing
        with pytest.raises(IndexError, match="input is 5, but the table has 3 rows"), fw.cuda.stream(side):
            out.tolist() if wait is None else wait()
        fw.cuda.synchronize()
    try:
        fw.cuda.set_sync_debug_mode("error")
        with pytest.raises(RuntimeError, match="Stream.synchronize waits for the device"):
            side.synchronize()
        with pytest.raises(RuntimeError, match="Event.synchronize waits for the device"):
            side.record_event().synchronize()
    finally:
        fw.cuda.set_sync_debug_mode("default")


def test_streams_of_other_libraries(races):
    own = fw.cuda.Stream()
    same = fw.cuda.get_stream_from_external(own.cuda_stream, "cuda:0")
    assert isinstance(same, fw.cuda.ExternalStream) and same == own
    with fw.cuda.stream(fw.cuda.ExternalStream(own.cuda_stream)):
        assert fw.cuda.current_stream() == own
    for wrong in (None, True, "7"):
        with pytest.raises(TypeError, match="stream_ptr"):
            fw.cuda.ExternalStream(wrong)


def test_memory_that_is_shared_keeps_the_order_of_streams(races):
    """By DLPack the consumer names its stream, and the producer lets that wait for its own, not the host."""
    from cupy import counts

    side, asked = fw.cuda.Stream(), []
    x = fw.ones(4, device="cuda") * 2

    class Another:
        def __dlpack__(self, **wanted):
            asked.append(wanted["stream"])
            return x.__dlpack__(**wanted)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    with fw.cuda.stream(side):
        fw.ones(4, device="cuda")
    counts.clear()
    for stream in (-1, side.cuda_stream):
        x.__dlpack__(stream=stream)
        seen = races.current.stream.clock[0] <= y_clock(races, side).get(0, 0)
        assert seen is (stream != -1)
    x = x + 1
    with fw.cuda.stream(side):
        z = fw.from_dlpack(Another())
        fw.utils.dlpack.to_dlpack(z)
    fw.from_dlpack(Another())
    assert asked == [side.cuda_stream, 1] and not counts.waits


def y_clock(races, side):
    """How far a stream is certain to come after others."""
    return next(s.clock for s in races._all if s.ptr == side.cuda_stream)


def test_a_stream_brings_its_device_with_it(races):
    """CuPy refuses to make a stream of another device than the current one the current one."""
    there = fw.cuda.Stream("cuda:1")
    with fw.cuda.stream(there):
        assert fw.cuda.current_device() == 1 and fw.ones(1, device="cuda").device.index == 1
        with fw.cuda.stream(fw.cuda.ExternalStream(there.cuda_stream, "cuda:1")):
            assert fw.cuda.current_stream() == there
    assert fw.cuda.current_device() == 0
    mark = fw.cuda.Event()
    mark.record(there)
    there.record_event().wait(there)
    try:
        fw.cuda.set_stream(there)
        assert fw.cuda.current_device() == 1 and fw.cuda.current_stream() == there
    finally:
        fw.cuda.set_device(0)
        fw.cuda.set_stream(fw.cuda.default_stream())


def test_pinned_memory_is_copied_anew_at_each_replay(races, monkeypatch):
    """CuPy's own functions refuse to copy from the host in a capture, of any memory."""
    monkeypatch.setattr(races.Uses, "use", lambda *given: None)
    monkeypatch.setattr(races.Uses, "free", lambda *given: None)
    host = fw.zeros(3).pin_memory()
    graph = fw.cuda.CUDAGraph()
    with fw.cuda.graph(graph):
        y = host.to("cuda", non_blocking=True) + 1
    for number in (4, 7):
        host.fill_(number)
        graph.replay()
        assert y.tolist() == [number + 1] * 3
    fw.cuda.graph.default_capture_stream = None
    with pytest.raises(RuntimeError, match="not in rows"), fw.cuda.graph(fw.cuda.CUDAGraph()):
        fw.zeros(4, 2).pin_memory().T.to("cuda", non_blocking=True)
    fw.cuda.graph.default_capture_stream = None


def in_streams(make, backward, sides=2):
    """What ``backward`` gives of the results of ``make(side)``, each computed in a stream of its own."""
    streams = [fw.cuda.Stream() for _ in range(sides)]
    found = []
    for side in streams:
        side.wait_stream(fw.cuda.current_stream())
        with fw.cuda.stream(side):
            found.append(make())
    for side in streams:
        fw.cuda.current_stream().wait_stream(side)
    return backward(found)


def added(outs):
    """Backward of the sum of all."""
    total = sum(y.sum() for y in outs)
    del outs
    total.backward()


def twice(outs):
    """The gradient of a gradient, of which each part is made in the stream of its forward."""
    total = sum((y * y).sum() for y in outs)
    (g,) = fw.autograd.grad(total, X, create_graph=True)
    g.square().sum().backward()


X = None
BACKWARDS = {
    "one": lambda outs: added(outs[:1]),
    "all": added,
    "at once": lambda outs: fw.autograd.backward([y.sum() for y in outs]),
    "gradient of a gradient": twice,
}
CALLS = {
    "chain": lambda x: (x * 2).exp().tanh(),
    "branches": lambda x: (x * 2).exp() + (x * 3).tanh() * x,
    "several outputs": lambda x: x.split(2, 1)[0] * x.split(2, 1)[1],
    "checkpoint": lambda x: fw.utils.checkpoint.checkpoint(lambda x: (x * 2).exp(), x, use_reentrant=False),
    "embedding": lambda x: F.embedding(fw.tensor([1, 1, 0], device=x.device), x),
    "hook": lambda x: hooked(x * 3).exp(),
}


def hooked(y):
    y.register_hook(lambda g: g * 2)
    return y


@pytest.mark.parametrize("name", CALLS)
def test_backward_runs_in_the_streams_of_forward(name, races):
    """From outside of them, once, of several, and of gradients: no memory is given back too soon, no wait
    is missing, and the numbers are those of one stream."""
    call = CALLS[name]
    for way, backward in BACKWARDS.items():
        ends = []
        for device in ("cpu", "cuda"):
            global X
            X = fw.tensor(np.random.default_rng(0).standard_normal((3, 4)), device=device).requires_grad_()
            if device == "cpu":
                backward([call(X) for _ in range(2)])
            else:
                in_streams(lambda: call(X), backward)  # nobody has waited here, and all may be used
            ends.append((X.grad * 1).tolist())
        np.testing.assert_allclose(ends[1], ends[0], 1e-12, err_msg=way)


def test_backward_leaves_the_streams_that_it_found(races):
    side, other = fw.cuda.Stream(), fw.cuda.Stream()
    x = fw.ones(4, device="cuda", requires_grad=True)
    side.wait_stream(fw.cuda.current_stream())
    with fw.cuda.stream(side):
        y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(fw.cuda.current_stream()))
    other.wait_stream(side)
    with fw.cuda.stream(other):
        (g,) = fw.autograd.grad(y.sum(), y)
        z = g + 1
        y.sum().backward()
        assert fw.cuda.current_stream() == other
        assert (x.grad * 1 + z).tolist() == [4.0] * 4
    assert seen == [side, side] and fw.cuda.current_stream() == fw.cuda.default_stream()
    with pytest.raises(ValueError, match="a hook fails"):
        w = fw.ones(2, device="cuda", requires_grad=True)
        side.wait_stream(fw.cuda.current_stream())
        with fw.cuda.stream(side):
            v = w * 2
            v.register_hook(failing)
        fw.cuda.current_stream().wait_stream(side)
        v.sum().backward()
    assert fw.cuda.current_stream() == fw.cuda.default_stream()


def failing(g):
    raise ValueError("a hook fails")


def test_a_stream_that_is_chosen_for_good(races):
    x, side = fw.ones(4, device="cuda", requires_grad=True), fw.cuda.Stream()
    side.wait_stream(fw.cuda.current_stream())
    try:
        fw.cuda.set_stream(side)
        y = (x * 2).exp()
    finally:
        fw.cuda.set_stream(fw.cuda.default_stream())
    fw.cuda.current_stream().wait_stream(side)
    y.sum().backward()
    del y
    assert (x.grad * 1).tolist() == pytest.approx([2 * np.exp(2.0)] * 4)


def test_streams_of_two_devices(races):
    if fw.cuda.device_count() < 2:
        pytest.skip("there is one GPU here")
    first, second = fw.cuda.Stream("cuda:0"), fw.cuda.Stream("cuda:1")
    x = fw.ones(4, device="cuda:0", requires_grad=True)
    first.wait_stream(fw.cuda.current_stream())
    with fw.cuda.stream(first):
        y = (x * 2).exp()
    second.wait_stream(first)
    with fw.cuda.device(1), fw.cuda.stream(second):
        z = y.to("cuda:1").tanh()
    fw.cuda.current_stream("cuda:1").wait_stream(second)
    z.sum().backward()
    del y, z
    want = fw.ones(4, requires_grad=True)
    (want * 2).exp().tanh().sum().backward()
    assert (x.grad * 1).tolist() == pytest.approx(want.grad.tolist())
