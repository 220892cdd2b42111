"""What all schedules share: the steps, the state, and the checks of their arguments."""

import warnings
from collections.abc import Sequence
from typing import Any

from ...autograd.mode import no_grad
from ...tensor import Tensor
from ..arrays import number
from ..optimizer import Optimizer
from ..rates import is_on_gpu

_TRANSIENT = ("_is_initial", "_get_lr_called_within_step")  # PyTorch saves them, too
_LATER = {"use_beta1", "default_min_lr", "mode_worse"}  # not every version of PyTorch has it


class LRScheduler:
    """Base of the schedules: ``get_lr()`` gives the rates of all groups for epoch ``last_epoch``.

    last_epoch: -1 to start; the number of the last epoch to continue without a saved state, where the
    optimizer's groups must have ``initial_lr``. Where ``lr`` of a group is a tensor, it is changed in
    place; the rates are computed as Python's numbers, of a tensor on a GPU as tensors there.
    """

    _is_initial = False  # during the first step, which does not go on to the next epoch
    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer, type(self).__name__)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", number(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"{type(self).__name__}: last_epoch={last_epoch!r} continues a schedule, but "
                               f"group {i} of the optimizer has no 'initial_lr'; load the optimizer's "
                               f"state_dict first, or start with last_epoch=-1")
        self.base_lrs = [number(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._begin()

    def _begin(self) -> None:
        """The first step, made by the constructor: it sets the rates of the current epoch and does not go on
        to the next."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            del self._is_initial  # back to the class's False, and not in state_dict

    def get_lr(self) -> list[float]:
        """The rates for epoch ``last_epoch``, one per group."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def _check_within_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(f"{type(self).__name__}.get_lr() gives the rates for a step under way; use "
                          f"get_last_lr() for those in force", UserWarning, stacklevel=3)

    def get_last_lr(self) -> list[Any]:
        """The rates set last, one per group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or to ``epoch``) and set its rates. Call it after ``optimizer.step()``."""
        if epoch is not None:
            warnings.warn(f"{type(self).__name__}.step(epoch) goes by the formula of the whole schedule, "
                          f"whatever the present rate is, and is deprecated; call step() once per epoch",
                          UserWarning, stacklevel=2)
        self._advance(epoch)

    def _advance(self, epoch: Any = None) -> None:
        if self._step_count == 1:
            warn_if_first(self.optimizer, type(self).__name__)
        self._step_count += 1
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                rates = self.get_lr() if closed is None else closed()
        finally:
            del self._get_lr_called_within_step
        self._set(rates)

    def _set(self, rates: Sequence[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates):
            put(group, lr)
        self._note_rates()

    def _note_rates(self) -> None:
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self._last_lr = [lr.detach().clone() if isinstance(lr, Tensor) else lr for lr in rates]

    @property
    def _now(self) -> list[Any]:
        """The rates, as numbers; those on a GPU as tensors, for which nobody waits."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return [lr.detach().clone() if is_on_gpu(lr) else number(lr) for lr in rates]

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
        self._take(state_dict)

    def _take(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k not in _TRANSIENT})


_LRScheduler = LRScheduler  # its name before PyTorch 2.0


def checked(optimizer: Any, kind: str) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{kind}: optimizer must be an Optimizer, got {type(optimizer).__name__}")
    return optimizer


def check_keys(scheduler: Any, ours: set, theirs: dict) -> None:
    given = set(theirs) - set(_TRANSIENT) | ours & _LATER
    if ours != given:
        raise ValueError(f"{type(scheduler).__name__}.load_state_dict: not the state of this kind of "
                         f"scheduler; missing: {sorted(ours - given)}, unexpected: {sorted(given - ours)}")


def warn_if_first(optimizer: Optimizer, kind: str) -> None:
    # a step() that was assigned to the object itself does not tell whether it ran
    if "step" not in vars(optimizer) and not optimizer._opt_called:
        warnings.warn(f"{kind}.step() was called before optimizer.step(): the first rate of the schedule is "
                      f"skipped; call optimizer.step() first", UserWarning, stacklevel=4)


def need(kind: str, name: str, value: Any, fits: bool, words: str) -> None:
    if not fits:
        raise ValueError(f"{kind}: {name}={value!r} must be {words}")


def put(group: dict[str, Any], lr: Any) -> None:
    """Set the rate of a group; a tensor stays the object that it is."""
    if isinstance(group["lr"], Tensor):
        with no_grad():
            group["lr"].copy_(lr) if is_on_gpu(lr) else group["lr"].fill_(number(lr))
    else:
        group["lr"] = number(lr)


def set_momentum(group: dict[str, Any], value: float) -> None:
    """Set the momentum of a group, or the first of its betas."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def per_group(kind: str, name: str, value: Any, groups: Sequence) -> list:
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ValueError(f"{kind}: {name} has {len(value)} entries, the optimizer {len(groups)} groups")
    return list(value)
