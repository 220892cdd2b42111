"""Line searches for the Wolfe conditions: a step along a direction that is long enough and descends enough.

Nocedal and Wright, Numerical Optimization, 2nd edition, 2006, algorithms 3.5 (bracket) and 3.6 (zoom);
cubic interpolation: equation 3.59. ``minfunc`` makes the trials that PyTorch makes. All in Python floats:
nothing here knows of tensors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt
from typing import Any


@dataclass(frozen=True)
class Point:
    """A trial: step length ``t``, value ``f`` and derivative ``slope`` there, and what else belongs to it."""

    t: float
    f: float
    slope: float
    extra: Any = None

    @property
    def finite(self) -> bool:
        return isfinite(self.f) and isfinite(self.slope)


def cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """Where the cubic through the values and slopes of ``a`` and ``b`` is least, clipped to [low, high].

    The middle of [low, high] where there is no such place (or a value is not finite).

    >>> from framework.optim.line_search import Point, cubic_minimum
    >>> cubic_minimum(Point(0.0, 1.0, -2.0), Point(3.0, 4.0, 4.0), 0.0, 3.0)  # (t - 1) ** 2
    1.0
    """
    t = nan
    if a.finite and b.finite and a.t != b.t:
        h = b.t - a.t
        d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
        square = d1 * d1 - a.slope * b.slope
        if square >= 0:
            d2 = sqrt(square) if h > 0 else -sqrt(square)
            bottom = b.slope - a.slope + 2 * d2
            t = b.t - h * ((b.slope + d2 - d1) / bottom) if bottom else nan
    return min(max(t, low), high) if isfinite(t) else 0.5 * (low + high)


class _Search:
    """One search: the start, the limits, and how many trials are left."""

    def __init__(self, phi: Callable[[float], Point], start: Point, c1: float, c2: float,
                 tolerance: float, max_evals: int, rounding: float) -> None:
        self.phi, self.start = phi, start
        self.c1, self.c2, self.tolerance, self.left = c1, c2, tolerance, max_evals
        # Near a minimum the decrease drowns in the rounding of f; there the slope alone decides
        # (Hager and Zhang's approximate Wolfe condition, 2005).
        self.noise = rounding * abs(start.f)

    def at(self, t: float) -> Point:
        self.left -= 1
        point = self.phi(t)
        return point if point.finite else Point(t, inf, inf)

    def descends(self, p: Point) -> bool:
        """The first Wolfe condition: f falls by at least c1 of what the slope promises."""
        start = self.start
        if p.f <= start.f + self.c1 * p.t * start.slope:
            return True
        return abs(p.f - start.f) <= self.noise and p.slope <= (2 * self.c1 - 1) * start.slope

    def flat(self, p: Point) -> bool:
        """The second, strong condition: the slope has fallen to c2 of that at the start."""
        return abs(p.slope) <= -self.c2 * self.start.slope

    def bracket(self, t: float) -> Point:
        """Lengthen the step until a good point lies between two trials (algorithm 3.5)."""
        before, ceiling = self.start, inf  # ceiling: the function is not finite from there on
        while self.left > 0:
            here = self.at(t)
            if here.f == inf:
                ceiling, t = t, before.t + 0.2 * (t - before.t)
                if ceiling - before.t <= self.tolerance:
                    break
                continue
            if not self.descends(here) or (before.t > 0 and here.f > before.f + self.noise):
                return self.zoom(before, here)
            if self.flat(here):
                return here
            if here.slope >= 0:
                return self.zoom(here, before)
            longest = min(here.t + 9 * (here.t - before.t), 0.5 * (here.t + ceiling))
            shortest = min(here.t + 0.01 * (here.t - before.t), longest)
            t = cubic_minimum(before, here, shortest, longest)
            before = here
        return before

    def zoom(self, low: Point, high: Point) -> Point:
        """Narrow the bracket between ``low``, the best point, and ``high`` (algorithm 3.6)."""
        while self.left > 0 and abs(high.t - low.t) > self.tolerance:
            left, right = min(low.t, high.t), max(low.t, high.t)
            edge = 0.1 * (right - left)  # not too near to an end: the bracket must shrink
            here = self.at(cubic_minimum(low, high, left + edge, right - edge))
            if not self.descends(here) or here.f > low.f + self.noise:
                high = here
                continue
            if self.flat(here):
                return here
            if here.slope * (high.t - low.t) >= 0:
                high = low
            low = here
        return low


def strong_wolfe(phi: Callable[[float], Point], start: Point, t: float, *, c1: float = 1e-4,
                 c2: float = 0.9, tolerance: float = 1e-12, max_evals: int = 25,
                 rounding: float = 4e-16) -> tuple[Point | None, int]:
    """A step that meets the strong Wolfe conditions, and the number of trials it took.

    With ``f(t)`` the function along the direction::

        f(t) <= f(0) + c1 * t * f'(0)    and    abs(f'(t)) <= c2 * abs(f'(0))

    phi: gives the Point at a step length. start: the Point at 0, with negative slope. t: first trial.
    tolerance: brackets shorter than this are not searched. rounding: the relative error of f. Trials
    that are not finite count as infinitely high, so the search backs away from them. When
    ``max_evals`` trials are used up, or the bracket is too short, the best point found that descends is
    taken; None if there is none.

    >>> from framework.optim.line_search import Point, strong_wolfe
    >>> point, trials = strong_wolfe(lambda t: Point(t, (t - 3) ** 2, 2 * (t - 3)), Point(0, 9.0, -6.0), 1.0)
    >>> round(point.t, 6), trials
    (1.0, 1)
    """
    if not start.slope < 0:
        raise ValueError(f"strong_wolfe: start.slope={start.slope!r} must be negative: the direction must "
                         f"lead downhill")
    if not 0 < t < inf:
        raise ValueError(f"strong_wolfe: t={t!r} must be a positive finite number")
    if not 0 < c1 < c2 < 1:
        raise ValueError(f"strong_wolfe: wanted 0 < c1 < c2 < 1, got c1={c1!r} and c2={c2!r}")
    search = _Search(phi, start, c1, c2, tolerance, max_evals, rounding)
    found = search.bracket(t)
    return (found if found.t > 0 else None), max_evals - search.left


def minfunc(phi: Callable[[float], Point], start: Point, t: float, scale: float, *, c1: float = 1e-4,
            c2: float = 0.9, tolerance: float = 1e-9, max_trials: int = 25) -> Point:
    """The search of Schmidt's minFunc (2005) as PyTorch does it: the same trials in the same order.

    phi, start, c1, c2: as for ``strong_wolfe``. scale: the largest change per unit of ``t``; brackets in
    which nothing changes by ``tolerance`` are not searched. Gives the best point when ``max_trials``
    are used up, ``start`` itself if no trial was lower. Trials that are not finite count as infinitely
    high.

    >>> from framework.optim.line_search import Point, minfunc
    >>> minfunc(lambda t: Point(t, (t - 3) ** 2, 2 * (t - 3)), Point(0.0, 9.0, -6.0), 0.1, 1.0).t
    1.0
    """
    def at(t: float) -> Point:
        point = phi(t)
        return point if point.finite else Point(t, inf, inf, point.extra)

    def too_high(p: Point) -> bool:
        return p.f > start.f + c1 * p.t * start.slope

    before, here, trials = start, at(t), 1
    while True:
        if trials > max_trials:
            ends = [start, here]
            break
        if too_high(here) or (trials > 2 and here.f >= before.f):
            ends = [before, here]
            break
        if abs(here.slope) <= -c2 * start.slope:
            return here
        if here.slope >= 0:
            ends = [before, here]
            break
        t = cubic_minimum(before, here, here.t + 0.01 * (here.t - before.t), here.t * 10)
        before, here, trials = here, at(t), trials + 1

    low, hesitant = int(ends[1].f < ends[0].f), False
    while trials <= max_trials:
        left, right = sorted(ends, key=lambda p: p.t)
        if (right.t - left.t) * scale < tolerance:
            break
        t = cubic_minimum(left, right, left.t, right.t)
        edge = 0.1 * (right.t - left.t)
        near = min(right.t - t, t - left.t) < edge
        if near and (hesitant or t >= right.t or t <= left.t):  # the second time, or at an end: move inwards
            t = right.t - edge if abs(t - right.t) < abs(t - left.t) else left.t + edge
            near = False
        hesitant = near
        here, trials = at(t), trials + 1
        if too_high(here) or here.f >= ends[low].f:
            ends[1 - low] = here
            low = int(ends[1].f < ends[0].f)
            continue
        if abs(here.slope) <= -c2 * start.slope:
            return here
        if here.slope * (ends[1 - low].t - ends[low].t) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = here
    return ends[low]
