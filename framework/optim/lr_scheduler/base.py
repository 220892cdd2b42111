"""What all schedules share: the steps, the state, and the checks of their arguments."""

import warnings
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer


class LRScheduler:
    """Base of the schedules: ``get_lr()`` gives the rates of all groups for epoch ``last_epoch``.

    last_epoch: -1 to start; the number of the last epoch to continue without a saved state, where the
    optimizer's groups must have ``initial_lr``.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer, type(self).__name__)
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
            warn_if_first(self.optimizer, type(self).__name__)
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
        check_keys(self, set(self.state_dict()), state_dict)
        self.__dict__.update(state_dict)


def checked(optimizer: Any, kind: str) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{kind}: optimizer must be an Optimizer, got {type(optimizer).__name__}")
    return optimizer


def check_keys(scheduler: Any, ours: set, theirs: dict) -> None:
    if ours != set(theirs):
        raise ValueError(f"{type(scheduler).__name__}.load_state_dict: not the state of this kind of "
                         f"scheduler; missing: {sorted(ours - set(theirs))}, unexpected: "
                         f"{sorted(set(theirs) - ours)}")


def warn_if_first(optimizer: Optimizer, kind: str) -> None:
    # A subclass with a step() of its own does not tell whether it ran.
    if type(optimizer).step is Optimizer.step and not optimizer._opt_called:
        warnings.warn(f"{kind}.step() was called before optimizer.step(): the first rate of the schedule is "
                      f"skipped; call optimizer.step() first", UserWarning, stacklevel=3)


def need(kind: str, name: str, value: Any, fits: bool, words: str) -> None:
    if not fits:
        raise ValueError(f"{kind}: {name}={value!r} must be {words}")


def per_group(kind: str, name: str, value: Any, groups: Sequence) -> list:
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ValueError(f"{kind}: {name} has {len(value)} entries, the optimizer {len(groups)} groups")
    return list(value)
