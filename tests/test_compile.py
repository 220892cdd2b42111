"""``fw.compile``: the same as eager, to the bit, and how that is done."""

import contextlib
import gc
import io
import random
import subprocess
import sys
import warnings
import weakref
from math import prod

import compile_deferred
import compile_mixed
import compile_random
import compile_stateful
import numpy as np
import pytest
from compile_programs import PROGRAMS
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native, dtypes
from framework.autograd.mode import state
from framework.jit import backward as plans
from framework.jit import compiled as compiled_module
from framework.jit import deferral, gradients, pairs, segments, trial
from framework.jit import plans as plans_module
from framework.ops.record import arming

nn, F = fw.nn, fw.nn.functional


@pytest.fixture(autouse=True)
def _every_call_counts(monkeypatch):
    monkeypatch.setattr(plans_module, "PLAIN_CALLS", 0)  # so that few calls of a program reach the plans
    monkeypatch.setattr(plans_module, "Trial", lambda: None)  # and what native calls do is seen, too


def facts(value):
    """What is compared of a value: of a tensor everything that one can see."""
    if isinstance(value, fw.Tensor):
        a = value._array
        return (type(value).__name__, str(a.dtype), a.shape, a.strides, a.tobytes(), value.requires_grad,
                value._version)
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, dict):
        return {k: facts(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [facts(v) for v in value]
    return type(value).__name__, repr(value)


def told(program, compile):
    """All that a program tells under the same seeds."""
    fw.manual_seed(5)
    random.seed(5)
    np.random.seed(5)
    before = dtypes.plain
    at_once, plans.AT_ONCE = plans.AT_ONCE, program is not PROGRAMS["many_structures"]
    if program is not PROGRAMS["bfloat16"] and dtypes.rounded is not None and not fw.cuda.is_available():
        dtypes.plain = True  # an earlier test had bfloat16 in use, this program has not
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = program(compile)
    finally:
        dtypes.plain = before and dtypes.rounded is None
        plans.AT_ONCE = at_once
    return [facts(result), out.getvalue(), fw.get_rng_state().tolist(), repr(random.getstate()),
            repr(np.random.get_state())]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "subclasses"])
def test_compiled_is_eager(name):
    program = PROGRAMS[name]
    wanted = told(program, lambda f: f)
    assert told(program, fw.compile) == wanted
    assert not fw.compiler.is_compiling()


# -- that plans are used, and what they say -----------------------------------------------------------


def test_plans_serve_from_the_second_time_on(monkeypatch):
    monkeypatch.setattr(plans_module, "possible", lambda: False)  # where operations are not put off
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))

    @fw.compile
    def step(x):
        model(x).sum().backward()
    for n in (2, 2, 5, 1):
        step(fw.randn(n, 3))
    text = step.explain()
    assert "4 calls; 3 backward passes by plans, 1 by the engine" in text and "served 3 times" in text
    handle = model[0].weight.register_hook(lambda g: g)
    step(fw.randn(2, 3))
    handle.remove()
    assert "a hook on a leaf" in step.explain()


def test_programs_reach_the_plans(monkeypatch):
    """Which programs go by plans at all: the comparison above says nothing of the others."""
    monkeypatch.setattr(plans_module, "possible", lambda: False)
    served = set()
    plain = plans.Plan.run
    for name, program in PROGRAMS.items():
        if name == "subclasses":  # which arms
            continue

        def run(self, *args, name=name):
            served.add(name)
            return plain(self, *args)
        monkeypatch.setattr(plans.Plan, "run", run)
        told(program, fw.compile)
    assert len(PROGRAMS) >= 88 and len(served) >= 50, sorted(set(PROGRAMS) - served)


def test_the_memory_of_plans_is_bounded():
    kept = []
    told(PROGRAMS["many_structures"], lambda f: kept.append(fw.compile(f)) or kept[-1])
    assert len(kept[0]._plans.own.plans) == plans.MOST and "more than 8" in kept[0].explain()


def test_strict_says_why():
    w = fw.ones(2, requires_grad=True)

    @fw.compile(strict=True)
    def f(create_graph):
        (w * 2).exp().sum().backward(create_graph=create_graph)
    f(False)
    f(False)
    with pytest.raises(fw.errors.CompileError, match="create_graph"):
        f(True)
    assert not fw.compiler.is_compiling()
    f(False)


