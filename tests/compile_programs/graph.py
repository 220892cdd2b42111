"""The graph: hooks, tied and replaced parameters, diamonds, several roots, second derivatives."""

import contextlib

import framework as fw

from .base import F, batches, grads, mlp, nn, program, trainer


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
