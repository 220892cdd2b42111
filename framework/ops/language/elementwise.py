"""Elementwise ops: one scalar expression each, with promotion, broadcasting and in-place forms.

``elementwise("tanh", "x", "tanh(x)", vjp={"x": "g * (1 - out * out)"}, ...)`` makes the record and the
public function. Both texts are in the language of ``expression.py``.
"""

import math
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import _native, dtypes
from ...autograd import engine
from ...autograd.mode import masked_walks, state
from ...backends import array_module, cuda, device_code, meta
from ...errors import DTypeError, FrameworkError, LayoutError, add_note, kind_of
from ...node import Node, next_seq
from ...quiet import readable
from ...sparse_door import sparse
from ...tensor import Tensor, wrap
from ..convert.cast import cast, from_array
from ..record import autocast, short_roads
from ..record.args import is_foreign
from ..record.batched import by_element, innermost
from ..record.entries import entered_element
from ..record.meta import describe_call
from ..record.op import Meta, Op, Rule
from ..record.public import PUBLIC, compute_into, public
from ..record.road import NEVER, road
from ..record.rounded import is_rounded, narrowing
from ..record.torch_function import asked_late
from ..shape.broadcast import broadcast_shape, sum_to, summed_dims
from ..shape.complex_parts import real_op
from .cuda import DeviceKernel
from .expression import ExpressionRule, array_function, tensor_function, zero_where_zero
from .program import folding, native_kernel
from .words import OPS_BY_NAME, all_finite

OPS_BY_NAME["real"] = real_op  # a view, and a word of the rules all the same
ndarray = np.ndarray
single, pair = short_roads.single, short_roads.pair
if hasattr(_native.module, "short_road"):
    single, pair = _native.module.short_road(single), _native.module.short_road(pair)
_NO_SETTINGS: dict = {}
_WEAK = (float, int)  # Python numbers that take the dtype of a floating array
_NO_OPERANDS = frozenset((type(None), str, bytes, list, tuple, dict, set))  # none of them knows of tensors