def test_arguments(monkeypatch):
    f = lambda x: x
    assert fw.compile(f, disable=True) is f and fw.compile(f, backend="eager") is f
    assert fw.compile(mode="max-autotune", dynamic=True, options={})(f)(3) == 3
    for wrong, kind in (({"mode": "fastest"}, ValueError), ({"backend": "tvm"}, ValueError),
                           ({"backend": f}, TypeError)):
        with pytest.raises(kind, match="compile: "):
            fw.compile(f, **wrong)
    with pytest.raises(TypeError, match="function or module"):
        fw.compile(3)
    monkeypatch.setenv("FRAMEWORK_COMPILE", "off")
    assert fw.compile(f) is f


def test_a_rule_that_fails_leaves_what_eager_leaves():
    """Both fill the same leaves and free the same kept values before the error."""
    from framework.ops.pointwise.elementary import sin
    rule = sin.op.rules[0]
    state = []
    for compile in (lambda f: f, fw.compile):
        a, b = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)
        log = []

        @compile
        def f(a=a, b=b, log=log):
            y = a * 1
            z = b.exp() + y.sin()
            log[:] = [y.grad_fn, z.grad_fn]
            z.sum().backward()
        f(), f()
        b.grad = None
        key = [k for k in plans._derivatives if k[0] is sin.op]
        kept = {k: plans._derivatives.pop(k) for k in key}

        def broken(*args):
            raise MemoryError("no room")
        old, rule._numpy = rule._numpy, broken
        try:
            f2 = compile(f.__wrapped__ if hasattr(f, "__wrapped__") else f)
            for _ in range(2):
                with pytest.raises(MemoryError, match="no room"):
                    f2()
        finally:
            rule._numpy = old
            for k in key:
                plans._derivatives.pop(k, None)
            plans._derivatives.update(kept)
        state.append((facts(a.grad), facts(b.grad), [n.kept is None for n in log]))
    assert state[0] == state[1]


# -- with a rule of the design taken out, a program differs ---------------------------------------------


def differs(names):
    return [name for name in names if _differs(PROGRAMS[name])]


def _differs(program):
    wanted = told(program, lambda f: f)
    try:
        return told(program, fw.compile) != wanted
    except Exception:
        return True


def _source_without(function, line, instead="pass"):
    import inspect
    import textwrap
    text = textwrap.dedent(inspect.getsource(function))
    assert line in text, f"the mutation is out of date: {line!r}"
    scope = dict(function.__globals__)
    exec(text.replace(line, instead), scope)
    return scope[function.__name__]


