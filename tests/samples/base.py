"""The rows of the sample table: one public function, calls of it, and what NumPy says they give."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sample:
    """One call.

    call: ``call(M, *tensors)`` where M is a module with PyTorch's API (framework or torch).
    inputs: the arrays the tensors are made from; floating ones in float64, complex ones in complex128 (the
        drivers cast).
    reference: ``reference(*arrays)`` gives the expected array (or tuple of them) by plain NumPy.
    grad: whether derivatives are checked (against all floating and complex inputs); order: up to which.
    torch: False where PyTorch differs on purpose or lacks the call; ``why`` says how.
    noncontiguous: also run on strided copies of the inputs.
    tol: factor on the tolerances, with ``why``.
    """

    label: str
    call: Callable[..., Any]
    inputs: tuple[Any, ...]
    reference: Callable[..., Any]
    grad: bool = True
    order: int = 2
    torch: bool = True
    noncontiguous: bool = True
    tol: float = 1.0
    why: str = ""


@dataclass
class Row:
    """A public function, its samples and calls that must raise."""

    name: str
    namespace: str = "framework"
    samples: list[Sample] = field(default_factory=list)
    errors: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = field(default_factory=list)


TABLE: dict[tuple[str, str], Row] = {}
FURTHER: dict[tuple[str, str], list[Sample]] = {}
TWINS: set[tuple[str, str]] = set()


def row(name: str, *samples: Sample, namespace: str = "framework",
        errors: list[tuple[str, Callable[[Any], Any], type[Exception], str]] | None = None) -> Row:
    """Register the row of ``namespace.name``.

    errors: (label, call(M), exception class, text the message must contain).
    """
    key = (namespace, name)
    assert key not in TABLE, f"{key} has two rows"
    TABLE[key] = Row(name, namespace, list(samples), errors or [])
    return TABLE[key]


def further(name: str, *samples: Sample, namespace: str = "framework") -> None:
    """Samples for the row that another file registers."""
    FURTHER.setdefault((namespace, name), []).extend(samples)


def complex_twins(names: str, namespace: str = "framework") -> None:
    """Let the first sample of each of these rows that has floating inputs run on complex ones as well."""
    TWINS.update((namespace, name) for name in names.split())


def complete() -> None:
    """Give the rows, once all files are read, the samples that ``further`` and ``complex_twins`` told of."""
    for key, samples in FURTHER.items():
        TABLE[key].samples.extend(samples)
    for key in TWINS:
        found = next(s for s in TABLE[key].samples if any(_real(a) for a in s.inputs))
        inputs = tuple(a + 1j * normal(*a.shape, seed=9) if _real(a) else a for a in found.inputs)
        TABLE[key].samples.append(replace(found, label=f"{found.label}, complex", inputs=inputs))


def _real(a: Any) -> bool:
    return isinstance(a, (np.ndarray, np.generic)) and a.dtype == np.float64


def rng(seed: int = 0) -> np.random.Generator:
    """The numbers of the table are the same in every run."""
    return np.random.default_rng(seed)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal float64 numbers, no two nearly equal to each other or to 0 (kinks)."""
    values = rng(seed + sum(shape) + 17 * len(shape)).normal(size=shape)
    return values + 0.05 * np.sign(values)


def planar(*shape: int, seed: int = 0) -> np.ndarray:
    """Complex128 numbers with parts as those of ``normal``."""
    return normal(*shape, seed=seed) + 1j * normal(*shape, seed=seed + 100)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Uniform numbers in [0.5, 2)."""
    return rng(seed + sum(shape)).uniform(0.5, 2.0, size=shape)


def integers(*shape: int, low: int = 0, high: int = 10, seed: int = 0) -> np.ndarray:
    """Uniform int64 numbers in [low, high)."""
    return rng(seed + sum(shape)).integers(low, high, size=shape)


def masks(*shape: int, seed: int = 0) -> np.ndarray:
    """Random bools."""
    return rng(seed + sum(shape)).random(shape) < 0.5
