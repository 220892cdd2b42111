"""Linear maps."""

import math
from typing import Any

from ..creation import empty
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class Identity(Module):
    """Gives back its input; takes and ignores any arguments.

    >>> fw.nn.Identity()(fw.ones(1))
    tensor([1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """``input``"""
        return input


class Linear(Module):
    """``y = x w^T + b`` over the last dimension.

    x: (..., in), y: (..., out), weight: (out, in), bias: (out,); both start as
    U(-1/sqrt(in), 1/sqrt(in)).

    >>> fw.nn.Linear(3, 2)(fw.ones(5, 3)).shape
    (5, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        for name, value in (("in_features", in_features), ("out_features", out_features)):
            if not hasattr(value, "__index__"):
                remedy = "; divide sizes with // instead of /" if isinstance(value, float) else ""
                raise TypeError(f"Linear: {name}={value!r} must be an int{remedy}")
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        bound = 1.0 / math.sqrt(self.in_features) if self.in_features > 0 else 0.0
        init.uniform_(self.weight, -bound, bound)  # kaiming_uniform with a = sqrt(5)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """``input w^T + b``"""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The settings."""
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` that dynamic quantisation leaves alone: the output projection of PyTorch's attention is
    one."""


class Bilinear(Module):
    """``y_k = x1^T w_k x2 + b_k``.

    x1: (..., m), x2: (..., n), weight: (out, m, n), bias: (out,).

    >>> fw.nn.Bilinear(2, 3, 4)(fw.ones(5, 2), fw.ones(5, 3)).shape
    (5, 4)
    """

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be positive, got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device=device,
                                      dtype=dtype))
        self.register_parameter(
            "bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew: U(-1/sqrt(m), 1/sqrt(m))."""
        bound = 1.0 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """``input1^T w input2 + b``"""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The settings."""
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")
