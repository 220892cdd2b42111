"""The Kullback-Leibler divergence: from a table of formulas for pairs of distributions.

A formula is found by the classes of p and q, the closest pair of base classes if none fits exactly.
"""

import warnings
from collections.abc import Callable
from typing import Any

from ..config.listing import own as _own
from ..tensor import Tensor
from .distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_FORMULAS: dict[tuple[type, type], Callable] = {}
_FOUND: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """A decorator that takes a function of (p, q) as the formula for these classes and their subclasses.

    >>> from framework.distributions import Normal, register_kl
    >>> class Centred(Normal):
    ...     pass
    >>> @register_kl(Centred, Centred)
    ... def centred(p, q):
    ...     return (q.scale / p.scale).log() + (p.variance / q.variance - 1) / 2
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type) or not issubclass(kind, Distribution):
            raise TypeError(f"register_kl: wanted subclasses of Distribution, got {kind!r}")

    def register(function: Callable) -> Callable:
        _FORMULAS[type_p, type_q] = function
        _FOUND.clear()
        return function
    return register


def _formula(type_p: type, type_q: type) -> Callable | None:
    """The formula of the closest pair of base classes: first by p, then by q; a warning if they disagree."""
    pairs = [(p, q) for p, q in _FORMULAS if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return None
    order_p, order_q = type_p.__mro__, type_q.__mro__
    by_p = min(pairs, key=lambda pair: (order_p.index(pair[0]), order_q.index(pair[1])))
    by_q = min(pairs, key=lambda pair: (order_q.index(pair[1]), order_p.index(pair[0])))
    if _FORMULAS[by_p] is not _FORMULAS[by_q]:
        warnings.warn(f"kl_divergence({type_p.__name__}, {type_q.__name__}) is ambiguous: the formula of "
                      f"({by_p[0].__name__}, {by_p[1].__name__}) is taken; register_kl({type_p.__name__}, "
                      f"{type_q.__name__}) settles it", RuntimeWarning, stacklevel=3)
    return _FORMULAS[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expectation of ``log p(x) - log q(x)`` over p, shape batch_shape.

    Raises NotImplementedError where no formula is known for the two classes; `register_kl` adds one.

    >>> D = fw.distributions
    >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    key = type(p), type(q)
    function: Any = _FOUND.get(key) or _formula(*key)
    if function is None:
        raise NotImplementedError(f"no KL(p || q) is known for p of {type(p).__name__} and q of "
                                  f"{type(q).__name__}; register_kl adds one")
    _FOUND[key] = function
    return function(p, q)


__dir__ = _own(globals())
