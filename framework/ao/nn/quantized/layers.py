"""What layers of 8-bit numbers share: weights with a scale for each output, and how they come from floats."""

from typing import Any

from .... import nn
from ....autograd.mode import no_grad
from ....creation import zeros
from ....dtypes import float32, int8, uint8
from ....errors import DTypeError
from ....memory_formats import channels_last
from ....ops.image.conv import batched
from ....ops.image.int8 import int8_conv
from ....ops.linalg.int8 import int8_linear
from ....ops.record.args import tensor_arg
from ....tensor import Tensor


def quantized_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    """int8 numbers and the scale of each output: ``w = scale[o] * q[o]``, the largest of a row is 127.

    weight: (out, ...), floating. Raises ValueError where a number is inf or nan.
    """
    with no_grad():
        w: Any = weight.detach().to(float32)
        size = w.reshape(w.shape[0], -1).abs().amax(1) if w.numel() else zeros(w.shape[0])
        if not bool(size.isfinite().all()):
            raise ValueError("the weight has numbers that are inf or nan")
        scale = size / 127
        scale = scale.where(scale > 0, scale * 0 + 1)
        q = (w / scale.reshape(-1, *(1,) * (w.ndim - 1))).round().to(int8)
    return q, scale


class Quantized(nn.Module):
    """A layer of int8 weights. It cannot be trained: there are no parameters, and no derivatives.

    State: ``weight`` int8 (out, ...), ``weight_scale`` float32 (out), ``bias`` float32 (out) or None; where
    the range of activations is known ``input_scale`` and ``input_zero_point``, tensors of no dimensions.
    """

    weight: Tensor
    weight_scale: Tensor
    bias: Tensor | None
    input_scale: Tensor
    input_zero_point: Tensor
    dynamic = False

    def _set_up(self, shape: tuple[int, ...], bias: bool) -> None:
        self.register_buffer("weight", zeros(shape, dtype=int8))
        self.register_buffer("weight_scale", zeros(shape[0]) + 1)
        self.register_buffer("bias", zeros(shape[0]) if bias else None)
        if not self.dynamic:
            self.register_buffer("input_scale", zeros(()) + 1)
            self.register_buffer("input_zero_point", zeros((), dtype=uint8))

    def _take(self, weight: Tensor, bias: Tensor | None) -> None:
        """The weights of a layer of floats."""
        self.weight, self.weight_scale = quantized_weight(weight)
        if bias is not None:
            self.bias = bias.detach().to(float32).clone()

    def _floating(self, x: Tensor) -> Tensor:
        if not tensor_arg(x, self._get_name()).dtype.is_floating_point:
            raise DTypeError(
                f"{self._get_name()}: the input must be floating, got {x.dtype}; the layer takes floats, and "
                f"quantises them itself"
            )
        return x

    def _range(self) -> dict[str, Any]:
        """The settings of the operation that say how activations are quantised."""
        if self.dynamic:
            return {"input_scale": None, "input_zero": 0}
        return {
            "input_scale": float(self.input_scale._array),
            "input_zero": int(self.input_zero_point._array),
        }

    def _range_text(self) -> str:
        if self.dynamic:
            return "dtype=qint8, activations=dynamic"
        found = self._range()
        return f"dtype=qint8, input_scale={found['input_scale']:.6g}, input_zero_point={found['input_zero']}"


class QuantizedLinear(Quantized):
    """``y = x w^T + b`` of 8-bit numbers: x (..., in) and y (..., out) are floating."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._set_up((out_features, in_features), bias)

    @classmethod
    def from_float(cls, mod: Any) -> "QuantizedLinear":
        """The layer of 8-bit numbers next to a ``Linear``, or to what gives one by ``as_linear()``."""
        mod = mod.as_linear() if hasattr(mod, "as_linear") else mod
        made = cls(mod.in_features, mod.out_features, mod.bias is not None)
        made._take(mod.weight, mod.bias)
        return made

    def forward(self, input: Tensor) -> Tensor:
        return int8_linear.run(
            self._floating(input), self.weight, self.weight_scale, self.bias, **self._range()
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, "
            f"{self._range_text()}"
        )


class QuantizedConv(Quantized):
    """A convolution of 8-bit numbers, with zeros as padding; input and output are floating."""

    n = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        kind: Any = (nn.Conv1d, nn.Conv2d)[self.n - 1]  # which checks the settings
        like = kind(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, device="meta"
        )
        for name in ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups"):
            setattr(self, name, getattr(like, name))
        self._set_up(tuple(like.weight.shape), bias)

    @classmethod
    def from_float(cls, mod: Any) -> "QuantizedConv":
        """The layer of 8-bit numbers next to a convolution. ValueError for padding other than zeros."""
        if mod.padding_mode != "zeros" or isinstance(mod.padding, str):
            raise ValueError(
                f"padding={mod.padding!r} with padding_mode={mod.padding_mode!r} is not offered in 8-bit "
                f"numbers; give the padding as numbers, of zeros"
            )
        made = cls(
            mod.in_channels,
            mod.out_channels,
            mod.kernel_size,
            mod.stride,
            mod.padding,
            mod.dilation,
            mod.groups,
            mod.bias is not None,
        )
        made._take(mod.weight, mod.bias)
        if cls.n == 2:  # as the kernel reads it
            made.weight = made.weight.contiguous(memory_format=channels_last)  # type: ignore[attr-defined]
        return made

    def forward(self, input: Tensor) -> Tensor:
        x, alone = batched(self._floating(input), self.n, self._get_name())
        y = int8_conv.run(
            x,
            self.weight,
            self.weight_scale,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
            **self._range(),
        )
        return y.squeeze(0) if alone else y

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, groups={self.groups}, "
            f"bias={self.bias is not None}, {self._range_text()}"
        )
