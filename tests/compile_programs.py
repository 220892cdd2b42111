"""Programs that trip compilers: each is run as it is and compiled, and must tell the same.

A program takes ``compile`` (the identity, or ``fw.compile``), builds all it needs, calls the compiled
function several times, and returns what it saw: tensors, numbers, texts, in any nest. What it prints, the
exceptions it notes, and the state of all random generators afterwards are compared as well
(``test_compile.py``).
"""

import contextlib
import copy
import functools
import io
import pickle
import random
import threading
import time
import weakref

import numpy as np

import framework as fw

nn, F = fw.nn, fw.nn.functional
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def caught(f, *args):
    """The result, or the type and message of the exception."""
    try:
        return f(*args)
    except Exception as error:
        return [type(error).__name__, str(error), getattr(error, "__notes__", [])]


def mlp():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def grads(module):
    return [p.grad if p.grad is None else p.grad.clone() for p in module.parameters()]


def trainer(compile, model, optimizer, loss_of, batches, after=lambda: None):
    """Train by a compiled step; what came of it."""
    def step(*batch):
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss
    step = compile(step)
    losses = []
    for batch in batches:
        losses.append(step(*batch).detach())
        after()
    return losses, list(model.parameters()), list(model.buffers()), grads(model)


def batches(n=4, rows=3, width=4):
    return [(fw.randn(rows, width),) for _ in range(n)]


# -- control flow -------------------------------------------------------------------------------------


@program
def branch_on_a_value(compile):
    w = fw.ones(3, requires_grad=True)

    @compile
    def f(x):
        y = (w * x).sum()
        y = y * 2 if y > 0 else y.square()
        y.backward()
        return y
    return [(f(fw.full((3,), s)), w.grad.clone()) for s in (1.0, -1.0, 2.0, -2.0, 1.0, -1.0)]


@program
def loop_until_small(compile):
    w = fw.full((2,), 0.7, requires_grad=True)

    @compile
    def f(x):
        n = 0
        while x.abs().sum().item() > 0.5:
            x, n = x * w, n + 1
        x.sum().backward()
        return x, n
    return [(f(fw.full((2,), s)), w.grad.clone()) for s in (1.0, 5.0, 1.0, 0.1 + 1, 5.0, 9.0)]


@program
def early_return(compile):
    w = fw.ones(2, requires_grad=True)

    @compile
    def f(x, stop):
        y = (x * w).exp()
        if stop:
            return y
        y.sum().backward()
        return w.grad.clone()
    return [f(fw.randn(2), i % 2 == 0) for i in range(6)]


@program
def recursion(compile):
    w = fw.full((3,), 1.1, requires_grad=True)

    @compile
    def f(x, depth):
        return f(x * w, depth - 1) if depth else x.sum()
    seen = []
    for depth in (0 + 1, 3, 2, 3, 3, 2):
        f(fw.ones(3), depth).backward()
        seen.append(w.grad.clone())
    return seen


@program
def mutated_global(compile):
    place = {"factor": 1.0}
    w = fw.ones(2, requires_grad=True)

    @compile
    def f(x):
        loss = (x * w * place["factor"]).sum()
        loss.backward()
        return loss
    seen = []
    for i in range(5):
        place["factor"] = float(i)
        seen.append((f(fw.ones(2)), w.grad.clone()))
    return seen


@program
def closures_class_attributes_defaults_lists(compile):
    class Holder:
        scale = 1.0
    shift, log = 0.5, []
    w = fw.randn(3, requires_grad=True)

    @compile
    def f(x, cache=[]):  # noqa: B006 - the default that changes is the point
        cache.append(len(cache))
        log.append(Holder.scale)
        loss = (x * w * Holder.scale + shift + len(cache)).square().mean()
        loss.backward()
        return loss
    seen = []
    for _ in range(4):
        Holder.scale, shift = Holder.scale + 1, shift * 2
        seen.append((f(fw.randn(3)), w.grad.clone(), list(log)))
    return seen


@program
def clock_counter_file(compile):
    w, file, count = fw.ones(2, requires_grad=True), io.StringIO(), [0]

    @compile
    def f(x):
        count[0] += 1
        assert time.monotonic() > 0
        file.write(f"{count[0]} ")
        loss = (w * x * count[0]).sum()
        loss.backward()
        return loss
    return [f(fw.ones(2)) for _ in range(4)], w.grad, file.getvalue()


@program
def python_and_numpy_random(compile):
    w = fw.ones(2, requires_grad=True)

    @compile
    def f(x):
        loss = (w * x * random.random() + float(np.random.rand())).sum()
        if random.random() > 0.5:
            loss = loss * 2
        loss.backward()
        return loss
    return [f(fw.ones(2)) for _ in range(6)], w.grad


@program
def prints(compile):
    w = fw.ones(2, requires_grad=True)

    @compile
    def f(x):
        y = w * x
        print("before", y)
        y.sum().backward()
        print("after", w.grad, y.grad_fn is not None)
    return [f(fw.full((2,), float(i))) for i in range(3)]


