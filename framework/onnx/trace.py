"""One run of a function, written down as steps over numbered values: what ``export`` lowers.

The recorder is an interceptor at the seam (``framework/seam.py``). Values are known by their arrays, so that
``x.detach()`` is ``x``. Writing into memory becomes a new value: a tensor that is a view gets its part of
the base anew when it is read after the base was written, and a base the changed part when the view was. A
read of a value that depends on the inputs (``bool(x)``, ``x.item()``) is refused at the line that reads: a
graph of operations has no place for what Python does with it.
"""

import linecache
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.frames import is_ours
from ..autograd.mode import no_grad
from ..errors import FrameworkError
from ..nn import Module
from ..ops.shape.view import reshape_op
from ..seam import MAKE, OP, WRITE, Event, intercept
from ..tensor import Tensor

INPUT, WEIGHT, CONSTANT, STEP = "input", "weight", "constant", "step"


class OnnxError(FrameworkError, RuntimeError):
    """A model that cannot be written as ONNX, or a graph that cannot be run here."""


class Ref(int):
    """The number of a value, among the inputs of a step."""


class Step:
    """One operation: kind ("op", "make", "put"), the record or name, inputs (Ref or number), settings,
    outputs.
    """

    __slots__ = ("kind", "op", "inputs", "settings", "outputs", "where", "scope")

    def __init__(self, kind: str, op: Any, inputs: tuple, settings: dict, where: str, scope: str) -> None:
        self.kind = kind
        self.op = op
        self.inputs = inputs
        self.settings = settings
        self.outputs: list[Ref] = []
        self.where = where
        self.scope = scope

    @property
    def name(self) -> str:
        return self.op if isinstance(self.op, str) else self.op.name


class Value:
    """What is known of a value: where it comes from, shape, dtype; the array if it is a weight or
    constant.
    """

    __slots__ = ("kind", "name", "shape", "dtype", "array")

    def __init__(self, kind: str, name: str, shape: tuple, dtype: Any, array: Any = None) -> None:
        self.kind = kind
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.array = array


def program_line() -> tuple[str, list]:
    """The user's line that is at work, as text, and the modules around it from the outermost."""
    frame = sys._getframe(2)
    where, modules = "", []
    while frame is not None:
        code = frame.f_code
        if not where and (not is_ours(code.co_filename) or "/framework/models/" in code.co_filename):
            line = linecache.getline(code.co_filename, frame.f_lineno).strip()
            where = f"line {frame.f_lineno} of {code.co_filename}: {line}"
        if code.co_name == "forward" and isinstance(one := frame.f_locals.get("self"), Module):
            modules.append(one)
        frame = frame.f_back  # type: ignore[assignment]
    return where or "the model itself", modules[::-1]


