"""Every function that says that a compiled function may put it off, on the samples of the table: plain and
compiled calls give the same bits, gradients and exceptions, whatever numbers come after those with which
it was recorded.
"""

import gc
import warnings

import numpy as np
import pytest
from table import ROWS, cast_inputs, changes_inputs, row_id, tensors
from test_samples import flat

import framework as fw
from framework.jit import deferral, doors
from framework.jit import plans as plans_module
from framework.ops.language.elementwise import Elementwise
from framework.ops.record.public import PUBLIC

SAYS = {(p.namespace, p.name) for p in PUBLIC if p.deferred or isinstance(p.op, Elementwise)}
MINE = [row for row in ROWS if (row.namespace, row.name) in SAYS and not changes_inputs(row)]
IN_PLACE = [row for row in ROWS if changes_inputs(row)]  # some are not put off, and run as they are called
# what comes in place of a sample's numbers, once they are recorded; the last ones again
NUMBERS = [None] * 5 + [0.0, -1.0, np.nan, np.inf, 1e30, None, -0.0, None]


@pytest.fixture(autouse=True)
def _every_call_counts(monkeypatch):
    monkeypatch.setattr(plans_module, "PLAIN_CALLS", 0)
    monkeypatch.setattr(plans_module, "Trial", lambda: None)


def test_the_rows_are_there():
    """Hundreds of functions, and those that take most of a network's time among them."""
    names = {row.name for row in MINE}
    assert len(names) > 250
    assert {"conv2d", "group_norm", "max_pool3d", "einsum", "flip", "cosine_similarity"} <= names


@pytest.mark.parametrize("row", [*MINE, *IN_PLACE], ids=row_id)
def test_whatever_numbers_come(row):
    for sample in row.samples:
        if not any(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in sample.inputs):
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            plain, compiled = [list(calls(sample, compile)) for compile in (lambda f: f, fw.compile)]
        for number, a, b in zip(NUMBERS, plain, compiled):
            assert a == b, f"{sample.label}, with {number}: {a} and compiled {b}"


def calls(sample, compile):
    """What each call gives: the loss and gradients, then the results of a call that records no graph."""
    given = cast_inputs(sample, np.float32)

    @compile
    def there_and_back(*xs):
        found = [y for y in flat(sample.call(fw, *[x * 1 if counts(x) else x for x in xs]))
                 if isinstance(y, fw.Tensor) and y.requires_grad]
        loss = sum([(y * 1.5).sum() for y in found]) if found else None
        del found
        if loss is not None:
            loss.backward()
        return loss

    @compile
    def forward(*xs):
        return sample.call(fw, *[x * 1 if counts(x) else x for x in xs])
    for number in NUMBERS:
        arrays = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
        for a in arrays:
            if number is not None and isinstance(a, np.ndarray) and a.dtype == np.float32 and a.size:
                a.reshape(-1)[:: 2] = number
        yield outcome(there_and_back, tensors(arrays, grad=sample.grad)), outcome(forward, tensors(arrays))


def counts(x):
    return isinstance(x, fw.Tensor) and x.is_floating_point()


def outcome(f, given):
    fw.manual_seed(len(given))
    try:
        found = f(*given)
    except Exception as error:
        return type(error).__name__, str(error)
    grads = [x.grad for x in given if isinstance(x, fw.Tensor)]
    return [told(y) for y in [*flat(found), *grads]], fw.get_rng_state().tolist()


def told(y):
    if not isinstance(y, fw.Tensor):
        return repr(y)
    a = y.detach().resolve_conj().resolve_neg().numpy()
    a = np.where(a != a, a.dtype.type(np.nan), a) if a.dtype.kind in "fc" else a  # any nan is as good
    return str(y.dtype), tuple(y.shape), y.stride(), y._version, np.ascontiguousarray(a).tobytes()


def test_results_that_die_while_a_backward_is_learned(monkeypatch):
    """A cycle holds them until the garbage collector comes, which it may at any time."""
    def collected(session, why, plain=deferral.Session.one_by_one):
        plain(session, why)
        gc.collect()

    def step(w, cycle):
        w.grad = None
        hold = [w * 2]
        if cycle:
            hold.append(hold)
        loss = (w * 3).sum()
        del hold
        loss.backward()
        return loss
    compiled, w = fw.compile(step), fw.ones(3, requires_grad=True)
    monkeypatch.setattr(deferral.Session, "one_by_one", collected)
    gc.disable()
    try:
        for number in range(8):
            assert compiled(w, number > 3).item() == 9 and w.grad.tolist() == [3, 3, 3]
    finally:
        gc.enable()


@pytest.mark.parametrize("turn", ["own", "part", "numpy", "written"])
def test_pictures_that_are_handed_in_and_made_rows(turn):
    """Whoever has their memory, wherever it begins, and if it is written meanwhile."""
    def made():
        fw.manual_seed(1)
        return fw.nn.Sequential(fw.nn.Flatten(), fw.nn.Linear(300, 4), fw.nn.ReLU(), fw.nn.Linear(4, 2))

    def step(net, x):
        net.zero_grad()
        rows = x.view(80, 3, 100)
        if turn == "written" and seen:
            x.mul_(0.5)
        loss = net(x).square().mean() + rows.mean()
        del rows
        loss.backward()
        return loss
    found = []
    for compile in (lambda f: f, fw.compile):
        net, run, random, seen = made(), compile(step), np.random.default_rng(0), []
        for number in range(8):
            whole = random.standard_normal((90, 3, 10, 10)).astype(np.float32)
            array = whole[:80].copy()
            if turn == "part" and number > 3:
                x = fw.tensor(whole)[number:80 + number]
            else:
                x = fw.from_numpy(array) if turn == "numpy" else fw.tensor(array)
            loss = run(net, x)
            array[0] = 0
            seen.append((loss.item(), [p.grad.tolist() for p in net.parameters()]))
        found.append(seen)
    assert found[0] == found[1]
    if plans_module.possible() and turn == "own":
        assert any(isinstance(p, deferral.BackwardPlan) and p.served > 3 for p in run._plans.deferral.plans)


@pytest.mark.skipif(not plans_module.possible(), reason="nothing is put off without the kernels")
@pytest.mark.parametrize("name", [*doors.TOLD, *doors.TOLD_CALLS])
def test_what_is_told_of_a_result_leaves_it_put_off(name):
    def step(w):
        w.grad = None
        y = w * 2
        told = getattr(y, name)
        seen.append(told() if name in doors.TOLD_CALLS else told)
        loss = (y * 3).sum()
        del y, told
        loss.backward()
        return loss
    seen: list = []
    compiled, w = fw.compile(step), fw.ones(2, 3, requires_grad=True)
    for _ in range(8):
        compiled(w)
    assert all(x == seen[0] for x in seen)
    plan, = [p for p in compiled._plans.deferral.plans if isinstance(p, deferral.BackwardPlan)]
    assert plan.served >= 6