@program
def generators_inside_and_compiled(compile):
    w = fw.ones(2, requires_grad=True)

    def parts(x):
        for i in range(3):
            yield x * w * i

    @compile
    def f(x):
        return sum(parts(x)).sum()

    @compile
    def lazy(x):
        for part in parts(x):
            part.sum().backward()
            yield w.grad.clone()
    seen = []
    for _ in range(3):
        f(fw.randn(2)).backward()
        seen.append((w.grad.clone(), list(lazy(fw.ones(2)))))
    return seen


@program
def exceptions_inside_and_out(compile):
    w = fw.ones(3, requires_grad=True)

    @compile
    def f(x):
        y = w * 2
        try:
            y = y + x
        except ValueError as error:
            y = y + len(str(error))
        y.sum().backward()
        return y @ x
    return [caught(f, x) for x in (fw.ones(3), fw.ones(2), fw.ones(3), fw.ones(2))], w.grad


@program
def errors_of_backward(compile):
    w = fw.ones(3, requires_grad=True)

    @compile
    def f(kind):
        y = (w * 2).exp()
        z = y.sum()
        if kind == "twice":
            z.backward()
            z.backward()
        elif kind == "changed":
            y.add_(1)
            z.backward()
        elif kind == "no scalar":
            y.backward()
        elif kind == "no graph":
            z.detach().backward()
        else:
            z.backward()
        return w.grad.clone()
    kinds = ["plain", "twice", "changed", "plain", "no scalar", "twice", "changed", "no graph", "plain"]
    return [caught(f, kind) for kind in kinds], w.grad


@program
def an_error_in_the_middle_of_backward(compile):
    a, b = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)

    @compile
    def f(spoil):
        x = a * 2
        y = x.exp() + b.sin()
        z = y.tanh().sum()
        if spoil:
            with fw.no_grad():
                a.add_(0)
            x.data.add_(0)
            x.add_(0)
            y.mul_(1)
        z.backward()
    seen = []
    for spoil in (False, False, True, False, True):
        seen.append((caught(f, spoil), a.grad, None if b.grad is None else b.grad.clone()))
    return seen


# -- memory --------------------------------------------------------------------------------------------


@program
def in_place_on_inputs(compile):
    @compile
    def f(x, w):
        x.add_(1)
        y = (x * w).sum()
        y.backward()
        x[0] = 7
        return y
    x, w = fw.zeros(3), fw.ones(3, requires_grad=True)
    return [(f(x, w), x.clone(), x._version, w.grad.clone()) for _ in range(4)]


@program
def in_place_on_captured_and_views(compile):
    state, w = fw.zeros(4), fw.ones(4, requires_grad=True)

    @compile
    def f():
        y = w * 2
        y[1:3].mul_(3)
        y.T.add_(1)
        state[::2] += y.detach()[::2]
        y.sum().backward()
        return y
    return [(f(), state.clone(), w.grad.clone()) for _ in range(4)]


@program
def memory_shared_with_numpy(compile):
    array = np.ones(3, np.float32)
    x, w = fw.from_numpy(array), fw.ones(3, requires_grad=True)

    @compile
    def f():
        y = x * w
        array[:] += 1
        z = (y + x).sum()
        z.backward()
        return y, z
    return [(f(), w.grad.clone(), array.copy()) for _ in range(4)]


@program
def outputs_kept(compile):
    w = fw.ones(3, requires_grad=True)

    @compile
    def f(x):
        y = x * w
        y.sum().backward()
        return y, w.grad
    kept = [f(fw.full((3,), float(i))) for i in range(4)]
    return kept, kept[0][1] is kept[3][1]


@program
def gradients_kept_when_cleared(compile):
    model = mlp()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)

    @compile
    def f(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        return [p.grad for p in model.parameters()]
    return [f(x) for (x,) in batches(4)]


@program
def aliases_among_arguments(compile):
    @compile
    def f(a, b):
        a.add_(1)
        (a * b).sum().backward() if b.requires_grad else None
        return a * b
    x, w = fw.ones(2), fw.ones(2, requires_grad=True)
    return [f(x, x), f(x, x[:1]), f(x, w), f(x, w), f(x, x), w.grad]


@program
def shared_gradient(compile):
    a, b = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)

    @compile
    def f():
        a.grad = b.grad = None
        (a + b).sum().backward()
        return a.grad is b.grad
    seen = [f() for _ in range(3)]
    a.grad.add_(5)
    return seen, a.grad, b.grad


@program
def data_assignments(compile):
    w = fw.ones(3, requires_grad=True)

    @compile
    def f(x):
        loss = (w * x).square().sum()
        loss.backward()
        w.data -= 0.1 * w.grad
        w.grad = None
        return loss
    seen = [(f(fw.randn(3)), w.clone()) for _ in range(3)]
    w.data = fw.zeros(3)
    return seen, f(fw.ones(3)), w


# -- the graph -----------------------------------------------------------------------------------------


@program
def hooks_come_and_go(compile):
    model, log = mlp(), []

    @compile
    def f(x):
        y = model(x)
        y.sum().backward()
        return y
    seen = []
    for i, (x,) in enumerate(batches(7)):
        handles = []
        if i == 2:
            handles.append(next(model.parameters()).register_hook(lambda g: g * 3))
        if i == 3:
            handles.append(model[1].register_forward_hook(lambda m, a, out: out * 2))
        if i == 4:
            handles.append(model[0].register_full_backward_hook(lambda m, gi, go: log.append(go[0].clone())))
        if i == 5:
            handles.append(model[2].weight.register_post_accumulate_grad_hook(
                lambda p: log.append(p.grad.clone())))
        seen.append((f(x), grads(model)))
        for handle in handles:
            handle.remove()
        model.zero_grad()
    return seen, log


