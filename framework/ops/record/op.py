"""The op record: what one primitive operation is, and its derivative. How a call goes is in ``road.py``.

A record is declared once, in one room (see ``ops/README.md``)::

    softmax = Op("softmax", "x", kernel=..., infer=..., jvp="symmetric",
                 vjp={"x": lambda g, out, dim: ...})

The parameter names of a vjp rule say what backward keeps: ``x`` keeps that input, ``out`` the
output, ``x_shape`` and ``x_dtype`` only that, any other name is a setting of the call. Inside rules,
ops are called on whatever comes: on arrays they just compute (training), on tensors they are
recorded again (``create_graph=True``), so one formula gives derivatives of every order.
"""

import itertools
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from ... import _native, dtypes
from ...autograd.forward import track
from ...autograd.mode import masked_walks, state
from ...backends import cuda
from ...backends import meta as shapes
from ...backends.native import native_or
from ...errors import AutogradError, DeviceError, LayoutError, kind_of
from ...node import GraphOp, Node, Pick, PlainNode
from ...quiet import quiet
from ...sparse_door import sparse
from ...tensor import Tensor, as_array, counter_of, wrap
from .aliases import link_view
from .batched import PutOff, any_batched, batched_call, known
from .meta import Meta as Meta
from .road import NEVER, NUMBERS, Declined, _finish_many, after, road, row_major
from .rounded import (
    in_float32,
    is_half,
    is_numpy,
    is_rounded,
    narrowing,
    native_or_wide,
    rounded_as,
    rounded_or,
    widen,
)

ndarray = np.ndarray
_ARRAYS = (ndarray, shapes.MetaArray)
PUBLIC_NAMES = {"x": "input", "y": "other", "w": "weight", "b": "bias", "xs": "tensors"}


class Rule:
    """A vjp rule: a function ``(g, names...)``; ``names`` are read from its signature."""

    __slots__ = ("function", "names")

    def __init__(self, function: Callable) -> None:
        code = function.__code__
        self.function = function
        self.names = code.co_varnames[1:code.co_argcount]

    def on(self, g: Any) -> Callable:
        """The function to call for a gradient of this kind (array or tensor)."""
        return self.function


