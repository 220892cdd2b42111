"""What programs do to modes and tensors after calls were put off by ``fw.compile``, and steps of optimizers
by what they are: plain calls have the same native one."""

import pytest

import framework as fw
from framework.jit import plans as plans_module

F = fw.nn.functional


@pytest.fixture(autouse=True)
def _every_call_counts(monkeypatch):
    monkeypatch.setattr(plans_module, "PLAIN_CALLS", 0)
    monkeypatch.setattr(plans_module, "Trial", lambda: None)


def _same(step, compiled, seed, look):
    """What ``look`` finds of the plain and the compiled function is the same; both draw the same numbers."""
    found = []
    for run in step, compiled:
        fw.manual_seed(seed)
        found.append(look(run))
    assert found[0] == found[1]


@pytest.mark.parametrize("groups", [lambda p, q: [{"params": [p]}, {"params": [p], "lr": 0.1}],
                                    lambda p, q: [{"params": [p]}, {"params": [q, p], "lr": 0.1}],
                                    lambda p, q: [{"params": [p, q, p]}]])
@pytest.mark.filterwarnings("ignore")
def test_a_parameter_that_is_there_twice_steps_twice(groups):
    p, q = (fw.ones(3, requires_grad=True) for _ in range(2))
    optimizer = fw.optim.Adam([{"params": [p]}, {"params": [q]}])
    optimizer.param_groups = [{**optimizer.param_groups[0], **g} for g in groups(p, q)]
    there = any(x is q for g in groups(p, q) for x in g["params"])
    alone = fw.ones(3, requires_grad=True)
    other = fw.optim.Adam([alone])
    for n in range(1, 6):
        p.grad, q.grad, alone.grad = fw.full((3,), 0.5 * n), fw.ones(3), fw.full((3,), 0.5 * n)
        optimizer.step()
        for given in groups(p, q):
            for x in given["params"]:
                if x is p:
                    other.param_groups[0]["lr"] = given.get("lr", 1e-3)
                    other.step()
        assert optimizer.state[p]["step"] == 2 * n and q._version == n * there
        assert not there or optimizer.state[q]["step"] == n
        assert p._version == 2 * n and p.tolist() == alone.tolist()


def test_a_step_counts():
    p, q = (fw.ones(3, requires_grad=True) for _ in range(2))
    optimizer = fw.optim.Adam([{"params": [p]}, {"params": [q]}])
    for n in range(1, 5):
        p.grad, q.grad = fw.ones(3), fw.ones(3) if n % 2 else None
        optimizer.step()
        assert (optimizer.state[p]["step"], p._version) == (n, n)
        assert (optimizer.state[q]["step"], q._version) == ((n + 1) // 2, (n + 1) // 2)


BLOCKS = [fw.no_grad, fw.inference_mode, fw.autograd.detect_anomaly, fw.autograd.forward_ad.dual_level,
          fw.profiler.profile, lambda: fw.autocast("cpu", dtype=fw.bfloat16),
          lambda: fw.autograd.graph.saved_tensors_hooks(lambda x: x * 2, lambda x: x)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", BLOCKS, ids=["no_grad", "inference", "anomaly", "dual", "profile",
                                               "autocast", "hooks"])
def test_a_block_changes_nothing_of_what_was_put_off_before_it(block):
    """What runs one by one inside of a block runs as it would have run before the block."""
    def step(w, x, n):
        y = fw.outer(w * x, x)
        z = F.linear(y, y) * 0.5
        if n < 3:
            return (z * y).sum()
        with block():
            return (z @ y).sum().float() + y.sum()

    def look(run):
        w, x = fw.randn(4, requires_grad=True), fw.randn(4)
        out = run(w, x, n)
        if out.requires_grad:
            out.backward()
        return out.dtype, out.item(), out.requires_grad, w.grad is not None and w.grad.tolist()
    compiled = fw.compile(step)
    for n in range(6):
        _same(step, compiled, n, look)


@pytest.mark.parametrize("change", [
    lambda x: x.t_(), lambda x: x.transpose_(0, 1), lambda x: x.unsqueeze_(0), lambda x: x.squeeze_(),
    lambda x: x.detach_(), lambda x: x.resize_(2, 2), lambda x: x.as_strided_((2, 2), (1, 2)),
    lambda x: x.set_(fw.ones(2)), lambda x: fw.autograd.graph.increment_version(x),
    lambda x: F.embedding(fw.tensor([0, 2]), x, max_norm=0.5)])
