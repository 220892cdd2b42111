"""At which sizes of the dynamic axes a model is run, and the runs."""

from typing import Any

import numpy as np

from ..tensor import Tensor, wrap
from .calls import Call
from .sizes import Extent, joined
from .trace import OnnxError, Trace

_BATCHES = (1, 2, 5)


class Points:
    """At which sizes of the dynamic axes the model is traced, and at which the result is checked."""

    def __init__(self, call: Call, symbols: dict[tuple[str, int], str]) -> None:
        self.call = call
        self.axes = symbols
        self.base: dict[str, int] = {}
        for (name, axis), label in symbols.items():
            n = call.example[name].shape[axis]
            if self.base.setdefault(label, n) != n:
                raise ValueError(f"export: axes called {label!r} are of one size, but the example has "
                                 f"{self.base[label]} and {n}")
        self.batch = {label for (_, axis), label in symbols.items() if axis == 0}
        self.lengths: dict[str, list[int]] = {}
        self.refused: dict[str, Exception] = {}
        self.all: list[dict[str, int]] = []

    def inputs(self, sizes: dict[str, int], turn: int = 0) -> dict[str, Tensor]:
        """The example at other sizes: its elements along the dynamic axes again and again, from another one
        on.
        """
        tensors = {}
        for name, tensor in self.call.example.items():
            array = tensor.detach()._array
            for axis in range(array.ndim):
                label = self.axes.get((name, axis))
                n = array.shape[axis] if label is None else sizes[label]
                if label is not None or axis == 0 and turn and not self.axes:
                    array = np.take(array, (np.arange(n) + turn) % max(array.shape[axis], 1), axis=axis)
            if turn and not self.axes and array.dtype.kind == "f":
                array = array[..., ::-1] if array.ndim else array
            tensors[name] = wrap(np.array(array, order="C"))  # the graph must not know it by its memory
        return tensors

    def unified(self) -> Trace:
        """One trace for all sizes."""
        if not self.axes:
            traces = [self.call.trace(self.inputs({}, turn)) for turn in (0, 1)]
            self.all = [{}, {}]
            return joined(traces, ["the example", "other values"])
        kept: dict[tuple, Trace] = {}
        start = {label: max(n, 2) if label in self.batch else n for label, n in self.base.items()}
        start = {label: n if n > 1 else 4 for label, n in start.items()}
        self._try(start, kept, must=True)
        for label in self.base:
            self.lengths[label] = [start[label]]
            for n in _lengths(self.base[label], label in self.batch):
                if n >= 2 and n not in self.lengths[label] and self._try({**start, label: n}, kept):
                    self.lengths[label].append(n)
                if len(self.lengths[label]) == 3:
                    break
            else:
                raise OnnxError(
                    f"export: the axis {label!r} was declared dynamic, but the model runs at few sizes of "
                    f"it only ({', '.join(map(str, self.lengths[label]))}): {self.refused.get(label, '')}")
        labels = list(self.base)
        for a, b in zip(labels, labels[1:]):  # two at once, or a product of both looks like one of them
            self._try({**start, a: self.lengths[a][1], b: self.lengths[b][1]}, kept)
        self.all = [dict(key) for key in kept]
        return joined(list(kept.values()), [shown(dict(key)) for key in kept])

    def _try(self, sizes: dict[str, int], kept: dict, must: bool = False) -> bool:
        key = tuple(sizes.items())
        if key in kept:
            return True
        try:
            kept[key] = self.call.trace(self.inputs(sizes, len(kept)))
        except OnnxError:
            raise
        except Exception as error:  # the model itself refuses this size
            if must:
                raise
            for label, n in sizes.items():
                if n != self.base[label]:
                    self.refused[label] = error
            return False
        return True

    def checks(self) -> list[dict[str, int]]:
        """Sizes to compare at: batches of 1, 2 and 5, and two further lengths of each other axis."""
        if not self.axes:
            return [{}]
        start = {label: n if n > 1 else 4 for label, n in self.base.items()}
        points = [{**start, **dict.fromkeys(self.batch, n)} for n in _BATCHES] if self.batch else [start]
        for label in self.base:
            if label in self.batch:
                continue
            found = 0
            used = self.lengths.get(label, [])
            for n in [*[m for m in _lengths(self.base[label], False) if m not in used], *used]:
                sizes = {**start, **dict.fromkeys(self.batch, 2), label: n}
                try:
                    self.call.run(self.inputs(sizes))
                except Exception:
                    continue
                points.append(sizes)
                found += 1
                if found == 2:
                    break
        return points

    def symbol_of(self, n: Any) -> str | None:
        """The name of a size that is a dynamic axis."""
        for label in self.base:
            if n == Extent([p[label] for p in self.all]):
                return label
        return None


def _lengths(base: int, batch: bool) -> list[int]:
    """Lengths to try, those first that programs allow most often."""
    if batch:
        return [2, 3, 5, 4, 7, base, 2 * base, 3 * base]
    more = [-1, -2, 1, -3, 2, 4, 8, 16, 32, 64, -4, -8, -16, -5]
    near = [base - 1, base // 2, *[base + n for n in more[1:]]]
    near += [2 * base, base // 2 + 1, 3 * base, base // 4, 4 * base]
    return [n for n in near if n > 1] + [3, 2, 5]


def shown(sizes: dict[str, int]) -> str:
    return ", ".join(f"{k}={v}" for k, v in sizes.items()) or "the example"
