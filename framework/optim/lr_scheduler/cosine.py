"""Schedules along a cosine: annealing, with restarts, and one cycle up and down."""

from math import cos, pi
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, checked, need, per_group, set_momentum, warn_if_first


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from ``initial_lr`` down to ``eta_min`` in ``T_max`` epochs, and up again.

    ``lr = eta_min + (initial_lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2``. Loshchilov and Hutter,
    SGDR: stochastic gradient descent with warm restarts, ICLR 2017.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        need("CosineAnnealingLR", "T_max", T_max, T_max > 0, "positive")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        epoch, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._now
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the bottom the ratio below is 0 / 0
            rise = (1 - cos(pi / self.T_max)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, self._now)]
        ratio = (1 + cos(pi * epoch / self.T_max)) / (1 + cos(pi * (epoch - 1) / self.T_max))
        return [ratio * (lr - low) + low for lr in self._now]

    def _get_closed_form_lr(self) -> list[float]:
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
        need(kind, "T_0", T_0, isinstance(T_0, int) and T_0 > 0, "a positive integer")
        need(kind, "T_mult", T_mult, isinstance(T_mult, int) and T_mult >= 1, "an integer of at least 1")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i: float = T_0
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        part = (1 + cos(pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to ``epoch``, which may be a fraction."""
        self._advance(epoch)

    def _advance(self, epoch: Any = None) -> None:
        if self._step_count == 1:
            warn_if_first(self.optimizer, type(self).__name__)
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
            need("CosineAnnealingWarmRestarts.step", "epoch", epoch, epoch >= 0, "0 or more")
            self._locate(epoch)
        self.last_epoch = int(epoch // 1)
        self._get_lr_called_within_step = True
        try:
            self._set(self.get_lr())
        finally:
            del self._get_lr_called_within_step

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
        kind, groups = "OneCycleLR", checked(optimizer, "OneCycleLR").param_groups
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(f"{kind}: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        need(kind, "total_steps", total_steps, total_steps > 0 and total_steps == int(total_steps),
              "a positive integer")
        need(kind, "pct_start", pct_start, 0 <= pct_start <= 1, "in [0, 1]")
        need(kind, "anneal_strategy", anneal_strategy, anneal_strategy in ("cos", "linear"),
              "'cos' or 'linear'")
        self.total_steps, self._anneal_func_type = total_steps, anneal_strategy
        self.cycle_momentum = cycle_momentum
        up = pct_start * total_steps - 1
        end = total_steps - 1
        phases: list[tuple] = [("initial_lr", "max_lr", "max_momentum", "base_momentum", up)]
        if three_phase:
            phases += [("max_lr", "initial_lr", "base_momentum", "max_momentum", 2 * up),
                       ("initial_lr", "min_lr", "max_momentum", "max_momentum", end)]
        else:
            phases += [("max_lr", "min_lr", "base_momentum", "max_momentum", end)]
        words = ("start_lr", "end_lr", "start_momentum", "end_momentum", "end_step")
        self._schedule_phases = [dict(zip(words, phase)) for phase in phases]
        tops = per_group(kind, "max_lr", max_lr, groups)
        if cycle_momentum and not all("betas" in g or "momentum" in g for g in groups):
            raise ValueError(f"{kind}: cycle_momentum=True needs an optimizer with momentum or betas; pass "
                             f"cycle_momentum=False")
        if cycle_momentum:
            self.use_beta1 = "betas" in optimizer.defaults
        lows = per_group(kind, "base_momentum", base_momentum, groups)
        highs = per_group(kind, "max_momentum", max_momentum, groups)
        if last_epoch == -1:
            for group, top, low, high in zip(groups, tops, lows, highs):
                first = top / div_factor
                group.update(initial_lr=first, max_lr=top, min_lr=first / final_div_factor)
                if cycle_momentum:
                    set_momentum(group, high)
                    group.update(base_momentum=low, max_momentum=high)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._check_within_step()
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(f"OneCycleLR: step {at} is past total_steps={self.total_steps}; count the "
                             f"batches of all epochs")
        phases = self._schedule_phases
        i = next((i for i, phase in enumerate(phases) if at <= phase["end_step"]), len(phases) - 1)
        start, end = phases[i - 1]["end_step"] if i else 0, phases[i]["end_step"]
        part = (at - start) / (end - start) if end != start else 1.0

        def now(group: dict[str, Any], what: str) -> float:
            first, last = phases[i][f"start_{what}"], phases[i][f"end_{what}"]
            return self._between(group[first], group[last], part)

        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                set_momentum(group, now(group, "momentum"))
        return [now(group, "lr") for group in groups]

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (1 + cos(pi * part))
