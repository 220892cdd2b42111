"""Putting calls off, and running them together: ``together`` and what it keeps meanwhile."""

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..autograd.mode import set_recording, state
from ..dtypes import INEXACT
from ..errors import FrameworkError
from ..func.batch import batch_in, left
from ..node import Leaf
from ..ops.record.batched import Level, look_at_arrays
from ..ops.record.op import Op
from ..seam import OP, WRITE, Event, intercept, outside
from ..sparse_door import is_sparse
from ..tensor import Tensor, wrap
from .pending import WAITING, Kind, Later, Pending, later
from .rows import deal, gathered, singles, stacked
from .schedule import Schedule, Step, in_order

ndarray = np.ndarray
_MADE = 3  # references to a tensor that nobody but the session has: its list, a variable, an argument


class _Thread(threading.local):
    """The sessions that a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.sessions: list[Any] = []


thread = _Thread()


class Plan:
    """What calls of one signature have in common.

    fixed: the inputs, where they are the same for all calls (parameters, numbers), else None. varying: the
    positions of the others. kinds: those of the outputs. recorded: whether the thread records.
    """

    __slots__ = ("op", "settings", "fixed", "varying", "kinds", "recorded", "buckets")

    def __init__(self, op: Any, settings: dict, inputs: tuple, varying: list[int], kinds: tuple,
                 recorded: bool) -> None:
        self.op, self.settings, self.varying, self.kinds = op, settings, varying, kinds
        self.fixed = [None if i in varying else x for i, x in enumerate(inputs)]
        self.recorded = recorded
        self.buckets: dict[int, Bucket] = {}  # those that have not run, by depth


class Bucket:
    """Calls of one signature at one depth. columns: for each varying input, that of each call."""

    __slots__ = ("plan", "depth", "session", "columns", "count", "before", "group", "offset")

    def __init__(self, plan: Plan, depth: int, session: "Session") -> None:
        self.plan, self.depth, self.session = plan, depth, session
        self.columns: list[list] = [[] for _ in plan.varying]
        self.count = 0
        self.before: set[Bucket] = set()
        self.group: Any = None  # what it ran in, where its calls are the rows from ``offset`` on
        self.offset = 0

    @property
    def done(self) -> bool:
        return self.group is not None


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
        self.inputs: list = []
        self.shared = False
        self.requests: list[list] = [[] for _ in plan.kinds]
        self.pieces: list[list] = []
        self.outputs: tuple = ()

    def result(self, slot: int) -> Tensor:
        """One of the outputs; raises if the calls have failed."""
        if not self.outputs:
            raise _Lost("together: the value of a tensor was asked for whose operation failed before, or "
                        "what it needs")
        return self.outputs[slot]


class _Lost(RuntimeError):
    """There is no value, since an operation failed."""


class Results(list):
    """What the function gave for each example. schedule: what ran."""

    schedule: Schedule


class Session:
    """What ``together`` keeps: the calls that were put off, and those that ran."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.open = True
        self._seen = intercept(self._call, lean=True, settle=self.settle)
        self._plans: dict[Any, Plan | None] = {}
        self._kinds: dict[Any, Kind] = {}
        self._waiting: list[Bucket] = []
        self._made: list[Later] = []
        self.units: dict[Any, Any] = {}
        self._parts: set[int] = set()  # tensors that are parts of others in the function as it is written

    def __enter__(self) -> "Session":
        self._seen.__enter__()
        look_at_arrays(1)
        thread.sessions.append(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._seen.__exit__(kind, error, trace)
        look_at_arrays(-1)
        thread.sessions.remove(self)
        try:
            if kind is None:
                self._finish()
        finally:
            self.open = False
            self._made.clear()
            self._waiting.clear()
            self._plans.clear()
            self.units.clear()

    # -- putting off -----------------------------------------------------------------------------

    def _call(self, event: Event, proceed: Callable) -> Any:
        """The interceptor: results that are not there yet for operations, where that can be."""
        inputs, op = event.inputs, event.op
        if event.kind != OP:
            return self._at_once(event, proceed)
        mode = state.enabled
        key: list = [op, mode]
        varying: list = []
        positions: list = []
        depth = -1
        view = True
        for i, x in enumerate(inputs):
            of = type(x)
            if of is Later and x._node is x._array.kind.node:
                a = x._array
                key.append(a.kind)
                positions.append(i)
                varying.append(a)
                if a.bucket.depth > depth:
                    depth = a.bucket.depth
                view = False
            elif isinstance(x, Tensor):
                a = x if is_sparse(x) else x._array
                if type(a) is Pending and x._node is not a.kind.node:
                    self.settle((x,))  # it has the array, and a place of its own
                    a = x._array
                if type(a) is Pending:  # another tensor over the array of one that was put off
                    key.append(a.kind)
                    positions.append(i)
                    varying.append(a)
                    depth = max(depth, a.bucket.depth)
                    view = False
                elif type(a) is not ndarray:
                    return self._at_once(event, proceed)
                elif type(x) is Tensor and type(x._node) is not Leaf:
                    key.append(self._kind(a.shape, a.dtype, x._node is not None))
                    positions.append(i)
                    varying.append(x)
                else:  # a parameter
                    key.append(id(x))
            else:
                key.append((of, x))
        if event.settings:
            key.append(_frozen(event.settings))
        try:
            plan = self._plans[name] if (name := tuple(key)) in self._plans else self._plan(
                name, op, event.settings, inputs, positions)
        except TypeError:  # a setting that is no key
            return self._at_once(event, proceed)
        if plan is None or view and varying and op.view or state.batches:
            return self._at_once(event, proceed)
        return self._put_off(plan, varying, depth + 1)

    def _put_off(self, plan: Plan, varying: list, depth: int) -> Any:
        """The tensor, or the tuple of them, of one more call."""
        bucket = plan.buckets.get(depth)
        if bucket is None:
            bucket = plan.buckets[depth] = Bucket(plan, depth, self)
            self._waiting.append(bucket)
        row = bucket.count
        bucket.count = row + 1
        before = bucket.before
        for column, a in zip(bucket.columns, varying):
            column.append(a)
            if type(a) is Pending:
                before.add(a.bucket)
        kinds = plan.kinds
        if len(kinds) == 1:
            result = later(kinds[0], bucket, row, 0)
            self._made.append(result)
            return result
        results = tuple([later(kind, bucket, row, slot) for slot, kind in enumerate(kinds)])
        self._made += results
        return results

    def put_off_unit(self, unit: Any, name: tuple, tensors: list) -> tuple:
        """The tensors that a call of a unit gives."""
        plan = self._plans.get(name)
        if plan is None:
            plan = self._plans[name] = Plan(unit, {}, tuple(tensors), list(range(len(tensors))), unit.kinds,
                                            bool(state.enabled))
        varying = [x._array if type(x) is Later else x for x in tensors]
        depth = max([a.bucket.depth for a in varying if type(a) is Pending], default=-1) + 1
        out = self._put_off(plan, varying, depth)
        return out if type(out) is tuple else (out,)

    def takes_calls(self) -> bool:
        """Whether calls are put off now: not within another transform."""
        return type(state.enabled) is bool and not state.batches

    def kind_of(self, x: Tensor) -> Kind | None:
        """The kind of a tensor; None if it is not one of plain memory."""
        a = None if is_sparse(x) else x._array
        if type(a) is not ndarray:
            return a.kind if type(a) is Pending else None
        return self._kind(a.shape, a.dtype, x._node is not None)

    def _kind(self, shape: tuple, dtype: Any, needs: bool) -> Kind:
        key = (shape, dtype, needs)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(*key)
        return kind

    def _plan(self, name: tuple, op: Any, settings: dict, inputs: tuple, positions: list) -> Plan | None:
        """The plan of a signature that was not met before; None if its calls cannot be put off."""
        self._plans[name] = plan = self.made_plan(op, settings, inputs, positions)
        return plan

    def made_plan(self, op: Any, settings: dict, inputs: tuple, positions: list) -> Plan | None:
        """A plan for calls of this kind, or None where they are run at once."""
        if type(state.enabled) is not bool or not isinstance(op, Op) or op.infer is None or draws(op) \
                or op.name == "as_strided":
            return None
        metas = [self.kind_of(x) if isinstance(x, Tensor) else x for x in inputs]
        if any(m is None and isinstance(x, Tensor) for m, x in zip(metas, inputs)):
            return None
        try:
            found = op.infer(*[m.meta if type(m) is Kind else m for m in metas], **settings)
        except (FrameworkError, TypeError, ValueError, IndexError):
            return None  # the call itself says what is wrong
        several = isinstance(found, list) or type(found) is tuple
        outs = list(found) if several else [found]
        if len(outs) != len(op.outputs) or any(o is None for o in outs):
            return None
        recorded = state.enabled and op.has_vjp and any(type(m) is Kind and m.needs for m in metas)
        kinds = tuple([self._kind(tuple(o.shape), o.dtype.numpy,
                                  recorded and i < op.differentiable and o.dtype.numpy.kind in INEXACT)
                       for i, o in enumerate(outs)])
        return Plan(op, settings, inputs, positions, kinds, bool(state.enabled))

    def _at_once(self, event: Event, proceed: Callable) -> Any:
        """A call that is not put off: what it needs is computed first."""
        if event.name == "as_strided" and type(event.inputs[0]) is Later:
            raise RuntimeError("together: as_strided looks at how a tensor lies in memory, which is not "
                               "known where calls are put off; use indexing, unfold() or expand()")
        if event.kind == WRITE:
            self._check_write(event)
            outside(self._seen, self._run)
        self.settle((*event.inputs, event.into))
        return outside(self._seen, proceed, *event.inputs, **event.settings)

    def _check_write(self, event: Event) -> None:
        into = event.into
        if type(into) is Later and (into._array.bucket.plan.op.view or self._has_parts(into)) \
                or id(into) in self._parts:
            raise RuntimeError(f"together: {event.name} in place into a tensor that is a part of another one "
                               f"(or has parts), which is not seen where calls are put off; use the form "
                               f"that is not in place")

    def _has_parts(self, x: Later) -> bool:
        a = x._array
        return any(b.plan.op.view and any(type(e) is Pending and (e.bucket, e.row, e.slot) ==
                                          (a.bucket, a.row, a.slot) for e in b.columns[0])
                   for plan in self._plans.values() if plan for b in plan.buckets.values())

    # -- running ---------------------------------------------------------------------------------

    def value(self, a: Pending) -> ndarray:
        """The array with the value of one that waits."""
        outside(self._seen, self._run)
        group = a.bucket.group
        if group is None:
            raise RuntimeError("together: the value of a tensor was asked for that is not known, since the "
                               "function ended with an error")
        out = group.result(a.slot)._array
        return out if group.shared else out[a.bucket.offset + a.row, ...]

    def settle(self, values: Iterable) -> None:
        """Give the tensors among these that wait their values."""
        waiting = [x for x in values
                   if isinstance(x, Tensor) and not is_sparse(x) and type(x._array) is Pending]
        if waiting:
            outside(self._seen, self._run)
            outside(self._seen, self._settle_all, waiting)

    def _settle_all(self, waiting: Sequence[Later]) -> None:
        wanted: dict[Any, list[Later]] = {}
        for x in dict.fromkeys(waiting):
            a = x._array
            if a.bucket.group is None:
                raise RuntimeError("together: the value of a tensor was asked for that is not known, since "
                                   "the function ended with an error")
            wanted.setdefault((a.bucket.group, a.slot), []).append(x)
        for (group, slot), xs in wanted.items():
            if group.shared:
                out = group.result(slot)
                found = [(out._array.copy(), out._node) for _ in xs]
            else:
                rows = np.array([x._array.bucket.offset + x._array.row for x in xs])
                found = singles(deal(group.result(slot), [rows])[0])
            for x, (array, node) in zip(xs, found):
                if group.plan.op.view:
                    self._parts.add(id(x))
                if type(x) is Later:
                    x.__class__ = Tensor  # type: ignore[assignment]
                x._array = array
                if x._node is WAITING:
                    x._node = node

    def _finish(self) -> None:
        """Run what waits, and give the tensors that somebody has their values."""
        made = self._made
        self._run()
        self._settle_all([t for t in made if sys.getrefcount(t) > _MADE and type(t) is Later
                          and t._array.bucket.group.outputs])

    def _run(self) -> None:
        """Run all calls that were put off."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        for bucket in waiting:
            bucket.plan.buckets.clear()
        groups = []
        for plan, buckets in in_order(waiting):
            group = Group(plan, buckets)
            self._link(group)
            groups.append(group)
        mode, error = state.recording, None
        try:
            for group in groups:
                if state.recording is not group.plan.recorded:
                    set_recording(group.plan.recorded)
                try:
                    self._run_group(group)
                except _Lost:
                    pass  # what it needs has failed
                except Exception as problem:
                    error = error or problem
        finally:
            if state.recording is not mode:
                set_recording(mode)
        if error is not None:
            raise error

    def _link(self, group: Group) -> None:
        """Find where the inputs of a group come from, and ask there for the rows."""
        plan = group.plan
        group.inputs = list(plan.fixed)
        shared = True
        for k, i in enumerate(plan.varying):
            entries = group.buckets[0].columns[k] if len(group.buckets) == 1 else [
                e for b in group.buckets for e in b.columns[k]]
            source = group.inputs[i] = _Source(entries)
            shared = shared and source.shared
        for bucket in group.buckets:
            bucket.columns = []
        group.shared = shared

    def _run_group(self, group: Group) -> None:
        plan = group.plan
        batched = tuple([type(x) is _Source and not x.shared for x in group.inputs])
        inputs = [x.take() if type(x) is _Source else x for x in group.inputs]
        try:
            if type(plan.op) is not Op and hasattr(plan.op, "run_many"):
                way, out = "shared by all" if group.shared else "one call", plan.op.run_many(
                    1 if group.shared else group.count, inputs, batched)
            elif group.shared:
                way, out = "shared by all", plan.op.run(*inputs, **plan.settings)
            else:
                way, out = many(plan.op, group.count, inputs, batched, plan.settings)
        except Exception as error:
            error.add_note(f"while running {group.count} calls of {plan.op.name} together")
            raise
        outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        lead = () if group.shared else (group.count,)
        outputs = tuple([wrap(np.broadcast_to(t._array, lead + kind.shape)) if not t._array.size
                         and t._array.shape != lead + kind.shape else t
                         for t, kind in zip(outputs, plan.kinds)])  # an output that is not wanted is empty
        for t, kind in zip(outputs, plan.kinds):
            if t._array.shape != lead + kind.shape or t._array.dtype != kind.dtype:
                raise AssertionError(f"together: {plan.op.name} gave {t.dtype}{list(t.shape)} where its "
                                     f"shape rule says {kind.meta} for each of {group.count} calls")
        group.outputs = outputs
        group.inputs = []
        if not group.shared:
            group.pieces = [deal(t, requests) if requests else []
                            for t, requests in zip(outputs, group.requests)]
        depths = [b.depth for b in group.buckets]
        self.schedule.steps.append(Step(plan.op.name, group.count, (min(depths), max(depths)),
                                        tuple([kind.shape for kind in plan.kinds]), way,
                                        len(getattr(plan.op, "lines", "."))))


class _Source:
    """Where one input of the calls of a group comes from: tensors, rows of groups, or both.

    shared: that it is one tensor for all of them.
    """

    __slots__ = ("parts", "order", "shared")

    def __init__(self, entries: list) -> None:
        self.parts: list = []
        self.order: ndarray | None = None
        first = entries[0]
        self.shared = type(first) is not Pending and all(e is first for e in entries)
        if self.shared:
            self.parts = [first]
            return
        found: dict[Any, tuple[list, list]] = {}
        for i, e in enumerate(entries):
            if type(e) is Pending:
                bucket = e.bucket
                key: Any = (bucket.group, e.slot)
                where: Any = bucket.offset + e.row
            else:
                key, where = None, e
            try:
                places, rows = found[key]
            except KeyError:
                places, rows = found[key] = [], []
            places.append(i)
            rows.append(where)
        order: list[int] = []
        for key, (places, rows) in found.items():
            order += places
            if key is None:
                self.parts.append(rows)
                continue
            group, slot = key
            if group.shared and len(found) == 1:
                self.shared = True
                self.parts.append((group, slot, None))
            elif group.shared or group.outputs:  # it ran before: nobody could ask it in time
                self.parts.append((group, slot, np.array(rows)))
            else:
                group.requests[slot].append(np.array(rows))
                self.parts.append((group, slot, len(group.requests[slot]) - 1))
        if len(found) > 1 and order != list(range(len(entries))):
            self.order = np.empty(len(entries), np.int64)
            self.order[order] = np.arange(len(entries))

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


def many(op: Any, count: int, inputs: list, batched: tuple, settings: dict) -> tuple[str, Any]:
    """Calls of a record as one: ("one call", its results); by itself for each example without a rule."""
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


def draws(op: Any) -> bool:
    """Whether a record draws random numbers: such calls run one by one, in order, so that the draws are."""
    return "generator" in getattr(getattr(op.kernel, "__code__", None), "co_varnames", ())


def _frozen(settings: dict) -> tuple:
    """A key for settings, in which 1, 1.0 and True differ; those of one record have one order."""
    key: list = []
    for value in settings.values():
        of = type(value)
        key.append(of)
        if of is tuple or of is list:
            for e in value:
                key.append((e.start, e.stop, e.step) if type(e) is slice else e)
        else:
            key.append(value)
    return tuple(key)


def together(fn: Callable, examples: Iterable) -> Results:
    """``[fn(example) for example in examples]``, operations of the same kind run as one call for all.

    fn: takes one example (anything: a tree, a list, a graph) and returns tensors, or a nest of them, as if it
    were alone. Its operations are put off; calls of one record with the same settings and shapes, wherever
    they stand, then run together, forward and backward. Results and gradients are those of the loop, up to
    rounding; random numbers are drawn in its order. Returns a list of the results with ``schedule``, what
    ran.

    A value that ``fn`` asks for (``item()``, ``if x > 0``) has all that was put off so far computed, and so
    has anything written in place; what follows is batched with later examples only where depths meet.
    Raises RuntimeError for writing in place into a part of a tensor that was put off.

    G. Neubig, Y. Goldberg, C. Dyer, "On-the-fly Operation Batching in Dynamic Computation Graphs", 2017.

    >>> from framework.batching import together
    >>> w = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> def sum_of(tree):  # leaves are tensors
    ...     return tree if isinstance(tree, fw.Tensor) else (sum_of(tree[0]) * w + sum_of(tree[1])).tanh()
    >>> a, b = fw.ones(2), fw.zeros(2)
    >>> y = together(sum_of, [(a, b), ((a, a), b), (b, a)])
    >>> y[1]
    tensor([0.7461, 0.9633], grad_fn=<unbind_rows>)
    >>> y.schedule.calls, y.schedule.runs
    (12, 6)
    """
    with Session() as session:
        results = Results([fn(example) for example in examples])
    results.schedule = session.schedule
    return results
