"""Schedules that go by formula from epoch to epoch, and the one that goes by a metric."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_keys, checked, need, per_group


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
        groups = checked(optimizer, kind).param_groups
        self.lr_lambdas = per_group(kind, "lr_lambda", lr_lambda, groups)
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"{kind}: lr_lambda must be a function of the epoch, got {type(f).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["lr_lambdas"] = [None if hasattr(f, "__code__") else dict(getattr(f, "__dict__", {}))
                               for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        check_keys(self, set(self.state_dict()), state_dict)
        saved = state_dict["lr_lambdas"]
        if len(saved) != len(self.lr_lambdas):
            raise ValueError(f"{type(self).__name__}.load_state_dict: {len(saved)} functions in the state, "
                             f"{len(self.lr_lambdas)} in this scheduler")
        self._take({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
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
        self._check_within_step()
        if self._is_initial:
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
        need("StepLR", "step_size", step_size, step_size >= 1, "at least 1")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._times(self.gamma) if due else self._now

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """``lr = lr * gamma`` at each epoch in ``milestones`` (twice where it stands there twice)."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)
                for base in self.base_lrs]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; ``milestones``: how often each epoch stands there."""
        return {**super().state_dict(), "milestones": dict(self.milestones)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where the scheduler that gave ``state_dict`` stood."""
        super().load_state_dict(state_dict)
        self.milestones = Counter(state_dict["milestones"])


class ConstantLR(LRScheduler):
    """``lr = initial_lr * factor`` for ``total_iters`` epochs, then ``initial_lr``."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        need("ConstantLR", "factor", factor, 0 < factor <= 1, "in (0, 1]")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        if self.last_epoch == 0:
            return self._times(self.factor)
        return self._times(1.0 / self.factor) if self.last_epoch == self.total_iters else self._now

    def _get_closed_form_lr(self) -> list[float]:
        factor = self.factor if self.last_epoch < self.total_iters else 1.0
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """``initial_lr`` times a factor that goes from ``start_factor`` to ``end_factor`` in ``total_iters``
    epochs: the usual warm-up.
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:
        need("LinearLR", "start_factor", start_factor, 0 < start_factor <= 1, "in (0, 1]")
        need("LinearLR", "end_factor", end_factor, 0 <= end_factor <= 1, "in [0, 1]")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        part = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part

    def get_lr(self) -> list[float]:
        self._check_within_step()
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now
        return self._times(self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """``lr = lr * gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        return self._now if self._is_initial else self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """``lr = initial_lr * (1 - epoch / total_iters) ** power``, and 0 after ``total_iters`` epochs."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0,
                 last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        epoch, total = self.last_epoch, self.total_iters
        if self._is_initial or epoch > total:
            return self._now
        return self._times(((total - epoch) / (total - epoch + 1)) ** self.power)

    def _get_closed_form_lr(self) -> list[float]:
        left = 1.0 - min(self.last_epoch, self.total_iters) / self.total_iters
        return [base * left ** self.power for base in self.base_lrs]


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
        groups = checked(optimizer, kind).param_groups
        need(kind, "factor", factor, factor < 1.0, "below 1")
        need(kind, "mode", mode, mode in ("min", "max"), "'min' or 'max'")
        need(kind, "threshold_mode", threshold_mode, threshold_mode in ("rel", "abs"), "'rel' or 'abs'")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience, self.threshold = mode, factor, patience, threshold
        self.threshold_mode, self.cooldown, self.eps = threshold_mode, cooldown, eps
        self.min_lrs = per_group(kind, "min_lr", min_lr, groups)
        self.default_min_lr = min_lr if isinstance(min_lr, (int, float)) else None  # PyTorch saves it, too
        self.last_epoch = 0
        self._note_rates()
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse = inf if self.mode == "min" else -inf
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
        self._note_rates()

    def _better(self, value: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "abs":
            return sign * value > sign * self.best + self.threshold
        return sign * value > sign * self.best * (1.0 + sign * self.threshold)
