"""How operations come to choose their dtype: while a block is open, the listed functions have other code.

A function keeps being the same object under all its names, in this package and in the user's; only its
``__code__`` is another one meanwhile, which hands the call to ``_Door``. So while no thread is in a block, no
call of any operation costs more than without this file. The doors of threads that are not in a block lead
straight on.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType
from typing import Any

from .. import dtypes
from ..autograd.mode import state as recording
from ..dtypes import promote_types
from ..nn.rnn import GRU, RNNBase
from ..nn.rnn_cell import GRUCell, LSTMCell, RNNCell
from ..nn.utils.rnn import PackedSequence
from ..node import Leaf
from ..ops import PUBLIC
from ..ops.convert.cast import cast
from ..ops.sequence.rnn import gru_op, lstm_op, rnn_op
from ..tensor import Tensor, counter_of
from .lists import FLOAT32, LOWER, WIDEST, einsum_sums, pads_by_values
from .state import state

# -- one tensor -----------------------------------------------------------------------------------


def eligible(x: Any) -> bool:
    """Whether autocast may convert ``x``: a floating tensor on the CPU, but not float64."""
    if not isinstance(x, Tensor) or x.is_cuda:
        return False
    dtype = x._array.dtype
    return dtype.kind in dtypes.FLOATING and dtype.itemsize < 8


def lowered(x: Any) -> Any:
    """``x`` in the block's dtype; the cast of a weight is made once in a block."""
    if not eligible(x) or x._array.dtype == state.dtype.numpy:
        return x
    mode = recording.enabled
    if not (
        type(x._node) is Leaf
        and x._base is None
        and state.caching
        and state.depth
        and isinstance(mode, bool)
        and x._array.dtype.itemsize == 4
    ):
        return cast.run(x, dtype=state.dtype)
    counter, key = counter_of(x), (id(x), mode)
    found = state.casts.get(key)
    if found is None or found[1] != counter[0] or found[2].dtype is not state.dtype:
        found = state.casts[key] = (x, counter[0], cast.run(x, dtype=state.dtype))
    return found[2]


def widened(x: Any) -> Any:
    """``x`` in float32."""
    return cast.run(x, dtype=dtypes.float32) if eligible(x) and x._array.dtype.itemsize < 4 else x


def _each(convert: Callable, value: Any) -> Any:
    """Tensors, also those in lists and tuples, converted."""
    if type(value) in (list, tuple):
        return type(value)([_each(convert, v) for v in value])
    if isinstance(value, PackedSequence):
        return value._replace(data=convert(value.data))
    return convert(value)


# -- one call -------------------------------------------------------------------------------------


def _converting(convert: Callable) -> Callable:
    def policy(plain: Callable, args: tuple, settings: dict) -> Any:
        args = tuple([_each(convert, a) for a in args])
        return plain(*args, **{k: _each(convert, v) for k, v in settings.items()})

    return policy


def _without_out(plain: Callable, args: tuple, settings: dict) -> Any:
    """In the block's dtype, unless the result is to go into a tensor that is there."""
    return (_as_they_are if settings.get("out") is not None else _lower)(plain, args, settings)


def _as_they_are(plain: Callable, args: tuple, settings: dict) -> Any:
    return plain(*args, **settings)


def _widest(plain: Callable, args: tuple, settings: dict) -> Any:
    """In the widest dtype of the tensors that may be converted."""
    widest: Any = None
    for x in (*args, *settings.values()):
        if eligible(x):
            widest = x.dtype if widest is None else promote_types(widest, x.dtype)
    return _converting(lambda x: x.to(widest) if eligible(x) else x)(plain, args, settings)


def _pad(plain: Callable, args: tuple, settings: dict) -> Any:
    return (_float32 if pads_by_values(*args, **settings) else _as_they_are)(plain, args, settings)


def _einsum(plain: Callable, args: tuple, settings: dict) -> Any:
    return (_lower if einsum_sums(*args) else _widest)(plain, args, settings)


