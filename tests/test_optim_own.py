"""Optimizers that users write in PyTorch's style, hooks, options as tensors, states from elsewhere."""

import copy
import io
import math
import pickle
import warnings

import numpy as np
import pytest
from optimizer_rows import ROWS

import framework as fw
from framework import optim
from framework.optim.optimizer import (
    Optimizer,
    _use_grad_for_differentiable,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)


class Yogi(Optimizer):
    """As published libraries write them: state filled at the first step, tensors and numbers in it."""

    def __init__(self, params, lr=1e-2, betas=(0.9, 0.999, 0.5), eps=(1e-3, None), amsgrad=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "amsgrad": amsgrad})
        self.calls = 0

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)

    @fw.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with fw.enable_grad():
                loss = closure()
        self.calls += 1
        for group in self.param_groups:
            b1, b2, _ = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = fw.tensor(0.0)
                    state["exp_avg"] = fw.zeros_like(p)
                    state["exp_avg_sq"] = fw.full_like(p, 1e-6)
                    state["seen"] = fw.zeros(1, dtype=fw.int64)
                    state["pair"] = (1, fw.ones_like(p))
                    state[7] = {"deep": fw.ones_like(p)}
                state["step"] += 1
                state["seen"] += 1
                m, v, square = state["exp_avg"], state["exp_avg_sq"], p.grad * p.grad
                m.mul_(b1).add_(p.grad, alpha=1 - b1)
                v.addcmul_((v - square).sign(), square, value=-(1 - b2))
                p.addcdiv_(m, v.sqrt().add_(group["eps"][0]), value=-group["lr"])
        self.state["of all"] = self.calls
        return loss


def problem(make=Yogi, dtype=fw.float32, names=False):
    fw.manual_seed(0)
    model = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.Linear(4, 2)).to(dtype)
    params = model.named_parameters() if names else model.parameters()
    return model, make(params)


def train(model, optimizer, steps, first=0):
    for t in range(first, first + steps):
        optimizer.zero_grad()
        x = fw.tensor(np.cos(np.arange(6) + t).reshape(2, 3), dtype=model[0].weight.dtype)
        (model(x) ** 2).sum().backward()
        optimizer.step()


def values(model):
    return [p.detach().numpy().tobytes() for p in model.parameters()]


@pytest.mark.parametrize("how", ["state_dict", "file", "pickle", "deepcopy"])
@pytest.mark.parametrize("names", [False, True])
def test_it_resumes(how, names):
    whole, optimizer = problem(names=names)
    train(whole, optimizer, 10)
    model, first = problem(names=names)
    train(model, first, 4)
    if how in ("state_dict", "file"):
        other, second = problem(names=names)
        saved = {"model": model.state_dict(), "optimizer": first.state_dict()}
        if how == "file":
            file = io.BytesIO()
            fw.save(saved, file)
            file.seek(0)
            saved = fw.load(file)
        other.load_state_dict(saved["model"])
        second.load_state_dict(saved["optimizer"])
        second.calls = saved["optimizer"]["state"]["of all"]
    elif how == "pickle":
        other, second = pickle.loads(pickle.dumps((model, first)))
    else:
        other, second = copy.deepcopy((model, first))
    assert second.calls == 4 and second.state["of all"] == 4
    train(other, second, 6, first=4)
    assert values(other) == values(whole)


def test_its_state_is_what_it_made():
    model, optimizer = problem()
    optimizer.load_state_dict(optimizer.state_dict())
    assert not optimizer.state
    train(model, optimizer, 1)
    saved = optimizer.state_dict()
    assert list(saved["state"]) == [0, 1, 2, 3, "of all"]
    assert saved["param_groups"][0]["params"] == [0, 1, 2, 3]
    assert set(saved["param_groups"][0]) == {"lr", "betas", "eps", "amsgrad", "params"}
    other, second = problem(dtype=fw.float64)
    second.load_state_dict(saved)
    state = second.state[other[0].weight]
    assert list(state) == ["step", "exp_avg", "exp_avg_sq", "seen", "pair", 7]
    assert state["exp_avg"].dtype is fw.float64 and state[7]["deep"].dtype is fw.float64
    assert state["step"].dtype is fw.float32 and state["seen"].dtype is fw.int64
    assert type(state["pair"]) is tuple and state["pair"][0] == 1 and state["pair"][1].dtype is fw.float64