@pytest.mark.parametrize("drawn", [False, True])
def test_a_tensor_may_change_its_form_after_calls_on_it_were_put_off(change, drawn):
    def step(x, n):
        y = fw.tanh(x * 2)
        z = y * x
        if n in (3, 5):
            change(x)
        return z.sum(), x * 3, fw.rand(2) if drawn else y

    def look(run):
        x = fw.randn(3, 3)
        return [(t.shape, t.stride(), t._version, t.tolist()) for t in (*run(x, n), x)]
    compiled = fw.compile(step)
    for n in range(7):
        _same(step, compiled, n, look)


def test_nodes_that_kept_nothing_to_free_go_backward_again():
    """As in a plain call, a second time, also behind a backward that went by a plan."""
    def step(w, x):
        s = w.sum()
        r = s % 3
        (s.square() + r.square() + x.sum()).backward()
        return r

    def look(run):
        w, x = fw.randn(4, requires_grad=True), fw.randn(4)
        r = run(w, x)
        first = w.grad.tolist()
        for _ in range(2):
            r.backward()
        return first, w.grad.tolist()
    compiled = fw.compile(step)
    for n in range(8):
        _same(step, compiled, n, look)


def test_steps_of_one_group_that_are_at_different_numbers():
    p, q = (fw.ones(3, requires_grad=True) for _ in range(2))
    optimizer = fw.optim.Adam([p, q])
    alone = fw.optim.Adam([fw.ones(3, requires_grad=True)])
    (other,) = alone.param_groups[0]["params"]
    for n in range(1, 7):
        p.grad, q.grad = fw.ones(3), fw.full((3,), 0.5 * n) if n % 3 else None
        optimizer.step()
        other.grad = q.grad
        alone.step()
        assert (optimizer.state[p]["step"], optimizer.state[q]["step"]) == (n, n - n // 3)
        assert q.tolist() == other.tolist() and q._version == n - n // 3


def test_steps_of_parameters_that_kernels_do_not_take():
    """With gaps in memory, beside one without, which has the same numbers."""
    wide = fw.ones(4, 6)
    p, q = wide[:, ::2].requires_grad_(), fw.ones(4, 3, requires_grad=True)
    optimizer = fw.optim.Adam([p, q], lr=0.1)
    for n in range(1, 5):
        p.grad = q.grad = fw.full((4, 3), 1.0 * n)
        before = p._version, q._version
        optimizer.step()
        assert p.tolist() == q.tolist() and q[0, 0].item() < 1 and wide[0, 1] == 1
        assert optimizer.state[p]["step"] == optimizer.state[q]["step"] == n
        assert (p._version, q._version) == (before[0] + 1, before[1] + 1)


@pytest.mark.parametrize("spoil, error", [
    (lambda p: setattr(p, "data", fw.ones(2)), "gradient of params"),
    (lambda p: setattr(p, "data", p.data.double()), "gradient of params"),
    (lambda p: p._array.setflags(write=False), "read-only")])
def test_a_step_that_does_not_fit_changes_nothing(spoil, error):
    first, p = fw.ones(2, requires_grad=True), fw.ones(3, requires_grad=True)
    optimizer = fw.optim.Adam([first, p])
    first.grad, p.grad = fw.ones(2), fw.ones(3)
    optimizer.step()
    spoil(p)
    kept = first.tolist(), p.tolist(), first._version, optimizer.state[first]["step"]
    with pytest.raises((ValueError, RuntimeError, TypeError), match=error):
        optimizer.step()
    assert (first.tolist(), p.tolist(), first._version, optimizer.state[first]["step"]) == kept


def test_new_dimensions_have_the_strides_of_plain_calls():
    def step(x):
        y = fw.tanh(x)
        z = fw.exp(x)
        return y[None], z[:, None, 1:], (x * 2)[..., None]
    for grad in False, True:
        compiled = fw.compile(step)
        for _ in range(6):
            x = fw.randn(4, 4, requires_grad=grad)
            assert [t.stride() for t in compiled(x)] == [t.stride() for t in step(x)]


def test_what_is_stacked_for_another_order_lies_as_it_should():
    """Where it is handed out, too, and where only what is made of it is."""
    def step(a, b, both):
        stacked = fw.stack([a * 2, b * 3])
        seen = stacked.permute(1, 2, 0, 3).reshape(4, -1)
        return (stacked * 1, stacked, seen) if both else (seen, seen * 1)
    for both in True, False:
        compiled = fw.compile(step)
        for _ in range(6):
            a, b = fw.randn(4, 3, 5), fw.randn(4, 3, 5)
            assert [(t.stride(), t.tolist()) for t in step(a, b, both)] == [
                (t.stride(), t.tolist()) for t in compiled(a, b, both)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("inputs", [lambda: fw.randn(5, 4), lambda: fw.randn(2, 5, 4), lambda: fw.randn(1, 4),
                                    lambda: fw.randn(5, 8)[:, ::2], lambda: fw.randn(4, 5).t(),
                                    lambda: fw.randn(0, 4)])
@pytest.mark.parametrize("end", [lambda y: y.sum(), lambda y: (y * y).mean(), lambda y: y.mT.square().sum(),
                                 lambda y: F.relu(y).sum() + y.tanh().sum()])
def test_gradients_of_linear_layers_are_those_of_plain_calls(bias, inputs, end):
    fw.manual_seed(0)
    plain, layer = (fw.nn.Linear(4, 3, bias) for _ in range(2))
    layer.load_state_dict(plain.state_dict())

    def step(layer, x):
        layer.zero_grad()
        end(layer(x)).backward()
    compiled = fw.compile(step)
    kept = []
    for _ in range(6):
        x = inputs()
        for y in x, x.clone().requires_grad_():
            step(plain, y)
            first, y.grad = y.grad, None
            compiled(layer, y)
            for p, q in zip(plain.parameters(), layer.parameters()):
                assert p.grad.numpy().tobytes() == q.grad.numpy().tobytes()
                assert p.grad.stride() == q.grad.stride()
                kept.append((q.grad, q.grad.tolist()))
            assert y.grad is first is None or y.grad.tolist() == first.tolist()
    assert all(str(g.tolist()) == str(before) for g, before in kept)


@pytest.mark.parametrize("run", [
    lambda a, b, x: a(F.relu(a(x))), lambda a, b, x: a(x) + b(x), lambda a, b, x: a(x) + b(x.tanh()),
    lambda a, b, x: a(x) * b(x), lambda a, b, x: a(b(x)) + x,
    lambda a, b, x: F.linear(x, a.weight, b.bias) + b(x),
    lambda a, b, x: F.linear(x, a.weight + b.weight, a.bias - b.bias),
    lambda a, b, x: F.linear(x, a.weight + b.weight, a.bias) + F.linear(x, b.weight, b.bias)])
def test_layers_that_share_what_they_take_or_their_gradients(run):
    def step(layers, x):
        layers.zero_grad()
        run(*layers, x).square().sum().backward()
    plain, layer = (fw.nn.ModuleList([fw.nn.Linear(4, 4) for _ in range(2)]) for _ in range(2))
    layer.load_state_dict(plain.state_dict())
    compiled = fw.compile(step)
    for _ in range(6):
        x = fw.randn(3, 4)
        step(plain, x)
        compiled(layer, x)
        given = [[None if p.grad is None else p.grad.tolist() for p in m.parameters()]
                 for m in (plain, layer)]
        assert given[0] == given[1]
        grads = [p.grad._array for p in layer.parameters() if p.grad is not None]
        assert len({id(g) for g in grads}) == len(grads)


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("both", [True, False])
def test_convolutions_that_are_pooled_are_those_of_plain_calls(relu, both):
    """With and without relu between, where pooling alone takes the images, or something else does, too."""
    layers = [fw.nn.Conv2d(1, 3, 3, padding=1), *[fw.nn.ReLU()] * relu]
    body, images = fw.nn.Sequential(*layers), fw.randn(2, 1, 6, 6)

    def step(x):
        body.zero_grad()
        if both:
            y = body(x)
            loss = (F.max_pool2d(y, 2) - 0.5).square().sum() + (y * y).mean()
            del y  # what is alive is handed out
        else:
            loss = (F.max_pool2d(body(x), 2) - 0.5).square().sum()
        loss.backward()
        return loss
    compiled = fw.compile(step)
    found = []
    for run in step, compiled, compiled, compiled, compiled, compiled, compiled:
        loss = run(images)
        found.append((loss.item(), [p.grad.tolist() for p in body.parameters()]))
    assert all(one == found[0] for one in found)
