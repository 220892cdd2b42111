"""The road of a call: the one place where a call runs a kernel, and where its result becomes a tensor.

Frequent calls take a short form of it, in which tests are left out whose answers are known beforehand.
Those forms are not written by hand: ``shortened.py`` says what is known, and ``short_roads.py`` is made of
that. They save an addition of small tensors 16 % of its instructions; each function that would be called on
the way costs 7 %.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ... import backends, dtypes
from ...autograd.forward import track
from ...autograd.mode import state
from ...backends.native import native_or
from ...dtypes import INEXACT
from ...errors import DeviceError, FrameworkError, add_note, kind_of
from ...node import Pick
from ...quiet import is_interrupted, quiet, readable, unsaved
from ...seam import OP, Event, intercepted
from ...tensor import Tensor, as_array, wrap
from .aliases import link_view
from .meta import Meta, describe_call, meta

ndarray = np.ndarray
NEVER = 99  # more dimensions than an array has
NUMBERS = (int, float, bool, complex, np.generic, type(None))
new = object.__new__


class Declined(Exception):
    """What a call raises whose kernel leaves it to other ops: it has answered NotImplemented."""


def road(op: Any, inputs: tuple, arrays: Any, settings: dict, recorded: bool,
         given: Callable | None = None) -> Any:
    """The tensor, or the tuple of them, that ``op`` makes of ``inputs``, whose arrays are ``arrays``.

    recorded: whether an input is in a graph; then the result gets a node, if the thread records. given: what
    runs the kernel of a call that the interceptors have seen already.
    """
    run = given or quiet.run
    if run is None:
        return intercepted(Event(OP, op, inputs, settings), op.passed)
    try:
        kernel = op.cpu if dtypes.plain else op.kernel_for(arrays)
        out = run(kernel, *arrays, **settings) if settings else run(kernel, *arrays)
    except Exception as error:
        out = after(error, op, inputs, arrays, settings)
    if type(out) is not ndarray:
        if len(op.outputs) > 1:
            return _finish_many(op, inputs, arrays, out, settings, recorded)
        if out is NotImplemented:
            raise Declined
        out = as_array(out)
    bare = op.bare
    if not bare and out.ndim >= op.loose_from and not out.flags.c_contiguous:
        out = row_major(out)
    result = new(Tensor)  # ``wrap``, written out: this runs for every call
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


def _finish_many(op: Any, inputs: tuple, arrays: Any, outs: Iterable, settings: dict,
                 recorded: bool) -> tuple:
    if outs is NotImplemented:
        raise Declined
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


def after(error: Exception, op: Any, inputs: tuple, arrays: Any, settings: dict, as_it_is: Any = ()) -> Any:
    """After a failure: the kernel's result, if all that was wrong is that another kernel was interrupted for
    this call; otherwise raise what was wrong.

    as_it_is: kinds of errors that are raised as they are, since the caller handles them.
    """
    try:
        if isinstance(error, as_it_is):
            raise error
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
    add_note(error, f"while running {call}")
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
    if type(array) is np.ndarray:
        return _in_rows(array)
    with backends.on_device(array):
        return backends.array_module(array).ascontiguousarray(array)


_in_rows = native_or("contiguous", np.ascontiguousarray)


def _check_devices(op: Any, inputs: Iterable) -> None:
    places = {str(x.device) for x in inputs if isinstance(x, Tensor)}
    if len(places) > 1:
        raise DeviceError(f"{op.name}: the operands are on different devices ({', '.join(sorted(places))}"
                          f"); move them to one with .to(device)")
