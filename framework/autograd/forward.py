"""Forward mode through one record: push tangents of its inputs to its output, by its ``jvp`` word."""

from collections.abc import Sequence
from typing import Any

from ..backends import array_module
from ..tensor import Tensor, wrap
from .engine import grad
from .mode import enable_grad


def push(op: Any, inputs: Sequence, tangents: Sequence, settings: dict) -> Any:
    """The tangent of ``op.run(*inputs, **settings)``: a tensor, or a tuple for several outputs.

    tangents: per input a tensor of its shape, or None for zero. By the record's word: "linear" runs the
    record on the tangents; "multilinear" sums the runs with one input replaced by its tangent;
    "symmetric" (the Jacobian equals its transpose) is the reverse rule; without a word the reverse rule
    is transposed by differentiating it.
    """
    if op.jvp == "linear":
        return op.run(*[_tangent_of(x, t) for x, t in zip(inputs, tangents)], **settings)
    if op.jvp == "multilinear":
        terms = [op.run(*inputs[:i], t, *inputs[i + 1:], **settings)
                 for i, t in enumerate(tangents) if t is not None]
        return _sum(terms) if terms else _zeros(op.run(*inputs, **settings))
    if op.jvp == "symmetric":
        return _reverse(op, inputs, tangents, settings)
    return push_by_transpose(op, inputs, tangents, settings)


def push_by_transpose(op: Any, inputs: Sequence, tangents: Sequence, settings: dict) -> Any:
    """The tangent by differentiating the reverse rule with respect to its cotangent, where it is linear."""
    places = [i for i, t in enumerate(tangents) if t is not None]
    with enable_grad():
        own, xs = _fresh(inputs, places)
        outputs = op.run(*own, **settings)
        several = isinstance(outputs, tuple)
        results = []
        for y in outputs if several else (outputs,):
            if not y.requires_grad:
                results.append(_zeros(y))
                continue
            v = _zeros(y).requires_grad_()
            pulled = grad(y, xs, v, create_graph=True, allow_unused=True)
            pairs = [(g, tangents[i]) for g, i in zip(pulled, places) if g is not None and g.requires_grad]
            found = grad([g for g, _ in pairs], v, [t for _, t in pairs], create_graph=True,
                         allow_unused=True)[0] if pairs else None
            results.append(_zeros(y) if found is None else found)
    return tuple(results) if several else results[0]


def _reverse(op: Any, inputs: Sequence, tangents: Sequence, settings: dict) -> Tensor:
    places = [i for i, t in enumerate(tangents) if t is not None]
    if len(places) != 1:
        raise ValueError(f"{op.name}: the word 'symmetric' is for ops of one differentiable input, "
                         f"got {len(places)} tangents")
    with enable_grad():
        own, xs = _fresh(inputs, places)
        y = op.run(*own, **settings)
        (found,) = grad(y, xs, tangents[places[0]], create_graph=True, allow_unused=True)
    return _zeros(y) if found is None else found


def _fresh(inputs: Sequence, places: list[int]) -> tuple[list, list]:
    """The inputs with those at ``places`` recorded: in their own graph, or as new leaves."""
    own = list(inputs)
    for i in places:
        if not own[i].requires_grad:
            own[i] = wrap(own[i]._array).requires_grad_()
    return own, [own[i] for i in places]


def _tangent_of(x: Any, t: Tensor | None) -> Any:
    if t is not None:
        return t
    if isinstance(x, Tensor):  # whole numbers and masks take no part: they choose, they are not added
        return _zeros(x) if x._array.dtype.kind in "fc" else x
    return 0.0 if isinstance(x, (int, float)) and not isinstance(x, bool) else x


def _zeros(y: Any) -> Any:
    if isinstance(y, tuple):
        return tuple([_zeros(part) for part in y])
    return wrap(array_module(y._array).zeros_like(y._array))


def _sum(terms: list) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = (tuple([a + b for a, b in zip(total, term)]) if isinstance(total, tuple)
                 else total + term)
    return total
