"""Learning-rate schedules: change ``lr`` of an optimizer's groups from epoch to epoch.

Most rules give the next rate from the present one, so that schedulers can be combined on one
optimizer: call ``step()`` of each, after ``optimizer.step()``.
"""

import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import cos, inf, pi
from typing import Any

from .optimizer import Optimizer


class LRScheduler:
    """Base of the schedules: ``get_lr()`` gives the rates of all groups for epoch ``last_epoch``.

    last_epoch: -1 to start; the number of the last epoch to continue without a saved state, where the
    optimizer's groups must have ``initial_lr``.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _checked(optimizer, type(self).__name__)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"{type(self).__name__}: last_epoch={last_epoch!r} continues a schedule, but "
                               f"group {i} of the optimizer has no 'initial_lr'; load the optimizer's "
                               f"state_dict first, or start with last_epoch=-1")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._begin()

    _initial = False

    def _begin(self) -> None:
        """The first step: it sets the rates of the epoch at hand, and none is a step onwards."""
        self._step_count = 0
        self._initial = True
        self.step()
        del self._initial  # back to the class's False, and not in state_dict

    def get_lr(self) -> list[float]:
        """The rates for epoch ``last_epoch``, one per group."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def get_last_lr(self) -> list[float]:
        """The rates set last, one per group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or to ``epoch``) and set its rates. Call it after ``optimizer.step()``."""
        if self._step_count == 1:
            _warn_if_first(self.optimizer, type(self).__name__)
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            closed = getattr(self, "_closed_form_lr", None)
            rates = self.get_lr() if closed is None else closed()
        self._set(rates)

    def _set(self, rates: Sequence[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates):
            group["lr"] = lr
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    @property
    def _now(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def _times(self, factor: float) -> list[float]:
        return [lr * factor for lr in self._now]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions, as plain numbers, lists and dicts."""
        return {k: v for k, v in self.__dict__.items()
                if k not in ("optimizer", "schedulers") and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where the scheduler that gave ``state_dict`` stood.

        Raises ValueError for the state of another kind of scheduler; nothing is changed then. The
        optimizer's own state_dict holds the rates: load that too.
        """
        _check_keys(self, set(self.state_dict()), state_dict)
        self.__dict__.update(state_dict)


def _checked(optimizer: Any, kind: str) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{kind}: optimizer must be an Optimizer, got {type(optimizer).__name__}")
    return optimizer


def _check_keys(scheduler: Any, ours: set, theirs: dict) -> None:
    if ours != set(theirs):
        raise ValueError(f"{type(scheduler).__name__}.load_state_dict: not the state of this kind of "
                         f"scheduler; missing: {sorted(ours - set(theirs))}, unexpected: "
                         f"{sorted(set(theirs) - ours)}")


def _warn_if_first(optimizer: Optimizer, kind: str) -> None:
    # A subclass with a step() of its own does not tell whether it ran.
    if type(optimizer).step is Optimizer.step and not optimizer._opt_called:
        warnings.warn(f"{kind}.step() was called before optimizer.step(): the first rate of the schedule is "
                      f"skipped; call optimizer.step() first", UserWarning, stacklevel=3)


def _need(kind: str, name: str, value: Any, fits: bool, words: str) -> None:
    if not fits:
        raise ValueError(f"{kind}: {name}={value!r} must be {words}")


def _per_group(kind: str, name: str, value: Any, groups: Sequence) -> list:
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ValueError(f"{kind}: {name} has {len(value)} entries, the optimizer {len(groups)} groups")
    return list(value)


class LambdaLR(LRScheduler):
    """``lr = initial_lr * lr_lambda(epoch)``; one function, or one per group.

    Functions are not saved by ``state_dict``; callable objects are, by their ``__dict__``.

    >>> w = fw.ones(1, requires_grad=True)
    >>> optimizer = fw.optim.SGD([w], lr=1.0)
    >>> scheduler = fw.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5 ** epoch)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable],
                 last_epoch: int = -1) -> None:
        kind = type(self).__name__
        groups = _checked(optimizer, kind).param_groups
        self.lr_lambdas = _per_group(kind, "lr_lambda", lr_lambda, groups)
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"{kind}: lr_lambda must be a function of the epoch, got {type(f).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["lr_lambdas"] = [None if hasattr(f, "__code__") else dict(getattr(f, "__dict__", {}))
                               for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        _check_keys(self, set(self.state_dict()), state_dict)
        saved = state_dict["lr_lambdas"]
        if len(saved) != len(self.lr_lambdas):
            raise ValueError(f"{type(self).__name__}.load_state_dict: {len(saved)} functions in the state, "
                             f"{len(self.lr_lambdas)} in this scheduler")
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, saved):
            if attributes:
                f.__dict__.update(attributes)


class MultiplicativeLR(LambdaLR):
    """``lr = lr * lr_lambda(epoch)`` at every epoch after the first.

    >>> optimizer = fw.optim.SGD([fw.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fw.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[float]:
        if self._initial:
            return self._now
        return [lr * f(self.last_epoch) for lr, f in zip(self._now, self.lr_lambdas)]


class StepLR(LRScheduler):
    """``lr = lr * gamma`` every ``step_size`` epochs.

    >>> optimizer = fw.optim.SGD([fw.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fw.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for epoch in range(4):
    ...     optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        _need("StepLR", "step_size", step_size, step_size >= 1, "at least 1")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._times(self.gamma) if due else self._now

    def _closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """``lr = lr * gamma`` at each epoch in ``milestones`` (twice where it stands there twice)."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._times(self.gamma ** self.milestones.count(self.last_epoch))

    def _closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** bisect_right(self.milestones, self.last_epoch)
                for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """``lr = initial_lr * factor`` for ``total_iters`` epochs, then ``initial_lr``."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        _need("ConstantLR", "factor", factor, 0 < factor <= 1, "in (0, 1]")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._times(self.factor)
        return self._times(1.0 / self.factor) if self.last_epoch == self.total_iters else self._now

    def _closed_form_lr(self) -> list[float]:
        factor = self.factor if self.last_epoch < self.total_iters else 1.0
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """``initial_lr`` times a factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters``
    epochs: the usual warm-up.
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:
        _need("LinearLR", "start_factor", start_factor, 0 < start_factor <= 1, "in (0, 1]")
        _need("LinearLR", "end_factor", end_factor, 0 <= end_factor <= 1, "in [0, 1]")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        part = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._initial or self.last_epoch > self.total_iters:
            return self._now
        return self._times(self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def _closed_form_lr(self) -> list[float]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """``lr = lr * gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._now if self._initial else self._times(self.gamma)

    def _closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """``lr = initial_lr * (1 - epoch / total_iters) ** power``, and 0 after ``total_iters`` epochs."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0,
                 last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        epoch, total = self.last_epoch, self.total_iters
        if self._initial or epoch > total:
            return self._now
        return self._times(((total - epoch) / (total - epoch + 1)) ** self.power)

    def _closed_form_lr(self) -> list[float]:
        left = 1.0 - min(self.last_epoch, self.total_iters) / self.total_iters
        return [base * left ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from ``initial_lr`` down to ``eta_min`` in ``T_max`` epochs, and up again.

    ``lr = eta_min + (initial_lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2``. Loshchilov and Hutter,
    SGDR: stochastic gradient descent with warm restarts, ICLR 2017.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        _need("CosineAnnealingLR", "T_max", T_max, T_max > 0, "positive")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        epoch, low = self.last_epoch, self.eta_min
        if self._initial:
            return self._now
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the bottom the ratio below is 0 / 0
            rise = (1 - cos(pi / self.T_max)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, self._now)]
        ratio = (1 + cos(pi * epoch / self.T_max)) / (1 + cos(pi * (epoch - 1) / self.T_max))
        return [ratio * (lr - low) + low for lr in self._now]

    def _closed_form_lr(self) -> list[float]:
        part = (1 + cos(pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to ``eta_min`` in ``T_0`` epochs, then from the top again, each run ``T_mult``
    times as long as the one before. ``step(epoch)`` takes fractions, e.g. ``epoch + i / batches``.

    Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, ICLR 2017.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        kind = "CosineAnnealingWarmRestarts"
        _need(kind, "T_0", T_0, isinstance(T_0, int) and T_0 > 0, "a positive integer")
        _need(kind, "T_mult", T_mult, isinstance(T_mult, int) and T_mult >= 1, "an integer of at least 1")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i: float = T_0
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        part = (1 + cos(pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to ``epoch``, which may be a fraction."""
        if self._step_count == 1:
            _warn_if_first(self.optimizer, type(self).__name__)
        self._step_count += 1
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            _need("CosineAnnealingWarmRestarts.step", "epoch", epoch, epoch >= 0, "0 or more")
            self._locate(epoch)
        self.last_epoch = int(epoch // 1)
        self._set(self.get_lr())

    def _locate(self, epoch: float) -> None:
        self.T_i, self.T_cur = self.T_0, epoch
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult


class OneCycleLR(LRScheduler):
    """Up to ``max_lr`` and down again within ``total_steps``; ``step()`` after every *batch*.

    From ``max_lr / div_factor`` up to ``max_lr`` for the fraction ``pct_start`` of the steps, then down
    to ``max_lr / div_factor / final_div_factor`` (``three_phase``: first back to the start for as long as
    the way up). ``cycle_momentum``: momentum (or the first of betas) goes the other way, from
    ``max_momentum`` to ``base_momentum``. Smith and Topin, Super-convergence, 2018.

    Raises ValueError when stepped more than ``total_steps`` times.
    """

    def __init__(self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True,
                 base_momentum: float | list[float] = 0.85, max_momentum: float | list[float] = 0.95,
                 div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1) -> None:
        kind, groups = "OneCycleLR", _checked(optimizer, "OneCycleLR").param_groups
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(f"{kind}: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        _need(kind, "total_steps", total_steps, total_steps > 0 and total_steps == int(total_steps),
              "a positive integer")
        _need(kind, "pct_start", pct_start, 0 <= pct_start <= 1, "in [0, 1]")
        _need(kind, "anneal_strategy", anneal_strategy, anneal_strategy in ("cos", "linear"),
              "'cos' or 'linear'")
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        self.cycle_momentum = cycle_momentum
        up = pct_start * total_steps - 1
        end = total_steps - 1
        self._phases: list[Any] = [["initial_lr", "max_lr", "max_momentum", "base_momentum", 0, up]]
        if three_phase:
            self._phases += [["max_lr", "initial_lr", "base_momentum", "max_momentum", up, 2 * up],
                             ["initial_lr", "min_lr", "max_momentum", "max_momentum", 2 * up, end]]
        else:
            self._phases += [["max_lr", "min_lr", "base_momentum", "max_momentum", up, end]]
        tops = _per_group(kind, "max_lr", max_lr, groups)
        if cycle_momentum and not all("betas" in g or "momentum" in g for g in groups):
            raise ValueError(f"{kind}: cycle_momentum=True needs an optimizer with momentum or betas; pass "
                             f"cycle_momentum=False")
        lows = _per_group(kind, "base_momentum", base_momentum, groups)
        highs = _per_group(kind, "max_momentum", max_momentum, groups)
        if last_epoch == -1:
            for group, top, low, high in zip(groups, tops, lows, highs):
                first = top / div_factor
                group.update(initial_lr=first, max_lr=top, min_lr=first / final_div_factor)
                if cycle_momentum:
                    _set_momentum(group, high)
                    group.update(base_momentum=low, max_momentum=high)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(f"OneCycleLR: step {at} is past total_steps={self.total_steps}; count the "
                             f"batches of all epochs")
        lr_from, lr_to, m_from, m_to, start, end = next(
            (p for p in self._phases if at <= p[-1]), self._phases[-1])
        part = (at - start) / (end - start) if end != start else 1.0
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                _set_momentum(group, self._between(group[m_from], group[m_to], part))
        return [self._between(group[lr_from], group[lr_to], part) for group in groups]

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (1 + cos(pi * part))


def _set_momentum(group: dict[str, Any], value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class SequentialLR(LRScheduler):
    """One scheduler after another: ``schedulers[i]`` until epoch ``milestones[i]``, then the next.

    >>> from framework.optim.lr_scheduler import ExponentialLR, LinearLR, SequentialLR
    >>> optimizer = fw.optim.SGD([fw.ones(1, requires_grad=True)], lr=1.0)
    >>> warm, decay = LinearLR(optimizer, 0.5, total_iters=2), ExponentialLR(optimizer, 0.5)
    >>> scheduler = SequentialLR(optimizer, [warm, decay], milestones=[2])
    >>> rates = []
    >>> for epoch in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step(); scheduler.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.5]
    """

    def __init__(self, optimizer: Optimizer, schedulers: list[Any], milestones: list[int],
                 last_epoch: int = -1) -> None:
        _checked(optimizer, "SequentialLR")
        if not schedulers:
            raise ValueError("SequentialLR: schedulers is empty")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR: {len(schedulers)} schedulers need {len(schedulers) - 1} "
                             f"milestones, got {len(milestones)}")
        for i, s in enumerate(schedulers):
            if isinstance(s, ReduceLROnPlateau) or not isinstance(s, LRScheduler):
                raise TypeError(f"SequentialLR: schedulers[{i}] must be an LRScheduler that needs no "
                                f"metric, got {type(s).__name__}")
            if s.optimizer is not optimizer:
                raise ValueError(f"SequentialLR: schedulers[{i}] belongs to another optimizer")
        self.optimizer, self.schedulers, self.milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # every scheduler has already taken its first step
            group["lr"] = group["initial_lr"]
        for s in self.schedulers:
            s.last_epoch -= 1
        first = self.schedulers[0]
        first._begin()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch."""
        if epoch is not None:
            raise ValueError(f"SequentialLR.step: epoch={epoch!r} cannot be given; call step() once per "
                             f"epoch")
        self.last_epoch += 1
        i = bisect_right(self.milestones, self.last_epoch)
        scheduler = self.schedulers[i]
        if i > 0 and self.milestones[i - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        _check_keys(self, set(self.state_dict()), state_dict)
        saved = state_dict["_schedulers"]
        if len(saved) != len(self.schedulers):
            raise ValueError(f"SequentialLR.load_state_dict: {len(saved)} schedulers in the state, "
                             f"{len(self.schedulers)} in this one")
        for s, state in zip(self.schedulers, saved):
            _check_keys(s, set(s.state_dict()), state)
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for s, state in zip(self.schedulers, saved):
            s.load_state_dict(state)


class ReduceLROnPlateau(LRScheduler):
    """``lr = lr * factor`` when a metric has not improved for more than ``patience`` epochs.

    mode: "min" or "max": which way is better. threshold: what counts as better, relative ("rel": by that
    fraction) or absolute ("abs"). cooldown: epochs to wait after a reduction. eps: smaller changes of lr
    are not made.

    >>> optimizer = fw.optim.SGD([fw.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fw.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (1.0, 1.0, 1.0):
    ...     optimizer.step(); scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
                 min_lr: float | list[float] = 0, eps: float = 1e-8) -> None:
        kind = "ReduceLROnPlateau"
        groups = _checked(optimizer, kind).param_groups
        _need(kind, "factor", factor, factor < 1.0, "below 1")
        _need(kind, "mode", mode, mode in ("min", "max"), "'min' or 'max'")
        _need(kind, "threshold_mode", threshold_mode, threshold_mode in ("rel", "abs"), "'rel' or 'abs'")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience, self.threshold = mode, factor, patience, threshold
        self.threshold_mode, self.cooldown, self.eps = threshold_mode, cooldown, eps
        self.min_lrs = _per_group(kind, "min_lr", min_lr, groups)
        self.last_epoch = 0
        self._last_lr = [group["lr"] for group in groups]
        self._reset()

    def _reset(self) -> None:
        self.best = inf if self.mode == "min" else -inf
        self.cooldown_counter = self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Tell the metric of the epoch: a number, or a tensor of one element."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            rates = [max(lr * self.factor, low) for lr, low in zip(self._now, self.min_lrs)]
            self._set([new if lr - new > self.eps else lr for lr, new in zip(self._now, rates)])
        self._last_lr = self._now

    def _better(self, value: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "abs":
            return sign * value > sign * self.best + self.threshold
        return sign * value > sign * self.best * (1.0 + sign * self.threshold)
