"""The seam: interceptors see, change and replace everything that a thread computes."""

import inspect
import signal
import threading
import types
from functools import partial

import numpy as np
import pytest
from optimizer_rows import ROWS as OPTIMIZERS
from table import ROWS, TABLE, cast_inputs, changes_inputs, row_id, tensors

import framework as fw
from framework.ops.image import joined
from framework.ops.record.op import OPS, Op
from framework.ops.record.public import PUBLIC
from framework.quiet import quiet
from framework.seam import BACKWARD, OP, STEP, WRITE, intercept

nn = fw.nn


class Recorder:
    """An interceptor that notes the events, and whose results they are."""

    def __init__(self):
        self.events, self.results = [], []

    def __call__(self, event, proceed):
        self.events.append(event)
        result = proceed(*event.inputs, **event.settings)
        self.results += arrays_in(result)
        return result

    def names(self, kind=OP):
        return [e.name for e in self.events if e.kind == kind]

    def made(self, array):
        return any(array is a for a in self.results)


def arrays_in(value):
    if isinstance(value, fw.Tensor):
        return [value._array]
    return [a for v in value for a in arrays_in(v)] if isinstance(value, (tuple, list)) else []


@pytest.fixture
def recorder():
    seen = Recorder()
    with intercept(seen):
        yield seen


# -- every public function ------------------------------------------------------------------------

# what hands its argument on as it is, or asks about a tensor: nothing is computed
NO_COMPUTATION = {
    "method.to", "positive", "resolve_conj", "resolve_neg", "nn.functional.dropout",
    "nn.functional.dropout1d", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
    "method.is_shared", "method.share_memory_", "method.storage_offset", "is_complex", "is_conj", "is_neg",
    "is_nonzero", "is_same_size", "is_signed", "result_type", "broadcast_shapes",
}
# beside the result, a tensor made of numbers: whether it worked, or the edges of bins
BESIDE = {"linalg.cholesky_ex", "linalg.inv_ex", "linalg.solve_ex", "histogram", "histogramdd"}
# the answer is a bool, made of the result of an op
BOOLEAN = {"allclose", "equal", "method.__contains__", "method.__setitem__"}


@pytest.mark.parametrize("row", [r for r in ROWS if r.samples], ids=row_id)
def test_every_public_function_is_seen(row):
    """What a public function returns is the result of a call that the seam has seen."""
    sample = row.samples[0]
    xs = tensors(cast_inputs(sample, np.float64))
    seen = Recorder()
    with intercept(seen):
        results = arrays_in(sample.call(fw, *xs))
    name = row_id(row)
    if name in NO_COMPUTATION:
        assert not any(e.kind == OP and e.name == row.name for e in seen.events), "it is seen after all"
        return
    assert seen.events
    if name in BESIDE:
        results = results[:1]
    if name not in BOOLEAN:
        assert results and all(map(seen.made, results))


@pytest.mark.parametrize("row", [r for r in ROWS if r.samples and r.samples[0].grad], ids=row_id)
def test_every_derivative_is_seen(row):
    """Backward pulls each node past the seam once."""
    sample = row.samples[0]
    xs = tensors(cast_inputs(sample, np.float64), grad=True)
    floating = [x for x in xs if isinstance(x, fw.Tensor) and x.requires_grad]
    ys = sample.call(fw, *[x * 1 if isinstance(x, fw.Tensor) and x.requires_grad else x for x in xs])
    ys = [y for y in (ys if isinstance(ys, tuple) else (ys,)) if isinstance(y, fw.Tensor) and y.requires_grad]
    if not ys:
        pytest.skip("nothing is recorded")
    nodes, stack = set(), [y._node for y in ys]
    while stack:
        node = stack.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            stack += node.edges
    seen = Recorder()
    with intercept(seen):
        fw.autograd.grad(ys, floating, [fw.ones_like(y) for y in ys], allow_unused=True)
    pulled = [e.node for e in seen.events if e.kind == BACKWARD]
    assert pulled and nodes.issuperset(pulled) and len(pulled) == len(set(pulled))
    assert {n.op for n in nodes if hasattr(n, "op") and n in pulled}


