"""The backward of a recorded segment as steps of a plan: the engine's walk, written out.

Derivatives are the records' own rules, in the order of the walk; which arrays a rule kept is found out by the
arrays' names. What could run a user's code, or is not plain, refuses.
"""

from math import prod
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from ..autograd.engine import LARGE, plus, takes_over
from ..autograd.mode import masked_walks, state
from ..backends.native import add
from ..node import Leaf, Node, Pick, PlainNode, next_seq
from ..ops.language.elementwise import Elementwise
from ..ops.record.op import Op
from ..ops.shape.broadcast import sum_to
from ..ops.shape.split import Cut
from ..random import Drawn
from . import fusion
from .backward import BY_RULES, Refused, fast
from .kernels import Array, Book, Step, by_keys
from .segments import own

_EXAMPLE = {c: np.zeros(1, c) for c in "fd"}


def order_of(root: Any) -> list:
    """The nodes of a graph, the newest first."""
    seen, todo = {root}, [root]
    while todo:
        for edge in todo.pop().edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                todo.append(edge)
    return sorted(seen, key=lambda node: -node.seq)


def _pulling(op: Any, edges: tuple, names: tuple, settings: dict, shapes: Any, masked: bool) -> Any:
    """``op.pull`` on arrays, as the engine calls it."""
    wanted = tuple([None if e is None else True for e in edges])

    def pull(g: Any, *kept: Any) -> Any:
        node = Node(op, wanted, dict(zip(names, kept)), None, settings, shapes)
        before = state.walk
        walk: Any = object()
        state.walk = walk
        if masked:
            masked_walks.add(walk)
        try:
            return op.pull(node, g, wanted, False)
        finally:
            state.walk = before
            masked_walks.discard(walk)
    return pull


def _hands_on(node: Any) -> bool:
    """Whether the rule ``g`` of this node gives the very array, as the engine's test for a leaf sees it."""
    return not isinstance(node.op, Elementwise) or node.op._passes or node.shapes is not None


