"""Writing into a tensor: the one way that every in-place form, assignment and ``copy_`` takes.

An in-place op is its functional form followed by ``write``: the values go into the tensor's memory,
its version is bumped, and it takes the result's place in the graph. If the tensor is a view, its base
gets a node that puts the new values into the old base, and every live view is replayed from it.
"""

import math
from collections.abc import Callable
from functools import partial, wraps
from operator import setitem
from typing import Any

import numpy as np

from ... import _native, dtypes
from ...autograd.forward import is_recorded
from ...autograd.mode import state
from ...autograd.written import move_to, replay_views
from ...backends import array_module, on_device
from ...backends.native import copied, native_or
from ...dtypes import FLOATING, INEXACT, can_cast
from ...errors import DTypeError, LayoutError, ShapeError
from ...node import Node
from ...quiet import quiet, quietly, readable
from ...seam import WRITE, Event, intercepted, settled
from ...sparse_door import is_sparse, sparse
from ...tensor import Tensor, bump, counter_of, keep_result, wrap
from ..convert.cast import cast, from_array, to
from ..convert.memory_format import preserved_op
from ..language.elementwise import Elementwise
from ..record.aliases import overlaps_itself
from ..record.args import tensor_arg
from ..record.batched import Batched, aligned, any_batched, call, check_holds, everywhere, leading, looped
from ..record.constants import like, raw
from ..record.entries import FUNCTION, KEPT, TRUTH, WHOLE, entered_form
from ..record.into import (
    Call,
    count_if_begun,
    form_into,
    guard,
    has_begun,
    is_declined,
    memory_of,
    native_into,
    run_in_python,
)
from ..record.op import Meta, Op
from ..record.public import public
from ..record.road import NEVER
from ..record.short_roads import road_into
from ..shape.broadcast import broadcast_shape, sum_to


def write(x: Tensor, value: Tensor, name: str) -> Tensor:
    """Put ``value`` (same shape, any dtype that fits) into ``x``, under autograd."""
    if _taken_over(x, value, name) is x or _put_into(x, value, name) is x:
        return x
    memory, array = x._array, value._array
    if array.shape != memory.shape:
        raise ShapeError(f"{name}: the result has shape {list(value.shape)}, which does not fit into a "
                         f"tensor of shape {list(x.shape)} in place; use the out-of-place form")
    alike = array.dtype == memory.dtype
    if not alike and not can_cast(value.dtype, x.dtype):
        raise DTypeError(f"{name}: the result is {value.dtype}, which does not fit into a tensor of "
                         f"{x.dtype} in place; convert the tensor first")
    guard(x, name)
    if not alike:
        value = cast.run(value, dtype=x.dtype)
    if quiet.run is None:
        return intercepted(Event(WRITE, fill_op, (x, value), {}, x), partial(_take, name))
    return _take(name, x, value)


def _take(name: str, x: Tensor, value: Tensor) -> Tensor:
    """``write`` of a value that fits."""
    store(x, Ellipsis, value._array, name)
    if state.enabled:
        adopt(x, value._node)
    return x


_LARGE = 1 << 18  # elements that are worth more than one thread


# a number, or elements of one dtype that broadcast, into memory of their own; else False, and nothing done
_copied_over = native_or("copy_over", lambda array, memory: False)
_BASIC = (slice, int, type(None), type(Ellipsis))


def _part(memory: Any, key: Any) -> Any:
    """The part of ``memory`` that ``key`` means, if that is a view in which many elements are written."""
    if key is Ellipsis:
        return memory
    if type(key) is not tuple or not all(type(k) in _BASIC for k in key):
        return None
    part = memory[key]
    return part if type(part) is np.ndarray else None


