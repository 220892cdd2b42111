"""Threads and interrupts."""

import threading

import framework as fw

from .base import grads, mlp, program


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
