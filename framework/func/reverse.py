"""Transforms by reverse mode: gradients, products with the transposed Jacobian, Jacobians by rows."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ..autograd.mode import enable_grad, state
from ..creation import zeros
from ..errors import ShapeError
from ..ops.shape.join import cat, stack
from ..tensor import Tensor
from .batch import pulled, units
from .core import Chosen, Frame, check_real, filled, matching, one_at, tensors_of, with_aux, zeros_for
from .tree import mapped

Argnums = int | tuple[int, ...]


def grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of ``func``, which returns one tensor of one element.

    argnums: with respect to which positional argument, or a tuple of them (then the result is a tuple);
    arguments may be nested tuples, lists and dicts of tensors. has_aux: ``func`` returns
    ``(output, aux)``, and the result is ``(gradient, aux)``. Nests, for derivatives of higher order.

    >>> fw.func.grad(fw.func.grad(lambda x: x ** 3))(fw.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found
    return run


def grad_and_value(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """A function that gives ``(gradient, value)`` of ``func``; with aux, ``(gradient, (value, aux))``.

    >>> fw.func.grad_and_value(lambda x: (x ** 2).sum())(fw.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        frame = Frame(state.recording)
        chosen = Chosen(args, argnums, "grad")
        with enable_grad():
            xs = frame.variables(chosen.leaves)
            y, aux = with_aux(func(*chosen.put(xs), **kwargs), has_aux, "grad")
            if not isinstance(y, Tensor):
                raise TypeError(f"grad: the function must return a Tensor, got {type(y).__name__}")
            if y.numel() != 1 or y.ndim:
                raise ShapeError(f"grad: the function must return one number, a tensor of no dimensions, got "
                                 f"shape {list(y.shape)}; reduce it, or use func.vjp or func.jacrev")
            check_real([y], "grad")
            again = frame.leads_outside([y])
            found = filled(frame.pull([y], xs, [one_at(y)], again), xs)
            result = chosen.spec.build([frame.settle(g) for g in found])
            value = frame.settle(y)
            return result, (value, mapped_aux(frame, aux)) if has_aux else value
    return run


def value_and_grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """``grad_and_value`` with the value first: ``(value, gradient)``.

    >>> fw.func.value_and_grad(lambda x: (x ** 2).sum())(fw.tensor([1.0, 2.0]))
    (tensor(5.), tensor([2., 4.]))
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return value, found
    return run


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """``(func(*primals), f)``, where ``f(cotangents)`` gives their product with the Jacobian.

    ``f`` takes what is built like the output and gives a tuple, one entry per primal; it may be called
    again. has_aux: ``func`` returns ``(output, aux)``, and aux comes third.

    >>> y, pull = fw.func.vjp(lambda x: x ** 2, fw.tensor([1.0, 2.0]))
    >>> pull(fw.ones(2))
    (tensor([2., 4.]),)
    """
    frame = Frame(state.recording)
    leaves, spec = tensors_of(primals, "vjp", "primals")
    with enable_grad():
        xs = frame.variables(leaves)
        out, aux = with_aux(func(*spec.build(xs)), has_aux, "vjp")
    ys, out_spec = tensors_of(out, "vjp", "the output", differentiable=False)
    outside = frame.leads_outside(ys)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        gs = matching(cotangents, ys, out_spec, "vjp", "cotangents", "the output")
        again = state.recording and (outside or any(g.requires_grad for g in gs))
        with enable_grad():
            found = frame.pull(ys, xs, gs, again if create_graph is None else create_graph)
            return spec.build([frame.settle(g) if create_graph is None else g for g in filled(found, xs)])

    value = out_spec.build([frame.settle(y) for y in ys])
    return (value, pull, mapped_aux(frame, aux)) if has_aux else (value, pull)


def linearize(func: Callable, *primals: Any) -> tuple:
    """``(func(*primals), f)``, where ``f(*tangents)`` gives the product of the Jacobian with them.

    ``func`` runs once: its reverse derivative is linear in the cotangent, and ``f`` differentiates that.

    >>> y, push = fw.func.linearize(lambda x: x ** 2, fw.tensor([1.0, 2.0]))
    >>> push(fw.tensor([1.0, 0.0]))
    tensor([2., 0.])
    """
    frame = Frame(state.recording)
    leaves, spec = tensors_of(primals, "linearize", "primals")
    with enable_grad():
        xs = frame.variables(leaves)
        ys, out_spec = tensors_of(func(*spec.build(xs)), "linearize", "the output")
        us = frame.variables([zeros_for(y) for y in ys])
        pulled = frame.pull(ys, xs, us, True)
    outside = frame.leads_outside(ys)

    def push(*tangents: Any) -> Any:
        ts = matching(tangents, leaves, spec, "linearize", "tangents", "the primals")
        again = state.recording and (outside or any(t.requires_grad for t in ts))
        pairs = [(g, t) for g, t in zip(pulled, ts) if g is not None]
        with enable_grad():
            found = frame.pull([g for g, _ in pairs], us, [t for _, t in pairs], again)
            return out_spec.build([frame.settle(t) for t in filled(found, ys)])

    return out_spec.build([frame.settle(y) for y in ys]), push


def jacrev(func: Callable, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable:
    """A function that gives the Jacobian of ``func``, by reverse mode: one backward for all output elements.

    For each output y of ``func`` and each input x at ``argnums`` a tensor of shape ``y.shape + x.shape``,
    nested as the outputs and inside as the inputs. chunk_size: how many rows at a time (default: all of an
    output); ``_preallocate_and_copy`` changes nothing. Nests.

    >>> fw.func.jacrev(lambda x: x ** 2)(fw.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        frame = Frame(state.recording)
        chosen = Chosen(args, argnums, "jacrev")
        with enable_grad():
            xs = frame.variables(chosen.leaves)
            out, aux = with_aux(func(*chosen.put(xs), **kwargs), has_aux, "jacrev")
            ys, out_spec = tensors_of(out, "jacrev", "the output", differentiable=False)
            check_real(ys, "jacrev")
            again = frame.leads_outside(ys)
            blocks = [chosen.spec.build([frame.settle(block)
                                         for block in rows(frame, y, xs, again, chunk_size)])
                      for y in ys]
            result = out_spec.build(blocks)
            return (result, mapped_aux(frame, aux)) if has_aux else result
    return run


def rows(frame: Frame, y: Tensor, xs: Sequence[Tensor], again: bool,
         chunk_size: int | None = None) -> list[Tensor]:
    """Per variable the Jacobian of one output, of shape ``y.shape + x.shape``."""
    count = y.numel()
    if not count:
        return [zeros(y.shape + x.shape, dtype=x.dtype, device=x.device) for x in xs]
    if y.is_cuda or any(x.is_cuda for x in xs):
        found = [filled(frame.pull([y], xs, [one_at(y, place)], again), xs)
                 for place in np.ndindex(*y.shape)]
        blocks = [stack([row[i] for row in found]) for i in range(len(xs))]
    else:
        parts = [pulled(lambda g: filled(frame.pull([y], xs, [g], again), xs), part)
                 for part in units(y, chunk_size or count)]
        blocks = [part[0] if len(parts) == 1 else cat(part) for part in zip(*parts)]
    return [block.reshape(y.shape + x.shape) for block, x in zip(blocks, xs)]  # type: ignore[attr-defined]


def mapped_aux(frame: Frame, aux: Any) -> Any:
    """The auxiliary value, with its tensors as results."""
    return mapped(lambda leaf: frame.settle(leaf) if isinstance(leaf, Tensor) else leaf, aux)
