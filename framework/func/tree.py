"""Nested tuples, lists and dictionaries: taken apart into leaves, and put together again."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class Spec:
    """The shape of a nest: its kind, its keys and the specs inside; a leaf has no kind."""

    __slots__ = ("kind", "keys", "inside")

    def __init__(self, kind: type | None = None, keys: tuple = (), inside: tuple = ()) -> None:
        self.kind, self.keys, self.inside = kind, keys, inside

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.kind, self.keys, self.inside) == (
            other.kind, other.keys, other.inside)

    __hash__ = None  # type: ignore[assignment]

    def build(self, leaves: Iterable) -> Any:
        """A nest of this shape with these leaves."""
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator) -> Any:
        if self.kind is None:
            return next(leaves)
        parts = [spec._build(leaves) for spec in self.inside]
        make: Any = self.kind
        if issubclass(make, dict):
            return make(zip(self.keys, parts))
        return make(*parts) if hasattr(make, "_fields") else make(parts)

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        names = [f"{key!r}: " for key in self.keys] or [""] * len(self.inside)
        return f"{self.kind.__name__}({', '.join(f'{n}{s}' for n, s in zip(names, self.inside))})"


LEAF = Spec()


def flatten(nest: Any) -> tuple[list, Spec]:
    """The leaves of a nest from left to right, and its spec."""
    leaves: list = []
    return leaves, _take(nest, leaves)


def _take(nest: Any, leaves: list) -> Spec:
    if isinstance(nest, dict):
        return Spec(type(nest), tuple(nest), tuple([_take(part, leaves) for part in nest.values()]))
    if isinstance(nest, (tuple, list)):
        return Spec(type(nest), (), tuple([_take(part, leaves) for part in nest]))
    leaves.append(nest)
    return LEAF


def mapped(function: Callable, nest: Any) -> Any:
    """The nest with ``function`` applied to each leaf."""
    leaves, spec = flatten(nest)
    return spec.build([function(leaf) for leaf in leaves])


def spread(prefix: Any, nest: Any, op: str, name: str) -> list:
    """Per leaf of ``nest``, the leaf of ``prefix`` that stands above it: ``prefix`` may end earlier."""
    leaves, spec = flatten(nest)
    if prefix is None or isinstance(prefix, int):
        return [prefix] * len(leaves)
    if isinstance(prefix, dict) and isinstance(nest, dict) and prefix.keys() == nest.keys():
        return [x for key in nest for x in spread(prefix[key], nest[key], op, name)]
    if isinstance(prefix, (tuple, list)) and isinstance(nest, (tuple, list)) and len(prefix) == len(nest):
        return [x for p, part in zip(prefix, nest) for x in spread(p, part, op, name)]
    raise ValueError(f"{op}: {name}={prefix!r} does not fit the structure {spec}")