MUTATIONS = {
    "the op of a node": (plans.Plan, "fits", "elif node.op is not what and", "elif False and",
                         ["ops_of_one_form"]),
    "hooks on nodes": (plans.Plan, "fits", "node.hooks is not None or", "",
                       ["hooks_on_results", "hooks_come_and_go"]),
    "hooks after a leaf": (plans.Plan, "fits", "if node.after:", "if False:", ["hooks_that_hook"]),
    "the order of creation": (plans.Plan, "fits", "or node.seq >= last", "", ["diamonds_and_order"]),
    "edges that are one": (plans.Plan, "fits", "if nodes[e] is not edge:", "if False:", ["merged_or_apart"]),
    "edges that end": (plans.Plan, "fits", "if edge is not None:", "if False:", ["requires_grad_toggled"]),
    "the index of an output": (plans.Plan, "fits", "if node.index != what:", "if False:", ["picks"]),
    "copies for leaves": (plans.Plan, "run", "ge = copied(ge)", "pass", ["shared_gradient"]),
    "what comes last": (plans.Plan, "run", "if mine and ge is g and", "if False and",
                        ["gradients_that_come_last"]),
    "freeing what is kept": (plans.Plan, "run", "node.kept = node.versions = None", "pass",
                             ["errors_of_backward"]),
    "owning before adding in place": (plans.Plan, "run", "owned[target] and isinstance", "isinstance",
                                      ["shared_memory_of_gradients"]),
    "parts without a gradient": (plans.Plan, "run", "if g is None:", "if False:", ["no_gradient_on_the_way"]),
    "versions": (plans, "_made", "if c[0] != v: return", "if False: return", ["errors_of_backward"]),
    "complex numbers": (plans, "_made", "if op.conjugates:", "if False:", ["complex_and_real"]),
    "broadcasting": (plans, "_made", "node.shapes is not None or masked and", "masked and",
                     ["broadcasting_comes_and_goes"]),
    "masks": (plans, "_made", "or masked and state.walk in masked: ", ": ", ["masks_and_infinities"]),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_without_a_rule_a_program_differs(name, monkeypatch):
    owner, method, line, instead, programs = MUTATIONS[name]
    monkeypatch.setattr(plans_module, "possible", lambda: False)  # where operations are not put off
    assert not differs(programs)
    monkeypatch.setattr(plans, "_derivatives", {})
    changed = _source_without(getattr(owner, method), line, instead)
    monkeypatch.setattr(owner, method, changed)
    assert differs(programs)


# -- random programs; 100,000 of them by tests/stress/compile_programs.py ---------------------------------


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 1 << 40))
def test_random_programs(number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not compile_random.differs(number)


# -- operations that are put off ----------------------------------------------------------------------


def test_programs_whose_operations_are_put_off():
    """Training steps and chains that repeat, with what may happen in between; more of them by the command."""
    assert not [n for n in range(120) if compile_deferred.differs(n)]
    if plans_module.possible():
        before = fw._native.module.deferred_calls()
        compile_deferred.differs(7)
        compile_deferred.differs(8)
        assert fw._native.module.deferred_calls() > before


@pytest.mark.filterwarnings("ignore")
def test_programs_of_tensors_of_all_kinds(monkeypatch):
    """Of several shapes, dtypes and optimizers, with exceptions, draws, hooks, views written in place."""
    monkeypatch.setattr(plans_module, "PLAIN_CALLS", 0)
    monkeypatch.setattr(plans_module, "Trial", lambda: None)
    assert not [n for n in range(150) if compile_mixed.differs(n)]


@pytest.mark.filterwarnings("ignore")
def test_programs_that_change_what_they_have(monkeypatch):
    """Results and buffers in place, batch norm, counters, drawn masks."""
    monkeypatch.setattr(plans_module, "PLAIN_CALLS", 0)
    monkeypatch.setattr(plans_module, "Trial", lambda: None)
    assert not [n for n in range(150) if compile_stateful.differs(n)]


def _own_gradients(compile):
    a, b, x = (fw.randn(4, 4, requires_grad=True) for _ in range(3))

    @compile
    def step():
        (a + b).sum().backward()
        (x * 2 + a).square().sum().backward()
    for _ in range(3):
        a.grad = b.grad = x.grad = None
        step()
        a.grad.add_(1)
    return a.grad, b.grad, x.grad


def _taken_over(compile):
    p, q = fw.randn(30, 30, requires_grad=True), fw.randn(30, 30, requires_grad=True)

    @compile
    def step():
        u = p + p
        v = u + q
        (u.square().sum() + v.square().sum()).backward()
    for _ in range(4):
        step()
    return p.grad, q.grad


def _order_beside_a_view(compile):
    """A view of a leaf is newer in the graph than what was put off before it."""
    a = fw.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]], requires_grad=True)

    @compile
    def step(x):
        m = fw.maximum(a, x)
        y = a.T
        u = a.select(0, 1) if len(seen) % 2 else a.view(-1)[:3]
        (m * 0.1 + y * 0.3 + u * 1e-7 + a * 7.7).sum().backward()
    seen = []
    for _ in range(8):
        a.grad = None
        step(fw.full((3, 3), 0.55))
        seen.append(a.grad)
    return seen


def _results_handed_in_again(compile):
    """A result's memory comes back by another tensor: a later call may bring another memory there."""
    p, seen = fw.randn(4, 4), []

    @compile
    def step(x, other):
        y = x.clamp(-1, 1)
        if other:
            seen.append(p.detach().sum().item())
        seen.append(y.detach().sum().item())
        return y.exp()
    for n in range(6):
        step(fw.randn(4, 4), n > 1)
    return seen


def _copies_that_look_like_hand_overs(compile):
    """The rule ``g`` of a subtraction gives a copy: its leaf takes nothing over after all others."""
    a = fw.tensor([[0.3, -1.7, 0.9]], requires_grad=True)

    @compile
    def step():
        d = a - a
        s = a.sum()
        m = d * a
        t = m - a
        total = t.square().sum() + m.square().sum() + s.square() + d.square().sum()
        (total + t.sum() * 0.37 + (a * 3.1).sum()).backward()
    for _ in range(5):
        step()
    return a.grad


