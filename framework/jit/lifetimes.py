"""How long the arrays of a segment live, and which of its kernels may keep theirs to the end without a higher
peak of memory: only those go on beside what follows.
"""

from math import prod
from typing import NamedTuple

import numpy as np


class Life(NamedTuple):
    """What a step reads and makes; a view lives in the memory of what it reads first."""

    reads: list[str]
    results: list[str]
    view: bool
    late: bool  # whether it might go on beside
    own: bool = True  # whether results surely fill memory; rules may give one number for all places


def within_peak(steps: list[Life], outputs: list[str], shapes: dict) -> set[int]:
    """The late steps whose operands may live to the end."""
    if not any(step.late for step in steps):
        return set()
    end = len(steps)
    owner: dict[str, str] = {}
    begin: dict[str, int] = {}
    last: dict[str, int] = {}

    def owner_of(name: str) -> str:
        return owner.get(name, name)

    def size(name: str) -> int:
        known = shapes.get(name)
        return prod(known[0]) * known[1].itemsize if known is not None else 0
    for at, step in enumerate(steps):
        for name in step.reads:
            last[owner_of(name)] = at
        for name in step.results:
            owner[name] = owner_of(step.reads[0]) if step.view and step.reads else name
            begin.setdefault(owner[name], at)
            last[owner[name]] = at
    for name in outputs:
        last[owner_of(name)] = end
    handed = {name for name in last if name[0] == "e"}  # which the caller keeps
    sure = {name for step in steps if step.own for name in step.results}
    change = np.zeros((2, end + 2), np.int64)
    for name, first in begin.items():
        if name not in handed:
            rows = slice(0, 1 + (name in sure))
            change[rows, first] += size(name)
            change[rows, last[name] + 1] -= size(name)
    live, least = change.cumsum(1)[:, :end + 1]  # at most, and surely: the peak is no lower than that
    peak, found = least.max(), set[int]()
    for at, step in enumerate(steps):
        if not step.late or any(n not in shapes for n in (*step.reads, *step.results)):
            continue
        held = {n for n in map(owner_of, step.reads) if n not in handed and last[n] < end}
        more = np.zeros(end + 1, np.int64)
        for name in held:
            more[last[name] + 1:] += size(name)
        live += more
        if live[more > 0].max(initial=0) > peak:
            live -= more
        else:
            last.update(dict.fromkeys(held, end))
            found.add(at)
    return found