def store(x: Tensor, key: Any, array: Any, name: str) -> None:
    """Write into the memory of ``x`` and count the change; the graph is not touched."""
    memory = x._array
    if type(memory) is not np.ndarray or not memory.flags.writeable:
        memory = memory_of(x, name)
    if not dtypes.plain and (type(memory) is Batched or type(array) is Batched):
        check_holds(memory, array, name)
    if isinstance(memory, np.ndarray) or not x.is_cuda:
        try:
            part = None
            if (key is Ellipsis or memory.size >= _LARGE) and type(memory) is np.ndarray:
                part = _part(memory, key)
            if part is None or not quietly(_copied_over, array, part):
                quietly(setitem, memory, key, array)
            bump(x, name)
        except BaseException as error:
            count_if_begun(x, name, error)
            if isinstance(error, OverflowError):
                raise readable(error, name) from None
            raise
    else:
        with on_device(memory):
            if hasattr(array, "base") and array_module(memory).may_share_memory(memory, array):
                array = array.copy()  # NumPy takes care of overlap, CuPy does not
            try:
                memory[key] = array
            except OverflowError as error:
                raise readable(error, name) from None
        bump(x, name)


def adopt(x: Tensor, node: Any) -> None:
    """Give ``x`` this place in the graph, and its base and views theirs; its memory is written already."""
    base = x._base
    if base is None:
        if node is None and x._node is None:
            return
        enters = not is_recorded(x._node)
        move_to(x, node)
        replay_views(x, enters)
        return
    if node is None and base._node is None:
        return
    enters, place_of_value = not is_recorded(base._node), node
    more: Any = x._more
    settings = {"shape": base.shape, "chain": more.chain}
    if state.enabled is True:
        node = Node(put_view, (base._node, node), None, None, settings, None)
    else:
        result = wrap(base._array)
        put_view.record((base, wrap(x._array, node=node)), [base._array, x._array], result, settings)
        node = result._node
    move_to(base, node)
    replay_views(base, enters)
    if x._node is None and place_of_value is not None:  # a constant until now, which is written at last
        move_to(x, place_of_value)
        base._more.followed = True  # type: ignore[union-attr]


# -- a view's new values, seen from its base -----------------------------------------------------


def _follow(x: Any, chain: tuple) -> Any:
    for op, settings in chain:
        x = op(x, **settings)
    return x


def _write_part(xp: Any, out: Any, chain: tuple, value: Any) -> Any:
    part = _follow(out, chain)
    if part.size == 0:
        return out
    if (part.base is out or xp.may_share_memory(part, out)) and (xp is not np or part.flags.writeable):
        part[...] = value
    else:  # the chain was a view in the base's memory layout only, or has elements twice
        places = _places(xp, out.shape, chain)
        mine = places >= 0
        out.reshape(-1)[places[mine]] = xp.broadcast_to(xp.asarray(value), places.shape)[mine]
    return out


def _places(xp: Any, shape: tuple[int, ...], chain: tuple) -> Any:
    """Where in a tensor of this shape lies what the view shows; -1 for memory around it that is another's."""
    return _follow(xp.arange(1, math.prod(shape) + 1).reshape(shape), chain) - 1


def _taken(g: Any, chain: tuple) -> Any:
    """The gradient of what was written: of values for one place only the one that was left there has any."""
    if type(g) is np.ndarray and overlaps_itself(g):  # a sum's: not what the chain makes of memory
        g = copied(g)
    part = _follow(g, chain)
    if not hasattr(raw(part), "strides") or not overlaps_itself(raw(part)):
        return part
    xp, shape = array_module(raw(g)), raw(g).shape
    places = _places(xp, shape, chain).reshape(-1)
    order = xp.arange(places.size)
    last = xp.zeros(math.prod(shape) + 1, "int64")  # one more, for what is not in it
    last[places] = order
    return part * like(part, lambda xp, dtype: (last[places] == order).reshape(part.shape).astype(dtype))


def _put_view_kernel(xp: Any, x: Any, value: Any, *, shape: tuple[int, ...], chain: tuple,
                     part: Any = None) -> Any:
    order = "K" if chain[0][0].strided else "C"  # a view of the memory is one of a copy that lies alike
    return _write_part(xp, xp.array(x, copy=True, order=order), chain, value)


def _cut_view_kernel(xp: Any, x: Any, *, chain: tuple) -> Any:
    return _write_part(xp, xp.array(x, copy=True, order="C"), chain, 0)


