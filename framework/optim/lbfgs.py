"""L-BFGS: quasi-Newton steps from the last few changes of parameters and gradients.

Three pieces, usable alone: flat vectors over many parameters (``Flat``), the two-loop recursion
(``two_loop``) and the line search (``line_search.py``).
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np

from ..autograd.mode import enable_grad, no_grad
from ..backends import array_module, move
from ..dtypes import promote_types
from ..tensor import Tensor, counter_of, wrap
from .line_search import Point, strong_wolfe
from .optimizer import AT_LEAST_ZERO, Optimizer, cast_to


class Flat:
    """Many parameters seen as one vector, in their common dtype, on the device of the first."""

    def __init__(self, params: Sequence[Tensor]) -> None:
        self.params = list(params)
        self.device = params[0].device
        dtype = params[0].dtype
        for p in params[1:]:
            dtype = promote_types(dtype, p.dtype)
        self.dtype = dtype.numpy

    def _join(self, arrays: list) -> Any:
        pieces = [move(a, self.device).reshape(-1).astype(self.dtype) for a in arrays]
        return array_module(pieces[0]).concatenate(pieces)

    def values(self) -> Any:
        """A copy of the parameters as one vector."""
        return self._join([p._array for p in self.params])

    def grads(self) -> Any:
        """The gradients as one vector; zeros for a parameter that has none."""
        return self._join([array_module(p._array).zeros_like(p._array) if p.grad is None
                           else p.grad._array for p in self.params])

    def set(self, vector: Any) -> None:
        """Write a vector into the parameters; ``set(values())`` changes no bit."""
        start = 0
        for p in self.params:
            array = p._array
            piece = vector[start:start + array.size].reshape(array.shape)
            array[...] = move(piece.astype(array.dtype), p.device)
            start += array.size
            counter = counter_of(p)
            counter[0] += 1
            counter[1] = "LBFGS.step"


def two_loop(g: Any, steps: Sequence, changes: Sequence) -> Any:
    r"""The product ``-H g`` of the inverse Hessian that L-BFGS implies, without forming ``H``.

    g: gradient [n]. steps, changes: the last differences of parameters and of gradients, [n] each,
    oldest first. ``H`` starts from ``(s . y) / (y . y)`` of the newest pair, or 1 without pairs.
    Nocedal, Updating quasi-Newton matrices with limited storage, Mathematics of Computation, 1980.

    >>> from framework.optim.lbfgs import two_loop
    >>> s, y = np.array([1.0, 0.0]), np.array([4.0, 0.0])    # curvature 4 along the first axis
    >>> two_loop(np.array([4.0, 4.0]), [s], [y])
    array([-1., -1.])
    """
    d = -g
    weights = []
    for s, y in zip(reversed(steps), reversed(changes)):
        rho = 1.0 / float(y.dot(s))
        a = rho * float(s.dot(d))
        d -= a * y
        weights.append((rho, a))
    if steps:
        d *= float(steps[-1].dot(changes[-1])) / float(changes[-1].dot(changes[-1]))
    for s, y, (rho, a) in zip(steps, changes, reversed(weights)):
        d += (a - rho * float(y.dot(d))) * s
    return d


class LBFGS(Optimizer):
    r"""Limited-memory BFGS: each step minimises along ``-H g``, ``H`` built from the last changes.

    ``step(closure)`` does up to ``max_iter`` iterations, each of which calls the closure at least
    once; the closure clears the gradients, computes the loss of *all* the data it stands for, calls
    ``backward()`` and returns the loss::

        d = -H g                                    (two-loop recursion over history_size changes)
        t = strong-Wolfe line search from lr        (lr * min(1, 1 / sum(abs(g))) at the very first)
        x = x + t * d

    It ends when the largest gradient is at most ``tolerance_grad``, when the step or the change of the
    loss is below ``tolerance_change``, or after ``max_eval`` closure calls (default 1.25 ``max_iter``),
    which it never exceeds. Returned is the loss at the start of the step.

    Differences from PyTorch, all for safety: ``line_search_fn`` is "strong_wolfe" by default (None
    takes ``t = lr`` unseen); several parameter groups, dtypes and devices are allowed, as long as the
    groups' options agree; a trial whose loss, gradient or parameters are not finite is backed away
    from, and parameters that are not finite are never written; a search that finds nothing, or a
    closure that raises, leaves the parameters as they were, bit by bit.

    Nocedal and Wright, Numerical Optimization, 2nd edition, 2006, chapter 7.

    >>> x = fw.tensor([3.0, -2.0], dtype=fw.float64, requires_grad=True)
    >>> optimizer = fw.optim.LBFGS([x])
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) * (x - 1)).sum()
    ...     loss.backward()
    ...     return loss
    >>> float(optimizer.step(closure))
    13.0
    >>> x.detach()
    tensor([1., 1.], dtype=framework.float64)
    """

    limits = {**Optimizer.limits, "tolerance_grad": AT_LEAST_ZERO, "tolerance_change": AT_LEAST_ZERO,
              **dict.fromkeys(("max_iter", "max_eval", "history_size"),
                              (lambda v: v >= 1 and int(v) == v, "a whole number >= 1"))}

    def __init__(self, params: Iterable, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = "strong_wolfe") -> None:
        super().__init__(params, dict(
            lr=lr, max_iter=max_iter, max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad, tolerance_change=tolerance_change,
            history_size=history_size, line_search_fn=line_search_fn))

    def check_group(self, group: dict[str, Any]) -> None:
        """Raise ValueError for options that are out of range."""
        for name in ("max_iter", "max_eval", "history_size"):
            group.setdefault(name, 1)
        super().check_group(group)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn={group['line_search_fn']!r} must be 'strong_wolfe' or "
                             f"None")

    def _run(self, closure: Callable | None = None) -> Any:
        if closure is None:
            raise TypeError("LBFGS.step: needs a closure that clears the gradients, computes the loss, calls "
                            "backward() and returns the loss")
        options = self._options()
        params = [p for group in self.param_groups for p in group["params"]]
        for i, group in enumerate(self.param_groups):
            self._ready(i, group)
        with no_grad(), np.errstate(all="ignore"):
            return _Step(Flat(params), self.state[params[0]], options, closure, self._ready_all).run()

    def _ready_all(self) -> None:
        for i, group in enumerate(self.param_groups):
            self._ready(i, group)

    def _options(self) -> dict[str, Any]:
        first = self.param_groups[0]
        for i, group in enumerate(self.param_groups):
            for name in self.defaults:
                if group[name] != first[name]:
                    raise ValueError(f"LBFGS.step: {name}={group[name]!r} of group {i} differs from "
                                     f"{first[name]!r} of group 0; there is one search over all groups, so "
                                     f"their options must agree")
        return first

    def compare_state(self, p: Tensor, saved: dict, group: dict[str, Any], name: str) -> list[str]:
        """What does not fit: the vectors must be as long as all parameters together."""
        size = sum(q._array.size for g in self.param_groups for q in g["params"])
        if p is not self.param_groups[0]["params"][0] or "old_steps" not in saved:
            return [f"{name}: has the state {sorted(saved)}, which is not LBFGS's"]
        vectors = [*saved["old_steps"], *saved["old_changes"], *saved.get("pending", ())]
        return [f"{name}: its vectors have {list(v.shape)} elements in the checkpoint, all parameters "
                f"together have {size}" for v in vectors[:1] if v.shape != (size,)]

    def cast_state(self, p: Tensor, saved: dict) -> dict[str, Any]:
        """A copy of the saved state in the common dtype of the parameters."""
        flat = Flat([q for g in self.param_groups for q in g["params"]])
        return {k: cast_to(v, flat.dtype, flat.device) for k, v in saved.items()}


class _Step:
    """One call of ``LBFGS.step``."""

    def __init__(self, flat: Flat, state: dict[str, Any], options: dict[str, Any], closure: Callable,
                 check: Callable) -> None:
        self.flat, self.state, self.options, self.closure, self.check = flat, state, options, closure, check
        if not state:
            state.update(n_iter=0, func_evals=0, old_steps=[], old_changes=[], pending=[])
        self.left = int(options["max_eval"])
        self.loss: Any = None

    def run(self) -> Any:
        x = self.flat.values()
        try:
            f, g = self.evaluate()
            first = self.loss
            if not _finite(f, g):
                x = self._back(x)
            elif self._take_pending(g) or True:
                x = self._iterate(x, f, g)
        finally:
            self.flat.set(x)
        return first