@program
def hooks_on_results(compile):
    w, log = fw.ones(3, requires_grad=True), []

    @compile
    def f(hooked):
        y = w.exp()
        if hooked:
            y.register_hook(lambda g: log.append(g.clone()))
            y.retain_grad()
        y.square().sum().backward()
        return y.grad if hooked else None
    return [f(i in (2, 4)) for i in range(6)], log, w.grad


@program
def requires_grad_toggled(compile):
    model = mlp()

    @compile
    def f(x):
        model.zero_grad()
        model(x).square().sum().backward()
        return grads(model)
    seen = []
    for i, (x,) in enumerate(batches(6)):
        model[0].weight.requires_grad_(i % 2 == 0)
        model[2].bias.requires_grad_(i % 3 == 0)
        seen.append(f(x))
    return seen


@program
def parameters_replaced(compile):
    model = mlp()

    @compile
    def f(x):
        model(x).sum().backward()
        return grads(model)
    seen = []
    for i, (x,) in enumerate(batches(4)):
        if i == 2:
            model[0].weight = nn.Parameter(fw.randn(5, 4))
        seen.append(f(x))
    return seen


@program
def weights_tied(compile):
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    model[2].weight = model[0].weight
    return trainer(compile, model, fw.optim.SGD(model.parameters(), lr=0.1),
                   lambda x: model(model(x)).square().mean(), batches(5))


@program
def module_called_twice(compile):
    model = mlp()
    twin = nn.Linear(3, 4)
    params = [*model.parameters(), *twin.parameters()]
    return trainer(compile, model, fw.optim.Adam(params), lambda x: model(twin(model(x))).sum(), batches(5))


@program
def diamonds_and_order(compile):
    """Four gradients meet in one place, in an order that the graph's structure does not tell."""
    w = fw.ones(5, requires_grad=True)

    @compile
    def f(turned):
        w.grad = None
        h = w * 1.0
        p = [h * 1.0, h * 1.0, h * -1e8, h * 1e8]
        if turned:
            h = w * 1.0
            p[0], p[2], p[1], p[3] = h * 1.0, h * -1e8, h * 1.0, h * 1e8
        (((p[0] + p[1]) + p[2]) + p[3]).sum().backward()
        return w.grad.clone()
    return [f(i in (2, 3, 5)) for i in range(7)]


@program
def merged_or_apart(compile):
    """Two graphs that differ in whether two nodes are one."""
    w = fw.randn(4, requires_grad=True)

    @compile
    def f(apart):
        a = w * 2.0
        b = w * 3.0 if apart else a
        (a * b).sum().backward()
        return w.grad.clone()
    return [f(i in (3, 4)) for i in range(6)], [f(i in (0, 3, 4)) for i in range(6)]


@program
def ops_of_one_form(compile):
    w = fw.randn(4, requires_grad=True)

    @compile
    def f(which):
        (w * 2).sum().backward() if which is None else which(w).sum().backward()
        return w.grad.clone()
    return [f(which) for which in (fw.sin, fw.cos, fw.sin, fw.exp, fw.tanh, fw.tanh, fw.sin)]


@program
def hooks_that_hook(compile):
    """What runs in the middle of a backward changes the rest of it."""
    a, b, log = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True), []

    def hook(p):
        handles.append(a.register_hook(lambda g: (log.append(g.clone()), g * 7)[1]))

    @compile
    def f():
        ((a * 2).sin() + b.exp()).sum().backward()
        return a.grad.clone(), b.grad.clone()
    seen = [f(), f()]
    for _ in range(2):
        handles = []
        handles.append(b.register_post_accumulate_grad_hook(hook))
        seen.append(f())
        for handle in handles:
            handle.remove()
    return seen, log


@program
def accumulation(compile):
    model = mlp()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @compile
    def step(parts):
        optimizer.zero_grad()
        for (x,) in parts:
            (model(x).square().mean() / len(parts)).backward()
        optimizer.step()
    for n in (2, 3, 2, 1):
        step(batches(n))
    return list(model.parameters()), grads(model)


@program
def retained_graphs(compile):
    w = fw.randn(3, requires_grad=True)

    @compile
    def f():
        y = w.tanh().square().sum()
        y.backward(retain_graph=True)
        y.backward(retain_graph=True)
        y.backward()
        return w.grad.clone()
    return [f() for _ in range(4)]


@program
def backward_in_and_outside(compile):
    w = fw.randn(3, requires_grad=True)

    @compile
    def f(x):
        return (w * x).tanh().sum()
    seen = []
    for _ in range(4):
        loss = f(fw.randn(3))
        loss.backward()
        seen.append((loss, w.grad.clone()))
    return seen


@program
def second_derivatives(compile):
    w = fw.randn(3, requires_grad=True)

    @compile
    def f(x):
        (g,) = fw.autograd.grad((w * x).tanh().sum(), w, create_graph=True)
        g.square().sum().backward()
        return g
    return [(f(fw.randn(3)), w.grad.clone()) for _ in range(4)]


