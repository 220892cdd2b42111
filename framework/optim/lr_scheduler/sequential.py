"""Several schedules, one after another or all at once."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_keys, checked, put
from .decay import ReduceLROnPlateau


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
        checked(optimizer, "SequentialLR")
        if schedulers and len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR: {len(schedulers)} schedulers need {len(schedulers) - 1} "
                             f"milestones, got {len(milestones)}")
        _check("SequentialLR", schedulers, optimizer)
        self.optimizer, self.schedulers, self._milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # every scheduler has already taken its first step
            put(group, group["initial_lr"])
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
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self.schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._advance(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        _load(self, self.schedulers, state_dict)


class ChainedScheduler(LRScheduler):
    """All ``schedulers`` at each step, one on top of the other.

    >>> from framework.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> optimizer = fw.optim.SGD([fw.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = ChainedScheduler([ConstantLR(optimizer, 0.5, 2), ExponentialLR(optimizer, 0.5)])
    >>> rates = []
    >>> for epoch in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step(); scheduler.step()
    >>> rates
    [0.5, 0.25, 0.25, 0.125]
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        if schedulers and optimizer is None:
            optimizer = getattr(schedulers[0], "optimizer", None)
        _check("ChainedScheduler", schedulers, optimizer)
        self.optimizer, self.schedulers = checked(optimizer, "ChainedScheduler"), list(schedulers)
        self._note_rates()

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch with all of them."""
        for scheduler in self.schedulers:
            scheduler.step()
        self._note_rates()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        _load(self, self.schedulers, state_dict)


def _check(kind: str, schedulers: Sequence[Any], optimizer: Any) -> None:
    if not schedulers:
        raise ValueError(f"{kind}: schedulers is empty")
    for i, s in enumerate(schedulers):
        if isinstance(s, ReduceLROnPlateau) or not isinstance(s, LRScheduler):
            raise TypeError(f"{kind}: schedulers[{i}] must be an LRScheduler that needs no metric, got "
                            f"{type(s).__name__}")
        if s.optimizer is not optimizer:
            raise ValueError(f"{kind}: schedulers[{i}] belongs to another optimizer")


def _load(own: LRScheduler, schedulers: list[Any], state_dict: dict[str, Any]) -> None:
    """Load a state with those of ``schedulers`` in it; nothing is changed if one does not fit."""
    check_keys(own, set(own.state_dict()), state_dict)
    saved = state_dict["_schedulers"]
    if len(saved) != len(schedulers):
        raise ValueError(f"{type(own).__name__}.load_state_dict: {len(saved)} schedulers in the state, "
                         f"{len(schedulers)} in this one")
    for s, state in zip(schedulers, saved):
        check_keys(s, set(s.state_dict()), state)
    own._take({k: v for k, v in state_dict.items() if k != "_schedulers"})
    for s, state in zip(schedulers, saved):
        s.load_state_dict(state)
