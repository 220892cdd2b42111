"""What compiled functions put off though it changes something: results and buffers in place, statistics of
batch norm, drawn masks. Each program is run plain and compiled, and must tell the same; where it says so, by
plans.
"""

import collections
import gc

import numpy as np
import pytest

import framework as fw
from framework.jit import deferral
from framework.jit import plans as plans_module

F, nn = fw.nn.functional, fw.nn
CALLS = 12


@pytest.fixture(autouse=True)
def _every_call_counts(monkeypatch):
    monkeypatch.setattr(plans_module, "PLAIN_CALLS", 0)
    monkeypatch.setattr(plans_module, "Trial", lambda: None)


def told(x):
    if isinstance(x, fw.Tensor):
        return str(x.dtype), x.detach().numpy().tobytes(), x._version
    return [told(y) for y in x] if isinstance(x, (list, tuple)) else repr(x)


def run(make, compile):
    fw.manual_seed(3)
    step = compile(make())
    found = []
    for number in range(CALLS):
        fw.manual_seed(number)
        try:
            found.append(told(step(number)))
        except fw.errors.AutogradError as error:
            found.append(str(error))
    return found, step


def alike(make, planned=True):
    """Both ways tell the same; planned: from the fifth call on one plan is all that runs."""
    plain, _ = run(make, lambda f: f)
    compiled, step = run(make, fw.compile)
    assert plain == compiled
    if plans_module.possible() and planned is not None:
        kept = step._plans.deferral
        served = sum(p.served for p in kept.plans if isinstance(p, deferral.BackwardPlan))
        assert (served >= CALLS - 5) == planned, kept.explain()


def leaf(*shape):
    return fw.randn(*shape).requires_grad_()


def test_results_are_changed_in_place():
    def make():
        w, x = leaf(4, 6), fw.randn(4, 6)

        def step(number):
            w.grad = None
            y = x * w
            y += 1
            y.mul_(y).sub_(x, alpha=0.5)
            y = F.relu(y, inplace=True).clamp_(max=2)
            loss = (y * 2).sum()
            loss.backward()
            return loss, w.grad, y
        return step
    alike(make)


def test_a_value_that_backward_kept_is_changed():
    """Whoever does that is told so, as by the plain call."""
    def make():
        w = leaf(3)

        def step(number):
            w.grad = None
            y = w.sigmoid()
            y.mul_(2)
            y.sum().backward()
            return w.grad
        return step
    alike(make, planned=False)


@pytest.mark.parametrize("other", ["view", "detached", "data", "numpy", "late view", "late detached"])
def test_others_see_what_is_changed(other):
    def make():
        w, held = leaf(4, 3), []

        def step(number):
            w.grad = None
            y = w * 2
            seen = None
            if other == "view":
                seen = y[0]
            elif other == "detached":
                seen = y.detach()
            elif other == "data":
                seen = y.data
            elif other == "numpy":
                seen = y.detach().numpy()[1]
            else:
                view = y[1] if other == "late view" else y.detach()
                if number > 5:
                    held.append(view)  # what nobody had when this was recorded
                del view
            y.add_(1)
            loss = (y * y).sum()
            if isinstance(seen, fw.Tensor):
                loss = loss + seen.sum()
            loss.backward()
            return loss, w.grad, [x.detach().clone() for x in held[-1:]], None if seen is None else list(seen)
        return step
    alike(make, planned=None)


@pytest.mark.parametrize("kind", ["alone", "detached", "view", "numpy", "read", "second", "meanwhile",
                                  "now and then"])
def test_buffers_are_changed_in_place(kind):
    def make():
        w, x, average = leaf(4, 3), fw.randn(4, 3), fw.zeros(3)
        seen = {"detached": lambda: average.detach(), "view": lambda: average[1:],
                "numpy": lambda: average.numpy()}.get(kind, lambda: None)()

        def step(number):
            w.grad = None
            y, late = w * x, None
            if kind == "meanwhile" or kind == "now and then" and number > 5:
                y = y + average
                late = average.detach()
            elif kind == "now and then":
                y = y + average
            with fw.no_grad():
                average.mul_(0.5)
                average.add_(x.mean(0), alpha=0.5)
            if kind == "read" and number % 3 == 2:
                y = y + average.sum().item()
            if kind == "second":
                average.add_(1)
            if late is not None:
                late = late.tolist()
            loss = (y * average).sum()
            loss.backward()
            return loss, w.grad, average, [] if seen is None else list(seen), late
        return step
    alike(make, planned={"alone": True, "second": True}.get(kind))


