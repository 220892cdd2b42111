"""What the transforms do to one image: a pillow image, or a tensor (..., C, H, W).

Pillow images stay pillow images and keep their mode; tensors keep dtype and device, and floating ones
can be differentiated through. Sizes are (height, width). Nothing here is random.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from ...backends import move
from ...config import need
from ...dtypes import bool_, float32, int64
from ...errors import DTypeError, ShapeError
from ...ops.convert.cast import to
from ...ops.image.pad import pad as pad_op
from ...ops.linalg.matmul import matmul
from ...ops.shape.arrange import flip
from ...tensor import Tensor, wrap

FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5, "lanczos": 1}
DRAFT_GAP = 2.0  # a JPEG is decoded at the smallest scale that is still this many times the wanted size


class InterpolationMode(StrEnum):
    """The names of the filters, which may as well be given as text."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def pillow(purpose: str) -> Any:
    """The module PIL.Image, or an error that names the extra."""
    return need("PIL.Image", "images", purpose)


def is_pillow(image: Any) -> bool:
    """Whether this is a pillow image; pillow is not imported to tell."""
    return any(kind.__module__.startswith("PIL.") for kind in type(image).__mro__)


def checked(image: Any, what: str) -> Any:
    """``image`` if it is one: a pillow image or a tensor of at least two dimensions."""
    if isinstance(image, Tensor):
        if image.ndim < 2:
            raise ShapeError(f"{what}: an image tensor has the shape (..., C, H, W), got {list(image.shape)}")
    elif not is_pillow(image):
        raise TypeError(f"{what}: wanted a pillow image or a Tensor, got {type(image).__name__}; "
                        f"ToPILImage() and ToTensor() convert arrays")
    return image


def size_of(image: Any) -> tuple[int, int]:
    """(height, width)."""
    height, width = image.shape[-2:] if isinstance(image, Tensor) else image.size[::-1]
    return height, width


def channels_of(image: Any) -> int:
    """How many colour channels an image has."""
    if isinstance(image, Tensor):
        return 1 if image.ndim == 2 else image.shape[-3]
    return len(image.getbands())


def filter_number(interpolation: str, what: str) -> int:
    """Pillow's number of a filter's name."""
    if interpolation not in FILTERS:
        raise ValueError(f"{what}: interpolation must be one of {', '.join(map(repr, FILTERS))}, got "
                         f"{interpolation!r}")
    return FILTERS[interpolation]


# -- between pillow and tensors ------------------------------------------------------------------


def pil_to_tensor(pic: Any) -> Tensor:
    """The pixels of a pillow image as a tensor (C, H, W), in the image's own whole numbers."""
    return wrap(np.array(_planes(pic, "pil_to_tensor")))