class Gradient:
    """The steps of a backward; ``leaves``: (number of the external, name of its gradient), in their order.

    Raises Refused, or what ``name_of`` raises.
    """

    def __init__(self, root: Any, seed: Any, book: Book, leaves: dict, shapes: dict) -> None:
        self.steps: list[Step] = []
        self.shapes = shapes
        self.leaves: list[tuple[int, str]] = []
        self.count = 0
        self.order = order_of(root)
        self.seed = "g0s"
        ones = np.ones(seed.shape, seed.dtype)  # read only by derivatives; a leaf gets a copy
        self.steps.append(Step(lambda: ones, (), {}, self.seed, (seed.shape, seed.dtype)))
        shapes[self.seed] = (seed.shape, seed.dtype)
        got: dict[Any, Any] = {root: self.seed}
        parts: dict[Any, list] = {}
        given: dict[Any, list[bool]] = {}  # per leaf, whether a contribution was handed on as it came
        owned: set = set()  # nodes whose gradient nobody else has
        late: list[tuple[int, str]] = []  # leaves that take a gradient over, after all others
        masked = False
        for node in self.order:
            if type(node) is Leaf:
                if node.hooks is not None or node.after:
                    raise Refused("a hook on a leaf")
                if node not in leaves:
                    raise Refused("a leaf that is not handed in")
                if node in got:
                    self.leaves.append((leaves[node], got[node]))
                continue
            if node.hooks is not None:
                raise Refused("a hook")
            if type(node) is Pick:
                if node in got:
                    owner = node.edges[0]
                    row = parts.setdefault(owner, [None] * owner.op.differentiable)
                    row[node.index] = self._sum(row[node.index], got[node])
                continue
            if type(node) not in (Node, PlainNode) or not node.edges:
                raise Refused(f"a node of another kind ({node.name()})")
            g: Any = parts.get(node) or got.get(node)
            if g is None:
                continue
            mine = node in owned
            grads, masked, passed = self._pulled(node, g, book, masked)
            for i, edge in enumerate(node.edges):
                ge = grads[i]
                if edge is None or ge is None:
                    continue
                if type(edge) is Leaf:
                    given.setdefault(edge, []).append(ge == g)
                    if mine and masked and ge != g and isinstance(node.op, Elementwise) and not passed[i] \
                            and (node.op.rules is None or node.op.rules[i].text == "g"):
                        raise Refused("a gradient that may be handed on, after a mask")
                    if edge not in leaves:
                        raise Refused("a leaf that is not handed in")
                    if mine and ge == g and _hands_on(node) and takes_over(edge, node.op):
                        late.append((leaves[edge], g))
                        mine = False
                        continue
                    if not passed[i]:
                        new = self._new()
                        if ge == g and isinstance(node.op, Elementwise) and not node.op._passes \
                                and node.shapes is None:  # a kernel's result, in the order of the gradient
                            kernel = node.op.rules[i].on(_EXAMPLE["f"])  # type: ignore[index]
                            self.steps.append(Step(kernel, (self._placed(g),), {}, new, self.shapes.get(g)))
                        else:
                            self.steps.append(Step(own, (Array(ge), self._placed(g)), {}, new, None))
                        if ge in self.shapes:
                            self.shapes[new] = self.shapes[ge]
                        ge = new
                if edge in got:
                    owned.add(edge)
                got[edge] = self._sum(got.get(edge), ge)
        self.leaves += late
        large = any(np.prod(s[0], dtype=int) >= LARGE for s in self.shapes.values())
        if large and any(len(ways) > 1 and any(ways) for ways in given.values()):
            raise Refused("a leaf that takes over its gradient")  # the order of its sum is another one

    def _new(self) -> str:
        self.count += 1
        return f"g{self.count}_"

    def _placed(self, g: Any) -> Any:
        return [None if x is None else Array(x) for x in g] if isinstance(g, list) else Array(g)

    def _sum(self, before: str | None, ge: str) -> str:
        if before is None:
            return ge
        new = self._new()
        known = self.shapes.get(before)
        if known is not None and self.shapes.get(ge) == known and known[0] != ():
            self.steps.append(Step(add, (Array(before), Array(ge)), {}, new, known))
            self.shapes[new] = known
        else:
            self.steps.append(Step(plus, (Array(before), Array(ge)), {}, new, None))
        return new

    def _kept(self, node: Any, book: Book) -> dict[str, Any]:
        """What the node keeps, with names in place of arrays."""
        found: dict[str, Any] = {}
        if any(counter[0] != version for counter, version in node.versions or ()):
            raise Refused(f"{node.op.name}, of whose values one was changed in place")
        if node.kept is None and not node.op.keeps_nothing:
            raise Refused(f"{node.op.name}, whose values are freed")
        for key, value in (node.kept or {}).items():
            found[key] = self._place(value, book)
        return found

    def _place(self, value: Any, book: Book) -> Any:
        if type(value) is np.ndarray:
            name = book.name_of(value)
            if name is None:
                raise Refused(f"{self.at} keeps an array from elsewhere")
            return Array(name)
        if type(value) is tuple:
            return tuple([self._place(v, book) for v in value])
        if isinstance(value, (np.generic,)) or hasattr(value, "_array") or isinstance(value, list):
            raise Refused("a kept value of another kind")
        return value

    def _pulled(self, node: Any, g: Any, book: Book, masked: bool) -> tuple[list, bool, list[bool]]:
        """Names of the inputs' gradients; whether masks are about; which are arrays of their own."""
        op, edges = node.op, node.edges
        count, self.at = len(edges), op.name
        if isinstance(op, Cut):
            pieces = [self._new() if e is not None else None for e in edges]
            masked = masked or isinstance(g, list) and None in g
            if isinstance(g, list) and None not in g and isinstance(op.join, Op):
                self.steps.append(Step(op.join.cpu, tuple(map(Array, g)), {"dim": op.dim}, pieces[0], None))
                return pieces, masked, [False] * count
            pull = _pulling(op, edges, (), {}, None, masked)
            self.steps.append(Step(pull, (self._placed(g),), {}, pieces, None))
            return pieces, masked, [False] * count
        if type(op).pull not in BY_RULES:
            raise Refused(f"{op.name}, which may run a user's code")
        for value in node.settings.values():
            if isinstance(value, np.ndarray) or hasattr(value, "_array"):
                raise Refused("a setting that is an array")
        if isinstance(op, Elementwise):
            if op._passes and node.shapes is None:
                return [g if e is not None else None for e in edges], masked, [False] * count
            if node.shapes is None and not masked and not op.masks and op.rules is not None:
                return self._elementwise(node, g, book), masked, [
                    r is not None and r.text != "g" for r in op.rules]
            if not masked and op._passes:
                return self._broadcast(node, g), masked, [False] * count
            kept = self._kept(node, book)
            found = [self._new() if e is not None and (op.rules is None or op.rules[i] is not None) else None
                     for i, e in enumerate(edges)]
            pull = _pulling(op, edges, tuple(kept), node.settings, node.shapes, masked)
            self.steps.append(Step(pull, (self._placed(g), *kept.values()), {}, found, None))
            if not masked and not op.masks and op.rules is not None and node.shapes is not None:
                whole = np.broadcast_shapes(*[s for s in node.shapes if s is not None])
                found = [g if n is not None and r.text == "g" and s == whole else n
                         for n, r, s in zip(found, op.rules, node.shapes)]
                self.steps[-1].results = [None if n == g else n for n in found]
            return found, masked or op.masks, [False] * count
        masked = masked or op.masks
        kept = self._kept(node, book)
        values = {**node.settings, **kept}
        if op.joint is not None:
            rules = [op.joint]
        else:
            rules = [r if e is not None else None for r, e in zip(op.rules, edges)]
        names: list = [None] * count
        for i, rule in enumerate(rules):
            if rule is None:
                continue
            operands = [self._placed(g)]
            keys = []
            for name in rule.names:
                if name == "needs" and rule is op.joint:
                    operands.append(tuple([e is not None for e in edges]))
                elif name not in values:
                    raise Refused(f"{op.name} keeps no {name}")
                elif type(values[name]) is Drawn:
                    keys.append(len(operands))
                    operands.append(self._place(values[name].array, book))
                else:
                    operands.append(values[name])
            function = fast(rule.on(_EXAMPLE["f"]))
            if keys:
                function = by_keys(function, keys)
            if rule is op.joint:
                names = [self._new() if e is not None else None for e in edges]
                self.steps.append(Step(function, tuple(operands), {}, names, None))
            else:
                names[i] = self._new()
                self.steps.append(Step(function, tuple(operands), {}, names[i], None))
        return names, masked, [False] * count

    def _broadcast(self, node: Any, g: str) -> list:
        """Of a sum whose operands were repeated: the gradient, in each operand's shape."""
        whole = np.broadcast_shapes(*[s for s in node.shapes if s is not None])
        names: list = [None] * len(node.edges)
        for i, (edge, shape) in enumerate(zip(node.edges, node.shapes)):
            if edge is None:
                continue
            if shape == whole:
                names[i] = g
                continue
            names[i] = new = self._new()
            if prod(shape) == prod(whole):
                self.steps.append(Step(np.ndarray.reshape, (Array(g), shape), {}, new, None))
            else:
                self.steps.append(Step(sum_to.cpu, (Array(g),), {"size": shape}, new, None))
        return names

    def _elementwise(self, node: Any, g: str, book: Book) -> list:
        op = node.op
        values = {**node.settings, **self._kept(node, book)}
        names: list = [None] * len(node.edges)
        for i, rule in enumerate(op.rules):
            if node.edges[i] is None or rule is None:
                continue
            if rule.text == "g":
                names[i] = g
                continue
            kernel = rule.on(_EXAMPLE["f"])
            fusion.note(kernel, rule.text, ("g", *rule.names), rule.settings)
            known = self.shapes.get(g)
            names[i] = self._new()
            self.steps.append(Step(kernel, (Array(g), *[values[n] for n in rule.names]), {}, names[i], known))
            if known is not None:
                self.shapes[names[i]] = known
        return names


