"""The derivative of a backward that is one kernel: its formula out of other ops, differentiated twice."""

from collections.abc import Callable
from typing import Any

from ...autograd.engine import grad
from ...autograd.mode import enable_grad
from ...tensor import Tensor, as_tensor, wrap
from ..shape.view import take_shape
from .inplace import zero_op


def _variable(x: Any) -> Any:
    """A place of its own for a value, on top of where it stands in the graph."""
    if not isinstance(x, Tensor) or x._node is None:
        return None if x is None else wrap(as_tensor(x)._array).requires_grad_()  # type: ignore[attr-defined]
    if x.requires_grad:
        return take_shape(x, x.shape)
    return x + zero_op.run(x).requires_grad_()  # it has tangents


def twice(steps: Callable, k: list, gs: tuple, inputs: tuple, wanted: tuple, needs: tuple,
          **settings: Any) -> list:
    """The derivative of a sequence's backward: of what takes the gradients ``gs`` of the outputs, and the
    inputs, to the gradients of the ``wanted`` inputs, whose cotangents are ``k``.

    The steps anew, differentiated twice; None for what backward was given besides, which follows from the
    inputs.
    """
    asked = [i for i, a in enumerate(k) if a is not None and wanted[i]]
    live = any(isinstance(a, Tensor) for a in (*k, *gs, *inputs))
    with enable_grad():
        seeds, variables = [_variable(g) for g in gs], [_variable(a) for a in inputs]
        outs = steps(*variables, **settings)
        pairs = [(y, g) for y, g in zip(outs, seeds) if g is not None]
        firsts = grad([y for y, _ in pairs], [variables[i] for i in asked], [g for _, g in pairs],
                      create_graph=True, allow_unused=True)
    ends = [(f, as_tensor(k[i])) for f, i in zip(firsts, asked) if f is not None and f.requires_grad]
    places = [*seeds, *variables]
    leading = [i for i, need in enumerate(needs[:len(places)]) if need]
    out: list = [None] * len(needs)
    if ends and leading:
        found = grad([f for f, _ in ends], [places[i] for i in leading], [a for _, a in ends],
                     create_graph=live, allow_unused=True)
        for i, g in zip(leading, found):
            out[i] = g if live or g is None else g._array
    return out
