"""The functions that a compiled function may put off, and the code that they have while one runs.

A *door* (``_native/bind/deferral/``) stands in front of a function: it matches the call against recorded
ones, or calls the function. Functions keep their identity and get another code that calls their door, as
``ops/record/arming.py`` does it, but only while a compiled function runs: others pay nothing.

Doors are made for elementwise functions and for those that say ``deferred=`` where they are made public
(``ops/record/deferred.py``), and for their forms in place: such a call is put off as the function that it is
the form of, whose result the tensor has from there on. Everything else runs when it is called, after what was
put off before it.
"""

import inspect
import threading
from collections.abc import Callable
from functools import cache, partial
from types import CodeType, FunctionType
from typing import Any

from .. import _native, creation
from ..nn import joins, rnn, rnn_cell
from ..ops.convert import cast
from ..ops.language.elementwise import Elementwise
from ..ops.normalization import channels
from ..ops.random import dropout
from ..ops.record.deferred import InSteps
from ..ops.record.entries import behind
from ..ops.record.public import PUBLIC, Public, bare
from ..ops.sequence import attention, multihead
from ..ops.shape import split
from ..ops.shape.view import take_order, take_shape
from ..tensor import Tensor

FURTHER = (joins.linear_relu, joins.conv_then, rnn_cell.cell_step, rnn.run_sequence, channels.normed,
           dropout.dropped, cast.as_dtype, take_shape, take_order, attention.attend,
           multihead.closed)  # several functions in one call, or what others call of the records' roads
MAKERS = (creation.arange, creation.zeros, creation.ones, creation.full, creation.empty, creation.eye,
          creation.linspace)  # of no tensors: what was put off may wait
# what is told of a tensor that was put off without making it
TOLD = ("shape", "ndim", "dtype", "device", "requires_grad", "is_leaf", "is_cuda", "itemsize", "nbytes")
TOLD_CALLS = ("__len__", "size", "dim", "numel", "is_floating_point", "is_complex", "is_contiguous", "stride")

def _like(maker: Callable) -> Callable:
    """A maker of tensors like another one, without a look at its array."""
    def filled(input: Any, *fill: Any) -> Any:
        if type(input) is not Tensor or len(fill) != takes or not input.is_contiguous():
            return NotImplemented
        return maker(input.shape, *fill, dtype=input.dtype, device=input.device)
    takes = int(maker is creation.full)
    return filled


def _new(maker: Callable) -> Callable:
    """A method that makes tensors of the dtype of another one, without a look at its array."""
    def steps(input: Any, *args: Any) -> Any:
        if type(input) is not Tensor:
            return NotImplemented
        return maker(*args, dtype=input.dtype, device=input.device)
    return steps


IN_STEPS = {creation.zeros_like: _like(creation.zeros), creation.ones_like: _like(creation.ones),
            creation.full_like: _like(creation.full), creation.empty_like: _like(creation.empty),
            **{vars(Tensor)[f"new_{maker.__name__}"]: _new(maker) for maker in
               (creation.zeros, creation.ones, creation.full, creation.empty)}}

_TEMPLATE = """
def around({names}):
    def template(*args, **settings):
        door = "<door>"
        return door(args, settings)
        {names}
    return template
"""
OF_RESULTS = (Tensor.detach, split.pieces)  # put off where their tensor is: others see what was handed in
FOLLOWING = {channels.follow_: ("batch_norm", channels.followed)}  # in place, and the function that it does
questions: dict[Any, Callable] = {}  # by door: what answers for one call whether it may be put off
_doors: list[tuple[FunctionType, Any, Any, Any]] = []  # function, its door, its own code, that of the door
_lock = threading.Lock()
armed: dict[FunctionType, Any] = {}  # the rows of those that are open, for compiled functions in any thread


@cache
def _template(free: int) -> CodeType:
    names = ", ".join(f"free{i}" for i in range(free))
    space: dict[str, Any] = {}
    exec(_TEMPLATE.format(names=names), space)
    return space["around"](*[None] * free).__code__


def _add(found: dict, function: Any, name: str, kind: str, functional: Any = None) -> Any:
    function = behind(function)
    if type(function) is not FunctionType or function in found:
        return None
    own = function.__code__
    original = FunctionType(own, function.__globals__, function.__name__, function.__defaults__,
                            function.__closure__)
    original.__kwdefaults__ = function.__kwdefaults__
    original.__qualname__, original.__module__ = function.__qualname__, function.__module__
    door = _native.module.make_door(original, name, kind, behind(functional))
    found[function] = _around(function, door)
    return door


