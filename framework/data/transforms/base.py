"""What transforms share: how they are shown, where their random numbers come from, how they combine.

Every random number is drawn from the default generator, which the loader sets for each sample from
(seed, epoch, index): augmentation is the same for any number of workers, and after resuming.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...random import numpy_integers, numpy_permutation, uniform_number


def uniform(low: float, high: float) -> float:
    """A number drawn from [low, high)."""
    return low + (high - low) * uniform_number()


def integer(low: int, high: int) -> int:
    """A whole number drawn from [low, high], both possible."""
    return int(numpy_integers(low, high + 1, ()))


def chance(p: float) -> bool:
    """True with probability ``p``."""
    return uniform(0.0, 1.0) < p


def permutation(n: int) -> list[int]:
    """0 to n - 1 in drawn order."""
    return numpy_permutation(n).tolist()


def probability(p: Any, what: str) -> float:
    """``p`` if it is one, or a ValueError."""
    if not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise ValueError(f"{what}: p must be a number in [0, 1], got {p!r}")
    return float(p)


class Transform:
    """Something that takes an image and gives one; its settings are its attributes."""

    def __call__(self, img: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(img)")

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({settings})"


def _all_callable(transforms: Any, what: str) -> list[Callable]:
    if not isinstance(transforms, Sequence):
        raise TypeError(f"{what}: transforms must be a list of them, got {type(transforms).__name__}")
    for i, t in enumerate(transforms):
        if not callable(t):
            raise TypeError(f"{what}: transforms[{i}] is a {type(t).__name__}, which cannot be called")
    return list(transforms)


class _Several(Transform):
    def __init__(self, transforms: Sequence[Callable]) -> None:
        self.transforms = _all_callable(transforms, type(self).__name__)

    def __repr__(self) -> str:
        lines = "".join("\n    " + repr(t).replace("\n", "\n    ") for t in self.transforms)
        return f"{type(self).__name__}({lines}\n)"


class Compose(_Several):
    """Transforms one after the other.

    >>> fw.data.transforms.Compose([lambda x: x + 1, lambda x: x * 10])(2)
    30
    """

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img


class RandomApply(_Several):
    """All of the transforms with probability ``p``, else none."""

    def __init__(self, transforms: Sequence[Callable], p: float = 0.5) -> None:
        super().__init__(transforms)
        self.p = probability(p, "RandomApply")

    def __call__(self, img: Any) -> Any:
        if chance(self.p):
            for transform in self.transforms:
                img = transform(img)
        return img


class RandomChoice(_Several):
    """One of the transforms, drawn with weights ``p`` (equal by default)."""

    def __init__(self, transforms: Sequence[Callable], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        self.p = [1.0] * len(self.transforms) if p is None else list(p)
        if len(self.p) != len(self.transforms) or min(self.p, default=0) < 0 or not sum(self.p) > 0:
            raise ValueError(f"RandomChoice: wanted a weight for each of {len(self.transforms)} transforms, "
                             f"none negative and not all 0, got {p!r}")

    def __call__(self, img: Any) -> Any:
        place = uniform(0.0, sum(self.p))
        for transform, weight in zip(self.transforms, self.p):
            place -= weight
            if place < 0:
                return transform(img)
        return self.transforms[-1](img)


class RandomOrder(_Several):
    """All of the transforms, in drawn order."""

    def __call__(self, img: Any) -> Any:
        for i in permutation(len(self.transforms)):
            img = self.transforms[i](img)
        return img


class Lambda(Transform):
    """A function of yours as a transform; a lambda does not pickle, a named function does."""

    def __init__(self, lambd: Callable) -> None:
        if not callable(lambd):
            raise TypeError(f"Lambda: wanted a function, got {type(lambd).__name__}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)
