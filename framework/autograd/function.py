"""Custom functions: a forward and a backward written by the user, one node of the graph.

A call hangs a plain ``Node`` on its outputs. The node's ``op`` is a ``_Call``, which holds the context
and answers ``pull`` as a record does. What ``save_for_backward`` was given is kept as arrays with the
places of the tensors in the graph, and outputs are kept without theirs (they would point back at the
node); so saving an output leaks nothing.
"""

import weakref
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple

from numpy import ndarray

from .. import _native
from ..backends import backend_for
from ..config.listing import own as _own
from ..device import CPU, Device
from ..dtypes import FLOAT, INEXACT, DType
from ..errors import AutogradError, DeviceError, DTypeError, ShapeError, kind_of
from ..node import Dual, GraphOp, Leaf, Node, Pick
from ..quiet import quiet
from ..seam import settled
from ..tensor import Tensor, as_tensor, bump, counter_of, hand_out, wrap
from .around import opened, packed
from .forward import is_recorded, push_function
from .mode import no_grad, set_recording, state
from .written import replay_views


class _Kind(NamedTuple):
    """What a gradient must look like: shape, dtype and device of a tensor."""

    shape: tuple[int, ...]
    dtype: DType
    device: Device

    def zeros(self) -> Any:
        array = backend_for(self.device).empty(self.shape, self.dtype.numpy, self.device)
        array[...] = 0
        return array


class _Saved(NamedTuple):
    """A tensor given to ``save_for_backward``: its array, and where it stands in the graph."""

    array: Any
    node: Any
    output: int | None