def _planes(image: Any, what: str) -> np.ndarray:
    """Pixels as (C, H, W), a view."""
    if not is_pillow(image):
        raise TypeError(f"{what}: wanted a pillow image, got {type(image).__name__}")
    array = np.asarray(image)
    if array.dtype == np.bool_:  # mode "1"
        array = array.astype(np.uint8) * 255
    elif array.dtype == np.uint16:
        array = array.astype(np.int32)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def to_tensor(pic: Any) -> Tensor:
    """float32 (C, H, W) in [0, 1] from a pillow image or an array (H, W) or (H, W, C) of bytes.

    Arrays and images of other numbers (modes "I", "F"; float arrays) keep their values.

    >>> fw.data.transforms.functional.to_tensor(np.full((1, 2, 3), 51, np.uint8)).shape
    (3, 1, 2)
    """
    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ShapeError(f"to_tensor: an array must be (H, W) or (H, W, C), got {list(pic.shape)}")
        planes = pic[None] if pic.ndim == 2 else pic.transpose(2, 0, 1)
    else:
        planes = _planes(pic, "to_tensor")
    if planes.dtype == np.uint8:
        return wrap(np.divide(planes, np.float32(255), out=np.empty(planes.shape, np.float32)))
    return wrap(np.array(planes, order="C"))


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A pillow image from a tensor (C, H, W) or (H, W), or an array (H, W) or (H, W, C).

    A tensor's floating values are taken as [0, 1] and become bytes, rounded down. mode: pillow's name;
    by default L, LA, RGB or RGBA for 1 to 4 channels of bytes, I or F for one of int32 or float32.
    """
    Image = pillow("to_pil_image")
    array = pic
    if isinstance(pic, Tensor) and pic.ndim in (2, 3):
        planes = pic.detach().cpu().numpy()  # type: ignore[attr-defined]
        if planes.dtype.kind == "f" and mode != "F":
            planes = (planes * 255).clip(0, 255).astype(np.uint8)
        array = planes if planes.ndim == 2 else planes.transpose(1, 2, 0)
    if not isinstance(array, np.ndarray) or array.ndim not in (2, 3):
        raise TypeError(f"to_pil_image: wanted a Tensor or an array of 2 or 3 dimensions, got "
                        f"{type(pic).__name__}{list(getattr(pic, 'shape', ()))}")
    count = 1 if array.ndim == 2 else array.shape[2]
    if count > 4 or array.dtype not in (np.uint8, np.int32, np.float32) or (
            count > 1 and array.dtype != np.uint8):
        raise DTypeError(f"to_pil_image: pillow has no image of {count} channels of {array.dtype}; wanted 1 "
                         f"to 4 of uint8, or one of int32 or float32")
    flat = array[:, :, 0] if array.ndim == 3 and count == 1 else array
    made = Image.fromarray(np.ascontiguousarray(flat))
    return made if mode in (None, made.mode) else made.convert(mode)


def convert_image_dtype(image: Any, dtype: Any = float32) -> Tensor:
    """Another dtype, scaled so that the full range stays the full range: 255 of uint8 becomes 1.0.

    Floating values outside [0, 1] are clamped on the way to whole numbers.
    """
    source = image.dtype
    if source is dtype:
        return image
    if source.is_floating_point and dtype.is_floating_point:
        return to(image, dtype)
    if dtype.is_floating_point:
        return to(image, dtype) / top_of(source)  # type: ignore[operator]
    if source.is_floating_point:
        return to(image.clamp(0, 1) * (top_of(dtype) + 1 - 1e-3), dtype)
    high, low = top_of(source) + 1, top_of(dtype) + 1
    wide: Any = to(image, int64)
    return to(wide // (high // low) if high > low else wide * (low // high), dtype)


def top_of(dtype: Any) -> int:
    """The brightest value of an image of this dtype."""
    whole = not dtype.is_floating_point and dtype is not bool_
    return int(np.iinfo(dtype.numpy).max) if whole else 1


# -- geometry ------------------------------------------------------------------------------------


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """The part of this place and size; what lies outside the image is 0."""
    if not isinstance(img, Tensor):
        return img.crop((left, top, left + width, top + height))
    h, w = size_of(img)
    outside = (max(-left, 0), max(left + width - w, 0), max(-top, 0), max(top + height - h, 0))
    part = img[..., max(top, 0):max(top + height, 0), max(left, 0):max(left + width, 0)]  # type: ignore[index]
    return pad_op(part, outside) if any(outside) else part


def center_crop(img: Any, output_size: Sequence[int]) -> Any:
    """The middle part of (height, width); smaller images are surrounded with 0."""
    (h, w), (height, width) = size_of(img), output_size
    return crop(img, round((h - height) / 2), round((w - width) / 2), height, width)


def hflip(img: Any) -> Any:
    """Left and right exchanged."""
    return flip(img, (-1,)) if isinstance(img, Tensor) else img.transpose(0)


def vflip(img: Any) -> Any:
    """Top and bottom exchanged."""
    return flip(img, (-2,)) if isinstance(img, Tensor) else img.transpose(1)


def sides(padding: Any, what: str) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) from one number, two (sides, top and bottom) or four."""
    values = [padding] if isinstance(padding, int) else list(padding)
    if len(values) not in (1, 2, 4):
        raise ValueError(f"{what}: padding must be 1, 2 or 4 numbers, got {padding!r}")
    left, top, right, bottom = values * (4 // len(values))
    return left, top, right, bottom


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """More pixels around: ``fill``, or from the image by "edge", "reflect" or "symmetric".

    padding: one number, (left and right, top and bottom) or (left, top, right, bottom).
    """
    left, top, right, bottom = sides(padding, "pad")
    widths = ((top, bottom), (left, right))
    if padding_mode != "constant":
        return _pad_by_index(img, widths, padding_mode)
    if isinstance(img, Tensor):
        return pad_op(img, (left, right, top, bottom), value=fill)
    from PIL import ImageOps
    return ImageOps.expand(img, (left, top, right, bottom), fill=_colour(fill, img))


def _colour(fill: Any, img: Any) -> Any:
    """One number as the same in every channel; pillow would set only the first."""
    bands = len(img.getbands())
    return (fill,) * bands if bands > 1 and isinstance(fill, (int, float)) else fill


def _pad_by_index(img: Any, widths: Any, padding_mode: str) -> Any:
    """Padding from the image itself: every new row and column is a copy of an old one."""
    rows, columns = (np.pad(np.arange(n), w, mode=padding_mode) for n, w in zip(size_of(img), widths))  # type: ignore[call-overload]
    if isinstance(img, Tensor):
        take = [wrap(move(places, img.device)) for places in (rows, columns)]
        return img.index_select(-2, take[0]).index_select(-1, take[1])  # type: ignore[attr-defined]
    made = pillow("pad").fromarray(np.asarray(img)[rows][:, columns])
    if img.mode == "P":
        made.putpalette(img.getpalette())
    return made


def draft(image: Any, size: Sequence[int], part: Sequence[int] | None = None) -> float:
    """Let an undecoded JPEG be decoded at 1/2, 1/4 or 1/8 where that is enough for (height, width).

    part: only this (height, width) of the image will be shrunk to ``size``. Returns the scale that
    pixel coordinates must be multiplied with from here on. Other images are left alone.
    """
    if getattr(image, "format", None) != "JPEG":
        return 1.0
    before = image.size
    whole = size_of(image) if part is None else part
    shrink = max(1.0, min(whole[0] / size[0], whole[1] / size[1]) / DRAFT_GAP)
    image.draft(None, (int(before[0] / shrink), int(before[1] / shrink)))
    return image.size[0] / before[0]


def resize(img: Any, size: Any, interpolation: str = "bilinear", max_size: int | None = None,
           antialias: bool = True) -> Any:
    """Another (height, width), by pillow's filters; ``antialias`` concerns tensors.

    size: one number is that of the shorter side, and the proportions are kept; the longer side is then at
    most ``max_size``. Shrinking with antialias widens the filter, so that every pixel counts; without,
    values are taken at points. Tensors know "nearest", "bilinear" and "bicubic".
    """
    h, w = size_of(img)
    target = _proportional(h, w, size, max_size) if isinstance(size, int) else size
    return resized_crop(img, 0, 0, h, w, target, interpolation, antialias)


def _proportional(h: int, w: int, size: int, max_size: int | None) -> tuple[int, int]:
    """(height, width) whose shorter side is ``size``."""
    short, long = min(h, w), max(h, w)
    small, large = size, int(size * long / short)
    if max_size is not None and large > max_size:
        small, large = int(max_size * small / large), max_size
    return (small, large) if h <= w else (large, small)


def resized_crop(img: Any, top: int, left: int, height: int, width: int, size: Sequence[int],
                 interpolation: str = "bilinear", antialias: bool = True) -> Any:
    """``crop`` and then ``resize``, in one step."""
    number = filter_number(interpolation, "resize")
    if not isinstance(img, Tensor):
        if (height, width) == tuple(size):
            whole = (top, left) == (0, 0) and size_of(img) == (height, width)
            return img if whole else crop(img, top, left, height, width)
        scale = draft(img, size, (height, width))
        box = tuple(scale * edge for edge in (left, top, left + width, top + height))
        box = (box[0], box[1], min(box[2], img.size[0]), min(box[3], img.size[1]))
        return img.resize((size[1], size[0]), number, box=box)
    part: Any = crop(img, top, left, height, width)
    if (height, width) == tuple(size):
        return part
    wide = part if part.dtype.is_floating_point else to(part, float32)
    rows, columns = (wrap(move(_weights(old, new, interpolation, antialias).astype(wide.dtype.numpy),
                               img.device)) for old, new in zip((height, width), size))
    return _as_before(matmul(matmul(rows, wide), columns.transpose(0, 1)), img)  # type: ignore[attr-defined]


def _weights(old: int, new: int, interpolation: str, antialias: bool) -> np.ndarray:
    """The matrix (new, old) that resizes one axis: pillow's filter at every new pixel's centre."""
    scale = old / new
    centres = (np.arange(new) + 0.5) * scale
    if interpolation == "nearest":
        return np.eye(old)[np.minimum(centres.astype(int), old - 1)]
    if interpolation not in ("bilinear", "bicubic"):
        raise ValueError(f"resize: a tensor is resized by 'nearest', 'bilinear' or 'bicubic', got "
                         f"{interpolation!r}; use a pillow image")
    stretch = max(scale, 1.0) if antialias else 1.0
    if not antialias:  # the edge pixel goes on outside
        reach = 2 if interpolation == "bicubic" else 1
        places = np.floor(centres - 0.5)[:, None] + np.arange(1 - reach, reach + 1)
        values = _filter(places + 0.5 - centres[:, None], interpolation, -0.75)
        matrix = np.zeros((new, old))
        np.add.at(matrix, (np.arange(new)[:, None], places.clip(0, old - 1).astype(int)), values)
        return matrix
    matrix = _filter((np.arange(old) + 0.5 - centres[:, None]) / stretch, interpolation, -0.5)
    return matrix / matrix.sum(1, keepdims=True)


def _filter(x: np.ndarray, interpolation: str, a: float) -> np.ndarray:
    """The triangle, or R. Keys' cubic with parameter ``a`` ("Cubic convolution interpolation", 1981)."""
    x = abs(x)
    if interpolation == "bilinear":
        return np.maximum(1 - x, 0)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _as_before(values: Any, image: Tensor) -> Any:
    """Computed floating values in the image's dtype, rounded and clamped for whole numbers."""
    if image.dtype.is_floating_point:
        return to(values, image.dtype)
    return to(values.round().clamp(0, top_of(image.dtype)), image.dtype)


def rotate(img: Any, angle: float, interpolation: str = "nearest", expand: bool = False,
           center: Sequence[float] | None = None, fill: Any = 0) -> Any:
    """Turned counter-clockwise by ``angle`` degrees; new corners are ``fill``.

    center: (x, y) from the upper left corner, the middle by default. expand: the result holds all of
    the image. Tensors know "nearest" and "bilinear".
    """
    number = filter_number(interpolation, "rotate")
    if not isinstance(img, Tensor):
        middle = None if center is None else tuple(center)
        return img.rotate(angle, number, expand, middle, fillcolor=_colour(fill, img))
    h, w = size_of(img)
    x0, y0 = (w / 2, h / 2) if center is None else center
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    if expand:
        height = math.ceil(round(abs(w * sin) + abs(h * cos), 9))
        width = math.ceil(round(abs(w * cos) + abs(h * sin), 9))
    else:
        height, width = h, w
    shift = ((w - width) / 2, (h - height) / 2) if expand else (0.0, 0.0)
    y, x = np.mgrid[0:height, 0:width].astype(float)
    x, y = x + 0.5 + shift[0] - x0, y + 0.5 + shift[1] - y0
    return sample(img, sin * x + cos * y + y0 - 0.5, cos * x - sin * y + x0 - 0.5, interpolation, fill)


def sample(img: Tensor, y: np.ndarray, x: np.ndarray, interpolation: str, fill: Any = 0) -> Tensor:
    """The values of an image tensor at points (y, x), ``fill`` outside."""
    if interpolation == "nearest":
        return _taken(img, np.floor(y + 0.5), np.floor(x + 0.5), fill)
    if interpolation != "bilinear":
        raise ValueError(f"rotate: a tensor is sampled by 'nearest' or 'bilinear', got {interpolation!r}")
    top, left = np.floor(y), np.floor(x)
    source: Any = img if img.dtype.is_floating_point else to(img, float32)
    total: Any = 0
    for i in (0, 1):
        for j in (0, 1):
            weight = (1 - abs(y - top - i)) * (1 - abs(x - left - j))
            share = wrap(move(weight.astype(source.dtype.numpy), img.device))
            total = total + _taken(source, top + i, left + j, fill) * share
    return _as_before(total, img)


def _taken(img: Any, y: np.ndarray, x: np.ndarray, fill: Any) -> Any:
    h, w = size_of(img)
    inside = (y >= 0) & (y < h) & (x >= 0) & (x < w)
    rows, columns = (wrap(move(a.clip(0, n - 1).astype(np.int64), img.device)) for a, n in ((y, h), (x, w)))
    return img[..., rows, columns].masked_fill(wrap(move(~inside, img.device)), fill)


# -- values --------------------------------------------------------------------------------------


def normalize(tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Tensor:
    """(image - mean) / std, one number of each per channel."""
    if not isinstance(tensor, Tensor) or not tensor.dtype.is_floating_point:
        raise TypeError(f"normalize: wanted a floating Tensor, got "
                        f"{tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__}; put "
                        f"ToTensor() or ConvertImageDtype() before it")
    shift, scale = (per_channel(v, tensor, "normalize", name) for v, name in ((mean, "mean"), (std, "std")))
    if not scale._array.all():
        raise ValueError(f"normalize: std has a 0 in {scale._array.ravel().tolist()}; every channel needs "
                         f"one that is not 0")
    if inplace:
        return tensor.sub_(shift).div_(scale)  # type: ignore[attr-defined]
    return (tensor - shift) / scale  # type: ignore[operator]


def per_channel(values: Any, image: Tensor, what: str, name: str) -> Tensor:
    """Numbers for the channels of an image, shaped to broadcast."""
    array = np.asarray(values, image.dtype.numpy).reshape(-1, 1, 1)
    if len(array) not in (1, channels_of(image)):
        raise ShapeError(f"{what}: {name} has {len(array)} numbers, the image has {channels_of(image)} "
                         f"channels (shape {list(image.shape)})")
    return wrap(move(array, image.device))


def erase(img: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Tensor:
    """The rectangle of height h and width w at row i, column j overwritten with ``v``; a copy by default."""
    out = img if inplace else img.clone()
    out[..., i:i + h, j:j + w] = v
    return out
