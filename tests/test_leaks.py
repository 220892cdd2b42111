"""Graphs die by reference counts alone: with the garbage collector off, weak references to everything a
pattern of use made must be dead once the user's own references are gone.

Two circles are the user's own and stay until he breaks them, as the last tests show: ``.grad`` after
``backward(create_graph=True)`` leads through its graph to the leaf that holds it, and a hook that closes over
the tensor it hangs on holds that tensor.
"""

import copy
import gc
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest

import framework as fw
import framework.nn.functional as F
from framework import nn
from framework.autograd import Function, detect_anomaly, draw, functional, grad, graph
from framework.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Watched(list):
    """Weak references to tensors and to every node behind them."""

    def see(self, *tensors):
        for t in tensors:
            self.append(weakref.ref(t))
            stack, seen = [t._node], set()
            while stack:
                node = stack.pop()
                if node is None or node in seen or not node.edges:
                    continue  # leaves are the parameters', which live on
                seen.add(node)
                self.append(weakref.ref(node))
                stack += node.edges
        return tensors[0]


def net():
    fw.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


X = np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)


def loss_of(model):
    return model(fw.from_numpy(X)).square().mean()


PATTERNS = {}


def pattern(function):
    PATTERNS[function.__name__] = function
    return function


@pattern
def training_steps(see):
    model = net()
    optimizer = fw.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        loss = see(loss_of(model))
        loss.backward()
        optimizer.step()


@pattern
def running_loss_that_records(see):
    """Adding losses up keeps all graphs, as long as the sum lives and no longer."""
    model, total = net(), 0.0
    for _ in range(3):
        total = total + loss_of(model)
    see(total)


@pattern
def running_loss_of_numbers(see):
    model, total = net(), 0.0
    for _ in range(3):
        loss = see(loss_of(model))
        loss.backward()
        total += loss.item()
    assert total > 0


@pattern
def no_backward(see):
    see(loss_of(net()))


@pattern
def retained_graph(see):
    loss = see(loss_of(net()))
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)


@pattern
def created_graph(see):
    model = net()
    gradients = grad(loss_of(model), list(model.parameters()), create_graph=True)
    penalty = sum(g.square().sum() for g in gradients)
    see(penalty, *gradients)
    penalty.backward()


@pattern
def third_order(see):
    x = fw.tensor([0.5, 2.0], requires_grad=True)
    y = (x.exp() * x.sin()).sum()
    for _ in range(3):
        (g,) = grad(y, x, create_graph=True)
        y = see(g.sum())


@pattern
def backward_that_creates_a_graph_and_cleans_up(see):
    model = net()
    see(loss_of(model)).backward(create_graph=True)
    see(*[p.grad for p in model.parameters()])
    model.zero_grad()


@pattern
def hooks_on_tensors(see):
    x = fw.ones(3, requires_grad=True)
    y = see(x * 2)
    other = y.detach()
    y.register_hook(lambda g: g * other)
    y.retain_grad()
    x.register_post_accumulate_grad_hook(lambda t: None)
    see(y.exp()).sum().backward()
    assert y.grad is not None


@pattern
def hooks_on_nodes_and_several_gradients(see):
    x = fw.ones(3, requires_grad=True)
    y, z = see(x * 2), see(x * 3)
    y.grad_fn.register_hook(lambda ins, outs: None)
    y.grad_fn.register_prehook(lambda outs: None)
    seen = []
    graph.register_multi_grad_hook([y, z, x], seen.append)
    see((y * z).sum()).backward()
    assert len(seen) == 1


@pattern
def hooks_on_saved_tensors(see):
    x = fw.ones(3, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: [t], lambda box: box[0]):
        y = see((x.exp() * x).sum())
    see(grad(y, x, create_graph=True)[0].sum()).backward()


@pattern
def hooks_on_modules(see):
    model, seen = net(), []
    model[0].register_forward_hook(lambda m, i, o: seen.append(o))
    model[2].register_full_backward_hook(lambda m, i, o: seen.append(o))
    model[2].register_full_backward_pre_hook(lambda m, o: None)
    model.register_forward_pre_hook(lambda m, i: None)
    see(loss_of(model)).backward()
    assert len(seen) == 2


@pattern
def optimizer_inside_backward(see):
    model = net()
    for p in model.parameters():
        optimizer = fw.optim.SGD([p], lr=0.1)
        p.register_post_accumulate_grad_hook(lambda t, own=optimizer: (own.step(), own.zero_grad()))
    for _ in range(2):
        see(loss_of(model)).backward()


@pattern
def closure_of_lbfgs(see):
    model = net()
    optimizer = fw.optim.LBFGS(model.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = see(loss_of(model))
        loss.backward()
        return loss
    optimizer.step(closure)


class Keeps(Function):
    """Puts on ctx what must not lead back: the input, a value between, the output."""

    @staticmethod
    def forward(ctx, x):
        ctx.x, ctx.between = x, x.sin()
        ctx.y = ctx.between.exp()
        ctx.save_for_backward(x, ctx.y)
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1] * ctx.x.cos()


@pattern
def attributes_of_ctx(see):
    x = fw.ones(3, requires_grad=True) * 1
    y = see(Keeps.apply(x))
    see(grad(y.sum(), x, create_graph=True)[0].sum()).backward()


@pattern
def exception_in_forward(see):
    x = see(fw.ones(3, requires_grad=True) * 1)
    y = see(x.exp())
    try:
        net()(y * fw.ones(2, 1)).reshape(17)
    except RuntimeError as error:
        assert "reshape" in str(error)