def batch_put_view(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule of put_view and cut_view for batches: the places of the part are looked up once for all."""
    x = everywhere(size, arrays[:1], batched)[0]
    if any_batched(arrays):  # of an outer batch, too
        return looped(op, size, arrays, batched, settings, warn=False)
    out = np.array(x, copy=True, order="C").reshape(size, math.prod(x.shape[1:]))
    places = _places(np, x.shape[1:], settings["chain"])
    value: Any = 0
    if len(arrays) > 1:
        value = np.broadcast_to(aligned([arrays[1], places], (batched[1], False))[0], (size, *places.shape))
        value = value.reshape(size, places.size)[:, places.reshape(-1) >= 0]
    out[:, places[places >= 0]] = value
    return out.reshape(x.shape)


cut_view = Op("cut_view", "x", kernel=_cut_view_kernel, cpu=partial(_cut_view_kernel, np),
              rounded=partial(_cut_view_kernel, np), jvp="linear",
              infer=lambda x, *, chain: x, batch=batch_put_view,
              vjp={"x": lambda g, chain: cut_view(g, chain=chain)})
_put_part = native_or("put_view", partial(_put_view_kernel, np))  # which moves numbers of 16 bits as they are
# part: the view that the chain leads to, where it is known and nothing recorded
put_view = Op("put_view", "x value", batch=batch_put_view, masks=True, kernel=_put_view_kernel, jvp="linear",
              native="put_view", cpu=_put_part, rounded=_put_part, loose_from=NEVER,
              infer=lambda x, value, **_: x,
              vjp={"x": lambda g, chain: cut_view(g, chain=chain),
                   "value": lambda g, chain: _taken(g, chain)})


_copied_into, _filled_with = native_into("copy"), native_into("fill")
_taken_over, _put_into = native_into("fitting"), native_into("result")
if hasattr(_native.module, "set_up_recorded"):
    _native.module.set_up_recorded(preserved_op, keep_result)
    _native.module.set_up_forms(write)
_filled_array = getattr(_native.module, "filled_array", lambda x, number: NotImplemented)

# -- copy_, fill_, zero_ -------------------------------------------------------------------------


def _overwrite_kernel(xp: Any, x: Any, value: Any) -> Any:
    if xp is np and type(value) in (int, float) and (found := _filled_array(x, value)) is not NotImplemented:
        return found
    out = xp.empty_like(x)
    if xp is not np or not _copied_over(value, out):
        out[...] = value
    return out


def _overwrite_infer(x: Meta, value: Any) -> Meta:
    shape = getattr(value, "shape", ())
    if broadcast_shape((x.shape, shape), "copy_") != x.shape:
        raise ShapeError(f"copy_: a source of shape {list(shape)} does not broadcast to {list(x.shape)}")
    return x


def batch_fill(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches; the value broadcasts to what it fills."""
    x, value = everywhere(size, arrays[:1], batched)[0], arrays[1]
    return call(op, x, *aligned([value, x], (batched[1], True))[:1])


def _zeros(x: np.ndarray) -> np.ndarray:
    found = _filled_array(x, 0)
    return np.zeros_like(x) if found is NotImplemented else found


zero_op = Op("zero", "x", onnx="filled(x, 0)", runtime="filled(x, 0)",
             kernel=lambda xp, x: xp.zeros_like(x), cpu=_zeros, rounded=_zeros, infer=lambda x: x,
             jvp="linear", batch=leading, loose_from=NEVER,
             vjp={"x": lambda g: zero_op(g)})
# the old values get a gradient of zero, not none: the tensor goes on requiring grad
fill_op = Op("fill", "x value", onnx="filled(x, value)", runtime="filled(x, value)",
             masks=True, kernel=_overwrite_kernel, cpu=partial(_overwrite_kernel, np),
             rounded=partial(_overwrite_kernel, np),
             infer=_overwrite_infer, jvp="linear",
             batch=batch_fill, loose_from=NEVER,
             vjp={"x": lambda g: zero_op(g), "value": lambda g, value_shape: sum_to(g, size=value_shape)})


def overwrite(x: Tensor, key: Any, value: Any, op: Op, inputs: tuple, settings: dict, name: str) -> Tensor:
    """``x[key] = value`` in memory, recorded as ``op(*inputs, **settings)``, x being inputs[0]."""
    if x._node is not None or x._base is not None:
        guard(x, name)
    if quiet.run is None:
        return intercepted(Event(WRITE, op, inputs, settings, x), lambda *inputs, **settings: _overwritten(
            inputs[1], key, op, name, inputs, settings))
    return _overwritten(value, key, op, name, inputs, settings)


def _overwritten(value: Any, key: Any, op: Op, name: str, inputs: tuple, settings: dict) -> Tensor:
    """``overwrite`` where it is allowed."""
    x = inputs[0]
    node = None
    mode = state.enabled
    if mode and x._array.dtype.kind in INEXACT and (x._node is not None or any(
            isinstance(i, Tensor) and i._node is not None for i in inputs[1:])):
        arrays = [i._array if isinstance(i, Tensor) else i for i in inputs]
        result = wrap(x._array)
        result._counter = counter_of(x)
        op.record(inputs, arrays, result, settings)
        node = result._node
    array = value._array if isinstance(value, Tensor) else value
    if not dtypes.plain and state.batches:  # the rule knows where each example's values go
        given = [i._array if isinstance(i, Tensor) else i for i in inputs]
        if any_batched(given):
            key, array = Ellipsis, call(op, *given, **settings)
    store(x, key, array, name)
    if mode:
        adopt(x, node)
    return x


def fitted(x: Tensor, value: Tensor) -> Tensor:
    """``value`` in the dtype and on the device of ``x``."""
    if type(value._array) is not np.ndarray or type(x._array) is not np.ndarray:
        value = to(value, device=x.device)
    return value if value._array.dtype == x._array.dtype else cast.run(value, dtype=x.dtype)


def _as_held(array: Any, number: Any) -> Any:
    """A number with a fraction as the whole one that it becomes in such an array, if that holds it."""
    if type(number) is not float or array.dtype.kind not in "iu":
        return number
    signed = array.dtype.kind == "i"
    most = 1 << (8 * array.dtype.itemsize - signed)
    return int(number) if (-most if signed else 0) <= number < most else number


@public("", method=True, op=fill_op)
def copy_(input: Tensor, other: Tensor | complex, non_blocking: bool = False) -> Tensor:
    """Write the elements of ``other``, or a number, broadcast and converted, into this tensor; returns it.

    Gradients flow to ``other`` and no longer to the old values. Raises ShapeError if ``other`` does not
    broadcast to this tensor's shape, AutogradError for a leaf that requires grad.

    >>> fw.zeros(2, 2).copy_(fw.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if _copied_into(input, other, "copy_") is input:
        return input
    if type(other) in (int, float) and _filled_with(input, _as_held(input._array, other), "copy_") is input:
        return input
    if isinstance(other, (int, float, complex)):
        other = from_array(np.asarray(other), input)
    tensor_arg(other, "copy_", "other")
    if other._array.shape != input._array.shape:
        _overwrite_infer(Meta(input.shape, input.dtype), other)
    if other is input:
        guard(input, "copy_")
        return input
    other = fitted(input, other)
    return overwrite(input, Ellipsis, other, fill_op, (input, other), {}, "copy_")


def scalar_arg(x: Tensor, value: Any, op: str) -> Any:
    """``value`` as a number, or as a 0-dim tensor fitted to ``x``."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise ShapeError(f"{op}: value must be a number or a 0-dim tensor, got shape "
                             f"{list(value.shape)}")
        return fitted(x, value)
    if not isinstance(value, (int, float, complex, np.generic)):
        raise TypeError(f"{op}: value must be a number or a 0-dim tensor, got {type(value).__name__}")
    if isinstance(value, complex) and x._array.dtype.kind != "c":
        raise DTypeError(f"{op}: a complex number does not fit a tensor of {x.dtype}")
    return _as_held(x._array, value)


