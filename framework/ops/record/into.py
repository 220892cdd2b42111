"""Elementwise ops written straight into a tensor's memory: what in-place forms and ``out=`` try first."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import _native
from ...autograd.mode import state
from ...backends import array_module
from ...backends.device_code import is_device_array
from ...dtypes import FLOATING
from ...errors import AutogradError
from ...node import Leaf
from ...quiet import is_interrupted, quiet, quietly
from ...seam import WRITE, Event, intercepted
from ...tensor import Tensor, bump, keep_result
from .aliases import overlaps_itself
from .short_roads import road_into

_NUMBERS = (float, int)
_OWN = ("framework", "numpy")
_LEAST = -1 << 63  # of the whole numbers that are kept as such
Call = tuple[Any, tuple, dict[str, Any]]  # a record, its inputs and settings: op.run(*inputs, **settings)


def native_into(name: str) -> Callable:
    """The native function that writes into a tensor outside the graph and returns it; it does nothing, and
    gives NotImplemented, where anything is unusual."""
    return getattr(_native.module, f"into_{name}", lambda *args: NotImplemented)


def with_numbers(record: Any, of_tensors: Any = None) -> Callable:
    """Says of a plan that tensors of floating numbers of one dtype, as many as the record has inputs, and
    numbers for all its settings, in order, are a call of it.

    of_tensors: the record that takes tensors in the place of the numbers; both are then of int64, too.
    """
    def mark(plan: Callable) -> Callable:
        plan.of_numbers = record, of_tensors  # type: ignore[attr-defined]
        return plan
    return mark


def answered(plan: Callable[..., Call | None]) -> Callable[..., Call | None]:
    """The plan, of which such calls are answered natively."""
    record, of_tensors = getattr(plan, "of_numbers", (None, None))
    if record is None or not hasattr(_native.module, "plan_with_numbers"):
        return plan
    return _native.module.plan_with_numbers(record, len(record.inputs), record.settings, plan, of_tensors)


def has_begun(error: BaseException) -> bool:
    """Whether it was raised in the middle of a write, by a signal handler: memory may have changed.

    Python's own handler of Ctrl-C has no frame; any other one is neither ours nor NumPy's.
    """
    if not isinstance(error, Exception):
        return True
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in _OWN:
            return True
        trace = trace.tb_next
    return False


def is_declined(error: BaseException) -> bool:
    """Whether a kernel has not begun, and there is another way: it takes no ``out``, or not this one, or the
    saved context is in use."""
    if isinstance(error, TypeError):  # a function around the kernel, of somebody else, is no signal handler
        kind = type(error).__module__.partition(".")[0]
        return kind in _OWN or "keyword argument 'out'" in str(error) or not has_begun(error)
    return isinstance(error, RuntimeError) and is_interrupted(error) and not has_begun(error)


def count_if_begun(x: Tensor, name: str, error: BaseException) -> None:
    """Count the change of ``x`` that was not finished, so that nobody takes it for what was saved."""
    if has_begun(error):
        bump(x, name)


call_into, form_into = native_into("call"), native_into("form")  # the second one where it is recorded, too
if hasattr(_native.module, "set_up_into"):
    _native.module.set_up_into(is_declined, has_begun)


def guard(x: Tensor, name: str) -> None:
    """Raise if ``x`` may not be changed in place here: a recorded leaf, or a view of one."""
    more = x._more
    owner = x if more is None or more.base is None else more.base
    if owner._node is not None:
        keep_result(owner)
    if state.recording and (type(x._node) is Leaf or type(owner._node) is Leaf):
        what = "a leaf tensor" if type(x._node) is Leaf else "a view of a leaf tensor"
        raise AutogradError(f"{name}: {what} that requires grad cannot be changed in place while gradients "
                            f"are recorded; use the out-of-place form, or wrap the change in "
                            f"framework.no_grad()")


def memory_of(x: Tensor, name: str) -> Any:
    """The array of ``x``, to be written into; raises if it is read-only or has elements in one place."""
    array = x._array
    on_cpu = type(array) is np.ndarray
    if not on_cpu or not array.flags.writeable:
        if overlaps_itself(array):
            raise AutogradError(f"{name}: this tensor of shape {list(x.shape)} is an expanded or overlapping "
                                f"view, several elements of which share one place in memory; clone() it "
                                f"before changing it")
        if on_cpu:
            raise ValueError(f"{name}: this tensor's memory is read-only; clone() it before changing it")
    return array


def run_call(call: Call) -> Tensor:
    op, inputs, settings = call
    return op.run(*inputs, **settings)


def computed_into(x: Tensor, call: Call, name: str) -> bool:
    """Whether the kernel has written the result of ``call`` into ``x``; if not, nothing has changed.

    It does where nothing is recorded and nothing promoted.
    """
    return call_into(call[0], x, call[1], call[2], call[0].writes, name) is x or run_in_python(x, call, name)


def run_in_python(x: Tensor, call: Call, name: str, run: Callable | None = None) -> bool:
    """``computed_into`` of what the native part of it has left."""
    if x._node is not None and state.enabled or x._more is not None and _base_is_recorded(x):
        return False
    op, inputs, settings = call
    operands = _operands(op, x._array, inputs)
    if operands is None:
        return False
    if run is None:
        run = quiet.run
        if run is None:  # an interceptor may refuse a result before it is written
            return quiet.whole and intercepted(Event(WRITE, op, inputs, settings, x),
                                               partial(_written, op, x, name)) is x
    memory = x._array
    if type(memory) is not np.ndarray or not memory.flags.writeable:
        memory = memory_of(x, name)
    try:
        road_into(op, inputs, operands, memory, settings, run)
        bump(x, name)
    except BaseException as error:
        if is_declined(error):  # a formula that has no ``out``, or a ufunc no loop that gives this dtype
            return False
        count_if_begun(x, name, error)
        raise
    return True


def _written(op: Any, x: Tensor, name: str, *inputs: Any, **settings: Any) -> Tensor:
    """The result of a call that the interceptors have seen, in the memory of ``x``."""
    if not run_in_python(x, (op, inputs, settings), name, quiet.plain):
        quietly(memory_of(x, name).__setitem__, Ellipsis, op.passed(*inputs, **settings)._array)
        bump(x, name)
    return x


def _base_is_recorded(x: Tensor) -> bool:
    return state.enabled and x._base is not None and x._base._node is not None


def _operands(op: Any, array: Any, inputs: tuple) -> list | None:
    """The arrays of the inputs; None unless their result has the dtype and the shape of ``array``."""
    dtype, shape = array.dtype, array.shape
    if dtype.kind not in op.writes:
        return None
    if len(inputs) == 2 and type(array) is np.ndarray:  # the common cases
        x, y = inputs
        if type(x) is not Tensor:
            pass
        elif type(y) in _NUMBERS:
            a = x._array
            if a is array and dtype.kind in FLOATING and (x._node is None or not state.enabled):
                return [a, y]
        elif type(y) is Tensor:
            a, b = x._array, y._array
            alike = a.dtype is b.dtype is dtype and a.shape == b.shape == shape
            if alike and type(a) is type(b) is np.ndarray \
                    and (x._node is None and y._node is None or not state.enabled):
                return [a, b]
    operands: list[Any] = []
    whole = False
    for other in inputs:
        if isinstance(other, Tensor):
            b = other._array
            if b.dtype is not dtype and (op.result != "select" or operands or b.dtype.kind != "b"):
                return None
            if other._node is not None and state.enabled or type(b) is not type(array):
                return None
            if type(b) is not np.ndarray and is_device_array(b) and b.data.device_id != array.data.device_id:
                return None
            if b.shape == shape:
                whole = True
            elif not _broadcasts(b.shape, shape):
                return None
            if type(b) is not np.ndarray and b is not array and array_module(b).may_share_memory(b, array):
                return None
            operands.append(b)
        elif dtype.kind in FLOATING and type(other) in _NUMBERS \
                or dtype.char == "l" and type(other) is int and _LEAST <= other <= -_LEAST - 1:
            operands.append(other)
        else:
            return None
    return operands if whole else None


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to)))
