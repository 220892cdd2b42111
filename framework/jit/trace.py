"""The exportable trace: everything that a function computes from its inputs, as a flat list of steps.

``record(f, args)`` runs ``f`` once under an interceptor (``seam.py``) and gives a ``Trace``. To go through
one, as an exporter does::

    trace = fw.jit.trace(model, x).trace        # or record(model, (x,))
    for value in trace.inputs + trace.given:    # given: parameters, buffers, captured and made constants
        value.name, value.kind, value.shape, value.dtype, value.tensor  # the tensor of a given one
    for step in trace.steps:                    # in order; each result is made once (single assignment)
        step.op                                 # the record (``Op``): step.op.name, step.op.infer, ...
        step.inputs                             # its operands: Value, or a Python number or None
        step.settings                           # the record's keyword settings, plain Python data
        step.outputs                            # tuple of Value
        step.line                               # "file.py:12", where the user's program called it
    trace.outputs                               # Values, in the order of the leaves of what ``f`` returned
    trace.updates                               # {input or given Value: the Value in its memory at the end}

Writes into memory are made functional: a write is a step whose output is the tensor's next value, views of
it are cut from that anew, and what stands in parameters, buffers and inputs at the end is in ``updates``.
What a trace cannot say is refused with the user's line, never baked in: a value read by Python, a random
draw, a backward or an optimizer's step, memory changed through another alias.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from ..autograd.frames import user_frame
from ..autograd.listen import listen, unlisten
from ..autograd.mode import no_grad, set_grad_enabled, state
from ..errors import ShapeError, TraceError, kind_of
from ..func.tree import flatten
from ..nn import Module
from ..nn.parameter import Parameter
from ..node import Leaf
from ..ops.convert.cast import cast
from ..ops.record.op import Op
from ..ops.shape.broadcast import expand
from ..ops.shape.split import Cut
from ..ops.write.inplace import put_view
from ..random import get_rng_state
from ..seam import BACKWARD, STEP, WRITE, Event, intercept
from ..size import Size
from ..tensor import Tensor, wrap
from .reads import reading

INPUT, PARAMETER, BUFFER, CONSTANT, RESULT = "input", "parameter", "buffer", "constant", "result"


class Value:
    """One array of a trace. kind: "input", "parameter", "buffer", "constant" or "result" (of a step).

    tensor: that of a parameter, buffer or constant itself, else None.
    """

    __slots__ = ("name", "kind", "shape", "dtype", "device", "tensor")

    def __init__(self, name: str, kind: str, like: Tensor, tensor: Tensor | None = None) -> None:
        self.name, self.kind, self.tensor = name, kind, tensor
        self.shape, self.dtype, self.device = Size(like.shape), like.dtype, like.device

    def __repr__(self) -> str:
        return f"%{self.name}"


class Step:
    """One call of a record. recorded: whether gradients were recorded there (not within ``no_grad``).

    written: whether the result went into memory, whose dtype and shape it takes (those of the output).
    """

    __slots__ = ("op", "inputs", "settings", "outputs", "recorded", "written", "line")

    def __init__(self, op: Op, inputs: tuple, settings: dict, outputs: tuple[Value, ...], recorded: bool,
                 written: bool, line: str) -> None:
        self.op, self.inputs, self.settings, self.outputs = op, inputs, settings, outputs
        self.recorded, self.written, self.line = recorded, written, line

    @property
    def name(self) -> str:
        """The name of the record."""
        return self.op.name

    def __repr__(self) -> str:
        made = ", ".join(f"{v!r}: {v.dtype.name}{list(v.shape)}" for v in self.outputs)
        given = [repr(x) for x in self.inputs] + [f"{k}={v!r}" for k, v in self.settings.items()]
        return f"{made} = {self.op.name}({', '.join(given)})"


class Trace:
    """What a function computed, see the head of ``jit/trace.py``. Calling it computes it again.

    >>> trace = fw.jit.trace(lambda x: (x * 2).exp(), fw.zeros(2)).trace
    >>> [step.name for step in trace.steps]
    ['mul', 'exp']
    """

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.given: list[Value] = []
        self.steps: list[Step] = []
        self.outputs: list[Any] = []
        self.updates: dict[Value, Value] = {}
        self.takes: Any = None  # the spec of the arguments, and their leaves that are no tensors
        self.gives: Any = None  # the spec of the result
        self.no_gradient: str | None = None  # whose own derivative is not in the steps

    def __str__(self) -> str:
        heads = [f"{v!r}: {v.kind} {v.dtype.name}{list(v.shape)}" for v in self.inputs + self.given]
        ends = [f"update {a!r} = {b!r}" for a, b in self.updates.items()]
        return "\n".join([*heads, *[f"{s!r}  # {s.line}" for s in self.steps], *ends,
                          f"return {', '.join(map(repr, self.outputs))}"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The steps on other arguments of the same shapes and dtypes, recorded for backward.

        Raises ShapeError or DTypeError for arguments that do not fit the trace: settings made of their sizes
        are part of it.
        """
        known = self._bind(args, kwargs)
        for value in self.given:
            known[value] = value.tensor
        if state.recording and self.no_gradient and any(t._node is not None for t in known.values()):
            raise TraceError(f"this trace went through {self.no_gradient}, whose own derivative it does not "
                             f"have; call it within framework.no_grad()")
        for step in self.steps:
            operands = tuple([known[x] if type(x) is Value else x for x in step.inputs])
            with set_grad_enabled(step.recorded and state.recording):
                results = step.op.run(*operands, **step.settings)
                for value, made in zip(step.outputs, results if type(results) is tuple else (results,)):
                    known[value] = _fitted(step, value, made)
        for target, final in self.updates.items():
            with no_grad():
                known[target].copy_(known[final])
        leaves = [known[x] if type(x) is Value else x for x in self.outputs]
        return self.gives.build(leaves)

    def _bind(self, args: tuple, kwargs: dict) -> dict[Value, Any]:
        leaves, spec = flatten((args, kwargs), exact=True)
        wanted_spec, others = self.takes
        if spec != wanted_spec:
            raise ShapeError("jit.trace: the arguments are nested otherwise than those of the trace; trace "
                             "again")
        values, known = iter(self.inputs), {}
        for i, leaf in enumerate(leaves):
            if i in others:
                if type(leaf) is not type(others[i]) or repr(leaf) != repr(others[i]):
                    raise ShapeError(f"jit.trace: an argument is {leaf!r}, the trace was made with "
                                     f"{others[i]!r}, which is part of it; trace again")
                continue
            value = next(values)
            if not isinstance(leaf, Tensor):
                raise TypeError(f"jit.trace: argument {value.name} must be a Tensor, got "
                                f"{kind_of(leaf)}")
            if leaf.shape != value.shape or leaf.dtype is not value.dtype:
                raise ShapeError(f"jit.trace: argument {value.name} is {leaf.dtype}{list(leaf.shape)}, the "
                                 f"trace was made with {value.dtype}{list(value.shape)}; sizes are part of "
                                 f"it, so trace again")
            known[value] = leaf
        return known