@pytest.mark.parametrize("row", [r for r in ROWS if r.samples and changes_inputs(r)], ids=row_id)
def test_every_form_in_place_is_seen(row):
    """What changes a tensor is a write into its memory."""
    sample = row.samples[0]
    xs = tensors(cast_inputs(sample, np.float64))
    before = [x._array.copy() if isinstance(x, fw.Tensor) else None for x in xs]
    seen = Recorder()
    with intercept(seen):
        sample.call(fw, *xs)
    changed = [x for x, old in zip(xs, before) if old is not None and old.tobytes() != x._array.tobytes()]
    written = [e.into for e in seen.events if e.kind == WRITE]
    assert all(any(np.shares_memory(x._array, w._array) for w in written) for x in changed)


WITH_OUT = [p for p in PUBLIC if hasattr(p.function, "without_out") and p.namespace
            and (p.namespace, p.name) in TABLE and TABLE[p.namespace, p.name].samples]


@pytest.mark.parametrize("p", WITH_OUT, ids=lambda p: f"{p.namespace}.{p.name}")
def test_every_out_is_seen(p, monkeypatch):
    """Results given by ``out=`` are written there in sight."""
    home = fw
    for part in p.namespace.split("."):
        home = home if part == "framework" else getattr(home, part)
    calls = []

    def noted(*args, **settings):
        result = p.function(*args, **settings)
        calls.append((args, settings, result))
        return result
    sample = TABLE[p.namespace, p.name].samples[0]
    xs = tensors(cast_inputs(sample, np.float64))
    with monkeypatch.context() as patch:
        patch.setattr(home, p.name, noted)
        sample.call(fw, *xs)
    if not calls or "out" in calls[0][1]:
        pytest.skip("the sample calls another form")
    args, settings, result = calls[0]
    results = result if isinstance(result, tuple) else (result,)
    outs = tuple([fw.full_like(r, 1) for r in results])
    seen = Recorder()
    with intercept(seen):
        p.function(*args, **settings, out=outs if isinstance(result, tuple) else outs[0])
    written = [e.into for e in seen.events if e.kind == WRITE]
    for out, r in zip(outs, results):
        assert fw.equal(out, r) or r.dtype.is_floating_point or r.dtype.is_complex
        assert any(w is out or np.shares_memory(w._array, out._array) for w in written) or not out.numel()


# -- what is not a plain call ---------------------------------------------------------------------


def test_in_place_and_out(recorder):
    x, y, out = fw.ones(3), fw.tensor([1.0, 2.0, 3.0]), fw.zeros(3)
    calls = {
        "add_": lambda: x.add_(y), "+=": lambda: x.__iadd__(y), "mul_": lambda: x.mul_(2.0),
        "out": lambda: fw.add(x, y, out=out), "out of a sum": lambda: fw.sum(x, out=fw.zeros(())),
        "setitem": lambda: x.__setitem__(0, 5.0), "rows": lambda: x.__setitem__(fw.tensor([0, 1]), 1.0),
        "mask": lambda: x.__setitem__(x > 0, 2.0), "copy_": lambda: x.copy_(y), "fill_": lambda: x.fill_(1.0),
        "zero_": lambda: x.zero_(), "normal_": lambda: x.normal_(), "clamp_": lambda: x.clamp_(0.0, 1.0),
        "index_put_": lambda: x.index_put_((fw.tensor([0]),), fw.tensor([9.0])),
        "view": lambda: x[:2].add_(1.0),
    }
    for name, call in calls.items():
        recorder.events.clear()
        call()
        written = [e.into for e in recorder.events if e.kind == WRITE]
        assert len(written) == 1, name
        assert np.shares_memory(written[0]._array, x._array) or "out" in name


def test_recorded_writes_are_seen(recorder):
    w = fw.ones(3, requires_grad=True)
    x = w * 2
    x[0] = 7.0
    x.mul_(3.0)
    x[1:].add_(w[1:])
    assert recorder.names(WRITE) == ["fill"] * 3
    x.sum().backward()
    assert "put_view" in recorder.names(BACKWARD) and fw.equal(w.grad, fw.tensor([0.0, 7.0, 7.0]))