def _unusual_steps(compile):
    """Options that are tensors, a parameter that is there twice, methods without a kernel."""
    seen = []
    for kind, options in ((fw.optim.Adam, {"lr": fw.tensor(0.01)}), (fw.optim.SGD, {"lr": fw.tensor(0.1)}),
                          (fw.optim.Adam, {"lr": 0.01, "betas": (fw.tensor(0.8), fw.tensor(0.9))}),
                          (fw.optim.Rprop, {}), (fw.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
                          (fw.optim.Adam, {})):
        p = fw.randn(3, 3, requires_grad=True)
        twice = [p, p] if not options or "momentum" in options else [p]
        optimizer = kind(twice, **options)

        @compile
        def step(x, p=p, optimizer=optimizer):
            optimizer.zero_grad()
            (p * x).sum().backward()
            optimizer.step()
        for _ in range(4):
            step(fw.randn(3, 3))
            seen += [p.detach().clone(), p._version, dict(optimizer.state[p])]
    return seen


def _refused_in_the_middle(compile):
    """What cannot be put off comes between what can: the pieces before and after it run as plans."""
    w, seen = fw.randn(4, 4, requires_grad=True), []
    base = np.linspace(-1, 1, 40_000, dtype=np.float32)

    @compile
    def step(x):
        with fw.no_grad():
            y = (x * 2).tanh() + w
            big = fw.from_numpy(base)[:16].view(4, 4) * y
            base[3] += 1
            return ((big + y).sigmoid() * 3).cumsum(0) + y
    for _ in range(5):
        seen.append(step(fw.randn(4, 4)))
    return seen


@pytest.mark.parametrize("program", [_order_beside_a_view, _results_handed_in_again,
                                     _copies_that_look_like_hand_overs, _unusual_steps,
                                     _refused_in_the_middle])
def test_what_random_programs_found(program):
    assert told(program, fw.compile) == told(program, lambda f: f)


@pytest.mark.parametrize("number", [1068, 1000505, 1001478, 1003842, 1004056, 1004904])
def test_random_programs_that_differed(number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not compile_random.differs(number) and not compile_deferred.differs(number)


def _views_written_through(compile):
    p = fw.randn(4, requires_grad=True)

    @compile
    def step():
        y = p * 2
        v = y.view(2, 2)
        y.mul_(3)
        return v
    for _ in range(3):
        p.grad = None
        step().sum().backward()
    return p.grad


def _views_returned(compile):
    x, seen = fw.randn(4), []

    @compile
    def step():
        y = x * 2
        return y, y.view(2, 2)
    for _ in range(3):
        y, v = step()
        y.add_(1)
        seen += [v, v._version, v._is_view()]
    return seen


def _unlinked(plain):
    def forward(self, path, alive):
        before = [list(call.data.fixed) for call in path]
        for call in path:
            call.data.fixed = [False] * len(call.data.fixed)
        try:
            return plain(self, path, alive)
        finally:
            for call, fixed in zip(path, before):
                call.data.fixed = fixed
    return forward


RULES = {  # what a rule is for, and what it would be without it
    "own": (_own_gradients, gradients, "own", lambda plain: lambda ge, g: ge),
    "taken over": (_taken_over, gradients, "takes_over", lambda plain: lambda leaf, op: False),
    "views follow": (_views_written_through, deferral, "_hand_over_views", lambda plain: lambda *_: None),
    "views are linked": (_views_returned, deferral.Session, "_forward", _unlinked),
}


@pytest.mark.parametrize("rule", RULES)
def test_rules_of_putting_off_are_needed(rule, monkeypatch):
    program, home, name, broken = RULES[rule]
    wanted = told(program, lambda f: f)
    assert told(program, fw.compile) == wanted
    if plans_module.possible():
        monkeypatch.setattr(home, name, broken(getattr(home, name)))
        with contextlib.suppress(ValueError):  # a gradient that cannot be written shows it, too
            assert told(program, fw.compile) != wanted


def test_the_first_call_is_a_plain_one(monkeypatch):
    monkeypatch.undo()
    assert plans_module.PLAIN_CALLS == 1
    a = fw.randn(8, 8)
    f = fw.compile(lambda x: fw.tanh(x * a) + 1)
    found = [f(a) for _ in range(4)]
    assert all(fw.equal(x, found[0]) for x in found)
    if plans_module.possible():
        assert "2 sequences of operations put off: 2 run as plans" in f.explain()


def test_what_is_kept_is_bounded(monkeypatch):
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")
    a = fw.randn(4, 4)
    f = fw.compile(lambda x, c: (x * c).tanh() + x)
    for n in range(100):
        x, c = fw.randn(n % 10 + 1, n // 10 + 1), n * 0.5
        assert fw.equal(f(x, c), (x * c).tanh() + x)
    root = f._plans.deferral.tree
    assert 60 < len(root.children) <= 64
    for n in range(40):
        f(a, float(n))
    assert all(len(call.children) <= 8 for call in root.children)

    monkeypatch.setattr(deferral, "MOST_CALLS", 7)
    monkeypatch.setattr(deferral, "MOST_IN_ALL", 2)
    f = fw.compile(lambda x: ((x * 2).tanh() + x).sum())
    for n in (1, 2, 3, 4) * 4:
        x = fw.randn(n)
        assert fw.equal(f(x), ((x * 2).tanh() + x).sum())
    assert "kept: 7 calls of at most 7, 2 plans of at most 2" in f.explain()


def test_a_function_that_nobody_has_leaves_nothing():
    """What it recorded, its plans and the parameters go with it."""
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")

    def used():
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = fw.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) * 2).tanh().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()
        f = fw.compile(step)
        for _ in range(6):
            f(fw.randn(3, 4))
        made = f._plans.deferral
        assert made.calls
        return [weakref.ref(x) for x in (made, made.local.session, model[0])]
    left = used()
    gc.collect()
    assert [x() for x in left] == [None] * 3


_CLASSES_ASKED = """
import framework as fw
from framework.jit import plans

plans.Trial = lambda: None
counting = fw._native.module.deferred_calls if plans.possible() else lambda: 0
possible, calls = plans.possible(), []
w, a = fw.randn(3, requires_grad=True), fw.randn(3)


def f(x, other):
    y = (x * w).tanh() + 1
    z = y * other
    z.sum().backward()
    return z.detach()


g = fw.compile(f)
for _ in range(8):
    g(a, a)
before = counting()
assert not possible or before > 10


class Counting(fw.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


other = a.as_subclass(Counting)  # from here on classes are asked first, and calls run as they come
w.grad = None
wanted = f(a, other).as_subclass(fw.Tensor)
gradient = w.grad.clone()
calls.clear()
f(a, other)
asked = [*calls]
assert len(asked) > 2
for x in (a, other, a):
    calls.clear()
    w.grad = None
    found = g(a, x)
    noted = [*calls]
    assert noted == (asked if x is other else []), (noted, asked)
    assert type(found) is type(x) and fw.equal(w.grad, gradient)
    assert fw.equal(found.as_subclass(fw.Tensor), wanted)
assert counting() == before
"""


def test_nothing_is_put_off_once_classes_are_asked_first():
    """A class that does functions itself stays in use for the whole process, which is one of its own here."""
    subprocess.run([sys.executable, "-c", _CLASSES_ASKED], check=True)


def test_in_a_process_of_its_own():
    """Where another test has armed ``__torch_function__``, nothing is put off here, and little was tested."""
    if fw._native.module is None or not arming.armed:
        pytest.skip("nothing is armed, or no kernels")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, "-k",
               "put_off or differed or found or first_call or bounded or chain or random"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-3000:]


