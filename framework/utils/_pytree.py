"""Nested containers under the names that libraries import from PyTorch: ``tree_map`` and its kin.

Tuples, lists, dicts, named tuples, OrderedDict, defaultdict, deque and registered classes are nodes; all
else, None included, is a leaf.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..func.tree import KINDS, Kind, Spec, flatten, kind_of

PyTree = Any
Context = Any
TreeSpec = Spec
SUPPORTED_NODES = KINDS


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()


def register_pytree_node(cls: type, flatten_fn: Callable, unflatten_fn: Callable, *,
                         serialized_type_name: str | None = None, to_dumpable_context: Any = None,
                         from_dumpable_context: Any = None,
                         flatten_with_keys_fn: Callable | None = None) -> None:
    """Make instances of ``cls`` nodes. flatten_fn: instance -> (parts, context); unflatten_fn: (parts,
    context) -> instance; flatten_with_keys_fn: instance -> ([(key, part), ...], context). The names for dumps
    are taken and not used: specs are not written to files here. Raises ValueError for a class that is one
    already.

    >>> from framework.utils import _pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> _pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda parts, _: Pair(*parts))
    >>> _pytree.tree_map(lambda x: 2 * x, Pair(1, [2])).b
    [4]
    """
    if cls in KINDS:
        raise ValueError(f"register_pytree_node: {cls.__name__} is registered already")
    keys = None if flatten_with_keys_fn is None else lambda nest: [k for k,
                                                                   _ in flatten_with_keys_fn(nest)[0]]
    KINDS[cls] = Kind(flatten_fn, unflatten_fn, keys)


_register_pytree_node = register_pytree_node


def tree_flatten(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> tuple[list, TreeSpec]:
    """The leaves from left to right, and the spec that puts them together again.

    >>> from framework.utils import _pytree
    >>> leaves, spec = _pytree.tree_flatten({"a": 1, "b": (2, 3)})
    >>> leaves, _pytree.tree_unflatten([4, 5, 6], spec)
    ([1, 2, 3], {'a': 4, 'b': (5, 6)})
    """
    return flatten(tree, is_leaf, exact=True)


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The nest of this spec with these leaves; raises ValueError for another number of them."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten: treespec must be a TreeSpec, got {type(treespec).__name__}")
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: {len(leaves)} leaves for {treespec}, which has "
                         f"{treespec.num_leaves}")
    return treespec.build(leaves)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list:
    """The leaves from left to right."""
    return flatten(tree, is_leaf, exact=True)[0]


def tree_iter(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> Iterable:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """The spec."""
    return flatten(tree, is_leaf, exact=True)[1]


def _up_to(spec: TreeSpec, tree: PyTree) -> list:
    """The parts of ``tree`` where ``spec`` has its leaves."""
    if spec.is_leaf():
        return [tree]
    kind = kind_of(tree, exact=True)
    if kind is None or type(tree) is not spec.type:
        raise ValueError(f"tree_map: wanted a node {spec}, got {type(tree).__name__}")
    parts, context = kind.flatten(tree)
    parts = list(parts)
    if len(parts) != spec.num_children:
        raise ValueError(f"tree_map: a node of {spec.num_children} parts and one of {len(parts)}")
    if isinstance(tree, dict) and context != spec.context:
        if set(tree) != set(spec.context):
            raise ValueError(f"tree_map: a dict of keys {list(spec.context)} and one of {list(tree)}")
        parts = [tree[key] for key in spec.context]
    return [x for child, part in zip(spec.children_specs, parts) for x in _up_to(child, part)]


def tree_map(func: Callable, tree: PyTree, *rests: PyTree,
             is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """The nest of ``func(leaf, ...)`` over the leaves; further nests have at least the same structure.

    >>> from framework.utils import _pytree
    >>> _pytree.tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    leaves, spec = flatten(tree, is_leaf, exact=True)
    return spec.build([func(*xs) for xs in zip(leaves, *[_up_to(spec, rest) for rest in rests])])


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree,
              is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Call ``func`` on the leaves for what it does; the nest itself is returned."""
    leaves, spec = flatten(tree, is_leaf, exact=True)
    for xs in zip(leaves, *[_up_to(spec, rest) for rest in rests]):
        func(*xs)
    return tree


def _matches(which: Any) -> Callable[[Any], bool]:
    """A test from a type, a tuple of types, or a function."""
    if isinstance(which, (type, tuple)) or type(which).__name__ == "UnionType":
        return lambda x: isinstance(x, which)
    if callable(which):
        return which
    raise TypeError(f"wanted a type, a tuple of types or a function, got {type(which).__name__}")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable], Callable]:
    """A decorator: the function where the leaf is of these types, the leaf itself elsewhere."""
    fits = _matches(type_or_types_or_pred)
    return lambda func: lambda x: func(x) if fits(x) else x


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """``tree_map`` of the leaves of these types; others stay.

    >>> from framework.utils import _pytree
    >>> _pytree.tree_map_only(int, lambda x: -x, [1, "a", 2.0])
    [-1, 'a', 2.0]
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree,
                   is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """``tree_map_`` of the leaves of these types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable, tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether all leaves pass."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable, tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether a leaf passes."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable, tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether all leaves of these types pass."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable, tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether a leaf of these types passes."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec,
                              is_leaf: Callable[[PyTree], bool] | None = None) -> list | None:
    """Per leaf of the spec, the leaf of ``tree`` above it; None where the structures differ."""
    kind = kind_of(tree, exact=True)
    if kind is None or is_leaf is not None and is_leaf(tree):
        return [tree] * treespec.num_leaves
    parts, context = kind.flatten(tree)
    parts = list(parts)
    if type(tree) is not treespec.type or context != treespec.context or len(parts) != treespec.num_children:
        return None
    found: list = []
    for part, spec in zip(parts, treespec.children_specs):
        below = _broadcast_to_and_flatten(part, spec, is_leaf)
        if below is None:
            return None
        found += below
    return found


# -- with paths ------------------------------------------------------------------------------------


class SequenceKey(NamedTuple):
    """A place in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"

    def get(self, sequence: Any) -> Any:
        """What stands there."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """A key of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What stands there."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """The name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What stands there."""
        return getattr(obj, self.name)


def keystr(kp: Iterable) -> str:
    """A path as Python would write it: ``['a'][0].b``."""
    return "".join(map(str, kp))


def _keys(tree: Any, kind: Kind, count: int) -> list:
    if kind.keys is None:
        return [SequenceKey(i) for i in range(count)]
    make = MappingKey if isinstance(tree, dict) else GetAttrKey
    return [k if isinstance(k, (SequenceKey, MappingKey, GetAttrKey)) else make(k) for k in kind.keys(tree)]


def tree_flatten_with_path(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
                           ) -> tuple[list, TreeSpec]:
    """Pairs (path, leaf), and the spec.

    >>> from framework.utils import _pytree
    >>> [(_pytree.keystr(path), x) for path, x in _pytree.tree_flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    found: list = []

    def walk(nest: Any, path: tuple) -> None:
        kind = kind_of(nest, exact=True)
        if kind is None or is_leaf is not None and is_leaf(nest):
            found.append((path, nest))
            return
        parts = list(kind.flatten(nest)[0])
        for key, part in zip(_keys(nest, kind, len(parts)), parts):
            walk(part, (*path, key))

    walk(tree, ())
    return found, tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list:
    """Pairs (path, leaf)."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree,
                       is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """``tree_map`` of a function that also gets the path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [_up_to(spec, rest) for rest in rests]
    return spec.build([func(*pair, *xs) for pair, *xs in zip(pairs, *others)])