def test_views_are_seen(recorder):
    x = fw.ones(4, 6)
    for make in (lambda: x[1], lambda: x[:, 2:4], lambda: x.T, lambda: x.reshape(-1), lambda: x.diagonal(),
                 lambda: x.narrow(0, 1, 2), lambda: x.unbind()[0], lambda: x.split(2)[1],
                 lambda: x.expand(2, 4, 6)):
        recorder.events.clear()
        y = make()
        assert recorder.events and recorder.made(y._array) and y._base is x


LAYERS = {"linear_relu": (nn.Linear(4, 5), (2, 4)), "conv_relu": (nn.Conv2d(3, 4, 3), (2, 3, 8, 8))}


@pytest.mark.parametrize("name", LAYERS)
def test_fused_layers_fall_apart_or_are_one_call(name):
    layer, shape = LAYERS[name]
    model, x = nn.Sequential(layer, nn.ReLU()), fw.randn(*shape)
    wanted = model(x)
    apart, whole = Recorder(), Recorder()
    with intercept(apart):
        got = model(x)
    assert apart.names()[-1] == "relu" and name not in apart.names() and fw.equal(got, wanted)
    with intercept(whole, shortcuts=True):
        got = model(x)
        got.sum().backward()
    assert fw.equal(got, wanted) and whole.names(BACKWARD)[1:2] == ["relu"]
    assert whole.names()[-2:] == ([name, "sum"] if joined._conv_then else ["relu", "sum"])


def test_writes_straight_into_memory_are_one_event_with_shortcuts():
    x, y, seen = fw.ones(3), fw.ones(3), Recorder()
    with intercept(seen, shortcuts=True):
        x.add_(y)
        fw.mul(x, 2.0, out=x)
    assert [(e.kind, e.name) for e in seen.events] == [(WRITE, "add"), (WRITE, "mul")]
    assert fw.equal(x, fw.full((3,), 4.0))


@pytest.mark.parametrize("make", [
    lambda p: fw.optim.SGD(p, lr=0.1), lambda p: fw.optim.Adam(p), lambda p: fw.optim.LBFGS(p)])