class FunctionCtx:
    """What ``forward`` hands to ``backward``: saved tensors, flags, and any attribute set on it."""

    _tensors: tuple = ()
    _for_forward: tuple = ()
    _dirty: tuple = ()
    _plain: tuple = ()
    _materialize = True
    _node: Node | None = None

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (inputs, outputs or others) for ``backward``; None is allowed."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward: wanted Tensors or None, got {type(t).__name__}; set "
                                f"other values as attributes of ctx")
        self._tensors = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Lend tensors (inputs or outputs) to ``jvp``, as ``ctx.saved_tensors``; None is allowed."""
        self._for_forward = tensors

    @property
    def saved_tensors(self) -> tuple:
        """What ``save_for_backward`` kept; in ``jvp``, what ``save_for_forward`` was given."""
        return self._tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that ``forward`` changed these inputs in place; it must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient."""
        self._plain = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros (default) or None for outputs that received no gradient."""
        self._materialize = bool(value)


class Function:
    """Base of operations with a derivative of their own.

    ``forward(ctx, *args)`` computes under no_grad (or ``forward(*args)`` together with
    ``setup_context(ctx, inputs, output)``); ``backward(ctx, *grads)`` gives one gradient, or None, per
    argument. Both are static. Call it as ``MyFunction.apply(*args)``. Under ``create_graph=True`` the
    operations of ``backward`` are recorded, so higher derivatives work. For forward mode,
    ``jvp(ctx, *tangents)`` gives one tangent, or None, per output.

    >>> class Exp(fw.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (y,) = ctx.saved_tensors
    ...         return g * y
    >>> x = fw.zeros(2, requires_grad=True)
    >>> Exp.apply(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise TypeError(f"{name} is not made into objects; write its forward and backward as static "
                        f"methods and call {name}.apply(...)")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs from the arguments."""
        raise NotImplementedError("a Function needs a static method forward")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple, output: Any) -> None:
        """Fill ``ctx`` from the arguments and the result, if ``forward`` takes no ``ctx``."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        """The gradients of the arguments from those of the outputs; may be named ``vjp`` instead."""
        raise NotImplementedError("a Function needs a static method backward")

    vjp = backward
    generate_vmap_rule = False  # taken for PyTorch's sake: what is made of operations needs no rule

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """The rule for ``func.vmap``: (outputs, their batch dimensions) of whole arguments.

        info: ``batch_size`` and ``randomness``. in_dims: the batch dimension of each argument, None for those
        that all examples share. Without it, and with ``generate_vmap_rule``, ``forward`` and ``backward`` run
        on the examples' tensors, as all operations do.
        """
        raise NotImplementedError("this Function has no rule for vmap")

    @staticmethod
    def jvp(ctx: FunctionCtx, *tangents: Any) -> Any:
        """The tangents of the outputs from those of the arguments; runs right after ``forward``.

        Zeros stand for a missing tangent, or None after ``ctx.set_materialize_grads(False)`` and for
        arguments that are not tensors.
        """
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and record the call if an argument requires grad."""
        split = cls.setup_context is not Function.setup_context
        if cls.forward is Function.forward:
            raise NotImplementedError(f"{cls.__name__}: a Function needs a static method forward")
        if split or kwargs:
            args = _positional(cls, split, args, kwargs)
        if quiet.stack:
            settled(args)
        if state.batches and cls.vmap is not Function.vmap:
            if cls.generate_vmap_rule:
                raise RuntimeError(f"{cls.__name__}: give either a static method vmap or "
                                   f"generate_vmap_rule = True, not both")
            for by_rule in batched_rule:
                found = by_rule(cls, args)
                if found is not NotImplemented:
                    return found
        edges = tuple([x._node if isinstance(x, Tensor) else None for x in args])
        ctx = FunctionCtx(tuple([is_recorded(e) for e in edges]))
        recording, levels = state.recording, state.levels  # ``no_grad`` and ``only(())``, written out
        set_recording(False)
        state.levels = ()
        try:
            if split:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
        finally:
            state.levels = levels
            set_recording(recording)
        return _given_out(cls, ctx, args, edges, output, recording)


batched_rule: list[Callable] = []  # what calls ``Function.vmap``, which ``func.vmap`` brings along


def _positional(cls: type, split: bool, args: tuple, kwargs: dict) -> tuple:
    if not split:
        raise TypeError(f"{cls.__name__}.apply takes keyword arguments only if setup_context is defined, "
                        f"got {', '.join(kwargs)}; pass them by position")
    bound = signature(cls.forward).bind(*args, **kwargs)  # type: ignore[attr-defined]
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{cls.__name__}.forward must not have keyword-only arguments "
                        f"({', '.join(bound.kwargs)})")
    return bound.args


class FunctionNode(Node):
    """The node of a user's Function: what ``forward`` put on ctx is found on it, as on a ``grad_fn``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in Node.__slots__:  # one that was never set
            raise AttributeError(f"this node has no {name}")
        found = vars(self.op.ctx)
        if name not in found or name.startswith("_"):
            raise AttributeError(f"the node of {self.op.name} has no {name!r}, nor has its ctx")
        return found[name]


def _given_out(cls: type, ctx: FunctionCtx, args: tuple, edges: tuple, output: Any, recording: bool) -> Any:
    """What ``apply`` gives for what ``forward`` gave."""
    if isinstance(output, tuple):
        return _finish(cls, ctx, args, edges, output, recording)
    if not isinstance(output, Tensor):
        raise TypeError(f"{cls.__name__}.forward must return a Tensor or a tuple, got "
                        f"{type(output).__name__}")
    return _finish(cls, ctx, args, edges, (output,), recording)[0]


def _finish(cls: type, ctx: FunctionCtx, args: tuple, edges: tuple, outputs: tuple, recording: bool) -> tuple:
    """The tensors to give out, with the node of the call on those that carry a gradient."""
    recorded = recording and True in ctx.needs_input_grad
    dirty, plain, saved = ctx._dirty, ctx._plain, ctx._tensors
    if dirty:
        _check_marks(cls, ctx, args, outputs, recorded)
    # fresh tensors over the same memory: an output that forward put on ctx must not lead to the node
    results = tuple([_give_out(x, dirty) if isinstance(x, Tensor) else x for x in outputs])
    carries = [isinstance(x, Tensor) and x._array.dtype.kind in INEXACT and not (plain and _among(x, plain))
               for x in outputs]
    if recorded and True in carries:
        call = _Call(cls, ctx, args, outputs, results)
        node = FunctionNode(call, edges, None, None, {}, None)
        if saved:
            _keep(saved, node, outputs, results)
        for i, result in enumerate(results):
            if carries[i]:
                enters = not is_recorded(result._node)
                result._node = node if len(results) == 1 else Pick(node, i)
                if dirty and _among(result, dirty):
                    replay_views(result, enters)
    if state.levels:
        push_function(cls, ctx, edges, args, outputs, results, carries)
    ctx._tensors, ctx._for_forward, ctx._dirty, ctx._plain = (), (), (), ()
    return results


def _check_marks(cls: type, ctx: FunctionCtx, args: tuple, outputs: tuple, recorded: bool) -> None:
    for x in ctx._dirty:
        if not _among(x, args) or not _among(x, outputs):
            raise AutogradError(f"{cls.__name__}: mark_dirty is for arguments of forward that were changed "
                                f"in place and are returned")
        bump(x, cls.__name__)
        if not recorded:
            continue
        if type(x._node) is Leaf:
            raise AutogradError(f"{cls.__name__}: a leaf tensor that requires grad cannot be changed in "
                                f"place while gradients are recorded; pass a clone()")
        if x._base is not None:
            raise AutogradError(f"{cls.__name__}: a view cannot be marked dirty; pass a clone() of it")


def _give_out(x: Tensor, dirty: tuple) -> Tensor:
    if dirty and _among(x, dirty):
        return x
    hand_out(x)
    result = wrap(x._array, type(x))
    result._counter = counter_of(x)
    return result


def _among(x: Any, items: tuple) -> bool:
    return any(x is item for item in items)


def _keep(tensors: tuple, node: Node, outputs: tuple, results: tuple) -> None:
    """Put the saved tensors on the node, as arrays; the engine frees them as it does for any op."""
    saved: list[_Saved | None] = []
    versions = []
    for t in tensors:
        if t is None:
            saved.append(None)
            continue
        index, place = None, t._node
        for i, x in enumerate(outputs):
            if x is t:
                index = i
                break
        if index is not None:
            t, place = results[index], None
        counter = counter_of(t)
        array, version = packed(t._array, (counter, counter[0]), node.op.name)
        saved.append(_Saved(array, place, index))
        versions.append(version)
    node.kept, node.versions = {"saved": saved}, versions
    node.op.keeps_nothing = False


class _Call(GraphOp):
    """One call of a Function, with the part of a record's face that the engine uses."""

    __slots__ = ("function", "name", "ctx", "keeps_nothing", "differentiable", "inputs", "outputs", "raw")

    def __init__(self, cls: Any, ctx: FunctionCtx, args: tuple, outputs: tuple,
                 results: tuple) -> None:
        self.function = cls
        self.name = cls.__name__
        self.ctx = ctx
        self.keeps_nothing = True
        self.differentiable = len(outputs)
        self.inputs = [_kind(x) for x in args]
        self.outputs = [_kind(x) for x in outputs]
        # the tensors forward returned, should the user have put one on ctx; never kept alive here
        self.raw = [weakref.ref(x) if isinstance(x, Tensor) and x is not r else None
                    for x, r in zip(outputs, results)]

    def __repr__(self) -> str:
        return f"<function {self.name}>"

    def pull(self, node: Node, g: Any, edges: tuple, live: bool) -> list:
        """The gradients of the arguments, by the user's ``backward``."""
        self._check(node)
        ctx = self.ctx
        places: list[Any]
        grads: list[Tensor | None]
        if self.differentiable == 1:
            places, grads = [node], [as_tensor(g)]
        else:
            places = [Pick(node, i) for i in range(self.differentiable)]
            if ctx._materialize:
                g = [k.zeros() if part is None and k is not None else part
                     for part, k in zip(g, self.outputs)]
            grads = [None if part is None else as_tensor(part) for part in g]
        needs = ctx.needs_input_grad
        borrowed = self._lend(places) if live else []
        ctx._tensors = tuple([self._revive(s, places) for s in (node.kept or {}).get("saved", ())])
        ctx._node, ctx.needs_input_grad = node, tuple([e is not None for e in edges])
        try:
            given = _backward_of(self.function)(ctx, *grads)
        finally:
            ctx._tensors, ctx._node, ctx.needs_input_grad = (), None, needs
            for t in borrowed:
                t._node = None
        return self._results(given, edges, live)

    def _check(self, node: Node) -> None:
        if not self.keeps_nothing and node.kept is None:
            raise AutogradError(
                f"backward through {self.name} a second time: what it kept was freed after the first; "
                f"pass retain_graph=True to the first backward, or compute the value anew")
        for i, (counter, version) in enumerate(node.versions or ()):
            if counter[0] != version:
                saved = [s.array for s in node.kept["saved"] if s is not None][i]  # type: ignore[index]
                what = f"{saved.dtype}{list(saved.shape)}" if hasattr(saved, "shape") else "packed by a hook"
                raise AutogradError(
                    f"backward of {self.name}: a value it kept with save_for_backward ({what}) was changed "
                    f"in place by {counter[1]} after {self.name} ran (it is at version {counter[0]}, "
                    f"{version} was kept); use the out-of-place form, or .clone() before changing it")

    def _lend(self, places: list) -> list[Tensor]:
        """Give outputs that the user put on ctx their places in the graph while ``backward`` runs."""
        lent = []
        for ref, place in zip(self.raw, places):
            t = ref() if ref is not None else None
            if t is not None and t._node is None and t._array.dtype.kind in INEXACT:
                t._node = place
                lent.append(t)
        return lent

    @staticmethod
    def _revive(saved: _Saved | None, places: list) -> Tensor | None:
        """The saved tensor at its place, so that ``backward`` can differentiate by it under enable_grad."""
        if saved is None:
            return None
        place = saved.node if saved.output is None else places[saved.output]
        array = opened(saved.array)
        return wrap(array, node=place if array.dtype.kind in INEXACT else None)

    def _results(self, given: Any, edges: tuple, live: bool) -> list:
        grads = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(grads) > len(edges) and all(x is None for x in grads[len(edges):]):
            del grads[len(edges):]
        if len(grads) != len(edges):
            raise AutogradError(f"{self.name}.backward returned {len(grads)} gradients for {len(edges)} "
                                f"arguments of forward; return one (or None) for each")
        for i, (x, edge) in enumerate(zip(grads, edges)):
            if x is None:
                continue
            grad = self._fit(i, x)
            if edge is None:
                grads[i] = None
            elif live:
                grads[i] = grad
            else:  # a leaf's .grad is the user's: what backward returned may be shared with anything
                grads[i] = grad._array.copy() if type(edge) is Leaf else grad._array
        return grads

    def _fit(self, i: int, x: Any) -> Tensor:
        """The gradient of argument ``i``, checked and brought to its shape and dtype."""
        wanted = self.inputs[i]
        if type(x) is Tensor and wanted is not None and x._array.shape == wanted.shape \
                and x.dtype is wanted.dtype and type(x._array) is ndarray and wanted.device is CPU:
            return x  # nearly always
        where = f"{self.name}.backward: gradient {i}"
        if not isinstance(x, Tensor):
            raise TypeError(f"{where} must be a Tensor or None, got {kind_of(x)}")
        if wanted is None:
            raise AutogradError(f"{where} must be None, because argument {i} of forward was not a Tensor")
        if x.device != wanted.device:
            raise DeviceError(f"{where} is on {x.device}, the argument on {wanted.device}")
        if x.shape != wanted.shape:
            if not _expands(wanted.shape, x.shape):
                raise ShapeError(f"{where} has shape {list(x.shape)}, the argument of forward has "
                                 f"{list(wanted.shape)}")
            x = _sum_to(x, wanted.shape)
        if x.dtype is not wanted.dtype and wanted.dtype.category == FLOAT:
            if x.dtype.category > FLOAT:
                raise DTypeError(f"{where} is {x.dtype}, the argument of forward {wanted.dtype}")
            x = x.to(wanted.dtype)  # type: ignore[attr-defined]
        return x


def _backward_of(cls: Any) -> Callable:
    written = [f for f in (cls.backward, cls.vjp) if f is not Function.backward]
    if len(written) != 1:
        found = "both" if written else "neither; write one, or compute without recording: with no_grad()"
        raise NotImplementedError(f"{cls.__name__}: a Function needs a static method backward (or vjp, as "
                                  f"another name for it) to go backward, found {found}")
    return written[0]


def _kind(x: Any) -> _Kind | None:
    if type(x) is Tensor and type(x._array) is ndarray:
        return tuple.__new__(_Kind, (x._array.shape, x.dtype, CPU))  # which calling it does in two steps
    return _Kind(x.shape, x.dtype, x.device) if isinstance(x, Tensor) else None


def _expands(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether a tensor of shape ``small`` broadcasts to ``large``."""
    if len(small) > len(large):
        return False
    return all(a == b or a == 1 for a, b in zip(small[::-1], large[::-1]))


def _sum_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    lead = x.ndim - len(shape)
    dims = (*range(lead), *(i + lead for i, s in enumerate(shape) if s != x.shape[i + lead]))
    return x.sum(dims, keepdim=True).reshape(shape)  # type: ignore[attr-defined]


class _Once(GraphOp):
    """Stands after the gradients of a once-differentiable function: pulling through it is an error."""

    def __init__(self, name: str) -> None:
        self.name = f"{name}, once differentiable"
        self.function = name

    def pull(self, node: Node, g: Any, edges: tuple, live: bool) -> list:
        raise AutogradError(f"{self.function}.backward is marked once_differentiable and cannot be "
                            f"differentiated again; write it with recorded operations and drop the mark")


def once_differentiable(function: Callable) -> Callable:
    """Mark a ``backward`` as not differentiable itself: it runs under no_grad.

    Differentiating its result raises AutogradError. Write it below ``@staticmethod``.

    >>> from framework.autograd.function import once_differentiable
    >>> class Twice(fw.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> x = fw.ones(1, requires_grad=True)
    >>> fw.autograd.grad(Twice.apply(x).sum(), x)
    (tensor([2.]),)
    """
    @wraps(function)
    def run(ctx: FunctionCtx, *grads: Any) -> Any:
        recorded = state.recording
        with no_grad():
            given = function(ctx, *grads)
        node = ctx._node
        if not recorded or node is None:
            return given
        edges = tuple([e for e in node.edges if e is not None]
                      + [g._node for g in grads if isinstance(g, Tensor) and g._node is not None])
        several = isinstance(given, (tuple, list))
        marked = [wrap(x._array, node=Node(_Once(node.op.name), edges, None, None, {}, None))
                  if isinstance(x, Tensor) else x for x in (given if several else (given,))]
        return tuple(marked) if several else marked[0]
    return run


if hasattr(_native.module, "set_up_functions"):
    _native.module.set_up_functions((FunctionCtx, _Call, _Saved, _Kind, Dual, Pick, FunctionNode), _given_out,
                                    set_recording, Function.setup_context, Function.forward, CPU)
    Function.apply = classmethod(_native.module.applying(vars(Function)["apply"].__func__))  # type: ignore

__dir__ = _own(globals())