class NoDerivative(Rule):
    """The rule of an op that gives floating numbers but has no derivative: backward says so by name."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        def refuse(g: Any) -> None:
            raise AutogradError(f"{name} has no derivative; call it on x.detach() to take it as constant")
        super().__init__(refuse)


class Op(GraphOp):
    """One operation: kernels, derivative, shape rule. See the module docstring.

    name: public name. inputs: names of the array arguments ("x w", "*xs" for any number).
    kernel: ``kernel(xp, *arrays, **settings)``, written once for NumPy and CuPy; ``cuda_kernel``
        replaces it on a GPU.
    native: the name of the function of ``framework._native`` that the CPU asks first. It takes what the
        kernel takes, without ``xp``, and returns NotImplemented for cases that it leaves to the kernel.
    vjp: {input name: rule}, or one rule for all that returns a gradient per input (it may ask for
        ``needs``, a tuple of bools); None if the result is constant or not floating; "undefined" if it is
        floating and has no derivative: backward raises then.
    jvp: "linear", "multilinear", "symmetric", or None (derived from the vjp).
    infer: ``infer(*metas, **settings)`` gives the output's Meta, or raises what is wrong.
        None stands for an output whose size only a library tells that makes it.
    outputs: names of the outputs; with more than one, the first ``differentiable`` of them carry
        gradients and rules get a list (None where an output was not used).
    view: True if the output shares the input's memory, "maybe" if that depends.
    adjoint: whether the vjp rule is right for complex numbers as it stands. Else it is the transposed
        Jacobian of a holomorphic function, and ``pull`` conjugates around it: ``conj(rule(conj(g)))``.
        Default: where ``jvp="linear"`` (the Jacobian is real) or there are several outputs.
    masks: whether it chooses elements, so that others get a gradient of exactly 0 (see ``Elementwise.pull``).
    moves: whether elements are only moved or converted, so that bfloat16 needs no float32 to compute in.
    loose_from: from how many dimensions on a result of the kernel may lie in another order than row-major,
        into which it is brought then. Default: 2, since NumPy's reductions lie as their inputs do, and NEVER
        for records that move elements; to be given where the order is meant (images, say).
    bare: whether the kernel's result is the call's as it comes: no view, and not to be made row-major.
    rounds: the name of a native function that takes bfloat16, and sums up in float32 and rounds once, or only
        moves elements. The rules must end in such records, too; then the CPU needs no float32 to compute in.
    cpu, rounded: the CPU's functions, in general and for bfloat16, where these are not made from ``native``,
        ``rounds`` and ``kernel``. ``narrow`` is what runs on bfloat16: ``rounded``, else ``cpu`` by float32.
    batch: the rule for batches of examples (``batched.py``); without one vmap calls it once per example.
    onnx: what it is in ONNX, as an expression over inputs and settings (``framework/onnx/graph.py``).
    runtime: what it is in a model file of ``runtime.export``, as an expression over inputs and settings
        (``framework/runtime/lowering``).
    real_indices: whether inputs that name positions may have values where the others are on the meta device.
    strided: whether the result depends on how the input lies in memory.
    flops: ``flops(*shapes, out_shape)``, how many floating-point operations a call takes, for those whose
        number is worth counting (``utils/flop_counter.py``).
    device: a GPU's function, which launches kernels of our own and is asked before ``cuda_kernel``. It takes
        what ``native`` takes, bfloat16 too, and so do the rules unless ``rules_round=False``; it may answer
        NotImplemented.
    halves: whether ``native`` takes bfloat16, where the rules do not (see ``rounds``).
    whole: where int64 may go to ``native`` as float64, if that holds all sums: "kept" (it chooses among the
        elements of its operand) or "summed" (it adds up products of its first two operands, with the third;
        of one, its elements).
    part: whether the result is that part of the input which the setting ``key`` names. Where the input's
        gradient is under way already, backward adds to that part of it, and makes no zeros for the rest.
    arguments: what the public function calls the inputs, for messages ("input other" for "x y").
    """

    # what calls and backward read: CPython reads attributes more slowly where an object's dict has over 30
    __slots__ = ("name", "inputs", "outputs", "differentiable", "view", "conjugates", "moves", "masks",
                 "loose_from", "bare", "joint", "rules", "has_vjp", "cpu", "rounded", "narrow", "wanted",
                 "keeps_nothing", "places", "variadic", "part", "__dict__")

    def __init__(self, name: str, inputs: str, *, kernel: Callable,
                 cuda_kernel: Callable | None = None, vjp: Any = None, jvp: str | None = None,
                 infer: Callable | None = None, outputs: str = "out", differentiable: int | None = None,
                 view: bool | str = False, adjoint: bool | None = None, moves: bool = False,
                 masks: bool = False, native: str | None = None,
                 arguments: str | None = None, rounds: str | None = None,
                 loose_from: int | None = None, bare: bool = False, cpu: Callable | None = None,
                 rounded: Callable | None = None, batch: Callable | None = None,
                 onnx: str | None = None, runtime: str | None = None, real_indices: bool = False,
                 strided: bool = False, flops: Callable | None = None, device: Callable | None = None,
                 rules_round: bool = True, whole: str = "", halves: bool = False, part: bool = False) -> None:
        self.name = name
        self.variadic = inputs.startswith("*")
        self.part = part
        self.inputs = tuple(inputs.lstrip("*").split())
        self.arguments = tuple(arguments.split() if arguments else
                               [PUBLIC_NAMES.get(name, name) for name in self.inputs])
        self.outputs = tuple(outputs.split())
        self.differentiable = len(self.outputs) if differentiable is None else differentiable
        self.kernel = kernel
        self.plain: Callable = partial(kernel, np)
        self.cpu: Callable = cpu or (native_or(native, self.plain) if moves or view else
                                     native_or_wide(native, self.plain, whole))
        self.native = native
        self.rounded = rounded or rounded_or(rounds, self.cpu)
        self.narrow: Callable = self.rounded or (
            native_or(native, narrowing(self.cpu)) if halves else narrowing(self.cpu))
        self.cuda_kernel = cuda_kernel or kernel
        self.device = device
        self.rules_round = device is not None and rules_round
        self.jvp = jvp
        self.infer = infer
        self.view = view
        self.conjugates = not adjoint if adjoint is not None else jvp != "linear" and len(self.outputs) == 1
        self.moves = moves or bool(view)
        self.masks = masks
        self.loose_from = loose_from or (NEVER if self.moves else 2)
        self.bare = bare
        self.batch = batch
        self.onnx = onnx
        self.runtime = runtime
        self.real_indices = real_indices
        self.strided = strided
        self.flops = flops
        self._set_rules(vjp)
        OPS.append(self)

    def _set_rules(self, vjp: Any) -> None:
        self.joint: Any = None
        if vjp == "undefined":
            self.joint = NoDerivative(self.name.lstrip("_"))
        elif vjp is not None and not isinstance(vjp, dict):
            self.joint = self._rule(vjp)
        self.rules: list[Any] | None = None
        if isinstance(vjp, dict):
            assert set(vjp) <= set(self.inputs), f"{self.name}: rules for unknown inputs {set(vjp)}"
            self.rules = [self._rule(vjp[i]) if i in vjp else None for i in self.inputs]
        self.has_vjp = vjp is not None
        rules = [self.joint] if self.joint else list(self.rules or ())
        found = [map(self._source, rule.names) if rule else () for rule in rules]
        self.wanted = [tuple(s for s in sources if s is not None) for sources in found]
        self.keeps_nothing = not any(self.wanted)
        self.places = {s[0]: s for s in itertools.chain(*self.wanted) if s[1] in ("in", "out")}

    def _rule(self, function: Any) -> Any:
        return Rule(function)

    def _source(self, name: str) -> tuple[str, str, int] | None:
        """Where a rule's argument comes from: (name, kind, position), or None for a setting."""
        if name in self.outputs:
            return name, "out", self.outputs.index(name)
        stem, _, kind = name.rpartition("_")
        if name in self.inputs:
            return name, "in", self.inputs.index(name)
        if stem in self.inputs and kind in ("shape", "dtype"):
            return name, kind, self.inputs.index(stem)
        return None

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    # -- the road --------------------------------------------------------------------------------

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        """For rules: on tensors the recorded road, on arrays only the kernel."""
        for x in inputs:
            if isinstance(x, Tensor):
                return self.run(*inputs, **settings)
        return self.kernel_for(inputs)(*inputs, **settings)

    def run(self, *inputs: Any, **settings: Any) -> Any:
        """On tensors and numbers: compute, wrap, and record if an input requires grad."""
        arrays = []
        recorded = False
        try:
            for x in inputs:
                if isinstance(x, Tensor):
                    arrays.append(x._array)
                    if x._node is not None:
                        recorded = True
                elif isinstance(x, NUMBERS):
                    arrays.append(x)
                else:
                    raise self._not_a_tensor(inputs)
        except LayoutError:  # a sparse tensor, which has no array
            return sparse().dispatch(self, inputs, settings)
        return road(self, inputs, arrays, settings, recorded)

    def passed(self, *inputs: Any, **settings: Any) -> Any:
        """``run`` for a call that the interceptors have seen."""
        arrays = [x._array if isinstance(x, Tensor) else x for x in inputs]
        recorded = any(isinstance(x, Tensor) and x._node is not None for x in inputs)
        return road(self, inputs, arrays, settings, recorded, quiet.plain)

    road = run  # also of kinds of records whose ``run`` prepares the inputs first

    def record(self, inputs: tuple, arrays: list, result: Tensor, settings: dict) -> None:
        """Hang a node for this call on ``result``."""
        if state.enabled is True:
            result._node = self.node(inputs, arrays, (result,), settings)
        else:
            track(self, inputs, arrays, (result,), settings)

    def node(self, inputs: tuple, arrays: list, results: tuple, settings: dict) -> Node:
        """The node of a call, with what the rules of the inputs that need it want kept."""
        edges = []
        for x in inputs:  # a comprehension would cost a call, here and below
            edges.append(x._node if isinstance(x, Tensor) else None)
        if self.keeps_nothing:
            return Node(self, tuple(edges), None, None, settings, None)
        kept: dict[str, Any] = {}
        versions: list[tuple[list, int]] = []
        joint, variadic = self.joint is not None, self.variadic
        for position, sources in enumerate(self.wanted):
            if not joint and edges[position] is None:
                continue
            for name, kind, i in sources:
                if name in kept:
                    continue
                if kind == "out":
                    x = results[i]
                elif kind == "in" and not variadic:
                    x = inputs[i]
                elif variadic:
                    kept[name] = tuple([_part(kind, a) for a in arrays])
                    if kind == "in":
                        versions += [_stamp(x) for x in inputs if isinstance(x, Tensor)]
                    continue
                else:
                    kept[name] = _part(kind, arrays[i])
                    continue
                if isinstance(x, Tensor):
                    kept[name] = x._array
                    counter = x._counter  # counter_of, written out: this runs for every kept value
                    if counter is None:
                        counter = x._counter = [0, None]
                    versions.append((counter, counter[0]))
                else:
                    kept[name] = x
        return Node(self, tuple(edges), kept, versions, settings, None)

    # -- backward --------------------------------------------------------------------------------

    def pull(self, node: Node, g: Any, edges: tuple, live: bool) -> Any:
        """The gradients of the inputs from that of the output; ``live``: as tensors, recorded."""
        if not (live or self.moves) and (kind := self._computed_wide(g)):
            half = kind == "half"
            wide = Node(self, node.edges, widen(node.kept, half), node.versions, widen(node.settings, half),
                        None)
            return rounded_as(self.pull(wide, widen(g, half), edges, live), half)
        if self.masks and state.walk is not None:
            masked_walks.add(state.walk)
        values = node.kept or {}
        if node.versions:
            for counter, version in node.versions:
                if counter[0] != version:
                    raise self._changed(node, counter, version)
        elif node.kept is None and not self.keeps_nothing:
            raise AutogradError(
                f"backward through {self.name} a second time: what it kept was freed after the first; "
                f"pass retain_graph=True to the first backward, or compute the value anew")
        if live and values:
            values = self._revive(node, values)
        if node.settings:
            values = {**node.settings, **values}
        turned = self.conjugates and (g.dtype.is_complex if live else g.dtype.kind == "c")
        if turned:
            g = g.conj()
        if self.joint is not None:
            if "needs" in self.joint.names:
                values = {**values, "needs": tuple([e is not None for e in edges])}
            grads = self.joint.on(g)(g, *[values[n] for n in self.joint.names])
        else:
            grads = [None] * len(edges)
            for i, rule in enumerate(self.rules):  # type: ignore[arg-type]
                if edges[i] is not None and rule is not None:
                    arguments = [g]
                    for name in rule.names:  # a comprehension would cost a call
                        arguments.append(values[name])
                    grads[i] = rule.on(g)(*arguments)
        return [None if x is None else x.conj() for x in grads] if turned else grads

    def _computed_wide(self, g: Any) -> str:
        """Whether the rules want float32 in place of bfloat16 ("rounded"), or of the CPU's float16 ("half"),
        as ``g`` is; "" where they do not, or round by themselves."""
        if dtypes.rounded is not None and is_rounded(g):
            return "" if (self.rounded if is_numpy(g) else self.rules_round) else "rounded"
        return "half" if not self.rounded and is_half(g) and is_numpy(g) else ""

    def _changed(self, node: Node, counter: list, version: int) -> AutogradError:
        values = []  # one for each version, in order
        for name, value in (node.kept or {}).items():
            source = self._source(name)
            if source is None or source[1] not in ("in", "out"):
                continue
            shown = "its result" if source[1] == "out" else f"its argument '{self.arguments[source[2]]}'"
            values += [f"{shown}, {_describe(v)}" for v in (value if type(value) is tuple else (value,))
                       if hasattr(v, "dtype") and not isinstance(v, np.generic)]
        which = " and ".join(v for v, (own, _) in zip(values, node.versions) if own is counter)
        return AutogradError(
            f"backward of {self.name}: a value it kept ({which}) was changed in place by {counter[1]} after "
            f"{self.name} ran (it is at version {counter[0]}, {version} was kept); use the out-of-place "
            f"form, or .clone() before changing it")

    def _revive(self, node: Node, values: dict) -> dict:
        """The kept arrays as tensors at their places in the graph."""
        revived = dict(values)
        for name, (_, kind, i) in self.places.items():
            if name not in values:
                continue
            if self.variadic and kind == "in":
                revived[name] = tuple(_at(a, e) for a, e in zip(values[name], node.edges))
            elif kind == "in":
                revived[name] = _at(values[name], node.edges[i])
            elif len(self.outputs) == 1 or self.differentiable == 1:
                revived[name] = _at(values[name], node if i == 0 else None)
            else:
                revived[name] = _at(values[name], Pick(node, i) if i < self.differentiable else None)
        return revived

    # -- kernels and failures --------------------------------------------------------------------

    def cuda(self, *arrays: Any, **settings: Any) -> Any:
        if self.view is True and cuda.is_alone():  # nothing is launched
            return self.cuda_kernel(cuda.cupy(), *arrays, **settings)
        with _common_device(self, arrays):
            if self.device is not None and (out := self.device(*arrays, **settings)) is not NotImplemented:
                return out
            if dtypes.rounded is not None and not self.moves and any(is_rounded(a) for a in arrays):
                return in_float32(self.cuda, *arrays, **settings)
            return self.cuda_kernel(cuda.cupy(), *arrays, **settings)

    def kernel_for(self, arrays: Iterable) -> Callable:
        """The kernel for ``arrays``: the CPU's unless CuPy is loaded and one is its; bfloat16 in float32."""
        if dtypes.plain:
            return self.cpu
        kind, there = cuda.array_type, False  # asked for every call once a program has used a GPU: be quick
        for a in arrays:
            if type(a) is kind:
                there = True
            elif type(a) is ndarray:
                if not self.moves and a.dtype.kind == "V":
                    break
            elif type(a) not in _PYTHON:
                break
        else:
            return self.cuda if there else self.cpu
        if any_batched(arrays):
            return partial(batched_call, self)
        if any(isinstance(a, PutOff) for a in arrays):
            ready = self.kernel_for([known(a) for a in arrays])
            return lambda *arrays, **settings: ready(*[known(a) for a in arrays], **settings)
        if shapes.used and any(type(a) is shapes.MetaArray for a in arrays):
            return self.inferred
        if cuda._cupy is not None:
            for a in arrays:
                if isinstance(a, cuda._cupy.ndarray):
                    return self.cuda
        if dtypes.rounded is not None and not self.moves and any(is_rounded(a) for a in arrays):
            return self.narrow
        return self.cpu

    def inferred(self, *arrays: Any, **settings: Any) -> Any:
        """What stands for a kernel where an array has no memory: the shape rule."""
        for a in arrays:
            if isinstance(a, ndarray) and a.ndim and not self.real_indices:
                raise DeviceError(f"{self.name}: the operands are on different devices (cpu, meta); move "
                                  f"them to one with .to(device)")
        if type(settings.get("out")) is shapes.MetaArray:
            return settings["out"]
        if self.view and (self.view is True or arrays[0].flags.c_contiguous):
            return shapes.MetaArray(self.plain(arrays[0].ghost, **settings), arrays[0])
        if self.infer is None:
            raise DeviceError(f"{self.name}: no shape without values, on the meta device: it depends on "
                              f"them, or there is no rule for it yet")
        found = self.infer(*[Meta(a.shape, dtypes.BY_NUMPY[a.dtype]) if isinstance(a, _ARRAYS) else a
                             for a in arrays], **settings)
        if isinstance(found, Meta):
            return shapes.of(found.shape, found.dtype.numpy)
        return [one and shapes.of(one.shape, one.dtype.numpy) for one in found]

    def _not_a_tensor(self, inputs: tuple) -> TypeError:
        position = next(i for i, x in enumerate(inputs) if not isinstance(x, (Tensor, *NUMBERS)))
        bad = inputs[position]
        name = f"{self.arguments[0]}[{position}]" if self.variadic else self.arguments[position]
        return TypeError(f"{self.name}: argument '{name}' must be a Tensor, got "
                         f"{kind_of(bad)}; convert it with framework.tensor(...)")


