"""Short forms of ``road``, written by `python -m framework.ops.stub` as ``shortened.py`` says."""

# ruff: noqa
from typing import Any

from ...node import Node, PlainNode
from .aliases import link
from .road import (
    OP,
    Event,
    Tensor,
    after,
    as_array,
    dtypes,
    intercepted,
    ndarray,
    new,
    quiet,
    state,
    track,
)


def single(op: Any, input: Any, a: Any, recorded: bool) -> Any:
    """``road`` of an elementwise op of one operand."""
    run = quiet.run
    if run is None:
        return intercepted(Event(OP, op, (input,), {}), op.passed)
    try:
        kernel = op.cpu if dtypes.plain or (type(a) is ndarray and a.dtype.kind != 'V') else op.kernel_for((a,))
        out = run(kernel, a)
    except Exception as error:
        out = after(error, op, (input,), (a,), {})
    if type(out) is not ndarray:
        out = as_array(out)
    result = new(Tensor)
    result._array = out
    result._node = result._counter = result._more = None
    if recorded and (mode := state.enabled) and op.has_vjp:
        if mode is True:
            result._node = op.node((input,), (a,), (result,), {})
        else:
            track(op, (input,), (a,), (result,), {})
    return result


def pair(op: Any, input: Any, other: Any, a: Any, b: Any, recorded: bool) -> Any:
    """``road`` of an elementwise op of two operands that need no promotion; the second may be a number."""
    run = quiet.run
    if run is None:
        return intercepted(Event(OP, op, (input, other), {}), op.passed)
    try:
        kernel = op.cpu if dtypes.plain or (type(a) is ndarray and a.dtype.kind != 'V') else op.kernel_for((a, b))
        out = run(kernel, a, b)
    except Exception as error:
        out = after(error, op, (input, other), (a, b), {})
    if type(out) is not ndarray:
        out = as_array(out)
    result = new(Tensor)
    result._array = out
    result._node = result._counter = result._more = None
    if recorded and (mode := state.enabled) and op.has_vjp:
        if mode is True:
            result._node = PlainNode(op, (input._node, None if b is other else other._node)) if op.keeps_nothing and (b is other or a.shape == b.shape) else op.node((input, other), (a, b), (result,), {})
        else:
            track(op, (input, other), (a, b), (result,), {})
    return result


def road_into(op: Any, inputs: tuple, arrays: Any, memory: Any, settings: dict, run: Any) -> None:
    """``road`` where the kernel writes into ``memory``, and nothing is recorded.

    A TypeError, of a kernel that has no such argument, is raised as it is.
    """
    try:
        kernel = op.cpu if dtypes.plain else op.kernel_for(arrays)
        out = run(kernel, *arrays, **settings, out=memory) if settings else run(kernel, *arrays, out=memory)
    except Exception as error:
        out = after(error, op, inputs, arrays, {**settings, 'out': memory}, TypeError)


def seen_anew(input: Any, a: Any, out: Any, op: Any, settings: dict) -> Any:
    """``road`` of a view ``out`` of the array ``a``, which is there; ``op`` keeps the shape at most."""
    result = new(Tensor)
    result._array = out
    result._node = None
    if input._node is not None and (mode := state.enabled):
        if mode is True:
            result._node = Node(op, (input._node,), None if op.keeps_nothing else {'x_shape': a.shape}, None, settings, None)
        else:
            track(op, (input,), (a,), (result,), settings)
    link(input, result, op, settings)
    return result