class Trace:
    """What a call of ``function(*args, **kwargs)`` computed; see the module.

    inputs: the tensors among the arguments, which the graph begins with. weights: names of arrays by id.
    """

    def __init__(self, function: Callable, args: Sequence, kwargs: dict, inputs: dict[str, Tensor],
                 weights: dict[int, str], scopes: dict[int, str], mode: Any) -> None:
        self.steps: list[Step] = []
        self.values: list[Value] = []
        self._now: dict[int, Ref] = {}      # id of an array -> the value that it holds
        self._alive: list[Any] = []         # so that ids stay those of these arrays
        self._weights = weights
        self._scopes = scopes
        self._views: dict[int, tuple] = {}  # id of an array -> (its base's array, step, version of the base)
        self._version: dict[int, int] = {}  # id of an array -> how often it was written
        self._roots: dict[int, str] = {}    # id of an array -> what it is, if writing into it shows outside
        self._quiet = False
        self._fixed: set[int] = set()       # values that do not depend on the inputs
        for name, tensor in inputs.items():
            self._now[id(tensor._array)] = self._new(INPUT, name, tensor)
            self._alive.append(tensor._array)
        with _reading_is_refused(self), self.look(), mode:
            self.result = function(*args, **kwargs)
        self.outputs, self.tree = self._results(self.result)
        del self._alive, self._views, self.result

    def look(self) -> intercept:
        """How calls are watched: functions of several records as one, layers and what follows one by one."""
        return intercept(self, wholes=True)

    # -- values ------------------------------------------------------------------------------------

    def _new(self, kind: str, name: str, tensor: Tensor, array: Any = None) -> Ref:
        self.values.append(Value(kind, name, tuple(tensor._array.shape), tensor.dtype, array))
        return Ref(len(self.values) - 1)

    def value(self, x: Any) -> Any:
        """The number of the value that a tensor holds now; what is no tensor stays itself."""
        if not isinstance(x, Tensor):
            return x
        array = x._array
        if type(array) is not np.ndarray:
            raise OnnxError(f"export: {self._here()} computes on {x.device}; move model and inputs to the "
                            f"CPU, outside of vmap")
        key = id(array)
        if (view := self._views.get(key)) is not None and self._version.get(id(view[0]), 0) != view[2]:
            self._again(array, *view[:2])
        ref = self._now.get(key)
        if ref is None:
            ref = self._same_memory(array, x)
        if ref is None:
            name = self._weights.get(key)
            kind = CONSTANT if name is None else WEIGHT
            ref = self._now[key] = self._new(kind, name or "", x, array)
            self._fixed.add(ref)
            self._alive.append(array)
        return ref

    def _same_memory(self, array: Any, x: Tensor) -> Ref | None:
        """The value of an array that is a known one in another shape, made by NumPy (``index[None]``)."""
        if not array.flags.c_contiguous or not array.size:
            return None
        for known in reversed(self._alive):
            if type(known) is np.ndarray and known.dtype == array.dtype and known.size == array.size \
                    and known.ctypes.data == array.ctypes.data and known.flags.c_contiguous:
                ref = self._of(known)
                where, _ = program_line()
                step = Step(OP, reshape_op, (ref,), {"shape": tuple(array.shape)}, where, "")
                self.values.append(Value(STEP, "", tuple(array.shape), x.dtype))
                self._finish(step, [Ref(len(self.values) - 1)])
                self._now[id(array)] = step.outputs[0]
                self._alive.append(array)
                return step.outputs[0]
        return None

    def _again(self, array: Any, base: Any, step: Step) -> None:
        """The part of a base that a view shows, after the base has changed."""
        inputs = (self._of(base), *step.inputs[1:])
        again = Step(OP, step.op, inputs, step.settings, step.where, step.scope)
        old = self.values[self._now[id(array)]]
        self.values.append(Value(STEP, "", old.shape, old.dtype))
        self._finish(again, [Ref(len(self.values) - 1)])
        self._now[id(array)] = again.outputs[0]
        self._views[id(array)] = (base, step, self._version.get(id(base), 0))
        self._version[id(array)] = self._version.get(id(array), 0) + 1  # for views of it

    def _of(self, array: Any) -> Ref:
        if (view := self._views.get(id(array))) is not None and self._version.get(id(view[0]), 0) != view[2]:
            self._again(array, *view[:2])
        return self._now[id(array)]

    def is_fixed(self, x: Tensor) -> bool:
        """Whether a tensor does not depend on the inputs, so that Python may read it."""
        ref = self._now.get(id(x._array))
        return ref is None or ref in self._fixed

    def _finish(self, step: Step, outputs: list[Ref]) -> None:
        step.outputs = outputs
        self.steps.append(step)
        if step.kind != MAKE and all(r in self._fixed for r in step.inputs if isinstance(r, Ref)):
            self._fixed.update(outputs)
        if step.kind == MAKE:
            self._fixed.update(outputs)

    def _here(self) -> str:
        return program_line()[0] or "this line"

    # -- events ------------------------------------------------------------------------------------

    def __call__(self, event: Event, proceed: Callable) -> Any:
        if self._quiet:
            return proceed(*event.inputs, **event.settings)
        if event.kind not in (OP, WRITE, MAKE):
            what = "gradients are computed" if event.kind == "backward" else "an optimizer steps"
            raise OnnxError(f"export: {what} in {self._here()}; only forward computations can be exported")
        where, modules = program_line()
        scope = next((self._scopes[id(m)] for m in reversed(modules) if id(m) in self._scopes), "")
        settings = dict(event.settings)
        if event.kind == MAKE:
            step = Step(MAKE, event.op, event.inputs, settings, where, scope)
        else:
            step = Step(OP, event.op, tuple([self.value(x) for x in event.inputs]), settings, where, scope)
        self._quiet = True
        try:
            result = proceed(*event.inputs, **event.settings)
        finally:
            self._quiet = False
        results = result if isinstance(result, tuple) else (result,)
        if event.kind == WRITE:
            self._written(event.into, step)
            return result
        outputs = []
        for r in results:
            array = r._array
            self._alive.append(array)
            ref = self._new(STEP, "", r,
                            array.copy() if event.kind == MAKE and array.size < 1 << 24 else None)
            self._now[id(array)] = ref
            outputs.append(ref)
        self._finish(step, outputs)
        if event.kind == OP and getattr(event.op, "view", False) and len(results) == 1 \
                and np.may_share_memory(results[0]._array, event.inputs[0]._array):
            base = event.inputs[0]._array
            self._views[id(results[0]._array)] = (base, step, self._version.get(id(base), 0))
        return result

    def _written(self, into: Tensor, step: Step) -> None:
        """The value of a tensor, and of what it is a view of, after the result of a step was written into
        it.
        """
        array = into._array
        self.value(into)  # so that it has one
        self._check_own(array, step)
        self.values.append(Value(STEP, "", tuple(array.shape), into.dtype))
        self._finish(step, [Ref(len(self.values) - 1)])
        self._now[id(array)] = step.outputs[0]
        self._version[id(array)] = self._version.get(id(array), 0) + 1
        while (view := self._views.get(id(array))) is not None:
            base, cut, _ = view
            old = self._of(base)
            put = Step("put", "put", (old, self._now[id(array)], *cut.inputs[1:]), {"cut": cut}, step.where,
                       step.scope)
            self.values.append(Value(STEP, "", self.values[old].shape, self.values[old].dtype))
            self._finish(put, [Ref(len(self.values) - 1)])
            self._now[id(base)] = put.outputs[0]
            self._version[id(base)] = self._version.get(id(base), 0) + 1
            self._views[id(array)] = (base, cut, self._version[id(base)])
            array = base

    def _check_own(self, array: Any, step: Step) -> None:
        while (view := self._views.get(id(array))) is not None:
            array = view[0]
        if (name := self._weights.get(id(array))) is not None:
            raise OnnxError(f"export: {step.where} changes {name} in place, and a graph has no memory from "
                            f"call to "
                            f"call; export in evaluation mode (model.eval()), or compute a new tensor")

    # -- results -------------------------------------------------------------------------------------

    def _results(self, result: Any) -> tuple[list[Ref], Any]:
        found: list[Ref] = []
        tree = _leaves(result, lambda t: found.append(self.value(t)))
        return found, tree


