"""The seam: the one place where everything that a thread computes can be seen, changed or replaced.

A profiler, a tracer, a batching transform and anomaly mode are *interceptors*: functions that are handed
every call of the thread while a block is open::

    def shapes(event, proceed):
        result = proceed(*event.inputs, **event.settings)
        print(event.kind, event.name, [x.shape for x in event.inputs if isinstance(x, fw.Tensor)])
        return result

    with intercept(shapes):
        model(x).sum().backward()

``proceed`` does what would have been done without the interceptor, on the inputs and settings that it is
given, which may be others than those of the call; an interceptor that does not call it replaces the
operation. While an interceptor runs, its own operations go to those of the blocks around only.

Nobody looking costs one test: in a thread with an interceptor ``quiet.run`` is None, which the road of a
call (``ops/record/road.py``) has looked up anyway. Ways around single ops (two layers as one kernel, a sum
written straight into memory) are not taken then, unless all interceptors take ``shortcuts``.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from .quiet import _Quiet, quiet

OP, WRITE, BACKWARD, STEP, MAKE = "op", "write", "backward", "step", "make"


class Maker(NamedTuple):
    """The record of a function that makes tensors of no tensors: what stands for an op in its events.

    arguments: what it calls the data that it makes them of. constant: whether the same data always make the
    same; random: whether it draws. onnx, runtime: what it is in a file where its size follows from the
    inputs, as an expression over the arguments, ``shape`` and ``dtype`` (as ``Op.onnx`` and ``Op.runtime``).
    """

    name: str
    arguments: tuple[str, ...] = ("data",)
    variadic: bool = False
    constant: bool = True
    random: bool = False
    onnx: str | None = None
    runtime: str | None = None


class Event:
    """One thing that a thread is about to compute.

    kind: "op", a record (``op``) on ``inputs`` with ``settings``; the result is a tensor or a tuple of them.
    "write": the same, but the result goes into the memory of the tensor ``into`` (in-place forms, assignment,
    ``out=``) and is that. "backward": the derivative of the op of ``node``; ``inputs`` is one thing, the
    gradient of its output (for several outputs a list, with None for those without one), as an array, or
    under ``create_graph=True`` as a tensor; the result is a sequence, the gradient of each input or None.
    "step": one step of an optimizer (``op``), whose parameters are the ``inputs``; the result is that of
    ``step``. "make": a new tensor of ``inputs`` that are no tensors (``tensor``, ``zeros``, ``rand``).
    """

    __slots__ = ("kind", "op", "inputs", "settings", "into", "node")

    def __init__(self, kind: str, op: Any, inputs: tuple, settings: dict, into: Any = None,
                 node: Any = None) -> None:
        self.kind = kind
        self.op = op
        self.inputs = inputs
        self.settings = settings
        self.into = into
        self.node = node

    @property
    def name(self) -> str:
        """The name of the op, or of the optimizer's class."""
        return getattr(self.op, "name", None) or type(self.op).__name__

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.name}>"


class intercept:
    """Hand every call of this thread to ``interceptor(event, proceed)`` inside the block; see the module.

    shortcuts: whether it takes several ops that run as one kernel for one call, whose op is then named after
    all of them, and a result written straight into memory for one "write". Otherwise they fall apart.
    wholes: whether it takes a function of several records (``ops/record/whole.py``) for one call; the name of
    an attribute: those functions that have it.
    lean: whether it computes nothing itself except by ``outside``; then the only interceptor of a thread
    need not be taken out around each call. settle: computes the tensors among some values, for an
    interceptor that puts calls off; whoever looks at the graph, or at arrays, without a call asks for that
    (``settled``).
    newcomers: whether it also gets the calls of threads that begin inside the block; those that live longer
    let go of it at their next call.
    """

    def __init__(self, interceptor: Callable, shortcuts: bool = False, wholes: bool | str = False,
                 lean: bool = False, settle: Callable | None = None, newcomers: bool = False) -> None:
        self.interceptor = interceptor
        self.shortcuts = shortcuts
        self.wholes = wholes
        self.lean = lean
        self.settle = settle
        self.newcomers = newcomers
        self.ended = False

    def __enter__(self) -> "intercept":
        self.ended = False
        _use((*quiet.stack, self))
        if self.newcomers:
            _Quiet.newcomers = (*_Quiet.newcomers, self)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stack = list(quiet.stack)
        stack.reverse()
        stack.remove(self)  # the last, if there are several
        if self.newcomers:
            _Quiet.newcomers = tuple([one for one in _Quiet.newcomers if one is not self])
            self.ended = self not in _Quiet.newcomers
        _use(tuple(reversed(stack)))


def is_watched() -> bool:
    """Whether somebody wants to see each call: what changes many tensors at once goes by single ops then.

    Those who put calls off (``lean``) have been asked to settle, and need not see it.
    """
    return quiet.run is None and any(not one.lean for one in quiet.stack)


def _use(stack: tuple) -> None:
    """Let these be the interceptors of the thread, the outermost first."""
    quiet.stack = stack
    quiet.run = None if stack else quiet.plain
    quiet.whole = not stack or all(one.shortcuts for one in stack)


def intercepted(event: Event, road: Callable) -> Any:
    """What the interceptors of this thread make of a call; ``road(*inputs, **settings)`` does it."""
    stack = quiet.stack
    if len(stack) == 1 and stack[0].lean and not stack[0].ended:
        return stack[0].interceptor(event, road)
    for one in stack:
        if one.ended:  # this thread began while it looked
            _use(tuple([other for other in stack if not other.ended]))
            return intercepted(event, road) if quiet.stack else road(*event.inputs, **event.settings)
    return _handed(stack, stack, event, road)


def outside(one: intercept, function: Callable, *args: Any, **settings: Any) -> Any:
    """``function(...)`` with those interceptors only that stand around this one."""
    stack = quiet.stack
    return _with(stack[:stack.index(one)] if one in stack else stack, function, args, settings)


def settled(values: Any) -> None:
    """Have the tensors among ``values`` computed, if an interceptor or a compiled function of this thread has
    put calls off."""
    if quiet.settle is not None:
        quiet.settle()
    for one in quiet.stack:
        if one.settle is not None:
            one.settle(values)


def _handed(left: tuple, stack: tuple, event: Event, road: Callable) -> Any:
    if not left:
        return _with(stack, road, event.inputs, event.settings)
    *others, one = left
    outer = tuple(others)

    def proceed(*inputs: Any, **settings: Any) -> Any:
        again = Event(event.kind, event.op, inputs, settings, event.into, event.node)
        return _handed(outer, stack, again, road)
    return _with(outer, one.interceptor, (event, proceed), {})


def _with(stack: tuple, function: Callable, args: tuple, settings: dict) -> Any:
    """``function(...)`` with these interceptors."""
    before = quiet.stack
    _use(stack)
    try:
        return function(*args, **settings)
    finally:
        _use(before)
