"""framework.autograd.graph: hooks on saved tensors, nodes and several gradients; places in the graph."""

import gc
import threading
import weakref

import numpy as np
import pytest

import framework as fw
from framework import nn
from framework.autograd import Function, grad, gradcheck, gradgradcheck, graph
from framework.errors import AutogradError
from framework.node import Node

try:
    import torch
except ImportError:
    torch = None
MODULES = [fw] if torch is None else [fw, torch]


def leaf(*values, M=fw):
    return M.tensor(values, dtype=M.float64, requires_grad=True)


class Cube(Function):
    """Keeps an input and an output."""

    @staticmethod
    def forward(ctx, x):
        y = x ** 3
        ctx.save_for_backward(x, y, None)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y, nothing = ctx.saved_tensors
        assert nothing is None
        return g * (x * x + 2 * y / x)


PROGRAMS = {
    "one input": lambda x: x.sin(),
    "output": lambda x: x.exp().tanh(),
    "two inputs": lambda x: x * (x + 1),
    "broadcast": lambda x: x.reshape(-1, 1) * x,
    "several outputs": lambda x: fw.linalg.svd(x.outer(x + 1) + fw.eye(3), full_matrices=False)[1] * x,
    "variadic": lambda x: fw.einsum("i,i->i", x, x * 2),
    "joint rule": lambda x: fw.nn.functional.layer_norm(x * x, (3,), x, x),
    "matmul": lambda x: x.reshape(3, 1) @ x.reshape(1, 3),
    "a function": Cube.apply,
    "scalar": lambda x: x.sum() ** 2.5,
    "pow": lambda x: (x * x) ** x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_every_order_come_through_hooks(name):
    packed, unpacked = [], []

    def pack(x):
        assert not x.requires_grad and not fw.is_grad_enabled()
        packed.append(x.shape)
        return x.numpy().copy(), x.dtype

    def unpack(pair):
        unpacked.append(pair[0].shape)
        return fw.from_numpy(pair[0])

    def under_hooks(x):
        with graph.saved_tensors_hooks(pack, unpack):
            return PROGRAMS[name](x).sin()

    x = leaf(0.7, 1.3, 0.4)
    plain = grad(PROGRAMS[name](x).sin().sum(), x)[0]
    np.testing.assert_array_equal(grad(under_hooks(x).sum(), x)[0].numpy(), plain.numpy())
    assert packed and sorted(packed) == sorted(unpacked)
    assert gradcheck(under_hooks, (x,)) and gradgradcheck(under_hooks, (x,))
    y, z = PROGRAMS[name](x).sin().sum(), under_hooks(x).sum()
    for _ in range(3):
        (y,), (z,) = grad(y.sum(), x, create_graph=True), grad(z.sum(), x, create_graph=True)
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-12)


def test_the_same_calls_as_in_pytorch():
    def calls(M):
        seen = []

        def pack(x):
            seen.append(("pack", tuple(x.shape)))
            return x

        def unpack(x):
            seen.append(("unpack", tuple(x.shape)))
            return x
        x = M.ones(2, 3, dtype=M.float64, requires_grad=True)
        with M.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (x * x.exp()).sin() @ M.ones(3, 4, dtype=M.float64)
        z = y * y
        z.sum().backward(retain_graph=True)
        z.sum().backward()
        return sorted(seen)

    results = [calls(M) for M in MODULES]
    assert results[0].count(("pack", (2, 3))) == 4 and all(r == results[0] for r in results)


def test_the_innermost_block_counts_and_blocks_end():
    seen = []

    def block(name):
        return graph.saved_tensors_hooks(lambda x: seen.append(name) or x, lambda x: x)

    plain, x = Node.__init__, leaf(1.0)
    with block("outer"):
        x.sin()
        with block("inner"):
            x.sin()
        with pytest.raises(KeyError), block("broken"):
            raise KeyError
        x.sin()
    x.sin()
    assert seen == ["outer", "inner", "outer"] and Node.__init__ is plain
    with block("again"), fw.no_grad():
        x.sin()
    assert len(seen) == 3


