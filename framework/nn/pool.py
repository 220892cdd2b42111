"""Pooling layers: the largest or the mean of each window."""

from typing import Any

from ..ops.args import pair
from ..tensor import Tensor
from . import functional as F
from .module import Module


class _MaxPool(Module):
    """The largest element of each window."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _arguments(self) -> dict[str, Any]:
        return {"kernel_size": self.kernel_size, "stride": self.stride, "padding": self.padding,
                "dilation": self.dilation, "ceil_mode": self.ceil_mode,
                "return_indices": self.return_indices}

    def extra_repr(self) -> str:
        """The settings."""
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class MaxPool1d(_MaxPool):
    """The largest of each window of x (N, C, L); stride is the window's length by default.

    >>> fw.nn.MaxPool1d(2)(fw.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
    tensor([[[3., 2.]]])
    """

    def forward(self, input: Tensor) -> Any:
        """The pooled tensor; with return_indices, also where the largest were."""
        return F.max_pool1d(input, **self._arguments())


class MaxPool2d(_MaxPool):
    """The largest of each window of x (N, C, H, W).

    >>> fw.nn.MaxPool2d(2)(fw.ones(1, 1, 4, 6)).shape
    (1, 1, 2, 3)
    """

    def forward(self, input: Tensor) -> Any:
        """The pooled tensor; with return_indices, also where the largest were."""
        return F.max_pool2d(input, **self._arguments())


class MaxPool3d(_MaxPool):
    """The largest of each window of x (N, C, D, H, W)."""

    def forward(self, input: Tensor) -> Any:
        """The pooled tensor; with return_indices, also where the largest were."""
        return F.max_pool3d(input, **self._arguments())


class AvgPool1d(Module):
    """The mean of each window of x (N, C, L).

    >>> fw.nn.AvgPool1d(2)(fw.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
    tensor([[[2., 1.]]])
    """

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size = pair(kernel_size, 1, "AvgPool1d", "kernel_size")
        self.stride = self.kernel_size if stride is None else pair(stride, 1, "AvgPool1d", "stride")
        self.padding = pair(padding, 1, "AvgPool1d", "padding")
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)

    def extra_repr(self) -> str:
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    """The mean of each window of several dimensions."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def extra_repr(self) -> str:
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of x (N, C, H, W); divisor_override replaces the window's size.

    >>> fw.nn.AvgPool2d(2)(fw.ones(1, 1, 4, 6)).shape
    (1, 1, 2, 3)
    """

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.avg_pool2d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad, self.divisor_override)


class AvgPool3d(_AvgPool):
    """The mean of each window of x (N, C, D, H, W); divisor_override replaces the window's size."""

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.avg_pool3d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad, self.divisor_override)


class _AdaptivePool(Module):
    """Pooling whose windows follow from the wanted size."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The settings."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means over windows that split x (N, C, L) into output_size parts.

    >>> fw.nn.AdaptiveAvgPool1d(1)(fw.tensor([[[1.0, 3.0]]]))
    tensor([[[2.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means over windows that split x (N, C, H, W) into output_size; None keeps a size."""

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means over windows that split x (N, C, D, H, W) into output_size; None keeps a size."""

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPool(_AdaptivePool):
    """Adaptive pooling that takes the largest."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest of windows that split x (N, C, L) into output_size parts."""

    def forward(self, input: Tensor) -> Any:
        """The pooled tensor; with return_indices, also where the largest were."""
        return F.adaptive_max_pool1d(input, self.output_size, return_indices=self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest of windows that split x (N, C, H, W) into output_size; None keeps a size."""

    def forward(self, input: Tensor) -> Any:
        """The pooled tensor; with return_indices, also where the largest were."""
        return F.adaptive_max_pool2d(input, self.output_size, return_indices=self.return_indices)
