"""Control flow and side effects: branches, loops, globals, closures, generators, exceptions."""

import io
import random
import time

import numpy as np

import framework as fw

from .base import caught, program


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
