"""Where PyTorch programs look for small helpers of layers."""

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from itertools import repeat
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """The function that gives an iterable as a tuple, and anything else n times."""
    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))
    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence, n: int) -> tuple:
    """The elements from last to first, each n times: padding per dimension as ``pad`` takes it."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    """A size in which None stands for that of the input, the last of ``defaults``."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"the input has {len(defaults)} dimensions, the output size {len(out_size)}, which "
                         f"must be fewer")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size):])]


def consume_prefix_in_state_dict_if_present(state_dict: MutableMapping[str, Any], prefix: str) -> None:
    """Take ``prefix`` off the names of a state dict that have it, in place; the order stays.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> fw.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1, 'bias': 2}
    """
    about = getattr(state_dict, "_metadata", None)
    for names in filter(None, (state_dict, about)):
        bare = prefix.rstrip(".") if names is about else prefix
        for name in list(names):
            value = names.pop(name)
            if names is about and name in (bare, prefix):
                name = ""
            names[name.removeprefix(prefix)] = value


def factory_kwargs(kwargs: Any) -> dict[str, Any]:
    """The arguments that tensors are made with: device, dtype, memory_format, also inside "factory_kwargs".

    Raises TypeError for others, and for one that is given in both places.

    >>> fw.nn.factory_kwargs({"dtype": fw.float64, "factory_kwargs": {"device": "cpu"}})
    {'dtype': framework.float64, 'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    outer = {name: value for name, value in kwargs.items() if name != "factory_kwargs"}
    inner = kwargs.get("factory_kwargs", {})
    twice = outer.keys() & inner.keys()
    unknown = {*outer, *inner} - {"device", "dtype", "memory_format"}
    if twice or unknown:
        raise TypeError(f"factory_kwargs: {', '.join(sorted(twice or unknown))} "
                        f"{'given twice' if twice else 'not known; device, dtype and memory_format are'}")
    return {**outer, **inner}
