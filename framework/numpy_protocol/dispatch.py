"""The two doors through which NumPy hands its calls to tensors."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..dtypes import of_numpy
from ..tensor import Tensor, wrap
from .table import FUNCTIONS, UFUNCS, Unsupported, operand, recorded, tensors_in
from .ufuncs import METHODS, call

KNOWN = (Tensor, np.ndarray, np.generic, bool, int, float, complex, list, tuple, type(None))

# functions that say something about their arguments and make no array of them
ASKING = {np.array_equal, np.array_equiv, np.allclose, np.array_repr, np.array_str, np.array2string,
          np.may_share_memory, np.shares_memory, np.result_type, np.can_cast, np.min_scalar_type,
          np.iscomplexobj, np.isrealobj, np.common_type}


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
    """NumPy's ufuncs on tensors: recorded where one requires grad.

    >>> x = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> np.sum(np.exp(x) * np.array([1.0, 0.0], np.float32)).backward()
    >>> x.grad
    tensor([2.7183, 0.0000])
    """
    op = UFUNCS.get(ufunc)
    if op is None:
        return fall_back(ufunc.__name__, getattr(ufunc, method), inputs, settings)
    for x in inputs:
        if not isinstance(x, KNOWN):
            return NotImplemented
    if method == "__call__":
        if not settings:
            return op(*map(operand, inputs))
        return attempt(partial(call, ufunc, op, inputs), ufunc, inputs, settings)
    if method not in METHODS:
        return fall_back(f"{ufunc.__name__}.{method}", getattr(ufunc, method), inputs, settings)
    return attempt(partial(METHODS[method], ufunc, *inputs), getattr(ufunc, method), inputs, settings)


def array_function(self: Tensor, function: Any, types: Any, args: Any, settings: Any) -> Any:
    """NumPy's other functions on tensors: recorded where one requires grad."""
    if not all(issubclass(t, KNOWN) for t in types):
        return NotImplemented
    ours = FUNCTIONS.get(function)
    if ours is not None:
        return attempt(partial(ours, *args), function, args, settings)
    name = f"{function.__module__.removeprefix('numpy.')}.{function.__name__}".removeprefix("numpy.")
    if function in ASKING:
        return function(*_arrays(args, True), **_arrays(settings, True))
    return fall_back(name, function, args, settings)


def attempt(ours: Callable, theirs: Callable, args: Any, settings: Any) -> Any:
    """Our result, or NumPy's where a setting is not known to us and no gradient would be lost."""
    try:
        return ours(**settings)
    except Unsupported:
        if recorded(args, settings):
            raise
        return by_numpy(theirs, args, settings)


def fall_back(name: str, function: Callable, args: Any, settings: Any) -> Any:
    """The result of a function that we do not know; refused where a gradient would be lost."""
    if recorded(args, settings):
        raise TypeError(f"np.{name} is not known to framework, so its result would not be recorded; use "
                        f"x.detach().numpy() for its value alone, or write it with other functions")
    return by_numpy(function, args, settings)


def by_numpy(function: Callable, args: Any, settings: Any) -> Any:
    """NumPy's own result, its arrays as tensors."""
    return _tensors(function(*_arrays(args, False), **_arrays(settings, False)), tensors_in((args, settings)))


def _arrays(value: Any, asking: bool) -> Any:
    """``value`` with arrays in place of tensors; read-only, for what changes them would not be noticed."""
    if isinstance(value, Tensor):
        array = value.detach().numpy().view()
        array.flags.writeable = asking and array.flags.writeable
        return array
    if isinstance(value, dict):
        return {k: _arrays(v, asking) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)([_arrays(v, asking) for v in value])
    return value


def _tensors(value: Any, sources: list[Tensor]) -> Any:
    """NumPy's result with tensors in place of arrays, in memory of their own."""
    if isinstance(value, (np.ndarray, np.generic)) and of_numpy(value.dtype) is not None:
        array = np.asarray(value)
        shared = any(np.may_share_memory(array, s._array) for s in sources)
        return wrap(array.copy() if shared or not array.flags.writeable else array)
    if isinstance(value, (list, tuple)):
        parts = [_tensors(v, sources) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