class Elementwise(Op):
    """An op on each element. ``result`` is the rule for its dtype:

    "same": that of the promoted inputs; "float": integers become the default float dtype first;
    "number": the same, but bools become int64; "bool": computed on the promoted inputs, gives bool;
    "integer": takes integers and bools only;
    "select": the first input is a condition that takes no part in promotion; "real": that of the
    promoted inputs' real part.

    complex: whether complex numbers are taken; without it they are refused, as NumPy orders them, say,
        where mathematics does not.
    onnx: an ONNX operator that computes it, where that is shorter than the expression in ONNX's operators.
    runtime: what it is in a model file, where the program of its expression does not do.
    writes: the kinds of dtype of tensors that its result may be written straight into (default: those that
        the result can have); to be given where a kernel can fail in the middle.
    whole: whether it leaves whole numbers as they are, so that its in-place form has nothing to write.
    check: ``check(name, *arrays)`` before each call of NumPy, which raises for operands without a result;
        native kernels leave those to it.
    """

    def __init__(self, name: str, inputs: str, expr: str, *, settings: str = "", result: str = "same",
                 ufunc: str | None = None, vjp: dict[str, str] | str | None = None, jvp: str | None = None,
                 complex: bool = False, adjoint: bool | None = None, masks: bool = False,
                 arguments: str | None = None, writes: str | None = None,
                 onnx: str | None = None, runtime: str | None = None,
                 of_anything: bool = False, check: Callable | None = None, whole: bool = False,
                 float32_on_a_gpu: bool = False) -> None:
        self.expr = expr
        self._check = check
        self.result = result
        self.complex = complex
        # NumPy's kinds of dtype that it computes in as they come
        self.kinds = {"float": "f", "integer": "iub", "number": "fiu"}.get(result, "fiub") + "c" * complex
        like_inputs = "fiub" if result == "real" else self.kinds
        self.writes = writes if writes is not None else \
            "b" * (ufunc is not None) if result == "bool" else \
            (like_inputs if ufunc else like_inputs.replace("c", "")) + "V"  # of complex numbers NumPy writes
        self.ufunc = ufunc
        self.of_anything = of_anything
        self.whole = whole
        self.float32_on_a_gpu = float32_on_a_gpu  # in blocks of autocast, see record/autocast.py
        self.settings = tuple(settings.split())
        names = ", ".join((*inputs.split(), *(["*", *self.settings] if settings else [])))
        self._parameters = names
        self._functions: dict[Any, Callable] = {}
        self._joint: dict[tuple, dtypes.DType] = {}  # see ``joint_dtype``
        self._device_kernel: DeviceKernel | None = None
        self._quick: Any = None  # its part that is not Python, once it has launched
        super().__init__(name, inputs, kernel=self._kernel, vjp=vjp, jvp=jvp,
                         adjoint=adjoint, masks=masks, infer=self._infer, arguments=arguments, onnx=onnx,
                         runtime=runtime,
                         loose_from=NEVER, bare=True, batch=by_element,  # the result lies as the inputs do
                         cpu=self._first_cpu, rounded=None if _native.module is None else self._rounded,
                         device=self._on_device)
        # a sum hands its gradient on as it is: no rule needs to be called
        self._passes = all(r is not None and r.text == "g" for r in self.rules or [None])
        OPS_BY_NAME.setdefault(name, self)

    def _rule(self, text: str) -> Any:
        return ExpressionRule(text, (*self.inputs, "out"), self.settings)

    def _first_cpu(self, *arrays: Any, **settings: Any) -> Any:
        self.plain = (getattr(np, self.ufunc) if self.ufunc
                      else array_function(self.expr, self._parameters, np))
        if self._check is not None:  # the extension leaves to it what does not pass
            self.plain = partial(_checked, self.plain, self._check, self.name)
        self.cpu = native_kernel(self.expr, (*self.inputs, *self.settings), self.plain, self.settings)
        self.narrow = self.cpu if self.rounded else narrowing(self.cpu)
        return self.cpu(*arrays, **settings)

    def _rounded(self, *arrays: Any, **settings: Any) -> Any:
        return self.cpu(*arrays, **settings)

    def _on_device(self, *arrays: Any, **settings: Any) -> Any:
        if not device_code.enabled:
            return NotImplemented
        out = settings.pop("out", None)
        if self._device_kernel is None:
            self._device_kernel = DeviceKernel(self.expr, (*self.inputs, *self.settings), self._kernel,
                                               beyond=self._beyond_quick)
        result = self._device_kernel.launch((*arrays, *[settings[s] for s in self.settings]), out)
        self._quick = None if self.settings else self._device_kernel.quick[1]
        return result

    def kernel_for(self, arrays: Any) -> Callable:
        """``Op.kernel_for``; where a GPU is used, what launches without Python, and leaves the rest."""
        if self._quick is not None and device_code.enabled:
            return self._quick
        return Op.kernel_for(self, arrays)

    def _beyond_quick(self, *arrays: Any, **settings: Any) -> Any:
        return Op.kernel_for(self, arrays)(*arrays, **settings)

    def _kernel(self, xp: Any, *arrays: Any, **settings: Any) -> Any:
        function = self._functions.get(xp)
        if function is None:
            function = self._functions[xp] = array_function(self.expr, self._parameters, xp)
        return function(*arrays, **settings)

    def _infer(self, *inputs: Any, **settings: Any) -> Meta:
        shape = broadcast_shape([x.shape for x in inputs if isinstance(x, Meta)], self.name)
        return Meta(shape, self.result_dtype(inputs)[1])

    def result_dtype(self, inputs: Any) -> tuple[dtypes.DType, dtypes.DType]:
        """(dtype to compute in, dtype of the result) for tensors, Metas and Python scalars."""
        groups: tuple[list, list, list] = ([], [], [])
        for x in inputs[1:] if self.result == "select" else inputs:
            if isinstance(x, (Tensor, Meta)):
                groups[0 if x.ndim else 1].append(x.dtype)
            else:
                groups[2].append(dtypes.scalar_dtype(x))
        dtype = dtypes.combine(groups)
        if self.result == "integer" and dtype.category > dtypes.INTEGER:
            raise DTypeError(f"{self.name}: wanted integer or bool operands, got {dtype}; convert "
                             f"them, e.g. input.long()")
        if self.result == "number" and dtype.category == dtypes.BOOL:
            dtype = dtypes.int64
        if self.result == "float" and dtype.category < dtypes.FLOAT:
            dtype = dtypes.get_default_dtype()
        if dtype.category == dtypes.COMPLEX and not self.complex:
            raise DTypeError(f"{self.name}: wanted real operands, got {dtype}; it is not defined for complex "
                             f"numbers")
        if self.result == "real":
            return dtype, dtype.to_real()
        return dtype, dtypes.bool_ if self.result == "bool" else dtype

    def joint_dtype(self, input: Tensor, other: Any) -> dtypes.DType | None:
        """What a tensor and a tensor or number are computed in, where they are in memory and of usual dtypes;
        None for others, and where there is no such dtype."""
        a, b = input._array, other._array if isinstance(other, Tensor) else other
        if not dtypes.plain or cuda._cupy is not None or type(a) is not ndarray:
            return None
        if type(b) is ndarray:
            key = (a.dtype.num, b.dtype.num, a.ndim == 0, b.ndim == 0, dtypes.get_default_dtype())
        elif type(b) in _WEAK:
            key = (a.dtype.num, type(b), a.ndim == 0, False, dtypes.get_default_dtype())
        else:
            return None
        if (dtype := self._joint.get(key)) is None:
            try:
                operands = (input, input, other) if self.result == "select" else (input, other)
                dtype = self._joint[key] = self.result_dtype(operands)[0]
            except DTypeError:
                return None
        return dtype

    def promote(self, inputs: tuple) -> list:
        """The inputs in the dtype to compute in; scalars stay Python numbers, which are weak."""
        inputs = tuple([self._operand(x, i) for i, x in enumerate(inputs)])
        if not any(isinstance(x, Tensor) for x in inputs):
            raise self._not_a_tensor(("",) * len(inputs)) if not inputs else TypeError(
                f"{self.name}: argument '{self.arguments[0]}' must be a Tensor, got "
                f"{kind_of(inputs[0])}; convert it with framework.tensor(...)")
        dtype = self.result_dtype(inputs)[0]
        first = 1 if self.result == "select" else 0
        home = next((x for x in inputs if isinstance(x, Tensor) and x.ndim and x.is_cuda), None)
        ready: list = list(inputs[:first])
        for x in inputs[first:]:
            if isinstance(x, Tensor):
                if x._array.dtype != dtype.numpy:
                    x = cast.run(x, dtype=dtype)
                if home is not None and not x.ndim and not x.is_cuda:
                    x = x.to(home.device)  # type: ignore[attr-defined]
            elif dtype.category == dtypes.FLOAT and not isinstance(x, float):
                x = float(x)
            elif first and dtype.category == dtypes.INTEGER:
                self._must_hold(dtype, x)
            ready.append(x)
        if not any(isinstance(x, Tensor) for x in ready[first:]):  # where(condition, 1, 0)
            ready[first] = from_array(np.asarray(ready[first], dtype.numpy), inputs[0])
        return ready

    def _must_hold(self, dtype: dtypes.DType, x: Any) -> None:
        """Raise for a number that ``dtype`` cannot hold: NumPy's ``where`` would wrap it around."""
        try:
            dtype.numpy.type(x)
        except OverflowError as error:
            raise readable(error, self.name) from None

    def _operand(self, x: Any, position: int) -> Any:
        if isinstance(x, Tensor):
            return x
        if isinstance(x, np.generic):
            return x.item()
        if isinstance(x, ndarray):
            return wrap(x.astype(dtypes.as_dtype(x.dtype).numpy, copy=False))
        if isinstance(x, (bool, int, float, complex)):
            return x
        raise TypeError(f"{self.name}: argument '{self.arguments[position]}' must be a Tensor or a number, "
                        f"got {kind_of(x)}")

    def run(self, *inputs: Any, **settings: Any) -> Tensor:
        try:
            if len(inputs) == 1 and isinstance(inputs[0], Tensor):
                x, a = inputs[0], inputs[0]._array
                if a.dtype.kind in self.kinds and (  # nothing to promote
                        cuda._cupy is None or type(a) is cuda.array_type or type(a) is ndarray):
                    return road(self, inputs, (a,), settings, x._node is not None)
            ready = self._two_ready(inputs)
            if ready is None:
                ready = inputs if self._are_ready(inputs) else self.promote(inputs)
        except LayoutError:  # a sparse tensor, which has no array
            return sparse().dispatch(self, inputs, settings)
        except (FrameworkError, TypeError) as error:
            face = next((p.function for p in PUBLIC if p.name == self.name and p.namespace), None)
            if face is not None and (asked := asked_late(face, inputs, settings)) is not NotImplemented:
                return asked
            add_note(error, f"while running {describe_call(self, inputs, settings)}")
            raise
        return super().run(*ready, **settings)

    def _two_ready(self, inputs: tuple) -> Any:
        """``promote`` of two operands, or of two tensors to choose from, as far as ``joint_dtype`` goes."""
        chosen = len(inputs) == 3 and self.result == "select" and isinstance(inputs[0], Tensor) \
            and isinstance(inputs[2], Tensor)
        if not chosen and len(inputs) != 2 or not isinstance(inputs[-2], Tensor) \
                or (dtype := self.joint_dtype(*inputs[-2:])) is None:
            return None
        return *inputs[:-2], _in_dtype(inputs[-2], dtype), _in_dtype(inputs[-1], dtype)

    def _are_ready(self, inputs: tuple) -> bool:
        """Whether nothing is to be promoted: tensors of one dtype that the op computes in, in one place.

        Among floating ones there may be Python's floats.
        """
        free = 1 if self.result == "select" else 0
        if free and not isinstance(inputs[0], Tensor):
            return False
        dtype, alone = None, cuda._cupy is None
        kind = type(inputs[0]._array) if free else None  # CuPy's arrays, or NumPy's
        for x in inputs[free:]:
            if not isinstance(x, Tensor):
                if type(x) is not float:
                    return False
                continue
            a = x._array
            if dtype is None:
                dtype, kind = a.dtype, kind or type(a)
            if a.dtype is not dtype or not alone and type(a) is not kind:
                return False
        if dtype is None or dtype.kind not in self.kinds:
            return False
        if not alone and kind is not ndarray and kind is not cuda.array_type:
            return False
        return dtype.kind == "f" or float not in map(type, inputs)

    def node(self, inputs: tuple, arrays: Any, results: tuple, settings: dict) -> Node:
        node = Op.node(self, inputs, arrays, results, settings)  # ``super()`` would cost as much as all below
        if len(arrays) > 1:
            shape = results[0]._array.shape
            for a in arrays:
                if getattr(a, "shape", shape) != shape:
                    node.shapes = tuple([getattr(a, "shape", None) for a in arrays])
                    break
        return node

    def pull(self, node: Node, g: Any, edges: tuple, live: bool) -> Any:
        if self._passes and node.shapes is None:
            return (g,) * len(edges)
        walk = state.walk
        mending = walk is not None and (self.masks or walk in masked_walks)
        if type(g) is not ndarray and self.rules is not None and not live \
                and device_code.is_device_array(g) and g.dtype.kind in "fV":
            return self._pull_on_device(node, g, edges, mending)
        if node.shapes is not None and self.rules is not None and type(g) is ndarray and not mending:
            return self._pull_summed(node, g, edges)
        grads = super().pull(node, g, edges, live)
        if mending:
            grads = [None if x is None else _mended(x, g) for x in grads]
        return grads if node.shapes is None else _summed(grads, node.shapes)

    def pull_new(self, node: Node, g: ndarray, edges: tuple, mine: bool) -> tuple[Any, bool]:
        """``pull`` of a large array, and whether nobody else has the gradients.

        mine: that nobody else has ``g``; then the last of them may be written into its memory.
        """
        rules = self.rules
        if rules is None or node.shapes is not None or g.dtype.char not in "fd" \
                or state.walk is not None and (self.masks or state.walk in masked_walks):
            return self.pull(node, g, edges, False), False
        wanted = [i for i, edge in enumerate(edges) if edge is not None and rules[i] is not None]
        into = self._into(node, g, rules[wanted[-1]]) if mine and wanted else None
        if into is None:
            grads = super().pull(node, g, edges, False)
        else:
            before = tuple([None if i == wanted[-1] else edge for i, edge in enumerate(edges)])
            grads = super().pull(node, g, before, False)
            grads[wanted[-1]] = into()
        return grads, all(x is None or x is g and into or type(x) is ndarray and x.base is None and x is not g
                          for x in grads)

    @staticmethod
    def _into(node: Node, g: ndarray, rule: ExpressionRule) -> Callable | None:
        """The rule on ``g``, to be written into its memory; None where the engine would not do that."""
        function, values = rule.on(g), {**node.settings, **(node.kept or {})}
        arguments = [values[name] for name in rule.names]
        if not hasattr(function, "fold"):
            return None
        for a in arguments:
            if type(a) is ndarray:
                if a.dtype is not g.dtype or a.shape != g.shape or a.strides != g.strides:
                    return None
            elif type(a) not in (int, float):
                return None
        return lambda: function(g, *arguments, out=g)

    def _pull_on_device(self, node: Node, g: Any, edges: tuple, mending: bool) -> list:
        """``pull`` on a GPU: rule, mending and the sum for a broadcast operand in one kernel, no wait."""
        Op.pull(self, node, g, (None,) * len(edges), False)  # whether what was kept is as it was
        rules, shapes, values = self.rules, node.shapes, {**node.settings, **(node.kept or {})}
        grads: list = [None] * len(edges)
        for i, (edge, rule) in enumerate(zip(edges, rules or ())):
            if edge is None or rule is None:
                continue
            arguments = (g, *[values[n] for n in rule.names])
            shape = g.shape if shapes is None or shapes[i] is None else shapes[i]
            if shape != g.shape:
                grads[i] = rule.summed(mending)("sum", summed_dims(g.shape, shape), shape, *arguments)
                if grads[i] is not NotImplemented:
                    continue
            grads[i] = g if rule.text == "g" else (rule.mended() if mending else rule.on(g))(*arguments)
            if grads[i].dtype != g.dtype and is_rounded(g):  # by CuPy's functions, which widen
                grads[i] = grads[i].astype(g.dtype)
        return grads if shapes is None else _summed(grads, shapes)

    def _pull_summed(self, node: Node, g: ndarray, edges: tuple) -> list:
        """``pull`` where an operand was broadcast: rule and sum in one pass, where the engine has them."""
        rules, shapes, values = self.rules, node.shapes, {**node.settings, **(node.kept or {})}
        assert rules is not None and shapes is not None  # as ``pull`` has found
        mine = [e is not None and r is not None and (r.text == "g" or s != g.shape and g.dtype.char in "fd")
                for e, r, s in zip(edges, rules, shapes)]
        grads = super().pull(node, g, tuple([None if m else e for e, m in zip(edges, mine)]), False)
        for i, rule in enumerate(rules):
            if mine[i] and rule.text == "g":
                grads[i] = g
            elif mine[i]:
                arguments = (g, *[values[n] for n in rule.names])
                each, keepdim = rule.on(g), len(shapes[i]) == g.ndim
                total = folding(each)("sum", summed_dims(g.shape, shapes[i]), keepdim, 0, *arguments)
                grads[i] = each(*arguments) if total is NotImplemented else total
        return _summed(grads, shapes)


