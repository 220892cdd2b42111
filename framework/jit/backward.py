"""Backward passes as plans: the walk over a graph that was seen before, without finding out its order again.

A *plan* is what ``autograd/engine.py`` does for graphs of one structure, in its order: which node's
derivative is taken when, and where each gradient goes. Before it runs, the graph at hand is compared with
it, node by node (op, edges, order of creation, no hooks); a graph that differs goes by the engine, and so
does whatever could run a user's code. Derivatives are the records' own rules, called on the same arrays: the
bits are the engine's, and so is the order in which leaves are filled and kept values freed, also when a rule
raises in the middle.
"""

from collections.abc import Callable
from dis import opmap
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd.engine import LARGE, accumulate, plus, takes_over
from ..autograd.mode import masked_walks, state
from ..backends import cuda
from ..backends.native import add, copied
from ..node import Leaf, Node, Pick, PlainNode
from ..ops.language.elementwise import Elementwise
from ..ops.linalg.matmul import LinearOp
from ..ops.record.entries import behind
from ..ops.record.op import Op
from ..ops.record.placing import PlacingOp
from ..ops.shape.split import Cut
from ..quiet import quiet

ndarray = np.ndarray
MOST = 8  # structures that are kept for one compiled function
AT_ONCE = False  # whether derivatives are made together with a plan; else one each time that it runs
# these run a record's rules and nobody else's code
BY_RULES = (Op.pull, Elementwise.pull, PlacingOp.pull, LinearOp.pull)


class Refused(Exception):
    """Why a graph cannot be planned."""


class Plan:
    """The walk over graphs of one structure.

    shape: per node, in the order of the walk: (type, op or index, edges), an edge being the number of its
    node in order of discovery, or None. steps: per node (number, derivative, routes, owner of parts, index).
    """

    __slots__ = ("shape", "steps", "missing", "count", "served", "words")

    def __init__(self, root: Any) -> None:
        nodes: list[Any] = [root]
        numbers = {root: 0}
        todo, order = [root], []
        while todo:  # all that is reached, whatever the order
            for edge in todo.pop().edges:
                if edge is not None and edge not in numbers:
                    numbers[edge] = len(numbers)
                    todo.append(edge)
        order = sorted(numbers, key=lambda node: -node.seq)
        numbers = {root: 0}
        self.missing: dict[tuple, list[int]] = {}  # derivatives still to be made, the steps they are for
        self.shape: list[tuple] = []
        self.steps: list[tuple] = []
        for node in order:
            if node not in numbers:
                raise Refused("a node that is older than what leads to it")
            edges: list[int | None] = []
            for edge in node.edges:
                if edge is None:
                    edges.append(None)
                    continue
                if edge not in numbers:
                    numbers[edge] = len(numbers)
                    nodes.append(edge)
                edges.append(numbers[edge])
            self._add(node, numbers[node], edges, nodes)
        self.count, self.served = len(nodes), 0
        self.words = f"{len(order)} nodes from {root.name()}"

    def _add(self, node: Any, number: int, edges: list, nodes: list) -> None:
        kind = type(node)
        if kind is Leaf:
            if node.hooks is not None or node.after:
                raise Refused("a hook on a leaf")
            self.shape.append((number, kind, None, ()))
            self.steps.append((number, None, (), -1, 0))
            return
        if node.hooks is not None:
            raise Refused(f"a hook on the result of {node.name()}")
        if kind is Pick:
            self.shape.append((number, kind, node.index, tuple(edges)))
            self.steps.append((number, None, (), edges[0], node.index))
            return
        if kind not in (Node, PlainNode) or not edges:
            raise Refused(f"a node of another kind ({kind.__name__}, {node.name()})")
        op = node.op
        if isinstance(op, Cut):  # an op of its own for each call
            self.shape.append((number, kind, Cut, tuple(edges)))
            pull: Callable = _pull_plainly
        elif type(op).pull in BY_RULES:
            self.shape.append((number, kind, op, tuple(edges)))
            key = (op, kind, tuple([e is not None for e in edges]))
            pull = derivative(*key) if AT_ONCE else _derivatives.get(key, _pull_plainly)
            if pull is _pull_plainly:
                self.missing.setdefault(key, []).append(len(self.steps))
        else:
            raise Refused(f"{op.name}, which may run a user's code")
        routes = tuple([(i, e, type(nodes[e]) is Leaf) for i, e in enumerate(edges) if e is not None])
        self.steps.append((number, pull, routes, -1, 0))

    def fits(self, root: Any) -> list | None:
        """The nodes of the graph by their numbers, if it has this structure."""
        nodes = [root]
        last = root.seq + 1
        found = 1
        for number, kind, what, edges in self.shape:
            node = nodes[number]
            if type(node) is not kind or node.hooks is not None or node.seq >= last:
                return None
            last = node.seq
            if kind is Leaf:
                if node.after:
                    return None
                continue
            theirs = node.edges
            if len(theirs) != len(edges):
                return None
            if kind is Pick:
                if node.index != what:
                    return None
            elif node.op is not what and (what is not Cut or type(node.op) is not Cut):
                return None
            for e, edge in zip(edges, theirs):
                if e is None:
                    if edge is not None:
                        return None
                elif e < found:
                    if nodes[e] is not edge:
                        return None
                elif edge is None:
                    return None
                else:
                    nodes.append(edge)
                    found += 1
        return nodes  # no node is there twice: each is older than the one before

    def run(self, nodes: list, seed: Any, retain: bool) -> None:
        """The walk: what ``engine._run_plainly`` does, over nodes that fit."""
        if self.missing:
            key, places = self.missing.popitem()
            made = derivative(*key)
            for i in places:
                number, _, *rest = self.steps[i]
                self.steps[i] = (number, made, *rest)
        quick = dtypes.plain  # otherwise records look at the arrays to choose a kernel
        gradients: list[Any] = [None] * self.count
        owned = [False] * self.count  # whether nobody else has the gradient that waits there
        late: list[tuple] = []  # leaves that take an array which others may still read
        gradients[0] = seed
        for number, pull, routes, whole, index in self.steps:
            g = gradients[number]
            if g is None:  # no gradient came by
                continue
            gradients[number] = None
            node, mine = nodes[number], owned[number]
            if pull is None:
                if whole < 0:
                    accumulate(node, g, False)
                    continue
                parts = gradients[whole]
                if parts is None:
                    parts = gradients[whole] = [None] * nodes[whole].op.differentiable
                parts[index] = g if parts[index] is None else plus(parts[index], g)
                continue
            versions = node.versions
            fresh = False
            if versions and type(g) is ndarray and g.size >= LARGE \
                    and (into := getattr(node.op, "pull_new", None)) is not None:
                grads, fresh = into(node, g, node.edges, mine)
            else:
                grads = pull(node, g) if quick else node.op.pull(node, g, node.edges, False)
            if versions and not retain:
                node.kept = node.versions = None
            for i, target, leaf in routes:
                ge = grads[i]
                if ge is None:
                    continue
                if leaf and not fresh and (ge is g or ge.base is not None) \
                        and (nodes[target].home is None or ge is not nodes[target].home.array):
                    if mine and ge is g and takes_over(nodes[target], node.op):
                        late.append((nodes[target], g))  # it comes last, which is seen in the last bit
                        mine = False
                        continue
                    ge = copied(ge)  # a leaf's .grad is the user's: never shared with another's
                before = gradients[target]
                if before is None:
                    gradients[target] = ge
                    owned[target] = fresh
                elif owned[target] and isinstance(before, ndarray):
                    add(before, ge, out=before)
                else:
                    gradients[target] = plus(before, ge)
                    owned[target] = True
        for leaf, g in late:
            accumulate(leaf, g, False)


