"""Transforms by forward mode: products with the Jacobian, Jacobians by columns, second derivatives."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..autograd.forward import close_level, open_level, tangent_at
from ..autograd.forward_ad import attach
from ..creation import zeros
from ..errors import AutogradError
from ..ops.record.batched import Level
from ..ops.shape.join import stack
from ..tensor import Tensor, wrap
from .batch import Draws, batch_in, left, pulled, units
from .core import Chosen, filled, matching, one_at, tensors_of, with_aux, zeros_for
from .reverse import Argnums, grad, jacrev

ONE_RUN = 4096  # columns of all inputs that are pushed together: tangents of as many elements each


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """``(func(*primals), J @ tangents)`` in one forward pass; with aux, aux comes third.

    primals, tangents: tuples of as many entries, built and shaped alike. strict: an output that does not
    depend on the primals is an error (AutogradError), not a tangent of zeros. Nests.

    >>> fw.func.jvp(lambda x: x ** 2, (fw.tensor([1.0, 2.0]),), (fw.tensor([1.0, 0.0]),))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        bad = tangents if isinstance(primals, (tuple, list)) else primals
        raise TypeError(f"jvp: primals and tangents must be tuples, one entry per argument of the function, "
                        f"got {type(bad).__name__}")
    xs, spec = tensors_of(tuple(primals), "jvp", "primals")
    ts = matching(tuple(tangents), xs, spec, "jvp", "tangents", "the primals")
    level = open_level()
    try:
        duals = [attach(x, t, level, "jvp") for x, t in zip(xs, ts)]
        out, aux = with_aux(func(*spec.build(duals)), has_aux, "jvp")
        ys, out_spec = tensors_of(out, "jvp", "the output", differentiable=False)
        found = [tangent_at(y._node, level) for y in ys]
    finally:
        close_level(level)
    for i, t in enumerate(found):
        if t is None and strict:
            raise AutogradError(f"jvp: output {i} of the function does not depend on the primals, which "
                                f"strict=True does not allow")
    moved = out_spec.build(filled(found, ys))
    return (out, moved, aux) if has_aux else (out, moved)


def jacfwd(func: Callable, argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable:
    """A function that gives the Jacobian of ``func``, by forward mode, all columns at once.

    The result is that of ``jacrev``; this is the cheaper way where there are fewer inputs than outputs.
    randomness: what ``func`` may do with the random generator: "error" (nothing), "same" (all columns
    see the same numbers) or "different" (one run per column). Nests.

    >>> fw.func.jacfwd(lambda x: x ** 2)(fw.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(args, argnums, "jacfwd")
        draws = Draws(randomness, "jacfwd")
        found: list = []

        def listed(*leaves: Tensor) -> tuple:
            with draws.once():
                out, aux = with_aux(func(*chosen.put(leaves), **kwargs), has_aux, "jacfwd")
            ys, spec = tensors_of(out, "jacfwd", "the output", differentiable=False)
            found[:] = [spec, aux]
            return tuple(ys)

        blocks = columns(listed, chosen.leaves, one_by_one=randomness == "different")
        spec, aux = found
        result = spec.build([chosen.spec.build(parts) for parts in zip(*blocks)])
        return (result, aux) if has_aux else result
    return run


def columns(listed: Callable, xs: list[Tensor], strict: bool = False,
            one_by_one: bool = False) -> list[list[Tensor]]:
    """Per input, the Jacobian of each output: of a function of tensors that gives a tuple of them.

    One run for the columns of all inputs, or of one where they are many; one_by_one: a run per column, which
    draw numbers of their own.
    """
    sizes = [x.numel() for x in xs]
    if 0 < sum(sizes) <= ONE_RUN and len(xs) > 1 and not (strict or one_by_one or any(t.is_cuda for t in xs)):
        return _columns_at_once(listed, xs, sizes)
    still = [zeros_for(x) for x in xs]
    blocks = []
    for i, x in enumerate(xs):
        def pushed(t: Tensor) -> tuple:
            return jvp(listed, xs, [*still[:i], t, *still[i + 1:]], strict=strict)[1]

        if not x.numel():
            blocks.append([zeros(y.shape + x.shape, dtype=y.dtype, device=y.device) for y in listed(*xs)])
            continue
        if one_by_one or any(t.is_cuda for t in xs):
            found = [pushed(one_at(x, place)) for place in np.ndindex(*x.shape)]
            side = [stack(parts, -1) for parts in zip(*found)]
        else:
            (whole,) = units(x, x.numel())
            side = [t.movedim(0, -1) for t in pulled(pushed, whole)]  # type: ignore[attr-defined]
        blocks.append([t.reshape(t.shape[:-1] + x.shape) for t in side])  # type: ignore[attr-defined]
    return blocks


def _columns_at_once(listed: Callable, xs: list[Tensor], sizes: list[int]) -> list[list[Tensor]]:
    """``columns`` with one run for all inputs."""
    ends = np.cumsum(sizes)
    with Level(int(ends[-1])) as level:
        tangents = []
        for x, n, end in zip(xs, sizes, ends):
            units = np.zeros((level.size, n), x.dtype.numpy)
            units[end - n:end] = np.eye(n)
            tangents.append(batch_in.run(wrap(units.reshape((level.size, *x.shape))), level=level))
        whole = left(level, list(jvp(listed, xs, tangents)[1]))
    return [[t[end - n:end].movedim(0, -1).reshape(t.shape[1:] + x.shape) for t in whole]
            for x, n, end in zip(xs, sizes, ends.tolist())]


def hessian(func: Callable, argnums: Argnums = 0) -> Callable:
    """A function that gives the second derivatives of ``func``: ``jacfwd(jacrev(func))``.

    >>> fw.func.hessian(lambda x: (x ** 3).sum())(fw.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def hvp(func: Callable, primals: tuple, tangents: tuple) -> tuple:
    """``(gradient, H @ tangents)`` of a function that returns one number: forward over reverse.

    The Hessian is never built; the cost is a few times that of ``func``. Both results are built like
    ``primals``.

    >>> fw.func.hvp(lambda x: (x ** 3).sum(), (fw.tensor([1.0, 2.0]),), (fw.ones(2),))
    ((tensor([ 3., 12.]),), (tensor([ 6., 12.]),))
    """
    return jvp(grad(func, tuple(range(len(primals)))), primals, tangents)
