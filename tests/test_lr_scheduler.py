"""Schedules: their formulas, PyTorch's rates over 30 epochs, saving, and wrong use."""

import contextlib
import copy
import importlib
import warnings
from math import cos, pi

import pytest

import framework as fw
from framework import optim
from framework.optim import SGD, Adam, lr_scheduler
from framework.optim.lr_scheduler import LRScheduler

EPOCHS = 100


def sgd(lr=1.0, **options):
    return SGD([fw.ones(1, requires_grad=True)], lr=lr, **options)


def rates(scheduler, epochs):
    found = []
    for _ in range(epochs):
        found.append(scheduler.get_last_lr()[0])
        scheduler.optimizer.step()
        scheduler.step()
    return found


def _swa(M):
    return (optim if M is lr_scheduler else importlib.import_module("torch.optim")).swa_utils.SWALR


MAKERS = {
    "LambdaLR": lambda M, o: M.LambdaLR(o, [lambda e: 0.95 ** e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda M, o: M.MultiplicativeLR(o, lambda e: 0.95),
    "StepLR": lambda M, o: M.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda M, o: M.MultiStepLR(o, [3, 7, 7, 20], 0.5),
    "ConstantLR": lambda M, o: M.ConstantLR(o, 0.5, 4),
    "ConstantLR-default": lambda M, o: M.ConstantLR(o),
    "LinearLR": lambda M, o: M.LinearLR(o, 0.25, 0.9, 7),
    "LinearLR-default": lambda M, o: M.LinearLR(o),
    "ExponentialLR": lambda M, o: M.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda M, o: M.CosineAnnealingLR(o, 7, 0.01),
    "CosineAnnealingLR-once": lambda M, o: M.CosineAnnealingLR(o, T_max=EPOCHS),
    "CosineAnnealingWarmRestarts": lambda M, o: M.CosineAnnealingWarmRestarts(o, 4, 2, 0.01),
    "CosineAnnealingWarmRestarts-same": lambda M, o: M.CosineAnnealingWarmRestarts(o, 4),
    "OneCycleLR": lambda M, o: M.OneCycleLR(o, 1.0, total_steps=EPOCHS),
    "OneCycleLR-three": lambda M, o: M.OneCycleLR(
        o, [1.0, 2.0], epochs=15, steps_per_epoch=7, three_phase=True, anneal_strategy="linear"),
    "PolynomialLR": lambda M, o: M.PolynomialLR(o, 12, 2.0),
    "PolynomialLR-default": lambda M, o: M.PolynomialLR(o),
    "CyclicLR": lambda M, o: M.CyclicLR(o, [0.01, 0.02], 0.1, 4, 7),
    "CyclicLR-halves": lambda M, o: M.CyclicLR(o, 0.01, 0.1, 5, mode="triangular2"),
    "CyclicLR-power": lambda M, o: M.CyclicLR(o, 0.01, [0.1, 0.3], 3, mode="exp_range", gamma=0.9,
                                              base_momentum=0.5, max_momentum=0.75),
    "CyclicLR-own": lambda M, o: M.CyclicLR(o, 0.01, 0.1, 5, scale_fn=lambda x: 1 / (5 ** (x * 0.0001)),
                                            scale_mode="iterations", cycle_momentum=False),
    "ChainedScheduler": lambda M, o: M.ChainedScheduler([M.ConstantLR(o, 0.1, 5), M.ExponentialLR(o, 0.9)]),
    "ChainedScheduler-cosine": lambda M, o: M.ChainedScheduler(
        [M.CosineAnnealingLR(o, 10), M.StepLR(o, 7, 0.5), M.MultiplicativeLR(o, lambda e: 0.99)], o),
    "SWALR": lambda M, o: _swa(M)(o, [0.05, 0.5], 7),
    "SWALR-linear": lambda M, o: _swa(M)(o, 0.05, 12, "linear"),
    "SWALR-at-once": lambda M, o: _swa(M)(o, 0.05, 0),
    "SequentialLR": lambda M, o: M.SequentialLR(
        o, [M.LinearLR(o, 0.1, total_iters=5), M.ExponentialLR(o, 0.9), M.StepLR(o, 3, 0.5)], [5, 15]),
    "SequentialLR-cosine": lambda M, o: M.SequentialLR(
        o, [M.ConstantLR(o, 0.1, 5), M.CosineAnnealingLR(o, 10), M.MultiplicativeLR(o, lambda e: 0.9)],
        [5, 12]),
    "SequentialLR-restarts": lambda M, o: M.SequentialLR(
        o, [M.LinearLR(o, 0.1, total_iters=3), M.CosineAnnealingWarmRestarts(o, 5), M.PolynomialLR(o, 8)],
        [4, 15]),
}


def two_groups(M, make, name):
    options = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(M.optim, name)([{"params": [make()]}, {"params": [make()], "lr": 0.3}], lr=0.1, **options)


def test_every_schedule_is_compared():
    names = {n for n, v in {**vars(lr_scheduler), **vars(optim.swa_utils)}.items()
             if isinstance(v, type) and issubclass(v, LRScheduler) and v is not LRScheduler}
    assert names == {n.partition("-")[0] for n in MAKERS} | {"ReduceLROnPlateau"}


@pytest.mark.filterwarnings("ignore:Detected call of")
@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("kind", MAKERS)
def test_equals_pytorch(kind, name):
    torch = pytest.importorskip("torch")
    ours = two_groups(fw, lambda: fw.ones(1, requires_grad=True), name)
    theirs = two_groups(torch, lambda: torch.ones(1, requires_grad=True), name)
    a, b = MAKERS[kind](lr_scheduler, ours), MAKERS[kind](torch.optim.lr_scheduler, theirs)
    for epoch in range(EPOCHS):
        assert a.get_last_lr() == pytest.approx(b.get_last_lr(), rel=1e-12, abs=1e-15), epoch
        for g, h in zip(ours.param_groups, theirs.param_groups):
            assert g["lr"] == pytest.approx(h["lr"], rel=1e-12, abs=1e-15)
            key = "momentum" if name == "SGD" else "betas"
            assert g[key] == pytest.approx(h[key], rel=1e-12)
        ours.step()
        theirs.step()
        if epoch < EPOCHS - 1:
            a.step()
            b.step()


@pytest.mark.parametrize("kind, formula", [
    ("StepLR", lambda e: 0.5 ** (e // 3)),
    ("ExponentialLR", lambda e: 0.9 ** e),
    ("LinearLR", lambda e: 0.25 + 0.65 * min(e, 7) / 7),
    ("ConstantLR", lambda e: 0.5 if e < 4 else 1.0),
    ("PolynomialLR", lambda e: max(0.0, 1 - e / 12) ** 2),
    ("CosineAnnealingLR", lambda e: 0.01 + 0.99 * (1 + cos(pi * e / 7)) / 2),
    ("CosineAnnealingWarmRestarts-same", lambda e: (1 + cos(pi * (e % 4) / 4)) / 2),
])
def test_formula(kind, formula):
    assert rates(MAKERS[kind](lr_scheduler, sgd()), 25) == pytest.approx([formula(e) for e in range(25)])
    scheduler = MAKERS[kind](lr_scheduler, sgd())
    scheduler.optimizer.step()
    with (pytest.warns(UserWarning, match=r"step\(epoch\) goes by the formula")
          if "Restarts" not in kind else contextlib.nullcontext()):
        scheduler.step(10)  # straight to an epoch
    assert scheduler.get_last_lr() == pytest.approx([formula(10)])


@pytest.mark.parametrize("kind", MAKERS)
def test_resume(kind):
    def make():
        return two_groups(fw, lambda: fw.ones(1, requires_grad=True), "SGD")

    whole = rates(MAKERS[kind](lr_scheduler, make()), 25)
    first = MAKERS[kind](lr_scheduler, make())
    start = rates(first, 11)
    saved = copy.deepcopy((first.optimizer.state_dict(), first.state_dict()))
    optimizer = make()
    second = MAKERS[kind](lr_scheduler, optimizer)
    optimizer.load_state_dict(saved[0])
    second.load_state_dict(saved[1])
    assert start + rates(second, 14) == whole


def _plain(value):
    if isinstance(value, dict):
        return all(isinstance(k, str | int) and _plain(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(_plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str))


@pytest.mark.parametrize("kind", MAKERS)
def test_state_is_plain_data(kind):
    assert _plain(MAKERS[kind](lr_scheduler, two_groups(fw, lambda: fw.ones(1), "SGD")).state_dict())


def test_callable_objects_are_saved():
    class Ramp:
        def __init__(self, width):
            self.width = width

        def __call__(self, epoch):
            return epoch / self.width

    first, second = lr_scheduler.LambdaLR(sgd(), Ramp(4)), lr_scheduler.LambdaLR(sgd(), Ramp(8))
    second.load_state_dict(first.state_dict())
    assert second.lr_lambdas[0].width == 4


@pytest.mark.parametrize("options", [
    {}, {"mode": "max", "patience": 1}, {"factor": 0.5, "patience": 0, "cooldown": 2},
    {"threshold": 0.3, "threshold_mode": "abs", "patience": 2}, {"patience": 0, "min_lr": [0.05, 0.001]},
    {"patience": 0, "eps": 0.05}], ids=str)
def test_plateau_equals_pytorch(options):
    torch = pytest.importorskip("torch")
    ours = two_groups(fw, lambda: fw.ones(1, requires_grad=True), "SGD")
    theirs = two_groups(torch, lambda: torch.ones(1, requires_grad=True), "SGD")
    a = lr_scheduler.ReduceLROnPlateau(ours, **options)
    b = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    for epoch in range(EPOCHS):
        metric = [1.0, 0.9, 0.95, 0.9, 0.8999, 0.5, 0.7, float("nan"), 0.6][epoch % 9] + 0.01 * epoch
        a.step(fw.tensor(metric, dtype=fw.float64))
        b.step(metric)
        assert a.get_last_lr() == b.get_last_lr()
        assert (a.best, a.num_bad_epochs) == (b.best, b.num_bad_epochs)
        if epoch == 10:
            c = lr_scheduler.ReduceLROnPlateau(ours)
            c.load_state_dict(a.state_dict())
            a = c


def test_stepping_before_the_optimizer_warns_once():
    scheduler = lr_scheduler.StepLR(sgd(), 1)
    with pytest.warns(UserWarning, match=r"StepLR.step\(\) was called before optimizer.step\(\)"):
        scheduler.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()
        good = lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 2)
        good.optimizer.step()
        good.step()


def test_schedules_can_be_combined():
    optimizer = sgd()
    a, b = lr_scheduler.ExponentialLR(optimizer, 0.5), lr_scheduler.StepLR(optimizer, 2, 0.1)
    for _ in range(2):
        optimizer.step()
        a.step()
        b.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.025)


def test_last_epoch_continues_a_schedule():
    optimizer = sgd(0.25)
    with pytest.raises(KeyError, match="group 0 of the optimizer has no 'initial_lr'"):
        lr_scheduler.StepLR(optimizer, 3, 0.5, last_epoch=4)
    optimizer.param_groups[0]["initial_lr"] = 1.0
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5, last_epoch=1)
    assert scheduler.last_epoch == 2 and scheduler.get_last_lr() == [0.25]


def test_fractions_of_an_epoch():
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 4, 2)
    scheduler.optimizer.step()
    scheduler.step(6.5)
    assert scheduler.get_last_lr() == pytest.approx([(1 + cos(pi * 2.5 / 8)) / 2])
    assert scheduler.last_epoch == 6


M = lr_scheduler


@pytest.mark.parametrize("call, error, text", [
    (lambda o: M.StepLR(1, 2), TypeError, "StepLR: optimizer must be an Optimizer, got int"),
    (lambda o: M.StepLR(o, 0), ValueError, "step_size=0 must be at least 1"),
    (lambda o: M.ConstantLR(o, 2.0), ValueError, r"factor=2.0 must be in \(0, 1\]"),
    (lambda o: M.LinearLR(o, 0.0), ValueError, "start_factor=0.0"),
    (lambda o: M.LinearLR(o, 0.5, 1.5), ValueError, "end_factor=1.5"),
    (lambda o: M.CosineAnnealingLR(o, 0), ValueError, "T_max=0 must be positive"),
    (lambda o: M.CosineAnnealingWarmRestarts(o, 0.5), ValueError, "T_0=0.5 must be a positive integer"),
    (lambda o: M.CosineAnnealingWarmRestarts(o, 2, 0), ValueError, "T_mult=0"),
    (lambda o: M.CosineAnnealingWarmRestarts(o, 2).step(-1), ValueError, "epoch=-1 must be 0 or more"),
    (lambda o: M.LambdaLR(o, 3), TypeError, "lr_lambda must be a function of the epoch, got int"),
    (lambda o: M.LambdaLR(o, [abs, abs]), ValueError, "lr_lambda has 2 entries, the optimizer 1 groups"),
    (lambda o: M.OneCycleLR(o, 1.0), ValueError, "give total_steps, or epochs and steps_per_epoch"),
    (lambda o: M.OneCycleLR(o, 1.0, 0), ValueError, "total_steps=0"),
    (lambda o: M.OneCycleLR(o, 1.0, 5, pct_start=2), ValueError, "pct_start=2"),
    (lambda o: M.OneCycleLR(o, 1.0, 5, anneal_strategy="up"), ValueError, "anneal_strategy='up'"),
    (lambda o: M.OneCycleLR(optim.Adagrad([fw.ones(1)]), 1.0, 5), ValueError, "cycle_momentum=True needs"),
    (lambda o: rates(M.OneCycleLR(o, 1.0, 5), 9), ValueError, "step 6 is past total_steps=5"),
    (lambda o: M.ChainedScheduler([]), ValueError, "ChainedScheduler: schedulers is empty"),
    (lambda o: M.ChainedScheduler([M.StepLR(o, 1), 3]), TypeError, r"schedulers\[1\] must be an LRScheduler"),
    (lambda o: M.ChainedScheduler([M.StepLR(o, 1), M.StepLR(sgd(), 1)]), ValueError, "another optimizer"),
    (lambda o: M.ChainedScheduler([M.ReduceLROnPlateau(o)]), TypeError, "got ReduceLROnPlateau"),
    (lambda o: M.CyclicLR(o, 0.1, 1.0, mode="up"), ValueError, "mode='up' must be"),
    (lambda o: M.CyclicLR(o, 0.1, 1.0, scale_mode="up"), ValueError, "scale_mode='up'"),
    (lambda o: M.CyclicLR(o, [0.1, 0.1], 1.0), ValueError, "base_lr has 2 entries"),
    (lambda o: M.CyclicLR(optim.Adagrad([fw.ones(1)]), 0.1, 1.0), ValueError, "cycle_momentum=True needs"),
    (lambda o: optim.swa_utils.SWALR(o, 0.1, -1), ValueError, "anneal_epochs=-1"),
    (lambda o: optim.swa_utils.SWALR(o, 0.1, 1, "up"), ValueError, "anneal_strategy='up'"),
    (lambda o: M.SequentialLR(o, [], []), ValueError, "schedulers is empty"),
    (lambda o: M.SequentialLR(o, [M.StepLR(o, 1)], [3]), ValueError, "1 schedulers need 0 milestones"),
    (lambda o: M.SequentialLR(o, [M.ReduceLROnPlateau(o)], []), TypeError, "got ReduceLROnPlateau"),
    (lambda o: M.SequentialLR(o, [M.StepLR(sgd(), 1)], []), ValueError, "belongs to another optimizer"),
    (lambda o: M.SequentialLR(o, [M.StepLR(o, 1)], []).step(3), ValueError, "epoch=3 cannot be given"),
    (lambda o: M.ReduceLROnPlateau(o, "least"), ValueError, "mode='least' must be 'min' or 'max'"),
    (lambda o: M.ReduceLROnPlateau(o, factor=1.0), ValueError, "factor=1.0 must be below 1"),
    (lambda o: M.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "threshold_mode='x'"),
    (lambda o: M.ReduceLROnPlateau(o, min_lr=[0, 0]), ValueError, "min_lr has 2 entries"),
    (lambda o: M.StepLR(o, 1).load_state_dict({"gamma": 1}), ValueError, "missing: .*step_size"),
    (lambda o: LRScheduler(o), NotImplementedError, "LRScheduler must define get_lr"),
])
def test_wrong_use(call, error, text):
    optimizer = SGD([fw.ones(1, requires_grad=True)], lr=1.0, momentum=0.5)
    optimizer.step()
    with pytest.raises(error, match=text):
        call(optimizer)


def test_adam_betas_are_cycled():
    optimizer = Adam([fw.ones(1, requires_grad=True)])
    lr_scheduler.OneCycleLR(optimizer, 1.0, 10)
    assert optimizer.param_groups[0]["betas"] == (0.95, 0.999)
