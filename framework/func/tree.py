"""Nested containers: taken apart into leaves, and put together again.

``utils._pytree`` has it under PyTorch's names.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """How a type of container is taken apart and put together.

    flatten: the container -> (its parts, what else is needed). unflatten: both -> the container. keys: the
    names of the parts, for paths; None where they are counted.
    """

    flatten: Callable[[Any], tuple[Iterable, Any]]
    unflatten: Callable[[Iterable, Any], Any]
    keys: Callable[[Any], list] | None = None


def _of_dict(nest: dict) -> tuple[list, list]:
    return list(nest.values()), list(nest)


def _of_defaultdict(nest: defaultdict) -> tuple[list, list]:
    return list(nest.values()), [nest.default_factory, list(nest)]


KINDS: dict[type, Kind] = {
    tuple: Kind(lambda nest: (nest, None), lambda parts, _: tuple(parts)),
    list: Kind(lambda nest: (nest, None), lambda parts, _: list(parts)),
    dict: Kind(_of_dict, lambda parts, keys: dict(zip(keys, parts)), list),
    OrderedDict: Kind(_of_dict, lambda parts, keys: OrderedDict(zip(keys, parts)), list),
    defaultdict: Kind(_of_defaultdict, lambda parts, made: defaultdict(made[0], zip(made[1], parts)), list),
    deque: Kind(lambda nest: (nest, nest.maxlen), lambda parts, maxlen: deque(parts, maxlen)),
}
_NAMED = Kind(lambda nest: (nest, type(nest)), lambda parts, made: made(*parts),
              lambda nest: list(nest._fields))
_DICT = Kind(lambda nest: (list(nest.values()), (type(nest), list(nest))),
             lambda parts, made: made[0](zip(made[1], parts)), list)
_SEQUENCE = Kind(lambda nest: (nest, type(nest)), lambda parts, made: made(parts))


def kind_of(nest: Any, exact: bool = False) -> Kind | None:
    """How to take ``nest`` apart; None for a leaf. exact: subclasses of containers, too, are leaves."""
    cls = type(nest)
    known = KINDS.get(cls)
    if known is not None or not isinstance(nest, (tuple, list, dict)):
        return known
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return _NAMED
    if exact:
        return None
    return _DICT if isinstance(nest, dict) else _SEQUENCE


class Spec:
    """The shape of a nest: its type, what else makes it, and the specs inside; a leaf has no type."""

    __slots__ = ("type", "context", "children_specs", "kind", "num_leaves", "num_nodes")

    def __init__(self, type: type | None = None, context: Any = None, children_specs: Iterable = (),
                 kind: Kind | None = None) -> None:
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.kind = KINDS.get(type) if kind is None and type is not None else kind
        self.num_leaves = sum([s.num_leaves for s in self.children_specs]) if type is not None else 1
        self.num_nodes = 1 + sum([s.num_nodes for s in self.children_specs])

    @property
    def num_children(self) -> int:
        """How many parts it has."""
        return len(self.children_specs)

    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.type is None

    def children(self) -> list["Spec"]:
        """The specs of the parts."""
        return list(self.children_specs)

    def child(self, index: int) -> "Spec":
        """The spec of one part."""
        return self.children_specs[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.type, self.context, self.children_specs) == (
            other.type, other.context, other.children_specs)

    __hash__ = None  # type: ignore[assignment]

    def build(self, leaves: Iterable) -> Any:
        """A nest of this shape with these leaves."""
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator) -> Any:
        if self.kind is None:
            return next(leaves)
        return self.kind.unflatten([spec._build(leaves) for spec in self.children_specs], self.context)

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"{self.type.__name__}({', '.join(map(repr, self.children_specs))})"


LEAF = Spec()


def flatten(nest: Any, is_leaf: Callable[[Any], bool] | None = None, exact: bool = False) -> tuple[list,
                                                                                                   Spec]:
    """The leaves of a nest from left to right, and its spec. is_leaf: what else not to look into."""
    leaves: list = []
    return leaves, _take(nest, leaves, is_leaf, exact)


def _take(nest: Any, leaves: list, is_leaf: Callable[[Any], bool] | None, exact: bool) -> Spec:
    kind = kind_of(nest, exact)
    if kind is None or is_leaf is not None and is_leaf(nest):
        leaves.append(nest)
        return LEAF
    parts, context = kind.flatten(nest)
    return Spec(type(nest), context, [_take(part, leaves, is_leaf, exact) for part in parts], kind)


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
