"""Memory: writes in place, views, memory shared with NumPy, aliases, gradients that are kept."""

import numpy as np

import framework as fw

from .base import batches, mlp, program


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
