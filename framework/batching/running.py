"""Running calls that were put off: groups of them as one call of their record each."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import add_note
from ..func.batch import batch_in, left
from ..ops.record.batched import Level
from ..tensor import Tensor, wrap
from .calls import Bucket, Plan
from .rows import deal, gathered, singles, stacked
from .schedule import Step

ndarray = np.ndarray


class Lost(RuntimeError):
    """There is no value, since an operation failed."""


class Group:
    """Buckets that run together. outputs: tensors with a row for each call, or (shared) one for all calls.

    inputs: where they come from. requests: for each output, the rows that other groups and the user want.
    """

    __slots__ = ("plan", "buckets", "count", "inputs", "shared", "requests", "pieces", "outputs")

    def __init__(self, plan: Plan, buckets: list[Bucket]) -> None:
        self.plan, self.buckets = plan, buckets
        self.count = 0
        for b in buckets:
            b.group, b.offset = self, self.count
            self.count += b.count
        self.requests: list[list] = [[] for _ in plan.kinds]
        self.pieces: list[list] = []
        self.outputs: tuple = ()
        self.inputs: list = list(plan.fixed)
        self.shared = True
        rows = [(way, b.offset, way.columns()) for b in buckets for way in b.ways]
        for k, i in enumerate(plan.varying):
            given = [(way.sources[k], columns[k], columns[-1] + offset) for way, offset, columns in rows]
            source = self.inputs[i] = Source(given, self.count)
            self.shared = self.shared and source.shared
        for b in buckets:
            b.ways = []

    def result(self, slot: int) -> Tensor:
        """One of the outputs; raises if the calls have failed."""
        if not self.outputs:
            raise Lost("together: the value of a tensor was asked for whose operation failed before, or "
                       "what it needs")
        return self.outputs[slot]

    def run(self) -> Step:
        """Run the calls; gives what stands in the schedule."""
        plan = self.plan
        batched = tuple([type(x) is Source and not x.shared for x in self.inputs])
        inputs = [x.take() if type(x) is Source else x for x in self.inputs]
        try:
            if self.shared:
                way, out = "shared by all", once(plan.op, inputs, plan.settings)
            else:
                way, out = many(plan.op, self.count, inputs, batched, plan.settings)
        except Exception as error:
            add_note(error, f"while running {self.count} calls of {plan.op.name} together")
            raise
        outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        lead = () if self.shared else (self.count,)
        outputs = tuple([wrap(np.broadcast_to(t._array, lead + kind.shape)) if not t._array.size
                         and t._array.shape != lead + kind.shape else t
                         for t, kind in zip(outputs, plan.kinds)])  # an output that is not wanted is empty
        for t, kind in zip(outputs, plan.kinds):
            if t._array.shape != lead + kind.shape or t._array.dtype != kind.dtype:
                raise AssertionError(f"together: {plan.op.name} gave {t.dtype}{list(t.shape)} where its "
                                     f"shape rule says {kind.meta} for each of {self.count} calls")
        self.outputs = outputs
        self.inputs = []
        if not self.shared:
            self.pieces = [deal(t, requests) if requests else []
                           for t, requests in zip(outputs, self.requests)]
        depths = [b.depth for b in self.buckets]
        return Step(plan.op.name, self.count, (min(depths), max(depths)),
                    tuple([kind.shape for kind in plan.kinds]), way, len(getattr(plan.op, "lines", ".")))


class Source:
    """Where one input of the calls of a group comes from: tensors, rows of groups, or both.

    shared: that it is one tensor for all of them. given: for calls of a kind: the place that they come from
    (None for tensors), the rows there (the tensors), and which calls of the group these are.
    """

    __slots__ = ("parts", "order", "shared")

    def __init__(self, given: Sequence[tuple], count: int) -> None:
        self.parts: list = []
        self.order: ndarray | None = None
        self.shared = False
        found: dict[Any, list[tuple]] = {}
        for place, rows, at in given:
            if place is None:
                found.setdefault(None, []).append((rows, at))
            else:
                bucket = place.bucket
                found.setdefault((bucket.group, place.slot), []).append((rows + bucket.offset, at))
        places = []
        for key, pieces in found.items():
            rows, at = _in_turn(key, pieces)
            places.append(at)
            if key is None:
                if len(found) == 1 and all(x is rows[0] for x in rows):
                    self.shared = True
                    self.parts.append(rows[0])
                else:
                    self.parts.append(rows)
                continue
            group, slot = key
            if group.shared and len(found) == 1:
                self.shared = True
                self.parts.append((group, slot, None))
            elif group.shared or group.outputs:  # it ran before: nobody could ask it in time
                self.parts.append((group, slot, rows))
            else:
                group.requests[slot].append(rows)
                self.parts.append((group, slot, len(group.requests[slot]) - 1))
        if len(found) > 1:
            order = np.concatenate(places)
            if not (order[1:] > order[:-1]).all():
                self.order = np.empty(count, np.int64)
                self.order[order] = np.arange(count)

    def take(self) -> Tensor:
        """The input: a row for each call, or the one that they share."""
        if self.shared:
            part = self.parts[0]
            return part[0].result(part[1]) if type(part) is tuple else part
        return gathered([self._taken(part) for part in self.parts], self.order)

    @staticmethod
    def _taken(part: Any) -> Tensor:
        if type(part) is list:
            return stacked(part)
        group, slot, rows = part
        whole = group.result(slot)
        if type(rows) is int:
            taken, group.pieces[slot][rows] = group.pieces[slot][rows], None
            return taken
        if group.shared:
            return whole.expand(len(rows), *group.plan.kinds[slot].shape)
        return deal(whole, [rows])[0]


def _in_turn(key: Any, pieces: list[tuple]) -> tuple[Any, ndarray]:
    """The rows (or tensors) of several pieces in the order of the calls, and which calls these are."""
    if len(pieces) == 1:
        return pieces[0]
    at = np.concatenate([where for _, where in pieces])
    turn = np.argsort(at)
    if key is None:
        every = [x for tensors, _ in pieces for x in tensors]
        return [every[i] for i in turn.tolist()], at[turn]
    return np.concatenate([rows for rows, _ in pieces])[turn], at[turn]


def once(op: Any, inputs: list, settings: dict) -> Any:
    """One call of a record, or of a unit."""
    if hasattr(op, "lines"):
        return op.run_many(1, inputs, (False,) * len(inputs))
    return op.run(*inputs, **settings)


def many(op: Any, count: int, inputs: list, batched: tuple, settings: dict) -> tuple[str, Any]:
    """Calls of a record as one: ("one call", its results); by itself for each example without a rule."""
    if hasattr(op, "run_many"):
        return "one call", op.run_many(count, inputs, batched)
    rule = op.batch
    if rule is None:
        outs = []
        whole = [singles(x) if own else None for x, own in zip(inputs, batched)]
        for i in range(count):
            one = [x if rows is None else wrap(rows[i][0], node=rows[i][1]) for x, rows in zip(inputs, whole)]
            out = op.run(*one, **settings)
            outs.append(out if isinstance(out, tuple) else (out,))
        return "one by one", [stacked(column) for column in zip(*outs)]
    can = getattr(rule, "on_tensors", None)
    if can is not None and can(batched, settings):
        return "one call", rule(op, count, inputs, batched, settings)
    with Level(count, warns=False) as level:
        ready = [batch_in.run(x, level=level) if own else x for x, own in zip(inputs, batched)]
        out = op.run(*ready, **settings)
        return "one call", left(level, out if isinstance(out, tuple) else (out,))
