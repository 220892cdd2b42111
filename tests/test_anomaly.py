"""Anomaly mode: where NaN and Inf are made, forward and backward, and in whose frame that is told."""

import gc
import io
import pdb
import threading
import weakref

import numpy as np
import pytest

import framework as fw
import framework.nn.functional as F
from framework import nn
from framework.autograd import Function, detect_anomaly, grad, set_detect_anomaly
from framework.errors import AnomalyError, AutogradError
from framework.node import Node, PlainNode
from framework.quiet import quiet

INF, NAN = float("inf"), float("nan")


def t(*values, **settings):
    return fw.tensor(values, **settings)


def frames(error):
    """The frames of a traceback, outermost first."""
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    return found


# -- forward --------------------------------------------------------------------------------------

MADE = {
    "log": (lambda x: x.log(), "log made 1 Inf among 3 numbers, the first (-inf) at index [1]",
            "input: float32[3], 0.0"),
    "div": (lambda x: 1 / x, "reciprocal|div made 1 Inf", "0.0 there"),
    "0/0": (lambda x: x / (x * 0), "div made 1 NaN and 2 Inf among 3 numbers, the first (inf) at index [0]",
            "other: float32[3], 0.0 there"),
    "exp": (lambda x: (x * 100).exp(), "exp made 2 Inf", "input: float32[3], 100.0 there"),
    "sqrt": (lambda x: (-x).sqrt(), "sqrt made 2 NaN", "-1.0 there"),
    "pow": (lambda x: x ** -1.5, "pow made 1 Inf", "-1.5"),
    "in place": (lambda x: x.log_(), "log made 1 Inf", "float32[3]"),
    "ufunc in place": (lambda x: x.div_(x * 0), "div made", "other"),
    "matmul": (lambda x: (x * 1e30).outer(x * 1e30), "outer|mul made 4 Inf among 9 numbers", "[0, 0]"),
    "reduction": (lambda x: (x * 1.7e38).sum(), "sum made 1 Inf among 1 number, the first (inf) at index []",
                  "float32[3]"),
    "mean of nothing": (lambda x: x[:0].mean(), "mean made 1 NaN", "float32[0]"),
    "cast": (lambda x: (x * 1e6).half(), "cast|to made 2 Inf", "float32[3]"),
    "assignment": (lambda x: fw.zeros(3, dtype=fw.float16).copy_(x * 1e6), "cast made 2 Inf", ""),
    "data": (lambda x: fw.tensor(np.array([1e300]), dtype=fw.float32), "tensor made 1 Inf", ""),
    "cumprod": (lambda x: fw.full((5,), 1e10).cumprod(0), "cumprod made", "dim = 0"),
    "layer": (lambda x: F.linear(x * 1e30, fw.ones(2, 3) * 1e30), "linear made 2 Inf",
              "weight: float32[2, 3]"),
    "convolution": (lambda x: F.conv1d((x * 1e30).reshape(1, 1, 3), fw.ones(1, 1, 2) * 1e30), "conv",
                    "made 2 Inf"),
    "softmax of a row of -inf": (lambda x: x.masked_fill(x >= 0, -INF).softmax(0),
                                 "softmax made 3 NaN", "from arguments with Inf but no NaN"),
    "inf - inf": (lambda x: t(INF) - t(INF), "sub made 1 NaN", "from arguments with Inf but no NaN"),
    "out=": (lambda x: fw.log(x, out=fw.empty(3)), "log made 1 Inf", ""),
    "several outputs": (lambda x: fw.var_mean(x[:1]), "made 1 NaN", ""),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_raises_at_the_op_that_made_it(name, requires_grad):
    call, text, more = MADE[name]
    marker = object()

    def mine():
        x = t(1.0, 0.0, 2.0)
        if requires_grad:
            x = x.requires_grad_() * 1
        seen = marker  # what the debugger must find
        call(x)
        return seen

    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        mine()
    message = str(caught.value)
    ops, made, rest = text.partition(" made")
    assert any(op + made + rest in message for op in ops.split("|")), message
    assert more in message and f" at {__file__}:" in message
    last = frames(caught.value)[-1]
    assert last.f_code is call.__code__ and last.f_back.f_locals["seen"] is marker


def test_post_mortem_lands_in_the_users_frame():
    def mine():
        here = "found me"
        net = nn.Sequential(nn.ReLU(), nn.Linear(2, 2))
        nn.init.constant_(net[1].weight, 2.0)
        with detect_anomaly():
            return net(fw.full((1, 2), 3e38)), here

    with pytest.raises(AnomalyError) as caught:
        mine()
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("p here\nw\nq\n"), stdout=out, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    debugger.reset()
    debugger.interaction(None, caught.value.__traceback__)
    assert "'found me'" in out.getvalue()
    assert "in 1 (Linear)" in caught.value.__notes__


GIVEN = {
    "full": lambda: fw.full((2,), INF),
    "tensor": lambda: t(NAN, INF),
    "from numpy": lambda: fw.from_numpy(np.array([INF])) * 2,
    "empty": lambda: fw.empty(1000),
    "fill_": lambda: fw.zeros(2).fill_(-INF),
    "assignment": lambda: fw.zeros(2).__setitem__(0, INF),
    "masked_fill": lambda: fw.zeros(2).masked_fill(t(True, False), -INF),
    "masked_fill_": lambda: fw.zeros(2).masked_fill_(t(True, False), NAN),
    "where": lambda: fw.where(t(True, False), fw.zeros(2), -INF),
    "index_fill": lambda: fw.zeros(2).index_fill(0, t(0), INF),
    "pad": lambda: F.pad(fw.zeros(2), (1, 1), value=-INF),
    "clamp": lambda: fw.zeros(2).clamp(-INF, INF),
    "add inf": lambda: fw.zeros(2) + INF,
    "an Inf goes on": lambda: (t(INF, 1.0) * 2).sum(),
    "a NaN goes on": lambda: (t(NAN, 0.0).log() / 0).sum(),
    "Inf to zero": lambda: 1 / t(INF),
    "masked softmax": lambda: fw.zeros(2, 2).masked_fill(t([True, False], [False, False]), -INF).softmax(1),
    "logsumexp": lambda: t(-INF, 0.0).logsumexp(0),
    "max pooling with padding": lambda: F.max_pool2d(fw.zeros(1, 1, 4, 4), 3, padding=1),
    "topk and sort": lambda: t(INF, 1.0).sort()[0].topk(1),
    "nan_to_num": lambda: t(NAN, INF).nan_to_num(),
    "attention": lambda: F.scaled_dot_product_attention(*[fw.ones(1, 2, 3)] * 3, is_causal=True),
    "mask of a transformer": lambda: fw.full((3, 3), -INF).triu(1),
    "whole numbers": lambda: t(3, 4) // 2,
    "large, but finite": lambda: fw.full((100,), 1e30) * 1e7,
    "complex": lambda: fw.tensor([1 + 2j]) * 2,
    "float16": lambda: fw.ones(4, dtype=fw.float16) * 60000,
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_was_given_or_was_there_before_is_no_anomaly(name):
    plain = GIVEN[name]()
    with detect_anomaly():
        watched = GIVEN[name]()
    pairs = list(zip(*[x if isinstance(x, tuple) else (x,) for x in (plain, watched)]))
    assert pairs
    for a, b in pairs:
        if a is not None and name != "empty":  # an assignment gives nothing, and who knows what is in there
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


# -- backward -------------------------------------------------------------------------------------


def test_backward_tells_the_op_and_the_forward_line():
    x = t(4.0, 0.0, requires_grad=True)

    def mine():
        y = x.sqrt()  # the forward line
        loss = (y * 2).sum()
        loss.backward()

    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        mine()
    message = str(caught.value)
    assert "backward of sqrt made 1 Inf among 2 numbers of the gradient of 'input'" in message
    assert "the first (inf) at index [1]" in message
    assert "from a finite one" in message and "out: float32[2], 0.0 there" in message
    assert f"sqrt ran at {__file__}:" in message and "in mine: y = x.sqrt()  # the forward line" in message
    last = frames(caught.value)[-1]
    assert last.f_code is mine.__code__ and "loss" in last.f_locals
    assert x.grad is None


def test_a_finite_gradient_behind_a_mask_is_fine():
    x = t(4.0, 0.0, requires_grad=True)
    with detect_anomaly():
        fw.where(x > 1, x.sqrt(), 0.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0.25, 0.0])


def test_a_loss_that_is_nan_is_told_at_once():
    w = t(1.0, requires_grad=True)
    told = "(?s)a result of sum, is nan.*came in with the data.*made at"
    with detect_anomaly(), pytest.raises(AnomalyError, match=told):
        (w * t(NAN)).sum().backward()
    assert w.grad is None


def test_a_gradient_that_is_given_must_be_finite():
    w = t(1.0, 2.0, requires_grad=True)
    with detect_anomaly(), pytest.raises(AnomalyError, match="given for tensor 0 holds 1 NaN among 2"):
        (w * 2).backward(t(1.0, NAN))


def test_sums_and_hooks_that_spoil_a_gradient():
    w = t(1.0, requires_grad=True)
    with detect_anomaly(), pytest.raises(AnomalyError, match=r"shape \[1\] holds 1 Inf.*sum overflowed"):
        ((w - 1) * 3e38 + (w - 1) * 3e38).backward(t(1.0))
    y = w * 2
    y.register_hook(lambda g: g * NAN)
    z = y.exp()
    with detect_anomaly(), pytest.raises(AnomalyError, match="the gradient that came to mul is not finite"):
        z.backward(t(1.0))
    assert w.grad is None


def test_second_order():
    def mine(x):
        y = x ** 1.5  # forward
        (g,) = grad(y.sum(), x, create_graph=True)  # backward
        return grad(g.sum(), x)

    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        mine(t(0.0, 1.0, requires_grad=True))
    message = str(caught.value)
    assert "create_graph=True)  # backward" in message and "in the backward of" in message
    assert "y = x ** 1.5  # forward" in message
    with detect_anomaly():
        (h,) = mine(t(1.0, 4.0, requires_grad=True))
    np.testing.assert_allclose(h.numpy(), [0.75, 0.375])


def test_inside_the_backward_of_a_function_the_op_itself_is_told():
    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

        @staticmethod
        def backward(ctx, g):
            return g / (g * 0)

    told = "(?s)div made 1 Inf.*in backward: return g"
    with detect_anomaly(), pytest.raises(AnomalyError, match=told) as caught:
        Half.apply(t(1.0, requires_grad=True)).sum().backward()
    assert frames(caught.value)[-1].f_code is Half.backward.__code__
    assert "Half ran at" in str(caught.value.args[0]) + str(getattr(caught.value, "__notes__", ""))


def test_other_errors_of_backward_get_the_forward_line():
    with set_detect_anomaly(True, check_nan=False):
        y = t(1.0, requires_grad=True).exp()
        y.backward()
        with pytest.raises(AutogradError, match="(?s)exp a second time.*exp ran at .*test_anomaly.py"):
            y.backward()

        class Breaks(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, g):
                raise KeyError("mine")

        with pytest.raises(KeyError) as caught:
            Breaks.apply(t(1.0, requires_grad=True)).backward()
        assert "Breaks ran at" in caught.value.__notes__[0]


def test_without_check_nan_nothing_is_looked_at():
    with detect_anomaly(check_nan=False):
        x = t(0.0, requires_grad=True)
        x.sqrt().log().backward()
    assert not np.isfinite(x.grad.item())


# -- the mode -------------------------------------------------------------------------------------


def state():
    return fw.is_anomaly_enabled(), fw.is_anomaly_check_nan_enabled()


def test_blocks_nest_and_end():
    assert state() == (False, False)
    with detect_anomaly():
        assert state() == (True, True)
        with detect_anomaly(check_nan=False):
            assert state() == (True, False)
            with set_detect_anomaly(False):
                assert state() == (False, False)
                t(0.0).log()
            assert state() == (True, False)
        assert state() == (True, True)
        with pytest.raises(AnomalyError):
            t(0.0).log()
    assert state() == (False, False)
    set_detect_anomaly(True)
    assert state() == (True, True)
    set_detect_anomaly(False)
    assert state() == (False, False)
    mode = detect_anomaly()
    for _ in range(2):
        with pytest.raises(KeyError), mode:
            raise KeyError
    assert state() == (False, False)


def test_it_belongs_to_a_thread():
    seen = []

    def work():
        seen.append((state(), t(0.0).log().item()))
        y = t(1.0, requires_grad=True) * 2 + 1
        seen.append(hasattr(y.grad_fn, "notes"))
    with detect_anomaly():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert hasattr((t(1.0, requires_grad=True) * 2).grad_fn, "notes")
    assert seen == [((False, False), -INF), False]


def test_a_thread_that_dies_inside_a_block_leaves_nothing_behind():
    """While somebody listens, the classes of nodes are slower, in all threads."""
    plain = [(kind, kind.__init__) for kind in (Node, PlainNode)]

    def die():
        detect_anomaly().__enter__()
        assert all(kind.__init__ is not own for kind, own in plain)
    thread = threading.Thread(target=die)
    thread.start()
    thread.join()
    del thread
    gc.collect()
    assert all(kind.__init__ is own for kind, own in plain)


def test_while_it_is_off_nothing_of_it_is_there():
    plain = [(kind, kind.__init__) for kind in (Node, PlainNode)]
    with detect_anomaly():
        assert quiet.run is None and quiet.site is not None
        assert all(kind.__init__ is not own for kind, own in plain)
    assert quiet.run is quiet.plain and quiet.site is None
    assert all(kind.__init__ is own for kind, own in plain)
    assert not hasattr((t(1.0, requires_grad=True) * 2).grad_fn, "notes")


def test_it_changes_no_number_and_keeps_nothing_alive():
    def train():
        fw.manual_seed(3)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.BatchNorm1d(8), nn.Linear(8, 3))
        optimizer = fw.optim.Adam(net.parameters())
        x, y = fw.randn(6, 4), t(0, 1, 2, 0, 1, 2)
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        return [p.detach().numpy() for p in net.parameters()], weakref.ref(loss.grad_fn), weakref.ref(loss)

    plain, _, _ = train()
    with detect_anomaly():
        watched, node, loss = train()
        assert node() is None and loss() is None
    for a, b in zip(plain, watched):
        np.testing.assert_array_equal(a, b)