@program
def grad_and_inputs(compile):
    a, b = fw.randn(3, requires_grad=True), fw.randn(3, requires_grad=True)

    @compile
    def f():
        y = (a * b).exp()
        y.sum().backward(inputs=[a], retain_graph=True)
        g = fw.autograd.grad(y, [a, b], fw.ones(3))
        return g, a.grad.clone(), b.grad
    return [f() for _ in range(4)]


@program
def several_roots(compile):
    w = fw.randn(3, requires_grad=True)

    @compile
    def f():
        y = w.exp()
        fw.autograd.backward([y.sum(), y.sin()], [None, fw.ones(3)])
        w.backward(fw.ones(3))
        return w.grad.clone()
    return [f() for _ in range(4)]


@program
def custom_function_with_state(compile):
    calls = []

    class Scale(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x, s):
            ctx.s = s
            ctx.save_for_backward(x)
            calls.append("forward")
            return x * s

        @staticmethod
        def backward(ctx, g):
            calls.append("backward")
            (x,) = ctx.saved_tensors
            return g * ctx.s * len(calls) + x * 0, None
    w = fw.randn(3, requires_grad=True)

    @compile
    def f(x):
        Scale.apply(w * x, 2.0).tanh().sum().backward()
        return w.grad.clone()
    return [f(fw.randn(3)) for _ in range(4)], calls


@program
def checkpointed(compile):
    model = mlp()

    @compile
    def f(x):
        y = fw.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
        F.dropout(y).sum().backward()
        return grads(model)
    return [f(fw.randn(2, 4, requires_grad=True)) for _ in range(4)]


@program
def saved_tensor_hooks(compile):
    w, log = fw.randn(3, requires_grad=True), []

    @compile
    def f(hooked):
        block = fw.autograd.graph.saved_tensors_hooks(
            lambda t: (log.append(1), t * 2)[1], lambda t: t) if hooked else contextlib.nullcontext()
        with block:
            y = w.tanh().square().sum()
        y.backward()
        return w.grad.clone()
    return [f(i in (1, 3)) for i in range(6)], log


# -- modes, kinds, constants ---------------------------------------------------------------------------


@program
def train_and_eval(compile):
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 2))

    @compile
    def f(x):
        model.zero_grad()
        y = model(x)
        y.square().sum().backward()
        return y, grads(model)
    seen = []
    for i, (x,) in enumerate(batches(6)):
        model.train(i % 3 != 1)
        seen.append((f(x), [b.clone() for b in model.buffers()]))
    return seen


@program
def grad_modes(compile):
    w = fw.randn(3, requires_grad=True)

    @compile
    def f(x):
        y = w * x
        with fw.no_grad():
            z = y * 2
        y = y + z
        if y.requires_grad:
            y.sum().backward()
        return y, y.requires_grad
    seen = []
    for mode in (fw.no_grad, contextlib.nullcontext, fw.inference_mode, contextlib.nullcontext, fw.no_grad):
        with mode():
            seen.append(f(fw.ones(3)))
    return seen, w.grad


@program
def dtypes_shapes_strides(compile):
    @compile
    def f(x):
        w = fw.ones(x.shape[-1], dtype=x.dtype, requires_grad=True)
        y = (x.T.T * w).tanh()
        y.sum().backward()
        return y, w.grad
    kinds = [fw.randn(2, 3), fw.randn(2, 3).double(), fw.randn(4, 3), fw.randn(3, 2).T, fw.randn(2, 3)[:,
    ::2],
             fw.randn(2, 3).to(fw.float16), fw.randn(0, 3), fw.randn(3), fw.randn(2, 3)]
    return [f(x) for x in kinds]


@program
def broadcasting_comes_and_goes(compile):
    w = fw.randn(1, 3, requires_grad=True)

    @compile
    def f(x):
        (w * x + w).exp().sum().backward()
        return w.grad.clone()
    return [f(x) for x in (fw.randn(1, 3), fw.randn(4, 3), fw.randn(1, 3), fw.randn(2, 4, 3), fw.randn(3))]


@program
def complex_and_real(compile):
    @compile
    def f(x):
        w = fw.ones(3, dtype=x.dtype, requires_grad=True)
        y = (w * x).exp()
        (y.abs() if y.is_complex() else y).sum().backward()
        return y, w.grad
    real, z = fw.randn(3), fw.complex(fw.randn(3), fw.randn(3))
    return [f(x) for x in (real, z, real, z, real)]


@program
def bfloat16(compile):
    try:
        fw.zeros(1, dtype=fw.bfloat16)
    except ImportError:
        return None

    @compile
    def f(x):
        w = fw.ones(3, dtype=x.dtype, requires_grad=True)
        (w * x).tanh().sum().backward()
        return w.grad
    return [f(x) for x in (fw.randn(3).to(fw.bfloat16), fw.randn(3), fw.randn(3).to(fw.bfloat16))]


@program
def constants_that_look_alike(compile):
    w = fw.ones(3, requires_grad=True)

    @compile
    def f(c):
        y = w * c
        y = (y / 1.0).atan2(w * 0 - 1)
        y.sum().backward()
        return y, w.grad.clone()
    return [f(c) for c in (0.0, -0.0, 0, True, 1, 1.0, False, float("nan"), float("inf"), -0.0, 2.5)]


