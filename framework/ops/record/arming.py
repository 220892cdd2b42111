"""Functions that ask the classes of their arguments (``torch_function.py``), once one may answer.

A function asks nobody while no tensor of a class with ``__torch_function__`` was ever made: the first one
arms the functions of the package. Each keeps its identity (programs compare ``func is torch.add``, and hold
functions in tables) and gets another code object, which looks at the classes of its arguments and then goes
on as before. So a program of plain tensors pays nothing, not even a test.

Why another code object, where autocast and interceptors need none? What is to be asked is the *public*
function with the arguments as they came, so neither the road of a call nor a record can do it: ``F.linear``
must be seen, and not the product in it, and what a function does before it comes to a record (other
operands computed, numbers drawn) must not have happened. And what is held anywhere must be what asks. There
remain, measured on a call of 41 ns: a test at the beginning of each of the nine hundred functions, 3 ns and
a line by hand in each; a function around each, 28 ns with its arguments spelt out and 100 ns with
``*args``; an object in C around each, 29 ns (those that there are, see ``entries.py``, ask a function whose
code was replaced), and none without the extension. Classes of their own
(methods put on the subclass) would ask in ``x.add``, and neither in ``torch.add(x)`` nor in
``Tensor.add(x)``.

What this way keeps, and ``tests/test_torch_function.py`` holds: identity, name, docstring, signature,
source and lines for tracebacks and debuggers (the code says the file and line of the original, and calls
that), pickling by name, ``super().add(...)``. A thread that is inside a function goes on with the code that
it has; functions are armed one by one before the first such tensor is handed out, so no thread meets one
earlier. It costs a call of plain tensors a quarter of a microsecond from then on, and is never taken back:
who holds such a tensor is not known.

Properties (``x.shape``, ``x.grad``) are looked up on the class, so a subclass that overrides functions
gets ones of its own, which hand over ``Tensor.shape.__get__``; those of plain tensors stay as they are,
also under a mode.
"""

import threading
import weakref
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from ...tensor import Tensor, counter_of, hand_out, set_node, wrap
from .entries import behind
from .public import PUBLIC, bare
from .torch_function import PLAIN, ask, at_first, default, disabled, modes_open, state

FURTHER: list[Any] = []  # functions that are made public elsewhere (``creation.py``, ``from_data.py``)
ITS_OWN = frozenset((  # what Python and other libraries ask of any object is the class's own
    "__new__", "__hash__", "__reduce_ex__", "__copy__", "__array_namespace__", "__array_ufunc__",
    "__array_function__", "__dlpack__", "__dlpack_device__"))
# the method that an operator is handed over as: those who answer compare ``func`` with methods by name
AS_METHODS = {"__matmul__": "matmul", "__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul",
              "__rmul__": "mul", "__truediv__": "div", "__mod__": "remainder", "__neg__": "neg",
              "__invert__": "bitwise_not", "__eq__": "eq", "__ne__": "ne",
              "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__iadd__": "add_",
              "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_"}
armed: list[bool] = []
_lock = threading.Lock()


_TEMPLATE = """
def around({names}):
    def template(*args, **settings):
        plain = "<plain>"  # constants, which ``_coded`` replaces
        modes = "<modes>"
        original = "<original>"
        hand = "<hand>"
        if settings or modes[0]:
            return hand(args, settings)
        for x in args:
            if type(x) not in plain:
                return hand(args, settings)
        return original(*args)
        {names}
    return template
"""


@cache
def _template(free: int) -> CodeType:
    """The code for functions with so many variables of an outer function.

    It has to name as many itself: only then Python copies them into the frame, where whoever looks at its
    locals (a debugger, say) follows them.
    """
    names = ", ".join(f"free{i}" for i in range(free))
    space: dict[str, Any] = {}
    exec(_TEMPLATE.format(names=names), space)
    return space["around"](*[None] * free).__code__


