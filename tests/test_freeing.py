"""The size of graphs and their end: long chains, and graphs freed by reference counts alone."""

import gc
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest

import framework as fw
from framework import autograd
from framework.errors import AutogradError


def leaf(*values, dtype=fw.float64):
    return fw.tensor(values, dtype=dtype, requires_grad=True)


def close(x, values, **tolerance):
    np.testing.assert_allclose(x.detach().numpy(), values, **({"rtol": 1e-12} | tolerance))


def test_a_million_ops():
    """Forward, backward and freeing take no stack, under the default recursion limit and 8 MB."""
    program = textwrap.dedent("""
        import gc, resource, sys, weakref
        gc.disable()
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        limit = 8 * 2 ** 20 if hard == -1 else min(8 * 2 ** 20, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (limit, hard))
        assert sys.getrecursionlimit() <= 1000
        import framework as fw
        x = fw.tensor([1.0], requires_grad=True)
        y = x
        for i in range(500_000):
            y = (y + 1.0) * 1.0
        last = weakref.ref(y.grad_fn)
        y.backward()
        assert x.grad.item() == 1.0
        z = x
        for i in range(100_000):
            z = z * 1.0
        first = weakref.ref(z.grad_fn)
        del y, z
        assert last() is None and first() is None
        print("done")
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr[-2000:]


def test_a_deep_graph_of_views_and_selected_inputs():
    x = leaf(1.0, 2.0)
    y = x
    for _ in range(20_000):
        y = y.reshape(2, 1).reshape(2)
    (g,) = autograd.grad(y.sum(), x)
    close(g, [1.0, 1.0])
    del y


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def graph_nodes(t):
    """Weak references to all nodes of a graph, leaves excepted."""
    found, stack = {}, [t._node]
    while stack:
        node = stack.pop()
        if node is None or id(node) in found or type(node).__name__ == "Leaf":
            continue
        found[id(node)] = weakref.ref(node)
        stack += node.edges
    return list(found.values())


def net(x):
    return ((x * x).exp().tanh() / (x + 3.0)).sum()


def leak_forward(x):
    return graph_nodes(net(x))


def leak_backward(x):
    y = net(x)
    nodes = graph_nodes(y)
    y.backward()
    return nodes


def leak_create_graph(x):
    y = net(x)
    (g,) = autograd.grad(y, x, create_graph=True)
    nodes = graph_nodes(y) + graph_nodes(g)
    g.sum().backward()
    x.grad = None
    return nodes


def leak_backward_create_graph(x):
    y = net(x)
    y.backward(create_graph=True)
    nodes = graph_nodes(y) + graph_nodes(x.grad)
    x.grad = None
    return nodes


def leak_retain_graph(x):
    y = net(x)
    y.backward(retain_graph=True)
    return graph_nodes(y)


def leak_hook_with_closure(x):
    y = x * 2
    y.register_hook(lambda g: g * x.detach())
    z = net(y)
    z.backward()
    return graph_nodes(z)


def leak_retain_grad(x):
    y = x * 2
    y.retain_grad()
    z = net(y)
    nodes = graph_nodes(z)
    z.backward()
    assert y.grad is not None
    return nodes


def leak_exception(x):
    y = net(x)
    nodes = graph_nodes(y)
    try:
        (y * fw.ones(2, dtype=fw.float64)).reshape(7)
    except RuntimeError as error:
        assert error is not None
    return nodes


def leak_running_loss(x):
    total = 0.0
    for _ in range(3):
        y = net(x)
        y.backward()
        total = total + y.detach()
    assert not total.requires_grad
    return graph_nodes(y)


def leak_views_and_inplace(x):
    y = x * 1
    view = y.reshape(2, 1)
    view.mul_(2.0)
    y.add_(1.0)
    z = net(y)
    nodes = graph_nodes(z) + [weakref.ref(view)]
    z.backward()
    return nodes


def leak_closure(x):
    y = net(x)
    nodes = graph_nodes(y)

    def again():
        return y * 2
    again().backward()
    return nodes


def leak_failed_backward(x):
    y = x * 1
    z = y * y
    y.add_(1.0)
    nodes = graph_nodes(z)
    with pytest.raises(AutogradError):
        z.sum().backward()
    return nodes


LEAKS = [f for name, f in list(globals().items()) if name.startswith("leak_")]


@pytest.mark.parametrize("pattern", LEAKS, ids=lambda f: f.__name__)
def test_graphs_die_by_reference_counts_alone(pattern, without_collector):
    assert len(LEAKS) == 12
    x = leaf(0.5, 1.5)
    nodes = pattern(x)
    assert nodes and all(ref() is None for ref in nodes), [ref() for ref in nodes if ref() is not None]
