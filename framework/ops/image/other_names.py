"""Other names and forms of this family's functions: pooling with indices, upsample, time first."""

import warnings
from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import real_arg, tensor_arg
from ..record.public import public
from .adaptive_pool import adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d
from .conv import conv1d
from .interpolate import interpolate
from .pixel_shuffle import channel_shuffle
from .pool import max_pool1d, max_pool2d, max_pool3d


@public("nn.functional")
def max_pool1d_with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                            dilation: Any = 1, ceil_mode: bool = False,
                            return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """``max_pool1d`` with ``return_indices=True``.

    >>> fw.nn.functional.max_pool1d_with_indices(fw.tensor([[1.0, 3.0]]), 2)
    (tensor([[3.]]), tensor([[1]]))
    """
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@public("nn.functional")
def max_pool2d_with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                            dilation: Any = 1, ceil_mode: bool = False,
                            return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """``max_pool2d`` with ``return_indices=True``.

    >>> fw.nn.functional.max_pool2d_with_indices(fw.tensor([[[1.0, 3.0]]]), (1, 2))
    (tensor([[[3.]]]), tensor([[[1]]]))
    """
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@public("nn.functional")
def max_pool3d_with_indices(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                            dilation: Any = 1, ceil_mode: bool = False,
                            return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """``max_pool3d`` with ``return_indices=True``.

    >>> fw.nn.functional.max_pool3d_with_indices(fw.tensor([[[[1.0, 3.0]]]]), (1, 1, 2))
    (tensor([[[[3.]]]]), tensor([[[[1]]]]))
    """
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@public("nn.functional")
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any,
                                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool1d`` with ``return_indices=True``.

    >>> fw.nn.functional.adaptive_max_pool1d_with_indices(fw.tensor([[1.0, 3.0]]), 1)
    (tensor([[3.]]), tensor([[1]]))
    """
    return adaptive_max_pool1d(input, output_size, True)


@public("nn.functional")
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any,
                                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool2d`` with ``return_indices=True``.

    >>> fw.nn.functional.adaptive_max_pool2d_with_indices(fw.tensor([[[1.0, 3.0]]]), 1)
    (tensor([[[3.]]]), tensor([[[1]]]))
    """
    return adaptive_max_pool2d(input, output_size, True)


@public("nn.functional")
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any,
                                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool3d`` with ``return_indices=True``.

    >>> fw.nn.functional.adaptive_max_pool3d_with_indices(fw.tensor([[[[1.0, 3.0]]]]), 1)
    (tensor([[[[3.]]]]), tensor([[[[1]]]]))
    """
    return adaptive_max_pool3d(input, output_size, True)


def _old(name: str) -> None:
    warnings.warn(f"nn.functional.{name} is deprecated; use nn.functional.interpolate", FutureWarning,
                  stacklevel=3)


@public("nn.functional")
def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """The old name of ``interpolate``, with a FutureWarning.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     fw.nn.functional.upsample(fw.ones(1, 1, 2), 3)
    tensor([[[1., 1., 1.]]])
    """
    _old("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@public("nn.functional")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with mode="nearest", with a FutureWarning.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     fw.nn.functional.upsample_nearest(fw.ones(1, 1, 2), scale_factor=2)
    tensor([[[1., 1., 1., 1.]]])
    """
    _old("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@public("nn.functional")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with mode="bilinear" and ``align_corners=True``, with a FutureWarning.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     fw.nn.functional.upsample_bilinear(fw.tensor([[[[0.0, 1.0]]]]), (1, 3))
    tensor([[[[0.0000, 0.5000, 1.0000]]]])
    """
    _old("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


@public("nn.functional")
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """``channel_shuffle``.

    >>> fw.nn.functional.native_channel_shuffle(fw.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    return channel_shuffle(input, groups)


@public("nn.functional")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """``conv1d`` over time, which comes first: input (t, n, c), weight (k, c, out), bias (out) ->
    (t + 2*pad - k + 1, n, out).

    >>> fw.nn.functional.conv_tbc(fw.ones(4, 1, 2), fw.ones(3, 2, 1), fw.zeros(1)).flatten()
    tensor([6., 6.])
    """
    x: Any = real_arg(input, "conv_tbc")
    w: Any = tensor_arg(weight, "conv_tbc", "weight")
    if x.ndim != 3 or w.ndim != 3:
        raise ShapeError(f"conv_tbc: wanted input (t, n, c) and weight (k, c, out), got {list(x.shape)} and "
                         f"{list(w.shape)}")
    return conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)  # type: ignore
