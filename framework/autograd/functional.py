"""Products with Jacobians and Hessians of functions of tensors, and those matrices themselves.

``func`` takes tensors and returns a tensor or a tuple of them. ``inputs`` is a tensor or a tuple; where
it is a tensor, so are the results that belong to inputs. Without ``create_graph`` the results are
outside the graph; with it they can be differentiated with respect to ``inputs``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends import move
from ..errors import AutogradError, ShapeError
from ..tensor import Tensor, wrap
from .engine import grad
from .mode import enable_grad


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """``func(*inputs)`` and ``v @ J``: the product of a vector with the Jacobian.

    v: like the outputs; may be left out for one output of one element.

    >>> fw.autograd.functional.vjp(lambda x: x ** 2, fw.tensor([1.0, 2.0]), fw.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        xs, ys, one = _call("vjp", func, inputs, create_graph, strict)
        vs = _vectors("vjp", v, ys, "the outputs")
        found = _grads("vjp", ys, xs, vs, create_graph, strict)
    return _outputs(ys, create_graph), _give(found, one, create_graph)


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """``func(*inputs)`` and ``J @ v``: the product of the Jacobian with a vector.

    v: like the inputs; may be left out for one input of one element. Computed by two reverse passes:
    u @ J is linear in u, and its derivative with respect to u along v is J @ v.

    >>> fw.autograd.functional.jvp(lambda x: x ** 2, fw.tensor([1.0, 2.0]), fw.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        xs, ys, _ = _call("jvp", func, inputs, create_graph, strict)
        vs = _vectors("jvp", v, xs, "the inputs")
        us = [_filled(y, 0.0).requires_grad_() for y in ys]
        pulled = _grads("jvp", ys, xs, us, True, strict)
        found = _grads("jvp", pulled, us, vs, create_graph, strict)
    return _outputs(ys, create_graph), _give(found, ys.alone, create_graph)


def jacobian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """The Jacobian: for output y and input x a tensor of shape ``y.shape + x.shape``.

    For several outputs or inputs a tuple (outputs outside, inputs inside). ``vectorize`` and
    ``strategy`` are accepted and change nothing: rows are computed one by one, in reverse.

    >>> fw.autograd.functional.jacobian(lambda x: x ** 2, fw.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy must be 'reverse-mode' or 'forward-mode', got {strategy!r}")
    with enable_grad():
        xs, ys, one = _call("jacobian", func, inputs, create_graph, strict)
        rows = []
        for y in ys:
            columns = _rows_of(y, xs, create_graph, strict)
            rows.append(_give(columns, one, create_graph))
    return rows[0] if ys.alone else tuple(rows)


def hessian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """The Hessian of a function with one output of one element: shape ``x.shape + x.shape``.

    For several inputs a tuple of tuples.

    >>> fw.autograd.functional.hessian(lambda x: (x ** 3).sum(), fw.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    def gradient(*xs: Tensor) -> Any:
        ys, _ = _tuple(func(*xs), "hessian", "the outputs of func")
        _one_element("hessian", ys)
        found = _grads("hessian", ys, list(xs), [_filled(ys[0], 1.0)], True, strict)
        return found[0] if one else tuple(found)

    one = isinstance(inputs, Tensor)
    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """``func(*inputs)`` and ``v @ H``, for a function with one output of one element.

    >>> fw.autograd.functional.vhp(lambda x: (x ** 3).sum(), fw.tensor([1.0, 2.0]), fw.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        xs, ys, one = _call("vhp", func, inputs, create_graph, strict)
        _one_element("vhp", ys)
        vs = _vectors("vhp", v, xs, "the inputs")
        first = _grads("vhp", ys, xs, [_filled(ys[0], 1.0)], True, strict)
        found = _grads("vhp", first, xs, vs, create_graph, strict)
    return _outputs(ys, create_graph), _give(found, one, create_graph)


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """``func(*inputs)`` and ``H @ v``, for a function with one output of one element.

    The Hessian is symmetric, so this is ``vhp``, which needs one pass less than its own definition.

    >>> fw.autograd.functional.hvp(lambda x: (x ** 3).sum(), fw.tensor([1.0, 2.0]), fw.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return vhp(func, inputs, v, create_graph, strict)


def _tuple(value: Any, op: str, what: str) -> tuple[list[Tensor], bool]:
    """Tensors as a list, and whether there was one outside a tuple."""
    one = isinstance(value, Tensor)
    items = [value] if one else value
    if not isinstance(items, (tuple, list)) or not all(isinstance(t, Tensor) for t in items):
        raise TypeError(f"{op}: {what} must be a Tensor or a tuple of Tensors, got {type(value).__name__}")
    return list(items), one


class _Result(list):
    """The outputs of a call, which remember whether there was a tuple around them."""

    alone = False


def _call(op: str, func: Callable, inputs: Any, create_graph: bool, strict: bool) -> tuple:
    given, one = _tuple(inputs, op, "inputs")
    xs = [_own(t, create_graph) for t in given]
    out, alone = _tuple(func(*xs), op, "the outputs of func")
    ys = _Result(out)
    ys.alone = alone
    for i, y in enumerate(ys):
        if strict and not y.requires_grad:
            raise AutogradError(f"{op}: output {i} of func does not depend on the inputs, which strict=True "
                                f"does not allow")
    return xs, ys, one


def _own(t: Tensor, create_graph: bool) -> Tensor:
    """The input at a place of its own in the graph, on top of its old one if that is to be reached."""
    if create_graph and t.requires_grad:
        return t.view(t.shape)  # type: ignore[attr-defined]
    return wrap(t._array).requires_grad_()


def _outputs(ys: Any, create_graph: bool) -> Any:
    out = [y if create_graph else y.detach() for y in ys]
    return out[0] if ys.alone else tuple(out)


def _give(found: list[Tensor], one: bool, create_graph: bool) -> Any:
    out = [t if create_graph else t.detach() for t in found]
    return out[0] if one else tuple(out)


def _filled(t: Tensor, value: float) -> Tensor:
    return wrap(move(np.full(t.shape, value, t.dtype.numpy), t.device))


def _one_element(op: str, ys: list[Tensor]) -> None:
    if len(ys) != 1 or ys[0].numel() != 1:
        raise ShapeError(f"{op}: func must return one tensor of one element, got shapes "
                         f"{[list(y.shape) for y in ys]}")


def _vectors(op: str, v: Any, like: list[Tensor], what: str) -> list[Tensor]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise AutogradError(f"{op}: v may be left out only if {what} are one tensor of one element, got "
                                f"shapes {[list(t.shape) for t in like]}")
        return [_filled(like[0], 1.0)]
    vs, _ = _tuple(v, op, "v")
    if [t.shape for t in vs] != [t.shape for t in like]:
        raise ShapeError(f"{op}: v has shapes {[list(t.shape) for t in vs]}, {what} have "
                         f"{[list(t.shape) for t in like]}")
    return vs


def _grads(op: str, ys: list, xs: list, vs: list, create_graph: bool, strict: bool) -> list[Tensor]:
    """The gradients, zeros where there is no path (an error under ``strict``)."""
    pairs = [(y, v) for y, v in zip(ys, vs) if y.requires_grad]
    found: Any = [None] * len(xs)
    if pairs:
        found = grad([y for y, _ in pairs], xs, [v for _, v in pairs], retain_graph=True,
                     create_graph=create_graph, allow_unused=True)
    for i, g in enumerate(found):
        if g is None and strict:
            raise AutogradError(f"{op}: the result does not depend on input {i}, which strict=True does not "
                                f"allow")
    return [_filled(x, 0.0) if g is None else g for x, g in zip(xs, found)]


def _rows_of(y: Tensor, xs: list[Tensor], create_graph: bool, strict: bool) -> list[Tensor]:
    """Per input, the gradients of every element of ``y``, put together by writing into zeros."""
    shapes = [y.shape + x.shape for x in xs]
    if not create_graph:
        out = [_filled(x, 0.0).expand(s).contiguous() for x, s in zip(xs, shapes)]  # type: ignore[attr-defined]
        for place in np.ndindex(*y.shape):
            for t, g in zip(out, _grads("jacobian", [y], xs, [_one_at(y, place)], False, strict)):
                t._array[place] = g._array
        return out
    rows = [_grads("jacobian", [y], xs, [_one_at(y, place)], True, strict) for place in np.ndindex(*y.shape)]
    return [_stacked([row[k] for row in rows], s, x) for k, (x, s) in enumerate(zip(xs, shapes))]


def _one_at(y: Tensor, place: tuple) -> Tensor:
    array = np.zeros(y.shape, y.dtype.numpy)
    array[place] = 1.0
    return wrap(move(array, y.device))


def _stacked(rows: list[Tensor], shape: tuple[int, ...], x: Tensor) -> Tensor:
    """Rows as one tensor, recorded: each is spread over a one-hot column and all are added."""
    total = wrap(move(np.zeros((len(rows), x.numel()), x.dtype.numpy), x.device))
    for i, row in enumerate(rows):
        column = np.zeros((len(rows), 1), x.dtype.numpy)
        column[i] = 1.0
        total = total + wrap(move(column, x.device)) * row.reshape(1, x.numel())  # type: ignore[attr-defined]
    return total.reshape(shape)  # type: ignore[attr-defined]
