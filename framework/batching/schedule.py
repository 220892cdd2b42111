"""Which calls run together, and the list of what ran.

Calls of one signature at one depth are a bucket when they are put off. A bucket is ready when those that
its inputs come from have run. Of the signatures with ready buckets the one runs first of which the
depth of all its calls is least on average (Neubig et al., section 3.2): so one that is needed deeper down
waits for more of its calls, as the loss of each example does for that of the deepest one.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Step(NamedTuple):
    """One run: how many calls of which record; how ("one call", "shared by all", "one by one").

    operations: of how many operations a call consists, which is 1 but for units.
    """

    name: str
    calls: int
    depths: tuple[int, int]
    shapes: tuple[tuple[int, ...], ...]
    way: str
    operations: int = 1


class Schedule:
    """What ran, in order; ``print`` it, or ``draw`` it.

    steps: the runs. calls: how many calls were put off. runs: how many calls of records became of them.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []

    @property
    def calls(self) -> int:
        """How many calls were put off."""
        return sum(step.calls * step.operations for step in self.steps)

    @property
    def runs(self) -> int:
        """How many calls of records became of them."""
        return sum((step.calls if step.way == "one by one" else 1) * step.operations for step in self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        lines = [f"{self.calls} calls in {self.runs} runs"]
        for i, step in enumerate(self.steps):
            shapes = ", ".join(str(list(shape)) for shape in step.shapes)
            low, high = step.depths
            depth = f"depth {low}" if low == high else f"depths {low} to {high}"
            lines.append(f"{i:5}  {step.calls:6} x {step.name:<20} -> {shapes:<16} {depth}, {step.way}")
        return "\n".join(lines)

    __repr__ = __str__

    def draw(self, path: Any = None) -> str:
        """The schedule as SVG: a row for each record, a bar for each run, as high as it has calls.

        Written to ``path`` if that is given. Bars are coloured by how the calls ran.

        >>> from framework.batching import together
        >>> y = together(lambda x: (x * 2).sum(), [fw.ones(3), fw.ones(3)])
        >>> y.schedule.draw()[:4]
        '<svg'
        """
        names = list(dict.fromkeys(step.name for step in self.steps))
        most = max([step.calls for step in self.steps], default=1)
        wide, high, left = 10, 34, 150
        colour = {"one call": "#2a7", "shared by all": "#27a", "one by one": "#c52"}
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide * len(self.steps) + 10}" '
                 f'height="{high * len(names) + 30}" font-family="sans-serif" font-size="12">',
                 f'<text x="4" y="14">{self.calls} calls in {self.runs} runs</text>']
        for i, name in enumerate(names):
            parts.append(f'<text x="4" y="{20 + high * (i + 1) - 6}">{name}</text>')
        for i, step in enumerate(self.steps):
            tall = max(2, round((high - 6) * step.calls / most))
            y = 20 + high * (names.index(step.name) + 1) - tall - 2
            parts.append(f'<rect x="{left + wide * i}" y="{y}" width="{wide - 2}" height="{tall}" '
                         f'fill="{colour[step.way]}"><title>{step.calls} x {step.name}</title></rect>')
        text = "\n".join([*parts, "</svg>"])
        if path is not None:
            with open(path, "w") as file:
                file.write(text)
        return text


def in_order(buckets: Sequence) -> Iterable[tuple[Any, list]]:
    """(plan, its buckets that run together), in an order in which inputs come before what needs them."""
    waits = {b: sum(not other.done for other in b.before) for b in buckets}
    after: dict[Any, list] = {b: [] for b in buckets}
    total: dict[Any, list] = {}  # plan: [the sum of the depths of its calls, their number]
    for b in buckets:
        for other in b.before:
            if other in after:
                after[other].append(b)
        sums = total.setdefault(b.plan, [0, 0])
        sums[0] += b.depth * b.count
        sums[1] += b.count
    ready: dict[Any, list] = {}
    for b in buckets:
        if not waits[b]:
            ready.setdefault(b.plan, []).append(b)
    while ready:
        plan = min(ready, key=lambda p: total[p][0] / total[p][1])
        chosen = ready.pop(plan)
        for b in chosen:
            for other in after[b]:
                waits[other] -= 1
                if not waits[other]:
                    ready.setdefault(other.plan, []).append(other)
        yield plan, chosen
