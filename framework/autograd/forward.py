"""Forward mode: tangents that travel with values.

A tangent of a tensor hangs on its node, one per open level; a tensor that no gradient is recorded for
gets a ``Dual`` node to carry it. While a level is open, records hand their calls to ``track``, which
pushes the tangents of the inputs to the outputs, by the record's ``jvp`` word or by differentiating its
reverse rule. The levels are pushed from the outermost to the innermost one, each with only those around
it in force; so a derivative of an inner level is itself differentiated by the outer ones and by backward,
and perturbations of different levels cannot be confused.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from ..backends import array_module
from ..dtypes import FLOAT
from ..errors import AutogradError
from ..node import Dual, Pick
from ..tensor import Tensor, counter_of, set_node, wrap
from .engine import grad
from .mode import enable_grad, set_recording, state

_NONE: dict = {}


class Level:
    """One nesting of forward mode: knows, weakly, the nodes that carry a tangent of it."""

    def __init__(self) -> None:
        self.nodes: WeakSet[Any] = WeakSet()


def open_level() -> Level:
    """Start a level inside those that are in force in this thread."""
    level = Level()
    state.opened += (level,)
    state.levels += (level,)
    set_recording(state.recording)
    return level


def close_level(level: Level) -> None:
    """End a level: its tangents are dropped, and tensors that only had such a one are plain again."""
    state.opened = tuple([one for one in state.opened if one is not level])
    state.levels = tuple([one for one in state.levels if one is not level])
    set_recording(state.recording)
    for node in list(level.nodes):
        tangents = node.tangents
        tangents.pop(level, None)
        if type(node) is Dual and not tangents:
            for ref in node.owners:
                t = ref()
                if t is not None and t._node is node:
                    t._node = None


@contextmanager
def only(levels: tuple) -> Iterator[None]:
    """Push tangents of these levels alone."""
    before = state.levels
    state.levels = levels
    try:
        yield
    finally:
        state.levels = before


def only_outside(level: Level) -> Any:
    """Push tangents of the levels outside ``level`` alone."""
    levels = state.levels
    return only(levels[:levels.index(level)])


# -- tangents and where they hang ----------------------------------------------------------------


def is_recorded(node: Any) -> bool:
    """Whether a gradient flows through this place."""
    if type(node) is Pick:
        node = node.edges[0]
    return node is not None and type(node) is not Dual


def tangent_at(node: Any, level: Level) -> Tensor | None:
    """The tangent that hangs on a place in the graph."""
    index = 0
    if type(node) is Pick:
        index, node = node.index, node.edges[0]
    found = getattr(node, "tangents", _NONE).get(level)
    return None if found is None else found[index]


def hang(node: Any, level: Level, tangents: tuple) -> None:
    """Hang the tangents of a node's outputs on it."""
    if hasattr(node, "tangents"):
        node.tangents[level] = tangents
    else:
        node.tangents = {level: tangents}
    level.nodes.add(node)


def carry(sources: Sequence, node: Any, levels: tuple | None = None) -> None:
    """Hang the tangents of ``sources`` on ``node``, one for each of its outputs."""
    for level in state.levels if levels is None else levels:
        tangents = tuple([tangent_at(source, level) for source in sources])
        if _some(tangents):
            hang(node, level, tangents)


def replace_tangents(node: Any, source: Any) -> None:
    """Give ``node`` the tangents of ``source`` for its own, for values written outside the graph."""
    index, home = (node.index, node.edges[0]) if type(node) is Pick else (0, node)
    for level in state.opened:
        old, new = getattr(home, "tangents", _NONE).get(level), tangent_at(source, level)
        if old is not None or new is not None:
            parts = list(old or [None] * (home.op.differentiable if type(node) is Pick else 1))
            parts[index] = new
            hang(home, level, tuple(parts))


def plain(x: Tensor, levels: tuple = ()) -> Tensor:
    """The same memory, without a gradient, with the tangents of these levels only."""
    out = wrap(x._array)
    out._counter = counter_of(x)
    if any(tangent_at(x._node, level) is not None for level in levels):
        set_node(out, Dual())
        carry([x._node], out._node, levels)
    return out