def _pull_plainly(node: Any, g: Any) -> Any:
    return node.op.pull(node, g, node.edges, False)


# -- derivatives of single calls ------------------------------------------------------------------------

_derivatives: dict[tuple, Callable] = {}


def derivative(op: Any, kind: type, wanted: tuple[bool, ...]) -> Callable:
    """``op.pull`` on arrays for calls whose inputs want gradients so: a function of (node, g).

    What is rare (a kept value that was changed or freed, complex numbers, broadcasting, masks) is left to
    ``pull``.
    """
    key = (op, kind, wanted)
    found = _derivatives.get(key)
    if found is None:
        found = _derivatives[key] = _made(op, kind, wanted)
    return found


def _made(op: Any, kind: type, wanted: tuple[bool, ...]) -> Callable:
    elementwise = isinstance(op, Elementwise)
    if kind is PlainNode or elementwise and op._passes:
        if not elementwise or not op._passes:
            return lambda node, g: op.pull(node, g, node.edges, False)
        several = len(wanted)
        return lambda node, g: (g,) * several if node.shapes is None else op.pull(node, g, node.edges, False)
    scope: dict[str, Any] = {"op": op, "state": state, "masked": masked_walks}
    lines = ["K = node.kept"]
    if op.conjugates:
        lines.append("if g.dtype.kind == 'c': return op.pull(node, g, node.edges, False)")
    if elementwise:
        lines += ["if node.shapes is not None or masked and state.walk in masked: "
                  "return op.pull(node, g, node.edges, False)"]
        if op.masks:
            return lambda node, g: op.pull(node, g, node.edges, False)
    elif op.masks:
        lines.append("masked.add(state.walk)")
    if not op.keeps_nothing:
        lines += ["V = node.versions",
                  "if V:",
                  "    for c, v in V:",
                  "        if c[0] != v: return op.pull(node, g, node.edges, False)",
                  "elif K is None: return op.pull(node, g, node.edges, False)"]
    if op.joint is not None:
        scope["r"], scope["needs"] = fast(op.joint.on(_EXAMPLE)), wanted
        lines.append(f"return r(g{_arguments(op, op.joint)})")
    else:
        parts = []
        for i, rule in enumerate(op.rules):
            if wanted[i] and rule is not None:
                scope[f"r{i}"] = fast(rule.on(_EXAMPLE))
                parts.append(f"r{i}(g{_arguments(op, rule)})")
            else:
                parts.append("None")
        lines.append(f"return [{', '.join(parts)}]")
    text = "def pull(node, g):\n" + "\n".join(f"    {line}" for line in lines)
    exec(compile(text, f"<derivative of {op.name}>", "exec"), scope)  # of the names of a record only
    return scope["pull"]


