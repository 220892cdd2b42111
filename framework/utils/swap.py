"""Two tensors that change places, so that all who hold one of them see the other."""

import weakref
from typing import Any

from ..node import Leaf
from ..tensor import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Give each of two tensors the other's data, class, gradient, place in the graph and attributes.

    Raises RuntimeError for one that others refer to weakly (a view's base, say), or that has a node behind it
    which knows the tensor.

    >>> a, b = fw.zeros(1), fw.ones(2)
    >>> held = a
    >>> fw.utils.swap_tensors(a, b)
    >>> held, b
    (tensor([1., 1.]), tensor([0.]))
    """
    for t in (t1, t2):
        if any(ref() is t for ref in weakref.getweakrefs(t) if type(t._node) is not Leaf):
            raise RuntimeError(
                "swap_tensors: something refers weakly to a tensor, which would find the other one"
            )
    if hasattr(t1, "__slots__") != hasattr(t2, "__slots__"):
        raise TypeError(f"swap_tensors: {type(t1).__name__} and {type(t2).__name__} are laid out differently")
    first, second = _state(t1), _state(t2)
    kinds = type(t1), type(t2)
    try:
        t1.__class__, t2.__class__ = kinds[1], kinds[0]
    except TypeError as error:
        t1.__class__ = kinds[0]
        raise TypeError(
            f"swap_tensors: {kinds[0].__name__} and {kinds[1].__name__} are laid out differently; "
            f"make both of one class"
        ) from error
    _set(t1, second)
    _set(t2, first)


_SLOTS = ("_array", "_node", "_counter", "_more")


def _state(t: Tensor) -> tuple[list[Any], dict[str, Any]]:
    return [getattr(t, name) for name in _SLOTS], dict(getattr(t, "__dict__", ()))


def _set(t: Tensor, state: tuple[list[Any], dict[str, Any]]) -> None:
    values, attributes = state
    for name, value in zip(_SLOTS, values):
        setattr(t, name, value)
    if hasattr(t, "__dict__"):
        t.__dict__.clear()
        t.__dict__.update(attributes)
    leaf = t._node if type(t._node) is Leaf else t._more.leaf if t._more is not None else None
    if leaf is not None:  # which knows its tensor
        leaf.owner = weakref.ref(t)
