"""``vmap``: a function of one example as a function of a batch, one call of each operation for all examples.

What the function gets are tensors over ``Batched`` arrays (``ops/record/batched.py``): of one example's
shape, with all examples behind. Two records stand at the border, ``batch_in`` and ``batch_out``. What was
recorded between belongs to examples, not to tensors outside; so for those who differentiate from outside, a
call is one node (``_Vmapped``), which goes backward through it and adds up over the batch what arrives at
places outside.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from ..autograd.engine import _needed, _walk, apart
from ..autograd.forward import hang, is_recorded, tangent_at
from ..autograd.function import batched_rule
from ..autograd.mode import state
from ..errors import AutogradError
from ..node import Dual, GraphOp, Node, Pick
from ..ops.record.batched import Level, enter, is_of, leave
from ..ops.record.op import Op
from ..ops.reduce.sums import sum_op
from ..ops.shape.join import cat, stack
from ..random import get_rng_state, set_rng_state
from ..tensor import Tensor, as_tensor, counter_of, hand_out, set_node, wrap
from .tree import flatten, spread


class Draws:
    """How the runs of one function may use the random generator of the CPU."""

    def __init__(self, randomness: str, op: str) -> None:
        if randomness not in ("error", "same", "different"):
            raise ValueError(f"{op}: randomness must be 'error', 'same' or 'different', got {randomness!r}")
        self.randomness, self.op = randomness, op
        self.before = get_rng_state() if randomness != "different" else None

    @contextmanager
    def once(self) -> Iterator[None]:
        """One run."""
        if self.before is None:
            yield
            return
        if self.randomness == "same":
            set_rng_state(self.before)
        yield
        if self.randomness == "error" and get_rng_state()._array.tobytes() != self.before._array.tobytes():
            raise RuntimeError(f"{self.op}: the function drew random numbers; pass randomness='same' (every "
                               f"run draws the same ones) or randomness='different'")


# -- the border ----------------------------------------------------------------------------------


class _Border(Op):
    """A record that is not itself called for a batch."""

    def kernel_for(self, arrays: Any) -> Callable:
        return self.cpu


batch_in = _Border("batch_in", "x", kernel=lambda xp, x, *, level: enter(x, level), jvp="linear", moves=True,
                   vjp={"x": lambda g, level: batch_out.run(g, level=level)}, infer=lambda x, *, level: x)
batch_out = _Border("batch_out", "x", kernel=lambda xp, x, *, level: leave(x, level), jvp="linear",
                    moves=True,
                    vjp={"x": lambda g, level: batch_in.run(g, level=level)}, infer=lambda x, *, level: x)

# the same within a level: what is between runs on whole tensors and still belongs to the examples
batch_again = _Border("batch_again", "x", kernel=batch_in.kernel, jvp="linear", moves=True,
                      vjp={"x": lambda g, level: batch_open.run(g, level=level)}, infer=batch_in.infer)
batch_open = _Border("batch_open", "x", kernel=batch_out.kernel, jvp="linear", moves=True,
                     vjp={"x": lambda g, level: batch_again.run(g, level=level)}, infer=batch_out.infer)

_NOTHING = np.empty(0)


class _Vmapped(GraphOp):
    """One vmapped call as the op of a node: backward goes through what was recorded in it."""

    name = "vmap"
    keeps_nothing = False

    def __init__(self, level: Level, count: int) -> None:
        self.level = level
        self.differentiable = count

    def pull(self, node: Any, g: Any, edges: tuple, live: bool) -> list:
        if node.kept is None:
            raise AutogradError("backward through vmap a second time: what it kept was freed after the first;"
                                " pass retain_graph=True to the first backward, or compute the value anew")
        gs = [g] if self.differentiable == 1 else g
        pairs = [(root, part) for root, part in zip(node.kept["roots"], gs) if part is not None]
        ends, level = node.kept["ends"], self.level
        targets = [end for end, edge in zip(ends, edges) if edge is not None]
        with level:
            inside = _needed([root for root, _ in pairs], set(targets)).union(targets)
            found = dict(zip(targets, _walk([wrap(_NOTHING, node=root) for root, _ in pairs],
                                            [as_tensor(part) for _, part in pairs], True,
                                            state.recording, targets, inside)))
            grads = [None if edge is None or found[end] is None else self._outside(end, found[end])
                     for end, edge in zip(ends, edges)]
            if state.recording:
                grads = packed(level, grads)
        return grads if live else apart([None if t is None else t._array for t in grads], gs)

    def _outside(self, end: Any, g: Tensor) -> Tensor:
        """What a place outside gets from the gradient that arrived at an end."""
        if end.seq > self.level.start:  # an argument's: each example has its own
            return batch_out.run(g, level=self.level)
        if not is_of(g._array, self.level):
            return g
        return sum_op.run(batch_out.run(g, level=self.level), dims=(0,), keepdim=False)


def packed(level: Level, tensors: Sequence) -> list:
    """The tensors, computed at ``level``, in the graph only by one node that leads to places outside.

    Their tangents are packed, too: they are recorded where they are pushed.
    """
    results = list(tensors)
    tangents = [{one: packed(level, [t])[0] for one in state.levels
                 if t0 is not None and (t := tangent_at(t0._node, one)) is not None} for t0 in results]
    some = [i for i, t in enumerate(results) if t is not None and is_recorded(t._node)]
    roots = [results[i]._node for i in some]
    ends, edges = _ends(level, roots)
    node = None
    if ends:
        kept = {"roots": roots, "ends": ends}
        node = Node(_Vmapped(level, len(roots)), tuple(edges), kept, [([0, None], 0)], {}, None)
    for i, t in enumerate(results):
        if t is None or i not in some and not tangents[i]:
            continue
        out = results[i] = wrap(t._array)
        out._counter = t._counter
        if i in some and node is not None:
            out._node = node if len(roots) == 1 else Pick(node, some.index(i))
        elif tangents[i]:
            set_node(out, Dual())
            for one, tangent in tangents[i].items():
                hang(out._node, one, (tangent,))
    if node is not None:
        for one in state.levels:
            row = tuple([tangents[i].get(one) for i in some])
            if any(t is not None for t in row):
                hang(node, one, row)
    return results


def _ends(level: Level, roots: list) -> tuple[list, list]:
    """Where walks from the roots leave the level: the last places inside or first ones outside; the latter.

    An argument's end is its node of ``batch_in``; that of a captured tensor the place itself, made before.
    """
    seen, stack = set(roots), list(roots)
    ends: list = []
    edges: list = []
    while stack:
        node = stack.pop()
        if node.seq < level.start:
            ends.append(node)
            edges.append(node)
        elif getattr(node, "op", None) is batch_in and node.settings["level"] is level:
            if node.edges[0] is not None:
                ends.append(node)
                edges.append(node.edges[0])
        else:
            for edge in node.edges:
                if edge is not None and edge not in seen:
                    seen.add(edge)
                    stack.append(edge)
    return ends, edges


def entered(level: Level, x: Tensor, dim: int) -> Tensor:
    """One example's view of a tensor with the batch at ``dim``."""
    hand_out(x)
    inside: Any = batch_in.run(x.movedim(dim, 0) if dim % x.ndim else x, level=level)  # type: ignore
    inside._counter = counter_of(x)  # it may be the same memory, and is written there
    return inside  # type: ignore[no-any-return]