def test_rules_are_run_by_the_segment():
    """A derivative's rule is the kernels that it calls, and a backward that is known asks no Python."""
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")
    model, x = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.LayerNorm(5)), fw.randn(3, 4)
    step = fw.compile(lambda: model(x).sum().backward())
    for _ in range(4):
        step()
    called = set()
    sys.setprofile(lambda frame, event, arg: called.add(frame.f_code.co_name))
    try:
        step()
    finally:
        sys.setprofile(None)
    assert not called & {"_linear_w", "swap_last", "pull", "_run_backward", "record"}, called
    assert "hang" in called and step._plans.deferral.planned == 4


def test_rules_that_look_at_arrays_stay_functions():
    """A stand-in tells how large an array is; whatever else a rule asks makes it stay what it is."""
    from framework.jit.kernels import Array, Step
    from framework.jit.lowering import lowered, watched
    from framework.ops.shape.view import reshape_op

    def shaped(g, x):
        return reshape_op(g, shape=x.shape)

    def looks(g, x):
        return reshape_op(g if x.sum() > 0 else g * 2, shape=x.shape)

    def changes(g, x):
        g += 1
        return reshape_op(g, shape=x.shape)
    g, x = np.arange(6.0), np.ones((2, 3))
    for rule, pieces in ((shaped, 1), (looks, 1), (changes, 1), (lambda g, x: g, 1)):
        rule.__module__ = "framework.ops.shape.view"
        step = Step(rule, (Array("g1_"), Array("t1_0")), {}, "g2_", None)
        seen, = watched([step])
        given = g.copy()
        assert seen.kernel(given, x) is not None
        found = lowered([seen])
        assert len(found) == pieces and (found[0] is step) == (rule is not shaped)