def test_it_equals_pytorch():
    torch = pytest.importorskip("torch")
    source = {"fw": torch, "Optimizer": torch.optim.Optimizer}
    theirs = type("Yogi", (torch.optim.Optimizer,), {})
    for name in ("__init__", "step", "__setstate__"):
        f = getattr(vars(Yogi)[name], "__wrapped__", vars(Yogi)[name])
        f = getattr(f, "__wrapped__", f)
        cell = type(f)(f.__code__, {**f.__globals__, **source}, closure=f.__closure__ and tuple(
            type(c)(theirs) for c in f.__closure__))
        cell.__defaults__ = f.__defaults__
        setattr(theirs, name, torch.no_grad()(cell) if name == "step" else cell)
    p, q = fw.ones(3, dtype=fw.float64, requires_grad=True), torch.ones(
        3, dtype=torch.float64, requires_grad=True)
    a, b = Yogi([p]), theirs([q])
    for t in range(30):
        for x, o, m in ((p, a, fw), (q, b, torch)):
            o.zero_grad()
            ((x - m.tensor([0.5, -t, 2.0], dtype=m.float64)) ** 2).sum().backward()
            o.step()
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), 1e-13)
    numpy = {k: {n: v.numpy() for n, v in s.items() if hasattr(v, "numpy")}
             for k, s in b.state_dict()["state"].items() if isinstance(k, int)}
    a.load_state_dict({**b.state_dict(), "state": numpy})
    np.testing.assert_array_equal(a.state[p]["exp_avg"].numpy(), numpy[0]["exp_avg"])


def test_wrappers_that_call_no_init():
    """As Lookahead is published: around another optimizer, whose groups and state it shares."""
    class Lookahead(Optimizer):
        def __init__(self, optimizer, k=2, alpha=0.5):
            self.optimizer, self.k, self.alpha = optimizer, k, alpha
            self.param_groups, self.state, self.defaults = (
                optimizer.param_groups, optimizer.state, optimizer.defaults)
            self.slow = [[p.detach().clone() for p in g["params"]] for g in self.param_groups]
            self.count = 0

        def step(self, closure=None):
            loss = self.optimizer.step(closure)
            self.count += 1
            if self.count % self.k == 0:
                for group, slow in zip(self.param_groups, self.slow):
                    for p, s in zip(group["params"], slow):
                        s.add_(p.detach() - s, alpha=self.alpha)
                        p.data.copy_(s)
            return loss

    p = fw.tensor([1.0], requires_grad=True)
    optimizer = Lookahead(optim.SGD([p], lr=0.25))
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    scheduler.step()
    assert p.tolist() == [1 + 0.5 * (0.25 - 1)] and optimizer.param_groups[0]["lr"] == 0.025
    assert optimizer.state_dict()["param_groups"][0]["params"] == [0]


def test_required_options():
    class Needs(Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr})

    p = fw.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="every parameter group must give 'lr'"):
        Needs([p])
    assert Needs([{"params": [p], "lr": 0.5}]).param_groups[0]["lr"] == 0.5
    assert repr(required) == "<required parameter>"
    with pytest.raises(NotImplementedError, match="must define update"):
        optimizer = Needs([p], 0.1)
        p.grad = fw.ones(1)
        optimizer.step()


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.RMSprop])
def test_an_update_that_is_replaced_is_called(kind, compiled, monkeypatch):
    """On the class or on one optimizer, before the first step or after some: no kernel goes around it."""
    p, calls = fw.ones(2, requires_grad=True), []
    optimizer = kind([p], lr=0.1)

    def step():
        p.grad = fw.ones(2)
        optimizer.step()
    if compiled:
        step = fw.compile(step)
    for _ in range(4):
        step()
    before = p.tolist()
    monkeypatch.setattr(kind, "update", lambda self, p, g, state, group: calls.append("class"))
    step()
    optimizer.update = lambda p, g, state, group: calls.append("one")
    step()
    assert calls == ["class", "one"] and p.tolist() == before
    monkeypatch.undo()
    del optimizer.update
    step()
    assert p.tolist() != before


FUSED = [kind for kind in vars(optim).values() if isinstance(kind, type) and issubclass(kind, Optimizer)
         and kind.fused is not Optimizer.fused]


@pytest.mark.skipif(fw._native.module is None, reason="no native kernels")
@pytest.mark.parametrize("kind", FUSED, ids=lambda kind: kind.__name__)
def test_kernels_make_the_steps(kind, monkeypatch):
    """The formula of a class is run where a kernel cannot, and only there."""
    assert len(FUSED) >= 7
    p = fw.ones(3, requires_grad=True)
    optimizer = kind([p], lr=0.1)
    monkeypatch.setattr(kind, "_update_one", lambda *a: pytest.fail("by the formula"))
    for _ in range(2):
        p.grad = fw.ones(3)
        optimizer.step()
    assert p.tolist() != [1, 1, 1]