@pytest.mark.parametrize("kind", ["hooked", "not recorded", "leaf", "retained", "hook on the result"])
def test_results_that_others_are_told_of_are_changed(kind):
    def make():
        w, x, seen = leaf(4, 3), fw.randn(4, 3), []

        def step(number):
            w.grad = None
            y = w * x if kind != "leaf" else w
            if kind == "hooked":
                y.register_hook(lambda g: seen.append(g.sum().item()))
            if kind == "retained":
                y.retain_grad()
            if kind == "not recorded":
                with fw.no_grad():
                    y.mul_(2)
            else:
                y.mul_(2)
            if kind == "hook on the result":
                y.register_hook(lambda g: g * 0.5)
            loss = (y * x).sum()
            loss.backward()
            return loss, w.grad, y, seen[-1:]
        return step
    alike(make, planned=None)


def test_a_result_that_is_changed_lies_as_it_did():
    def make():
        w, x = leaf(4, 3), fw.randn(4, 3)

        def step(number):
            w.grad = None
            y, z = (w * x).t().tanh(), (w * x).permute(1, 0).exp()
            y.add_(x.t())
            z.mul_(x.t().contiguous())
            loss = (y * z).sum()
            loss.backward()
            return loss, w.grad, [y.stride(), z.stride()], y
        return step
    alike(make, planned=None)


def test_an_empty_result_that_is_changed_lies_as_it_did():
    def make():
        x = fw.randn(0, 4)

        def step(number):
            y = fw.einsum("...i,...i->...", x + number, x)
            before = y.stride()
            y.add_(1)
            return y, before, y.stride()
        return step
    alike(make, planned=None)


def test_a_gradient_that_is_handed_on_after_a_mask_comes_last():
    """Which is seen in the last bit of a leaf's gradient."""
    def make():
        w, x, c, d = leaf(40, 30), fw.randn(40, 30), fw.randn(40, 30), fw.randn(40, 30)

        def step(number):
            w.grad = None
            first = w * d
            z = w - x
            last = w * c
            loss = z.max(1).values.sum() + (z * z).sum() + first.sum() + last.sum()
            loss.backward()
            return loss, w.grad
        return step
    alike(make, planned=None)


@pytest.mark.parametrize("kind", ["minus", "plus", "chosen", "itself", "copied", "twice"])
def test_gradients_lie_as_those_of_plain_calls(kind):
    def make():
        w, x = leaf(4, 3), fw.randn(4, 3)
        functions = {"minus": lambda: (w - x).t(), "plus": lambda: (w + x).t(), "itself": lambda: w.t(),
                     "chosen": lambda: fw.where(x > 0, w, x).t(), "copied": lambda: w.clone().t(),
                     "twice": lambda: (w - x).t() + (x - w).t()}

        def step(number):
            w.grad = None
            loss = (functions[kind]() * x.t()).sum()
            loss.backward()
            return loss, w.grad, w.grad.stride()
        return step
    alike(make)


def test_counters_and_tensors_that_nobody_else_has_leave_the_rest_put_off():
    def make():
        w, count, apart = leaf(3), fw.tensor(0), fw.zeros(3)

        def step(number):
            w.grad = None
            y = w * 2
            count.add_(1)
            apart.mul_(0.5).add_(count)
            loss = (y * y).sum()
            loss.backward()
            return loss, w.grad, count, apart
        return step
    alike(make)


def test_calls_that_take_nothing_put_off_leave_their_places():
    """They stand between others, whose operands keep their places."""
    def make():
        w, ids, x = leaf(4, 3), fw.tensor([2, 0, 1]), fw.randn(4, 3)

        def step(number):
            w.grad = None
            y = w * x
            odd = ids % 2
            z = y[:, ids] * x
            several = odd + ids
            loss = (z[:, several % 3] * x).sum() + w[several.argmax()].sum()
            loss.backward()
            return loss, w.grad, odd, several
        return step
    alike(make, planned=None)