@pattern
def exception_in_backward(see):
    x = fw.ones(3, requires_grad=True)
    y = see(x * 2)
    y.register_hook(lambda g: 1 / 0)
    z = see(y.exp().sum())
    with pytest.raises(ZeroDivisionError):
        z.backward()
    del z


@pattern
def changed_in_place_through_views(see):
    x = fw.ones(2, 3, requires_grad=True)
    y = see(x * 2)
    row, column = see(y[0]), see(y[:, 1])
    row.mul_(3.0)
    column.zero_()
    y += 1
    y.t()[2].exp_()
    see((y * y).sum()).backward()


@pattern
def modes(see):
    model = net()
    with fw.no_grad():
        see(loss_of(model))
    with fw.inference_mode():
        see(loss_of(model))
    with detect_anomaly():
        see(loss_of(model)).backward()


@pattern
def truncated_backpropagation(see):
    cell, state = nn.Linear(4, 4), fw.zeros(1, 4)
    for step in range(6):
        state = see(cell(state).tanh())
        if step % 2:
            see(state.sum()).backward()
            state = state.detach()


@pattern
def abandoned_generator(see):
    def losses(model):
        while True:
            loss = see(loss_of(model))
            yield loss
    steps = losses(net())
    next(steps).backward()
    next(steps)


@pattern
def another_thread(see):
    thread = threading.Thread(target=lambda: see(loss_of(net())).backward())
    thread.start()
    thread.join()


@pattern
def looking_at_the_graph(see):
    model = net()
    loss = see(loss_of(model))
    draw(loss, params=dict(model.named_parameters()))
    loss.grad_fn.metadata["loss"] = "mine"
    assert loss.grad_fn.next_functions and graph.get_gradient_edge(loss) and repr(loss)


@pattern
def copies(see):
    y = see(fw.ones(2, requires_grad=True) * 2)
    see(copy.copy(y).exp())
    see(copy.deepcopy(y.detach()))


@pattern
def functional_derivatives(see):
    def f(x):
        return see((x.exp() * x).sum())
    functional.hessian(f, fw.ones(2))
    functional.jvp(f, fw.ones(2), fw.ones(2))
    functional.vjp(f, fw.ones(2), create_graph=True)


@pattern
def losses_and_layers(see):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Dropout(0.5), nn.LayerNorm(8), nn.Linear(8, 3))
    y = see(model(fw.ones(4, 1, 6, 6)))
    see(F.cross_entropy(y, fw.tensor([0, 1, 2, 0]))).backward()


@pattern
def checkpointed(see):
    model = net()
    see(checkpoint(model, see(fw.ones(2, 3, requires_grad=True) * 1)).sum()).backward()


@pytest.mark.parametrize("name", PATTERNS)
def test_nothing_stays(name):
    watched = Watched()
    PATTERNS[name](watched.see)
    alive = [ref() for ref in watched if ref() is not None]
    assert len(watched) > 0 and not alive, alive


def test_training_makes_no_garbage():
    """The number of objects the collector knows does not grow by one per step (weak references to views,
    forgotten now and then, let it go up and down)."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = fw.optim.Adam(model.parameters())
    counts = []
    for step in range(260):
        optimizer.zero_grad()
        loss = F.mse_loss(model(fw.from_numpy(X)), fw.zeros(2, 2))
        loss.backward()
        optimizer.step()
        if step in (59, 259):
            del loss
            counts.append(len(gc.get_objects()))
    assert counts[1] - counts[0] < 100


def test_the_circle_of_a_recorded_grad_is_broken_by_dropping_it():
    x = fw.ones(2, requires_grad=True)
    (x ** 3).sum().backward(create_graph=True)
    node = weakref.ref(x.grad.grad_fn)
    leaf = weakref.ref(x._node)
    x.grad = None
    assert node() is None
    del x
    assert leaf() is None


def test_the_circle_of_a_hook_that_closes_over_its_tensor_is_broken_by_removing_it():
    x = fw.ones(2, requires_grad=True)
    y = x * 2
    handle = y.register_hook(lambda g, me=y: g)
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is not None
    handle.remove()
    assert node() is None


DEPTH = 3_000  # a recursion of the interpreter would end at 1,000
DEEP = {
    "in-place": "y = y.add_(1.0)",
    "views": "y = y.view(1, 1).view(1)",
    "kept values": "y = (y * y).sigmoid()",
    "several outputs": "y = fw.linalg.qr(y.reshape(1, 1))[1].reshape(1)",
    "a function": "y = Same.apply(y)",
    "hooks on saved tensors": "with saved(lambda t: t, lambda t: t): y = y.sin()",
    "anomaly mode": "with fw.autograd.detect_anomaly(): y = y * 1.0",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_graphs_need_no_stack(name):
    """Forward, backward and freeing of long chains of every kind, in a stack of 8 MB."""
    program = textwrap.dedent(f"""
        import gc, resource, weakref
        gc.disable()
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        limit = 8 * 2 ** 20 if hard == -1 else min(8 * 2 ** 20, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (limit, hard))
        import framework as fw
        saved = fw.autograd.graph.saved_tensors_hooks
        class Same(fw.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1
            @staticmethod
            def backward(ctx, g):
                return g
        x = fw.tensor([0.5], requires_grad=True)
        for end in ("backward", "drop"):
            y = x * 1
            for i in range({DEPTH}):
                {DEEP[name]}
            last = weakref.ref(y.grad_fn)
            if end == "backward":
                y.sum().backward()
            del y
            assert last() is None
        print(x.grad.shape)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "(1,)\n", done.stderr[-2000:]
