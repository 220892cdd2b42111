"""Objects that override functions: what PyTorch's programs ask about ``__torch_function__``.

A class, a subclass of Tensor or not, with ``__torch_function__(cls, func, types, args=(), kwargs=None)`` is
handed every function and method that gets one of its objects: ``func`` is the public function, ``types`` the
classes that override functions. Results of functions on a subclass without one of its own are of the
subclass.
Properties come as ``Tensor.shape.__get__``, as in PyTorch; those of plain tensors do not, also under a mode.
"""

import sys
from collections.abc import Callable
from functools import wraps
from types import FunctionType, TracebackType
from typing import Any

from . import creation, from_data
from .config.listing import own as _own
from .ops.record.arming import arm, functions
from .ops.record.entries import behind
from .ops.record.public import PUBLIC
from .ops.record.torch_function import UNWRAPPED, ask, modes_open, state
from .ops.record.torch_function import DisableTorchFunction as DisableTorchFunction
from .ops.record.torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from .ops.record.torch_function import handle_torch_function as handle_torch_function
from .ops.record.torch_function import has_torch_function as has_torch_function
from .ops.record.torch_function import has_torch_function_unary as has_torch_function_unary
from .ops.record.torch_function import has_torch_function_variadic as has_torch_function_variadic
from .tensor import Tensor


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorate a function of one's own, so that it asks the classes of what ``dispatcher(...)`` gives.

    >>> @fw.overrides.wrap_torch_function(lambda x: (x,))
    ... def twice(x):
    ...     return x * 2
    >>> twice(fw.ones(1))
    tensor([2.])
    """
    def register(function: Callable) -> Callable:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                result = ask(call, relevant, args, kwargs)
                if result is not NotImplemented:
                    return result
            return function(*args, **kwargs)
        return call
    return register


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor or an object that overrides functions.

    >>> fw.overrides.is_tensor_like(fw.ones(1)), fw.overrides.is_tensor_like([1.0])
    (True, False)
    """
    return type(inp) is Tensor or hasattr(type(inp), "__torch_function__")


def get_default_nowrap_functions() -> set:
    """The accessors whose results stay plain tensors on a subclass: of ``grad`` and ``_base``."""
    return set(UNWRAPPED)


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that ask the classes of their arguments, by the module or class they are found in."""
    asking = set(functions())
    found: dict[Any, list[Callable]] = {}
    for home in (*sorted({p.namespace for p in PUBLIC if p.namespace}), Tensor):
        place = home if home is Tensor else sys.modules.get(
            home if home == "framework" else f"framework.{home}")
        if place is not None:
            found[place] = [f for name, f in vars(place).items()
                            if type(behind(f)) is FunctionType and f in asking and not name.startswith("__")]
    found[Tensor] += [p.__get__ for name, p in vars(Tensor).items()
                      if isinstance(p, property) and not name.startswith("_")]
    return found


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether it is a method or the accessor of a property of Tensor.

    >>> fw.overrides.is_tensor_method_or_property(fw.Tensor.add)
    True
    """
    owner = getattr(func, "__self__", None)
    return any(func is value or owner is value and owner is not None for value in vars(Tensor).values())


def resolve_name(f: Callable) -> str | None:
    """The name under which programs find a function: "framework.Tensor.add"; None if it is none of ours.

    >>> fw.overrides.resolve_name(fw.nn.functional.gelu)
    'framework.nn.functional.gelu'
    """
    for p in PUBLIC:
        if p.function is f and p.namespace:
            return f"framework.{p.namespace}.{p.name}".replace("framework.framework.", "framework.")
    for name, value in vars(Tensor).items():
        if value is f:
            return f"framework.Tensor.{name}"
    made = {**vars(creation), **vars(from_data)}
    return next((f"framework.{name}" for name, value in made.items() if value is f), None)


class TorchFunctionMode:
    """In the block each function of the thread goes to the mode's ``__torch_function__``.

    For plain tensors, too.

    While that runs, the mode is closed. Functions that make tensors of none (``zeros``) come as well.

    >>> class Names(fw.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     x = fw.ones(2) + 1
    ones
    add
    """

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: a mode must define __torch_function__")

    def __enter__(self) -> Any:
        arm()
        state.modes.append(self)
        modes_open[0] += 1
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        state.modes.pop()
        modes_open[0] -= 1


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every function run as it is."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        return func(*args, **kwargs or {})


arm()  # who imports this asks for it


__dir__ = _own(
    globals(),
    "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic")