@pytest.mark.parametrize("kind", ["out", "positions", "renormed", "statistics"])
def test_calls_that_change_what_they_take_do_not_go_ahead(kind):
    """What was put off reads the memory as it was."""
    def make():
        w, x, spare = leaf(4, 3), fw.randn(4, 3), fw.randn(4, 3)
        mean, var, ids, columns = fw.zeros(3), fw.ones(3), fw.tensor([1, 2]), fw.randn(3, 4).t()

        def step(number):
            w.grad = None
            spare.copy_(x)
            y = w * spare + mean
            if kind == "out":
                fw.add(x, x, out=spare)
            elif kind == "renormed":
                F.embedding(ids, spare, max_norm=0.5)
            elif kind == "statistics":
                F.batch_norm(columns, mean, var, training=True)
            elif kind == "positions":
                y = y + w[ids].sum()
                fw.add(ids, 1 - 2 * (number % 2), out=ids)
            loss = (y * y).sum() + spare.sum()
            loss.backward()
            return loss, w.grad, spare.clone(), mean.clone()
        return step
    alike(make, planned=None)


@pytest.mark.parametrize("kind", ["autocast", "vmap", "looked at", "checkpoint"])
def test_modes_find_the_functions_themselves(kind):
    def make():
        norm, w, x = nn.BatchNorm1d(4), leaf(4, 4), fw.randn(4, 4)

        def block(y):
            y = F.dropout(norm(y), 0.5)
            return F.scaled_dot_product_attention(y[None], y[None], y[None], dropout_p=0.5)[0]

        def step(number):
            w.grad = None
            y = w * x
            if kind == "autocast":
                with fw.autocast("cpu", dtype=fw.bfloat16):
                    z = block(y)
            elif kind == "vmap":
                z = fw.func.vmap(lambda y: F.dropout(y, 0.5), randomness="different")(y)
            elif kind == "looked at":
                with fw.profiler.profile() as seen:
                    z = block(y)
                assert any("dropout" in e.key for e in seen.key_averages())
            else:
                z = fw.utils.checkpoint.checkpoint(block, y, use_reentrant=False)
            loss = z.float().square().sum()
            loss.backward()
            return loss, w.grad, list(norm.buffers())
        return step
    alike(make, planned=None)


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("kind", ["images", "rows", "kept", "shared", "one value", "evaluation", "float64"])
def test_batch_norm_follows_its_batches(kind, momentum):
    def make():
        dtype = fw.float64 if kind == "float64" else fw.float32
        images = kind == "images"
        norm = (nn.BatchNorm2d if images else nn.BatchNorm1d)(6, momentum=momentum).to(dtype)
        x = fw.randn(4, 6, 3, 3, dtype=dtype) if images else fw.randn(4, 6, dtype=dtype)
        w = fw.randn(*x.shape, dtype=dtype).requires_grad_()
        held = [norm.state_dict()] if kind == "kept" else []

        def step(number):
            for p in (w, *norm.parameters()):
                p.grad = None
            norm.train(kind != "evaluation" or number < 3)
            y = norm(w * x if kind != "one value" or number < 4 else (w * x)[:1])
            if kind == "shared":
                y = norm(F.relu(y, inplace=True))
            loss = y.square().mean() + (y * x[:len(y)]).sum()
            loss.backward()
            return loss, [p.grad for p in (w, *norm.parameters())], list(norm.buffers()), len(held)
        return step
    if kind == "one value":
        with pytest.raises(ValueError, match="one value"):
            alike(make, planned=None)
    else:
        alike(make, planned={"images": True, "rows": True, "shared": True, "float64": True}.get(kind)
              if momentum else None)


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("kind", ["dropout", "channels", "attention", "module", "read"])
def test_masks_are_drawn_when_they_are_called_for(kind, p):
    def make():
        w, x = leaf(2, 4, 6), fw.randn(2, 4, 6)
        module = nn.Dropout(p)

        def step(number):
            w.grad = None
            y = w * x
            before = fw.rand(1)
            if kind == "dropout":
                y = F.dropout(F.dropout(y, p), p)
            elif kind == "channels":
                y = F.dropout1d(y, p)
            elif kind == "attention":
                y = F.scaled_dot_product_attention(y, x, y, dropout_p=p)
            elif kind == "read":
                y = F.dropout(y, p)
                y = y * y.sum().item()
            else:
                y = module(y)
            loss = y.square().sum()
            loss.backward()
            return loss, w.grad, before, fw.rand(2)
        return step
    alike(make, planned=True if kind in ("dropout", "attention", "module") and p in (0.0, 0.25) else None)


