"""Modules and functions as objects: copies, pickles, methods, subclasses, weak references."""

import copy
import functools
import pickle
import weakref

import framework as fw

from .base import batches, caught, mlp, program


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
