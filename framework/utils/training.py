"""Small parts of training loops, to be used one by one: the loop itself stays in the program.

`seed_everything`, `EarlyStopping`, `accumulated` (large batches in pieces), `History` (numbers by epoch, as
a table, CSV and picture), `progress` (a bar that shows running means).
"""

import math
import random as python_random
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from tqdm import tqdm

from ..backends.precision import use_deterministic_algorithms
from ..config.listing import own as _own
from ..random import manual_seed
from ..tensor import Tensor
from .history import History as History
from .metrics import RunningMean as RunningMean


def seed_everything(seed: int, deterministic: bool = False) -> int:
    """Start the generators of this package (every device), of NumPy and of Python; returns the seed.

    Workers of a DataLoader get seeds of their own from this one. deterministic: also refuse operations that
    have no deterministic way (`use_deterministic_algorithms`). Raises ValueError for a seed outside of 0 to
    2**32 - 1, which NumPy's global generator does not take.

    >>> from framework.utils.training import seed_everything
    >>> seed_everything(7)
    7
    >>> first = fw.rand(3)
    >>> seed = seed_everything(7)
    >>> fw.equal(fw.rand(3), first)
    True
    """
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ValueError(f"seed_everything: seed must be an int from 0 to 2**32 - 1, got {seed!r}")
    manual_seed(seed)
    np.random.seed(seed)
    python_random.seed(seed)
    if deterministic:
        use_deterministic_algorithms(True)
    return seed


class EarlyStopping:
    """Says when a number has not become better for ``patience`` steps in a row.

    mode: "min" or "max", what better is. min_delta: by how much it must be better to count. A nan is never
    better. It has a ``state_dict``, so that a resumed run waits as long.

    >>> from framework.utils.training import EarlyStopping
    >>> stopping = EarlyStopping(patience=2)
    >>> [stopping.step(loss) for loss in (3.0, 2.0, 2.5, 2.1)], stopping.best, stopping.best_step
    ([False, False, False, True], 2.0, 1)
    """

    def __init__(self, patience: int = 5, mode: str = "min", min_delta: float = 0.0) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"EarlyStopping: mode must be 'min' or 'max', got {mode!r}")
        if patience < 1 or min_delta < 0:
            raise ValueError(f"EarlyStopping: patience must be at least 1 and min_delta not negative, got "
                             f"{patience} and {min_delta}")
        self.patience, self.mode, self.min_delta = patience, mode, min_delta
        self.best = math.inf if mode == "min" else -math.inf
        self.best_step = -1
        self.steps = 0

    def step(self, value: float | Tensor) -> bool:
        """Take in the number of one more epoch; True: it is time to stop."""
        number = value.item() if isinstance(value, Tensor) else float(value)
        gain = self.best - number if self.mode == "min" else number - self.best
        if gain > self.min_delta:
            self.best, self.best_step = number, self.steps
        self.steps += 1
        return self.waited >= self.patience

    @property
    def waited(self) -> int:
        """Steps since the best one."""
        return self.steps - 1 - self.best_step

    @property
    def improved(self) -> bool:
        """Whether the last step was the best so far: time to keep a copy."""
        return self.steps > 0 and self.waited == 0

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return {"best": self.best, "best_step": self.best_step, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        self.best, self.best_step, self.steps = state["best"], state["best_step"], state["steps"]


def accumulated(batches: Iterable, every: int) -> Iterator[tuple[Any, float, bool]]:
    """Batches, each with its share of a step and whether the step is due: large batches in pieces that fit.

    Gives (batch, share, due). ``share`` is 1 / number of batches in the group, to multiply the (mean) loss
    by; ``due`` is True with the last of each ``every`` batches and with the very last one, whose group may
    be smaller. Where ``len(batches)`` is not known, a group is fetched before its first batch is given.
    Raises ValueError for every < 1.

    >>> from framework.utils.training import accumulated
    >>> list(accumulated("abc", 2))
    [('a', 0.5, False), ('b', 0.5, True), ('c', 1.0, True)]
    """
    if not isinstance(every, int) or every < 1:
        raise ValueError(f"accumulated: every must be a number of batches from 1 on, got {every!r}")
    try:
        return _counted(batches, every, len(batches))  # type: ignore[arg-type]
    except TypeError:  # an iterator, or a loader over a stream
        return _gathered(batches, every)


def _counted(batches: Iterable, every: int, total: int) -> Iterator[tuple[Any, float, bool]]:
    for i, batch in enumerate(batches):
        size = max(1, min(every, total - i // every * every))  # 1: more came than len() had said
        yield batch, 1 / size, i % every == size - 1 or i == total - 1


def _gathered(batches: Iterable, every: int) -> Iterator[tuple[Any, float, bool]]:
    rest = iter(batches)
    while group := list(islice(rest, every)):
        yield from ((batch, 1 / len(group), i == len(group) - 1) for i, batch in enumerate(group))


class progress(tqdm):
    """A tqdm bar that shows running means: ``bar.show(loss=loss.item())`` in the loop.

    Takes what tqdm takes. ``bar.means`` are the means so far, to note in a `History`.

    >>> from framework.utils.training import progress
    >>> with progress(range(4), disable=True) as bar:
    ...     for i in bar:
    ...         bar.show(loss=i)
    >>> bar.means
    {'loss': 1.5}
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        self._means: dict[str, RunningMean] = {}
        super().__init__(*args, **settings)

    def show(self, n: int = 1, **values: float | Tensor) -> None:
        """Take in the numbers of one batch of ``n`` samples and show the means."""
        for name, value in values.items():
            self._means.setdefault(name, RunningMean()).update(value, n)
        if not self.disable:
            self.set_postfix({name: f"{mean:.4g}" for name, mean in self.means.items()}, refresh=False)

    @property
    def means(self) -> dict[str, float]:
        """The mean of each number so far."""
        return {name: mean.value for name, mean in self._means.items()}


__dir__ = _own(globals(), "History RunningMean")