def test_a_chain_is_one_kernel():
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")
    a, b = fw.randn(8, 8), fw.randn(8, 8)
    chain = fw.compile(lambda: fw.tanh(a * b + a) * fw.sigmoid(b))
    for _ in range(3):
        chain()
    assert "1 kernels, 1 of them fused from 5 elementwise ones, served 2 times" in chain.explain()


def test_subclasses():
    """The last test here: it arms ``__torch_function__`` for the whole process."""
    test_compiled_is_eager("subclasses")


@pytest.mark.parametrize("slow, chosen", [((3, 2, 1), "plain"), ((2, 1, 3), "by plans alone"),
                                          ((1, 2, 3), "put off")])
def test_calls_go_the_way_that_takes_the_least_time(monkeypatch, slow, chosen):
    monkeypatch.setattr(plans_module, "Trial", trial.Trial)
    passed = [0.0]

    @fw.compile
    def step(x):
        w.grad = None
        y = (w * x).tanh().sum()
        y.backward()
        now = step._plans
        if state.compiled is now.plain:
            passed[0] += slow[trial.PLAIN]
        else:
            session = now.deferral and now.deferral.local.session
            passed[0] += slow[trial.PUT_OFF if session and session.inside else trial.BY_PLANS]
        return y
    monkeypatch.setattr(compiled_module, "perf_counter", lambda: passed[0])
    w = fw.randn(8, requires_grad=True)
    if not plans_module.possible():
        slow = (slow[1], slow[1], slow[2])
        chosen = chosen.replace("put off", "by plans alone")
    for n in range(trial.BEGIN + 3 * trial.ROUNDS + 10):
        x = fw.randn(8)
        assert step._plans.trial is None or n <= trial.BEGIN + 3 * trial.ROUNDS
        found, gradient = step(x), w.grad
        w.grad = None
        plain = (w * x).tanh().sum()
        plain.backward()
        assert fw.equal(found, plain) and fw.equal(gradient, w.grad)
    assert step._plans.trial is None and f"calls go {chosen}" in step.explain()
    assert step._plans.direct is (chosen != "put off")
    assert (step._plans.now is step._plans.plain) is (chosen == "plain")
    assert f"{n + 1} calls" in step.explain() and not fw.compiler.is_compiling()


@pytest.mark.parametrize("layout", ["rows", "channels", "one image", "wide", "line", "volume"])
@pytest.mark.parametrize("dtype", [fw.float32, fw.float64])
def test_maxima_and_their_places_in_one_pass(monkeypatch, layout, dtype):
    def looked(steps, plain=segments.paired):
        kept = plain(steps)
        joined[:] = [len(kept) < len(steps)]
        return kept
    monkeypatch.setattr(segments, "paired", looked)
    joined = [False]

    def step(x):
        w.grad = None
        z = x * w
        y = (pool(z) * 3).sum() + pool(-z).sum()
        y.backward()
        return y
    shape, windows = {"rows": ((2, 3, 9, 8), (2,)), "channels": ((2, 8, 9, 8), (3, 2, 1)),
                      "one image": ((3, 7, 7), (3, 1, 1)), "wide": ((1, 2, 20, 20), (17, 2)),
                      "line": ((2, 3, 11), (2, 2, 1)), "volume": ((2, 2, 5, 6, 4), (2, 2))}[layout]
    pool = {"line": nn.MaxPool1d, "volume": nn.MaxPool3d}.get(layout, nn.MaxPool2d)(*windows)
    w = fw.ones(shape[-1], dtype=dtype, requires_grad=True)
    compiled = fw.compile(step)
    for n in range(6):
        x = fw.randint(-2, 3, shape).to(dtype)
        x = x * -0.0 if n == 4 else x
        if n == 5:
            x.view(-1)[::7] = fw.nan
        if layout == "channels":
            x = x.to(memory_format=fw.channels_last)
        found = facts([compiled(x), w.grad])
        assert facts([step(x), w.grad]) == found
    if plans_module.possible():
        assert joined == [True]