def test_a_step_that_calls_its_parents_runs_hooks_once():
    class Clipped(optim.SGD):
        def step(self, closure=None):
            for group in self.param_groups:
                fw.nn.utils.clip_grad_value_(group["params"], 0.5)
            return super().step(closure)

    p = fw.ones(1, requires_grad=True)
    optimizer, seen = Clipped([p], lr=1.0, momentum=0.5), []
    every = [register_optimizer_step_pre_hook(lambda o, a, k: seen.append("every")),
             register_optimizer_step_post_hook(lambda o, a, k: seen.append("after every"))]
    optimizer.register_step_pre_hook(lambda o, a, k: seen.append("pre"))
    optimizer.register_step_post_hook(lambda o, a, k: seen.append("post"))
    p.grad = fw.full((1,), 3.0)
    optimizer.step()
    for handle in every:
        handle.remove()
    assert seen == ["every", "pre", "post", "after every"] and p.item() == 0.5
    other = Clipped([p], lr=1.0, momentum=0.5)
    other.load_state_dict(optimizer.state_dict())
    p.grad = fw.full((1,), 3.0)
    other.step()
    assert other.state[p]["step"] == 2 and p.item() == 0.5 - 0.75
    optimizer.step = lambda: 1 / 0  # a step that fails leaves the optimizer ready
    with pytest.raises(ZeroDivisionError):
        optimizer.step()


def test_a_failed_step_does_not_switch_hooks_off():
    p, seen = fw.ones(1, requires_grad=True), []
    optimizer = optim.SGD([p])
    optimizer.register_step_pre_hook(lambda o, a, k: seen.append(1))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            optimizer.step(lambda: 1 / 0)
    assert seen == [1, 1]


def test_hooks_of_states():
    p = fw.ones(1, requires_grad=True)
    optimizer, seen = optim.SGD([p], lr=0.5), []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("pre 1"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("pre 0"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "version": 3})
    removed = optimizer.register_state_dict_post_hook(lambda o, state: {})
    removed.remove()
    saved = optimizer.state_dict()
    assert seen == ["pre 0", "pre 1"] and saved["version"] == 3

    def old(o, state):
        seen.append("load")
        state["param_groups"] = [{**g, "lr": 0.25} for g in state["param_groups"]]

    optimizer.register_load_state_dict_pre_hook(old)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append(o.param_groups[0]["lr"]))
    optimizer.load_state_dict(saved)
    assert seen[2:] == ["load", 0.25] and saved["param_groups"][0]["lr"] == 0.5  # not that of the caller
    assert not copy.deepcopy(optimizer)._optimizer_load_state_dict_pre_hooks


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_rates_as_tensors(row):
    """The same steps as with the number; a scheduler changes the tensor in place."""
    ends = []
    for make in (float, lambda x: fw.tensor(x, dtype=fw.float64)):
        p = fw.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=fw.float64, requires_grad=True)
        lr = make(0.125)
        optimizer = getattr(optim, row.name)([p], lr=lr)
        scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def closure():
            optimizer.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
            scheduler.step()
        ends.append(p.detach().numpy())
        assert optimizer.param_groups[0]["lr"] is lr or type(lr) is float
        assert float(scheduler.get_last_lr()[0]) == 0.125 / 8 == float(optimizer.param_groups[0]["lr"])
    np.testing.assert_array_equal(*ends)
    assert scheduler.get_last_lr()[0] is not lr  # a copy, which the user may change


def test_betas_as_tensors():
    ends = []
    for betas in ((0.5, 0.75), (fw.tensor(0.5), fw.tensor(0.75))):
        p = fw.ones(3, requires_grad=True)
        optimizer = optim.Adam([p], lr=0.1, betas=betas)
        for _ in range(3):
            p.grad = p.detach() * 2
            optimizer.step()
        ends.append(p.tolist())
    assert ends[0] == ends[1]
    with pytest.raises(ValueError, match="betas"):
        optim.Adam([p], betas=(fw.tensor(0.5), fw.tensor(1.5)))


@pytest.mark.parametrize("row", [r for r in ROWS.values() if r.theirs and r.name != "LBFGS"],
                         ids=lambda row: row.name)
def test_states_of_pytorch_load(row):
    """Ten steps there, the state as NumPy arrays, ten steps here: the same as twenty there."""
    torch = pytest.importorskip("torch")
    start = np.array([[1.0, 2.0], [3.0, -1.0]])
    torch.set_default_dtype(torch.float64)
    try:
        q = torch.tensor(start, requires_grad=True)
        theirs = getattr(torch.optim, row.name)([q], lr=0.05)
        for t in range(20):
            if t == 10:
                at = q.detach().numpy().copy()
                saved = copy.deepcopy(theirs.state_dict())
            q.grad = 2 * (q.detach() - math.sin(t))
            if row.name == "SparseAdam":
                q.grad = q.grad.to_sparse()
            theirs.step()
    finally:
        torch.set_default_dtype(torch.float32)
    state = {i: {k: v.numpy() if isinstance(v, torch.Tensor) else v for k, v in entry.items()}
             for i, entry in saved["state"].items()}
    p = fw.tensor(at, requires_grad=True)
    ours = getattr(optim, row.name)([p])
    ours.load_state_dict({"state": state, "param_groups": saved["param_groups"]})
    for t in range(10, 20):
        p.grad = 2 * (p.detach() - math.sin(t))
        ours.step()
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), max(1e-12, row.close), row.close)
    assert ours.state_dict()["param_groups"][0]["lr"] == 0.05