# -- one call of an op ---------------------------------------------------------------------------


def track(op: Any, inputs: Sequence, arrays: Sequence, results: tuple, settings: dict) -> None:
    """Put the results of a call at their places in the graph, with their tangents."""
    places = [x._node if isinstance(x, Tensor) else None for x in inputs]
    recorded = state.recording and any(is_recorded(p) for p in places)
    levels, moving = state.levels, []
    for i, level in enumerate(levels):
        tangents = [None if p is None else tangent_at(p, level) for p in places]
        if _some(tangents):
            moving.append((i, level, tangents))
    if not recorded and not moving:
        return
    call = (inputs, arrays, results, settings)
    node = op.node(*call) if recorded else _passing_node(op, *call)
    for i, level, tangents in moving:
        live = state.recording and any(t.requires_grad for t in tangents if t is not None)
        traced = i > 0 or recorded or live
        found = _push_within(levels[:i], traced, node, inputs, tangents, results)
        if _some(found):
            hang(node, level, found)
    if not recorded:
        node.end()
    if op.differentiable == 1:
        if recorded or hasattr(node, "tangents"):
            set_node(results[0], node)
        return
    for i, result in enumerate(results[:op.differentiable]):
        if recorded:
            result._node = Pick(node, i)
        elif _some(tangent_at(Pick(node, i), level) for level in levels):
            set_node(result, Dual())
            carry([Pick(node, i)], result._node)


def _passing_node(op: Any, inputs: Sequence, arrays: Sequence, results: tuple, settings: dict) -> Any:
    """The node of a call that is not recorded, for its rules; what they make of its outputs is not either."""
    hooks, state.saved_hooks = state.saved_hooks, ()
    try:
        node = op.node(inputs, arrays, results, settings)
    finally:
        state.saved_hooks = hooks
    return Dual.standing_for(node, op)


def _some(tangents: Iterable) -> bool:
    return any(t is not None for t in tangents)


def _push_within(levels: tuple, traced: bool, *call: Any) -> tuple:
    """``push`` with these levels in force; as if none were open where no derivative follows the tangents."""
    before = state.levels, state.opened, state.recording
    state.levels = levels
    if not traced:
        state.opened = ()
        set_recording(False)
    try:
        return push(*call)
    finally:
        state.levels, state.opened, recording = before
        set_recording(recording)


def push(node: Any, inputs: Sequence, tangents: Sequence, results: Sequence) -> tuple:
    """The tangents of a call's outputs, None for zero, from those of its inputs.

    By the record's word: "linear" runs it on the tangents; "multilinear" sums the runs with one input
    replaced by its tangent; "symmetric" (the Jacobian equals its transpose) is the reverse rule; without
    a word the reverse rule is transposed by differentiating it.
    """
    op, settings = node.op, node.settings
    if op.jvp == "linear":
        out = op.road(*[_tangent_of(x, t) for x, t in zip(inputs, tangents)], **settings)
    elif op.jvp == "multilinear":
        out = _sum([op.road(*inputs[:i], t, *inputs[i + 1:], **settings)
                    for i, t in enumerate(tangents) if t is not None])
    elif op.jvp == "symmetric" and not any(t is not None and t.is_complex() for t in tangents):
        (out,) = [g for g in op.pull(node, _only_one(op, tangents), _reached(node, tangents), True)
                  if g is not None] or [None]
    else:
        return transposed(node, tangents, results)
    found = out if isinstance(out, tuple) else (out,)
    return found[:op.differentiable]