if hasattr(_native.module, "set_up_elementwise"):  # ``run`` in C++, which calls this one for what is unusual
    _native.module.set_up_elementwise(Elementwise, dtypes)
if hasattr(_native.module, "set_up_nodes"):  # and nodes
    _native.module.set_up_nodes(next_seq, Op, Elementwise)


def _checked(kernel: Callable, check: Callable, name: str, *arrays: Any, **settings: Any) -> Any:
    check(name, *arrays)
    return kernel(*arrays, **settings)


def _summed(grads: Any, shapes: tuple) -> list:
    """The gradients, each summed to the shape of its operand."""
    return [x if x is None or x.shape == shape else
            x.reshape(shape) if x.size == math.prod(shape) else _summed_to(x, shape)
            for x, shape in zip(grads, shapes)]


def _summed_to(x: Any, shape: tuple[int, ...]) -> Any:
    return sum_to(x, size=shape)


def _mended(x: Any, g: Any) -> Any:
    """The gradient ``x`` of an input with 0 where it is inf or nan though the incoming ``g`` is 0.

    Where an op upstream masked an element, its gradient is exactly 0, and 0 * inf is to stay 0. Finite
    elements are left alone, so that derivatives with respect to ``g`` stay what they are.
    """
    array, incoming = getattr(x, "_array", x), getattr(g, "_array", g)
    if type(array) is ndarray and all_finite(array):
        return x
    if type(array) is meta.MetaArray:
        return x
    xp = array_module(array)
    if xp is not np and not isinstance(x, Tensor):
        return zero_where_zero(incoming, array)
    if xp is np and all_finite(innermost(array)):
        return x
    masked = (incoming == 0) & ~xp.isfinite(array)
    if isinstance(x, Tensor):
        return tensor_function("where(masked, 0.0, x)", "masked, x")(wrap(masked), x)
    return xp.where(masked, xp.zeros_like(array), array)


