"""Backward: walk the graph from the newest node to the oldest, adding up gradients.

Iterative, over a heap ordered by creation, so depth is bounded by memory and not by the stack.
Gradients travel as plain arrays; only under ``create_graph=True`` as tensors, recorded again.
"""

import gc
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from sys import getrefcount
from typing import Any
from weakref import ref

import numpy as np

from .. import _native
from ..backends import cuda, move, passes
from ..backends.native import add, copied
from ..doors import through
from ..errors import AutogradError, DeviceError, DTypeError, LayoutError, ShapeError
from ..memory_formats import dense_axes, inverse
from ..node import Leaf, Node, Pick, notes_of
from ..quiet import hush, quiet, speak
from ..seam import BACKWARD, Event, intercepted, settled
from ..sparse_door import is_sparse, sparse
from ..tensor import Tensor, as_tensor, counter_of, set_node, wrap
from . import streams
from .arguments import GradientEdge, place_of, seeds_of, stand_ins, tensors_given
from .mode import masked_walks, set_recording, state

LARGE = 1 << 17  # numbers of gradients whose memory is worth reusing
_age = attrgetter("seq")
_walk_back, _needed_nodes = [getattr(_native.module, name, None) for name in ("walk_back", "needed_nodes")]
_interrupted: set[ref] = set()  # nodes that an interrupted backward started from
_adding = threading.RLock()  # backwards of several threads may meet in a leaf


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None,
             create_graph: bool = False, inputs: Any = None) -> None:
    """Add the gradient of ``tensors`` to ``.grad`` of every leaf they were computed from.

    tensors: a tensor or a sequence. grad_tensors: the gradient of each (may be left out for tensors
    of one element). inputs: only these tensors receive gradients. create_graph: record backward too,
    so the gradients can be differentiated again. retain_graph: keep the graph for another backward
    (default: ``create_graph``).

    >>> x = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> fw.autograd.backward((x ** 2).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    roots = tensors_given(tensors, "backward", "tensors")
    seeds = seeds_of(roots, grad_tensors, _live(create_graph), "backward")
    targets: list | None = None
    if inputs is not None:
        wanted = tensors_given(inputs, "backward", "inputs")
        if not wanted:
            raise ValueError("backward: inputs is empty; leave it out to reach every leaf")
        targets = [place_of(t, "backward") for t in wanted]
    retain = create_graph if retain_graph is None else retain_graph
    found = _walk(roots, seeds, retain, create_graph, targets)
    if targets is not None:
        for t, g in zip(wanted, found):
            if g is not None:
                _store(getattr(t, "_entries", t), as_tensor(g), _live(create_graph))


_MANY = 1000  # outputs, which Python's collector would go over again and again, though none is garbage


@contextmanager
def _collector_rests() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple:
    """The gradients of ``outputs`` with respect to ``inputs``, as a tuple; ``.grad`` is not touched.

    allow_unused: None for an input that the outputs do not depend on, instead of an error.
    materialize_grads: zeros for it.
    is_grads_batched: each of grad_outputs has one more dimension in front, along which there are gradients
    for one backward each; all run as one (``func.vmap``), and the results have that dimension, too.
    only_inputs: PyTorch's; only its default is possible.

    A gradient that comes through unchanged, of a view or a sum, say, is in the memory of the one given (as
    PyTorch's is), a sum's repeats its numbers; what backward() writes to ``.grad`` never is.

    >>> x = fw.tensor(3.0, requires_grad=True)
    >>> (g,) = fw.autograd.grad(x ** 3, x, create_graph=True)
    >>> fw.autograd.grad(g, x)
    (tensor(18.),)
    """
    if type(outputs) in (list, tuple) and len(outputs) > _MANY and gc.isenabled():
        with _collector_rests():
            return grad(outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
                        is_grads_batched, materialize_grads)
    if not only_inputs:
        raise ValueError(f"grad: only_inputs={only_inputs!r} is not possible; to add to .grad of other "
                         f"leaves use backward()")
    roots = tensors_given(stand_ins(outputs, grad_outputs), "grad", "outputs")
    alone = isinstance(inputs, GradientEdge)
    wanted = [inputs] if alone else tensors_given(inputs, "grad", "inputs", edges=True)
    targets = [place_of(t, "grad") for t in wanted]
    retain = create_graph if retain_graph is None else retain_graph
    count = None
    if is_grads_batched:
        def pulled(given: Any) -> list:
            live = _live(create_graph)
            return _walk(roots, seeds_of(roots, given, live, "grad"), retain, create_graph, targets)
        count, found = through("batch").pulled_batch(pulled, grad_outputs)
    else:
        seeds = seeds_of(roots, grad_outputs, _live(create_graph), "grad")
        found = _walk(roots, seeds, retain, create_graph, targets, given=_owners(seeds))
    results: list[Tensor | None] = []
    given: Sequence = (grad_outputs,) if isinstance(grad_outputs, Tensor) else grad_outputs or ()
    for i, (t, g) in enumerate(zip(wanted, found)):
        if type(g) is np.ndarray and type(t) is Tensor:  # nearly every one
            results.append(_sharing(wrap(g), given))
            continue
        if g is None and not materialize_grads and not allow_unused:
            what = "a gradient edge" if isinstance(t, GradientEdge) else f"shape {list(t.shape)}"
            raise AutogradError(f"grad: inputs[{i}] ({what}) was not used to compute the "
                                f"outputs; pass allow_unused=True to get None for it")
        if g is None and materialize_grads and isinstance(t, Tensor):
            shape = t.shape if count is None else (count, *t.shape)
            g = move(np.zeros(shape, t._array.dtype), t.device)
        found_g = None if g is None else as_tensor(g)
        if type(g) is np.ndarray:
            found_g = _sharing(found_g, given)  # type: ignore[arg-type]
        results.append(sparse().like(t, found_g) if found_g is not None and is_sparse(t) else found_g)
    return tuple(results)


def _sharing(result: Tensor, given: Sequence) -> Tensor:
    """A gradient, which counts its changes with the one given whose memory it has, if it has."""
    own = result._array
    for g in given:
        if not isinstance(g, Tensor) or is_sparse(g) or own.base is None and own is not g._array:
            continue
        if _owner(own) is _owner(g._array):
            result._counter = g._counter or counter_of(g)
            break
    return result


def _walk(roots: Sequence, seeds: Sequence, retain: bool, create_graph: bool,
          targets: list | None, inside: set | None = None, given: frozenset | None = None) -> list:
    """Run backward; with targets, give the gradient that reached each and fill no leaf.

    inside: the nodes between the roots and the targets; then the walk ends at the targets, whose hooks are
    not called. given: whose memory may be given back, see ``Walk``.
    """
    live = _live(create_graph)
    if quiet.stack:
        settled(roots)
    pending: dict[Any, Any] = {}
    heap: list[tuple[int, Any]] = []
    for root, seed in zip(roots, seeds):
        if (node := root._node) is None:
            continue
        if pending:
            _add(pending, heap, node, seed, set())
        else:  # nearly always the only one
            pending[node] = seed
            heap.append((-node.seq, node))
    starts = list(pending)
    if _interrupted:
        _refuse_interrupted(starts)
    needed = None if targets is None else inside or _needed(starts, set(targets))
    caught: dict[Any, Any] = {}
    watch = state.anomaly
    if watch is not None:
        watch.start(roots, seeds)
    recording, outer = state.recording, state.walk
    run = _run if cuda._cupy is None or cuda.is_alone() else cuda.current_device_kept()(_run)
    if state.compiled is not None and not state.compiled.plain_backward:  # known graphs go by a plan
        run = partial(state.compiled.backward, run)
    walk = state.walk = Walk(starts, needed, retain, given)
    before = hush()
    try:
        if recording is not create_graph:
            set_recording(create_graph)
        run(pending, heap, retain, live, needed, set() if targets is None else set(targets), caught,
            inside is not None, watch)
        for end in walk.ends or ():
            end()
    except BaseException as error:
        if not isinstance(error, Exception) and not retain:
            for source in map(_source, starts):
                notes_of(source)["interrupted"] = type(error).__name__
                _interrupted.add(ref(source, _interrupted.discard))
        raise
    finally:
        if recording is not create_graph:
            set_recording(recording)
        speak(before)
        state.walk = outer
        masked_walks.discard(walk)
        walk.ends = None  # they may hold the walk
    return [] if targets is None else [caught.get(t) for t in targets]


def pull_back(roots: Sequence, seeds: Sequence, ends: list, inside: set, create_graph: bool) -> list:
    """The gradients (arrays, or tensors if they are live) that reach the places ``ends``, None for no path.

    For an op that recomputes part of a graph: backward stops at ``ends`` and comes by nodes ``inside`` only.
    """
    return _walk(roots, seeds, create_graph, create_graph, ends, inside.union(ends))


def _source(start: Any) -> Any:
    """The node that a place in the graph is an output of."""
    return start.edges[0] if type(start) is Pick else start


def _refuse_interrupted(starts: list) -> None:
    """Raise if a backward from one of these was interrupted (by Ctrl-C, say) before its end."""
    for node in map(_source, starts):
        if ref(node) in _interrupted:
            raise AutogradError(f"backward from {node.name()}: an earlier one was interrupted by "
                                f"{node.notes['interrupted']}, after which some gradients are added up and "
                                f"some kept values gone; compute the values anew")


def _live(create_graph: bool) -> bool:
    """Whether gradients travel as tensors: to be recorded, or because they have tangents or are a batch's."""
    return create_graph or bool(state.levels) or bool(state.batches)


def _run(pending: dict, heap: list, retain: bool, live: bool, needed: set | None, targets: set,
         caught: dict, ends: bool, watch: Any) -> None:
    """The walk: native where nobody looks at it and no device is in it."""
    if _walk_back is not None and watch is None and not ends and quiet.run is not None and cuda._cupy is None:
        _walk_back(pending, retain, live, needed, targets, caught)
    else:
        _run_plainly(pending, heap, retain, live, needed, targets, caught, ends, watch)


def _run_plainly(pending: dict, heap: list, retain: bool, live: bool, needed: set | None, targets: set,
                 caught: dict, ends: bool, watch: Any) -> None:
    lanes = streams.Streams() if streams.used and cuda._cupy is not None else None
    try:
        if lanes is not None:
            if live:
                streams.entered()
            for node, g in pending.items():
                cuda.follow(g)
                lanes.hand(node, g, lanes.found_here())
        _run_in_streams(pending, heap, retain, live, needed, targets, caught, ends, watch, lanes)
    finally:
        if lanes is not None:
            if live:
                streams.left()
            lanes.close()


def _run_in_streams(pending: dict, heap: list, retain: bool, live: bool, needed: set | None, targets: set,
                    caught: dict, ends: bool, watch: Any, lanes: Any) -> None:
    owned: set = set()  # nodes whose pending gradient is an array that nobody else has
    late: list[tuple] = []  # leaves that take an array which others may still read
    given = state.walk.given  # type: ignore[union-attr]
    several = cuda._cupy is not None and not cuda.is_alone()  # devices, of which one is the current one
    seen = quiet.run is None  # somebody looks at all calls
    node: Any = None
    ndarray, large = np.ndarray, math.inf if seen else LARGE
    while node is not None or heap:
        if node is None:
            node = heappop(heap)[1]
            g = pending.pop(node)
            mine = node in owned  # whether nobody else has g
        if several:
            cuda.follow(g)
        if lanes is not None:
            lanes.enter(node)
        if ends and node in targets:
            caught[node], node = g, None
            continue
        if node.hooks is not None:
            g = _call_hooks(node, g, live)
            mine = False
        edges = node.edges
        if needed is not None:
            if node in targets:
                caught[node], mine = g, False
            if not needed.issuperset(edges):
                edges = _on_the_way(edges, needed)
        if not edges or type(node) is Pick:
            if edges:
                if lanes is not None:
                    lanes.hand(edges[0], g, lanes.here)
                _add_part(pending, heap, edges[0], node.index, g)
            elif type(node) is Leaf:
                if watch is not None:
                    watch.arrived(node, g)
                if needed is None:
                    accumulate(node, g, live)
            node = None
            continue
        op, versions, fresh = node.op, node.versions, False  # fresh: that nobody else has the gradients
        if not live and not seen and lanes is None and getattr(op, "part", False) \
                and _added_to_part(node, g, edges[0], pending, owned):
            node = None
            continue
        if versions and type(g) is ndarray and g.size >= large \
                and (pull := getattr(op, "pull_new", None)) is not None:
            grads, fresh = pull(node, g, edges, mine)
        elif seen:
            grads = intercepted(Event(BACKWARD, op, (g,), {"live": live}, node=node), _pulling(node, edges))
        else:
            grads = op.pull(node, g, edges, live)
        if versions and not retain:
            node.kept = node.versions = None
        node = None  # in a chain, the next node: it needs no turn on the heap
        source = None if lanes is None else lanes.here
        for edge, ge in zip(edges, grads):
            if edge is None or ge is None:
                continue
            if lanes is not None:
                lanes.hand(edge, ge, source)
            if type(edge) is Leaf and not live and not fresh and (ge is g or ge.base is not None) \
                    and (edge.home is None or ge is not edge.home.array):
                if mine and ge is g and needed is None and watch is None and takes_over(edge, op):
                    late.append((edge, g))
                    mine = False
                    continue
                if not _is_handed_through(ge, given) and (ge is g or not _lies_alone(edge, ge)):
                    ge = _own_array(edge, ge)  # a leaf's .grad is the user's: never shared with another's
            if heap:
                _add(pending, heap, edge, ge, owned, fresh)
            elif node is None:
                node, chain = edge, ge
            else:
                _add(pending, heap, node, chain, owned, fresh)
                _add(pending, heap, edge, ge, owned, fresh)
                node = None
        if node is not None:
            g, mine = chain, fresh
    for leaf, g in late:
        if lanes is not None:
            lanes.enter(leaf)
        accumulate(leaf, g, live)


def _on_the_way(edges: tuple, needed: set) -> tuple:
    """Those that lead to a target; none if the walk ends here, so that the node keeps what it has."""
    edges = tuple([e if e in needed else None for e in edges])
    return edges if any(edges) else ()


def _pulling(node: Any, edges: tuple) -> Callable:
    return lambda g, live: node.op.pull(node, g, edges, live)


def takes_over(leaf: Leaf, op: Any) -> bool:
    """Whether a leaf without a hook gets a gradient that nobody saw on its way through ``op``."""
    return leaf.hooks is None and not leaf.after and getattr(op, "pull_new", None) is not None


def _add(pending: dict, heap: list, node: Any, g: Any, owned: set, fresh: bool = False) -> None:
    if node not in pending:
        if type(node) is Node and node.op.differentiable > 1:
            raise AssertionError("a node of several outputs is reached through its picks")
        pending[node] = g
        if fresh:
            owned.add(node)
        heappush(heap, (-node.seq, node))
    elif node in owned and isinstance(pending[node], np.ndarray) and not isinstance(g, Tensor):
        add(pending[node], g, out=pending[node])
    else:
        pending[node] = plus(pending[node], g)
        owned.add(node)


def _added_to_part(node: Any, g: Any, edge: Any, pending: dict, owned: set) -> bool:
    """Whether a gradient was added to the part that it is for of another one, which nobody else has.

    No zeros are made around it then: a loop over the steps of a sequence costs as much as that is long.
    """
    whole = pending.get(edge) if edge in owned else None
    if type(whole) is not np.ndarray or type(g) is not np.ndarray or whole.dtype.char not in "fd" \
            or g.dtype is not whole.dtype or not whole.flags.writeable:
        return False
    key = node.settings["key"]
    seen = whole[key if Ellipsis in key else (*key, ...)]
    if seen.shape != g.shape:
        return False
    if node.op.masks and state.walk is not None:
        masked_walks.add(state.walk)
    _add_into(seen, g)
    return True


def _add_part(pending: dict, heap: list, node: Any, index: int, g: Any) -> None:
    parts = pending.get(node)
    if parts is None:
        if node is None:
            return
        parts = pending[node] = [None] * node.op.differentiable
        heappush(heap, (-node.seq, node))
    parts[index] = g if parts[index] is None else plus(parts[index], g)


def _add_into(a: np.ndarray, g: np.ndarray) -> None:
    add(a, g, out=a)


def plus(a: Any, b: Any) -> Any:
    """The sum of two gradients."""
    if type(a) is np.ndarray and type(b) is np.ndarray:
        return add(a, b)
    if type(a) is Tensor and type(b) is Tensor:
        return a + b  # type: ignore[operator]
    if type(a) is cuda.array_type is type(b) and (out := passes.added(a, b)) is not NotImplemented:
        return out
    return sparse().plus(a, b) if is_sparse(a) or is_sparse(b) else a + b


def _needed(starts: Sequence, targets: set) -> set:
    """The nodes on a path from ``starts`` to a target, and None, which edges to no node are."""
    if _needed_nodes is not None:
        return _needed_nodes(starts, targets)
    oldest = min([t.seq for t in targets], default=0)
    seen = set(starts)
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge.edges and edge not in seen and edge.seq >= oldest:  # no leaf
                seen.add(edge)
                stack.append(edge)
    needed = set(targets)
    for node in sorted(seen, key=_age) if len(seen) > 1 else seen:
        if not needed.isdisjoint(node.edges):
            needed.add(node)
    needed.add(None)  # last: a path leads to a node
    return needed


def _call_hooks(node: Any, g: Any, live: bool) -> Any:
    for hook in list(node.hooks):
        before = as_tensor(g)
        result = hook(before)
        if result is None:
            continue
        if not isinstance(result, Tensor):
            raise TypeError(f"a gradient hook must return a Tensor or None, got {type(result).__name__}")
        if result.shape != before.shape:
            raise ShapeError(f"a gradient hook turned a gradient of shape {list(before.shape)} into one "
                             f"of shape {list(result.shape)}")
        if result.dtype is not before.dtype:
            raise DTypeError(f"a gradient hook turned a gradient of {before.dtype} into one of "
                             f"{result.dtype}; convert it back with .to({before.dtype})")
        if result.device != before.device:
            raise DeviceError(f"a gradient hook moved a gradient from {before.device} to {result.device}")
        g = result if live or is_sparse(result) else result._array
    if type(node) is Leaf and node.hooks and not live:
        # a hook may have kept it, or given a tensor of its own
        g = _own(g, False) if isinstance(g, Tensor) else _own_array(node, g)
    return g


def _lies_alone(leaf: Leaf, g: Any) -> bool:
    """Whether memory that a kernel made, say with channels last, is seen by ``g`` alone, which lies in all
    of it as the leaf's tensor does in its own."""
    owner, base = leaf.variable, getattr(g, "base", None)
    return (type(base) is np.ndarray and owner is not None and base.base is None and base.nbytes == g.nbytes
            and getrefcount(base) == _ALONE and g.flags.writeable and g.strides == owner._array.strides)


_ALONE = 3  # the view's, ours and the call's


def _is_handed_through(ge: Any, given: frozenset | None) -> bool:
    """Whether a gradient lies in order in the memory of one that ``grad`` was given, or repeats its numbers:
    it is no copy. Another array might be what a rule keeps, or another leaf's gradient, too."""
    return given is not None and type(ge) is np.ndarray and id(_owner(ge)) in given and (
        ge.flags.carray or any(n > 1 and not step for n, step in zip(ge.shape, ge.strides)))


def _owners(arrays: Sequence) -> frozenset:
    return frozenset([id(_owner(a)) for a in arrays if type(a) is np.ndarray])


def apart(found: Sequence, given: Sequence) -> list:
    """The gradients that a ``pull`` gives for several places, each in memory that is not another's, nor one's
    of those that it was given."""
    seen = {id(_owner(g)) for g in given if g is not None and not isinstance(g, Tensor)}
    grads = []
    for g in found:
        if g is not None and not isinstance(g, Tensor):
            owner = id(_owner(g))
            g = copied(g) if owner in seen else g
            seen.add(owner)
        grads.append(g)
    return grads


def _owner(a: Any) -> Any:
    while (base := getattr(a, "base", None)) is not None:
        a = base
    return a


def _own_array(leaf: Leaf, g: Any) -> Any:
    """A copy of a gradient for one leaf alone. It lies in memory as the leaf's tensor does, which optimizers
    want: without gaps, whatever the order of the dimensions."""
    owner = leaf.variable
    if owner is None or owner._array.flags.c_contiguous or isinstance(g, Tensor) \
            or (axes := dense_axes(owner._array)) is None:
        return copied(g)
    return copied(g.transpose(axes)).transpose(inverse(axes))


def accumulate(leaf: Leaf, g: Any, live: bool) -> None:
    """Add a gradient to a leaf's."""
    new = as_tensor(g)
    with _adding:
        if leaf.grad is not None:
            leaf.grad = _sum(leaf.grad, new, live)
        else:  # live, the same tensor may be on its way to another leaf
            leaf.grad = _own(new, True) if live else new
    for hook in leaf.after or ():
        hook()


def _store(t: Tensor, g: Tensor, live: bool) -> None:
    with _adding:
        # not by t.grad, which warns of a computed tensor that has none
        before: Any = t._node.grad if type(t._node) is Leaf else t._more and t._more.grad
        if before is not None:
            g = _sum(before, g, live)
        else:
            g = _own(g, live)
        if type(t._node) is Leaf:
            t._node.grad = g
        else:
            t._extras().grad = g
    if type(t._node) is Leaf:
        for hook in t._node.after or ():
            hook()


def _own(g: Tensor, live: bool) -> Tensor:
    """A copy for one leaf alone, recorded if gradients are."""
    try:
        return set_node(wrap(g._array.copy()), g._node if live else None)
    except LayoutError:  # a sparse gradient, which has no array
        return sparse().owned(g, live)


def _sum(old: Tensor, new: Tensor, live: bool) -> Tensor:
    if live or old._node is not None:
        return old + new  # type: ignore[operator]
    try:
        a, b = old._array, new._array
        if not (type(a) is cuda.array_type is type(b) and passes.added(a, b, a) is a):
            old._array += b
    except LayoutError:  # a sparse gradient, which has no array
        return sparse().accumulate(old, new)
    if old._counter is not None:
        old._counter[0] += 1
        old._counter[1] = "backward"
    return old


class Walk:
    """One backward under way: where it started, which nodes it is limited to, what to call at its end."""

    __slots__ = ("starts", "needed", "retains", "ends", "given")

    def __init__(self, starts: list, needed: set | None, retains: bool,
                 given: frozenset | None = None) -> None:
        self.given = given  # the gradients that `grad` was given: ids of the arrays whose memory they have
        self.retains = retains  # whether what nodes keep may be wanted again
        self.starts = starts
        self.needed = needed
        self.ends: list[Callable] | None = None

    def reaches(self, numbers: set) -> set:
        """Those of the nodes with these numbers (``seq``) that this backward comes by."""
        oldest = min(numbers)
        seen = set(self.starts)
        stack = list(seen)
        while stack:
            for edge in stack.pop().edges:
                if (edge is not None and edge not in seen and edge.seq >= oldest
                        and (self.needed is None or edge in self.needed)):
                    seen.add(edge)
                    stack.append(edge)
        return numbers & {n.seq for n in seen}


def _backward(self: Tensor, gradient: Tensor | None = None, retain_graph: bool | None = None,
              create_graph: bool = False, inputs: Any = None) -> None:
    """Add this tensor's gradient to ``.grad`` of the leaves it was computed from.

    gradient: d(final)/d(self), of this tensor's shape; may be left out for one element. The other
    arguments are those of ``framework.autograd.backward``.
    """
    backward(self, gradient, retain_graph, create_graph, inputs)


Tensor.backward = _backward  # type: ignore[method-assign]
