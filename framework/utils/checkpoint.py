"""Activation checkpointing: less memory for a second forward pass.

A checkpointed call stands in the graph as one node that keeps the arguments and forgets what was computed
from them. Its derivative calls the function again, as it was called before, and goes backward through that
(Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost").
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from ..amp.mode import Surroundings
from ..autograd.engine import apart, pull_back
from ..autograd.forward import carry, is_recorded
from ..autograd.mode import enable_grad, state
from ..config.listing import own as _own
from ..device import Device
from ..errors import AutogradError
from ..func.core import Frame
from ..func.tree import Spec, flatten
from ..node import GraphOp, Leaf, Node, Pick, next_seq
from ..random import default_states, fork_rng, generator_of
from ..seam import settled
from ..tensor import Tensor, as_tensor, counter_of, wrap


class CheckpointError(AutogradError):
    """A function that computed something else when it was called again."""


def noop_context_fn() -> tuple:
    """Two contexts that do nothing, for ``checkpoint(context_fn=)``."""
    return nullcontext(), nullcontext()


def checkpoint(function: Callable, *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable = noop_context_fn, determinism_check: str = "default",
               debug: bool = False, early_stop: bool = True, preserve_rng_state: bool = True,
               **kwargs: Any) -> Any:
    """``function(*args, **kwargs)`` without keeping what it computes for backward: backward calls it again.

    Gradients reach tensors among the arguments (also inside tuples, lists and dicts) and those that
    ``function`` uses besides, such as parameters; they can be differentiated again. What ``function`` changes
    (running statistics, counters) it changes twice. preserve_rng_state: the second call draws the random
    numbers of the first. context_fn: gives two context managers, for the first call and for later ones.
    determinism_check: "default" compares the ops and the shapes and dtypes of the outputs of both calls and
    raises CheckpointError if they differ, "none" does not; with ``debug=True`` the error lists the ops.
    ``use_reentrant`` and ``early_stop`` choose between PyTorch's implementations and change nothing here.
    Raises AutogradError if ``function`` changes an argument in place, and in backward if an argument or a
    parameter was changed since.

    >>> from framework.utils.checkpoint import checkpoint
    >>> x = fw.ones(2, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().cos(), x).sum().backward()
    >>> x.grad
    tensor([-1.1166, -1.1166])
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(f"checkpoint: determinism_check must be 'default' or 'none', got "
                         f"{determinism_check!r}")
    first, again = context_fn()
    if not state.recording:
        with first:
            return function(*args, **kwargs)
    call = _Call(function, args, kwargs, again, default_states() if preserve_rng_state else [])
    call.check = determinism_check == "default"
    call.debug = debug
    with first:
        return call.forward()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors of a tuple outside the graph, requiring grad where they did.

    >>> x = fw.ones(1, requires_grad=True) * 2
    >>> y, = fw.utils.checkpoint.detach_variable((x,))
    >>> y.requires_grad, y.is_leaf
    (True, True)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: wanted a tuple of tensors, got {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if none of the tensors requires grad, so that a checkpointed function of them gets no gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("check_backward_validity: no input requires grad, so there will be no gradients",
                      stacklevel=2)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None,
                          preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """Modules or functions one after the other, in ``segments`` parts, each but the last one checkpointed.

    functions: a ``Sequential`` or a list. Only the values between the parts are kept, and what the last part
    needs. kwargs: further settings of ``checkpoint``.

    >>> from framework.utils.checkpoint import checkpoint_sequential
    >>> checkpoint_sequential([fw.exp, fw.log, fw.sin], 2, fw.zeros(1, requires_grad=True))
    tensor([0.], grad_fn=<sin>)
    """
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if type(segments) is not int or not 0 < segments <= max(len(steps), 1):
        raise ValueError(f"checkpoint_sequential: segments must be between 1 and the number of functions "
                         f"({len(steps)}), got {segments!r}")
    size = len(steps) // segments
    for part in range(segments - 1):
        input = checkpoint(_chain(steps[part * size:(part + 1) * size]), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve_rng_state, **kwargs)
    return _chain(steps[(segments - 1) * size:])(input)


def _chain(steps: Sequence[Callable]) -> Callable:
    def run(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x
    return run


class _Run:
    """One call of the function: its variables, its outputs, and the graph between them."""

    def __init__(self, call: "_Call", given: list, recording: bool) -> None:
        start = next_seq()
        self.frame = Frame(recording)
        self.variables: dict[Any, Any] = {}  # place of a variable -> place of the argument
        leaves = [self._variable(x) if isinstance(x, Tensor) and x.requires_grad else x for x in given]
        args, kwargs = call.spec.build(leaves)
        out = call.function(*args, **kwargs)
        self.outputs: list
        self.spec: Spec
        self.outputs, self.spec = flatten(out)
        settled(self.outputs)
        # what the function hands on as it is has its place outside already
        self.own = [y for y in self.outputs if isinstance(y, Tensor) and self._is_new(y._node, start)]
        self._explore(start)

    def _variable(self, x: Tensor) -> Tensor:
        (variable,) = self.frame.variables([x])
        self.variables[variable._node] = x._node
        return variable

    def _is_new(self, node: Any, start: int) -> bool:
        return is_recorded(node) and (node.seq >= start or node in self.variables)

    def _explore(self, start: int) -> None:
        """Tell the nodes of this call (``inside``) from those outside that they lead to (``ends``)."""
        self.inside: set = set()
        self.ends: list = []
        stack: list[Any] = [y._node for y in self.own]
        seen = set(stack)
        while stack:
            node = stack.pop()
            if node in self.variables or node.seq < start:
                self.ends.append(node)
                continue
            self.inside.add(node)
            for edge in node.edges:
                if is_recorded(edge) and edge not in seen:
                    seen.add(edge)
                    stack.append(edge)
        self.ends.sort(key=lambda node: node.seq)
        calls = sorted((n for n in self.inside if type(n) is not Pick and type(n) is not Leaf),
                       key=lambda n: n.seq)
        self.trace = [n.name() for n in calls] + [f"output {y.dtype}{list(y.shape)}" for y in self.own]


class _Call(GraphOp):
    """The op of a checkpointed call's node, with the part of a record's face that the engine uses."""

    keeps_nothing = False
    check = debug = False

    def __init__(self, function: Callable, args: tuple, kwargs: dict, context: Any, rng: Any) -> None:
        self.function, self.context, self.rng = function, context, rng
        self.surroundings = Surroundings()
        self.args, self.spec = flatten((args, kwargs))
        self.name = f"checkpoint({getattr(function, '__name__', type(function).__name__)})"
        self.differentiable = 0
        self.trace: list[str] = []

    def forward(self) -> Any:
        """The outputs; those that a gradient can go through, at places of the one node of this call."""
        before = [(x, x._version) for x in self.args if isinstance(x, Tensor)]
        with self.surroundings:
            run = _Run(self, self.args, False)
        if any(x._version != version for x, version in before):
            raise AutogradError(f"{self.name}: the function changed an argument in place, so it could not be "
                                f"called again with what it got; let it work on x.clone()")
        if not run.own:
            return run.spec.build(run.outputs)
        self.differentiable, self.trace = len(run.own), run.trace
        edges = tuple(dict.fromkeys([run.variables.get(end, end) for end in run.ends]))
        used = [end.variable for end in run.ends if type(end) is Leaf]
        watched = [counter_of(x) for x in (*self.args, *used) if isinstance(x, Tensor)]
        versions = [(counter, counter[0]) for counter in watched]
        node = Node(self, edges, None, None, {}, None)
        node.kept, node.versions = {"args": self.args}, versions
        self.args = []  # the node has them, which lets them go after backward
        carry([y._node for y in run.own], node)
        places = {id(y): node if len(run.own) == 1 else Pick(node, i) for i, y in enumerate(run.own)}
        return run.spec.build([self._give_out(y, places.get(id(y))) for y in run.outputs])

    @staticmethod
    def _give_out(y: Any, node: Any) -> Any:
        if node is None:
            return y
        result = wrap(y._array, node=node)
        result._counter = counter_of(y)
        return result

    def pull(self, node: Node, g: Any, edges: tuple, live: bool) -> list:
        """The gradients of what the function used, by calling it again."""
        self._check_kept(node)
        recording = state.recording
        with enable_grad(), self._as_before():
            run = _Run(self, (node.kept or {})["args"], recording)
        self._check_trace(run)
        parts = g if self.differentiable > 1 else [g]
        pairs = [(y, as_tensor(g) if live else g) for y, g in zip(run.own, parts) if g is not None]
        found = pull_back([y for y, _ in pairs], [g for _, g in pairs], run.ends, run.inside, recording)
        places = [run.variables.get(end, end) for end in run.ends]
        grads = [self._total(place, places, found) for place in node.edges]
        return grads if live else apart(grads, parts)

    @staticmethod
    def _total(place: Any, places: list, found: list) -> Any:
        total = None
        for own, g in zip(places, found):
            if own is place and g is not None:
                total = g if total is None else total + g
        return total

    @contextmanager
    def _as_before(self) -> Iterator[None]:
        with ExitStack() as stack:
            if self.rng:
                stack.enter_context(fork_rng())
            for generator, before in self.rng:
                generator.set_state(before)
            stack.enter_context(self.surroundings)
            stack.enter_context(self.context)
            yield

    def _check_kept(self, node: Node) -> None:
        if node.kept is None:
            raise AutogradError(f"backward through {self.name} a second time: pass retain_graph=True to the "
                                f"first backward, or compute the value anew")
        for counter, version in node.versions or ():
            if counter[0] != version:
                raise AutogradError(f"backward of {self.name}: an argument or a parameter it used was "
                                    f"changed in place by {counter[1]} since, so it cannot be computed again "
                                    f"(version {counter[0]}, was {version})")

    def _check_trace(self, run: _Run) -> None:
        if len(run.own) != self.differentiable or self.check and run.trace != self.trace:
            detail = f"; first: {', '.join(self.trace)}; now: {', '.join(run.trace)}" if self.debug else \
                "; pass debug=True to see the ops of both"
            raise CheckpointError(f"{self.name}: called again for backward, it computed something else "
                                  f"({len(self.trace)} steps before, {len(run.trace)} now){detail}")


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The numbers of the GPUs that tensors among the arguments are on, and the states of their generators.

    For code that computes something again by itself, as reversible layers do. Tensors inside tuples, lists
    and dicts count. No GPU among them: two empty lists.

    >>> from framework.utils.checkpoint import get_device_states
    >>> get_device_states(fw.ones(2), 3)
    ([], [])
    """
    tensors, _ = flatten(args)
    found = sorted({x.device.index or 0 for x in tensors if isinstance(x, Tensor) and x.is_cuda})
    return found, [generator_of(Device("cuda", i)).get_state() for i in found]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *,
                      device_type: str | None = None) -> None:
    """Let the generators of these GPUs go on from the states that ``get_device_states`` gave.

    Raises ValueError where there are not as many states as devices, or for a device_type other than "cuda".

    >>> from framework.utils.checkpoint import set_device_states
    >>> set_device_states([], [])
    """
    if device_type not in (None, "cuda"):
        raise ValueError(f"set_device_states: device_type must be 'cuda', got {device_type!r}: only GPUs "
                         f"have generators of their own")
    if len(devices) != len(states):
        raise ValueError(f"set_device_states: {len(devices)} devices and {len(states)} states: pass what "
                         f"get_device_states gave")
    for index, kept in zip(devices, states):
        generator_of(Device("cuda", index)).set_state(kept)


__dir__ = _own(globals())
