"""Averages of a model over its training: of the last epochs (SWA), or with falling weights (EMA)."""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from math import cos, pi
from typing import Any

from ..autograd.mode import no_grad
from ..backends import tensor_lists
from ..config.listing import own as _own
from ..dtypes import int64
from ..from_data import tensor
from ..nn.counted import Known, know, value_of
from ..nn.module import Module
from ..nn.normalization import _BatchNorm
from ..seam import is_watched
from ..tensor import Tensor, bump
from .lr_scheduler.base import LRScheduler, checked, need, per_group
from .optimizer import Optimizer


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """``decay * average + (1 - decay) * now``, for ``AveragedModel(avg_fn=...)``.

    >>> f = fw.optim.swa_utils.get_ema_avg_fn(0.75)
    >>> f(fw.tensor(4.0), fw.tensor(8.0), 1)
    tensor(5.)
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(average: Tensor, now: Tensor, num_averaged: Any) -> Tensor:
        return decay * average + (1 - decay) * now
    return ema_update


def get_swa_avg_fn() -> Callable:
    """The mean of all models so far, for ``AveragedModel(avg_fn=...)``.

    >>> f = fw.optim.swa_utils.get_swa_avg_fn()
    >>> f(fw.tensor(4.0), fw.tensor(8.0), 3)
    tensor(5.)
    """
    @no_grad()
    def swa_update(average: Tensor, now: Tensor, num_averaged: Any) -> Tensor:
        return average + (now - average) / (num_averaged + 1)
    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """As ``get_ema_avg_fn``, in place on two lists, for ``AveragedModel(multi_avg_fn=...)``.

    >>> averages = [fw.tensor([4.0])]
    >>> fw.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [fw.tensor([8.0])], 1)
    >>> averages
    [tensor([5.])]
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(averages: Sequence[Tensor], nows: Sequence[Tensor], num_averaged: Any) -> None:
        _mix(averages, nows, 1 - decay)
    return ema_update


def get_swa_multi_avg_fn() -> Callable:
    """As ``get_swa_avg_fn``, in place on two lists, for ``AveragedModel(multi_avg_fn=...)``.

    >>> averages = [fw.tensor([4.0])]
    >>> fw.optim.swa_utils.get_swa_multi_avg_fn()(averages, [fw.tensor([8.0])], 3)
    >>> averages
    [tensor([5.])]
    """
    @no_grad()
    def swa_update(averages: Sequence[Tensor], nows: Sequence[Tensor], num_averaged: Any) -> None:
        _mix(averages, nows, 1 / (num_averaged + 1))
    return swa_update


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(f"AveragedModel: decay={decay!r} must be in [0, 1]")


def _mix(averages: Sequence[Tensor], nows: Sequence[Tensor], weight: Any) -> None:
    """``average + weight * (now - average)``, in place; integers are rounded towards zero."""
    pairs = [a._array for a in averages], [b._array for b in nows]
    if isinstance(weight, float) and not is_watched() and tensor_lists.lerp_all(*pairs, weight):
        for average in averages:
            bump(average, "lerp_")
        return
    for average, now in zip(averages, nows, strict=True):
        if average.is_floating_point() or average.is_complex():
            average.lerp_(now, weight)
        else:
            average.copy_(average * (1 - weight) + now * weight)


