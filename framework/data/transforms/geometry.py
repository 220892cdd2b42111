"""Transforms of size and place: resize, crop, flip, pad, rotate, erase."""

import math
from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError
from ...random import normal_array
from ...tensor import Tensor, wrap
from . import images as F
from .base import Transform, chance, integer, probability, uniform


def height_width(size: Any, what: str) -> tuple[int, int]:
    """(height, width) from one number or two, or a ValueError."""
    values = [size] if isinstance(size, int) else list(size) if isinstance(size, Sequence) else []
    if len(values) not in (1, 2) or any(not isinstance(v, int) or v <= 0 for v in values):
        raise ValueError(f"{what}: size must be a positive int or two of them (height, width), got {size!r}")
    return (values[0], values[-1])


def interval(value: Any, what: str, name: str) -> tuple[float, float]:
    """Two numbers in order, or a ValueError."""
    found = tuple(value) if isinstance(value, Sequence) else ()
    if len(found) != 2 or not found[0] <= found[1]:
        raise ValueError(f"{what}: {name} must be two numbers, the smaller one first, got {value!r}")
    return (float(found[0]), float(found[1]))


class Resize(Transform):
    """To a size: (height, width), or a number for the smaller side with the proportions kept.

    max_size: where ``size`` is a number, the longer side is at most this. interpolation: "nearest",
    "bilinear", "bicubic"; for pillow images also "box", "hamming", "lanczos". An undecoded JPEG is
    decoded at reduced scale, at least twice the wanted size, which takes a fraction of the time.
    """

    def __init__(self, size: Any, interpolation: str = "bilinear", max_size: int | None = None,
                 antialias: bool = True) -> None:
        self.size = size if isinstance(size, int) else height_width(size, "Resize")
        height_width(size, "Resize")
        self.interpolation = interpolation
        F.filter_number(interpolation, "Resize")
        if max_size is not None and (not isinstance(size, int) or max_size <= size):
            raise ValueError(f"Resize: max_size={max_size!r} goes with one smaller number as size, got "
                             f"{size!r}")
        self.max_size = max_size
        self.antialias = antialias

    def __call__(self, img: Any) -> Any:
        image = F.checked(img, "Resize")
        return F.resize(image, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """The middle part of a size; smaller images are surrounded with 0."""

    def __init__(self, size: Any) -> None:
        self.size = height_width(size, "CenterCrop")

    def __call__(self, img: Any) -> Any:
        return F.center_crop(F.checked(img, "CenterCrop"), self.size)


class Pad(Transform):
    """More pixels around: ``fill``, or with padding_mode "edge", "reflect" or "symmetric" from the image.

    padding: one number, (left and right, top and bottom) or (left, top, right, bottom).
    """

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        self.padding = F.sides(padding, "Pad")
        self.fill = fill
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ValueError(f"Pad: padding_mode must be 'constant', 'edge', 'reflect' or 'symmetric', got "
                             f"{padding_mode!r}")
        self.padding_mode = padding_mode

    def __call__(self, img: Any) -> Any:
        return F.pad(F.checked(img, "Pad"), self.padding, self.fill, self.padding_mode)


class RandomCrop(Transform):
    """A part of a size at a drawn place, after ``padding`` as in ``Pad``.

    pad_if_needed: images smaller than the size are padded to it; without it they raise ShapeError.
    """

    def __init__(self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0,
                 padding_mode: str = "constant") -> None:
        self.size = height_width(size, "RandomCrop")
        self.padding = None if padding is None else F.sides(padding, "RandomCrop")
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = Pad(0, fill, padding_mode).padding_mode

    def __call__(self, img: Any) -> Any:
        image = F.checked(img, "RandomCrop")
        if self.padding is not None:
            image = F.pad(image, self.padding, self.fill, self.padding_mode)
        (h, w), (height, width) = F.size_of(image), self.size
        if self.pad_if_needed and (h < height or w < width):
            more = (max(width - w, 0), max(height - h, 0))
            image = F.pad(image, (*more, *more), self.fill, self.padding_mode)
            h, w = F.size_of(image)
        if h < height or w < width:
            raise ShapeError(f"RandomCrop: size {self.size} does not fit into an image of {(h, w)}; pass "
                             f"pad_if_needed=True, or Resize() first")
        return F.crop(image, integer(0, h - height), integer(0, w - width), height, width)


class RandomResizedCrop(Transform):
    """A drawn part, by its share of the area and its proportions, resized to a size.

    scale: bounds of the share. ratio: bounds of width / height, drawn evenly in the logarithm. After ten
    parts that do not fit the middle one is taken. Undecoded JPEGs as in ``Resize``.

    C. Szegedy et al., "Going deeper with convolutions", 2014.
    """

    def __init__(self, size: Any, scale: Any = (0.08, 1.0), ratio: Any = (3 / 4, 4 / 3),
                 interpolation: str = "bilinear", antialias: bool = True) -> None:
        self.size = height_width(size, "RandomResizedCrop")
        self.scale = interval(scale, "RandomResizedCrop", "scale")
        self.ratio = interval(ratio, "RandomResizedCrop", "ratio")
        if self.scale[0] < 0 or self.ratio[0] <= 0:
            raise ValueError(f"RandomResizedCrop: scale={scale!r} must not be negative and ratio={ratio!r} "
                             f"must be positive")
        self.interpolation = interpolation
        F.filter_number(interpolation, "RandomResizedCrop")
        self.antialias = antialias

    def __call__(self, img: Any) -> Any:
        image = F.checked(img, "RandomResizedCrop")
        return F.resized_crop(image, *self._part(*F.size_of(image)), self.size, self.interpolation,
                              self.antialias)

    def _part(self, h: int, w: int) -> tuple[int, int, int, int]:
        """(top, left, height, width)"""
        for _ in range(10):
            area = h * w * uniform(*self.scale)
            shape = math.exp(uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            width, height = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < width <= w and 0 < height <= h:
                return integer(0, h - height), integer(0, w - width), height, width
        height = min(h, round(w / self.ratio[0]))
        width = min(w, round(h * self.ratio[1]))
        return (h - height) // 2, (w - width) // 2, height, width


class RandomHorizontalFlip(Transform):
    """Left and right exchanged with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = probability(p, "RandomHorizontalFlip")

    def __call__(self, img: Any) -> Any:
        image = F.checked(img, "RandomHorizontalFlip")
        return F.hflip(image) if chance(self.p) else image


class RandomVerticalFlip(Transform):
    """Top and bottom exchanged with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = probability(p, "RandomVerticalFlip")

    def __call__(self, img: Any) -> Any:
        image = F.checked(img, "RandomVerticalFlip")
        return F.vflip(image) if chance(self.p) else image


class RandomRotation(Transform):
    """Turned by an angle drawn from ``degrees``: x means -x to x, a pair itself.

    The other settings are those of ``functional.rotate``.
    """

    def __init__(self, degrees: Any, interpolation: str = "nearest", expand: bool = False,
                 center: Any = None, fill: Any = 0) -> None:
        if not isinstance(degrees, Sequence) and degrees < 0:
            raise ValueError(f"RandomRotation: degrees must not be negative as one number, got {degrees!r}")
        self.degrees = interval(degrees if isinstance(degrees, Sequence) else (-degrees, degrees),
                                "RandomRotation", "degrees")
        self.interpolation = interpolation
        F.filter_number(interpolation, "RandomRotation")
        self.expand, self.center, self.fill = expand, center, fill

    def __call__(self, img: Any) -> Any:
        image = F.checked(img, "RandomRotation")
        return F.rotate(image, uniform(*self.degrees), self.interpolation, self.expand, self.center,
                        self.fill)


class RandomErasing(Transform):
    """With probability ``p`` a drawn rectangle of a tensor is overwritten.

    scale: bounds of its share of the area. ratio: bounds of height / width, drawn evenly in the
    logarithm. value: a number, one per channel, or "random" for normal noise. Nothing is erased if ten
    rectangles did not fit.

    Z. Zhong et al., "Random erasing data augmentation", 2017.
    """

    def __init__(self, p: float = 0.5, scale: Any = (0.02, 0.33), ratio: Any = (0.3, 3.3),
                 value: Any = 0, inplace: bool = False) -> None:
        self.p = probability(p, "RandomErasing")
        self.scale = interval(scale, "RandomErasing", "scale")
        self.ratio = interval(ratio, "RandomErasing", "ratio")
        if self.scale[0] < 0 or self.scale[1] > 1 or self.ratio[0] <= 0:
            raise ValueError(f"RandomErasing: scale={scale!r} must be in [0, 1] and ratio={ratio!r} positive")
        if isinstance(value, str) and value != "random":
            raise ValueError(f"RandomErasing: value must be a number, one per channel or 'random', got "
                             f"{value!r}")
        self.value = value
        self.inplace = inplace

    def __call__(self, img: Any) -> Any:
        if not isinstance(img, Tensor) or img.ndim < 3:
            raise TypeError(f"RandomErasing: wanted a Tensor (..., C, H, W), got {type(img).__name__}; put "
                            f"ToTensor() before it")
        if not chance(self.p):
            return img
        h, w = F.size_of(img)
        for _ in range(10):
            area = h * w * uniform(*self.scale)
            shape = math.exp(uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            height, width = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < height < h and 0 < width < w:
                top, left = integer(0, h - height), integer(0, w - width)
                return F.erase(img, top, left, height, width, self._fill(img, height, width), self.inplace)
        return img

    def _fill(self, image: Tensor, height: int, width: int) -> Any:
        if self.value == "random":
            return wrap(normal_array((image.shape[-3], height, width), image.dtype.numpy, image.device))
        if isinstance(self.value, Sequence):
            return F.per_channel(self.value, image, "RandomErasing", "value")
        return self.value
