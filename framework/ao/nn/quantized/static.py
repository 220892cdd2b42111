"""Layers of 8-bit numbers with a range of activations that was found beforehand."""

from .layers import QuantizedConv, QuantizedLinear


class Linear(QuantizedLinear):
    """``Linear`` of 8-bit numbers; ``input_scale`` and ``input_zero_point`` say what activations mean.

    x (..., in), y (..., out), both floating. ``framework.ao.quantization.convert`` makes them.

    >>> layer = fw.ao.nn.quantized.Linear.from_float(fw.nn.Linear(2, 1))
    >>> layer
    QuantizedLinear(in_features=2, out_features=1, bias=True, dtype=qint8, input_scale=1, input_zero_point=0)
    """

    def _get_name(self) -> str:
        return "QuantizedLinear"


class Conv1d(QuantizedConv):
    """``Conv1d`` of 8-bit numbers: x (n, c, l) or (c, l), floating.

    >>> fw.ao.nn.quantized.Conv1d(2, 3, 2)(fw.ones(2, 4)).shape
    (3, 3)
    """

    n = 1

    def _get_name(self) -> str:
        return "QuantizedConv1d"


class Conv2d(QuantizedConv):
    """``Conv2d`` of 8-bit numbers: x (n, c, h, w) or (c, h, w), floating.

    >>> fw.ao.nn.quantized.Conv2d(2, 3, 2)(fw.ones(1, 2, 4, 4)).shape
    (1, 3, 3, 3)
    """

    n = 2

    def _get_name(self) -> str:
        return "QuantizedConv2d"