if hasattr(_native.module, "set_up_backward"):  # backward's walk in C++
    _native.module.set_up_backward(engine, Op, Elementwise, Rule, ExpressionRule, _mended)
    _native.module.set_up_summed(_summed_to)


def _in_dtype(x: Any, dtype: dtypes.DType) -> Any:
    """An operand, a tensor or number, as it is computed with."""
    if isinstance(x, Tensor):
        return x if x._array.dtype is dtype.numpy else cast.run(x, dtype=dtype)
    return float(x) if dtype.category == dtypes.FLOAT else x


def unary(op: Elementwise) -> Callable:
    """The public function of a one-input op."""
    kinds = op.kinds + "V" * ("f" in op.kinds)

    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if out is not None:
            return compute_into(op, (input,), {}, out, op.name)
        if autocast.used and op.float32_on_a_gpu:
            input = autocast.in_float32_on_a_gpu(input)
        try:
            if isinstance(input, Tensor) and input._array.dtype.kind in kinds:
                return single(op, input, input._array, input._node is not None)
        except LayoutError:  # a sparse tensor, which has no array
            pass
        return op.run(input)
    return entered_element(function, op, kinds, "", "", single)


def binary(op: Elementwise, *, operator: bool = False) -> Callable:
    """The public function of a two-input op; the quick path is for equal dtypes and weak scalars.

    operator: the function behind Python's operator, which leaves what it does not know to the other operand.
    """
    kinds = {"float": "fV", "integer": "iub"}.get(op.result, "" if op.complex else "fiubV")
    if kinds and op.complex:
        kinds += "c"
    weak = "fVc" if op.complex else "fV"
    whole = "" if op.result == "float" else "iu"

    def function(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        if out is not None:
            return compute_into(op, (input, other), {}, out, op.name)
        try:
            if isinstance(input, Tensor):
                a = input._array
                if isinstance(other, Tensor):
                    b = other._array
                    if (a.dtype is b.dtype and (not kinds or a.dtype.kind in kinds)
                            and (dtypes.plain or type(a) is type(b))):  # a 0-dim one may have to move
                        return pair(op, input, other, a, b,
                                    input._node is not None or other._node is not None)
                elif type(other) in _WEAK and a.dtype.kind in weak:
                    return pair(op, input, other, a, other, input._node is not None)
                elif type(other) is int and a.dtype.kind in whole:
                    return pair(op, input, other, a, other, False)
                elif isinstance(other, np.generic):
                    return function(input, other.item())
            elif type(input) in _WEAK and isinstance(other, Tensor):
                b = other._array
                if b.dtype.kind in weak or type(input) is int and b.dtype.kind in whole:
                    return road(op, (input, other), (input, b), _NO_SETTINGS, other._node is not None)
        except LayoutError:  # a sparse tensor, which has no array
            pass
        if not operator:
            return op.run(input, other)
        try:
            return op.run(input, other)
        except TypeError:
            if is_foreign(input, other) and not _without_hope(op, input, other):
                return NotImplemented
            raise
    function.known = op, kinds, weak, whole, pair  # type: ignore[attr-defined]
    return entered_element(function, *function.known)  # type: ignore[attr-defined]


def usually(same: Callable, kinds: str | None = None) -> Callable[[Callable], Callable]:
    """A decorator: a call of the function with two operands and nothing else is one of ``same``; given kinds
    of dtype, only one with two tensors of one of these."""
    op, known, weak, whole, road = same.known  # type: ignore[attr-defined]
    if kinds is not None:
        known, weak, whole = kinds, "", ""
    return lambda function: entered_element(function, op, known, weak, whole, road)


def _without_hope(op: Elementwise, input: Any, other: Any) -> bool:
    """Whether Python has nothing to try: then the op's own message is the better one.

    It compares by identity what nobody compares, extends a list by ``+=`` and repeats one by ``*``.
    """
    return not op.of_anything and type(other) in _NO_OPERANDS and isinstance(input, Tensor)


def reflected(function: Callable, name: str, symbol: str, float32_on_a_gpu: bool = False) -> None:
    """Bind ``__rsub__`` and the like, from the function behind ``__sub__``.

    float32_on_a_gpu: in blocks of autocast, see ``record/autocast.py``.
    """
    operator = function.operator  # type: ignore[attr-defined]

    def swapped(input: Tensor, other: Any) -> Tensor:
        if float32_on_a_gpu and autocast.used:
            input = autocast.in_float32_on_a_gpu(input)
        return operator(other, input)
    swapped.__doc__ = f"``other {symbol} input``."
    swapped.__name__ = swapped.__qualname__ = name
    swapped.__module__ = sys._getframe(1).f_globals["__name__"]
    op, kinds, weak, whole, road = operator.known
    entered = entered_element(swapped, op, kinds, weak, whole, road, swapped=True)
    public("", method=f"__{name}__", deferred=True)(entered)


def elementwise(name: str, inputs: str, expr: str, doc: str, *, namespace: str = "framework",
                method: bool | str = True, inplace: bool | None = None, alias: str = "",
                **record: Any) -> Any:
    """Make a record of one or two inputs without settings, and its public function.

    doc: one line and a runnable example. inplace: also ``name_`` (default: where the result has the
    input's dtype). The other arguments are those of ``Elementwise``.
    """
    op = Elementwise(name, inputs, expr, **record)
    function = (unary if len(op.inputs) == 1 else binary)(op)
    if len(op.inputs) == 2 and isinstance(method, str) and "__" in method:
        function.operator = operator = binary(op, operator=True)  # type: ignore[attr-defined]
        operator.__name__ = operator.__qualname__ = name
    summary, _, example = doc.partition("\n")
    takes = {"float": "floating; integers become the default float dtype",
             "integer": "integer or bool", "bool": "any; the result is bool"}
    formula = expr
    for own, shown in zip(op.inputs, op.arguments):
        formula = re.sub(rf"\b{own}\b", shown, formula)
    shapes, fails = "that of the input", ""
    if len(op.inputs) > 1:
        shapes = f"{' and '.join(op.arguments)} broadcast to the result"
        fails = " Raises ShapeError if they do not broadcast."
    function.__doc__ = (
        f"{summary}\n\n    Formula: ``{formula}`` on each element. Shapes: {shapes}.{fails}\n"
        f"    Dtypes: {takes.get(op.result, 'any, promoted to a common one')}.\n\n{example}")
    function.__name__ = function.__qualname__ = name
    function.__module__ = sys._getframe(1).f_globals["__name__"]  # the room, for readers and doctests
    function.op = op  # type: ignore[attr-defined]
    can = op.result != "bool" if inplace is None else inplace
    methods = f"{name} {method}" if isinstance(method, str) else method
    also = "" if not namespace or op.arguments[1:] in ((), ("other",)) else f"{op.arguments[1]}=other"
    return public(namespace, method=methods, inplace=can and bool(method), op=op, alias=alias,
                  also=also)(function)