def _recurrent(plain: Callable, args: tuple, settings: dict) -> Any:
    """A recurrent layer or cell: its record is to choose, its input has the dtype of the weights until then.

    What mixes with a state of the input's dtype at its end comes out in that, as in PyTorch.
    """
    module, x, *rest = args
    state.on = True
    data = x.data if isinstance(x, PackedSequence) else x
    kept = data.dtype if isinstance(module, (GRU, GRUCell, LSTMCell)) and eligible(data) else state.dtype
    weights = next(module.parameters()).dtype

    def fitted(value: Any) -> Any:
        return _each(lambda t: t.to(weights) if eligible(t) else t, value)

    found = plain(module, *map(fitted, (x, *rest)), **{k: fitted(v) for k, v in settings.items()})
    return _each(lambda t: t.to(kept) if eligible(t) else t, found)


_lower, _float32 = _converting(lowered), _converting(widened)
POLICIES: dict[str, Callable] = {
    **dict.fromkeys(LOWER, _without_out),
    **dict.fromkeys(FLOAT32, _float32),
    **dict.fromkeys(WIDEST, _widest),
    "nn.functional.pad": _pad,
    "framework.einsum": _einsum,
    "nn.functional.bilinear": _as_they_are,
}


class _Door:
    """Where the calls of one function go while its other code is in place."""

    def __init__(self, function: Any, policy: Callable) -> None:
        self.function, self.policy = function, policy
        self.own: CodeType = function.__code__
        self.plain = FunctionType(
            self.own, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.plain.__kwdefaults__ = function.__kwdefaults__
        self.lent: CodeType = _hand_over.__code__.replace(
            co_freevars=self.own.co_freevars, co_name=self.own.co_name
        )
        # its own code takes no notice of a default more
        function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), "_door": self}

    def __call__(self, args: tuple, settings: dict) -> Any:
        if not state.on:
            return self.plain(*args, **settings)
        state.on = False  # what the operation calls is part of it
        try:
            return self.policy(self.plain, args, settings)
        finally:
            state.on = True


def _hand_over(*args: Any, _door: _Door, **settings: Any) -> Any:
    return _door(args, settings)


# -- all of them ----------------------------------------------------------------------------------


def _doors() -> Iterator[_Door]:
    known: set[Any] = set()
    for p in PUBLIC:
        policy = POLICIES.get(f"{p.namespace}.{p.name}")
        if policy is None:
            continue
        function: Any = p.function
        inner = _innermost(function)
        if inner not in known:
            yield _Door(inner, policy)
        if policy is _without_out and hasattr(function, "without_out") and function not in known:
            yield _Door(function, _outer)
        for method in p.methods if p.inplace else ():
            yield _Door(getattr(Tensor, f"{method}_"), _as_they_are)
        known |= {inner, function}
    for kind in (RNNBase, RNNCell, LSTMCell, GRUCell):
        yield _Door(kind.forward, _recurrent)


def _run_lowered(op: Any, *inputs: Any, **settings: Any) -> Any:
    """``run`` of the records that recurrent layers end in."""
    return op.road(*(map(lowered, inputs) if state.on else inputs), **settings)


def _outer(plain: Callable, args: tuple, settings: dict) -> Any:
    """Of the function around one, that takes ``out=``: without it the inner one is to choose."""
    if settings.get("out") is None:
        state.on = True
    return plain(*args, **settings)


def _innermost(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


_lock = threading.Lock()
_count = 0  # threads in which autocast is on
_all: list[_Door] = []


def switch(by: int) -> None:
    """One thread more (1) or less (-1) in which autocast is on."""
    global _count
    with _lock:
        before, _count = _count, _count + by
        if not before or not _count:
            if not _all:
                _all.extend(_doors())
            for door in _all:
                door.function.__code__ = door.lent if _count else door.own
            for op in (rnn_op, lstm_op, gru_op):
                if _count:
                    op.run = partial(_run_lowered, op)  # type: ignore[method-assign]
                else:
                    del op.run