def test_a_second_backward_through_what_dropout_left():
    """It keeps nothing, so nothing is freed, and makes the mask of its own call again."""
    def make():
        w = leaf(50)

        def step(number):
            w.grad = None
            loss = F.dropout(w, 0.5).sum()
            loss.backward()
            first = w.grad.clone()
            loss.backward()
            return loss, first, w.grad
        return step
    alike(make)


@pytest.mark.parametrize("kind", ["matmul", "casts", "turned", "iteration", "extremes", "keys", "recurrent",
                                  "heads", "resized", "likes", "parts"])
def test_functions_of_networks_go_by_plans(kind):
    def make():
        w, x, ids = leaf(4, 6), fw.randn(4, 6), fw.tensor([1, 0, 3, 3])
        rnn, heads = nn.LSTM(6, 6, num_layers=2, dropout=0.25, batch_first=True), nn.MultiheadAttention(
            6, 2, dropout=0.25, batch_first=True)
        mask = fw.tensor([[False, True, False, False]])
        functions = {
            "matmul": lambda y: y @ w.T @ x + x[1:].mean() * (y @ y.t()).sum(),
            "casts": lambda y: (y.double() * 2).to(fw.float32) + (y > 0).float(),
            "turned": lambda y: y.T.mT + w.t().t(), "iteration": sum,
            "extremes": lambda y: y.max(1).values[:, None] * y + y.min(0)[0],
            "keys": lambda y: y[ids] + y[:, ids[:1]], "recurrent": lambda y: rnn(y[None])[0],
            "heads": lambda y: heads(y[None], y[None], y[None], need_weights=False, key_padding_mask=mask)[0],
            "resized": lambda y: F.interpolate(y[None, None], scale_factor=2, mode="bilinear") + F.pad(
                y[None], (1, 1), mode="reflect").sum(),
            "likes": lambda y: y * fw.ones_like(y) + fw.zeros_like(y) + y.new_full((6,), 2.0),
            "parts": lambda y: y * w[:1] + x[2:].sum() * w[1] + y.detach()}

        def step(number):
            for p in (w, *rnn.parameters(), *heads.parameters()):
                p.grad = None
            loss = (functions[kind](w * x) * 2).sum()
            loss.backward()
            return loss, [p.grad for p in (w, *rnn.parameters(), *heads.parameters())]
        return step
    alike(make)


def test_a_tensor_that_is_changed_is_given_back_when_a_plan_fails(monkeypatch):
    """Its memory is there again, as it was before the call."""
    def make():
        w, average = leaf(3), fw.ones(3)

        def step(number):
            y = w * 2
            with fw.no_grad():
                average.mul_(0.5)
            if number == 8:
                raise KeyError
            loss = (y * average).sum()
            loss.backward()
            return loss
        return step, average
    step, average = make()
    compiled = fw.compile(step)
    for number in range(8):
        compiled(number)
    with pytest.raises(KeyError):
        compiled(8)
    assert average.tolist() == [0.5 ** 9] * 3 and average._version == 9
    compiled(9)
    assert np.array_equal(average.numpy(), np.full(3, 0.5 ** 10, np.float32))


def forget_plans(call):
    call.data.forward.clear()
    for child in call.children:
        forget_plans(child)


def test_a_tensor_is_given_back_where_what_was_put_off_cannot_run(monkeypatch):
    """Its memory is in it again, without the change."""
    if not plans_module.possible():
        pytest.skip("nothing is put off without the kernels")
    average = fw.ones(3)

    @fw.compile
    def step(x):
        y = x * average
        average.mul_(0.5)
        return y + average

    def broken(session, tape, why):
        raise MemoryError(why)
    for _ in range(2):
        step(fw.ones(3))
    monkeypatch.setattr(deferral.Session, "force", broken)
    for call in step._plans.deferral.local.session.owner.tree.children:
        forget_plans(call)
    with pytest.raises(MemoryError):
        step(fw.ones(3))
    assert average.tolist() == [0.25] * 3 and average._version == 2


