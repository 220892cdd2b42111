"""Linear layers and convolutions of 8-bit numbers that quantise activations on the fly."""

from ..layers import QuantizedConv, QuantizedLinear


class Linear(QuantizedLinear):
    """``Linear`` of 8-bit weights, activations quantised on the fly: x (..., in), y (..., out), floating.

    >>> fw.ao.nn.quantized.dynamic.Linear.from_float(fw.nn.Linear(2, 1))
    DynamicQuantizedLinear(in_features=2, out_features=1, bias=True, dtype=qint8, activations=dynamic)
    """

    dynamic = True

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"


class Conv1d(QuantizedConv):
    """``Conv1d`` of 8-bit weights, activations quantised on the fly.

    >>> fw.ao.nn.quantized.dynamic.Conv1d(2, 3, 2)(fw.ones(2, 4)).shape
    (3, 3)
    """

    n, dynamic = 1, True

    def _get_name(self) -> str:
        return "DynamicQuantizedConv1d"


class Conv2d(QuantizedConv):
    """``Conv2d`` of 8-bit weights, activations quantised on the fly.

    >>> fw.ao.nn.quantized.dynamic.Conv2d(2, 3, 2)(fw.ones(1, 2, 4, 4)).shape
    (1, 3, 3, 3)
    """

    n, dynamic = 2, True

    def _get_name(self) -> str:
        return "DynamicQuantizedConv2d"