def _fitted(step: Step, value: Value, made: Tensor) -> Tensor:
    """A step's result; in the dtype and shape of what it was written into."""
    if step.written:
        made = made if made.dtype is value.dtype else cast.run(made, dtype=value.dtype)
        return made if made.shape == value.shape else expand(made, value.shape)
    if made.shape != value.shape or made.dtype is not value.dtype:
        raise ShapeError(f"jit.trace: {step.op.name} at {step.line} gave {made.dtype}{list(made.shape)}, in "
                         f"the traced run {value.dtype}{list(value.shape)}: its size depends on numbers, "
                         f"which a trace cannot follow")
    return made


# -- recording --------------------------------------------------------------------------------------


class Recorder:
    """The interceptor that makes a trace of one run."""

    def __init__(self, names: dict[int, tuple[str, Tensor]]) -> None:
        self.trace = Trace()
        self.names = names
        # what was there before, held so that no id is used again: any other tensor comes of a traced call;
        # by type(), as __class__ of a stranger's object may run code
        self.before = {id(x): x for x in gc.get_objects() if issubclass(type(x), Tensor)}
        self.values: dict[int, Value] = {}  # by id of the tensor
        self.arrays: dict[int, Value] = {}  # by id of the array, for what shares it without being a view
        self.held: dict[int, Tensor] = {}  # so that neither ids nor memory are used again
        self.bound: dict[int, Any] = {}  # their arrays, by the same ids
        self.stale: set[int] = set()  # views whose base was written since

    # -- values -------------------------------------------------------------------------------

    def bind(self, t: Tensor, value: Value) -> Value:
        self.values[id(t)] = self.arrays[id(t._array)] = value
        self.held[id(t)] = t
        self.bound[id(t)] = t._array
        self.stale.discard(id(t))
        return value

    def new(self, kind: str, t: Tensor, name: str = "") -> Value:
        given = kind not in (INPUT, RESULT)
        value = Value(name or f"{kind[0] if kind != RESULT else 't'}{len(self.values)}", kind, t,
                      t if given else None)
        if given:
            self.trace.given.append(value)
        return self.bind(t, value)

    def value(self, t: Tensor) -> Value:
        """What ``t`` is in the trace; a tensor that was there before is named or a constant."""
        if id(t) in self.stale:
            return self._cut_again(t)
        found = self.values.get(id(t))
        if found is not None:
            if self.bound[id(t)] is not t._array:
                self.refuse("the memory of a traced tensor was replaced (.data = ..., set_, resize_)")
            return found
        same = self.arrays.get(id(t._array))
        if same is not None:  # .data, .detach(), a copy of the tensor over its array
            owner = next(h for h in self.held.values() if h._array is t._array)
            if id(owner) in self.stale:
                same = self._cut_again(owner)
            if owner._node is not None and owner._node is not t._node:
                self.trace.no_gradient = "detach() or .data"
            self.held[id(t)], self.bound[id(t)] = t, t._array
            self.values[id(t)] = same
            return same
        if type(t._array) is not np.ndarray:
            self.refuse(f"a tensor on {t.device} or of another kind was used; only dense tensors on the CPU "
                        f"are traced")
        base = t._base
        if base is not None and id(base) in self.values:  # a view made before its base was known
            self.held[id(t)], self.bound[id(t)] = t, t._array
            return self._cut_again(t)
        twin = self._twin(t)
        if twin is not None:
            self.held[id(t)], self.bound[id(t)] = t, t._array
            self.values[id(t)] = twin
            return twin
        named = self.names.get(id(t))
        if named is not None:
            trained = isinstance(t, Parameter) or t._node is not None
            return self.new(PARAMETER if trained else BUFFER, t, named[0])
        for other in self.held.values():
            kind = self.values[id(other)].kind if id(other) in self.values else RESULT
            if kind in (INPUT, RESULT) and np.may_share_memory(other._array, t._array):
                self.refuse("memory of a traced tensor came back by another way (.data of a part, NumPy, a "
                            "buffer protocol), which the trace cannot follow")
        if id(t) not in self.before:
            self.refuse("a tensor was made of numbers past the operations that are traced (NumPy inside a "
                        "function), and may depend on the inputs")
        return self.new(CONSTANT if t._node is None else PARAMETER, t)

    def _twin(self, t: Tensor) -> Value | None:
        """The value of a tensor at the same place in the graph with the same numbers.

        An in-place form copies what backward keeps, past the operations; values here are never changed.
        """
        if t._node is None or type(t._node) is Leaf or id(t) in self.before:
            return None
        for h in self.held.values():
            if h._node is t._node and id(h) in self.values and id(h) not in self.stale:
                a, b = h._array, t._array
                if a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes():
                    return self.values[id(h)]
        return None

    def _cut_again(self, t: Tensor) -> Value:
        """The view ``t`` of the present value of its base, as steps."""
        self.stale.discard(id(t))
        base, more = t._base, t._more
        assert base is not None and more is not None  # it is a view
        last, chain = self.value(base), more.chain
        whole = wrap(base._array)
        for op, settings in chain:
            with no_grad():
                whole = op.passed(whole, **settings)
            value = self.new(RESULT, whole)
            self._step(op, (last,), settings, (value,))
            last = value
        return self.bind(t, last)

    def _step(self, op: Any, inputs: tuple, settings: dict, outputs: tuple, written: bool = False) -> None:
        self.trace.steps.append(Step(op, inputs, dict(settings), outputs, state.recording, written, _line()))

    def refuse(self, why: str) -> None:
        raise TraceError(f"jit.trace: {why} (at {_line()})")

    # -- events -------------------------------------------------------------------------------

    def __call__(self, event: Event, proceed: Callable) -> Any:
        if event.kind in (BACKWARD, STEP):
            self.refuse(f"{event.name}: a backward or an optimizer's step is no part of an exportable "
                        f"trace; trace the forward function alone")
        if "generator" in event.settings or "key" in event.settings and event.settings.get("p"):
            self.refuse(f"{event.name} draws random numbers, which a trace would repeat for ever; draw "
                        f"outside and pass the tensor, or switch to eval()")
        if not isinstance(event.op, Op):  # a new tensor of numbers: a constant
            result = proceed(*event.inputs, **event.settings)
            if any(isinstance(x, Tensor) for x in event.inputs):
                self.refuse(f"{event.name} of a tensor is not traced")
            self._writable_check(result)
            self.new(CONSTANT, result)
            return result
        inputs = tuple([self.value(x) if isinstance(x, Tensor) else x for x in event.inputs])
        for x in (*event.inputs, *event.settings.values()):
            if isinstance(x, np.ndarray):
                self.refuse(f"{event.name} takes a NumPy array, whose numbers would be baked in; make it a "
                            f"tensor")
        into = event.into
        if event.kind == WRITE:
            self._check_aliases(into)
        result = proceed(*event.inputs, **event.settings)
        if event.kind == WRITE:
            if result is into:
                self._written(event, inputs, into)
            return result
        results = result if type(result) is tuple else (result,)
        values = tuple([self._result(t, event) for t in results])
        self._step(event.op, inputs, event.settings, values)
        return result

    def _result(self, t: Any, event: Event) -> Value:
        if not isinstance(t, Tensor) or type(t._array) is not np.ndarray:
            self.refuse(f"{event.name} gave something else than a dense tensor on the CPU")
        return self.new(RESULT, t)

    def _writable_check(self, t: Any) -> None:
        if not isinstance(t, Tensor) or type(t._array) is not np.ndarray:
            self.refuse("only dense tensors on the CPU are traced")

    def _family(self, t: Tensor) -> Tensor:
        return t if t._base is None else t._base

    def _check_aliases(self, into: Tensor) -> None:
        """Refuse a write that another tensor than the base's views would see."""
        self.value(into)
        base = self._family(into)
        for other in self.held.values():
            if self._family(other) is not base and np.may_share_memory(other._array, into._array):
                self.refuse("a tensor is changed in place whose memory another one shares (.data, .detach(), "
                            "NumPy); the trace cannot tell them apart")

    def _written(self, event: Event, inputs: tuple, into: Tensor) -> None:
        base = self._family(into)
        value = self._next(into)
        self._step(event.op, inputs, event.settings, (value,), written=True)
        if base is not into:
            old = self.value(base)
            settings = {"shape": base.shape, "chain": into._more.chain}  # type: ignore[union-attr]
            self._step(put_view, (old, value), settings, (self._next(base),))
        for t in self.held.values():
            if t is not into and id(t) in self.values and self._family(t) is base and t is not base:
                self.stale.add(id(t))

    def _next(self, t: Tensor) -> Value:
        """The next value of a tensor that was written."""
        return self.bind(t, Value(f"t{len(self.values)}_{len(self.trace.steps)}", RESULT, t))