def _leaves(result: Any, each: Callable) -> Any:
    """Hand every tensor of a result to a function; the result's form as text."""
    if isinstance(result, Tensor):
        each(result)
        return "t"
    if isinstance(result, dict):
        return {k: _leaves(v, each) for k, v in result.items()}
    if isinstance(result, (tuple, list)):
        return [_leaves(v, each) for v in result]
    if result is None:
        return None
    if hasattr(result, "__dataclass_fields__"):
        return {k: _leaves(getattr(result, k), each) for k in result.__dataclass_fields__}
    raise OnnxError(f"export: the model returns a {type(result).__name__}; wanted tensors, or tuples, lists "
                    f"and dicts of them")


def tensors_of(result: Any) -> list[Tensor]:
    """The tensors of a result, in the order of the graph's outputs."""
    found: list[Tensor] = []
    _leaves(result, found.append)
    return found


# -- reads -------------------------------------------------------------------------------------------

_READS = ("numpy", "__array__", "item", "tolist", "__float__", "__int__", "__complex__", "__index__",
          "__bool__",
          "__dlpack__", "__contains__", "__reduce_ex__")
_lock = threading.Lock()
_exporting: set[int] = set()  # threads


def is_in_onnx_export() -> bool:
    """Whether this thread is running a model to export it.

    >>> fw.onnx.is_in_onnx_export()
    False
    """
    return threading.get_ident() in _exporting


class _reading_is_refused:
    """While open, methods of tensors that read values raise in this thread, for what depends on the
    inputs.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> None:
        _lock.acquire()
        _exporting.add(threading.get_ident())
        self.before = {name: Tensor.__dict__[name] for name in _READS if name in Tensor.__dict__}
        for name, method in self.before.items():
            setattr(Tensor, name, _refusing(name, method, self.trace, threading.get_ident()))

    def __exit__(self, *error: Any) -> None:
        for name, method in self.before.items():
            setattr(Tensor, name, method)
        _exporting.discard(threading.get_ident())
        _lock.release()


def _refusing(name: str, method: Callable, trace: Trace, thread: int) -> Callable:
    shown = {"__bool__": "bool(), a condition", "__index__": "an index or int()"}.get(name,
                                                                                      f"{name.strip('_')}()")

    def read(self: Tensor, *args: Any, **settings: Any) -> Any:
        if threading.get_ident() == thread and not trace._quiet and not trace.is_fixed(self):
            raise OnnxError(f"export: {shown} reads a value that depends on the inputs, in {trace._here()}; "
                            f"what "
                            f"Python does with it cannot become part of the graph. Compute with the tensor "
                            f"(where() chooses by a condition), or pass the value as an argument of the "
                            f"model")
        return method(self, *args, **settings)
    read.__name__ = name
    return read


def in_mode(recording: bool = False) -> Any:
    """How a run is made: without recording gradients."""
    return no_grad()
