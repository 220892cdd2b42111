"""The sum or mean of an elementwise expression as one operation: the elements themselves are never stored.

``Total(_mse)`` is ``sum(mse(x, target)) / count``, with ``count`` 1 for the sum and n for the mean. Its
derivative is that of the expression with ``g / count`` for every element, again one pass.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..language.cuda_fold import DeviceFold
from ..language.elementwise import Elementwise
from ..language.expression import ExpressionRule, array_function
from ..language.program import folding, native_kernel
from ..record.batched import aligned, call, on_tensors
from ..record.op import Meta, Op, Rule
from ..shape.broadcast import broadcast_shape
from .sums import in_dtype, sum_op, wide_sum


class TotalRule(Rule):
    """The rule of an elementwise op for a gradient that is one number."""

    __slots__ = ("rule",)

    def __init__(self, rule: ExpressionRule) -> None:
        assert "out" not in rule.names, "the elements of the result are not kept"
        self.rule = rule
        self.names = (*rule.names, "count")

    def on(self, g: Any) -> Callable:
        each = self.rule.on(g)

        def function(g: Any, *values: Any) -> Any:
            return each(g if values[-1] == 1 else g / values[-1], *values[:-1])
        return function


@on_tensors()
def batch_total(op: "Total", size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: the expression, and its sum behind the batch."""
    settings = dict(settings)
    count = settings.pop("count")
    each = call(op.op, *aligned(arrays, batched), **settings)
    total = call(sum_op, each, dims=tuple(range(1, each.ndim)), keepdim=False)
    return total / count if count != 1 else total


class Total(Op):
    """The record of ``sum(expression) / count`` for an elementwise op whose rules all use their input.

    Its inputs are floating and have one shape.
    """

    def __init__(self, op: Elementwise) -> None:
        assert op.rules is not None
        self.op = op
        self._fold: Callable | None = None
        rules = {name: rule for name, rule in zip(op.inputs, op.rules) if rule is not None}
        super().__init__(f"{op.name}_total", " ".join(op.inputs), kernel=self._plain, vjp=rules, onnx="total",
                         infer=self._shape, arguments=" ".join(op.arguments), cpu=self._cpu,
                         batch=batch_total, device=self._on_device, rules_round=False)
        self._device_fold = DeviceFold(op.expr, (*op.inputs, *op.settings))

    def _rule(self, function: Any) -> Any:
        return TotalRule(function)

    def _plain(self, xp: Any, *arrays: Any, count: int, **settings: Any) -> Any:
        losses = self.op._kernel(xp, *arrays, **settings)
        return in_dtype(wide_sum(losses, tuple(range(losses.ndim)), False) / count, losses.dtype)

    def _cpu(self, *arrays: Any, count: int, **settings: Any) -> Any:
        if self._fold is None:
            parameters = (*self.op.inputs, *self.op.settings)
            plain = array_function(self.op.expr, self.op._parameters, np)
            self._fold = folding(native_kernel(self.op.expr, parameters, plain, self.op.settings))
        dims = tuple(range(arrays[0].ndim))
        of_all = count == arrays[0].size and count > 0
        total = self._fold("mean" if of_all else "sum", dims, False, 0, *arrays, **settings)
        if total is NotImplemented:
            return self._plain(np, *arrays, count=count, **settings)
        return total if of_all or count == 1 else total / count

    def _on_device(self, *arrays: Any, count: int, **settings: Any) -> Any:
        every, of_all = tuple(range(arrays[0].ndim)), count == arrays[0].size
        if not every or not (of_all or count == 1):
            return NotImplemented
        return self._device_fold("mean" if of_all else "sum", every, (), *arrays,
                                 *[settings[name] for name in self.op.settings])

    def _shape(self, *inputs: Meta, count: int, **settings: Any) -> Meta:
        broadcast_shape([x.shape for x in inputs], self.op.name)
        return Meta((), inputs[0].dtype)
