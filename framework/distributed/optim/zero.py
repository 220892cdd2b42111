"""ZeroRedundancyOptimizer: every rank keeps the state of, and steps, only its share of the parameters."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...autograd.mode import no_grad
from ...backends import move
from ...device import CPU
from ...optim.optimizer import Optimizer
from ...tensor import bump, wrap
from ..algorithms.join import Joinable, JoinHook
from ..collectives import broadcast
from ..groups import member
from ..objects import broadcast_object_list


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """``optimizer_class`` whose state lies in parts on the ranks: each steps its parameters and sends them.

    params, defaults: as for the optimizer. Parameters are dealt out by size, the largest first, each to the
    rank that has least; after a step every rank has all parameters. ``state_dict`` needs
    ``consolidate_state_dict(to=rank)`` before, on all ranks, and is then that of the optimizer itself: it
    can be loaded with another number of ranks, or by the optimizer alone.

    S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", 2020.

    >>> import framework.distributed as dist
    >>> dist.init_process_group("shm", "tcp://127.0.0.1:29514", rank=0, world_size=1)
    >>> w = fw.ones(2, requires_grad=True)
    >>> optimizer = dist.optim.ZeroRedundancyOptimizer([w], fw.optim.SGD, lr=0.5)
    >>> (w * w).sum().backward(); optimizer.step(); w.detach()
    tensor([0., 0.])
    >>> dist.destroy_process_group()
    """

    def __init__(self, params: Iterable, optimizer_class: type[Optimizer], process_group: Any = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False,
                 **defaults: Any) -> None:
        group = member(process_group, "ZeroRedundancyOptimizer")
        if group is None:
            raise ValueError("ZeroRedundancyOptimizer: this process is not in "
                             "process_group")
        if overlap_with_ddp:
            raise ValueError("ZeroRedundancyOptimizer: overlap_with_ddp=True is not supported: step() "
                             "sends the parameters")
        self.process_group, self._class, self._defaults = group, optimizer_class, defaults
        self._whole: dict[str, Any] | None = None
        self._made = False
        super().__init__(params, dict(defaults))
        self._deal()

    def _deal(self) -> None:
        """Who steps what, and this rank's optimizer."""
        n, me = self.process_group.size(), self.process_group.rank()
        params = [p for g in self.param_groups for p in g["params"]]
        loads, self._owner = [0] * n, {}
        for p in sorted(params, key=lambda p: -p.numel()):
            rank = loads.index(min(loads))
            loads[rank] += p.numel()
            self._owner[id(p)] = rank
        mine = [{**{k: v for k, v in g.items() if k not in ("params", "param_names")},
                 "params": [p for p in g["params"] if self._owner[id(p)] == me]} for g in self.param_groups]
        self._none = not any(g["params"] for g in mine)
        # a rank without parameters keeps a small one, so that options are checked and kept everywhere
        if self._none:
            mine[0]["params"] = [wrap(np.zeros(1, np.float32)).requires_grad_()]
        self.optim = self._class(mine, **self._defaults)
        for ours, theirs in zip(self.param_groups, self.optim.param_groups):
            for key, value in theirs.items():
                if key != "params":
                    ours.setdefault(key, value)
        self._made = True

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; they are dealt out as the others were."""
        super().add_param_group(param_group)
        if self._made:
            before = self.optim.state
            self._deal()
            for p, kept in before.items():
                if self._owner.get(id(p)) == self.process_group.rank():
                    self.optim.state[p] = kept

    # -- steps -----------------------------------------------------------------------------------

    def step(self, closure: Callable | None = None, **kwargs: Any) -> Any:
        """Step this rank's share, then give and get all parameters."""
        for ours, theirs in zip(self.param_groups, self.optim.param_groups):
            theirs.update({k: v for k, v in ours.items() if k not in ("params", "param_names")})
        self._opt_called = True
        loss = self.optim.step(closure)
        self._send()
        return loss

    @no_grad()
    def _send(self) -> None:
        n, me = self.process_group.size(), self.process_group.rank()
        if n == 1:
            return
        params = [p for g in self.param_groups for p in g["params"]]
        for rank in range(n):
            theirs = [p for p in params if self._owner[id(p)] == rank]
            if not theirs:
                continue
            if self.process_group.backend.device == "cuda":
                for p in theirs:
                    broadcast(p.detach(), group=self.process_group, group_src=rank)
                continue
            ends = np.cumsum([0, *(p.nbytes for p in theirs)])
            whole = np.empty(int(ends[-1]), np.uint8)
            places = [whole[a:b] for a, b in zip(ends, ends[1:])]
            if rank == me:
                for p, place in zip(theirs, places):
                    place[:] = np.ascontiguousarray(move(p._array, CPU)).reshape(-1).view(np.uint8)
            broadcast(wrap(whole), group=self.process_group, group_src=rank)
            if rank != me:
                for p, place in zip(theirs, places):
                    p._array[...] = move(place.view(p._array.dtype).reshape(p.shape), p.device)
                    bump(p, "ZeroRedundancyOptimizer.step")

    # -- state -----------------------------------------------------------------------------------

    def _full(self) -> Optimizer:
        """An optimizer over all parameters, for its ``state_dict``."""
        groups = [dict(g) for g in self.param_groups]
        for g in groups:
            if "param_names" in g:
                g["params"] = list(zip(g.pop("param_names"), g["params"]))
        return self._class(groups, **self._defaults)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather all state on rank ``to``; every rank must call it before ``state_dict`` there."""
        params = [p for g in self.param_groups for p in g["params"]]
        n, me = self.process_group.size(), self.process_group.rank()
        full = self._full()
        for rank in range(n):
            part: list[Any] = [None]
            if rank == me:
                part = [{i: dict(self.optim.state[p]) for i, p in enumerate(params)
                         if self._owner[id(p)] == rank and p in self.optim.state}]
            broadcast_object_list(part, group=self.process_group, group_src=rank)
            for i, kept in part[0].items():
                full.state[params[i]] = kept
        self._whole = full.state_dict() if self.process_group.ranks[me] == to else None

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer as if it were one; after ``consolidate_state_dict``, on its rank."""
        if self._whole is None and not self.optim.state:  # before the first step there is nothing to gather
            return self._full().state_dict()
        if self._whole is None:
            raise RuntimeError("ZeroRedundancyOptimizer.state_dict: the state lies on all ranks; call "
                               "consolidate_state_dict(to=rank) on every rank first, and state_dict() on "
                               "that one")
        return self._whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this rank's share of a whole state, of any number of ranks."""
        full = self._full()
        full.load_state_dict(state_dict)
        for ours, loaded in zip(self.param_groups, full.param_groups):
            ours.update({k: v for k, v in loaded.items() if k not in ("params", "param_names")})
        for p in [p for g in self.param_groups for p in g["params"]]:
            if self._owner[id(p)] == self.process_group.rank() and p in full.state:
                self.optim.state[p] = full.state[p]

    # -- uneven inputs ---------------------------------------------------------------------------

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank without inputs does: step and send its share, with the gradients that DDP brought."""
        return _Shadow(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The ranks."""
        return self.process_group


class _Shadow(JoinHook):
    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self._zero = zero

    def main_hook(self) -> None:
        self._zero.step()

