"""Modules that hold others: in a row, as a list, as a dict; and the same two for parameters."""

import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..tensor import Tensor
from .joins import JOINS
from .module import MODULE, PARAMETER, Module, _indent
from .parameter import Parameter


def _module(container: Module, value: Any) -> Module:
    if isinstance(value, Module):
        return value
    kind = type(container).__name__
    hint = ""
    if isinstance(value, type) and issubclass(value, Module):
        hint = f"; make one: {value.__name__}(...)"
    elif isinstance(container, Sequential):
        hint = "; pass the layers one by one: Sequential(*layers)" if isinstance(value, (list, tuple)) else \
            "; functions have modules of their own, e.g. nn.ReLU(), nn.Flatten()" if callable(value) else ""
    raise TypeError(f"{kind}: wanted a Module, got {getattr(value, '__name__', type(value).__name__)}{hint}")


class _List(Module):
    """Registered values under the names '0', '1', ...; the base of the list-like containers."""

    _kind = MODULE

    def _items(self) -> list[Any]:
        return list((self._modules if self._kind is MODULE else self._parameters).values())

    def _names(self) -> list[str]:
        return self._own_names(self._kind)

    def _checked(self, value: Any) -> Any:
        return _module(self, value)

    def _put(self, name: str, value: Any) -> None:
        self._register(name, value, self._kind)

    def _fill(self, values: Iterable[Any]) -> None:
        """Hold exactly these values, under new numbers."""
        kept = [self._checked(v) for v in values]
        for name in self._names():
            delattr(self, name)
        for i, value in enumerate(kept):
            self._put(str(i), value)

    def _place(self, index: Any) -> int:
        try:
            i = index.__index__()
        except AttributeError:
            raise TypeError(f"{type(self).__name__}: an index must be an int, got "
                            f"{type(index).__name__}") from None
        if not -len(self) <= i < len(self):
            raise IndexError(f"{type(self).__name__}: index {i} is out of range for {len(self)} items")
        return i % len(self)

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    def __contains__(self, value: Any) -> bool:
        return any(value is item for item in self._items())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            cls: Any = type(self)
            return cls(self._items()[index])
        return self._items()[self._place(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        self._put(self._names()[self._place(index)], self._checked(value))

    def __delitem__(self, index: Any) -> None:
        items = self._items()
        del items[index if isinstance(index, slice) else self._place(index)]
        self._fill(items)

    def append(self, value: Any) -> Any:
        """Add at the end; returns the container."""
        self._put(str(len(self)), self._checked(value))
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add several at the end; returns the container."""
        for value in [self._checked(v) for v in values]:
            self.append(value)
        return self

    def insert(self, index: int, value: Any) -> Any:
        """Add before position ``index``."""
        items = self._items()
        items.insert(index, value)
        self._fill(items)
        return self

    def pop(self, index: int = -1) -> Any:
        """Take out and return the item at a position."""
        value = self[index]
        del self[index]
        return value

    def __add__(self, other: Iterable[Any]) -> Any:
        cls: Any = type(self)
        return cls([*self, *other])

    def __iadd__(self, other: Iterable[Any]) -> Any:
        return self.extend(other)


class Sequential(_List):
    """Modules called one after the other, each with the result of the one before.

    Takes the modules, or one OrderedDict of names and modules. Slices are Sequentials too. A layer and what
    stands behind it may run as one kernel, with the bits of the modules one by one, but for one case: a batch
    norm behind a convolution, in evaluation and where nothing is recorded, is folded into the weights, which
    changes the last bits (call the modules yourself, or hook one, where that matters).

    >>> fw.nn.Sequential(fw.nn.Linear(4, 3), fw.nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, self._checked(module))
        else:
            for i, module in enumerate(args):
                self._put(str(i), self._checked(module))

    def forward(self, input: Any) -> Any:
        """``modules[-1](... modules[0](input))``"""
        items = list(self._modules.values())
        skip = 0
        for at, module in enumerate(items):
            if skip:
                skip -= 1
                continue
            join = JOINS.get(type(module))
            if join is not None and (done := join(items, at, input)) is not None:
                input, skip = done
            else:
                input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(zip(self._names(), self._items()))[index]))
        return super().__getitem__(index)

    def __delitem__(self, index: Any) -> None:
        names = self._names()
        doomed = names[index] if isinstance(index, slice) else [names[self._place(index)]]
        for name in doomed:
            delattr(self, name)
        if all(n.isdigit() for n in names):
            self._fill(self._items())

    def __add__(self, other: Iterable[Any]) -> "Sequential":
        return Sequential(*self, *other)

    def _times(self, n: Any) -> int:
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(f"Sequential: can be multiplied by an int, got {type(n).__name__}")
        if n <= 0:
            raise ValueError(f"Sequential: can be multiplied by a positive int, got {n}")
        return n

    def __mul__(self, n: int) -> "Sequential":
        return Sequential(*list(self) * self._times(n))

    __rmul__ = __mul__

    def __imul__(self, n: int) -> "Sequential":
        return self.extend(list(self) * (self._times(n) - 1))