def _line() -> str:
    frame = user_frame()
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def modules_of(f: Any, seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """(name, module or tensor) that a function can reach: itself, its object, its closure, its globals."""
    seen = set() if seen is None else seen
    if id(f) in seen:
        return
    seen.add(id(f))
    if isinstance(f, (Module, Tensor)):
        yield "", f
    elif isinstance(f, MethodType):
        yield from modules_of(f.__self__, seen)
    elif isinstance(f, partial):
        for part in (f.func, *f.args, *f.keywords.values()):
            yield from modules_of(part, seen)
    elif hasattr(f, "__code__"):
        cells = zip(f.__code__.co_freevars, [_content(cell) for cell in f.__closure__ or ()])
        names = [(n, f.__globals__[n]) for n in f.__code__.co_names if n in f.__globals__]
        for name, thing in [*cells, *names]:
            for inner, found in modules_of(thing, seen) if isinstance(thing, (Module, Tensor)) else ():
                yield ".".join(filter(None, (name, inner))), found


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _names(f: Any) -> dict[int, tuple[str, Tensor]]:
    names: dict[int, tuple[str, Tensor]] = {}
    for prefix, thing in modules_of(f):
        inside = [("", thing)] if isinstance(thing, Tensor) else [
            *thing.named_parameters(), *thing.named_buffers()]
        for name, t in inside:
            names.setdefault(id(t), (".".join(filter(None, (prefix, name))), t))
    return names


def record(f: Callable, args: Sequence, kwargs: dict | None = None) -> Trace:
    """The trace of ``f(*args, **kwargs)``, which runs once. Raises TraceError naming the user's line where
    the function does what a trace cannot say.
    """
    recorder = Recorder(_names(f))
    trace = recorder.trace
    leaves, spec = flatten((tuple(args), kwargs or {}), exact=True)
    others = {}
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, Tensor):
            others[i] = leaf
            continue
        if id(leaf) in recorder.values:
            raise TraceError("jit.trace: the same tensor is passed twice, which a trace cannot tell from "
                             "two; pass a clone")
        trace.inputs.append(recorder.new(INPUT, leaf, f"input_{len(trace.inputs)}"))
    trace.takes = spec, others

    def heard(node: Any) -> None:
        if not isinstance(node.op, (Op, Cut)):
            trace.no_gradient = node.op.name
    drawn = _random_state()
    listen(heard)
    try:
        with reading(recorder.refuse), intercept(recorder):
            result = f(*args, **(kwargs or {}))
    finally:
        unlisten(heard)
    if not np.array_equal(drawn, _random_state()):
        raise TraceError("jit.trace: the function draws random numbers (dropout in training mode?), which a "
                         "trace would repeat for ever; switch to eval(), or draw outside and pass the tensor")
    results, trace.gives = flatten(result, exact=True)
    trace.outputs = [recorder.value(x) if isinstance(x, Tensor) else x for x in results]
    given = dict(zip(trace.inputs, [x for x in leaves if isinstance(x, Tensor)]))
    for source in trace.inputs + list(trace.given):
        final = recorder.value(source.tensor if source.tensor is not None else given[source])
        if final is not source:
            trace.updates[source] = final
    return trace


def _random_state() -> np.ndarray:
    return get_rng_state()._array
