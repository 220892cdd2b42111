"""L-BFGS: quasi-Newton steps from the last few changes of parameters and gradients.

Three pieces, usable alone: flat vectors over many parameters (``Flat``), the two-loop recursion
(``two_loop``) and the line search (``line_search.py``).
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np

from ..autograd.mode import enable_grad, no_grad
from ..backends import array_module, move, on_device
from ..config.listing import own as _own
from ..dtypes import finfo, promote_types
from ..quiet import settle
from ..tensor import Tensor, bump, wrap
from .arrays import cast_to, number, real_view, zeros_like
from .groups import AT_LEAST_ZERO, LIMITS
from .line_search import Point, minfunc, strong_wolfe
from .optimizer import Optimizer

_VECTORS = ("old_steps", "old_changes", "pending", "old_stps", "old_dirs")  # ours and PyTorch's
_ARRAYS = (*_VECTORS, "d", "prev_flat_grad", "ro", "H_diag")


class Flat:
    """Many parameters seen as one real vector, in their common dtype, on the device of the first.

    A complex number gives two elements.
    """

    def __init__(self, params: Sequence[Tensor]) -> None:
        self.params = list(params)
        self.device = params[0].device
        dtype = params[0].dtype
        for p in params[1:]:
            dtype = promote_types(dtype, p.dtype)
        self.dtype = dtype.to_real().numpy
        self.size = sum(real_view(p._array).size for p in params)

    def _join(self, arrays: list) -> Any:
        pieces = []
        for a in arrays:
            with on_device(a):
                row = real_view(a).reshape(-1)
            pieces.append(move(row, self.device))
        with on_device(pieces[0]):
            return array_module(pieces[0]).concatenate([row.astype(self.dtype) for row in pieces])

    def values(self) -> Any:
        """A copy of the parameters as one vector."""
        return self._join([p._array for p in self.params])

    def grads(self) -> Any:
        """The gradients as one vector; zeros for a parameter that has none."""
        found = []
        for p in self.params:
            with on_device(p._array):
                found.append(zeros_like(p._array) if p.grad is None else p.grad._array)
        return self._join(found)

    def stored(self, vector: Any) -> Any:
        """The vector as it would be read back after ``set``."""
        if all(real_view(p._array).dtype == self.dtype for p in self.params):
            return vector
        return self._join(self._pieces(vector))

    def _pieces(self, vector: Any) -> list:
        pieces, start = [], 0
        with on_device(vector):
            for p in self.params:
                like = real_view(p._array)
                end = start + like.size
                pieces.append(vector[start:end].reshape(like.shape).astype(like.dtype))
                start = end
        return pieces

    def set(self, vector: Any) -> None:
        """Write a vector into the parameters; ``set(values())`` changes no bit."""
        settle()
        for p, piece in zip(self.params, self._pieces(vector)):
            moved = move(piece, p.device)
            with on_device(p._array):
                real_view(p._array)[...] = moved
            bump(p, "LBFGS.step")


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
        t = line search from lr                     (lr * min(1, 1 / sum(abs(g))) at the very first)
        x = x + t * d

    It ends when the largest gradient is at most ``tolerance_grad``, when the step or the change of the
    loss is below ``tolerance_change``, or after ``max_eval`` closure calls (default 1.25 ``max_iter``).
    Returned is the loss at the start of the step.

    line_search_fn: None takes ``t = lr`` unseen, and "strong_wolfe" searches, with the points and calls
    of PyTorch; the search under way when ``max_eval`` calls are made goes on to its end.
    "approximate_wolfe", the default, takes a point by its slope alone where the decrease drowns in the
    rounding of the loss (Hager and Zhang, 2005), starts anew when its memory leads nowhere, and never
    makes more than ``max_eval`` calls.

    With each of them several dtypes and devices are allowed; a trial whose loss, gradient or parameters
    are not finite is backed away from, and parameters that are not finite are never written; a search
    that finds nothing, or a closure that raises, leaves the parameters as they were, bit by bit. Raises
    ValueError for several parameter groups.

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

    limits = {**LIMITS, "tolerance_grad": AT_LEAST_ZERO, "tolerance_change": AT_LEAST_ZERO,
              **dict.fromkeys(("max_iter", "max_eval", "history_size"),
                              (lambda v: v >= 1 and int(v) == v, "a whole number >= 1"))}

    def __init__(self, params: Iterable, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = "approximate_wolfe") -> None:
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn})

    _knows_its_state = True

    def check_group(self, group: dict[str, Any]) -> None:
        """Raise ValueError for options that are out of range."""
        super().check_group(group)
        if group["line_search_fn"] not in (None, "strong_wolfe", "approximate_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn={group['line_search_fn']!r} must be 'strong_wolfe', "
                             f"'approximate_wolfe' or None")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take the parameters; raises ValueError for a second group: there is one search over all."""
        if self.param_groups:
            raise ValueError("LBFGS: takes one parameter group, since there is one search over all "
                             "parameters; put them into one list")
        super().add_param_group(param_group)

    def _run(self, closure: Callable | None = None) -> Any:
        if closure is None:
            raise TypeError("LBFGS.step: needs a closure that clears the gradients, computes the loss, calls "
                            "backward() and returns the loss")
        (group,) = self.param_groups
        options, params = self.numbers_of(group), group["params"]
        kind = _Step if options["line_search_fn"] == "approximate_wolfe" else _MinFuncStep
        with no_grad(), np.errstate(all="ignore"), on_device(params[0]._array):
            return kind(Flat(params), self.state[params[0]], options, closure,
                        lambda: self._ready(0, group)[0]).run()

    def compare_state(self, p: Tensor, saved: dict, group: dict[str, Any], name: str) -> list[str]:
        """What does not fit: the vectors must be as long as all parameters together."""
        size = Flat(self.param_groups[0]["params"]).size
        if p is not self.param_groups[0]["params"][0] or not {"func_evals", "n_iter"} <= set(saved):
            return [f"{name}: has the state {sorted(saved)}, which is not LBFGS's"]
        vectors = [v for key in _VECTORS for v in saved.get(key, ())]
        vectors += [saved[key] for key in ("d", "prev_flat_grad") if key in saved]
        return [f"{name}: its vectors have {list(v.shape)} elements in the checkpoint, all parameters "
                f"together have {size}" for v in vectors[:1] if v.shape != (size,)]

    def cast_state(self, p: Tensor, saved: dict, group: dict[str, Any]) -> dict[str, Any]:
        """A copy of the saved state in the common dtype of the parameters."""
        flat = Flat(self.param_groups[0]["params"])
        numbers = {k: number(saved[k]) for k in ("func_evals", "n_iter", "t", "prev_loss") if k in saved}
        arrays = {k: cast_to(saved[k], flat.dtype, flat.device) for k in _ARRAYS if k in saved}
        return {**arrays, **{k: saved[k] for k in ("al",) if k in saved}, **numbers}


