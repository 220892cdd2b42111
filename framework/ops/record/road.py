"""The road of a call, and the one file where calls run kernels: ``road`` for all ops, ``pair`` for the most
frequent of them, ``road_into`` where the result goes into memory that is there already.

All three do the same four things: hand the call to those who look (``seam.py``), run the kernel, have
``_after`` rescue or explain a failure, and record. Two functions ``compute`` and ``finish`` that all of them
call would say each step once, and cost 0.06 to 0.1 us a call, 2 to 8 % of a small one: so it is written out.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ... import backends, dtypes
from ...autograd.forward import track
from ...autograd.mode import state
from ...dtypes import INEXACT
from ...errors import DeviceError, FrameworkError, kind_of
from ...node import Pick, PlainNode
from ...quiet import is_interrupted, quiet, readable, unsaved
from ...seam import OP, Event, intercepted
from ...tensor import Tensor, as_array, wrap
from .aliases import link_view
from .meta import Meta, describe_call, meta

ndarray = np.ndarray
NEVER = 99  # more dimensions than an array has
NUMBERS = (int, float, bool, complex, np.generic, type(None))
_new = object.__new__


class Declined(Exception):
    """What a call raises whose kernel leaves it to other ops: it has answered NotImplemented."""


def road(op: Any, inputs: tuple, arrays: Any, settings: dict, recorded: bool,
         run: Callable | None = None) -> Any:
    """The tensor, or the tuple of them, that ``op`` makes of ``inputs``, whose arrays are ``arrays``.

    recorded: whether an input is in a graph; then the result gets a node, if the thread records.
    """
    if run is None:
        run = quiet.run
        if run is None:
            return intercepted(Event(OP, op, inputs, settings), op.passed)
    try:
        kernel = op.cpu if dtypes.plain else op.kernel_for(arrays)
        out = run(kernel, *arrays, **settings) if settings else run(kernel, *arrays)
    except Exception as error:
        out = _after(error, op, inputs, arrays, settings)
    if type(out) is not ndarray:
        if len(op.outputs) > 1:
            return _finish_many(op, inputs, arrays, out, settings, recorded)
        if out is NotImplemented:
            raise Declined
        out = as_array(out)
    bare = op.bare
    if not bare and out.ndim >= op.loose_from and not out.flags.c_contiguous:
        out = row_major(out)
    result = _new(Tensor)  # ``wrap``, written out: this runs for every call
    result._array = out
    result._node = result._counter = result._more = None
    if recorded and (mode := state.enabled) and op.has_vjp and out.dtype.kind in INEXACT:
        if mode is True:
            result._node = op.node(inputs, arrays, (result,), settings)
        else:
            track(op, inputs, arrays, (result,), settings)
    if not bare and op.view:
        link_view(inputs[0], result, op, settings)
    return result


def pair(op: Any, input: Any, other: Any, a: Any, b: Any, recorded: bool) -> Tensor:
    """``road`` of an elementwise op for two operands that need no promotion, of which one may be a number.

    Written out, for it is the most frequent of all calls, and Python calls functions with what is in a tuple
    more slowly: an addition of small tensors takes a fifth less time this way.
    """
    run = quiet.run
    if run is None:
        return intercepted(Event(OP, op, (input, other), {}), op.passed)
    plain = dtypes.plain or type(a) is ndarray and a.dtype.kind != "V"  # and b is alike, or a number
    try:
        out = run(op.cpu if plain else op.kernel_for((a, b)), a, b)
    except Exception as error:
        out = _after(error, op, (input, other), (a, b), {})
    result = _new(Tensor)
    result._array = out if type(out) is ndarray else as_array(out)
    result._node = result._counter = result._more = None
    if recorded and (mode := state.enabled) and op.has_vjp:
        if mode is not True:
            track(op, (input, other), (a, b), (result,), {})
        elif op.keeps_nothing and (b is other or a.shape == b.shape):  # a number has no shape
            result._node = PlainNode(op, (input._node, None if b is other else other._node))
        else:
            result._node = op.node((input, other), (a, b), (result,), {})
    return result


def road_into(op: Any, inputs: tuple, arrays: list, memory: Any, settings: dict, run: Callable) -> None:
    """``road`` where the kernel writes its result into ``memory`` and nothing is recorded.

    A TypeError of the kernel, which may have no such argument, comes as it is.
    """
    try:
        kernel = op.cpu if dtypes.plain else op.kernel_for(arrays)
        if settings:
            run(kernel, *arrays, **settings, out=memory)
        else:
            run(kernel, *arrays, out=memory)
    except TypeError:
        raise
    except Exception as error:
        _after(error, op, inputs, arrays, {**settings, "out": memory})


def _finish_many(op: Any, inputs: tuple, arrays: Any, outs: Iterable, settings: dict,
                 recorded: bool) -> tuple:
    brought = row_major if op.loose_from < NEVER else as_array
    results = tuple([wrap(brought(as_array(out))) for out in outs])
    mode = recorded and op.has_vjp and state.enabled
    if not mode:
        return results
    if mode is not True:
        track(op, inputs, arrays, results, settings)
        return results
    node = op.node(inputs, arrays, results, settings)
    for i, result in enumerate(results[:op.differentiable]):
        result._node = Pick(node, i) if op.differentiable > 1 else node
    return results


# -- failures -----------------------------------------------------------------------------------


def _after(error: Exception, op: Any, inputs: tuple, arrays: Any, settings: dict) -> Any:
    """What the kernel gives where it only was called within another one; else raise what was wrong."""
    try:
        if is_interrupted(error):
            return unsaved(op.kernel_for(arrays), *arrays, **settings)
        raise explained(error, op, inputs, settings) from None
    finally:
        del error  # its traceback leads here


def explained(error: Exception, op: Any, inputs: tuple, settings: dict) -> Exception:
    """What to raise for a kernel that failed: exactly what was wrong."""
    if not any(isinstance(x, Tensor) for x in inputs):
        return TypeError(f"{op.name}: argument '{op.arguments[0]}' must be a Tensor, got "
                         f"{kind_of(inputs[0]) if inputs else 'nothing'}")
    call = describe_call(op, inputs, settings)
    error = readable(error, op.name)
    try:
        _check_devices(op, inputs)
        if op.infer is not None:
            metas = [meta(x) if isinstance(x, Tensor) else x for x in inputs]
            _check_countable(op, op.infer(*metas, **settings))
    except (FrameworkError, TypeError, ValueError, IndexError) as better:
        error = better
    error.add_note(f"while running {call}")
    try:
        return error
    finally:
        del error  # its traceback leads here


def _check_countable(op: Any, results: Any) -> None:
    """Raise for a result that no memory holds, which kernels report in words of their own."""
    for result in results if isinstance(results, list) or type(results) is tuple else (results,):
        if isinstance(result, Meta) and math.prod(result.shape) >= 1 << 60:
            raise ValueError(f"{op.name}: the result would have shape {tuple(result.shape)}, more elements "
                             f"than any memory holds; check the sizes that were given")


def row_major(array: Any) -> Any:
    """The array in row-major order: NumPy's reductions and others lie as their transposed input did."""
    if array.ndim < 2 or array.flags.c_contiguous:
        return array
    return backends.array_module(array).ascontiguousarray(array)


def _check_devices(op: Any, inputs: Iterable) -> None:
    places = {str(x.device) for x in inputs if isinstance(x, Tensor)}
    if len(places) > 1:
        raise DeviceError(f"{op.name}: the operands are on different devices ({', '.join(sorted(places))}"
                          f"); move them to one with .to(device)")