@public("", method=True, op=fill_op)
def fill_(input: Tensor, value: Any) -> Tensor:
    """Set every element of this tensor to ``value``, a number or a 0-dim tensor; returns it.

    Raises AutogradError for a leaf that requires grad.

    >>> fw.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if _filled_with(input, value, "fill_") is input:
        return input
    value = scalar_arg(input, value, "fill_")
    if type(value) in (int, float) and _filled(input, value, "fill_"):
        return input
    return overwrite(input, Ellipsis, value, fill_op, (input, value), {}, "fill_")


@public("", method=True, op=fill_op)
def zero_(input: Tensor) -> Tensor:
    """Set every element of this tensor to 0; returns it.

    >>> fw.ones(2).zero_()
    tensor([0., 0.])
    """
    if _filled_with(input, 0, "zero_") is input or _filled(input, 0, "zero_"):
        return input
    return overwrite(input, Ellipsis, 0, fill_op, (input, 0), {}, "zero_")


def _filled(x: Tensor, value: Any, name: str) -> bool:
    """Set every element of ``x`` to a number at once; False, and nothing done, where this is to be recorded,
    say."""
    try:
        memory = x._array
        if x._node is not None or x._base is not None or quiet.run is None or type(memory) is not np.ndarray \
                or memory.size >= _LARGE:
            return False
        quietly(memory.fill, value)
        bump(x, name)
    except BaseException as error:
        if isinstance(error, (LayoutError, OverflowError, ValueError)) and not has_begun(error):
            return False  # ``overwrite`` takes sparse tensors, or says what was wrong
        count_if_begun(x, name, error)
        raise
    return True


@public(op=fill_op)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like ``input`` with every element ``value``, a number or a 0-dim tensor.

    >>> fw.fill(fw.zeros(2), 3)
    tensor([3., 3.])
    """
    return fill_op.run(input, scalar_arg(tensor_arg(input, "fill"), value, "fill"))


