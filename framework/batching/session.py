"""Putting calls off, and running them together: ``together`` and what it keeps meanwhile."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..autograd.mode import set_recording, state
from ..dtypes import INEXACT
from ..errors import FrameworkError
from ..node import Leaf
from ..ops.record.batched import look_at_arrays
from ..ops.record.op import Op
from ..ops.shape.split import Parts
from ..seam import OP, WRITE, Event, intercept, outside
from ..sparse_door import is_sparse
from ..tensor import Tensor
from .calls import Bucket, Plan, Way
from .pending import WAITING, Kind, Later, Pending, Place, later
from .rows import deal, singles
from .running import Group, Lost
from .schedule import Schedule, in_order

ndarray = np.ndarray
_view = ndarray.view
_new = object.__new__
_ref = weakref.ref


class _Thread(threading.local):
    """The sessions that a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.sessions: list[Any] = []


thread = _Thread()


class _Collections:
    """How often Python looks for cycles: rarely while calls are put off, which makes objects that all stay.

    With the usual threshold that takes a quarter of the time of putting off.
    """

    every = 100_000

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sessions = 0
        self.before: tuple[int, ...] = ()

    def rarer(self) -> None:
        with self.lock:
            self.sessions += 1
            if self.sessions == 1:
                self.before = gc.get_threshold()
                if 0 < self.before[0] < self.every:  # 0: the program has switched it off
                    gc.set_threshold(self.every, *self.before[1:])

    def as_before(self) -> None:
        with self.lock:
            self.sessions -= 1
            if not self.sessions and gc.get_threshold()[0] == self.every:
                gc.set_threshold(*self.before)


_collections = _Collections()


class Results(list):
    """What the function gave for each example. schedule: what ran."""

    schedule: Schedule