@program
def masks_and_infinities(compile):
    w = fw.tensor([float("inf"), 1.0, -1.0], requires_grad=True)

    @compile
    def f(masked):
        w.grad = None
        y = w.sin()
        (fw.where(w < 100, y, fw.zeros(3)) if masked else y * 2).sum().backward()
        return w.grad
    return [f(masked) for masked in (True, False, True, True, False, False)]


@program
def no_gradient_on_the_way(compile):
    """A derivative that is not there for one operand: what led to it is not come by."""
    from framework.ops.record.op import OPS, Op
    scaled = Op("scaled", "x y", kernel=lambda xp, x, y: x * y, vjp={"y": lambda g, x: g * x})
    OPS.remove(scaled)
    a, b = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)

    @compile
    def f():
        scaled.run(a.exp(), b.exp()).sum().backward()
        return a.grad, b.grad.clone()
    return [f() for _ in range(3)]


@program
def optimizer_settings_change(compile):
    model = mlp()
    optimizer = fw.optim.AdamW(model.parameters(), lr=0.01)

    def after():
        optimizer.param_groups[0]["lr"] *= 0.5
        optimizer.param_groups[0]["weight_decay"] += 0.1
    return trainer(compile, model, optimizer, lambda x: model(x).square().mean(), batches(5), after)


@program
def schedulers_and_clipping(compile):
    model = mlp()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
    schedule = fw.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)

    @compile
    def step(x):
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).exp().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        schedule.step()
        return loss, norm, schedule.get_last_lr()
    return [step(x) for (x,) in batches(6)], list(model.parameters())


@program
def closures_of_lbfgs(compile):
    model = mlp()
    optimizer = fw.optim.LBFGS(model.parameters(), max_iter=4)

    @compile
    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss
        return optimizer.step(closure)
    return [step(x) for (x,) in batches(3)], list(model.parameters())


@program
def adversaries(compile):
    make, judge = mlp(), nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(), nn.Linear(4, 1))
    a = fw.optim.Adam(make.parameters(), betas=(0.5, 0.9))
    b = fw.optim.RMSprop(judge.parameters())

    @compile
    def step(x, real):
        fake = make(x)
        b.zero_grad()
        lost = F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(real)).mean()
        lost.backward()
        b.step()
        a.zero_grad()
        won = F.softplus(-judge(fake)).mean()
        won.backward()
        a.step()
        return lost, won
    return ([step(fw.randn(5, 4), fw.randn(5, 3)) for _ in range(4)],
            [*make.parameters(), *judge.parameters()])


@program
def scaled_losses(compile):
    model = mlp()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    scaler = fw.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)

    @compile
    def step(x, spoil):
        optimizer.zero_grad()
        loss = model(x).square().mean() * (float("inf") if spoil else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss, scaler.get_scale()
    return [step(x, i == 2) for i, (x,) in enumerate(batches(5))], list(model.parameters())


@program
def casts_by_autocast(compile):
    model = mlp()

    @compile
    def step(x):
        model.zero_grad()
        with fw.autocast("cpu", dtype=fw.float16):
            y = model(x)
        y.float().sum().backward()
        return y, grads(model)
    return [step(x) for (x,) in batches(3)]


@program
def moving_average_of_weights(compile):
    model = mlp()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    mean = copy.deepcopy(model)

    def after():
        with fw.no_grad():
            for p, q in zip(mean.parameters(), model.parameters()):
                p.lerp_(q, 0.1)
    return trainer(compile, model, optimizer, lambda x: model(x).square().mean(), batches(4), after), list(
        mean.parameters())


# -- kinds of networks ---------------------------------------------------------------------------------


@program
def convolutions(compile):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(36, 3))
    data = [(fw.randn(2, 1, 8, 8),) for _ in range(4)]
    return trainer(compile, model, fw.optim.Adam(model.parameters()), lambda x: F.cross_entropy(
        model(x), fw.tensor([0, 2])), data)


@program
def recurrent_loops(compile):
    cell = nn.LSTMCell(3, 4)

    def loss(x):
        h = c = fw.zeros(2, 4)
        for part in x:
            h, c = cell(part, (h, c))
        return h.sum()
    return trainer(compile, cell, fw.optim.SGD(cell.parameters(), lr=0.1), loss,
                   [(fw.randn(n, 2, 3),) for n in (3, 3, 5, 2, 3, 5)])


