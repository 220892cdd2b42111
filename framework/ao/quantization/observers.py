"""Observers: modules that see numbers go by, and tell the scale and zero point that suit them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...autograd.mode import no_grad
from ...creation import zeros
from ...dtypes import float32, uint8
from ...nn import Module
from ...ops.linalg.int8 import scale_of
from ...tensor import Tensor
from ..nn.quantized.layers import quantized_weight


class MinMaxObserver(Module):
    """The range of all numbers seen, for activations: unsigned 8-bit numbers of one scale and zero point.

    >>> seen = fw.ao.quantization.MinMaxObserver()
    >>> _ = seen(fw.tensor([-1.0, 4.1]))
    >>> seen.calculate_qparams()
    (tensor(0.0200), tensor(50, dtype=framework.uint8))
    """

    min_val: Tensor
    max_val: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("min_val", zeros(()) + float("inf"))
        self.register_buffer("max_val", zeros(()) - float("inf"))

    def forward(self, x: Tensor) -> Tensor:
        """``x`` itself. Raises ValueError where a number is inf or nan."""
        if x.numel():
            with no_grad():
                low, high = x.detach().to(float32).aminmax()  # type: ignore[attr-defined]
                if not bool((high - low).isfinite()):
                    raise ValueError("MinMaxObserver: the numbers to calibrate by hold inf or nan")
                self._take(low, high)
        return x

    def _take(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(self.min_val.minimum(low))  # type: ignore[attr-defined]
        self.max_val.copy_(self.max_val.maximum(high))  # type: ignore[attr-defined]

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale (float32) and zero point (uint8). Raises RuntimeError if nothing was seen."""
        low, high = self.min_val.item(), self.max_val.item()
        if low > high:
            raise RuntimeError(
                f"{type(self).__name__} has seen no numbers; run the prepared model on some data "
                f"before convert"
            )
        scale, zero = scale_of(np, np.float32(low), np.float32(high))
        return zeros(()) + float(scale), zeros((), dtype=uint8) + int(zero)

    def extra_repr(self) -> str:
        """What was seen."""
        return f"min_val={self.min_val.item():.6g}, max_val={self.max_val.item():.6g}"


class MovingAverageMinMaxObserver(MinMaxObserver):
    """A running mean of each batch's range, which single outliers move less than they move the range of all.

    ``low <- low + averaging_constant (min(x) - low)``, the largest likewise; starts at the first batch.
    """

    def __init__(self, averaging_constant: float = 0.01) -> None:
        super().__init__()
        self.averaging_constant = averaging_constant

    def _take(self, low: Tensor, high: Tensor) -> None:
        first = self.min_val.item() > self.max_val.item()
        for seen, now in ((self.min_val, low), (self.max_val, high)):
            seen.copy_(now if first else seen + self.averaging_constant * (now - seen))  # type: ignore[attr-defined]


class PerChannelMinMaxObserver(Module):
    """The scale of each output of a weight: signed 8-bit numbers, 0 at 0."""

    def forward(self, x: Tensor) -> Tensor:
        """``x`` itself."""
        _, self.scale = quantized_weight(x)
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scales (out), and zeros."""
        return self.scale, self.scale * 0


class QConfig(NamedTuple):
    """How a part of a model is quantised: what makes the observer of its activations, and of its weights.

    weight: always `PerChannelMinMaxObserver`, the only one that there are kernels for.
    """

    activation: Callable[[], Module]
    weight: Callable[[], Module] = PerChannelMinMaxObserver


default_qconfig = QConfig(MinMaxObserver)


def get_default_qconfig(backend: str = "x86") -> QConfig:
    """Ranges of all numbers seen, weights with a scale for each output; the same for every processor.

    backend: "x86", "fbgemm", "qnnpack" or "onednn", as PyTorch names them. Raises ValueError for others.

    >>> fw.ao.quantization.get_default_qconfig().activation()
    MinMaxObserver(min_val=inf, max_val=-inf)
    """
    if backend not in ("x86", "fbgemm", "qnnpack", "onednn"):
        raise ValueError(
            f"get_default_qconfig: backend must be 'x86', 'fbgemm', 'qnnpack' or 'onednn', got {backend!r}"
        )
    return default_qconfig