def transposed(node: Any, tangents: Sequence, results: Sequence) -> tuple:
    """The tangents of the outputs by differentiating the reverse rule, which is linear, in its cotangent."""
    op = node.op
    again = state.recording and (is_recorded(node) or any(
        t is not None and t.requires_grad for t in tangents))
    with enable_grad():
        # any cotangent will do: 0 is taken for a masked element by rules of one output, and is the one that
        # rules of factorisations, which refuse cotangents that depend on a phase, never refuse
        value = 1 if op.differentiable == 1 else 0
        vs = [(_zeros(y) + value).requires_grad_() for y in results[:op.differentiable]]
        pulled = op.pull(node, vs[0] if op.differentiable == 1 else list(vs), _reached(node, tangents), True)
        pairs = [(g, t) for g, t in zip(pulled, tangents)
                 if t is not None and g is not None and g.requires_grad]
        if not pairs:
            return (None,) * len(vs)
        return grad([g for g, _ in pairs], vs, [t for _, t in pairs], create_graph=again, allow_unused=True)


def _reached(node: Any, tangents: Sequence) -> tuple:
    return tuple([None if t is None else edge for edge, t in zip(node.edges, tangents)])


def _only_one(op: Any, tangents: Sequence) -> Tensor:
    given = [t for t in tangents if t is not None]
    if len(given) != 1:
        raise ValueError(f"{op.name}: the word 'symmetric' is for ops of one differentiable input, "
                         f"got {len(given)} tangents")
    return given[0]


def _tangent_of(x: Any, t: Tensor | None) -> Any:
    if t is not None:
        return t
    if isinstance(x, Tensor):  # whole numbers and masks take no part: they choose, they are not added
        return _zeros(x) if x.dtype.category >= FLOAT else x
    return 0.0 if isinstance(x, (int, float)) and not isinstance(x, bool) else x


def _zeros(y: Tensor) -> Tensor:
    return wrap(array_module(y._array).zeros_like(y._array))


def _sum(terms: list) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = (tuple([a + b for a, b in zip(total, term)]) if isinstance(total, tuple)
                 else total + term)
    return total


# -- one call of a Function ----------------------------------------------------------------------


def push_function(cls: Any, ctx: Any, edges: tuple, args: tuple, outputs: tuple, results: tuple,
                  carries: list[bool]) -> None:
    """Give ``results`` the tangents that the user's ``jvp`` computes from those of the arguments."""
    name = cls.__name__
    lent = tuple([next((r for x, r in zip(outputs, results) if x is t), t)
                  for t in ctx._for_forward or ctx._tensors])
    for level in state.levels:
        tangents: list = [tangent_at(edge, level) for edge in edges]
        if not _some(tangents):
            continue
        if ctx._materialize:
            tangents = [_zeros(x) if t is None and isinstance(x, Tensor) else t
                        for x, t in zip(args, tangents)]
        ctx._tensors = lent
        with only_outside(level):
            try:
                given = cls.jvp(ctx, *tangents)
            except NotImplementedError as error:
                raise NotImplementedError(
                    f"{name} has no jvp, so tangents cannot pass through it in forward mode; give it a "
                    f"static method jvp(ctx, *tangents) that returns the tangents of its outputs") from error
        found = given if isinstance(given, tuple) else (given,)
        if len(found) != len(results):
            raise AutogradError(f"{name}.jvp returned {len(found)} tangents for {len(results)} outputs of "
                                f"forward; return one (or None) for each")
        _hang_outputs(name, level, results, [t if own else None for t, own in zip(found, carries)])


def _hang_outputs(name: str, level: Level, results: tuple, tangents: list) -> None:
    for i, (y, t) in enumerate(zip(results, tangents)):
        if t is not None and (not isinstance(t, Tensor) or t.shape != y.shape or t.dtype is not y.dtype):
            what = f"{t.dtype}{list(t.shape)}" if isinstance(t, Tensor) else type(t).__name__
            raise AutogradError(f"{name}.jvp: tangent {i} is {what}, output {i} of forward is "
                                f"{y.dtype}{list(y.shape)}")
    source = next((y._node for y in results if isinstance(y, Tensor) and is_recorded(y._node)), None)
    if source is not None:
        hang(source.edges[0] if type(source) is Pick else source, level, tuple(tangents))
        return
    for y, t in zip(results, tangents):
        if t is not None:
            if y._node is None:
                set_node(y, Dual())
            hang(y._node, level, (t,))