@pytest.mark.parametrize("windows", [(2,), (3, 1, 1), (3, 2), (2, 3)])
@pytest.mark.parametrize("also", [False, True])
def test_relu_before_pooling_is_masked_where_it_is_smaller(monkeypatch, windows, also):
    def looked(steps, outputs, shapes, plain=segments.masked_early):
        kept = plain(steps, outputs, shapes)
        slope = pairs.relu.op.rules[0].on(np.zeros(1, "f"))
        sizes[:] = [prod(shapes[step.results][0]) for step in kept if step.kernel is slope]
        return kept
    monkeypatch.setattr(segments, "masked_early", looked)
    sizes = []

    def step(x):
        w.grad = None
        image = F.relu(x * w)
        y = (F.max_pool2d(image, *windows) * v).sum()
        if also:  # the gradient of the image is more than that of the pooling
            y = y + (image * 3).sum()
        y.backward()
        return y
    w = fw.ones(9, requires_grad=True)
    v = fw.randn(2, 3, *F.max_pool2d(fw.zeros(9, 9)[None], *windows).shape[1:])
    v.view(-1)[:4] = fw.tensor([fw.nan, fw.inf, -fw.inf, -0.0])
    compiled = fw.compile(step)
    for n in range(6):
        x = fw.randint(-3, 3, (2, 3, 9, 9)).float()
        x = x * -0.0 if n == 3 else x
        if n > 3:
            x.view(-1)[::7] = fw.nan if n == 4 else fw.inf
        found = facts([compiled(x), w.grad])
        assert facts([step(x), w.grad]) == found
    if plans_module.possible():
        assert sizes == [x.numel() if also else v.numel()]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("n, channels, rows, groups, sizes, stride, windows, native", [
    (9, 1, 8, 1, (28, 28), 1, (2, 2, 0), True), (8, 4, 6, 2, (9, 12), 2, (2, 1, 1), True),
    (1, 3, 5, 1, (7, 8), 1, (3, 2, 1), True), (33, 2, 3, 1, (6, 17), 1, (17, 17, 8), True),
    (16, 5, 4, 1, (40,), 1, (2, 2, 0), True), (3, 2, 4, 1, (5, 6, 7), 1, (2, 2, 0), True),
    (4, 24, 24, 1, (14, 14), 1, (2, 2, 0), None), (2, 16, 32, 1, (16, 16), 1, (2, 2, 0), None)])
