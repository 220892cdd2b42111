"""Exportable traces: every function of the table, what they refuse, writes, files."""

import io
import re

import numpy as np
import pytest
from table import ROWS, cast_inputs, row_id, tensors

import framework as fw
from framework.errors import CheckpointError, TraceError
from framework.jit.trace import Recorder, record

nn = fw.nn

# what cannot be said in a trace, and must be refused
REFUSED = {"allclose", "equal", "is_nonzero", "method.__contains__", "method.apply_", "method.map_",
"bernoulli",
           "multinomial", "normal", "rand_like", "svd_lowrank"}


def sample_call(row):
    """A function of the row's tensors, and they themselves."""
    sample = row.samples[0]
    xs = tensors(cast_inputs(sample, np.float64))
    at = [i for i, x in enumerate(xs) if isinstance(x, fw.Tensor)]

    def call(*given):
        full = list(xs)
        for i, x in zip(at, given):
            full[i] = x
        return sample.call(fw, *full)
    return call, [xs[i] for i in at]


def flat(value):
    if isinstance(value, (tuple, list)):
        return [x for part in value for x in flat(part)]
    return [value]


def same(a, b):
    if isinstance(a, fw.Tensor):
        a, b = a._array, b._array
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a == b or a != a


def other_numbers(x, generator):
    """Numbers of the same kind in another order, so that what was read of the first ones is wrong."""
    if x.numel() < 2 or x.is_complex():
        return x.clone()
    order = generator.permutation(x.numel())
    return fw.tensor(x._array.reshape(-1)[order].reshape(x.shape)).to(x.dtype)


@pytest.mark.parametrize("row", [r for r in ROWS if r.samples], ids=row_id)
def test_every_function_replays(row):
    """A trace gives the bits of the function on the numbers it was made with, and on others."""
    call, xs = sample_call(row)
    if not xs or len({id(x) for x in xs}) < len(xs) or any(x.is_sparse for x in xs):
        pytest.skip("no tensors to trace")
    try:
        trace = record(call, [x.clone() for x in xs])
    except TraceError as error:
        assert re.search(r"\.py:\d+\)|eval\(\)", str(error))
        return
    assert row_id(row) not in REFUSED
    generator = np.random.default_rng(0)
    for given in (xs, [other_numbers(x, generator) for x in xs]):
        try:
            wanted = call(*[x.clone() for x in given])
        except (ValueError, RuntimeError, IndexError):
            continue
        try:
            got = trace(*[x.clone() for x in given])
        except fw.errors.ShapeError as error:
            assert given is not xs and "depends on numbers" in str(error)
            continue
        assert all(map(same, flat(got), flat(wanted)))


# -- what traces hold ---------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)).relu().mean((2, 3)))


def test_a_network_with_its_names_gradients_and_running_statistics():
    model, x = Net(), fw.randn(2, 1, 6, 6)
    traced = fw.jit.trace(model, x)
    names = {v.name for v in traced.trace.given if v.kind == "parameter"}
    assert names == {name for name, _ in model.named_parameters()}
    assert {v.name for v in traced.trace.updates} == {name for name, _ in model.named_buffers()}
    assert [s.name for s in traced.trace.steps if not s.written][:3] == ["conv", "add", "batch_norm"]
    other = fw.jit.trace(Net(), x)
    other.load_state_dict({k.replace(".", "_"): v.clone() for k, v in model.state_dict().items()})
    y = fw.randn(2, 1, 6, 6)
    got, wanted = other(y), model(y)
    assert same(got, wanted)
    got.sum().backward()
    wanted.sum().backward()
    mine, theirs = dict(other.named_parameters()), dict(model.named_parameters())
    assert all(same(mine[k.replace(".", "_")].grad, theirs[k].grad) for k in theirs)
    assert same(dict(other.named_buffers())["norm_running_mean"], model.norm.running_mean)


def writes(x, w):
    y = x * w
    part = y[0]
    part.add_(1)
    y[1] = 5
    y.T.mul_(2)
    x[0, 0] = 9.0
    return {"y": y, "parts": (part, y.sum())}


def test_writes_become_values():
    x, w = fw.randn(3, 3), fw.randn(3)
    trace = record(writes, (x.clone(), w))
    assert [v.name for v in trace.updates] == ["input_0"]
    made = [v for s in trace.steps for v in s.outputs]
    assert len(made) == len(set(made)) == len({v.name for v in made})
    mine, theirs = fw.randn(3, 3), None
    theirs = mine.clone()
    got, wanted = trace(mine, w), writes(theirs, w)
    assert same(got["y"], wanted["y"]) and same(mine, theirs)
    assert all(map(same, got["parts"], wanted["parts"]))