# -- the graph of a backward that went by a plan, should somebody look at it ---------------------------


class Later(Node):
    """A node that is made up when somebody looks: all that ran is freed, as after any backward."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in ("op", "edges", "kept", "versions", "settings", "shapes"):
            self.notes["later"].make()  # type: ignore[has-type]
            return getattr(self, name)
        raise AttributeError(name)


_new_later = Later.__new__


class Given(NamedTuple):
    """The place of a key that was drawn, among settings."""

    number: int  # of what was handed in


class Freed:
    """The nodes of a segment whose backward went by a plan; made at first look."""

    __slots__ = ("template", "edges", "ends", "laters", "base", "nodes")

    def __init__(self, template: list, edges: tuple, ends: tuple) -> None:
        self.template = template
        self.edges = edges
        self.ends = ends  # the leaves, by their numbers, and keys that were drawn
        self.laters: dict[int, ref] = {}
        self.base = next_seq()
        self.nodes: dict[int, Any] = {}

    def node(self, number: int) -> Any:
        """What stands for node ``number``, counted from the newest."""
        if self.nodes or self.template[number][0] is not Node:
            if not self.nodes:
                self.make()
            return self.nodes[number]
        later: Any = _new_later(Later)
        later.hooks = None
        later.seq = self.base - (number + 1) / (len(self.template) + 2)
        later.notes = {"later": self}
        self.laters[number] = ref(later)
        return later

    def make(self) -> None:
        """Make the nodes, from the oldest to the newest."""
        nodes, leaves = self.nodes, dict(zip(self.edges, self.ends))
        for number in range(len(self.template) - 1, -1, -1):
            kind, *rest = self.template[number]
            if kind is Leaf:
                nodes[number] = leaves[rest[0]]
                continue
            if kind is Pick:
                node: Any = Pick(nodes[rest[0]], rest[1])
            else:
                known = self.laters.get(number)
                node = None if known is None else known()
                op, edges, kept, versions, settings, shapes = rest
                settings = {k: leaves[v.number] if type(v) is Given else v for k, v in settings.items()}
                edges = tuple([None if e is None else nodes[e] for e in edges])
                if kind is PlainNode:
                    node = PlainNode(op, edges)
                else:
                    if node is None:
                        node = Node.__new__(Node)
                        node.hooks = None
                    else:
                        del node.notes
                        node.__class__ = Node
                    node.op, node.edges, node.kept, node.versions = op, edges, kept, versions
                    node.settings, node.shapes = settings, shapes
            node.seq = self.base - (number + 1) / (len(self.template) + 2)
            nodes[number] = node


def template_of(order: list, leaves: dict, book: Book) -> list:
    """What ``Freed`` makes nodes of, after a backward."""
    def placed(value: Any) -> Any:
        if type(value) is not Drawn:
            return value
        name = book.name_of(value.array)
        if name is None or name[0] != "e":
            raise Refused("a key from elsewhere")
        return Given(int(name[1:]))
    numbers = {node: i for i, node in enumerate(order)}
    found: list[tuple] = []
    for node in order:
        if type(node) is Leaf:
            found.append((Leaf, leaves[node]))
        elif type(node) is Pick:
            found.append((Pick, numbers[node.edges[0]], node.index))
        else:
            edges = tuple([None if e is None else numbers[e] for e in node.edges])
            freed = bool(node.versions)
            kept = None if freed or node.kept is None else dict(node.kept)
            if kept and any(hasattr(v, "strides") for v in kept.values()):
                raise Refused("a node that keeps its arrays")
            settings = {k: placed(v) for k, v in node.settings.items()}
            found.append((type(node), node.op, edges, kept, None if freed else node.versions, settings,
                          node.shapes))
    return found