# -- the derived forms ---------------------------------------------------------------------------


def _wants(op: Op, kind: str, place: int, inputs: tuple) -> bool:
    """Whether backward wants that input or output of a call, given where it leads."""
    if op.joint is not None or op.variadic:
        return not op.keeps_nothing
    recorded = [isinstance(other, Tensor) and other._node is not None for other in inputs]
    return any(s[1] == kind and s[2] == place
               for leads, sources in zip(recorded, op.wanted) if leads for s in sources)


def recorded_into(x: Tensor, call: Call, name: str) -> bool:
    """Whether a call that is recorded has been computed into ``x``; if not, nothing has changed.

    It is where nothing is promoted. What backward wants of ``x`` is copied first; a result that it wants is
    written beside the memory of ``x``, which may be changed again.
    """
    op, inputs, settings = call
    array, run = x._array, quiet.run
    if state.enabled is not True or run is None or not dtypes.plain or type(array) is not np.ndarray \
            or not array.flags.writeable or len(op.outputs) > 1 \
            or array.dtype.kind not in FLOATING or array.dtype.kind not in op.writes:
        return False
    for other in inputs:
        if type(other) is Tensor:
            if type(other._array) is not np.ndarray or other._array.dtype is not array.dtype \
                    or other._array.shape != array.shape:
                return False
        elif type(other) not in (float, int):
            return False
    guard(x, name)
    if any(_wants(op, "in", i, inputs) for i, other in enumerate(inputs) if other is x):
        source = wrap(preserved_op(array), node=x._node)
        inputs = tuple([source if other is x else other for other in inputs])
    if _wants(op, "out", 0, inputs):
        write(x, op.run(*inputs, **settings), name)
        return True
    arrays = [other._array if isinstance(other, Tensor) else other for other in inputs]
    try:
        road_into(op, inputs, arrays, array, settings, run)
        bump(x, name)
    except BaseException as error:
        if is_declined(error):
            return False
        count_if_begun(x, name, error)
        raise
    result = wrap(array)
    if any(isinstance(other, Tensor) and other._node is not None for other in inputs):
        op.record(inputs, arrays, result, settings)
    adopt(x, result._node)
    return True