def left(level: Level, tensors: Sequence) -> list:
    """Tensors computed at ``level``, with the batch in front; None stays."""
    return packed(level, [None if t is None else batch_out.run(t, level=level) for t in tensors])


def units(t: Tensor, count: int) -> list[Tensor]:
    """All tensors like ``t`` with one element 1 and the others 0, in batches of at most ``count``."""
    whole = np.eye(t.numel(), dtype=t.dtype.numpy).reshape((t.numel(), *t.shape))
    return [wrap(whole[i:i + count]) for i in range(0, len(whole), count)]


def pulled_batch(function: Callable, grads: Any) -> tuple[int, list]:
    """(how many, what a function of a list of gradients gives for each): they have a batch in front."""
    given = [grads] if isinstance(grads, Tensor) else list(grads or ())
    sizes = {g.shape[0] if g.ndim else -1 for g in given if g is not None}
    if len(sizes) != 1 or -1 in sizes:
        shapes = [None if g is None else list(g.shape) for g in given]
        raise ValueError(f"grad: with is_grads_batched=True each of grad_outputs needs the same number of "
                         f"gradients along its first dimension, got shapes {shapes}")
    (size,) = sizes
    with Level(size) as level:
        inside = [None if g is None else batch_in.run(g, level=level) for g in given]
        return size, left(level, [None if t is None else as_tensor(t) for t in function(inside)])


class VmapInfo(NamedTuple):
    """What ``Function.vmap`` is told of the batch."""

    batch_size: int
    randomness: str


def _by_rule(cls: Any, args: tuple) -> Any:
    """A call of a Function on tensors of a batch, by its static method ``vmap``."""
    level = state.batches[-1]
    dims = tuple([0 if isinstance(x, Tensor) and is_of(x._array, level) else None for x in args])
    if all(d is None for d in dims):
        return NotImplemented
    whole = [batch_open.run(x, level=level) if d == 0 else x for x, d in zip(args, dims)]
    out, out_dims = level.outside(lambda: cls.vmap(VmapInfo(level.size, level.randomness), dims, *whole))
    several = isinstance(out, tuple)
    outs = out if several else (out,)
    places = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outs)
    if len(places) != len(outs):
        raise ValueError(f"{cls.__name__}.vmap gave {len(outs)} outputs and {len(places)} batch dimensions")
    results = tuple([y if d is None or not isinstance(y, Tensor) else
                     batch_again.run(y.movedim(d, 0) if d % y.ndim else y, level=level)  # type: ignore[attr-defined]
                     for y, d in zip(outs, places)])
    return results if several else results[0]


batched_rule.append(_by_rule)