class ModuleList(_List):
    """A list of modules that registers them; it has no forward.

    >>> layers = fw.nn.ModuleList(fw.nn.Linear(2, 2) for _ in range(3))
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    _no_forward = "loop over its modules and call them, or use Sequential to run one after another"

    def _checked(self, value: Any) -> Any:
        return None if value is None else super()._checked(value)

    def _child_lines(self) -> list[str]:
        lines: list[str] = []
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(repr(m) for m in self):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        for first, last, text in runs:
            text = _indent(text)
            lines.append(f"({first}): {text}" if first == last
                         else f"({first}-{last}): {last - first + 1} x {text}")
        return lines


class ParameterList(_List):
    """A list of parameters that registers them; tensors become Parameters.

    >>> len(fw.nn.ParameterList([fw.zeros(2), fw.ones(3)]))
    2
    """

    _kind = PARAMETER

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def _checked(self, value: Any) -> Any:
        return _as_parameter(self, value)

    def extra_repr(self) -> str:
        """One line per parameter."""
        return _describe(zip(self._names(), self._items()))


class _Dict(Module):
    """Registered values under names; the base of the dict-like containers."""

    _kind = MODULE

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        if values is not None:
            self.update(values)

    def _checked(self, value: Any) -> Any:
        return _module(self, value)

    def __getitem__(self, key: str) -> Any:
        return (self._modules if self._kind is MODULE else self._parameters)[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._check_name(key, self._kind)
        self._register(key, self._checked(value), self._kind)

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(list(self.keys()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: str) -> bool:
        return key in (self._modules if self._kind is MODULE else self._parameters)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._own_names(self._kind)

    def values(self) -> Iterable[Any]:
        """The registered values."""
        return [self[n] for n in self.keys()]

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, value) pairs."""
        return [(n, self[n]) for n in self.keys()]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or ``default``."""
        return (self._modules if self._kind is MODULE else self._parameters).get(key, default)

    def update(self, values: Any) -> None:
        """Add or replace from a mapping or from (name, value) pairs."""
        for key, value in values.items() if hasattr(values, "items") else values:
            self[key] = value

    def pop(self, key: str) -> Any:
        """Take out and return the value of a name."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Take out everything."""
        for key in self.keys():
            del self[key]


class ModuleDict(_Dict):
    """A dict of modules that registers them; it has no forward.

    >>> heads = fw.nn.ModuleDict({"a": fw.nn.Linear(2, 1), "b": fw.nn.Identity()})
    >>> list(heads)
    ['a', 'b']
    """

    _no_forward = "call one of its modules, e.g. modules['name'](x)"


class ParameterDict(_Dict):
    """A dict of parameters that registers them; tensors become Parameters.

    >>> p = fw.nn.ParameterDict({"scale": fw.ones(2)})
    >>> p["scale"].requires_grad
    True
    """

    _kind = PARAMETER

    def _checked(self, value: Any) -> Any:
        return None if value is None else _as_parameter(self, value)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a name, which is set first if it is not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Take out and return the last name and its value."""
        name = next(reversed(list(self.keys())), None)
        if name is None:
            raise KeyError("ParameterDict: popitem of an empty one")
        return name, self.pop(name)

    def copy(self) -> "ParameterDict":
        """Another one over the same parameters."""
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> "ParameterDict":
        """One with these names, all of them with the same value."""
        return ParameterDict(dict.fromkeys(keys, default))

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self.keys()))

    def __or__(self, other: Any) -> "ParameterDict":
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other: Any) -> "ParameterDict":
        return ParameterDict(dict(other.items())) | self

    def __ior__(self, other: Any) -> "ParameterDict":
        self.update(other)
        return self

    def extra_repr(self) -> str:
        """One line per parameter."""
        return _describe((n, p) for n, p in self.items() if p is not None)


class Container(Module):
    """An old name for a module that is given its parts by name, with a FutureWarning."""

    def __init__(self, **kwargs: Module | None) -> None:
        super().__init__()
        warnings.warn("nn.Container is deprecated; write a Module, or use nn.ModuleDict", FutureWarning,
                      stacklevel=2)
        for name, module in kwargs.items():
            self.add_module(name, module)


def _as_parameter(container: Module, value: Any) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if not isinstance(value, Tensor):
        raise TypeError(f"{type(container).__name__}: wanted a Parameter or Tensor, got "
                        f"{type(value).__name__}")
    return Parameter(value)


def _describe(items: Iterable[tuple[str, Any]]) -> str:
    return "\n".join(f"  ({name}): Parameter containing: [{p.dtype} of size "
                     f"{'x'.join(str(s) for s in p.shape)}]" for name, p in items)
