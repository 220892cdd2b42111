"""Layers that only move elements: flatten, pad, shuffle, fold, and resize."""

from typing import Any

from ..errors import ShapeError
from ..ops.record.args import ntuple
from ..tensor import Tensor
from . import functional as F
from .module import Module


class Flatten(Module):
    """Dimensions start_dim to end_dim as one.

    >>> fw.nn.Flatten()(fw.ones(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The flattened ``input``."""
        return input.flatten(self.start_dim, self.end_dim)  # type: ignore[attr-defined]

    def extra_repr(self) -> str:
        """The settings."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Dimension dim as several, of unflattened_size (one of them may be -1).

    >>> fw.nn.Unflatten(1, (3, 4))(fw.ones(2, 12)).shape
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten: dim must be an int, got {type(dim).__name__}")
        if not all(isinstance(s, int) for s in unflattened_size):
            raise TypeError(f"Unflatten: unflattened_size must be ints, got {unflattened_size!r}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """The unflattened ``input``."""
        return input.unflatten(self.dim, self.unflattened_size)  # type: ignore[attr-defined]

    def extra_repr(self) -> str:
        """The settings."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class _Pad(Module):
    """Padding of the last ``n`` dimensions: (left, right, top, bottom, ...), or one number for all."""

    n = 0
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = ntuple(padding, 2 * self.n, type(self).__name__, "padding")

    def forward(self, input: Tensor) -> Tensor:
        """The padded ``input``."""
        if self.mode == "circular" and input.ndim not in (self.n + 1, self.n + 2):
            raise ShapeError(f"{type(self).__name__}: wanted an input of {self.n + 1} or {self.n + 2} "
                             f"dimensions, got shape {list(input.shape)}")
        return F.pad(input, self.padding, mode=self.mode)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.padding}"


class ZeroPad1d(_Pad):
    """Zeros around the last dimension."""

    n = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two dimensions.

    >>> fw.nn.ZeroPad2d((1, 0, 0, 0))(fw.ones(1, 1, 1, 2))
    tensor([[[[0., 1., 1.]]]])
    """

    n = 2


class ZeroPad3d(_Pad):
    """Zeros around the last three dimensions."""

    n = 3


class _ConstantPad(_Pad):
    """A number around the last dimensions."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The padded ``input``."""
        return F.pad(input, self.padding, mode="constant", value=self.value)

    def extra_repr(self) -> str:
        """The settings."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A number around the last dimension.

    >>> fw.nn.ConstantPad1d(1, 7.0)(fw.ones(1, 1, 2))
    tensor([[[7., 1., 1., 7.]]])
    """

    n = 1


class ConstantPad2d(_ConstantPad):
    """A number around the last two dimensions."""

    n = 2


class ConstantPad3d(_ConstantPad):
    """A number around the last three dimensions."""

    n = 3


class ReflectionPad1d(_Pad):
    """The last dimension mirrored at its ends.

    >>> fw.nn.ReflectionPad1d(1)(fw.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[2., 1., 2., 3., 2.]]])
    """

    n = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """The last two dimensions mirrored at their ends."""

    n = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """The last three dimensions mirrored at their ends."""

    n = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The last dimension with its end values repeated.

    >>> fw.nn.ReplicationPad1d(1)(fw.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    n = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The last two dimensions with their end values repeated."""

    n = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """The last three dimensions with their end values repeated."""

    n = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """The last dimension continued from its other end.

    >>> fw.nn.CircularPad1d(1)(fw.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[3., 1., 2., 3., 1.]]])
    """

    n = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """The last two dimensions continued from their other ends."""

    n = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """The last three dimensions continued from their other ends."""

    n = 3
    mode = "circular"


class ChannelShuffle(Module):
    """The channels of ``groups`` groups of x (N, C, ...) taken in turn (Zhang et al. 2017)."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """The shuffled ``input``."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The settings."""
        return f"groups={self.groups}"


class PixelShuffle(Module):
    """(N, C*r*r, H, W) to (N, C, H*r, W*r): channels become pixels (Shi et al. 2016).

    >>> fw.nn.PixelShuffle(2)(fw.ones(1, 4, 2, 3)).shape
    (1, 1, 4, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The shuffled ``input``."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The settings."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(N, C, H*r, W*r) to (N, C*r*r, H, W): pixels become channels."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The unshuffled ``input``."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The settings."""
        return f"downscale_factor={self.downscale_factor}"


class Unfold(Module):
    """All windows of x (N, C, H, W) as columns: (N, C*kh*kw, L).

    >>> fw.nn.Unfold(2)(fw.ones(1, 1, 3, 3)).shape
    (1, 4, 4)
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns of ``input``."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The settings."""
        return (f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
                f"stride={self.stride}")


class Fold(Module):
    """The transpose of Unfold: columns (N, C*kh*kw, L) added into an image (N, C, *output_size).

    >>> fw.nn.Fold((3, 3), 2)(fw.ones(1, 4, 4))[0, 0]
    tensor([[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]])
    """

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
                 stride: Any = 1) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The image of the columns ``input``."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The settings."""
        return (f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
                f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}")


class Upsample(Module):
    """x (N, C, ...) resized to ``size`` or by ``scale_factor``.

    mode: nearest, linear, bilinear, bicubic, trilinear, as ``nn.functional.interpolate`` takes it.

    >>> fw.nn.Upsample(scale_factor=2)(fw.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> None:
        super().__init__()
        self.size = size
        self.scale_factor = (tuple(float(f) for f in scale_factor)
                             if isinstance(scale_factor, (tuple, list))
                             else float(scale_factor) if scale_factor else None)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The resized ``input``."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             self.recompute_scale_factor)

    def extra_repr(self) -> str:
        """The settings."""
        how = f"scale_factor={self.scale_factor}" if self.scale_factor is not None \
            else f"size={self.size}"
        return f"{how}, mode='{self.mode}'"


class UpsamplingNearest2d(Upsample):
    """x (N, C, H, W) resized, each pixel being its nearest."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """x (N, C, H, W) resized with straight lines between pixels, the corners' centres staying there."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
