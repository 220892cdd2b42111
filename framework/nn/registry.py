"""What a module keeps as its ``_parameters``, ``_buffers`` and ``_modules``: dicts that it owns.

A registered value is an ordinary attribute, too, so that ``self.weight`` costs what any attribute costs;
the dict writes it there whenever it changes.
"""

from collections.abc import Iterator
from typing import Any
from weakref import ref

_NOTHING = object()


class Registry(dict):
    """The registered values of one kind, by name; every change of it is one of the owner's attributes.

    The owner is known weakly: a module is freed as soon as nobody holds it. A copy has no owner until a
    module looks at it (``adopt``).
    """

    __slots__ = ("owner",)
    owner: Any

    def __init__(self, *values: Any) -> None:
        dict.__init__(self, *values)
        self.owner = None

    def _attributes(self) -> dict[str, Any]:
        module = None if self.owner is None else self.owner()
        return {} if module is None else module.__dict__

    def __setitem__(self, name: str, value: Any) -> None:
        dict.__setitem__(self, name, value)
        self._attributes()[name] = value

    def __delitem__(self, name: str) -> None:
        dict.__delitem__(self, name)
        self._attributes().pop(name, None)

    def pop(self, name: str, default: Any = _NOTHING) -> Any:
        """Take out a name and give its value, or the default."""
        if name not in self and default is not _NOTHING:
            return default
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take out the last name."""
        if not self:
            raise KeyError("popitem: there is nothing registered")
        name = next(reversed(self))
        return name, self.pop(name)

    def clear(self) -> None:
        """Take out everything."""
        for name in list(self):
            del self[name]

    def update(self, *others: Any, **named: Any) -> None:
        """Set several."""
        for name, value in dict(*others, **named).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The value of a name, which is set first if it is not there."""
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, other: Any) -> "Registry":  # type: ignore[override,misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple:
        def items() -> Iterator:
            return iter(list(self.items()))
        return Registry, (), None, None, items()


def adopt(module: Any, name: str, values: Any) -> Registry:
    """Make ``values`` the registry ``name`` of ``module``: itself if it has no owner, or a copy."""
    if type(values) is Registry and values.owner is None:
        values.owner = ref(module)
        module.__dict__.update(values)
        made = values
    else:
        made = Registry()
        made.owner = ref(module)
        made.update(values)
    module.__dict__[name] = made
    return made


def owned(name: str) -> Any:
    """The property of a module that gives its registry ``name`` and takes any dict for it."""
    def get(module: Any) -> Registry:
        try:
            found = module.__dict__[name]
        except KeyError:
            raise AttributeError(name) from None
        if type(found) is Registry and found.owner is not None and found.owner() is module:
            return found
        return adopt(module, name, found)

    def put(module: Any, values: Any) -> None:
        if not isinstance(values, dict):
            raise TypeError(f"{type(module).__name__}.{name} must be a dict, got {type(values).__name__}")
        old = module.__dict__.get(name, {})
        if values is old:
            return
        kept = dict(values)
        for gone in old:
            module.__dict__.pop(gone, None)
        adopt(module, name, kept)
    return property(get, put)
