"""Products with Jacobians and Hessians of functions of tensors, and those matrices themselves.

``func`` takes tensors and returns a tensor or a tuple of them. ``inputs`` is a tensor or a tuple; where
it is a tensor, so are the results that belong to inputs. Without ``create_graph`` the results are
outside the graph; with it they can be differentiated with respect to ``inputs``. ``framework.func`` has
the same as functions of functions, which nest.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ..config.listing import own as _own
from ..creation import ones
from ..errors import AutogradError, ShapeError, kind_of
from ..func.core import Frame, check_real, filled, zeros_for
from ..func.forward import columns
from ..func.reverse import rows
from ..tensor import Tensor
from .mode import enable_grad


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """``func(*inputs)`` and ``v @ J``: the product of a vector with the Jacobian.

    v: like the outputs; may be left out for one output of one element.

    >>> fw.autograd.functional.vjp(lambda x: x ** 2, fw.tensor([1.0, 2.0]), fw.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        call = _Call("vjp", func, inputs, create_graph, strict)
        vs = _vectors("vjp", v, call.ys, "the outputs")
        found = call.pull(call.ys, call.xs, vs, create_graph)
        return call.outputs(), call.give(found, call.one)


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """``func(*inputs)`` and ``J @ v``: the product of the Jacobian with a vector.

    v: like the inputs; may be left out for one input of one element. Computed by two reverse passes, so
    that it needs no more than gradients: u @ J is linear in u, and its derivative with respect to u along v
    is J @ v. ``func.jvp`` is the one forward pass.

    >>> fw.autograd.functional.jvp(lambda x: x ** 2, fw.tensor([1.0, 2.0]), fw.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        call = _Call("jvp", func, inputs, create_graph, strict)
        vs = _vectors("jvp", v, call.xs, "the inputs")
        us = call.frame.variables([zeros_for(y) for y in call.ys])
        pulled = call.pull(call.ys, call.xs, us, True)
        found = call.pull(pulled, us, vs, create_graph)
        return call.outputs(), call.give(found, call.alone)


def jacobian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """The Jacobian: for output y and input x a tensor of shape ``y.shape + x.shape``.

    For several outputs or inputs a tuple (outputs outside, inputs inside). strategy: "reverse-mode" runs
    ``func`` once and goes backward for each element of the outputs; "forward-mode" runs it once for each
    element of the inputs, with a tangent. ``vectorize`` changes nothing: rows or columns are computed one
    by one.

    >>> fw.autograd.functional.jacobian(lambda x: x ** 2, fw.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy must be 'reverse-mode' or 'forward-mode', got {strategy!r}")
    if strategy == "forward-mode":
        return _forward(func, inputs, create_graph, strict)
    with enable_grad():
        call = _Call("jacobian", func, inputs, create_graph, strict)
        check_real(call.ys, "jacobian")
        if strict:
            for y in call.ys:
                call.pull([y], call.xs, [zeros_for(y)], create_graph)
        blocks = [call.give(rows(call.frame, y, call.xs, create_graph), call.one) for y in call.ys]
    return blocks[0] if call.alone else tuple(blocks)


def _forward(func: Callable, inputs: Any, create_graph: bool, strict: bool) -> Any:
    given, one = _tuple(inputs, "jacobian", "inputs")
    frame = Frame(create_graph)
    with enable_grad():
        xs = frame.variables(given) if create_graph else [x.detach() for x in given]

        alone: list[bool] = []

        def listed(*args: Tensor) -> tuple:
            ys, one = _tuple(func(*args), "jacobian", "the outputs of func")
            alone.append(one)
            return tuple(ys)

        by_input = columns(listed, xs, strict)
        blocks = [tuple([frame.settle(block) for block in blocks]) for blocks in zip(*by_input)]
    shown = [block[0] if one else block for block in blocks]
    return shown[0] if alone[0] else tuple(shown)


def hessian(func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """The Hessian of a function with one output of one element: shape ``x.shape + x.shape``.

    For several inputs a tuple of tuples. The other arguments are those of ``jacobian``, for the Jacobian of
    the gradient.

    >>> fw.autograd.functional.hessian(lambda x: (x ** 3).sum(), fw.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    def gradient(*xs: Tensor) -> Any:
        call = _Call("hessian", func, xs, True, strict)
        _one_element("hessian", call.ys)
        return call.give(call.pull(call.ys, call.xs, [ones_for(call.ys[0])], True), one)

    one = isinstance(inputs, Tensor)
    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """``func(*inputs)`` and ``v @ H``, for a function with one output of one element.

    >>> fw.autograd.functional.vhp(lambda x: (x ** 3).sum(), fw.tensor([1.0, 2.0]), fw.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        call = _Call("vhp", func, inputs, create_graph, strict)
        _one_element("vhp", call.ys)
        vs = _vectors("vhp", v, call.xs, "the inputs")
        first = call.pull(call.ys, call.xs, [ones_for(call.ys[0])], True)
        found = call.pull(first, call.xs, vs, create_graph)
        return call.outputs(), call.give(found, call.one)


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False,
        strict: bool = False) -> tuple:
    """``func(*inputs)`` and ``H @ v``, for a function with one output of one element.

    The Hessian is symmetric, so this is ``vhp``, which needs one pass less than its own definition.

    >>> fw.autograd.functional.hvp(lambda x: (x ** 3).sum(), fw.tensor([1.0, 2.0]), fw.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return vhp(func, inputs, v, create_graph, strict)


class _Call:
    """One call of the user's function: its variables, its outputs, and how results are given back."""

    def __init__(self, op: str, func: Callable, inputs: Any, create_graph: bool, strict: bool) -> None:
        self.op, self.strict = op, strict
        self.frame = Frame(create_graph)
        given, self.one = _tuple(inputs, op, "inputs")
        self.xs = self.frame.variables(given)
        self.ys, self.alone = _tuple(func(*self.xs), op, "the outputs of func")
        for i, y in enumerate(self.ys):
            if strict and not y.requires_grad:
                raise AutogradError(f"{op}: output {i} of func does not depend on the inputs, which "
                                    f"strict=True does not allow")

    def pull(self, ys: Sequence[Tensor], xs: Sequence[Tensor], vs: Sequence[Tensor],
             again: bool) -> list[Tensor]:
        """The gradients, zeros where there is no path (an error under ``strict``)."""
        found = self.frame.pull(ys, xs, vs, again)
        for i, g in enumerate(found):
            if g is None and self.strict:
                raise AutogradError(f"{self.op}: the result does not depend on input {i}, which strict=True "
                                    f"does not allow")
        return filled(found, xs)

    def outputs(self) -> Any:
        """What func returned, as a result."""
        return self.give(self.ys, self.alone)

    def give(self, found: Sequence[Tensor], one: bool) -> Any:
        """Results: one tensor, or a tuple."""
        out = [self.frame.settle(t) for t in found]
        return out[0] if one else tuple(out)


def ones_for(t: Tensor) -> Tensor:
    """Ones of the tensor's shape, dtype and device."""
    return ones(t.shape, dtype=t.dtype, device=t.device)


def _tuple(value: Any, op: str, what: str) -> tuple[list[Tensor], bool]:
    """Tensors as a list, and whether there was one outside a tuple."""
    one = isinstance(value, Tensor)
    items = [value] if one else value
    if not isinstance(items, (tuple, list)) or not all(isinstance(t, Tensor) for t in items):
        raise TypeError(f"{op}: {what} must be a Tensor or a tuple of Tensors, got {kind_of(value)}")
    return list(items), one


def _one_element(op: str, ys: list[Tensor]) -> None:
    if len(ys) != 1 or ys[0].numel() != 1:
        raise ShapeError(f"{op}: func must return one tensor of one element, got shapes "
                         f"{[list(y.shape) for y in ys]}")


def _vectors(op: str, v: Any, like: list[Tensor], what: str) -> list[Tensor]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise AutogradError(f"{op}: v may be left out only if {what} are one tensor of one element, got "
                                f"shapes {[list(t.shape) for t in like]}")
        return [ones_for(like[0])]
    vs, _ = _tuple(v, op, "v")
    if [t.shape for t in vs] != [t.shape for t in like]:
        raise ShapeError(f"{op}: v has shapes {[list(t.shape) for t in vs]}, {what} have "
                         f"{[list(t.shape) for t in like]}")
    return vs


__dir__ = _own(globals())