class Session:
    """What ``together`` keeps: the calls that were put off, and those that ran."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.open = True
        self._seen = intercept(self._call, lean=True, settle=self.settle)
        self.ways: dict[tuple, Any] = {}  # of calls from places that did not run; False: they are run at once
        self._plans: dict[Any, Plan | None] = {}
        self._kinds: dict[Any, Kind] = {}
        self._waiting: list[Bucket] = []
        self._made: list[weakref.ref] = []
        self.units: dict[Any, Any] = {}
        self._parts: set[int] = set()  # tensors that are parts of others in the function as it is written

    def __enter__(self) -> "Session":
        self._seen.__enter__()
        _collections.rarer()
        look_at_arrays(1)
        thread.sessions.append(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._seen.__exit__(kind, error, trace)
        look_at_arrays(-1)
        _collections.as_before()
        thread.sessions.remove(self)
        try:
            if kind is None:
                self._finish()
        finally:
            self.open = False
            self._made.clear()
            self._waiting.clear()
            self._plans.clear()
            self.ways.clear()
            self.units.clear()

    # -- putting off -----------------------------------------------------------------------------

    def _call(self, event: Event, proceed: Callable) -> Any:
        """The interceptor: results that are not there yet for operations, where that can be."""
        if event.kind != OP or state.batches:
            return self._at_once(event, proceed)
        if len(event.inputs) == 1 and not event.settings:  # what follows, for the most frequent calls
            x = event.inputs[0]
            if type(x) is Later:
                a = x._array
                way = self.ways.get((event.op, state.enabled, a.place))
                if way and x._node is a.place.node:
                    return self.put_off(way, [a.row])
        elif len(event.inputs) == 2 and not event.settings:
            x, y = event.inputs
            if type(x) is type(y) is Later:
                a, b = x._array, y._array
                way = self.ways.get((event.op, state.enabled, a.place, b.place))
                if way and x._node is a.place.node and y._node is b.place.node:
                    return self.put_off(way, [a.row, b.row])
        key: list = [event.op, state.enabled]
        rows: list = []
        for x in event.inputs:
            of = type(x)
            if of is Later:
                a = x._array
                place = a.place
                if x._node is not place.node:
                    self.settle((x,))  # it has a place of its own in the graph
                    return self._call(event, proceed)
                key.append(place)
                rows.append(a.row)
            elif isinstance(x, Tensor):
                if of is not Tensor and is_sparse(x):
                    return self._at_once(event, proceed)
                a = x._array
                if of is Tensor and type(a) is ndarray and type(x._node) is not Leaf:
                    key.append(self._kind(a.shape, a.dtype, x._node is not None))
                    rows.append(x)
                elif type(a) is ndarray:  # a parameter
                    key.append(id(x))
                elif type(a) is not Pending:
                    return self._at_once(event, proceed)
                else:  # another tensor over the array of one that was put off
                    if x._node is not a.place.node:
                        self.settle((x,))
                        return self._call(event, proceed)
                    key.append(a.place)
                    rows.append(a.row)
            else:
                key.append((of, x))
        try:
            if event.settings:
                key.append(_frozen(event.settings))
            name = tuple(key)
            way = self.ways.get(name)
            if way is None:
                way = self._way(name, event)
        except TypeError:  # a setting that is no key
            way = None
        if way is False:
            return outside(self._seen, proceed, *event.inputs, **event.settings)
        if way is None:
            return self._at_once(event, proceed)
        return self.put_off(way, rows)

    def put_off(self, way: Way, rows: list) -> Any:
        """The tensor, or the tuple of them, of one more call, whose inputs are these rows."""
        bucket = way.bucket
        row = bucket.count
        bucket.count = row + 1
        rows.append(row)
        way.calls += rows
        place = bucket.place
        if place is None:
            results = tuple([later(place, row) for place in bucket.places])
            self._made += map(_ref, results)
            return results
        a = _view(place.template, Pending)  # ``later``, written out: this runs for every call
        a.place = place
        a.row = row
        result = _new(Later)
        result._array = a
        result._node = place.node
        result._counter = result._more = None
        self._made.append(_ref(result))
        return result

    def _way(self, name: tuple, event: Event) -> Any:
        """The way of calls that come from new places; None or False if they cannot be put off."""
        op, mode = name[:2]
        key: list = [op, mode]
        sources: list = []
        positions: list[int] = []
        for i, part in enumerate(name[2:2 + len(event.inputs)]):
            if type(part) is Place:
                key.append(part.kind)
                sources.append(part)
            elif type(part) is Kind:
                key.append(part)
                sources.append(None)
            else:
                key.append(part)
                continue
            positions.append(i)
        if op.view and sources and not any(sources):
            self.ways[name] = False  # a view of what is there costs nothing
            return False
        signature = (*key, *name[2 + len(event.inputs):])
        if signature in self._plans:
            plan = self._plans[signature]
        else:
            plan = self._plans[signature] = self.made_plan(op, event.settings, event.inputs, positions)
        if plan is None:
            return None
        return self.new_way(name, plan, sources)

    def new_way(self, name: tuple, plan: Plan, sources: list) -> Way:
        """The way of calls of a plan that come from these places."""
        depth = max([place.bucket.depth for place in sources if place is not None], default=-1) + 1
        bucket = plan.buckets.get(depth)
        if bucket is None:
            bucket = plan.buckets[depth] = Bucket(plan, depth, self)
            self._waiting.append(bucket)
        way = self.ways[name] = Way(bucket, tuple(sources))
        return way

    def unit_plan(self, unit: Any, signature: tuple) -> Plan:
        """The plan of the calls of a unit."""
        plan = self._plans.get(signature)
        if plan is None:
            every = list(range(unit.inputs))
            plan = self._plans[signature] = Plan(unit, {}, (None,) * unit.inputs, every, unit.kinds,
                                                 bool(state.enabled))
        return plan

    def takes_calls(self) -> bool:
        """Whether calls are put off now: not within another transform."""
        return type(state.enabled) is bool and not state.batches

    def kind_of(self, x: Tensor) -> Kind | None:
        """The kind of a tensor; None if it is not one of plain memory."""
        a = None if is_sparse(x) else x._array
        if type(a) is not ndarray:
            return a.place.kind if type(a) is Pending else None
        return self._kind(a.shape, a.dtype, x._node is not None)

    def _kind(self, shape: tuple, dtype: Any, needs: bool) -> Kind:
        key = (shape, dtype, needs)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(*key)
        return kind

    def made_plan(self, op: Any, settings: dict, inputs: tuple, positions: list) -> Plan | None:
        """A plan for calls of this kind, or None where they are run at once."""
        if type(state.enabled) is not bool or not isinstance(op, (Op, Parts)) or op.infer is None \
                or draws(op) or getattr(op, "strided", False):
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
        if getattr(event.op, "strided", False) and type(event.inputs[0]) is Later:
            raise RuntimeError(f"together: {event.name} looks at how a tensor lies in memory, which is not "
                               "known where calls are put off; use indexing, unfold() or expand()")
        if event.kind == WRITE:
            self._check_write(event)
            outside(self._seen, self._run)
        self.settle((*event.inputs, event.into))
        return outside(self._seen, proceed, *event.inputs, **event.settings)

    def _check_write(self, event: Event) -> None:
        into = event.into
        if type(into) is Later and (into._array.place.bucket.plan.op.view or self._has_parts(into)) \
                or id(into) in self._parts:
            raise RuntimeError(f"together: {event.name} in place into a tensor that is a part of another one "
                               f"(or has parts), which is not seen where calls are put off; use the form "
                               f"that is not in place")

    def _has_parts(self, x: Later) -> bool:
        a = x._array
        return any(way.sources[0] is a.place and a.row in way.columns()[0]
                   for bucket in self._waiting if bucket.plan.op.view for way in bucket.ways)

    # -- running ---------------------------------------------------------------------------------

    def value(self, a: Pending) -> ndarray:
        """The array with the value of one that waits."""
        outside(self._seen, self._run)
        place = a.place
        group = self._group(place)
        out = group.result(place.slot)._array
        return out if group.shared else out[place.bucket.offset + a.row, ...]

    @staticmethod
    def _group(place: Place) -> Group:
        group = place.bucket.group
        if group is None:
            raise RuntimeError("together: the value of a tensor was asked for that is not known, since the "
                               "function ended with an error")
        return group

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
            place = x._array.place
            wanted.setdefault((self._group(place), place.slot), []).append(x)
        for (group, slot), xs in wanted.items():
            if group.shared:
                out = group.result(slot)
                found = [(out._array.copy(), out._node) for _ in xs]
            else:
                rows = np.array([x._array.place.bucket.offset + x._array.row for x in xs])
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
        self._settle_all([t for one in made if (t := one()) is not None and type(t) is Later
                          and t._array.place.bucket.group.outputs])

    def _run(self) -> None:
        """Run all calls that were put off."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        self.ways.clear()
        for bucket in waiting:
            bucket.plan.buckets.clear()
        groups = [Group(plan, buckets) for plan, buckets in in_order(waiting)]
        mode, error = state.recording, None
        try:
            for group in groups:
                if state.recording is not group.plan.recorded:
                    set_recording(group.plan.recorded)
                try:
                    self.schedule.steps.append(group.run())
                except Lost:
                    pass  # what it needs has failed
                except Exception as problem:
                    error = error or problem
        finally:
            if state.recording is not mode:
                set_recording(mode)
        if error is not None:
            raise error


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