class _Step:
    """One call of ``LBFGS.step``. ``x`` is the last accepted point; the parameters may be at a trial."""

    def __init__(self, flat: Flat, state: dict[str, Any], options: dict[str, Any], closure: Callable,
                 check: Callable) -> None:
        self.flat, self.state, self.options, self.closure, self.check = flat, state, options, closure, check
        for key, value in self.fresh().items():
            state.setdefault(key, value)
        self.left = int(options["max_eval"])
        self.x = self.at = flat.values()

    def fresh(self) -> dict[str, Any]:
        """The state before the first step."""
        return {"n_iter": 0, "func_evals": 0, "old_steps": [], "old_changes": [], "pending": []}

    def run(self) -> Any:
        """Iterate; whatever happens, the parameters end at the last accepted point."""
        try:
            loss, f, g = self.evaluate()
            if isfinite(f) and _finite(g):
                self._settle(g)
                self._iterate(f, g)
            else:
                self._retreat(f)
        finally:
            self._write(self.x)
        return loss

    def evaluate(self) -> tuple[Any, float, Any]:
        """The closure's result, the loss as a number and the gradient, at the parameters."""
        self.left -= 1
        self.state["func_evals"] += 1
        with enable_grad():
            loss = self.closure()
        if not isinstance(loss, (Tensor, int, float, np.number)):
            raise TypeError(f"LBFGS.step: the closure must return the loss, a number or a tensor of one "
                            f"element, got {type(loss).__name__}; add `return loss`")
        self.check()
        return loss, float(loss), self.flat.grads()

    def _write(self, x: Any) -> None:
        if x is not self.at:
            self.flat.set(x)
            self.at = x

    def _iterate(self, f: float, g: Any) -> None:
        options, steps, changes = self.options, self.state["old_steps"], self.state["old_changes"]
        for iteration in range(int(options["max_iter"])):
            if _largest(g) <= options["tolerance_grad"]:
                break
            self.state["n_iter"] += 1
            d, slope, t = self._direction(g)
            found = self._search(f, slope, d, t)
            if found is None:
                if not steps or (self.left <= 0 and iteration > 0):  # cut short: the next call goes on
                    break
                steps.clear()  # the memory led nowhere: try once more straight downhill
                changes.clear()
                continue
            x, new_f, new_g = found
            moved, before, self.x = x - self.x, self.x, x
            if new_g is None:  # no trial left to look at the new point: the next call does
                self.state["pending"] = [wrap(v) for v in (before, moved, g)]
                break
            self._remember(moved, new_g - g)
            change, f, g = abs(new_f - f), new_f, new_g
            if min(_largest(moved), change) <= options["tolerance_change"] or self.left <= 0:
                break

    def _direction(self, g: Any) -> tuple[Any, float, float]:
        """The direction, the slope along it, and the first step length to try."""
        steps, changes, lr = self.state["old_steps"], self.state["old_changes"], self.options["lr"]
        d = two_loop(g, [s._array for s in steps], [y._array for y in changes])
        slope = float(g.dot(d))
        if steps and not -inf < slope < 0:
            steps.clear()
            changes.clear()
            d, slope = -g, -float(g.dot(g))
        if steps:
            return d, slope, lr
        if not isfinite(slope):  # the squares overflow: go the same way in smaller units
            d = d / _largest(d)
            slope = float(g.dot(d))
        return d, slope, lr * min(1.0, 1.0 / float(abs(d).sum(dtype=np.float64)))

    def _along(self, d: Any) -> Callable[[float], Point]:
        """The loss along ``d`` from ``x``, for the line searches."""
        def phi(t: float) -> Point:
            x = self.flat.stored(self.x + t * d)
            if not _finite(x):
                return Point(t, inf, inf)
            self._write(x)
            _, value, g = self.evaluate()
            return Point(t, value, float(g.dot(d)) if _finite(g) else inf, (x, value, g))
        return phi

    def _search(self, f: float, slope: float, d: Any, t: float) -> tuple | None:
        if self.left <= 0 or not (slope < 0 and 0 < t < inf):
            return None
        found, _ = strong_wolfe(self._along(d), Point(0.0, f, slope), t, max_evals=min(25, self.left),
                                tolerance=self.options["tolerance_change"] / _largest(d),
                                rounding=2 * float(finfo(self.flat.dtype).eps))
        return None if found is None else found.extra

    def _remember(self, s: Any, y: Any) -> None:
        """Keep a pair of changes if the curvature along it is safely positive."""
        steps, changes = self.state["old_steps"], self.state["old_changes"]
        curvature, square = float(y.dot(s)), float(y.dot(y))
        if not (isfinite(square) and curvature > float(finfo(self.flat.dtype).eps) * square > 0):
            return
        steps.append(wrap(s))
        changes.append(wrap(y))
        del steps[:-int(self.options["history_size"])], changes[:-int(self.options["history_size"])]

    def _settle(self, g: Any) -> None:
        """The last call ended at a point it did not see; now its gradient is known."""
        if self.state["pending"]:
            _, s, before = self.state["pending"]
            self.state["pending"] = []
            self._remember(s._array, g - before._array)

    def _retreat(self, f: float) -> None:
        """The loss or gradient at the start is not finite: go back, if the last call led here."""
        if not self.state.get("pending"):
            warnings.warn(f"LBFGS.step: the loss ({f}) or the gradient is not finite before any step; the "
                          f"parameters are left as they are", RuntimeWarning, stacklevel=5)
            return
        x, s, g = (v._array for v in self.state["pending"])
        s = 0.1 * s
        self.x = self.flat.stored(x + s)
        self.state["pending"] = [wrap(v) for v in (x, s, g)]


