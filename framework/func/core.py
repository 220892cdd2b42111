"""What the transforms share: variables of their own, and results that keep only what leads outside.

A transform differentiates with respect to *variables*: tensors over the memory of the arguments, at
places of their own in the graph. Where an argument is recorded, its variable stands on top of it, so
derivatives can be differentiated again by whatever is outside; where nothing outside is reached, results
are plain tensors.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..autograd import engine
from ..autograd.forward import carry, is_recorded, plain
from ..autograd.mode import state
from ..backends import move
from ..creation import zeros
from ..errors import AutogradError, ShapeError, kind_of
from ..node import GraphOp, PlainNode
from ..seam import settled
from ..tensor import Tensor, counter_of, wrap
from .tree import Spec, flatten


class _Variable(GraphOp):
    """The op of a variable's place: gradients pass."""

    name = "variable"

    def pull(self, node: Any, g: Any, edges: tuple, live: bool) -> list:
        """The gradient as it is."""
        return [g]


_VARIABLE = _Variable()


class Frame:
    """One transform at work: its variables, and whether the program around it records."""

    def __init__(self, recording: bool) -> None:
        self.recording = recording
        self.places: set = set()

    def variables(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """A variable for each tensor."""
        tensors = list(tensors)
        settled(tensors)
        return [self._variable(t) for t in tensors]

    def _variable(self, t: Tensor) -> Tensor:
        edges = (t._node,) if self.recording and is_recorded(t._node) else ()
        node = PlainNode(_VARIABLE, edges)
        self.places.add(node)
        x = wrap(t._array, node=node)
        x._counter = counter_of(t)
        carry([t._node], node)
        return x

    def leads_outside(self, tensors: Iterable[Tensor]) -> bool:
        """Whether the program around could ask for a gradient through one of the tensors."""
        if not self.recording:
            return False
        stack: list[Any] = [t._node for t in tensors if is_recorded(t._node)]
        seen = set(stack)
        while stack:
            node = stack.pop()
            if is_recorded(node) and not node.edges and node not in self.places:
                return True
            for edge in node.edges:
                if edge is not None and edge not in seen:
                    seen.add(edge)
                    stack.append(edge)
        return False

    def settle(self, t: Tensor) -> Tensor:
        """A result: in the graph if that leads outside, else without it."""
        return t if not t.requires_grad or self.leads_outside([t]) else plain(t, state.levels)

    def pull(self, ys: Sequence[Tensor], xs: Sequence[Tensor], gs: Sequence[Tensor],
             again: bool) -> list[Tensor | None]:
        """The gradients of variables from those of the outputs, None where there is no path."""
        pairs = [(y, g) for y, g in zip(ys, gs) if y.requires_grad]
        if not pairs:
            return [None] * len(xs)
        return list(engine.grad([y for y, _ in pairs], xs, [g for _, g in pairs], retain_graph=True,
                                create_graph=again, allow_unused=True))


def filled(found: Iterable[Tensor | None], like: Iterable[Tensor]) -> list[Tensor]:
    """Zeros in the place of None."""
    return [zeros_for(x) if t is None else t for t, x in zip(found, like)]


def zeros_for(t: Tensor) -> Tensor:
    """Zeros of the tensor's shape, dtype and device."""
    return zeros(t.shape, dtype=t.dtype, device=t.device)


def one_at(t: Tensor, place: tuple = ()) -> Tensor:
    """Zeros for the tensor, with a 1 at one place."""
    array = np.zeros(t.shape, t.dtype.numpy)
    array[place] = 1
    return wrap(move(array, t.device))


def tensors_of(nest: Any, op: str, what: str, differentiable: bool = True) -> tuple[list[Tensor], Spec]:
    """The leaves of a nest, which must be tensors (with derivatives), and its spec."""
    leaves, spec = flatten(nest)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise TypeError(f"{op}: {what} must be a Tensor or nested tuples, lists and dicts of them, found "
                            f"{kind_of(leaf)}")
        if differentiable and not leaf.is_floating_point() and not leaf.is_complex():
            raise TypeError(f"{op}: {what} must be floating or complex to be differentiated, found "
                            f"{leaf.dtype}{list(leaf.shape)}; convert it first, e.g. x.float()")
    return leaves, spec


def matching(nest: Any, like: list[Tensor], spec: Spec, op: str, what: str, of: str) -> list[Tensor]:
    """The leaves of ``nest``, which must be built and shaped as the tensors ``like`` with ``spec``."""
    leaves, own = tensors_of(nest, op, what, differentiable=False)
    if own != spec:
        raise ValueError(f"{op}: {what} have the structure {own}, {of} {spec}")
    for t, x in zip(leaves, like):
        if t.shape != x.shape:
            raise ShapeError(f"{op}: {what} of shape {list(t.shape)} do not fit {of} of shape "
                             f"{list(x.shape)}")
    return leaves


def check_real(ys: Iterable[Tensor], op: str) -> None:
    """Raise where reverse mode would give the derivatives of real parts only."""
    for i, y in enumerate(ys):
        if y.is_complex():
            raise AutogradError(f"{op}: output {i} of func is {y.dtype}, and a complex element has no one "
                                f"gradient; return its parts, e.g. view_as_real(y)")


def with_aux(out: Any, has_aux: bool, op: str) -> tuple[Any, Any]:
    """(output, auxiliary value) of a function."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(f"{op}: with has_aux=True the function must return a tuple (output, aux), got "
                        f"{type(out).__name__}")
    return out


class Chosen:
    """The arguments at ``argnums``, taken out of a call's arguments."""

    def __init__(self, args: tuple, argnums: int | tuple[int, ...], op: str) -> None:
        wanted = argnums if isinstance(argnums, tuple) else (argnums,)
        if not wanted or not all(type(i) is int for i in wanted):
            raise TypeError(f"{op}: argnums must be an int or a tuple of ints, got {argnums!r}")
        for i in wanted:
            if not -len(args) <= i < len(args):
                raise IndexError(f"{op}: argnums={argnums!r} is out of range for {len(args)} positional "
                                 f"arguments")
        self.args = args
        self.places = [i % len(args) for i in wanted]
        if len(set(self.places)) < len(self.places):
            raise ValueError(f"{op}: argnums={argnums!r} names an argument twice")
        picked = args[self.places[0]] if type(argnums) is int else tuple([args[i] for i in self.places])
        self.alone = type(argnums) is int
        self.leaves, self.spec = tensors_of(picked, op, "the arguments at argnums")

    def put(self, leaves: Sequence[Tensor]) -> tuple:
        """The call's arguments with these tensors in the place of those taken out."""
        new = self.spec.build(leaves)
        args = list(self.args)
        for i, value in zip(self.places, (new,) if self.alone else new):
            args[i] = value
        return tuple(args)
