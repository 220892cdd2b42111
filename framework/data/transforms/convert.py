"""Transforms between pillow images, arrays and tensors, and of the values of tensors."""

from typing import Any

from ...dtypes import float32
from ...tensor import Tensor
from . import images as F
from .base import Transform


class ToTensor(Transform):
    """A pillow image or an array (H, W, C) of bytes as a float32 tensor (C, H, W) in [0, 1].

    >>> fw.data.transforms.ToTensor()(np.zeros((4, 5, 3), np.uint8)).shape
    (3, 4, 5)
    """

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)


class PILToTensor(Transform):
    """A pillow image as a tensor (C, H, W) of its own whole numbers."""

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)


class ToPILImage(Transform):
    """A tensor or an array as a pillow image; see ``functional.to_pil_image``."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)


class ConvertImageDtype(Transform):
    """Another dtype with the range scaled to it; see ``functional.convert_image_dtype``.

    >>> fw.data.transforms.ConvertImageDtype(fw.float32)(fw.tensor([[0, 255]], dtype=fw.uint8))
    tensor([[0., 1.]])
    """

    def __init__(self, dtype: Any = float32) -> None:
        self.dtype = dtype

    def __call__(self, img: Any) -> Tensor:
        return F.convert_image_dtype(img, self.dtype)


class Normalize(Transform):
    """(image - mean) / std of a floating tensor (..., C, H, W), one number of each per channel.

    >>> fw.data.transforms.Normalize([0.5], [0.25])(fw.ones(1, 1, 2))
    tensor([[[2., 2.]]])
    """

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, tensor: Any) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self.inplace)