def test_hooks_belong_to_a_thread():
    seen = []
    with graph.saved_tensors_hooks(lambda x: seen.append(x) or x, lambda x: x):
        thread = threading.Thread(target=lambda: leaf(1.0).sin().backward())
        thread.start()
        thread.join()
    assert not seen


def test_packed_objects_are_freed_with_the_graph():
    class Packed:
        def __init__(self, x):
            self.x = x

    made = []

    def pack(x):
        made.append(weakref.ref(p := Packed(x)))
        return p

    gc.disable()
    try:
        for free in ("backward", "delete"):
            with graph.saved_tensors_hooks(pack, lambda p: p.x):
                y = Cube.apply(leaf(1.0).sin() * 2).sum()
            assert made and all(ref() is not None for ref in made)
            if free == "backward":
                y.backward()
                with pytest.raises(AutogradError, match="a second time"):
                    y.backward()
            else:
                del y
            assert all(ref() is None for ref in made)
            made.clear()
    finally:
        gc.enable()


def test_a_tensor_that_is_kept_as_it_is_stays_under_watch():
    def program(pack):
        x = leaf(1.0)
        y = x * 1
        with graph.saved_tensors_hooks(pack, lambda x: x):
            z = y * y
        y.add_(1.0)
        z.backward()
        return x.grad.item()

    with pytest.raises(AutogradError, match="backward of mul.*changed in place by add_"):
        program(lambda x: x)
    assert program(lambda x: x.clone()) == 2


@pytest.mark.parametrize("pack, unpack, kind, text", [
    (lambda x: x.add_(1.0), lambda x: x, AutogradError, "saved by sin: the pack hook changed the tensor"),
    (lambda x: x, lambda x: None, TypeError, "sin: the unpack hook must return a Tensor, got NoneType"),
    (lambda x: x, lambda x: x.float(), AutogradError, r"returned framework.float32\[1\] for .*64\[1\]"),
    (lambda x: x, lambda x: x[:0], AutogradError, r"float64\[0\] for a tensor of"),
])
def test_wrong_hooks_are_named(pack, unpack, kind, text):
    with pytest.raises(kind, match=text), graph.saved_tensors_hooks(pack, unpack):
        leaf(1.0).sin().backward()
    assert not fw.autograd.mode.state.saved_hooks


def test_disabling_hooks():
    with graph.disable_saved_tensors_hooks("not in here"):
        with pytest.raises(AutogradError, match="not in here"), graph.save_on_cpu():
            pass
        leaf(1.0).sin().backward()
    with graph.save_on_cpu(), pytest.raises(AutogradError, match="in use around"), \
            graph.disable_saved_tensors_hooks("no"):
        pass
    with graph.save_on_cpu():
        leaf(1.0).sin().backward()


def test_save_on_cpu_trains_the_same():
    def gradients():
        fw.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 2))
        net(fw.randn(5, 3)).square().sum().backward()
        return [p.grad.numpy() for p in net.parameters()]

    plain = gradients()
    with graph.save_on_cpu(pin_memory=True):
        packed = gradients()
    for a, b in zip(plain, packed):
        np.testing.assert_array_equal(a, b)


# -- nodes ----------------------------------------------------------------------------------------


def shape_of(edge):
    """A graph as nested tuples: output number, and the inputs that need a gradient."""
    node, number = edge
    return number, *[shape_of(e) for e in node.next_functions if e[0] is not None]


@pytest.mark.parametrize("program", [
    lambda M, x, y: x * y + x,
    lambda M, x, y: M.max(x * 2, 0)[0] * y.sum(),
    lambda M, x, y: M.where(x > 0, x.detach(), y).exp(),
])
def test_next_functions_are_pytorchs(program):
    graphs = []
    for M in MODULES:
        z = program(M, leaf(1.0, 2.0, M=M), leaf(3.0, 4.0, M=M))
        graphs.append(shape_of((z.grad_fn, 0)))
    assert all(g == graphs[0] for g in graphs)


