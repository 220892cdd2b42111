"""Calls put off: what a compiled function does with the operations that it has seen before.

Python runs on every call. An operation that a *door* (``doors.py``) recognises - the same function after the
same operations, with arguments of the same kinds - is not computed: its result is a tensor with empty slots.
What was put off runs as one plan when somebody needs it: at ``backward()``, when a number is read, when an
operation runs that is not put off, and in any case before the compiled function returns. What is not
recognised runs at once, after what was put off, and is remembered.
"""

import threading
import weakref
from contextlib import suppress
from functools import partial
from typing import Any

from numpy import ndarray

from .. import _native
from ..autograd.engine import accumulate
from ..autograd.mode import set_recording, state
from ..backends import cuda
from ..device import Device
from ..dtypes import DType
from ..errors import CompileError
from ..memory_formats import MemoryFormat
from ..nn.parameter import Parameter
from ..node import Leaf
from ..ops.record import arming, autocast
from ..ops.record.deferred import Positions
from ..quiet import quiet
from ..random import Drawn
from ..tensor import Tensor
from . import doors
from .backward import Refused
from .changes import noted
from .gradients import Gradient, order_of, template_of
from .kernels import Book, Declined, Unknown, owner_of, steps_of
from .recorded import BackwardPlan, Data, ForwardPlan
from .segments import Missing, Segment

LEARNING = 3  # calls during which all doors are asked
TRIAL = 24  # segments after which deferring has to have paid
MOST_PLANS = 8  # that end with one call
MOST_CALLS, MOST_IN_ALL = 10_000, 256  # calls that are recorded, and plans, of one compiled function


class _Local(threading.local):
    session: Any = None


class Deferral:
    """The recorded calls of one compiled function."""

    def __init__(self) -> None:
        self.tree = _native.module.new_tree()
        self.local = _Local()
        self.calls = self.planned = self.eagerly = self.segments = 0
        self.recorded = 0
        self.wide = True  # whether all doors are asked
        self.off: str | None = None
        self.wanted: list = []
        self.seen: set = set()  # doors of calls that were recorded
        self.reasons: dict[str, int] = {}
        self.plans: list[Any] = []
        self.told: dict[tuple, dict] = {}

    def told_of(self, x: Tensor) -> dict:
        """What is said of a result without its numbers: the same of all that lie alike."""
        key = x._array.shape, x._array.strides, x._array.dtype, x._node is None
        found = self.told.get(key)
        if found is None:
            found = self.told[key] = {name: getattr(x, name) for name in doors.TOLD}
            found.update({name: getattr(x, name)() for name in doors.TOLD_CALLS
                          if x.ndim or name != "__len__"})
        return found

    def session(self) -> "Session | None":
        """What puts calls off in this thread, or None where nothing is to be put off."""
        if self.off is not None or arming.armed or cuda._cupy is not None:
            return None
        found = self.local.session
        if found is None:
            if quiet.run is not quiet.plain or type(state.enabled) is not bool or state.anomaly is not None:
                return None
            found = self.local.session = Session(self)
        mode, now = found.mode, found.quiet  # of this thread, as dicts: they are asked at every call
        if found.inside or now["run"] is not now["plain"] or mode["batches"] or mode["levels"] \
                or mode["saved_hooks"] or mode["inference"] or mode.get("anomaly") is not None \
                or type(mode.get("enabled", True)) is not bool:
            return None
        return found

    def explain(self) -> list[str]:
        """In words."""
        lines = []
        if self.calls:
            lines.append(f"  {self.segments} sequences of operations put off: {self.planned} run as plans, "
                         f"{self.eagerly} one by one")
        for plan in self.plans:
            w = plan.segment
            if w is None:
                continue
            kind = "with backward " if isinstance(plan, BackwardPlan) else ""
            fused = f", {w.fused} of them fused from {w.inside} elementwise ones" if w.fused else ""
            lines.append(f"  sequence {kind}of {plan.words}: {w.kernels} kernels{fused}, "
                         f"served {plan.served} times")
        lines += [f"  one by one, {n} times: {why}" for why, n in self.reasons.items()]
        if self.recorded:
            lines.append(f"  kept: {self.recorded} calls of at most {MOST_CALLS}, {len(self.plans)} plans "
                         f"of at most {MOST_IN_ALL}")
        if self.off:
            lines.append(f"  nothing is put off any more: {self.off}")
        return lines


