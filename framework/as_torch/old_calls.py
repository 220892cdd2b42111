"""Calls with the number in front, ``x.add_(alpha, y)``, ``x.addcmul_(value, a, b)``: PyTorch of old.

PyTorch still takes them, with a warning. Here the functions are wrapped only while ``import torch`` finds
this package, and look at the arguments only after Python refused the call, which computes nothing before.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from framework import Tensor

# what numbers may stand in front of how many tensors, the method's own not counted
FORMS = {
    "add": (("alpha",), 1), "sub": (("alpha",), 1),
    "addcmul": (("value",), 2), "addcdiv": (("value",), 2),
    "addmm": (("beta", "alpha"), 2), "addmv": (("beta", "alpha"), 2), "addr": (("beta", "alpha"), 2),
    "addbmm": (("beta", "alpha"), 2), "baddbmm": (("beta", "alpha"), 2),
}


def reordered(name: str, args: tuple) -> tuple[list[Tensor], dict[str, Any]] | None:
    """The tensors, and the numbers by name, of an old call; None if the arguments are not one.

    >>> reordered("addcmul", (1.0, 0.5, 2.0, 3.0)) is None
    True
    """
    names, count = FORMS[name]
    tensors = [a for a in args if isinstance(a, Tensor)]
    numbers = [a for a in args if not isinstance(a, Tensor)]
    if len(tensors) != count + 1 or not 1 <= len(numbers) <= len(names) or isinstance(args[-1], (int, float)):
        return None
    return tensors, dict(zip(names, numbers))


def takes_old(function: Callable, name: str) -> Callable:
    """``function``, which is ``name`` or its in-place form, taking old calls as well."""
    @wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        try:
            return function(*args, **settings)
        except TypeError:
            old = None if settings else reordered(name, args)
            if old is None:
                raise
        tensors, numbers = old
        warnings.warn(f"{function.__name__}: the number in front is PyTorch's old way; write "
                      + ", ".join(f"{k}=" for k in numbers) + " at the end", stacklevel=2)
        return function(*tensors, **numbers)
    return call


class OldCalls:
    """Puts the wrapped functions in place, and takes them away."""

    def __init__(self) -> None:
        self.plain: dict[str, Callable] = {}

    def install(self) -> None:
        """Wrap the methods of Tensor. Functions stay as they are: graphs and libraries compare them."""
        for name in FORMS:
            for method in (name, f"{name}_"):
                if hasattr(Tensor, method) and method not in self.plain:
                    self.plain[method] = vars(Tensor)[method]
                    setattr(Tensor, method, takes_old(self.plain[method], name))

    def uninstall(self) -> None:
        """The methods of Tensor as they were."""
        for method, plain in self.plain.items():
            setattr(Tensor, method, plain)
        self.plain.clear()


OLD_CALLS = OldCalls()