def test_output_numbers_names_and_leaves():
    x = leaf(1.0, 3.0, 2.0)
    values, where = (x * 1).sort()
    _, triangle = fw.linalg.qr(x.reshape(3, 1))
    (first, a), (second, b) = (values + triangle).grad_fn.next_functions
    assert (a, b) == (0, 1) and first.name() == "sort" and values.grad_fn.name() == "sort"
    assert triangle.grad_fn.name() == second.name() == "qr" and where.grad_fn is None
    assert triangle.grad_fn.next_functions == second.next_functions
    ((back, number),) = second.next_functions[0][0].next_functions
    assert back.variable is x and number == 0 and back.name() == "leaf" and back.next_functions == ()
    assert repr(back).startswith("<leaf") and "sort" in repr(values)
    del x
    assert back.variable is None


def test_metadata():
    y = leaf(1.0) * 2
    y.grad_fn.metadata["note"] = 3
    assert y.grad_fn.metadata == {"note": 3} and (y + 1).grad_fn.metadata == {}
    assert leaf(1.0)._node.metadata == {}


def test_hooks_on_nodes():
    def program(M):
        seen = []
        x, w = leaf(1.0, 2.0, M=M), leaf(3.0, 5.0, M=M)
        y = x * w
        node = y.grad_fn
        node.register_prehook(lambda outs: seen.append(("pre", [g.tolist() for g in outs])))
        node.register_prehook(lambda outs: (outs[0] * 10,))
        node.register_hook(lambda ins, outs: seen.append(
            ("post", [g.tolist() for g in ins], [g.tolist() for g in outs])))
        handle = node.register_hook(lambda ins, outs: (ins[0] * 2, None))
        y.sum().backward(retain_graph=True)
        seen.append((x.grad.tolist(), w.grad))
        handle.remove()
        y.sum().backward()
        seen.append((x.grad.tolist(), w.grad.tolist()))
        return seen

    results = [program(M) for M in MODULES]
    assert results[0][2] == ([60.0, 100.0], None) and all(r == results[0] for r in results)


def test_hooks_on_leaves_and_their_removal():
    """The idiom by which data-parallel wrappers learn that a parameter's gradient is ready."""
    for M in MODULES:
        seen = []
        x = leaf(1.0, M=M)
        ready = x.expand_as(x).grad_fn.next_functions[0][0]
        handle = ready.register_hook(lambda ins, outs: seen.append((ins, outs[0].item(), x.grad.item())))
        before = ready.register_prehook(lambda outs: (outs[0] * 2,))
        (x * 3).backward()
        (x * 3).backward()
        handle.remove()
        before.remove()
        (x * 3).backward()
        assert seen == [((), 6.0, 6.0), ((), 6.0, 12.0)] and x.grad.item() == 15.0


@pytest.mark.parametrize("hook, kind, text", [
    (lambda ins, outs: (ins[0],), ValueError, "a hook of mul returned 1 gradients where 2 were wanted"),
    (lambda ins, outs: (3, 4), TypeError, "a hook of mul must return Tensors or None, got int"),
    (lambda ins, outs: (fw.ones(3), ins[1]), ValueError, r"shape \[1\] into one of shape \[3\]"),
])
def test_wrong_hooks_on_nodes(hook, kind, text):
    y = leaf(1.0) * leaf(2.0)
    y.grad_fn.register_hook(hook)
    with pytest.raises(kind, match=text):
        y.backward()


def test_hooks_on_nodes_under_create_graph():
    x = leaf(2.0)
    y = x ** 3
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 2,))
    (g,) = grad(y, x, create_graph=True)
    assert g.item() == 24 and grad(g, x)[0].item() == 24


# -- several gradients ----------------------------------------------------------------------------


def test_multi_grad_hooks_as_in_pytorch():
    def program(M):
        seen = []
        x, y, z, unused = (leaf(float(i), M=M) for i in range(1, 5))

        def note(grads):
            grads = grads if isinstance(grads, (list, tuple)) else [grads]
            seen.append([None if g is None else g.item() for g in grads])
        register = M.autograd.graph.register_multi_grad_hook
        a = x * y
        handle = register([x, y, unused, a], note)
        register([y, z], note, mode="any")
        (a * z).backward(retain_graph=True)
        (a * 2).backward()
        (y * 5).backward()
        z.exp().backward()
        handle.remove()
        (x * 7).backward()
        return seen

    results = [program(M) for M in MODULES]
    assert [3.0 * 2, 3.0, None, 3.0] in results[0]
    assert sorted(map(str, results[0])) == sorted(map(str, results[-1]))