class Session:
    """One thread's tape of a compiled function."""

    def __init__(self, owner: Deferral) -> None:
        self.owner = owner
        self.inside = False
        module = _native.module
        module.set_up_tapes(Tensor, Parameter, Leaf)
        module.set_up_constants((DType, Device, MemoryFormat), Drawn)
        self.plain: Any = quiet.plain
        self.runner = module.make_runner(self.plain)
        state.saved_hooks, state.batches, state.levels = state.saved_hooks, state.batches, state.levels
        state.inference, quiet.stack = state.inference, quiet.stack
        self.mode, self.quiet = state.__dict__, quiet.__dict__
        conditions = ((self.quiet, "run", self.runner), (autocast.thread.__dict__, "choose", None),
                      (self.mode, "saved_hooks", ()), (self.mode, "batches", ()),
                      (self.mode, "inference", False))
        self.modes = (*conditions, (self.quiet, "stack", ()), (self.quiet, "whole", True),
                      (self.mode, "levels", ()), (self.mode, "opened", ()))
        me = weakref.ref(self)  # the garbage collector does not see what the tape holds: not what holds it

        def record(tape: Any, door: Any, args: tuple, settings: dict) -> Any:
            return me().record(tape, door, args, settings)  # type: ignore[union-attr]

        def force(tape: Any, why: str) -> Any:
            return me().force(tape, why)  # type: ignore[union-attr]
        self.tape = module.Tape(owner.tree, record, force, state.__dict__, conditions, self.plain,
                                accumulate, Missing)
        self.settled = partial(self.tape.flush, "memory is handed out")
        self.book = Book()

    # -- a compiled call ------------------------------------------------------------------------------

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        owner, tape = self.owner, self.tape
        owner.calls += 1
        before: dict = {}
        if owner.calls > LEARNING and not owner.wide:
            wanted = owner.wanted
        else:
            wanted = doors.doors()
            before = {d: d.calls for _, d, *_ in wanted if d.kind == "s"}
            owner.wide = False
        self.inside = True
        now = self.quiet
        plain = now["plain"]
        now["plain"] = now["run"] = self.runner
        now["settle"] = self.settled
        doors.arm(wanted)
        tape.enter()
        try:
            result = function(*args, **kwargs)
            tape.finish()
            return result
        except BaseException:
            tape.finish()
            raise
        finally:
            tape.leave()
            doors.disarm()
            if quick := tape.quick:
                owner.segments += quick
                owner.planned += quick
                tape.quick = 0
            now["plain"] = plain
            now["run"] = None if now["stack"] else plain
            now["settle"] = None
            self.inside = False
            if owner.wide or owner.calls <= LEARNING:
                seen = owner.seen
                seen.update([d for d, calls in before.items() if d.calls > calls])
                owner.wanted = [d for d in doors.doors() if d[1] in seen or d[1].twin in seen
                                or d[1].used and d[1].kind not in "ds"]

    def ready(self) -> tuple | None:
        """What the native side needs for calls of this thread, see ``compiled.cpp``; None while doors are
        learned. The conditions are those of ``Deferral.session``.
        """
        owner, now, mode = self.owner, self.quiet, self.mode
        if owner.calls <= LEARNING or owner.wide:
            return None
        own = vars(owner)
        conditions = ((own, "off", None), (own, "wide", False), (vars(self), "inside", False),
                      (vars(cuda), "_cupy", None), (now, "run", self.plain), (now, "plain", self.plain),
                      (mode, "batches", ()), (mode, "levels", ()), (mode, "saved_hooks", ()),
                      (mode, "inference", False), (mode, "anomaly", None))
        return (self.tape, now, mode, own, vars(self), self.runner, self.settled, doors.armed,
                arming.armed, conditions)

    # -- calls that are not recognised ----------------------------------------------------------------

    def record(self, tape: Any, door: Any, args: tuple, settings: dict) -> Any:
        """Run a call that is not put off, and remember it. The tape is busy: nothing inside is put off."""
        if door.name == "backward":
            return self.backward(door, args, settings)
        path = tape.path()
        if not path:
            self.book = Book()
        pending = len(path) > tape.settled
        try:
            call = tape.find(door, args, settings)
            new = call is None
            if new and self.owner.recorded < MOST_CALLS:
                call = tape.extend(door, args, settings)
            apart = door.kind == "d" and settings.get("out") is None and tape.takes_none(args, settings)
            if call is not None and call.refused and call.pure and apart:  # what is put off may wait
                self.book.drop(tape.drop())
                return door.original(*args, **settings)
            if call is None or call.refused:
                if pending:
                    self.force(tape, "an operation that is not put off")
                tape.forget()
                return door.original(*args, **settings)
            if pending:
                self.one_by_one("an operation that is new here")
                tape.all_settled()
            tape.recording = True
            self.owner.wide |= new
            self.book.add_externals(self.tape.arrays())
            result, log, made = noted(call, args, settings, tape, self.book)
        except Unknown:  # a change in place that is not put off; nothing was changed yet
            if new:
                tape.refuse(call)
                self.owner.recorded += 1
            tape.forget()
            return door.original(*args, **settings)
        except BaseException:
            tape.forget()
            raise
        try:
            data = self._data(call, door, args, settings, made, log)
        except Unknown as unknown:
            tape.refuse(call)
            call.pure = apart = apart and not isinstance(unknown, Declined)
            if apart:
                self.book.drop(tape.drop())
            else:
                tape.forget()
            self.owner.recorded += new
            return result
        if new:
            self.owner.recorded += 1
            self.owner.seen.add(door)
            call.data = data
            single = isinstance(result, Tensor)
            call.metas = tuple([self.owner.told_of(x) for x in ([result] if single else result)])
            if data.positions is not None:
                spec = call.specs[data.positions.argument]
                kind, number = spec if data.positions.place is None else spec[data.positions.place]
                assert kind == "e"
                self.tape.demand(call, number, 0, data.positions.size)
        call.in_place = door.kind == "i"
        if tape.advance(call, result):
            self.book.remember(call.first, made, result)
            call.ready = True
            call.views = any(self._is_from_outside(x) for x in _tensors([made]))
        else:
            tape.forget()
        return result

    def _data(self, call: Any, door: Any, args: tuple, settings: dict, result: Any, log: list) -> Data:
        """What is to be known of the call that has just run. Raises Unknown."""
        if self.book.shared:
            raise Unknown("two tensors over one memory")
        data = Data()
        results = [result] if isinstance(result, Tensor) else result
        if not isinstance(results, (list, tuple)) or not results:
            raise Unknown("no tensor comes out")
        data.positions = self._positions(door, args, settings)
        kinds = "fd?" if data.positions is None else "fd?l"
        for x in _tensors((*args, *settings.values())):
            if type(x._array) is not ndarray or x._array.dtype.char not in kinds:
                raise Unknown(f"an operand of {x.dtype}")
        data.steps, name_of = steps_of(log, self.book, str(call.depth))
        for step in data.steps:
            names = step.results if isinstance(step.results, list) else [step.results]
            shapes = step.shapes if isinstance(step.results, list) else [step.shapes]
            for name, known in zip(names, shapes or ()):
                if known is not None:
                    data.shapes[name] = known
        for x in results:
            if type(x) is not Tensor or type(x._array) is not ndarray or x._array.dtype.char not in "fd?l":
                raise Unknown("a result of another kind")
            name = name_of(x._array)
            data.results.append(name)
            data.shapes[name] = (x._array.shape, x._array.dtype)
            data.fixed.append(x._more is not None or self._is_from_outside(x))
            data.grad.append(x._node is not None)
        return data

    def _is_from_outside(self, x: Tensor) -> bool:
        """Whether the memory of a result may be that of a tensor that was handed in."""
        return id(owner_of(x._array)) in self.book.outside

    def _positions(self, door: Any, args: tuple, settings: dict) -> Positions | None:
        """What the function says of this call: which argument holds positions, a tensor from outside.

        Raises Unknown where it says that the call cannot be put off.
        """
        ask = doors.questions.get(door)
        said = None if ask is None else ask(*args, **settings)
        if type(said) is str:
            raise Declined(said)
        if said is not None:
            given = args[said.argument] if said.argument < len(args) else None
            if said.place is not None:
                given = given[said.place]  # type: ignore[index]
            if not isinstance(given, Tensor) or self.tape.index(given) >= 0 or given._array.dtype.char != "l":
                raise Unknown("positions that are not handed in")
        return said

    # -- running what was put off ----------------------------------------------------------------------

    def force(self, tape: Any, why: str) -> None:
        """Run what was put off, without a backward."""
        owner = self.owner
        owner.segments += 1
        path, alive = tape.path(), tape.alive()
        if not alive:
            tape.all_settled()
            return
        if tape.changed():
            self.one_by_one("memory was changed meanwhile")
            tape.all_settled()
            return
        key = tuple(alive)
        plans = path[-1].data.forward
        plan = plans.get(key)
        if plan is None:
            if len(plans) < MOST_PLANS and len(owner.plans) < MOST_IN_ALL:
                plan = plans[key] = self._forward(path, alive)
            else:
                plan = "more plans than are kept"
        if type(plan) is str:
            self.one_by_one(plan)
        else:
            arrays = self.plain(plan.segment.made, tape.arrays())
            for i, array in zip(alive, arrays):
                tape.settle(i, array, None)
            plan.served += 1
            owner.planned += 1
        tape.all_settled()
        self._weigh()

    def _weigh(self) -> None:
        owner, quick = self.owner, self.tape.quick
        if owner.segments + quick >= TRIAL and (owner.planned + quick) * 2 < owner.segments + quick \
                and owner.off is None:
            owner.off = "more sequences ran one by one than as plans"

    def _forward(self, path: list, alive: list) -> Any:
        names = []
        for _, call, place in _places(path, alive):
            if call.data.grad[place]:
                return "a result that is in the graph"
            if call.data.fixed[place]:
                return "a result that is a view"
            names.append(call.data.results[place])
        if len(set(names)) < len(names) or any(n[0] == "e" for n in names):
            return "a result that shares memory"
        plan = ForwardPlan(Segment(*self._steps(path, names)), _words(path))
        self.owner.plans.append(plan)
        return plan

    def _steps(self, path: list, names: list) -> tuple[list, list, dict]:
        steps: list = []
        shapes: dict = {}
        for call in path:
            steps += call.data.steps
            shapes.update(call.data.shapes)
        for i, a in enumerate(self.tape.arrays()):
            shapes[f"e{i}"] = (a.shape, a.dtype)
        return steps, names, shapes

    def one_by_one(self, why: str) -> None:
        """Run what was put off by the functions themselves, into the tensors that were promised."""
        owner, tape = self.owner, self.tape
        owner.eagerly += 1
        owner.reasons[why] = owner.reasons.get(why, 0) + 1
        changed = tape.changed()
        externals = tape.externals() if changed else []
        now = []
        for k, array, _node, copy, version in changed:
            t = externals[k]
            if (t._counter or (0,))[0] != version:
                raise CompileError("compile: a tensor was changed in place while operations on it were put "
                                   "off; this is a bug of framework.compile, please report it")
            now.append((t, t._array, t._node, array, None if copy is None else array.copy()))
        for (_, array, node, copy, _), (t, *_rest) in zip(changed, now):
            t._array, t._node = array, node
            if copy is not None:
                array[...] = copy
        self.book = Book()
        tape.give_back()
        modes = (*self.modes, (self.mode, "recording", True), (self.mode, "enabled", True))
        before = [(of, key, of.get(key, Missing)) for of, key, _ in modes]
        try:
            for of, key, value in modes:  # a block that began meanwhile changes nothing of these calls
                of[key] = value
            for j, call in enumerate(tape.path()):
                args, settings = tape.arguments(j)
                set_recording(call.enabled)
                self.book.add_externals(self.tape.arrays())
                result, log, made = noted(call, args, settings, tape, self.book, known=True)
                with suppress(Unknown):  # what its arrays are called
                    self._data(call, call.door, args, settings, made, log)
                self.book.remember(call.first, made, result)
                for i, x in enumerate([result] if isinstance(result, Tensor) else result):
                    promised = tape.adopt(call.first + i, x)
                    if promised is not x:
                        _hand_over_views(x, promised)
        finally:
            for of, key, value in before:
                if value is Missing:
                    of.pop(key, None)
                else:
                    of[key] = value
            for t, array, node, memory, contents in now:
                t._array, t._node = array, node
                if contents is not None:
                    memory[...] = contents

    # -- backward ---------------------------------------------------------------------------------------

    def backward(self, door: Any, args: tuple, settings: dict) -> Any:
        """``backward()`` of a tensor: with what was put off as one plan, or by the engine."""
        tape, owner = self.tape, self.owner
        path = tape.path()
        i = tape.index(args[0]) if len(args) == 1 and not settings else -1
        if i < 0 or state.recording is not True:
            if len(path) > tape.settled:
                owner.segments += 1
                self.one_by_one("a backward of another kind")
                tape.all_settled()
            tape.forget()
            self._weigh()
            return door.original(*args, **settings)
        pending = len(path) > tape.settled
        owner.segments += 1
        data = path[-1].data
        alive = tape.alive()
        key = (i, *alive)
        plan = data.backward.get(key)
        if pending and isinstance(plan, BackwardPlan):
            if not tape.changed() and self._run_backward(plan):
                owner.planned += 1
                tape.all_settled()
                tape.forget()
                self._weigh()
                return None
            plan = "a leaf that has hooks, or memory that was changed"
        if pending:
            self.one_by_one(plan if type(plan) is str else "a backward that is new here")
            tape.all_settled()
        if plan is None and len(data.backward) < MOST_PLANS and len(owner.plans) < MOST_IN_ALL:
            try:
                plan = self._learn(path, args[0], alive)
                owner.plans.append(plan)
            except (Refused, Unknown) as why:
                plan = str(why)
            data.backward[key] = plan
        tape.forget()
        self._weigh()
        return door.original(*args, **settings)

    def _learn(self, path: list, root: Tensor, alive: list) -> BackwardPlan:
        node = root._node
        if node is None or root._array.size != 1:
            raise Refused("a root without a graph, or of several elements")
        nodes = [t._node if isinstance(t, Tensor) else None for t in self.tape.externals()]
        leaves: dict = {}
        for k, at in enumerate(nodes):
            if type(at) is Leaf:
                if at in leaves:
                    raise Refused("two tensors with one gradient")
                leaves[at] = k
        order = order_of(node)
        outside = {id(at) for at in nodes if at is not None and type(at) is not Leaf}
        if any(id(n) in outside for n in order):
            raise Refused("a graph that began before these operations")
        steps, _, shapes = self._steps(path, [])
        gradient = Gradient(node, root._array, self.book, leaves, shapes)
        numbers: dict = {}
        outputs = []
        places = {n: number for number, n in enumerate(order)}
        for i, call, place in _places(path, alive):
            if call.data.fixed[place]:
                raise Refused("a result that is a view")
            name = call.data.results[place]
            if name in outputs or name[0] == "e":
                raise Refused("a result that shares memory")
            outputs.append(name)
            t = self.tape.tensor(i)
            if t is None:  # what was held by nothing but a cycle
                raise Refused("a result that died meanwhile")
            if t._node is not None:
                if t._node not in places:
                    raise Refused("a result beside the backward")
                numbers[i] = places[t._node]
        template = template_of(order, leaves, self.book)
        return BackwardPlan([*steps, *gradient.steps], [*outputs, *[n for _, n in gradient.leaves]], shapes,
                            [k for k, _ in gradient.leaves], alive, template, numbers, _words(path))

    def _run_backward(self, plan: BackwardPlan) -> bool:
        tape = self.tape
        if not tape.are_free(plan.edges):
            return False
        recording = state.recording
        set_recording(False)
        try:
            found = plan.run(self.plain, tape.arrays())
        except Missing:
            return False
        finally:
            set_recording(recording)
        for leaf, g in tape.hand_out(plan.leaves, found, len(plan.alive)):
            accumulate(leaf, g, False)
        externals = tape.externals()
        ends = [externals[k] for k in plan.edges]
        nodes = plan.hang(tuple([x if type(x) is Drawn else x._node for x in ends]))
        for i, array, node in zip(plan.alive, found, nodes):
            tape.settle(i, array, node)
        return True


def _tensors(values: Any) -> Any:
    for v in values:
        if isinstance(v, Tensor):
            yield v
        elif isinstance(v, (tuple, list)):
            yield from _tensors(v)


def _places(path: list, alive: list) -> Any:
    """(value, its call, which result of it) for each value that is alive."""
    at = 0
    for i in alive:
        while at + 1 < len(path) and path[at + 1].first <= i:
            at += 1
        yield i, path[at], i - path[at].first


def _words(path: list) -> str:
    names = [call.door.name for call in path]
    return f"{len(names)} operations, from {names[0]} to {names[-1]}"


def _hand_over_views(made: Tensor, promised: Tensor) -> None:
    """The base of a view knows the promised tensor, not the one that was made for it."""
    more = made._more
    if more is None or more.base is None or more.base._more is None or more.base._more.views is None:
        return
    views = more.base._more.views
    for i, known in enumerate(views):
        if known() is made:
            views[i] = weakref.ref(promised)