def test_optimizer_steps_are_seen(make, recorder):
    model = nn.Linear(2, 1)
    optimizer = make(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = model(fw.ones(3, 2)).square().mean()
        loss.backward()
        return loss
    before = model.weight.clone()
    optimizer.step(closure)
    (event,) = [e for e in recorder.events if e.kind == STEP]
    assert event.op is optimizer and event.inputs == tuple(model.parameters())
    assert not fw.equal(before, model.weight)
    assert "linear" in recorder.names() and "linear" in recorder.names(BACKWARD)


@pytest.mark.parametrize("name", sorted({row.name for row in OPTIMIZERS.values()}))
def test_every_optimizer_is_seen(name):
    model = nn.Embedding(3, 2, sparse=name == "SparseAdam")
    optimizer = getattr(fw.optim, name)(model.parameters(), **({} if name == "LBFGS" else {"lr": 0.1}))

    def closure():
        optimizer.zero_grad()
        loss = model(fw.tensor([0, 1, 2])).square().sum()
        loss.backward()
        return loss
    before, steps = model.weight.clone(), []

    def look(event, proceed):
        steps.extend([event] if event.kind == STEP else [])
        return proceed(*event.inputs, **event.settings)
    with intercept(look):
        optimizer.step(closure)
    (event,) = steps
    assert event.op is optimizer and event.inputs == (model.weight,)
    assert not fw.equal(before, model.weight)


def test_a_step_that_is_replaced_changes_nothing():
    w = fw.ones(2, requires_grad=True)
    w.grad = fw.ones(2)
    with intercept(lambda event, proceed: None):
        fw.optim.SGD([w], lr=1.0).step()
    assert fw.equal(w.detach(), fw.ones(2))


def test_functions_and_second_derivatives(recorder):
    class Cube(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x
    x = fw.tensor([2.0], requires_grad=True)
    (g,) = fw.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    assert "Cube" in recorder.names(BACKWARD) and recorder.names().count("mul") == 5
    (h,) = fw.autograd.grad(g.sum(), x)
    assert h.item() == 12.0


def test_forward_mode_is_seen(recorder):
    forward_ad = fw.autograd.forward_ad
    with forward_ad.dual_level():
        y = forward_ad.make_dual(fw.tensor([2.0]), fw.tensor([1.0])).exp()
        assert forward_ad.unpack_dual(y).tangent.item() == pytest.approx(np.exp(2.0))
    assert recorder.names().count("exp") == 1 and "gate" in recorder.names()


# -- what interceptors can do ---------------------------------------------------------------------


def test_inputs_settings_and_results_can_be_replaced():
    def doubled(event, proceed):
        return proceed(*[x * 2 if isinstance(x, fw.Tensor) else x for x in event.inputs], **event.settings)

    def along_rows(event, proceed):
        return proceed(*event.inputs, **{**event.settings, **({"dims": (1,)} if event.name == "sum" else {})})
    x = fw.tensor([[1.0, 2.0], [3.0, 4.0]])
    with intercept(doubled):
        assert fw.equal(x.detach().neg(), fw.tensor([[-2.0, -4.0], [-6.0, -8.0]]))
    with intercept(along_rows):
        assert fw.equal(x.sum(0), fw.tensor([3.0, 7.0]))
    with intercept(lambda event, proceed: "instead"):
        assert x + x == "instead" and x[0] == "instead" and x.exp() == "instead"


def test_replaced_gradients():
    x = fw.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp().sum()

    def zeros(event, proceed):
        grads = proceed(*event.inputs, **event.settings)
        return [g * 0 for g in grads] if event.name == "exp" else grads
    with intercept(zeros):
        y.backward()
    assert fw.equal(x.grad, fw.zeros(2))


def test_blocks_nest_and_an_interceptor_is_seen_by_those_around():
    order = []

    def inner(event, proceed):
        order.append(f"inner {event.name}")
        return fw.exp(proceed(*event.inputs, **event.settings))

    def outer(event, proceed):
        order.append(f"outer {event.name}")
        return proceed(*event.inputs, **event.settings)
    x = fw.tensor([1.0])
    with intercept(outer), intercept(inner):
        x.neg()
    assert order == ["inner neg", "outer neg", "outer exp"]
    assert quiet.run is quiet.plain and quiet.whole


def test_errors_pass_and_end_the_block():
    def failing(event, proceed):
        raise KeyError(event.name)
    x = fw.ones(2)
    with pytest.raises(KeyError, match="add"), intercept(failing):
        x + 1
    with pytest.raises(fw.errors.ShapeError, match="add"), intercept(Recorder()):
        fw.ones(2) + fw.ones(3)
    assert quiet.run is quiet.plain
    assert fw.equal(fw.ones(2) + 1, fw.full((2,), 2.0))


def test_other_threads_are_not_seen(recorder):
    threads = [threading.Thread(target=lambda: fw.ones(3) + 1) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not recorder.events


def test_a_thread_that_dies_inside_a_block_leaves_nothing_behind():
    def die():
        intercept(Recorder()).__enter__()
        fw.autograd.set_detect_anomaly(True)
        fw.ones(2) + 1
    thread = threading.Thread(target=die)
    thread.start()
    thread.join()
    assert quiet.run is quiet.plain and not fw.is_anomaly_enabled()


def test_one_interceptor_twice():
    seen = Recorder()
    both, x = intercept(seen), fw.ones(2)
    with both, both:
        x + 1
    assert len(seen.events) == 2 and quiet.run is quiet.plain


# -- calls within calls ---------------------------------------------------------------------------


def _interrupted(call, times):
    """Whether ``call`` was run so often by a signal handler within the kernel of another call."""
    inside, errors, going = [0], [], [True]

    def handler(number, frame):
        names = set()
        while frame is not None:
            names.add(frame.f_code.co_name)
            frame = frame.f_back
        try:
            call()
        except RuntimeError as error:  # the kernel's call would take it for its own, and run the kernel again
            errors.append(error)
        inside[0] += "slow_kernel" in names
        if going[0]:  # once more, and not before this one is over, which on a busy machine may take longer
            signal.setitimer(signal.ITIMER_REAL, 5e-4)

    def slow_kernel(xp, x):
        for _ in range(200):
            x = x + 1
        return x
    slow = Op("slow", "x", kernel=slow_kernel)
    OPS.remove(slow)
    x, rounds = fw.ones(2), 0
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 5e-4)
    try:
        while inside[0] < times and rounds < 20000:
            slow.run(x)
            rounds += 1
    finally:
        going[0] = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not errors
    return inside[0] >= times


HOMES = fw, fw.Tensor, nn.functional, fw.linalg, fw.special, fw.fft
LOOKING = {
    "autocast": partial(fw.autocast, "cpu"), "anomaly mode": fw.autograd.detect_anomaly,
    "the profiler": partial(fw.profiler.profile, record_shapes=True),
    "an interceptor": lambda: intercept(lambda event, proceed: proceed(*event.inputs, **event.settings)),
    "forward mode": fw.autograd.forward_ad.dual_level,
    "hooks on saved tensors": lambda: fw.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
}


def _functions():
    """What tools ask of every public function: its identity, code, signature and, of some, its source."""
    for home in HOMES:
        for i, (name, f) in enumerate(sorted(vars(home).items())):
            if isinstance(f, types.FunctionType) and not name.startswith("_"):
                yield (id(f), f.__code__, f.__defaults__, f.__kwdefaults__, f.__qualname__, f.__module__,
                       inspect.signature(f), inspect.getsource(f) if i % 16 == 0 else None)


@pytest.mark.parametrize("name", LOOKING)
def test_functions_are_the_same_while_somebody_looks(name):
    """Nothing is put in place of a public function, or of its code: not even while it is called."""
    before = list(_functions())
    assert len(before) > 1000
    with LOOKING[name]():
        nn.functional.mse_loss(nn.functional.linear(fw.ones(2, 2), fw.ones(2, 2)), fw.ones(2, 2))
        assert list(_functions()) == before
    assert list(_functions()) == before


X, V = fw.randn(32, 48), fw.zeros(64, 64)
CALLS = {
    "linear and relu": (nn.Sequential(nn.Linear(48, 64), nn.ReLU()), X),
    "conv and relu": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), fw.randn(2, 3, 16, 16)),
    "conv, norm and relu": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval(),
                            fw.randn(2, 3, 16, 16)),
    "add": (lambda x: x + x, X), "tanh": (fw.tanh, X), "softmax": (lambda x: x.softmax(1), X),
    "in place": (lambda x: x.add_(1.0), V), "out": (lambda x: fw.add(x, 1.0, out=x), V),
    "slice": (lambda x: x[1:3], X), "setitem": (lambda x: x.__setitem__(0, 1.0), V),
    "index": (lambda x: x[fw.tensor([1, 2])], X),
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("name", CALLS)
def test_a_signal_handler_may_compute_inside_any_call(name):
    """NumPy's state cannot be entered twice by one thread; who is second goes another way."""
    call, x = CALLS[name]
    with fw.no_grad():
        assert _interrupted(lambda: call(x), 10)


