"""``__torch_function__``: calls handed over to the class of an argument that overrides functions.

Who is asked, and in which order. That functions ask at all is in ``arming.py``.
"""

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import numpy as np

from ..._native import Local
from ...config import names
from ...tensor import Tensor

UNWRAPPED = {vars(Tensor)[name].__get__ for name in ("grad", "_base")}  # tensors that stay what they are
PLAIN = {Tensor, np.ndarray, int, float, bool, complex, str, type(None), type(Ellipsis), slice}
SEQUENCES = (list, tuple)


class _State(Local):
    """The modes that the thread is in, and how many blocks without handing over."""

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.off = 0
        self.modes_off = 0


state = _State()
at_first: list[Callable] = []  # what lets functions ask, see ``arming.py``
modes_open = [0]  # in all threads: what is cheap to ask


class Disabled:
    """What ``__torch_function__`` of a class is whose tensors are treated as plain ones."""

    def __call__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs or {})


disabled = Disabled()


class DisableTorchFunctionSubclass:
    """In the block functions do not ask the classes of their arguments; modes go on.

    >>> class Mine(fw.Tensor):
    ...     pass
    >>> with fw.overrides.DisableTorchFunctionSubclass():
    ...     type(Mine([1.0]) + 1).__name__
    'Tensor'
    """

    def __enter__(self) -> "DisableTorchFunctionSubclass":
        state.off += 1
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        state.off -= 1


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """In the block functions ask neither the classes of their arguments nor modes."""

    def __enter__(self) -> "DisableTorchFunction":
        state.modes_off += 1
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        state.modes_off -= 1


def overrides(x: Any) -> bool:
    """Whether the class of ``x`` overrides functions."""
    kind = type(x)
    return kind not in PLAIN and getattr(kind, "__torch_function__", disabled) is not disabled \
        and not _of_pytorch(kind)


def _of_pytorch(kind: type) -> bool:
    """Whether a class is PyTorch's own Tensor, or based on it, which knows nothing of our functions."""
    return any(base.__name__ == "Tensor" and base.__module__.partition(".")[0] == "torch"
               and base is not Tensor for base in kind.__mro__)


def overriding(args: Any) -> list:
    """One argument of each class that overrides functions, subclasses before their bases."""
    found: list = []
    for x in _flat(args):
        if overrides(x) and type(x) not in map(type, found):
            at = next((i for i, other in enumerate(found) if issubclass(type(x), type(other))), len(found))
            found.insert(at, x)
    return found


def _flat(args: Any) -> Iterator[Any]:
    for x in args:
        if type(x) in SEQUENCES:
            yield from x
        else:
            yield x


def ask(function: Callable, relevant: Any, args: tuple, settings: dict) -> Any:
    """What the modes, then the classes of the ``relevant`` arguments make of a call; NotImplemented if none.

    Raises TypeError where all of them decline.
    """
    found = overriding(relevant) if not state.off else []
    types = tuple(type(x) for x in found)
    if state.modes and not state.modes_off:
        mode = state.modes.pop()
        modes_open[0] -= 1
        try:
            result = mode.__torch_function__(function, types, args, settings)
        finally:
            state.modes.append(mode)
            modes_open[0] += 1
        if result is not NotImplemented:
            return result
    for x in found:
        result = x.__torch_function__(function, types, args, settings)
        if result is not NotImplemented:
            return result
    if found:
        classes = ", ".join(kind.__name__ for kind in types)
        raise TypeError(f"{function.__name__}: no class of the arguments does it: __torch_function__ of "
                        f"{classes} returned NotImplemented")
    return NotImplemented


def default(cls: type, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """``Tensor.__torch_function__``: the function itself, its new tensors as ones of the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    home = getattr(func, "__module__", None) or getattr(
        getattr(func, "__objclass__", None), "__module__", None) or ""
    if home.partition(".")[0] == "torch" != names.package:  # PyTorch itself, beside us: it would ask again
        # no TypeError, of which PyTorch's operators make "unsupported operand types: Tensor and Tensor"
        raise RuntimeError(f"torch.{func.__name__}: got a tensor of framework, with which PyTorch does not "
                           "compute; convert it by torch.from_dlpack(x), or the others by "
                           "framework.from_dlpack(x)")
    with DisableTorchFunctionSubclass():
        result = func(*args, **kwargs or {})
        return result if cls is Tensor or func in UNWRAPPED else of_class(result, cls)


def of_class(result: Any, cls: type) -> Any:
    """The tensors of a result as ones of ``cls``, if they are none."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)  # type: ignore[attr-defined]
    if type(result) in SEQUENCES:
        return type(result)(of_class(x, cls) for x in result)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[of_class(x, cls) for x in result])
    return result


def asked_late(function: Callable, args: tuple, settings: dict) -> Any:
    """``ask`` for a call that failed while functions did not ask yet: other objects may override functions,
    too.

    NotImplemented if there are none. From here on functions ask first.
    """
    found = overriding((*args, *settings.values()))
    if not found:
        return NotImplemented
    for let_ask in at_first:
        let_ask()
    return ask(function, found, args, settings)


def has_torch_function(relevant_args: Any) -> bool:
    """Whether a mode is open, or one of the arguments is of a class that overrides functions.

    >>> fw.overrides.has_torch_function((fw.ones(1), 2))
    False
    """
    if state.modes and not state.modes_off:
        return True
    return not state.off and bool(overriding(relevant_args))


def has_torch_function_unary(obj: Any) -> bool:
    """``has_torch_function((obj,))``."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """``has_torch_function(args)``."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """What the classes of ``relevant_args`` make of ``public_api(*args, **kwargs)``.

    Raises TypeError where all of them return NotImplemented.

    >>> class Two:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return 2
    >>> fw.overrides.handle_torch_function(fw.add, (Two(),), Two(), 1)
    2
    """
    result = ask(public_api, relevant_args, args, kwargs)
    if result is NotImplemented:
        raise TypeError(f"handle_torch_function: no argument of {public_api.__name__} has __torch_function__")
    return result
