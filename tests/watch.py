"""A watch over the records: which ran, and whether each result is what ``infer`` says."""

from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import framework as fw
from framework.dtypes import BY_NUMPY
from framework.ops.language.elementwise import Elementwise
from framework.ops.record.op import OPS, Meta, Op

CALLS_PER_OP = 6


class Call(NamedTuple):
    """One run of a record's kernel, with copies of its arrays."""

    op: Op
    arrays: tuple
    settings: dict


class Watch:
    """While it is on, stands in for the ``cpu`` kernel of every record."""

    def __init__(self) -> None:
        self.seen: set[Op] = set()
        self.calls: dict[Op, dict[str, Call]] = {}
        self.wrong: list[str] = []

    @contextmanager
    def on(self):
        """Watch inside the block; wrong ``infer`` rules met there are in ``wrong`` afterwards."""
        self.wrong = []
        before = {op: op.cpu for op in OPS}
        for op in OPS:
            op.cpu = self._around(op)
        try:
            yield self
        finally:
            for op, cpu in before.items():
                op.cpu = cpu

    def _around(self, op: Op):
        kernel = op.cpu

        def cpu(*arrays: Any, **settings: Any) -> Any:
            nonlocal kernel
            out = kernel(*arrays, **settings)
            if op.cpu is not cpu:  # an elementwise op compiled its expression at its first run
                kernel, op.cpu = op.cpu, cpu
            self.seen.add(op)
            if "out" not in settings:
                self._note(op, arrays, settings, out)
            return out

        return cpu

    def _note(self, op: Op, arrays: tuple, settings: dict, out: Any) -> None:
        if not any(isinstance(a, np.ndarray) for a in arrays):
            return
        key = str([(a.shape, str(a.dtype)) if isinstance(a, np.ndarray) else a for a in arrays]) + str(
            settings
        )
        calls = self.calls.setdefault(op, {})
        new = key not in calls
        if new and len(calls) < CALLS_PER_OP:
            calls[key] = Call(
                op, tuple([a.copy() if isinstance(a, np.ndarray) else a for a in arrays]), settings
            )
        if new and op.infer is not None:
            self._check(op, arrays, settings, out)

    def _check(self, op: Op, arrays: tuple, settings: dict, out: Any) -> None:
        metas = [
            Meta(a.shape, BY_NUMPY[a.dtype]) if isinstance(a, (np.ndarray, np.generic)) else a
            for a in arrays
        ]
        if isinstance(op, Elementwise) and any(isinstance(a, np.generic) for a in arrays):
            return  # a rule met a NumPy scalar; promotion is for tensors
        several = len(op.outputs) > 1
        actual = [Meta(np.shape(y), BY_NUMPY[np.asarray(y).dtype]) for y in (out if several else (out,))]
        try:
            told = op.infer(*metas, **settings)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        told_list = list(told) if several and not isinstance(told, str) else [told]
        if told_list != actual:
            call = ", ".join([*map(str, metas), *[f"{k}={v!r}" for k, v in settings.items()]])
            self.wrong.append(
                f"{op.name}({call}): infer gives {_show(told_list)}, the kernel {_show(actual)}"
            )


def _show(metas: list) -> str:
    return ", ".join(str(m) for m in metas)


def leaf(a: Any, rng: np.random.Generator | None = None) -> Any:
    """A float64 tensor over a copy of a floating array (or of random numbers of its shape)."""
    return fw.tensor(np.asarray(a, np.float64) if rng is None else rng.normal(size=a.shape))