# -- functions that write into several tensors at once ----------------------------------------------


def with_gradients():
    layer = nn.Linear(3, 2)
    for p in layer.parameters():
        p.grad = fw.full(p.shape, 5.0)
    return layer


def unscale(layer):
    scaler = fw.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(fw.ones(1))
    scaler.unscale_(fw.optim.SGD(layer.parameters(), lr=0.1))


SEVERAL = {
    "clip_grad_norm_": lambda layer: nn.utils.clip_grad_norm_(layer.parameters(), 0.1),
    "clip_grad_value_": lambda layer: nn.utils.clip_grad_value_(layer.parameters(), 0.1),
    "unscale_": unscale,
    "zero_grad": lambda layer: fw.optim.SGD(layer.parameters(), lr=0.1).zero_grad(set_to_none=False),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_functions_that_change_all_gradients_are_seen(name):
    plain, seen, recorder = with_gradients(), with_gradients(), Recorder()
    SEVERAL[name](plain)
    with intercept(recorder):
        SEVERAL[name](seen)
    written = [e.into for e in recorder.events if e.kind == WRITE]
    assert all(any(p.grad is x for x in written) for p in seen.parameters())
    for p, q in zip(plain.parameters(), seen.parameters()):
        assert p.grad.tolist() == q.grad.tolist() and p.grad.tolist() != fw.full(p.shape, 5.0).tolist()


def test_rows_of_an_embedding_that_shrink_are_seen(recorder):
    table = fw.ones(2, 2) * 5
    nn.functional.embedding(fw.tensor([0]), table, max_norm=1.0)
    assert any(e.into is table for e in recorder.events if e.kind == WRITE)
    assert table[0].norm().item() == pytest.approx(1, abs=1e-6)