def _coded(function: FunctionType, original: FunctionType, known_as: FunctionType) -> CodeType:
    def hand(args: tuple, settings: dict) -> Any:
        result = ask(known_as, (*args, *settings.values()), args, settings)
        return original(*args, **settings) if result is NotImplemented else result

    values = {"<plain>": PLAIN, "<modes>": modes_open, "<original>": original, "<hand>": hand}
    own = function.__code__
    code = _template(len(own.co_freevars))
    constants = tuple(values.get(c, c) if isinstance(c, str) else c for c in code.co_consts)
    return code.replace(co_consts=constants, co_freevars=own.co_freevars, co_name=own.co_name,
                        co_filename=own.co_filename, co_firstlineno=own.co_firstlineno)


def _arm(function: FunctionType, known_as: FunctionType) -> None:
    original = FunctionType(function.__code__, function.__globals__, function.__name__,
                            function.__defaults__, function.__closure__)
    original.__kwdefaults__ = function.__kwdefaults__
    original.__dict__.update(function.__dict__)
    original.__qualname__, original.__module__ = function.__qualname__, function.__module__
    original.__doc__, original.__annotations__ = function.__doc__, function.__annotations__
    function.__code__ = _coded(function, original, known_as)
    if not hasattr(function, "__wrapped__"):
        function.__wrapped__ = original  # type: ignore[attr-defined]  # where inspect finds the arguments


def arm() -> None:
    """Let the functions ask the classes of their arguments from here on."""
    if not armed:
        with _lock:
            methods = vars(Tensor)
            names = {methods[operator]: methods[name] for operator, name in AS_METHODS.items()}
            for function in {} if armed else functions():
                _arm(behind(function), names.get(function, function))
            armed.append(True)


at_first.append(arm)


def arm_for(cls: type) -> None:
    """``arm`` if this class overrides functions, and let its properties ask."""
    own = getattr(cls, "__torch_function__", disabled)
    if own is disabled or cls is Tensor:
        return
    if not armed:
        arm()
    if cls not in _with_properties:
        with _lock:
            _give_properties(cls, getattr(own, "__func__", None) is not default)
            _with_properties.add(cls)


_with_properties: weakref.WeakSet[type] = weakref.WeakSet()


def _give_properties(cls: type, all_of_them: bool) -> None:
    """Properties of ``cls`` that ask, in place of those of Tensor; what the class defines itself stays.

    Without a ``__torch_function__`` of its own only ``data`` needs one, whose result is to be of the class:
    others give no tensors, or are functions, which ask.
    """
    for name, value in list(vars(Tensor).items()):
        hidden = name.startswith("_") and name not in ("_base", "_version")
        if not isinstance(value, property) or hidden:
            continue
        if not (all_of_them or name == "data"):
            continue
        if next(base for base in cls.__mro__ if name in vars(base)) is Tensor:
            setattr(cls, name, _asking(value))


def _asking(original: property) -> property:
    """The property, asking first by ``Tensor.<name>.__get__``, ``__set__`` and ``__delete__``."""
    def through(accessor: Callable, asked: Any) -> Callable:
        def ask_first(self: Any, *value: Any) -> Any:
            if state.off:
                return accessor(self, *value)
            result = ask(asked, (self, *value), (self, *value), {})
            return accessor(self, *value) if result is NotImplemented else result
        return ask_first
    get: Any = original.fget
    write, delete = original.fset, original.fdel
    return property(through(get, original.__get__), write and through(write, original.__set__),
                    delete and through(delete, original.__delete__), original.__doc__)


def functions() -> list[Any]:
    """All functions and methods that ask the classes of their arguments, once each."""
    found: list[Any] = []
    for p in PUBLIC:
        found += [p.function, bare(p.function)]
    for name, value in vars(Tensor).items():
        if not name.startswith("_") or name.startswith("__") and name not in ITS_OWN:
            found.append(value)
    return list({id(f): f for f in [*found, *FURTHER]
                 if type(behind(f)) is FunctionType}.values())


def subclass(x: Tensor, cls: type) -> Any:
    """``x`` as a tensor of ``cls``: the same memory, place in the graph, and knowledge of its base."""
    arm_for(cls)
    hand_out(x)
    result = wrap(x._array, cls)
    result._counter = counter_of(x)
    set_node(result, x._node)
    more = x._more
    if more is not None and more.base is not None:
        result._more = more
        views = more.base._extras().views
        if views is not None:
            views.append(weakref.ref(result))
    return result
