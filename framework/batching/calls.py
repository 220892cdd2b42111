"""Calls that were put off: what those of one kind have in common, and where their inputs come from."""

from typing import Any

import numpy as np

from .pending import Kind, Place


class Plan:
    """What calls of one signature have in common.

    fixed: the inputs, where they are the same for all calls (parameters, numbers), else None. varying: the
    positions of the others. kinds: those of the outputs. recorded: whether the thread records.
    """

    __slots__ = ("op", "settings", "fixed", "varying", "kinds", "recorded", "buckets")

    def __init__(self, op: Any, settings: dict, inputs: tuple, varying: list[int], kinds: tuple[Kind, ...],
                 recorded: bool) -> None:
        self.op, self.settings, self.varying, self.kinds = op, settings, varying, kinds
        self.fixed = [None if i in varying else x for i, x in enumerate(inputs)]
        self.recorded = recorded
        self.buckets: dict[int, Bucket] = {}  # those that have not run, by depth


class Bucket:
    """Calls of one signature at one depth, ``count`` of them. places: where their outputs are."""

    __slots__ = ("plan", "depth", "session", "places", "place", "ways", "count", "before", "group", "offset")

    def __init__(self, plan: Plan, depth: int, session: Any) -> None:
        self.plan, self.depth, self.session = plan, depth, session
        self.places = tuple([Place(kind, self, slot) for slot, kind in enumerate(plan.kinds)])
        self.place = self.places[0] if len(self.places) == 1 else None
        self.ways: list[Way] = []
        self.count = 0
        self.before: set[Bucket] = set()
        self.group: Any = None  # what it ran in, where its calls are the rows from ``offset`` on
        self.offset = 0

    @property
    def done(self) -> bool:
        return self.group is not None


class Way:
    """Calls of a bucket whose inputs come from the same places: what a call looks up when it is put off.

    sources: the places of the varying inputs, None for tensors that are there. calls: for each call, one
    after the other: the row at each of those places (or the tensor), then its row in the bucket.
    """

    __slots__ = ("bucket", "sources", "calls")

    def __init__(self, bucket: Bucket, sources: tuple[Place | None, ...]) -> None:
        self.bucket, self.sources = bucket, sources
        self.calls: list = []
        bucket.ways.append(self)
        bucket.before.update([place.bucket for place in sources if place is not None])

    def columns(self) -> list:
        """For each varying input the rows, or the tensors; then the rows in the bucket."""
        width = len(self.sources) + 1
        if None not in self.sources:
            return list(np.array(self.calls).reshape(-1, width).T)
        return [self.calls[i::width] if i + 1 < width and self.sources[i] is None
                else np.array(self.calls[i::width]) for i in range(width)]