def test_multi_grad_hooks_with_a_node_that_gets_no_gradient():
    class OnlyFirst(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, None

    seen = []
    x, y = leaf(1.0), leaf(2.0)
    b = y * 1
    graph.register_multi_grad_hook([x, b], seen.append)
    OnlyFirst.apply(x, b).backward()
    assert [g if g is None else g.item() for g in seen[0]] == [1.0, None] and len(seen) == 1


def test_multi_grad_hooks_inside_each_other_and_twice_the_same():
    seen = []
    x = leaf(2.0)

    other = x * 5

    def again(grads):
        seen.append([g.item() for g in grads])
        if len(seen) == 1:
            other.backward()
    graph.register_multi_grad_hook([x, x], again)
    (x * 3).backward()
    assert seen == [[3.0, 3.0], [5.0, 5.0]]


def test_multi_grad_hooks_are_checked_and_leak_nothing():
    with pytest.raises(ValueError, match="mode must be 'all' or 'any', got 'some'"):
        graph.register_multi_grad_hook([leaf(1.0)], print, mode="some")
    with pytest.raises(AutogradError, match=r"tensors\[1\] requires no grad"):
        graph.register_multi_grad_hook([leaf(1.0), fw.ones(1)], print)
    gc.disable()
    try:
        x = leaf(1.0)
        y = x * 2
        graph.register_multi_grad_hook([x, y], lambda grads: None)
        (y * 3).backward()
        watched = [weakref.ref(y), weakref.ref(y.grad_fn)]
        del y
        assert [w() for w in watched] == [None, None]
    finally:
        gc.enable()


# -- places in the graph --------------------------------------------------------------------------


def test_gradient_edges():
    for M in MODULES:
        edge_of = M.autograd.graph.get_gradient_edge
        x = leaf(1.0, 3.0, M=M)
        y = x * 2
        values, _ = y.sort()
        loss = (values * values).sum()
        edges = [edge_of(t) for t in (y, values, x)]
        assert [e.output_nr for e in edges] == [0, 0, 0]
        del y, values
        found = M.autograd.grad(loss, edges, retain_graph=True)
        for g, wanted in zip(found, ([4, 12], [4, 12], [8, 24])):
            np.testing.assert_allclose(g.numpy(), wanted)
        (g,) = M.autograd.grad(edges[1], x, M.ones(2, dtype=M.float64), retain_graph=True)
        np.testing.assert_allclose(g.numpy(), [2, 2])
        (g,) = M.autograd.grad(loss, edges[2])
        np.testing.assert_allclose(g.numpy(), [8, 24])


def test_wrong_gradient_edges():
    with pytest.raises(AutogradError, match="does not require grad"):
        graph.get_gradient_edge(fw.ones(1))
    with pytest.raises(TypeError, match="wanted a Tensor, got int"):
        graph.get_gradient_edge(3)
    x = leaf(1.0, 2.0)
    edge = graph.get_gradient_edge(x.sort()[0])
    several = fw.linalg.qr(x.reshape(2, 1))[1]
    with pytest.raises(AutogradError, match="pass its gradient in grad_outputs"):
        grad(edge, x)
    with pytest.raises(AutogradError, match="was not used"):
        grad(x.sum(), edge)
    with pytest.raises(AutogradError, match="which has several outputs"):
        grad(several.sum(), graph.GradientEdge(*several.sum().grad_fn.next_functions[0]))


def test_increment_version():
    x, y = leaf(1.0), leaf(2.0)
    a, b = x * 1, y * 1
    z = a * b
    graph.increment_version([a, b])
    assert (a._version, b._version) == (1, 1)
    with pytest.raises(AutogradError, match="changed in place by increment_version"):
        z.backward()
    with pytest.raises(TypeError, match="wanted Tensors, got int"):
        graph.increment_version([3])