@program
def embeddings_and_attention(compile):
    table, block = nn.Embedding(7, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
    model = nn.ModuleList([table, block])
    data = [(fw.randint(0, 7, (2, n)),) for n in (4, 4, 3, 4)]
    optimizer = fw.optim.AdamW(model.parameters())
    return trainer(compile, model, optimizer, lambda i: block(table(i)).square().mean(), data)


@program
def sparse_embeddings(compile):
    table = nn.Embedding(7, 3, sparse=True)
    optimizer = fw.optim.SGD(table.parameters(), lr=0.1)

    @compile
    def step(i):
        optimizer.zero_grad()
        table(i).square().sum().backward()
        optimizer.step()
        return table.weight.grad.to_dense()
    return [step(fw.tensor(i)) for i in ([1, 2], [1, 1], [3])], table.weight


@program
def a_cache_that_grows(compile):
    project, cache = nn.Linear(4, 12), []

    @compile
    def step(x):
        q, k, v = project(x).chunk(3, -1)
        cache.append((k, v))
        keys, values = fw.cat([k for k, _ in cache], 1), fw.cat([v for _, v in cache], 1)
        y = F.scaled_dot_product_attention(q, keys, values)
        return y
    with fw.no_grad():
        return [step(fw.randn(2, 1, 4)) for _ in range(4)], len(cache)


@program
def unused_and_partly_used(compile):
    w = fw.randn(4, requires_grad=True)
    unused = fw.randn(2, requires_grad=True)

    @compile
    def f(n):
        a, b = w.split(2)
        u = w.unbind()
        y = a.exp().sum() + (b.sin().sum() if n > 1 else 0) + (u[0] * u[3] if n > 2 else 0)
        y.backward()
        return w.grad.clone(), unused.grad
    return [f(n) for n in (1, 2, 3, 1, 2, 3, 3)]


@program
def indexing(compile):
    w = fw.randn(4, 3, requires_grad=True)

    @compile
    def f(i):
        y = w[i] + w[fw.tensor([0, 1])].sum() + w[w.detach() > 0].sum() + w[1:, None, ..., ::2].sum()
        y.sum().backward()
        return w.grad.clone()
    return [f(i) for i in (0, 1, -1, fw.tensor(2), 0)] + [caught(f, 9)]


# -- objects -------------------------------------------------------------------------------------------


@program
def modules_as_they_are_used(compile):
    plain = mlp()
    model = compile(plain)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for (x,) in batches(3):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        seen.append(loss)
    model.eval()
    seen.append((plain.training, model.training, len(list(model.modules())) > 3))
    model.train()
    return seen, [p.clone() for p in plain.parameters()], model[0].weight is plain[0].weight


@program
def module_compiled_in_place(compile):
    model = mlp()
    if compile(len) is not len:
        model.compile()
    twin = copy.deepcopy(model)
    twin[0].weight.data.zero_()
    again = pickle.loads(pickle.dumps(model))
    return [m(fw.ones(1, 4)) for m in (model, twin, again)], sorted(model.state_dict())


@program
def copies_and_pickles(compile):
    model = compile(mlp())
    model(fw.ones(1, 4)).sum().backward()
    twin = copy.deepcopy(model)
    with fw.no_grad():
        for p in twin.parameters():
            p.add_(1)
    again = pickle.loads(pickle.dumps(model))
    again[0].weight.data.mul_(2)
    return [m(fw.ones(1, 4)) for m in (model, twin, again)]


@program
def methods_and_partials(compile):
    class Model:
        def __init__(self):
            self.w = fw.ones(2, requires_grad=True)

        @compile
        def step(self, x, factor=1.0):
            (self.w * x * factor).sum().backward()
            return self.w.grad.clone()
    a, b = Model(), Model()
    f = compile(functools.partial(a.step, factor=3.0))
    return a.step(fw.ones(2)), b.step(fw.ones(2)), a.step(fw.ones(2), factor=2.0), f(fw.ones(2)), Model.step(
        b, fw.ones(2))


@program
def weak_references_die(compile):
    w = fw.ones(3, requires_grad=True)
    seen = []

    @compile
    def f():
        y = w.exp()
        seen.append(weakref.ref(y))
        z = y.sum()
        z.backward()
        del y
        seen.append(seen[-1]() is None)
        return weakref.ref(z)
    dead = [f() for _ in range(4)]
    return [r() is None for r in dead], [s for s in seen if isinstance(s, bool)]


@program
def nested_compiled_functions(compile):
    w = fw.ones(2, requires_grad=True)

    @compile
    def inner(x):
        return (w * x).tanh()

    @compile
    def outer(x, fail):
        y = inner(x) + inner(x * 2)
        y.sum().backward()
        if fail:
            raise KeyError("on purpose")
        return y
    return [caught(outer, fw.ones(2), i == 1) for i in range(4)], inner(fw.ones(2)), w.grad


@program
def compiled_functions_as_arguments(compile):
    w = fw.ones(2, requires_grad=True)
    square = compile(lambda x: x * x * w)
    apply = compile(lambda f, x: f(f(x)).sum())
    seen = []
    for _ in range(3):
        apply(square, fw.full((2,), 1.5)).backward()
        seen.append(w.grad.clone())
    return seen


@program
def threads(compile):
    models = [mlp() for _ in range(3)]
    data = fw.randn(3, 4)

    @compile
    def step(model):
        model(data).square().sum().backward()

    def work(model):
        for _ in range(5):
            step(model)
    running = [threading.Thread(target=work, args=(m,)) for m in models]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return [grads(m) for m in models]


@program
def interrupted(compile):
    w = fw.ones(3, requires_grad=True)

    @compile
    def f(stop):
        y = w.exp()
        if stop:
            raise KeyboardInterrupt
        y.sum().backward()
        return w.grad.clone()
    seen = []
    for stop in (False, True, False, False):
        try:
            seen.append(f(stop))
        except KeyboardInterrupt:
            seen.append("interrupted")
    return seen


@program
def interceptors_and_anomaly_mode(compile):
    from framework.seam import intercept
    w, names = fw.ones(3, requires_grad=True), []

    def note(event, proceed):
        names.append((event.kind, event.name))
        return proceed(*event.inputs, **event.settings)

    @compile
    def f(x):
        (w * x).log().sum().backward()
        return w.grad.clone()
    seen = [f(fw.ones(3)), f(fw.ones(3))]
    with intercept(note):
        seen.append(f(fw.ones(3)))
    with fw.autograd.set_detect_anomaly(True):
        seen.append(caught(f, fw.tensor([0.0, 1.0, 1.0])))
    return seen, names, f(fw.ones(3))


@program
def vmap_and_functional(compile):
    w = fw.randn(3, requires_grad=True)

    @compile
    def f(x):
        y = fw.func.vmap(lambda row: (row * w).tanh().sum())(x)
        y.sum().backward()
        g = fw.func.grad(lambda v: (v * x).exp().sum())(w.detach())
        return y, g, w.grad.clone()
    return [f(fw.randn(2, 3)) for _ in range(3)]


@program
def random_streams(compile):
    w = fw.ones(4, requires_grad=True)

    @compile
    def f(p):
        y = F.dropout(w * fw.randn(4), p) + fw.rand(4)
        if p > 0.4:
            fw.manual_seed(3)
        y = F.dropout(y + fw.bernoulli(fw.full((4,), 0.5)), 0.3)
        y.sum().backward()
        return y, w.grad.clone()
    return [f(p) for p in (0.1, 0.5, 0.1, 0.0, 0.5)]


@program
def subclasses(compile):
    class Named(fw.Tensor):
        pass
    w = fw.ones(3, requires_grad=True)

    @compile
    def f(x):
        y = (w * x).exp()
        y.sum().backward()
        return type(y).__name__, y, w.grad.clone()
    return [f(fw.ones(3)), f(fw.ones(3).as_subclass(Named)), f(fw.ones(3))]


@program
def large_arrays(compile):
    w = fw.randn(400, 400, requires_grad=True)

    @compile
    def f(x):
        y = ((w * x).tanh() * w).sigmoid() + w
        y.sum().backward()
        g, w.grad = w.grad, None
        return y, g
    return [f(fw.randn(400, 400)) for _ in range(3)]


@program
def small_then_large(compile):
    @compile
    def f(w):
        (w.tanh() * w + w.exp()).sum().backward()
        return w.grad
    return [f(fw.randn(n, requires_grad=True)) for n in (3, 3, 150_000, 3, 150_000)]


@program
def many_structures(compile):
    """More than are kept."""
    w = fw.full((3,), 0.5, requires_grad=True)

    @compile
    def f(n):
        y = w
        for _ in range(n):
            y = y.sin()
        y.sum().backward()
        return w.grad.clone()
    return [f(n % 12 + 1) for n in range(30)]


@program
def losses_with_checked_targets(compile):
    w = fw.randn(4, 3, requires_grad=True)

    @compile
    def f(target):
        loss = F.cross_entropy(w, target)
        loss.backward()
        return loss, w.grad.clone()
    return [caught(f, fw.tensor(t)) for t in ([0, 1, 2, 0], [0, 1, 5, 0], [2, 2, 2, 2], [0, 1, -100, 0])]


@program
def asking_whether_compiled(compile):
    @compile
    def f(x):
        return x * 2
    return fw.compiler.is_compiling(), f(fw.ones(2)), fw.compiler.is_compiling(), f.__name__


@program
def picks(compile):
    """Which of several outputs leads on."""
    w = fw.randn(3, 2, requires_grad=True)

    @compile
    def f(i):
        fw.svd(w)[1][0].backward() if i == 2 else w.unbind()[i].exp().sum().backward()
        return w.grad.clone()
    return [f(i) for i in (0, 1, 0, 1, 2, 0)]


@program
def shared_memory_of_gradients(compile):
    """A gradient that two places have is not added to in place."""
    w, v = fw.randn(3, requires_grad=True), fw.randn(3, requires_grad=True)

    @compile
    def f():
        y, x = w * 3, v * 2
        s = x.sin()
        ((x + y) + s).exp().sum().backward()
        return w.grad.clone(), v.grad.clone()
    return [f() for _ in range(3)]


@program
def steps_of_every_kind(compile):
    """State that is not there yet, missing and replaced gradients, groups, a parameter in two of them."""
    seen = []
    o = fw.optim
    for kind in (o.SGD, o.Adam, o.AdamW, o.RMSprop, o.Adagrad, o.NAdam):
        a, b, c = (nn.Parameter(fw.randn(3)) for _ in range(3))
        half = nn.Parameter(fw.randn(2).to(fw.float16))
        optimizer = kind([{"params": [a, b]}, {"params": [c, half], "lr": 0.5}], lr=0.1)

        @compile
        def step(x, optimizer=optimizer, a=a, b=b, c=c, half=half):
            optimizer.zero_grad()
            loss = (a * x).sum() + (b * b * x).sum() * (x[0] > 0) + (c.exp() * x).sum()
            (loss + half.sum().float()).backward()
            if x[1] > 0:
                b.grad = None
            optimizer.step()
            return a.grad, [p._version for p in (a, b, c, half)]
        for i in range(5):
            seen.append(step(fw.randn(3)))
            if i == 3:
                optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
                optimizer.param_groups[0]["lr"] = fw.tensor(0.2)
        seen.append([a, b, c, half, optimizer.state_dict()["state"]])
    return seen


@program
def steps_that_are_refused(compile):
    w, v = nn.Parameter(fw.ones(3)), nn.Parameter(fw.ones(2))
    optimizer = fw.optim.SGD([w, v], lr=0.1, momentum=0.9)
    twice = fw.optim.Adam([{"params": [w]}, {"params": [v]}])
    twice.param_groups[1]["params"].append(w)

    @compile
    def step(kind):
        (w.sum() + v.sum()).backward()
        if kind == "shape":
            v.data = fw.ones(4)
        if kind == "read-only":
            v.data = fw.from_numpy(np.broadcast_to(np.float32(1), (2,)))
        (twice if kind == "twice" else optimizer).step()
        if kind == "group":
            del optimizer.param_groups[0]["momentum"]
            optimizer.step()
        return w._version, v._version
    seen = []
    for kind in ("", "", "shape", "", "twice", "twice", "read-only", "", "group", ""):
        seen.append((caught(step, kind), w.clone(), v.clone()))
        v.data = fw.ones(2)
        w.grad = v.grad = None
        optimizer.param_groups[0]["momentum"] = 0.9
    return seen, twice.state_dict()["state"]


@program
def hooks_of_optimizers(compile):
    w, log = nn.Parameter(fw.ones(3)), []
    optimizer = fw.optim.Adam([w])
    optimizer.register_step_pre_hook(lambda *args: log.append(w.detach().clone()))
    optimizer.register_step_post_hook(lambda *args: log.append(w.detach().clone()))

    @compile
    def step():
        w.square().sum().backward()
        optimizer.step()
        return [s.copy() for s in optimizer.state.values()]
    return [step() for _ in range(3)], log


@program
def gradients_that_come_last(compile):
    """A leaf takes over an array that several have, after all else; a sum of floats tells the order."""
    w = fw.ones(3, requires_grad=True)

    @compile
    def f():
        w.grad = None
        h = w * 1.0
        s = w + h
        (s * 1.0 + s * 1.0 + h * -1e8 + w * 1e8).sum().backward()
        return w.grad
    return [f() for _ in range(3)]


@program
def dicts_that_change(compile):
    w, settings = fw.randn(3, requires_grad=True), {"scale": 1.0, "act": fw.tanh}

    @compile
    def f(x, kinds):
        y = settings["act"](w * x * settings["scale"])
        if "shift" in settings:
            y = y + settings["shift"]
        kinds["seen"] = kinds.get("seen", 0) + 1
        y.sum().backward()
        return {"y": y.detach(), **kinds}
    seen, kinds = [], {}
    for n in range(6):
        seen.append((f(fw.randn(3), kinds), w.grad.clone()))
        settings["scale"] += 0.5 if n % 2 else 0
        if n == 2:
            settings.update(shift=w.detach() * 2, act=fw.sigmoid)
        if n == 3:
            del settings["shift"]
    return seen


@program
def another_device(compile):
    @compile
    def f(x):
        y = (x * 2 + 1).tanh()
        return y, y.shape, str(y.device), caught(lambda: y.sum().item())
    found = [f(x) for x in (fw.ones(2), fw.ones(2, device="meta"), fw.ones(2), fw.ones(3, device="meta"),
                            fw.ones(2))]
    return [(y if device == "cpu" else None, shape, device, told) for y, shape, device, told in found]


@program
def read_in_another_thread(compile):
    """What one thread has put off is read by another, which ends before the function goes on."""
    w = fw.randn(4, 4, requires_grad=True)
    seen = []

    @compile
    def f(x):
        y = (x * 2).tanh() + w
        worker = threading.Thread(target=lambda: seen.append((y.detach() * 3).sum().item()))
        worker.start()
        worker.join()
        z = y * x
        z.sum().backward()
        return z
    return [(f(fw.randn(4, 4)), w.grad.clone()) for _ in range(6)], seen


@program
def handed_to_another_thread(compile):
    """A tensor of one compiled function is an argument of another one, which runs in a thread of its own."""
    a, b = fw.randn(4), fw.randn(4)
    second = compile(lambda y: (y + b).exp() * 2)
    found = []

    @compile
    def first(x):
        y = (x * a).sin()
        worker = threading.Thread(target=lambda: found.append(second(y)))
        worker.start()
        worker.join()
        return y + found[-1]
    return [first(fw.randn(4)) for _ in range(6)], found


@program
def one_function_in_two_threads(compile):
    """Both use what one has recorded, at the same time; what each put off stays its own."""
    a, b, found = fw.randn(8, 8), fw.randn(8, 8), {}
    f = compile(lambda x: ((x * a + b).tanh() * x).sum(1))

    def work(number):
        found[number] = [f(x) for x in inputs[number]]
    inputs = [[fw.randn(8, 8) for _ in range(12)] for _ in range(3)]
    running = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return [found[n] for n in range(3)]