class _MinFuncStep(_Step):
    """The iteration of Schmidt's minFunc as PyTorch has it, with its names of state."""

    def fresh(self) -> dict[str, Any]:
        """The state before the first step.

        ``ro`` (1 / (y . s) of each pair), ``H_diag`` and ``al`` are what PyTorch keeps besides; they follow
        from the pairs and are there for it.
        """
        return {"n_iter": 0, "func_evals": 0, "old_stps": [], "old_dirs": []}

    def _settle(self, g: Any) -> None:
        pass  # a pair of changes is made at the start of the next iteration

    def _iterate(self, f: float, g: Any) -> None:
        options, state = self.options, self.state
        if _largest(g) <= options["tolerance_grad"]:
            return
        for iteration in range(int(options["max_iter"])):
            last = iteration == int(options["max_iter"]) - 1
            state["n_iter"] += 1
            first, d = "d" not in state, self._next(g)
            t = options["lr"] * (min(1.0, 1.0 / float(abs(g).sum())) if first else 1.0)
            slope = float(g.dot(d))
            if not slope <= -options["tolerance_change"]:
                self._keep(d, 0.0, g, f)
                break
            t, x, new_f, new_g = self._point(f, g, slope, d, t, last)
            self._keep(d, t, g, f)
            self.x = x
            change, f, g = abs(new_f - f), new_f, new_g
            if (last or self.left <= 0 or _largest(g) <= options["tolerance_grad"]
                    or _largest(d * t) <= options["tolerance_change"]
                    or change < options["tolerance_change"]):
                break

    def _keep(self, d: Any, t: float, g: Any, f: float) -> None:
        pairs = [(s._array, y._array) for s, y in zip(self.state["old_stps"], self.state["old_dirs"])]
        scale: Any = 1
        if pairs:
            s, y = pairs[-1]
            scale = wrap((y.dot(s) / y.dot(y))[...])
        self.state.update(
            d=wrap(d), t=t, prev_flat_grad=wrap(g), prev_loss=f, H_diag=scale,
            ro=[wrap((1.0 / y.dot(s))[...]) for s, y in pairs],  # [...]: NumPy gives a scalar
            al=[None] * int(self.options["history_size"]))

    def _next(self, g: Any) -> Any:
        """The next direction; remembers what the last step has changed."""
        state, most = self.state, int(self.options["history_size"])
        if "d" not in state:
            return -g
        steps, changes = state["old_stps"], state["old_dirs"]
        s, y = state["d"]._array * state["t"], g - state["prev_flat_grad"]._array
        if float(y.dot(s)) > 1e-10:
            steps.append(wrap(s))
            changes.append(wrap(y))
            del steps[:-most], changes[:-most]
        return two_loop(g, [s._array for s in steps], [y._array for y in changes])

    def _point(self, f: float, g: Any, slope: float, d: Any, t: float, last: bool) -> tuple:
        """The next point: step length, parameters, loss and gradient (the old ones where it is not seen)."""
        phi = self._along(d)
        if self.options["line_search_fn"] == "strong_wolfe":
            found = minfunc(phi, Point(0.0, f, slope, (self.x, f, g)), t, _largest(d))
            return found.t, *(found.extra if found.finite else (self.x, f, g))
        blind = last or self.left <= 0  # the next call looks at the point
        while t * _largest(d) > 0 and (blind or self.left > 0):  # shorter only where something is not finite
            if blind:
                x = self.flat.stored(self.x + t * d)
                if _finite(x):
                    return t, x, f, g
            else:
                point = phi(t)
                if point.finite:
                    return t, *point.extra
            t *= 0.1
        return 0.0, self.x, f, g

    def _retreat(self, f: float) -> None:
        """The loss or gradient at the start is not finite: go back, if a blind step led here."""
        state = self.state
        if not state.get("t"):
            super()._retreat(f)
            return
        state["t"] *= 0.1
        self.x = self.flat.stored(self.x - 9 * state["t"] * state["d"]._array)


def _largest(v: Any) -> float:
    return float(abs(v).max()) if v.size else 0.0


def _finite(v: Any) -> bool:
    return bool(array_module(v).isfinite(v).all())


__dir__ = _own(globals())