def pulled(function: Callable, batch: Tensor) -> list:
    """What a function that gives a list of tensors, or None, gives for each example of a batch."""
    with Level(batch.shape[0]) as level:
        return left(level, function(batch_in.run(batch, level=level)))


# -- vmap ----------------------------------------------------------------------------------------


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable:
    """``func``, written for one example, as a function of a batch.

    Each operation runs once for all examples, by the rule of its record; one without a rule is called
    once per example, after a warning that names it. in_dims: the batch dimension of every tensor
    argument, or a tuple with one entry (an int, None for "the same for all", or a nest of these) per
    argument. out_dims: where the batch dimension of the outputs goes (None for outputs that are the same
    for all). randomness: "error", "same" or "different" numbers for the examples. chunk_size: how many
    examples at a time (default: all). Raises ValueError if sizes differ or nothing is batched, and
    DataDependentError, with the line, where the function asks for a value that each example has its own
    of. Nests, and can be differentiated. On a GPU the function is called once per example.

    >>> fw.func.vmap(fw.dot)(fw.ones(2, 3), fw.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "same", "different"):
        raise ValueError(f"vmap: randomness must be 'error', 'same' or 'different', got {randomness!r}")
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"vmap: chunk_size must be a positive int or None, got {chunk_size!r}")

    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = flatten(args)
        dims = spread(in_dims, args, "vmap", "in_dims")
        size = _batch_size(leaves, dims)
        if any(isinstance(x, Tensor) and x.is_cuda for x in leaves):
            return _one_by_one(leaves, dims, size, kwargs, spec)
        if chunk_size is None or chunk_size >= size:
            return _at_once(leaves, dims, size, kwargs, spec)
        outs = []
        for start in range(0, size, chunk_size):
            count = min(chunk_size, size - start)
            part = [x if d is None else x.narrow(d, start, count) for x, d in zip(leaves, dims)]
            outs.append(_at_once(part, dims, count, kwargs, spec))
        return _joined(outs, out_dims, lambda parts, d: parts[0] if d is None else cat(parts, d))

    def _one_by_one(leaves: list, dims: list, size: int, kwargs: dict, spec: Any) -> Any:
        draws, outs = Draws(randomness, "vmap"), []
        for i in range(size):
            with draws.once():
                one = [x if d is None else x.select(d, i) for x, d in zip(leaves, dims)]
                outs.append(func(*spec.build(one), **kwargs))
        return _joined(outs, out_dims, stack)

    def _at_once(leaves: list, dims: list, size: int, kwargs: dict, spec: Any) -> Any:
        level = Level(size, randomness)
        draws = Draws(randomness, "vmap")
        with level:
            inputs = [x if d is None else entered(level, x, d) for x, d in zip(leaves, dims)]
            with draws.once():
                out = func(*spec.build(inputs), **kwargs)
            ys, out_spec = flatten(out)
            for y in ys:
                if not isinstance(y, Tensor):
                    raise TypeError(f"vmap: the function must return Tensors (or nests of them), found "
                                    f"{type(y).__name__}")
            where = spread(out_dims, out, "vmap", "out_dims")
            for y, d in zip(ys, where):
                if d is None and is_of(y._array, level):
                    raise ValueError("vmap: out_dims=None is for outputs that are the same for all "
                                     "examples, and this one has a batch dimension")
            shared = {i: y for i, (y, d) in enumerate(zip(ys, where)) if d is None}
            found = left(level, [None if i in shared else y for i, y in enumerate(ys)])
        return out_spec.build([shared[i] if i in shared else y.movedim(0, d) if d % y.ndim else y
                               for i, (y, d) in enumerate(zip(found, where))])
    return run


def _joined(outs: list, out_dims: Any, join: Callable) -> Any:
    """One nest of the nests that the parts of a batch gave."""
    flat = [flatten(out)[0] for out in outs]
    where = spread(out_dims, outs[0], "vmap", "out_dims")
    return flatten(outs[0])[1].build([join([one[k] for one in flat], d) for k, d in enumerate(where)])


def _batch_size(leaves: list, dims: list) -> int:
    sizes: dict[int, str] = {}
    for x, d in zip(leaves, dims):
        if d is None:
            continue
        if not isinstance(x, Tensor):
            raise TypeError(f"vmap: in_dims={d} is for a Tensor, the argument is {type(x).__name__}; give "
                            f"None for it")
        if not -x.ndim <= d < x.ndim:
            raise IndexError(f"vmap: in_dims={d} is out of range for a tensor of shape {list(x.shape)}")
        sizes.setdefault(x.shape[d], f"{x.shape[d]} (dimension {d} of a tensor of shape {list(x.shape)})")
    if len(sizes) != 1:
        raise ValueError("vmap: no argument has a batch dimension (in_dims are all None)" if not sizes else
                         f"vmap: the batch dimensions have different sizes: {' and '.join(sizes.values())}; "
                         f"in_dims says which dimension is the batch's, None that there is none")
    (size,) = sizes
    if not size:
        raise ValueError("vmap: the batch is empty, so what the function returns cannot be learned")
    return size
