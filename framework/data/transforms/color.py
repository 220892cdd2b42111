"""Brightness, contrast, saturation, hue and gray: functions, and transforms that draw their strength."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtypes import float32
from ...errors import ShapeError
from ...ops.convert.cast import to
from ...ops.reduce.extremes import amax, amin
from ...ops.reduce.sums import mean
from ...ops.shape.join import stack
from ...tensor import Tensor
from .base import Transform, chance, permutation, probability, uniform
from .images import channels_of, checked, top_of

_GRAY = (0.2989, 0.587, 0.114)  # ITU-R BT.601


def _floating(image: Any) -> Any:
    return image if image.dtype.is_floating_point else to(image, float32)


def _blend(image: Any, other: Any, factor: float) -> Any:
    """``factor`` of the image and the rest of the other, within the range of the image's dtype."""
    return to((_floating(image) * factor + other * (1.0 - factor)).clamp(0, top_of(image.dtype)),
              image.dtype)


def _enhanced(image: Any, kind: str, factor: float) -> Any:
    from PIL import ImageEnhance
    return getattr(ImageEnhance, kind)(image).enhance(factor)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """0 is black, 1 the image itself, 2 twice as bright."""
    if isinstance(img, Tensor):
        return _blend(img, 0.0, brightness_factor)
    return _enhanced(img, "Brightness", brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """0 is the mean gray everywhere, 1 the image itself, 2 twice the distance from it."""
    if not isinstance(img, Tensor):
        return _enhanced(img, "Contrast", contrast_factor)
    gray = _floating(img) if channels_of(img) == 1 else _gray(img)
    return _blend(img, mean(gray, (-3, -2, -1) if img.ndim > 2 else None, keepdim=True), contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """0 is gray, 1 the image itself, 2 twice as colourful."""
    if not isinstance(img, Tensor):
        return _enhanced(img, "Color", saturation_factor)
    return img if channels_of(img) == 1 else _blend(img, _gray(img), saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """The hue turned by ``hue_factor`` of the full circle, in [-0.5, 0.5]; gray images have none."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue: hue_factor must be in [-0.5, 0.5], got {hue_factor!r}")
    if channels_of(img) == 1:
        return img
    if not isinstance(img, Tensor):
        return _turned_pillow(img, hue_factor)
    scale = top_of(img.dtype)
    turned = _turned(_floating(img) / scale, hue_factor) * scale
    return to(turned if img.dtype.is_floating_point else turned.round(), img.dtype)


def _turned_pillow(image: Any, hue_factor: float) -> Any:
    from PIL import Image
    if image.mode in ("L", "1", "I", "F"):
        return image
    bands = list(image.convert("HSV").split())
    hue = (np.asarray(bands[0], np.int16) + int(hue_factor * 255)).astype(np.uint8)
    bands[0] = Image.fromarray(hue)
    return Image.merge("HSV", bands).convert(image.mode)


def _turned(image: Any, turn: float) -> Any:
    """RGB in [0, 1] with its hue turned, by the hexcone model (A. R. Smith, SIGGRAPH 1978).

    A channel of hue h, value v and chroma c is v - c * clamp(min(k, 4 - k), 0, 1), k = (n + 6 h) mod 6
    with n = 5, 3, 1 for red, green and blue.
    """
    red, green, blue = image[..., 0, :, :], image[..., 1, :, :], image[..., 2, :, :]
    high, low = amax(image, -3), amin(image, -3)
    chroma = high - low  # type: ignore[operator]
    safe = chroma + (chroma == 0)
    sector = ((high == red) * ((green - blue) / safe)
              + ((high == green) & (high != red)) * ((blue - red) / safe + 2.0)
              + ((high != green) & (high != red)) * ((red - green) / safe + 4.0))
    hue = sector + 6.0 * turn
    parts = []
    for n in (5.0, 3.0, 1.0):
        k = (hue + n) % 6.0
        parts.append(high - chroma * k.minimum(4.0 - k).clamp(0, 1))
    return stack(parts, -3)


def _gray(image: Any) -> Any:
    """One gray channel of an RGB tensor, floating."""
    if channels_of(image) != 3:
        raise ShapeError(f"to_grayscale: wanted 1 or 3 channels, got shape {list(image.shape)}")
    wide = _floating(image)
    gray = sum(w * wide[..., i, :, :] for i, w in enumerate(_GRAY)).unsqueeze(-3)
    return gray if image.dtype.is_floating_point else gray.round()


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """0.2989 R + 0.587 G + 0.114 B, in one channel or the same in three."""
    if num_output_channels not in (1, 3):
        raise ValueError(f"to_grayscale: num_output_channels must be 1 or 3, got {num_output_channels!r}")
    if not isinstance(img, Tensor):
        gray = img.convert("L")
        return gray if num_output_channels == 1 else gray.convert("RGB")
    gray = img if channels_of(img) == 1 else to(_gray(img), img.dtype)
    return gray if num_output_channels == 1 else gray.expand(*gray.shape[:-3], 3, *gray.shape[-2:])


def _range(value: Any, name: str, centre: float = 1.0, low: float = 0.0, high: float = float("inf")) -> Any:
    """A strength as (lowest, highest): a number x means centre - x to centre + x."""
    if isinstance(value, Sequence):
        found = tuple(float(v) for v in value)
    elif value < 0:
        raise ValueError(f"ColorJitter: {name} must not be negative, got {value!r}")
    else:
        found = (max(centre - value, low), centre + value)
    if len(found) != 2 or not low <= found[0] <= found[1] <= high:
        raise ValueError(f"ColorJitter: {name} must be a number, or two in order from {low} to {high}, got "
                         f"{value!r}")
    return None if found == (centre, centre) else found


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed by drawn factors, in drawn order.

    brightness, contrast, saturation: x draws a factor from [max(0, 1 - x), 1 + x], a pair from itself.
    hue: x draws from [-x, x], at most 0.5; a pair from itself.
    """

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0) -> None:
        self.brightness = _range(brightness, "brightness")
        self.contrast = _range(contrast, "contrast")
        self.saturation = _range(saturation, "saturation")
        self.hue = _range(hue, "hue", 0.0, -0.5, 0.5)

    def __call__(self, img: Any) -> Any:
        steps = [(adjust_brightness, self.brightness), (adjust_contrast, self.contrast),
                 (adjust_saturation, self.saturation), (adjust_hue, self.hue)]
        image = checked(img, "ColorJitter")
        for i in permutation(4):
            adjust, bounds = steps[i]
            if bounds is not None:
                image = adjust(image, uniform(*bounds))
        return image


class Grayscale(Transform):
    """``functional.to_grayscale`` of every image."""

    def __init__(self, num_output_channels: int = 1) -> None:
        self.num_output_channels = num_output_channels

    def __call__(self, img: Any) -> Any:
        return to_grayscale(checked(img, "Grayscale"), self.num_output_channels)


class RandomGrayscale(Transform):
    """Gray with probability ``p``, in as many channels as the image had."""

    def __init__(self, p: float = 0.1) -> None:
        self.p = probability(p, "RandomGrayscale")

    def __call__(self, img: Any) -> Any:
        image = checked(img, "RandomGrayscale")
        return to_grayscale(image, channels_of(image)) if chance(self.p) else image