def _around(function: FunctionType, door: Any) -> tuple[FunctionType, Any, Any, Any]:
    """The row of a function whose calls are those of its door, while that is open."""
    own, code = function.__code__, _template(len(function.__code__.co_freevars))
    code = code.replace(co_consts=tuple(door if c == "<door>" else c for c in code.co_consts),
                        co_freevars=own.co_freevars, co_name=own.co_name, co_filename=own.co_filename,
                        co_firstlineno=own.co_firstlineno)
    return function, door, own, code


class InOrder:
    """In front of a function that is called in steps (``InSteps``), or by its own door."""

    kind, used, twin = "s", False, None

    def __init__(self, door: Any, steps: Callable, asks: bool, keyword: str = "") -> None:
        self.door, self.steps, self.asks, self.calls, self.keyword = door, steps, asks, 0, keyword

    def __call__(self, args: tuple, settings: dict) -> Any:
        """The call, of these arguments."""
        self.calls += 1
        if self.keyword and self.keyword not in settings:
            return self.door(args, settings)
        if not _native.module.puts_off():  # nothing is compiled here, or a mode asks for the function
            return self.door.original(*args, **settings)
        try:
            found = self.steps(*args, **settings)
        except TypeError as error:
            if error.__traceback__.tb_next is not None:  # type: ignore[union-attr]
                raise
            found = NotImplemented  # arguments that do not fit, of which the function says so itself
        if found is not NotImplemented:
            return found
        return self.door(args, settings) if self.asks else self.door.original(*args, **settings)


def _add_in_place(found: dict, p: Public, symbol: str | None) -> None:
    """The forms in place of a function that is put off; symbol: Python's method of its operator."""
    for method in p.methods:
        if not method.startswith("__"):
            _add(found, vars(Tensor).get(f"{method}_"), f"{method}_", "i", bare(p.function))
    if symbol is not None:
        _add(found, vars(Tensor).get(f"__i{symbol[2:]}"), f"{p.name}_", "i", vars(Tensor)[symbol])


def _with_twin(function: Any, door: Any, name: str) -> None:
    """Have calls of ``function`` with ``inplace=True`` go by a door of their own."""
    code = inspect.unwrap(function).__code__
    names = code.co_varnames[:code.co_argcount]
    if names and names[-1] == "inplace":
        form = partial(door.original, inplace=True)
        door.twin = _native.module.make_door(form, f"{name}_", "i", door.original)
        door.twin_at = len(names) - 1


def doors() -> list[tuple[FunctionType, Any, Any, Any]]:
    """All of them; made when the first compiled function runs."""
    if not _doors:
        with _lock:
            found: dict = {}
            symbols = {p.name: m for p in PUBLIC for m in p.methods if f"__i{m[2:]}" in vars(Tensor)}
            for p in PUBLIC:
                in_place = p.name.endswith("_") and not p.name.endswith("__")
                steps, question, keyword = p.deferred if isinstance(p.deferred, InSteps) else (
                    None, p.deferred if callable(p.deferred) else None, "")
                if p.deferred or isinstance(p.op, Elementwise) and not in_place:
                    for function in (p.function, bare(p.function), getattr(p.function, "operator", None),
                                     *[vars(Tensor).get(m) for m in (p.name, *p.methods)]):
                        function = behind(function)
                        door = _add(found, function, p.name, "d")
                        if door is not None and p.namespace == "nn.functional":
                            _with_twin(function, door, p.name)
                        if question is not None and function in found:
                            questions[found[function][1]] = question
                        if door is not None and steps is not None:
                            found[function] = _around(found[function][0], InOrder(
                                door, steps, question is not None, keyword))
                    if p.inplace and question is None:
                        _add_in_place(found, p, symbols.get(p.name))
            for function in FURTHER:
                _add(found, function, function.__name__, "d")
            for function, (name, functional) in FOLLOWING.items():
                _add(found, function, name, "i", functional)
            for function, instead in IN_STEPS.items():
                door = _add(found, function, function.__name__, "d")
                if door is not None:
                    function = behind(function)
                    found[function] = _around(function, InOrder(door, instead, False))
            for function in MAKERS:
                _add(found, function, function.__name__, "n")
            for function in OF_RESULTS:
                _add(found, function, function.__name__, "v")
            _add(found, Tensor.backward, "backward", "b")
            for name in TOLD:  # a native property asks Python's own, which it holds, where nothing is made
                getter = vars(Tensor)[name].fget
                _add(found, getattr(getter, "__self__", getter), name, "m")
            for name in TOLD_CALLS:
                _add(found, vars(Tensor)[name], name, "m")
            _doors.extend(found.values())
    return _doors


def arm(wanted: list) -> None:
    """Have these functions ask their doors until ``disarm``, in this thread."""
    _native.module.open_doors(wanted, armed)


def disarm() -> None:
    """The other end: the last one that leaves gives the functions their own code back."""
    _native.module.close_doors(armed)
