"""Convolutions and their transposes; one class for all dimensions, a thin one for each."""

import math
from typing import Any

from ..creation import empty
from ..errors import ShapeError
from ..ops.record.args import ntuple
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share: settings, parameters, their start and their text."""

    n = 0  # spatial dimensions
    transposed = False
    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
                 output_padding: Any, dilation: Any, groups: int, bias: bool, padding_mode: str,
                 device: Any, dtype: Any) -> None:
        super().__init__()
        op = type(self).__name__
        self._check(op, in_channels, out_channels, groups, padding, stride, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = ntuple(kernel_size, self.n, op, "kernel_size")
        self.stride = ntuple(stride, self.n, op, "stride")
        self.padding = padding if isinstance(padding, str) else ntuple(padding, self.n, op, "padding")
        self.dilation = ntuple(dilation, self.n, op, "dilation")
        self.output_padding = ntuple(output_padding, self.n, op, "output_padding")
        self.groups = groups
        self.padding_mode = padding_mode
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _check(self, op: str, in_channels: int, out_channels: int, groups: int, padding: Any,
               stride: Any, padding_mode: str) -> None:
        if groups <= 0:
            raise ValueError(f"{op}: groups must be positive, got {groups}")
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{op}: in_channels={in_channels} and out_channels={out_channels} must be "
                             f"multiples of groups={groups}")
        if padding_mode not in _MODES or (self.transposed and padding_mode != "zeros"):
            raise ValueError(f"{op}: padding_mode must be one of "
                             f"{_MODES[:1] if self.transposed else _MODES}, got {padding_mode!r}")
        if isinstance(padding, str):
            if self.transposed or padding not in ("same", "valid"):
                raise ValueError(f"{op}: padding must be ints{'' if self.transposed else ', same or valid'}"
                                 f", got {padding!r}")
            if padding == "same" and any(s != 1 for s in ntuple(stride, self.n, op, "stride")):
                raise ValueError(f"{op}: padding='same' needs stride=1, got {stride}")

    def reset_parameters(self) -> None:
        """Draw weight and bias anew: U(-1/sqrt(k), 1/sqrt(k)), k inputs per output element."""
        fan_in = init.fans(self.weight)[0]
        bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
        init.uniform_(self.weight, -bound, bound)  # kaiming_uniform with a = sqrt(5)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """The settings that differ from the defaults."""
        n = self.n
        text = (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}")
        for name, default in (("padding", (0,) * n), ("dilation", (1,) * n),
                              ("output_padding", (0,) * n), ("groups", 1)):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class _Conv(_ConvNd):
    """A convolution over ``n`` spatial dimensions."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, 0, dilation, groups,
                         bias, padding_mode, device, dtype)

    def _borders(self) -> list[int]:
        """The padding as F.pad takes it: last dimension first, before and after."""
        borders: list[int] = []
        for i in reversed(range(self.n)):
            if isinstance(self.padding, str):
                total = self.dilation[i] * (self.kernel_size[i] - 1) if self.padding == "same" else 0
                borders += [total // 2, total - total // 2]
            else:
                borders += [self.padding[i]] * 2
        return borders

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        return self._borders()

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of ``input``."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with this weight and bias, for subclasses that make them."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._borders(), mode=self.padding_mode), 0
        return self._function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def _function(self, *args: Any) -> Tensor:
        raise NotImplementedError


class Conv1d(_Conv):
    """Convolution over a sequence: x (N, C_in, L), weight (C_out, C_in/groups, K), y (N, C_out, L').

    ``L' = (L + 2*padding - dilation*(K-1) - 1) // stride + 1``; padding may be "same" or "valid";
    padding_mode: zeros, reflect, replicate or circular.

    >>> fw.nn.Conv1d(2, 4, 3)(fw.ones(1, 2, 8)).shape
    (1, 4, 6)
    """

    n = 1

    def _function(self, *args: Any) -> Tensor:
        return F.conv1d(*args)


class Conv2d(_Conv):
    """Convolution over an image: x (N, C_in, H, W), weight (C_out, C_in/groups, Kh, Kw),
    y (N, C_out, H', W'); sizes as in Conv1d.

    >>> fw.nn.Conv2d(3, 8, 3, padding=1)(fw.ones(1, 3, 5, 5)).shape
    (1, 8, 5, 5)
    """

    n = 2

    def _function(self, *args: Any) -> Tensor:
        return F.conv2d(*args)


class Conv3d(_Conv):
    """Convolution over a volume: x (N, C_in, D, H, W), y (N, C_out, D', H', W')."""

    n = 3

    def _function(self, *args: Any) -> Tensor:
        return F.conv3d(*args)


class _ConvTranspose(_ConvNd):
    """The transpose of a convolution: the map that takes its output's gradient to its input's."""

    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
                 dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, output_padding,
                         dilation, groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution of ``input``; output_size chooses among the sizes that fit."""
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return self._function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
                              self.dilation)

    def _function(self, *args: Any) -> Tensor:
        raise NotImplementedError

    def _extra(self, x: Tensor, output_size: Any) -> tuple[int, ...]:
        """The output_padding that gives ``output_size``."""
        n, op = self.n, type(self).__name__
        wanted = tuple(output_size)[-n:]
        smallest = tuple((x.shape[x.ndim - n + i] - 1) * self.stride[i] - 2 * int(self.padding[i])
                         + self.dilation[i] * (self.kernel_size[i] - 1) + 1 for i in range(n))
        extra = tuple(w - s for w, s in zip(wanted, smallest))
        if len(wanted) != n or any(not 0 <= e < s for e, s in zip(extra, self.stride)):
            largest = tuple(s + t - 1 for s, t in zip(smallest, self.stride))
            raise ShapeError(f"{op}: output_size={tuple(output_size)} cannot be had from an input of shape "
                             f"{list(x.shape)}; it must be from {smallest} to {largest}")
        return extra


class ConvTranspose1d(_ConvTranspose):
    """x (N, C_in, L), weight (C_in, C_out/groups, K), y (N, C_out, L');
    ``L' = (L-1)*stride - 2*padding + dilation*(K-1) + output_padding + 1``.

    >>> fw.nn.ConvTranspose1d(2, 4, 3, stride=2)(fw.ones(1, 2, 4)).shape
    (1, 4, 9)
    """

    n = 1

    def _function(self, *args: Any) -> Tensor:
        return F.conv_transpose1d(*args)


class ConvTranspose2d(_ConvTranspose):
    """x (N, C_in, H, W), weight (C_in, C_out/groups, Kh, Kw), y (N, C_out, H', W').

    >>> fw.nn.ConvTranspose2d(2, 4, 3, stride=2)(fw.ones(1, 2, 4, 4)).shape
    (1, 4, 9, 9)
    """

    n = 2

    def _function(self, *args: Any) -> Tensor:
        return F.conv_transpose2d(*args)


class ConvTranspose3d(_ConvTranspose):
    """x (N, C_in, D, H, W), weight (C_in, C_out/groups, Kd, Kh, Kw), y (N, C_out, D', H', W')."""

    n = 3

    def _function(self, *args: Any) -> Tensor:
        return F.conv_transpose3d(*args)