OPS: list[Op] = []


def _describe(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else repr(value)


_PYTHON = frozenset((int, float, bool, complex, type(None)))


def _part(kind: str, a: Any) -> Any:
    if kind == "in":
        return a
    if kind == "shape":
        return getattr(a, "shape", ())
    return getattr(a, "dtype", None)


def _stamp(x: Tensor) -> tuple[list, int]:
    counter = counter_of(x)
    return counter, counter[0]


def _at(value: Any, node: Any) -> Any:
    return wrap(value, node=node) if hasattr(value, "dtype") and hasattr(value, "strides") else value


_HERE: Any = nullcontext()


def _common_device(op: Any, arrays: Iterable) -> Any:
    """What makes the device of the arrays the current one; nothing where it is, as the only one always is."""
    device, kind = None, cuda.array_type
    if cuda.is_alone() and not any(isinstance(a, np.ndarray) for a in arrays):
        return _HERE
    for a in arrays:
        apart = isinstance(a, np.ndarray)
        if not apart and isinstance(a, kind):
            here = a.device
            apart = device is not None and here.id != device.id
            device = here
        if apart:
            raise DeviceError(f"{op.name}: the operands are on different devices; move them to one "
                              f"with .to(device)")
    return _HERE if device is None or cuda.is_current(device.id) else device


def _resumed(op: Op, inputs: tuple, arrays: tuple, out: Any, settings: dict, recorded: bool) -> Any:
    """``road`` of a call whose kernel has run."""
    return road(op, inputs, arrays, settings, recorded, lambda *args, **kwargs: out)


if hasattr(_native.module, "set_up_road"):  # ``run`` in C++, which calls this one for all that is unusual
    _native.module.set_up_road(Op, {
        "run": Op.run, "after": after, "finish_many": _finish_many, "as_array": as_array,
        "row_major": row_major, "track": track, "link_view": link_view, "Declined": Declined,
        "PlainNode": PlainNode, "Pick": Pick, "resumed": _resumed, "cuda": cuda})
