"""Pooling layers: the largest or the mean of each window."""

from typing import Any

from ..ops.record.args import ntuple
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


class AvgPool1d(_AvgPool):
    """The mean of each window of x (N, C, L).

    >>> fw.nn.AvgPool1d(2)(fw.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
    tensor([[[2., 1.]]])
    """

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        kernel = ntuple(kernel_size, 1, "AvgPool1d", "kernel_size")
        super().__init__(kernel, kernel if stride is None else ntuple(stride, 1, "AvgPool1d", "stride"),
                         ntuple(padding, 1, "AvgPool1d", "padding"), ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)


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


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest of windows that split x (N, C, D, H, W) into output_size; None keeps a size."""

    def forward(self, input: Tensor) -> Any:
        """The pooled tensor; with return_indices, also where the largest were."""
        return F.adaptive_max_pool3d(input, self.output_size, return_indices=self.return_indices)


class _PowerPool(Module):
    """The p-norm of each window, p being norm_type."""

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        """The settings."""
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"ceil_mode={self.ceil_mode}")


class LPPool1d(_PowerPool):
    """``(sum of x^p)^(1/p)`` of each window of x (N, C, L), p being norm_type.

    >>> fw.nn.LPPool1d(2, 2)(fw.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_PowerPool):
    """``(sum of x^p)^(1/p)`` of each window of x (N, C, H, W), p being norm_type."""

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_PowerPool):
    """``(sum of x^p)^(1/p)`` of each window of x (N, C, D, H, W), p being norm_type."""

    def forward(self, input: Tensor) -> Tensor:
        """The pooled tensor."""
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _MaxUnpool(Module):
    """Max pooling undone: zeros but at the places of the largest."""

    n = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = ntuple(kernel_size, self.n, name, "kernel_size")
        self.stride = self.kernel_size if stride is None else ntuple(stride, self.n, name, "stride")
        self.padding = ntuple(padding, self.n, name, "padding")

    def extra_repr(self) -> str:
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Zeros with x (N, C, L) at the places that MaxPool1d with return_indices gave.

    >>> y, places = fw.nn.MaxPool1d(2, return_indices=True)(fw.tensor([[[1.0, 3.0]]]))
    >>> fw.nn.MaxUnpool1d(2)(y, places)
    tensor([[[0., 3.]]])
    """

    n = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The tensor before pooling, as far as it is known."""
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpool):
    """Zeros with x (N, C, H, W) at the places that MaxPool2d with return_indices gave."""

    n = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The tensor before pooling, as far as it is known."""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpool):
    """Zeros with x (N, C, D, H, W) at the places that MaxPool3d with return_indices gave."""

    n = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The tensor before pooling, as far as it is known."""
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(Module):
    """The largest element of windows at random places that give a wanted size."""

    n = 0
    _random_samples: Tensor | None

    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> None:
        super().__init__()
        op = type(self).__name__
        self.kernel_size = ntuple(kernel_size, self.n, op, "kernel_size")
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{op}: exactly one of output_size and output_ratio is wanted, got "
                             f"{'neither' if output_size is None else 'both'}")
        self.output_size = None if output_size is None else ntuple(output_size, self.n, op, "output_size")
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * self.n
        self.output_ratio = None if output_ratio is None else tuple(ratios)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"{op}: output_ratio must be between 0 and 1, got {output_ratio}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def _settings(self) -> tuple:
        return self.kernel_size, self.output_size, self.output_ratio, self.return_indices, \
            self._random_samples


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of windows at random places, drawn anew in every call, in evaluation, too.

    x (N, C, H, W) or (C, H, W); the size of the result is output_size, or output_ratio of the input's
    (Graham 2015).

    >>> fw.nn.FractionalMaxPool2d(2, output_ratio=0.75)(fw.ones(1, 1, 8, 8)).shape
    (1, 1, 6, 6)
    """

    n = 2

    def forward(self, input: Tensor) -> Any:
        """The largest element of each window."""
        return F.fractional_max_pool2d(input, *self._settings())


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest element of windows at random places of x (N, C, D, H, W); see FractionalMaxPool2d."""

    n = 3

    def forward(self, input: Tensor) -> Any:
        """The largest element of each window."""
        return F.fractional_max_pool3d(input, *self._settings())