def _kept_whole(x: Tensor, name: str) -> bool:
    """Whether ``x`` is of whole numbers, which a function leaves as they are: the change is only counted."""
    if type(x) is not Tensor or x._array.dtype.kind not in "iu" or quiet.run is None:
        return False
    memory_of(x, name)  # which says whether it may be written
    bump(x, name)
    return True


def _some_recorded(values: Any) -> bool:
    for x in values:  # noqa: SIM110 - a generator would take twice as long
        if isinstance(x, Tensor) and x._node is not None:
            return True
    return False


def inplace(function: Callable, name: str, op: Op | None, call: Callable | None = None,
            first: bool | Callable = True) -> Callable:
    """The in-place form ``name_`` of a public function whose first argument is the tensor; see ``public``."""
    method = f"{name}_"
    own = op if isinstance(op, Elementwise) else None
    straight = own is not None and not own.settings and len(own.inputs) <= 2 \
        and (call is None or getattr(call, "as_it_comes", False))  # where a call may be one of the record
    writes, others = (own.writes, len(own.inputs) - 1) if own is not None else ("", 0)
    whole = own is not None and own.whole
    if whole:
        writes = writes.replace("i", "").replace("u", "")  # which are left as they are
    narrows = own is not None and own.result == "real"
    keeps_nothing = own is not None and own.result not in ("bool", "integer", "select") and own.keeps_nothing

    def direct(x: Tensor, *args: Any, **kwargs: Any) -> Call | None:
        alone = not kwargs and len(args) == len(own.inputs) - 1  # type: ignore[union-attr]
        return (own, (x, *args), {}) if alone else None

    plan = call or (direct if own is not None and not own.settings else None)

    @wraps(function)
    def form(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(x, Tensor):
            tensor_arg(x, method)
        if callable(first) and first(x, *args, **kwargs) is x:
            return x
        if whole and not args and not kwargs and _kept_whole(x, method):
            return x
        if narrows and x.is_complex():
            raise DTypeError(f"{method}: the result is real, and this tensor {x.dtype}; use {name}()")
        if plan is not None:
            way = plan(x, *args, **kwargs)
            if way is not None and form_into(way[0], x, way[1], way[2], way[0].writes, method) is x:
                return x
            try:
                if way is not None and (run_in_python(x, way, method) or recorded_into(x, way, method)):
                    return x
            except LayoutError:  # an operand is sparse, and has no array
                result = function(x, *args, **kwargs)
                return write(x, sparse().to_dense(result) if is_sparse(result) else result, method)
        source = x
        if quiet.run is None:
            settled((x,))
        if state.enabled and not keeps_nothing and (
                x._node is not None or _some_recorded(args) or kwargs and _some_recorded(kwargs.values())):
            guard(x, method)
            source = wrap(preserved_op(x._array), node=x._node)  # what backward keeps must survive the write
            args = tuple([source if a is x else a for a in args])
            kwargs = {k: source if a is x else a for k, a in kwargs.items()}
        result = function(source, *args, **kwargs)
        return result if result is NotImplemented else write(x, result, method)

    form.__name__ = form.__qualname__ = method
    form.__doc__ = f"``{name}`` in place: writes into this tensor and returns it."
    if straight:
        rule = WHOLE if whole else TRUTH if own.result == "bool" else 0  # type: ignore[union-attr]
        return entered_form(form, own, writes, method, others + 1, None, rule)
    if plan is None and callable(first):
        return form
    if plan is None:
        return entered_form(form, None, None, method, 0, function, FUNCTION)
    if getattr(plan, "keeps_whole", False):
        return entered_form(form, None, None, method, 0, plan, KEPT)
    rule = WHOLE if whole or narrows else 0
    behind = None if rule or callable(first) or plan is direct else function
    return entered_form(form, None, None, method, 0, plan, rule, behind)