def test_layers_in_place():
    """What backward keeps is copied before the write: the trace has one value for both."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 4), nn.ELU(inplace=True))
    x = fw.randn(2, 3)
    traced = fw.jit.trace(model, x)
    assert [s.name for s in traced.trace.steps] == ["linear", "relu", "fill", "linear", "elu", "fill"]
    y = fw.randn(2, 3)
    wanted = fw.autograd.grad(model(y).sum(), list(model.parameters()))
    got = fw.autograd.grad(traced(y).sum(), list(model.parameters()))
    assert same(traced(y), model(y)) and all(map(same, got, wanted))


COUNT, OWN = [0], fw.Generator()


def counting(x):
    COUNT[0] += 1
    return x * COUNT[0]


def replaced(x):
    y = x * 1
    y.data = x
    return y + 1


REFUSALS = {
    "a branch": (lambda x: x if x.sum() > 0 else -x, "__bool__"),
    "item": (lambda x: x * x.max().item(), "item"),
    "float": (lambda x: x * float(x.sum()), "a conversion"),
    "an index": (lambda x: [1, 2, 3][x.long()[0, 0]], "__index__"),
    "NumPy": (lambda x: x + fw.tensor(x.numpy().copy()), "numpy"),
    "a list": (lambda x: fw.tensor(x.tolist()), "tolist"),
    "dropout": (lambda x: nn.functional.dropout(x), "random"),
    "a draw": (lambda x: x + fw.randn(2, 2), "random"),
    "its generator": (lambda x: x + fw.rand(2, 2, generator=OWN), "another one"),
    "backward": (lambda x: (x * fw.ones(1, requires_grad=True)).sum().backward(), "backward"),
    "an alias": (lambda x: (x.detach().add_(1), x * 1)[1] + (y := x * 1) + y.data.mul_(2) + y, "shares"),
    "replaced memory": (replaced, "replaced"),
    "a counter": (counting, "second run"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_the_line(name):
    function, word = REFUSALS[name]
    with pytest.raises(TraceError, match=word) as caught:
        fw.jit.trace(function, fw.zeros(2, 2))
    assert "test_jit_trace.py:" in str(caught.value) or "eval()" in str(caught.value)
    assert not fw.jit.is_tracing() and fw.ones(1).item() == 1  # reading is as it was


def test_arguments_must_fit():
    traced = fw.jit.trace(lambda x, n: x * n, (fw.zeros(2), 3))
    assert same(traced(fw.ones(2), 3), fw.full((2,), 3.0))
    for wrong in ((fw.ones(3), 3), (fw.ones(2).double(), 3), (fw.ones(2), 4), (fw.ones(2), 3.0),
                  (fw.ones(2),)):
        with pytest.raises(fw.errors.ShapeError, match="trace again"):
            traced(*wrong)
    with pytest.raises(TypeError, match="input_0"):
        traced(2, 3)
    with pytest.raises(TraceError, match="twice"):
        x = fw.zeros(2)
        fw.jit.trace(fw.add, (x, x))


def test_a_derivative_of_ones_own_is_refused_where_it_would_be_used():
    class Through(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sign()

        @staticmethod
        def backward(ctx, g):
            return g * 100
    w = nn.Parameter(fw.ones(2))
    traced = fw.jit.trace(lambda x: Through.apply(x * w), fw.ones(2))
    with pytest.raises(TraceError, match="Through"):
        traced(fw.ones(2))
    with fw.no_grad():
        assert same(traced(-fw.ones(2)), -fw.ones(2))


def test_files_hold_everything_and_run_nothing():
    model = Net().eval()
    file, x = io.BytesIO(), fw.randn(2, 1, 6, 6)
    traced = fw.jit.trace(lambda x: {"y": (model(x)[:, 1:], x.to(fw.float64))}, x)
    fw.jit.save(traced, file, {"note": "hello"})
    extra = {"note": ""}
    loaded = fw.jit.load(io.BytesIO(file.getvalue()), _extra_files=extra)
    assert extra == {"note": "hello"} and str(loaded.trace) == str(traced.trace)
    y = fw.randn(2, 1, 6, 6)
    got, wanted = loaded(y)["y"], traced(y)["y"]
    assert all(map(same, got, wanted))
    assert len(list(loaded.parameters())) == 6
    data = fw.load(io.BytesIO(file.getvalue()))
    for spoil in (lambda d: d["steps"].reverse(), lambda d: d["steps"][0].__setitem__(0, "os.system"),
                  lambda d: d.pop("takes"), lambda d: d["values"][1][2].append(7), lambda d:
                  d.update(version=9), lambda d: d.update(format="x")):
        bad = fw.load(io.BytesIO(file.getvalue()))
        spoil(bad)
        out = io.BytesIO()
        fw.save(bad, out)
        with pytest.raises(CheckpointError, match="jit.load"):
            fw.jit.load(io.BytesIO(out.getvalue()))
    assert data["format"] == "framework.trace"
    with pytest.raises(TypeError, match="jit.save"):
        fw.jit.save(model, io.BytesIO())


def test_strided_memory_of_a_file_is_checked():
    file = io.BytesIO()
    fw.jit.save(fw.jit.trace(lambda x: fw.as_strided(x, (2, 2), (1, 1)), fw.zeros(4)), file)
    bad = fw.load(io.BytesIO(file.getvalue()))
    bad["steps"][0][2]["offset"] = 1 << 40
    out = io.BytesIO()
    fw.save(bad, out)
    with pytest.raises(CheckpointError, match="leaves the memory"):
        fw.jit.load(io.BytesIO(out.getvalue()))


def test_a_missing_rule_shows():
    """With a rule of the recorder taken out, a trace is wrong, which the tests above would see."""
    kept = Recorder._cut_again
    Recorder._cut_again = lambda self, t: self.values[id(t)]
    try:
        x, w = fw.randn(3, 3), fw.randn(3)
        trace = record(writes, (x.clone(), w))
        assert not same(trace(x.clone(), w)["parts"][0], writes(x.clone(), w)["parts"][0])
    finally:
        Recorder._cut_again = kept
