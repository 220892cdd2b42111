"""Units: functions that are put off as a whole, after their operations have been looked at once.

A unit's operations must depend on the shapes of its tensors and on its other arguments only, as those of a
cell do. Then it is enough to put off one call of it where it would have been one for each operation, and its
operations follow each other on all rows at once, without rows being gathered between them.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..autograd.mode import set_recording, state
from ..func.tree import Spec, flatten
from ..ops.record.op import Op
from ..seam import MAKE, OP, Event, intercept
from ..tensor import Tensor
from .pending import Kind, Later, Pending, Place, later
from .running import many
from .session import Session, thread


class _NoUnit(Exception):
    """Raised within the look at a unit that is none: it asks for a value, draws, or writes."""


class _Line:
    """One operation of a unit: its inputs are numbers of earlier results, or what they are."""

    __slots__ = ("op", "inputs", "settings", "recorded", "kinds", "results")

    def __init__(self, op: Op, inputs: list, settings: dict, recorded: bool, kinds: tuple,
                 results: list[int]) -> None:
        self.op, self.inputs, self.settings = op, inputs, settings
        self.recorded, self.kinds, self.results = recorded, kinds, results


class _Ref(int):
    """The number of a result."""


class _Look:
    """The operations of one call of a unit, with tensors whose values are not there."""

    depth = 0
    view = False

    def __init__(self, session: Session) -> None:
        self.session = self  # whom arrays ask for their values
        self.plan = self.op = self
        self.maker = session.made_plan
        self.lines: list[_Line] = []
        self.count = 0

    def new(self, kind: Kind) -> Later:
        self.count += 1
        return later(Place(kind, self, 0), self.count - 1)

    def seen(self, event: Event, proceed: Callable) -> Any:
        if event.kind == MAKE and event.op.constant:
            return proceed(*event.inputs, **event.settings)
        key = event.settings.get("key")  # of random numbers, which would serve all calls
        if event.kind != OP or state.batches or type(key) is int and key:
            raise _NoUnit
        plan = self.maker(event.op, event.settings, event.inputs, [])
        if plan is None:
            raise _NoUnit
        refs = [_Ref(x._array.row) if type(x) is Later and x._array.place.bucket is self else x
                for x in event.inputs]
        if any(type(x) is Later for x in refs):
            raise _NoUnit
        results = tuple([self.new(kind) for kind in plan.kinds])
        self.lines.append(_Line(event.op, refs, event.settings, plan.recorded, plan.kinds,
                                [t._array.row for t in results]))
        return results if len(results) > 1 else results[0]

    def value(self, a: Pending) -> Any:
        raise _NoUnit

    def settle(self, values: Any) -> None:
        if any(type(x) is Later for x in values):
            raise _NoUnit


class Unit:
    """A unit that was looked at: what stands for a record in the plan of its calls."""

    view = False

    def __init__(self, name: str, look: _Look, count: int, leaves: list, spec: Spec) -> None:
        self.name = name
        self.lines = look.lines
        self.count = look.count
        self.inputs = count
        self.outs = [x._array.row for x in leaves if type(x) is Later]
        self.kinds = tuple([x._array.place.kind for x in leaves if type(x) is Later])
        self.leaves = [None if type(x) is Later else x for x in leaves]
        self.waits = [type(x) is Later for x in leaves]
        self.spec = spec
        plain = all(self.waits)
        self.alone = plain and spec.is_leaf()
        self.in_tuple = plain and spec.type is tuple and all(s.is_leaf() for s in spec.children_specs)

    def built(self, outs: tuple) -> Any:
        """What a call gives, of its tensors."""
        if self.alone:
            return outs[0]
        if self.in_tuple:
            return outs
        left = iter(outs)
        return self.spec.build([next(left) if waits else x for x, waits in zip(self.leaves, self.waits)])

    def run_many(self, count: int, inputs: list, batched: tuple) -> list:
        """The outputs of ``count`` calls, with a row for each."""
        values: list = [*inputs, *[None] * (self.count - len(inputs))]
        rows = [*batched, *[False] * (self.count - len(inputs))]
        mode = state.recording
        try:
            for line in self.lines:
                if state.recording is not line.recorded:
                    set_recording(line.recorded)
                given = [values[x] if type(x) is _Ref else x for x in line.inputs]
                own = tuple([type(x) is _Ref and rows[x] for x in line.inputs])
                out = many(line.op, count, given, own, line.settings)[1] if any(own) else line.op.run(
                    *given, **line.settings)
                outs = out if isinstance(out, (tuple, list)) else (out,)
                for i, t in zip(line.results, outs):
                    values[i] = t
                    rows[i] = any(own)
        finally:
            if state.recording is not mode:
                set_recording(mode)
        if not any(batched):
            return [values[i] for i in self.outs]
        return [values[i] if rows[i] else values[i].expand(count, *values[i].shape) for i in self.outs]


def unit(fn: Callable) -> Callable:
    """Mark a function, or the ``forward`` of a module, that ``together`` may put off as a whole.

    Its operations must depend on its arguments alone: on the shapes of tensors (in tuples, lists or
    dictionaries, too) and on what the others are, not on values of tensors or on anything that changes
    meanwhile. It is called once for each kind of arguments and its operations are kept; where that call asks
    for a value, draws random numbers or writes in place, it is no unit, and its operations are put off one by
    one. Outside of ``together`` it is the function itself.

    >>> from framework.batching import together, unit
    >>> @unit
    ... def cell(h, x):
    ...     return (h * 0.5 + x).tanh()
    >>> def last(xs):
    ...     h = fw.zeros(2)
    ...     for x in xs:
    ...         h = cell(h, x)
    ...     return h
    >>> y = together(last, [fw.ones(3, 2), fw.ones(5, 2)])
    >>> y.schedule.calls, y.schedule.runs
    (24, 15)
    """
    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        sessions = thread.sessions
        if not sessions or not sessions[-1].takes_calls():
            return fn(*args, **kwargs)
        session = sessions[-1]
        rows: list = []
        key: list = [fn, state.enabled]
        try:
            _take(args, session, rows, key)
            if kwargs:
                _take((kwargs,), session, rows, key)
            name = tuple(key)
            way = session.ways.get(name)
        except TypeError:  # an argument that is no key
            return fn(*args, **kwargs)
        if way is None:
            signature = tuple([part.kind if type(part) is Place else part for part in name])
            made = session.units.get(signature)
            if made is None:
                made = session.units[signature] = _looked_at(session, fn, args, kwargs)
            if made is False:
                return fn(*args, **kwargs)
            sources = [part if type(part) is Place else None for part in name if type(part) in (Place, Kind)]
            way = session.new_way(name, session.unit_plan(made, signature), sources)
        out = session.put_off(way, rows)
        return way.bucket.plan.op.built(out if type(out) is tuple else (out,))
    return run


def _take(args: Any, session: Session, rows: list, key: list) -> None:
    """Add to ``key`` what the arguments are and where tensors come from, to ``rows`` which of there."""
    for x in args:
        of = type(x)
        if of is Later:
            a = x._array
            rows.append(a.row)
            key.append(a.place)
        elif of is Tensor and (kind := session.kind_of(x)) is not None:
            a = x._array
            if type(a) is Pending:
                rows.append(a.row)
                key.append(a.place)
            else:
                rows.append(x)
                key.append(kind)
        elif of is tuple or of is list:
            key.append((of, len(x)))
            _take(x, session, rows, key)
        elif of is dict:
            key.append((of, *x))
            _take(x.values(), session, rows, key)
        else:
            key.append((of, id(x) if isinstance(x, Tensor) else x))


def _with_new(args: Any, session: Session, look: _Look) -> Any:
    """The arguments with tensors of the look in place of those that ``_take`` finds."""
    of = type(args)
    if of in (Later, Tensor) and (kind := session.kind_of(args)) is not None:
        return look.new(kind)
    if of is tuple or of is list:
        return of([_with_new(x, session, look) for x in args])
    if of is dict:
        return {name: _with_new(x, session, look) for name, x in args.items()}
    return args


def _looked_at(session: Session, fn: Callable, args: tuple, kwargs: dict) -> Any:
    """The unit that a function is for such arguments, False if it is none."""
    look = _Look(session)
    args, kwargs = _with_new(args, session, look), _with_new(kwargs, session, look)
    count = look.count
    thread.sessions.append(_NoSession)
    try:
        with intercept(look.seen, lean=True, settle=look.settle):
            out = fn(*args, **kwargs)
    except _NoUnit:
        return False
    finally:
        thread.sessions.pop()
    leaves, spec = flatten(out)
    if any(type(x) is Later and x._array.place.bucket is not look for x in leaves):
        return False
    return Unit(getattr(fn, "__qualname__", "unit"), look, count, leaves, spec)


class _NoSession:
    """Stands for a session while a unit is looked at: units in it are part of it."""

    @staticmethod
    def takes_calls() -> bool:
        return False