def test_states_by_name_load():
    """Keys that are names, and another order of the parameters."""
    a, b = fw.ones(1, requires_grad=True), fw.ones(1, requires_grad=True)
    first = optim.SGD([("a", a), ("b", b)], lr=0.1, momentum=0.9)
    a.grad, b.grad = fw.tensor([1.0]), fw.tensor([2.0])
    first.step()
    saved = first.state_dict()
    second = optim.SGD([("b", b), ("a", a)], lr=0.1, momentum=0.9)
    second.load_state_dict(saved)
    assert second.state[a]["momentum_buffer"].tolist() == [1.0]
    assert second.state[b]["momentum_buffer"].tolist() == [2.0]
    group = {**saved["param_groups"][0], "params": ["a", "b"]}
    third = optim.SGD([a, b], momentum=0.9)
    third.load_state_dict({"state": dict(zip("ab", saved["state"].values())), "param_groups": [group]})
    assert third.state[b]["momentum_buffer"].tolist() == [2.0]


def test_the_same_parameter_twice_in_a_group_warns():
    p = fw.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="the same parameter twice"):
        optimizer = optim.SGD([p, p], lr=0.25)
    p.grad = fw.ones(1)
    optimizer.step()
    assert p.item() == 0.5
    with pytest.raises(ValueError, match="appears in two groups"):
        optimizer.add_param_group({"params": [p]})


def test_computed_tensors_that_retain_their_gradient():
    w = fw.ones(2, requires_grad=True)
    x = w * 2
    x.retain_grad()
    optimizer = optim.SGD([x], lr=0.5)
    x.grad = fw.ones(2)
    optimizer.step()
    assert x.tolist() == [1.5, 1.5]


def test_use_grad_for_differentiable():
    class Plain(Optimizer):
        @_use_grad_for_differentiable
        def step(self, closure=None):
            self.recorded = fw.is_grad_enabled()

    p = fw.ones(1, requires_grad=True)
    optimizer = Plain([p], {"differentiable": False})
    optimizer.step()
    assert not optimizer.recorded
    optimizer = Plain([p], {"differentiable": True})
    optimizer.step()
    assert optimizer.recorded


def test_sparse_adam_leaves_rows_without_gradient():
    torch = pytest.importorskip("torch")
    start, rows = np.ones((5, 2)), [[0, 3, 3], [1], [0, 4], [2, 3]]
    p, q = fw.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    ours, theirs = optim.SparseAdam([p], lr=0.1), torch.optim.SparseAdam([q], lr=0.1)
    for row in rows:
        ours.zero_grad()
        theirs.zero_grad()
        (fw.nn.functional.embedding(fw.tensor(row), p) ** 2).sum().backward()
        (torch.nn.functional.embedding(torch.tensor(row), q, sparse=True) ** 2).sum().backward()
        ours.step()
        theirs.step()
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), 1e-13)
    np.testing.assert_allclose(ours.state[p]["exp_avg"].numpy(), theirs.state[q]["exp_avg"].numpy(), 1e-13)


def test_schedulers_in_pytorchs_style():
    class Halving(optim.lr_scheduler._LRScheduler):
        def get_lr(self):
            if not self._get_lr_called_within_step:
                warnings.warn("use get_last_lr", UserWarning, stacklevel=2)
            return [base * 0.5 ** self.last_epoch for base in self.base_lrs]

        def _get_closed_form_lr(self):
            return [-1.0 for _ in self.base_lrs]

    optimizer = optim.SGD([fw.ones(1, requires_grad=True)], lr=1.0)
    scheduler = Halving(optimizer)
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.5] and scheduler.last_epoch == 1 and scheduler._step_count == 2
    with pytest.warns(UserWarning, match="use get_last_lr"):
        assert scheduler.get_lr() == [0.5]
    with pytest.warns(UserWarning, match=r"StepLR.get_lr\(\) gives the rates for a step under way"):
        optim.lr_scheduler.StepLR(optimizer, 1).get_lr()
    with pytest.warns(UserWarning, match=r"step\(epoch\)"):
        scheduler.step(5)
    assert scheduler.get_last_lr() == [-1.0]
    saved = {**scheduler.state_dict(), "_is_initial": False, "_get_lr_called_within_step": False}
    other = Halving(optimizer)
    other.load_state_dict(saved)  # as PyTorch writes it
    assert other.last_epoch == 5 and "_is_initial" not in other.state_dict()
