"""Uneven inputs: a rank that has run out of batches answers the calls of those that have not."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...config.listing import own as _own
from ...errors import DistributedError
from ...tensor import wrap
from ..collectives import all_gather
from ..groups import ProcessGroup, member


class JoinHook:
    """What a rank does that has run out: ``main_hook`` for each step of others, ``post_hook`` at the end."""

    def main_hook(self) -> None:
        """Answer the calls of one step."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Bring all ranks together; ``is_last_joiner``: whether this rank was among the last."""


class Joinable:
    """Something whose steps make collective calls, and which can answer for a rank that makes none."""

    _joining: "Join | None" = None

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object."""
        raise NotImplementedError(f"{type(self).__name__} must define join_hook(**kwargs)")

    @property
    def join_device(self) -> Any:
        """The device of its calls."""
        return "cpu"

    @property
    def join_process_group(self) -> Any:
        """The group of its calls."""
        raise NotImplementedError(f"{type(self).__name__} must define join_process_group")


class Join:
    """``with Join([model, optimizer]): for x, y in loader: ...`` where ranks have unequally many batches.

    A rank whose loop has ended stays in the block and answers the others until all have ended. Each object is
    told in its constructor's order; the first of them must say once a step that one begins
    (``Join.notify_join_context(self)``). throw_on_early_termination: raise RuntimeError on every rank as soon
    as one has ended, instead. Further arguments go to ``join_hook`` of each object.
    """

    def __init__(self, joinables: Sequence[Joinable], enable: bool = True,
                 throw_on_early_termination: bool = False, **kwargs: Any) -> None:
        if not joinables:
            raise ValueError("Join: there is no joinable")
        self._joinables = list(joinables)
        for one in self._joinables:
            if not isinstance(one, Joinable):
                raise TypeError(f"Join: wanted Joinables, got {type(one).__name__}")
        groups = {id(one.join_process_group): one.join_process_group for one in self._joinables}
        if len(groups) != 1:
            raise ValueError("Join: all joinables must be of one process group")
        self._enable, self._throw = enable, throw_on_early_termination
        found = member(next(iter(groups.values())), "Join")
        if found is None:
            raise ValueError("Join: this process is not in the group")
        self._group: ProcessGroup = found
        self._hooks = [one.join_hook(**kwargs) for one in self._joinables]
        self.states = np.ones((found.size(), 2), np.int64)

    def __enter__(self) -> "Join":
        if self._enable:
            self._joinables[0]._joining = self
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if not self._enable:
            return
        try:
            if kind is not None:
                return
            last = True
            while True:
                self.exchange(0, 0)
                if not self.states[:, 0].any():
                    break
                if self._throw:
                    raise RuntimeError(f"Join: rank {self._group.ranks[self._group.rank()]} has no inputs "
                                       f"left, other ranks have (throw_on_early_termination)")
                last = False
                for hook in self._hooks:
                    hook.main_hook()
            for hook in self._hooks:
                hook.post_hook(last)
        finally:
            self._joinables[0]._joining = None

    def exchange(self, alive: int, flags: int) -> None:
        """Learn of every rank whether it makes a step, and its flags."""
        n = self._group.size()
        rows = np.empty((n, 2), np.int64)
        all_gather([wrap(r) for r in rows], wrap(np.array([alive, flags], np.int64)), self._group)
        self.states = rows

    @property
    def alive(self) -> list[int]:
        """The ranks in the group that make this step."""
        return np.flatnonzero(self.states[:, 0]).tolist()

    @staticmethod
    def notify_join_context(joinable: Joinable, flags: int = 0) -> None:
        """Say that ``joinable`` begins a step; does nothing outside a block, and for all but the first."""
        join = joinable._joining
        if join is None:
            return
        join.exchange(1, flags)
        if join._throw and not join.states[:, 0].all():
            gone = [join._group.ranks[r] for r in np.flatnonzero(join.states[:, 0] == 0)]
            raise DistributedError(f"Join: ranks {gone} have no inputs left, this rank has "
                                   f"(throw_on_early_termination)")


__dir__ = _own(globals())