_EXAMPLE = np.zeros(1, np.float32)


def _arguments(op: Any, rule: Any) -> str:
    words = []
    for name in rule.names:
        if name == "needs" and rule is op.joint:
            words.append("needs")
        elif op._source(name) is not None:
            words.append(f"K[{name!r}]")
        else:
            words.append(f"node.settings[{name!r}]")
    return "".join(f", {word}" for word in words)


_fast: dict[Callable, Callable] = {}


def fast(function: Callable) -> Callable:
    """A rule in which records that it calls are their CPU kernels, as they are for NumPy's arrays.

    Calling a record on arrays asks first whether one is a tensor, then for the kernel; a plan has arrays
    only, and runs only where the CPU's kernel is the answer (``dtypes.plain``).
    """
    function = behind(function)
    if type(function) is not FunctionType or "ops" not in (function.__module__ or "").split("."):
        return function
    made = _fast.get(function)
    if made is not None:
        return made
    _fast[function] = function  # for one that calls itself
    called, other = globals_of(function.__code__)
    replaced = {}
    for name in called - other:
        thing = function.__globals__.get(name)
        if isinstance(thing, Op) and type(thing).__call__ is Op.__call__ and "cpu" in vars(thing) \
                and getattr(thing.cpu, "__self__", None) is not thing:
            replaced[name] = thing.cpu
        elif callable(thing) and type(behind(thing)) is FunctionType and (quick := fast(thing)) is not thing:
            replaced[name] = quick
    if replaced:
        made = FunctionType(function.__code__, {**function.__globals__, **replaced}, function.__name__,
                            function.__defaults__, function.__closure__)
        made.__kwdefaults__ = function.__kwdefaults__
        made.__wrapped__ = function  # type: ignore[attr-defined]
        _fast[function] = made
    return _fast[function]


def globals_of(code: CodeType) -> tuple[set[str], set[str]]:
    """The global names that code calls, and those that it takes in any other way."""
    called: set[str] = set()
    other: set[str] = set()
    text, high = code.co_code, 0
    for at in range(0, len(text), 2):  # an instruction is two bytes, its number and its argument
        argument = text[at + 1] | high
        high = argument << 8 if text[at] == _EXTENDED else 0
        if text[at] == _LOAD:
            (called if argument & 1 else other).add(code.co_names[argument >> 1])
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more, rest = globals_of(inner)
            called |= more
            other |= rest
    return called, other


_LOAD, _EXTENDED = opmap["LOAD_GLOBAL"], opmap["EXTENDED_ARG"]


# -- the door -------------------------------------------------------------------------------------------


class BackwardPlans:
    """The plans of one compiled function's backward passes, and what became of them."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.seen: list[Any] = []  # roots' ops of graphs that were seen once
        self.served = self.by_engine = 0
        self.reasons: dict[str, int] = {}

    def backward(self, engine: Callable, pending: dict, heap: list, retain: bool, live: bool, needed: Any,
                 targets: set, caught: dict, ends: bool, watch: Any) -> None:
        """In place of ``engine``: by a plan where one fits."""
        reason = None
        if live or needed is not None or watch is not None or len(pending) != 1:
            reason = "create_graph=True, inputs=..., autograd.grad, anomaly mode or several roots"
        elif quiet.run is None or cuda._cupy is not None:
            reason = "an interceptor, or a GPU is in use"
        else:
            (root, seed), = pending.items()
            if type(seed) is not ndarray or type(root) not in (Node, PlainNode):
                reason = "a root that is no plain call"
        if reason is None:
            for i, plan in enumerate(self.plans):
                nodes = plan.fits(root)
                if nodes is not None:
                    if i:
                        self.plans.insert(0, self.plans.pop(i))
                    plan.served += 1
                    self.served += 1
                    pending.clear()
                    heap.clear()
                    plan.run(nodes, seed, retain)
                    return
            reason = self._learn(root)
        self.by_engine += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        engine(pending, heap, retain, live, needed, targets, caught, ends, watch)

    def _learn(self, root: Any) -> str:
        """Make a plan for graphs like this one, the first of which goes by the engine."""
        try:
            plan = Plan(root)
        except Refused as refused:
            return str(refused)
        self.plans.insert(0, plan)
        if len(self.plans) > MOST:
            self.plans.pop()
            return f"a new structure, more than {MOST} of them"
        return "a new structure"
