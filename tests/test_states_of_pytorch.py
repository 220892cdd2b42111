"""States of optimizers and schedulers are PyTorch's: a run of one is continued exactly by the other."""

import warnings
from collections import Counter

import numpy as np
import pytest

import framework as fw

torch = pytest.importorskip("torch")

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("LBFGS", {"lr": 0.5, "history_size": 3, "max_iter": 4, "line_search_fn": None}),
    ("LBFGS", {"max_iter": 4, "line_search_fn": "strong_wolfe"}),
    ("Adafactor", {}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("Adamax", {}),
    ("ASGD", {"t0": 2}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Rprop", {}),
    ("Muon", {}),
]
SCHEDULERS = {
    "StepLR": lambda L, o: L.StepLR(o, 3),
    "MultiStepLR": lambda L, o: L.MultiStepLR(o, [3, 7, 7]),
    "ConstantLR": lambda L, o: L.ConstantLR(o, total_iters=4),
    "LinearLR": lambda L, o: L.LinearLR(o, total_iters=6),
    "ExponentialLR": lambda L, o: L.ExponentialLR(o, 0.9),
    "LambdaLR": lambda L, o: L.LambdaLR(o, lambda e: 0.9**e),
    "MultiplicativeLR": lambda L, o: L.MultiplicativeLR(o, lambda e: 0.9),
    "PolynomialLR": lambda L, o: L.PolynomialLR(o, 8),
    "CosineAnnealingLR": lambda L, o: L.CosineAnnealingLR(o, 7),
    "CosineAnnealingWarmRestarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 4),
    "CyclicLR": lambda L, o: L.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.9),
    "OneCycleLR": lambda L, o: L.OneCycleLR(o, max_lr=0.1, total_steps=30, three_phase=True),
    "OneCycleLR linear": lambda L, o: L.OneCycleLR(
        o, max_lr=0.1, epochs=3, steps_per_epoch=10, anneal_strategy="linear"
    ),
    "ReduceLROnPlateau": lambda L, o: L.ReduceLROnPlateau(o, patience=1),
    "SequentialLR": lambda L, o: L.SequentialLR(
        o, [L.ConstantLR(o, 0.1, 3), L.ExponentialLR(o, 0.9)], milestones=[4]
    ),
    "ChainedScheduler": lambda L, o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 3), L.ExponentialLR(o, 0.9)]),
}
# what PyTorch notes while a step is under way
TRANSIENT = {"_is_initial", "_get_lr_called_within_step"}
X, Y = np.random.default_rng(0).normal(size=(2, 10, 5, 3))


def params(M, one):
    w = M.tensor(np.linspace(-1, 1, 9).reshape(3, 3).tolist(), dtype=M.float64, requires_grad=True)
    b = M.tensor([0.5, -0.5, 0.1], dtype=M.float64, requires_grad=not one)
    return w, b


def step(M, ps, optimizer, i):
    x, y = (M.tensor(a[i].tolist(), dtype=M.float64) for a in (X, Y))

    def closure():
        optimizer.zero_grad()
        loss = ((x @ ps[0].T + ps[1] - y) ** 2).mean()
        loss.backward()
        return loss

    optimizer.step(closure)


def moved(value, source, target):
    """A state with the tensors of one library as those of the other."""
    if isinstance(value, source.Tensor):
        kind = str(value.dtype).split(".")[-1]
        return target.tensor(value.detach().tolist(), dtype=getattr(target, kind))
    if isinstance(value, dict) and not isinstance(value, Counter):
        return {k: moved(v, source, target) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(moved(v, source, target) for v in value)
    return value


def keys(value):
    """The keys of a state, of all its levels."""
    if isinstance(value, dict):
        return {str(k): keys(v) for k, v in value.items() if k not in TRANSIENT}
    if isinstance(value, list | tuple) and any(isinstance(v, dict) for v in value):
        return [keys(v) for v in value]
    return None


@pytest.mark.parametrize("name, options", OPTIMIZERS, ids=lambda v: v if isinstance(v, str) else "")
def test_optimizers_continue_each_others_runs(name, options):
    def made(M):
        ps = params(M, one=name == "Muon")
        return ps, getattr(M.optim, name)([p for p in ps if p.requires_grad], **options)

    runs = {M: made(M) for M in (torch, fw)}
    for M, run in runs.items():
        for i in range(5):
            step(M, *run, i)
    states = {M: run[1].state_dict() for M, run in runs.items()}
    assert keys(states[fw]) == keys(states[torch])
    last = {}
    for M, other in ((torch, fw), (fw, torch)):
        ps, optimizer = made(M)
        with M.no_grad():
            for p, q in zip(ps, runs[other][0], strict=True):
                p.copy_(moved(q.detach(), other, M))
        optimizer.load_state_dict(moved(states[other], other, M))
        for i in range(5, 10):
            step(M, ps, optimizer, i)
            step(other, *runs[other], i)
        last[M] = np.concatenate([np.ravel(p.tolist()) for p in ps])
        straight = np.concatenate([np.ravel(p.tolist()) for p in runs[other][0]])
        np.testing.assert_allclose(last[M], straight, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_continue_each_others_runs(name):
    def made(M):
        optimizer = M.optim.SGD([M.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
        return optimizer, SCHEDULERS[name](M.optim.lr_scheduler, optimizer)

    def go(run, first, last):
        rates = []
        for i in range(first, last):
            run[0].step()
            run[1].step(*([abs(5 - i) + 1.0] if name == "ReduceLROnPlateau" else []))
            rates.append([(g["lr"], g["momentum"]) for g in run[0].param_groups])
        return np.array(rates, dtype=float)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = {M: made(M) for M in (torch, fw)}
        for run in runs.values():
            go(run, 0, 6)
        states = {M: [part.state_dict() for part in run] for M, run in runs.items()}
        assert keys(states[fw]) == keys(states[torch])
        straight = [go(run, 6, 16) for run in runs.values()]
        np.testing.assert_allclose(*straight, rtol=1e-12)
        for M, other in ((torch, fw), (fw, torch)):
            run = made(M)
            for part, state in zip(run, states[other], strict=True):
                part.load_state_dict(moved(state, other, M))
            np.testing.assert_allclose(go(run, 6, 16), straight[0], rtol=1e-12)


def test_eps_inside_is_saved_where_it_is_set():
    p = fw.ones(2, requires_grad=True)
    plain, inside = fw.optim.Adam([p]), fw.optim.Adam([p], eps_inside=True)
    assert "eps_inside" not in plain.state_dict()["param_groups"][0]
    saved = inside.state_dict()
    inside.load_state_dict(plain.state_dict())
    assert inside.param_groups[0]["eps_inside"] is False
    plain.load_state_dict(saved)
    assert plain.param_groups[0]["eps_inside"] is True