def _copy(pairs: list[tuple[Tensor, Tensor]]) -> None:
    """Copy the second of each pair to the first."""
    if not is_watched() and tensor_lists.copy_all([a._array for a, _ in pairs], [b._array for _, b in pairs]):
        for to, _ in pairs:
            bump(to, "copy_")
        return
    for to, now in pairs:
        to.copy_(now)  # type: ignore[attr-defined]


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are an average over the calls of ``update_parameters``.

    avg_fn: gives the new average from (average, now, number of averaged models); multi_avg_fn: the same
    in place on two lists. Without either, the mean. use_buffers: whether buffers are averaged too;
    otherwise they are copied. The first call copies the parameters. Izmailov et al., Averaging weights
    leads to wider optima and better generalization, UAI 2018.

    >>> model = fw.nn.Linear(1, 1, bias=False)
    >>> averaged = fw.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = fw.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item(), averaged.n_averaged.item()
    (3.0, 3)
    """

    n_averaged: Tensor

    def __init__(self, model: Module, device: Any = None, avg_fn: Callable | None = None,
                 multi_avg_fn: Callable | None = None, use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: give avg_fn or multi_avg_fn, not both")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self._known = Known()
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the parameters of ``model`` into the average."""
        count = value_of(self.n_averaged, self._known, "AveragedModel.update_parameters")
        averages = self._averaged(self.module)
        pairs = [(a.detach(), now.detach().to(a.device))
                 for a, now in zip(averages, self._averaged(model), strict=True)]
        if not count:
            _copy(pairs)
        elif self.avg_fn is not None:
            for average, now in pairs:
                average.copy_(self.avg_fn(average, now, self.n_averaged.to(average.device)))
        else:
            self._update_lists(pairs, count)
        if not self.use_buffers:
            _copy([(buffer.detach(), now.detach().to(buffer.device))
                   for buffer, now in zip(self.module.buffers(), model.buffers(), strict=True)])
        self.n_averaged += 1
        self._known = know(self.n_averaged, count + 1)

    def _averaged(self, model: Module) -> list[Tensor]:
        return list(chain(model.parameters(), model.buffers() if self.use_buffers else ()))

    def _update_lists(self, pairs: list[tuple[Tensor, Tensor]], count: int) -> None:
        """One call for all tensors of a device and dtype."""
        kinds: dict[Any, list[tuple[Tensor, Tensor]]] = {}
        for average, now in pairs:
            kinds.setdefault((average.device, average.dtype), []).append((average, now))
        update = self.multi_avg_fn
        for (device, _), same in kinds.items():
            averages, nows = [a for a, _ in same], [now for _, now in same]
            if update is None:
                _mix(averages, nows, 1 / (count + 1))
            else:
                update(averages, nows, self.n_averaged.to(device))


@no_grad()
def update_bn(loader: Iterable, model: Module, device: Any = None) -> None:
    """Compute the running means and variances of all batch norms of ``model`` anew, in one pass.

    loader: batches, or lists and tuples whose first entry is the batch. The mean over all batches is
    taken, whatever ``momentum`` is; the model is left in the mode it was in.

    >>> model = fw.nn.Sequential(fw.nn.BatchNorm1d(1))
    >>> fw.optim.swa_utils.update_bn([fw.tensor([[1.0], [3.0]]), fw.tensor([[5.0], [7.0]])], model)
    >>> model[0].running_mean
    tensor([4.])
    """
    norms = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not norms:
        return
    was_training = model.training
    try:
        model.train()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
    finally:
        for norm, momentum in norms.items():
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Goes to ``swa_lr`` in ``anneal_epochs`` epochs, by a cosine or a line, and stays there.

    >>> optimizer = fw.optim.SGD([fw.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = fw.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> rates = []
    >>> for epoch in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step(); scheduler.step()
    >>> rates
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10,
                 anneal_strategy: str = "cos", last_epoch: int = -1) -> None:
        groups = checked(optimizer, "SWALR").param_groups
        for lr, group in zip(per_group("SWALR", "swa_lr", swa_lr, groups), groups):
            group["swa_lr"] = lr
        need("SWALR", "anneal_strategy", anneal_strategy, anneal_strategy in ("cos", "linear"),
             "'cos' or 'linear'")
        need("SWALR", "anneal_epochs", anneal_epochs, isinstance(anneal_epochs, int) and anneal_epochs >= 0,
             "an integer of at least 0")
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        """The part of the way that lies behind at a step."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - cos(pi * part)) / 2

    def get_lr(self) -> list[float]:
        """The rates for epoch ``last_epoch``, from the present ones: other schedules may act as well."""
        self._check_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, part = self._part(step - 1), self._part(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, self._now):
            target = group["swa_lr"]
            start = target if before == 1 else (lr - before * target) / (1 - before)
            rates.append(target * part + start * (1 - part))
        return rates


__dir__ = _own(globals())