CHANGES = {"relu": lambda y: F.relu(y, inplace=True), "sigmoid": lambda y: y.sigmoid_(),
           "exp": lambda y: y.exp_(), "tanh": lambda y: y.tanh_(),
           "sqrt": lambda y: y.abs_().sqrt_(), "mul": lambda y: y.mul_(y)}
WRITES = {"part": lambda y: y[:1].sub_(5), "key": lambda y: y.__setitem__(0, 0.5),
          "fill": lambda y: y.fill_(0.25), "copy": lambda y: y.copy_(y * 2),
          "detached": lambda y: y.detach().add_(1), "data": lambda y: y.data.mul_(2)}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("change", CHANGES)
def test_what_backward_keeps_of_a_change_is_not_what_is_written_next(change, write):
    def make():
        w = leaf(4)

        def step(number):
            w.grad = None
            y = w * 2
            CHANGES[change](y)
            WRITES[write](y)
            y.sum().backward()
            return w.grad, y
        return step
    alike(make, planned=None)


@pytest.mark.parametrize("kind", ["added", "scaled", "several"])
def test_gradients_that_are_changed_by_what_is_put_off(kind):
    def make():
        w, v, x = leaf(4), leaf(4), fw.randn(4)

        def step(number):
            a = w * 2
            with fw.no_grad():
                if w.grad is not None:
                    w.grad.add_(a) if kind != "scaled" else w.grad.mul_(x * 0.5)
            loss = (a * x).sum() + (v * a).sum() if kind == "several" else a.sum()
            loss.backward()
            return loss, w.grad, v.grad
        return step
    alike(make, planned=None)


def test_arguments_of_changes_in_place_as_they_come():
    def make():
        w = leaf(3)

        def step(number):
            w.grad = None
            y = w * 2
            found = [F.relu(input=y, inplace=True), F.leaky_relu(negative_slope=0.1, input=y, inplace=True)]
            for wrong in (lambda: F.relu([y, y], inplace=True), lambda: F.relu((), inplace=True),
                          lambda: fw.Tensor.add_([1, 2], 1), lambda: fw.Tensor.add_(),
                          lambda: F.relu(inplace=True), lambda: fw.zeros_like(y, 3),
                          lambda: fw.full_like(y), lambda: fw.full_like(y, 1.0, fw.int64)):
                try:
                    wrong()
                except Exception as error:
                    found.append(f"{type(error).__name__}: {error}")
            y.sum().backward()
            return w.grad, *found
        return step
    alike(make, planned=None)


@pytest.mark.parametrize("kind", ["leaf", "computed", "detached", "part"])
def test_statistics_and_versions_that_a_graph_knows(kind):
    def make():
        w, x, mean, var = leaf(3), fw.randn(4, 3), fw.zeros(3), fw.ones(3)

        def step(number):
            w.grad = None
            if kind == "part":
                x.mul_(0.5)
                piece, _ = x.chunk(2)
                return piece.detach()
            if kind == "detached":
                y = x * 2
                y.relu_()
                return y.detach()
            statistics = mean.clone().requires_grad_() if kind == "leaf" else w * 0.0
            y = F.batch_norm(x, statistics, var, training=True)
            return y, statistics, statistics.requires_grad, var
        return step
    alike(make, planned=None)


def test_results_with_names_are_arguments_again():
    pair = collections.namedtuple("pair", "a b")

    class Own(tuple):
        pass

    def make():
        w = leaf(4)

        def step(number):
            w.grad = None
            y = w * 2
            z = fw.stack(fw.aminmax(y)).sum() + fw.cat(pair(y, w)).sum() + fw.cat(Own((y, w))).t().sum()
            z.backward()
            return z, w.grad
        return step
    alike(make, planned=None)


def test_finalizers_that_compute_while_results_are_promised():
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            fw.ones(3).exp()

    @fw.compile
    def step(x):
        y = x * 2
        for _ in range(20):
            y = y * 0.5
        Cycle()
        return y.sum()
    before = gc.get_threshold()
    gc.set_threshold(7)
    try:
        for _ in range(300):
            assert step(fw.ones(4)).item() == 8 * 0.5 ** 20
    finally:
        gc.set_threshold(*before)
