"""What a workload is, the one list of them, and what several of them share."""

import inspect
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

Loss = Callable[[], Any]


@dataclass
class Case:
    """A workload built for one module: what is timed, and what it computes.

    ``values`` takes what ``run`` returned and gives the arrays that must agree between modules. ``flops``
    counts the products of matrices and convolutions of one run; ``bytes`` counts each array that must be
    read or written once, in workloads that are bound by memory. ``calls`` divides the time.
    """

    run: Callable[[], Any]
    values: Callable[[Any], Iterable] = lambda result: [result]
    flops: float = 0
    bytes: float = 0
    calls: int = 1
    note: str = ""


@dataclass(frozen=True)
class Workload:
    """A named way to build a `Case` from a module; ``tiny`` are the sizes for tests.

    ``kinks``: rounding can tip a kink (a ReLU at 0) to its other side, which moves a few numbers a lot. Then
    modules must agree in float64 to rounding, and in float32 in the Euclidean norm.
    """

    name: str
    family: str
    what: str
    build: Callable[..., Case]
    tiny: dict[str, Any]
    sizes: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-3
    by_hand: Callable[..., Case] | None = None
    built_in: str = ""
    training: bool = False
    kinks: bool = False

    def cases(self, modules: list[ModuleType], tiny: bool = False) -> list[Case]:
        """One case per module; the built-in layer is used where all of the modules have it."""
        sizes = {**self.sizes, **(self.tiny if tiny else {})}
        if self.built_in:
            sizes["built_in"] = all(has(M, self.built_in) for M in modules)
        return [self.build(M, **sizes) for M in modules]

    def numpy_case(self, tiny: bool = False) -> Case | None:
        """The same work written by hand in NumPy, if the workload has that."""
        sizes = {**self.sizes, **(self.tiny if tiny else {})}
        return self.by_hand(**sizes) if self.by_hand else None


REGISTRY: dict[str, Workload] = {}


def workload(name: str = "", what: str = "", **settings: Any) -> Callable[[Callable], Callable]:
    """List a builder; its name and its first line of documentation name and describe the workload."""
    def register(build: Callable) -> Callable:
        called = name or build.__name__.replace("_", "-")
        if called in REGISTRY:
            raise ValueError(f"two workloads are named {called!r}")
        says = what or (inspect.getdoc(build) or "").partition("\n")[0].rstrip(".")
        family = build.__module__.rpartition(".")[2]
        REGISTRY[called] = Workload(called, family, says, build, **settings)
        return build
    return register


def has(M: ModuleType, path: str) -> bool:
    """Whether a module has a dotted name: ``has(torch, "nn.LSTM")``."""
    place: Any = M
    for part in path.split("."):
        place = getattr(place, part, None)
    return place is not None


# -- data and weights, the same for every module --------------------------------------------------


def normal(M: ModuleType, *shape: int, seed: int = 0, requires_grad: bool = False) -> Any:
    """Normal numbers of the default dtype, from NumPy's generator (float32 numbers in every case)."""
    numbers = np.asarray(np.random.default_rng(seed).standard_normal(shape, dtype=np.float32))
    x = M.from_numpy(numbers).to(M.get_default_device(), M.get_default_dtype())
    return x.requires_grad_() if requires_grad else x


def integers(M: ModuleType, high: int, *shape: int, seed: int = 0) -> Any:
    """int64 numbers below ``high``, from NumPy's generator."""
    return M.from_numpy(np.random.default_rng(seed).integers(0, high, shape)).to(M.get_default_device())


def fill(M: ModuleType, model: Any) -> Any:
    """Give every parameter numbers that depend on its name and shape only."""
    with M.no_grad():
        for name, p in model.named_parameters():
            p.copy_(M.from_numpy(weights(name, tuple(p.shape))))
    return model


def weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of the size that initialisation gives: 1/sqrt(inputs), about 1 for the scale of a norm."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    x = rng.standard_normal(shape, dtype=np.float32)
    if len(shape) > 1:
        return x / np.float32(np.sqrt(prod(shape[1:])))
    return np.float32(name.endswith("weight")) + x * np.float32(0.1)


# -- counting -------------------------------------------------------------------------------------


def forward_flops(M: ModuleType, model: Any, run: Callable[[], Any]) -> tuple[float, float]:
    """Flops of the model's linear layers and convolutions in one forward pass: (all of them, the first)."""
    found: list[float] = []

    def count(layer: Any, _: Any, out: Any) -> None:
        found.append(2.0 * prod(out.shape) * prod(layer.weight.shape[1:]))

    kinds = (M.nn.Linear, M.nn.Conv2d)
    hooks = [m.register_forward_hook(count) for m in model.modules() if isinstance(m, kinds)]
    with M.no_grad():
        run()
    for hook in hooks:
        hook.remove()
    return sum(found), found[0]


def training(M: ModuleType, model: Any, loss: Loss, optimizer: Any, *,
             forward: float, first: float = 0, note: str = "") -> Case:
    """A training step: zero_grad, loss, backward, step.

    Backward makes two products for each of ``forward``, but none for the data that enters the first layer.
    """
    def run() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    def values(value: Any) -> list:
        named = dict(model.named_parameters())
        return [value, *[named[k].grad for k in sorted(named)], *[named[k] for k in sorted(named)],
                *[b for _, b in sorted(model.named_buffers())]]
    return Case(run, values, flops=3 * forward - first, note=note)
