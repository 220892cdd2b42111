"""Rates that go up and down between two bounds."""

from collections.abc import Callable
from math import floor
from types import FunctionType
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, checked, need, per_group, put, set_momentum


class CyclicLR(LRScheduler):
    """From ``base_lr`` up to ``max_lr`` in ``step_size_up`` steps, down in ``step_size_down``, and so on.

    ``step()`` after every *batch*. mode: "triangular" (all cycles alike), "triangular2" (each half as high
    as the one before) or "exp_range" (as high as ``gamma ** step``); or ``scale_fn``, of the number of the
    cycle from 1 on or, with ``scale_mode="iterations"``, of the step. ``cycle_momentum``: momentum (or the
    first of betas) goes the other way, from ``max_momentum`` to ``base_momentum``. Smith, Cyclical learning
    rates for training neural networks, WACV 2017.

    >>> optimizer = fw.optim.SGD([fw.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fw.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2, mode="triangular2",
    ...                                            cycle_momentum=False)
    >>> rates = []
    >>> for step in range(7):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step(); scheduler.step()
    >>> rates
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.25, 0.5]
    """

    def __init__(self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float],
                 step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular",
                 gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None,
                 scale_mode: str = "cycle", cycle_momentum: bool = True,
                 base_momentum: float | list[float] = 0.8, max_momentum: float | list[float] = 0.9,
                 last_epoch: int = -1) -> None:
        kind, groups = "CyclicLR", checked(optimizer, "CyclicLR").param_groups
        need(kind, "mode", mode, scale_fn is not None or mode in ("triangular", "triangular2", "exp_range"),
             "'triangular', 'triangular2' or 'exp_range', or give scale_fn")
        need(kind, "scale_mode", scale_mode, scale_mode in ("cycle", "iterations"), "'cycle' or 'iterations'")
        base_lrs = per_group(kind, "base_lr", base_lr, groups)
        self.max_lrs = per_group(kind, "max_lr", max_lr, groups)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        self.mode, self.gamma, self._scale_fn_custom, self.scale_mode = mode, gamma, scale_fn, scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if not {"momentum", "betas"} & set(optimizer.defaults):
                raise ValueError(f"{kind}: cycle_momentum=True needs an optimizer with momentum or betas; "
                                 f"pass cycle_momentum=False")
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = per_group(kind, "base_momentum", base_momentum, groups)
            self.max_momentums = per_group(kind, "max_momentum", max_momentum, groups)
        if last_epoch == -1:
            for i, group in enumerate(groups):
                put(group, base_lrs[i])
                if cycle_momentum:
                    set_momentum(group, self.max_momentums[i])
                    group.update(max_momentum=self.max_momentums[i], base_momentum=self.base_momentums[i])
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, as a part of the whole."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma ** x

    def get_lr(self) -> list[float]:
        """The rates for step ``last_epoch``; sets the momenta."""
        self._check_within_step()
        cycle = floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; ``scale_fn`` by its ``__dict__``, unless it is a function."""
        own = self._scale_fn_custom
        plain = own is None or isinstance(own, FunctionType)
        return {**super().state_dict(), "_scale_fn_custom": None if plain else dict(vars(own))}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where the scheduler that gave ``state_dict`` stood."""
        own = self._scale_fn_custom
        super().load_state_dict(state_dict)
        self._scale_fn_custom = own
        if state_dict["_scale_fn_custom"] is not None:
            vars(own).update(state_dict["_scale_fn_custom"])