def test_convolutions_pooled_image_after_image(threads, relu, dtype, n, channels, rows, groups, sizes, stride,
                                               windows, native):
    """The largest elements of what a convolution gives, and their places, without what it gives."""
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")
    kernel, layer = {flag: (kernel, layer) for layer, (kernel, flag) in pairs._convolutions().items()}[relu]
    d = len(sizes)
    x = fw.randn(n, channels, *sizes)._array.astype(dtype)
    x.flat[::97] = np.nan
    w, b = (fw.randn(rows, *more)._array.astype(dtype) for more in ((channels // groups, *[3] * d), ()))
    settings = {"stride": (stride,) * d, "padding": (1,) * d, "dilation": (1,) * d, "groups": groups}
    before = _native.module.threads()
    _native.module.set_threads(threads)
    try:
        for bias in b, None:
            image = layer(x, w, bias, **settings)
            size, step, edge = windows
            out = tuple([(s + 2 * edge - size) // step + 1 for s in image.shape[2:]])
            pooling = dict(zip(pairs._WINDOWS, ((size,) * d, (step,) * d, (edge,) * d, (1,) * d, out)))
            more = {**settings, "relu": relu, "windows": tuple(pooling.values())}
            if native is not None:  # others go by Winograd, or are turned
                assert _native.module.conv_max(x, w, bias, **more) is not NotImplemented
            wanted = pairs.max_pool.cpu(image, **pooling), pairs.max_position.cpu(image, **pooling)
            for a, c in zip(kernel(x, w, bias, **more), wanted):
                assert a.dtype == c.dtype and a.strides == c.strides and a.tobytes() == c.tobytes()
    finally:
        _native.module.set_threads(before)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("a, b", [
    ((32, 10), (10, 64)), ((33, 64), (64, 61)), ((1, 40), (40, 30)), ((40, 7), (7, 1)), ((1, 1), (1, 1)),
    ((5, 0), (0, 4)), ((3, 2, 17, 9), (9, 35)), ((3, 1, 6, 5), (2, 5, 4)), ((7,), (7, 40)),
    ((200, 130), (130, 190)), ((300, 600), (600, 33))])
def test_products_masked_by_what_relu_gave(dtype, a, b):
    """``where(out <= 0, 0, x @ y)`` in the product's last pass, however the operands lie."""
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")
    kernel, slope = pairs._by_gate(), pairs.relu.op.rules[0].on(np.zeros(1, "f"))
    x, y = (fw.randn(*shape)._array.astype(dtype) for shape in (a, b))
    for left, right in ((x, y), (x.T.copy().T, y), (x, y.T.copy().T), (np.repeat(x, 2, -1)[..., ::2], y)):
        out = fw.relu(fw.randn(*pairs.matmul_op.cpu(left, right).shape))._array.astype(dtype)
        out.flat[::5], out.flat[1::7] = np.nan, -0.0
        left.flat[:1] = np.inf
        wanted = slope(pairs.matmul_op.cpu(left, right), out)
        assert isinstance(_native.module.matmul_by_gate(left, right, out), np.ndarray)
        found = kernel(left, right, out)
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        assert found.tobytes() == wanted.tobytes()
        assert kernel(left, right, out.T.copy().T).tobytes() == wanted.tobytes()
        assert _native.module.matmul_by_gate(left, right, out[..., :0]) is NotImplemented


def test_slopes_of_relu_end_products(monkeypatch):
    def looked(steps, outputs, plain=segments.masked_in_products):
        kept = plain(steps, outputs)
        joined[:] = [len(steps) - len(kept)]
        return kept
    monkeypatch.setattr(segments, "masked_in_products", looked)
    joined = []
    w, v, u = (fw.randn(6, 6, requires_grad=True) for _ in range(3))

    def step(x):
        w.grad = v.grad = u.grad = None
        z = fw.relu(F.linear(fw.relu(F.linear(x, w)), v))
        y = F.linear(z, u).sum()
        y.backward()
        return y, z
    compiled = fw.compile(step)
    for n in range(8):
        x = fw.randint(-3, 4, (5, 6)).float()
        if n > 4:
            x[0, 0] = fw.nan if n == 6 else fw.inf
        found = facts([compiled(x), w.grad, v.grad, u.grad])
        assert facts([step(x), w.grad, v.grad, u.grad]) == found
    if plans_module.possible():
        assert joined == [2]


def test_two_kernels_in_one_pass_are_those_two():
    if not plans_module.possible():
        pytest.skip("operations are put off with the native kernels only")
    (second, both), = pairs._pairs().values()
    rows = fw.randn(2, 8, 9, 8)._array
    for x in (rows, rows.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2), rows.astype(np.float16),
              rows[:, :, ::2]):
        windows = {"kernel": (3, 3), "stride": (2, 2), "padding": (1, 1), "dilation": (1, 1),
                   "out": tuple((n + 2 - 3) // 2 + 1 for n in x.shape[2:])}
        found = both(x, **windows)
        for a, b in zip(found, (pairs.max_pool.cpu(x, **windows), pairs.max_position.cpu(x, **windows))):
            assert a.dtype == b.dtype and a.strides == b.strides and a.tobytes() == b.tobytes()


def test_steps_are_one_instruction():
    """Also of a tensor whose hash is another number than its place in memory."""
    if not plans_module.possible():
        pytest.skip("steps are one instruction with the native kernels only")
    w = fw.randn(3, requires_grad=True)
    optimizer = fw.optim.Adam([w])

    @fw.compile
    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
    for _ in range(8):
        step(fw.randn(3))
    assert "7 optimizer steps as one instruction, 1 by the optimizer" in step.explain(), step.explain()


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
@pytest.mark.parametrize("rows, width, bias", [(8, 32, True), (1, 16, False), (5, 7, True), (17, 64, True)])
def test_cells_that_share_their_weights_panels(kind, rows, width, bias):
    """Loops of cells with the same weights, compiled: eager's bits, at float32 and float64."""
    for dtype in (fw.float32, fw.float64):
        fw.manual_seed(0)
        cell = getattr(fw.nn, kind)(3, width, bias=bias, dtype=dtype)
        xs = fw.randn(6, rows, 3, dtype=dtype)

        def step():
            state = h = fw.zeros(rows, width, dtype=dtype)
            for x in xs:
                state = cell(x, (h, state) if kind == "LSTMCell" else h)
                h, state = state if kind == "LSTMCell" else (state, state)
            for p in cell.parameters():
                p.grad = None
            loss = h.square().sum()
            loss.backward()
            return [loss.detach().numpy().copy(), *(p.grad.numpy().copy() for p in cell.parameters())]
        compiled = fw.compile(step)
        for _ in range(12):
            for a, b in zip(compiled(), step(), strict=True):
                assert a.tobytes() == b.tobytes()
