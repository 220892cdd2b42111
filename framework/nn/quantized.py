"""Sums and joins as modules, as quantizable models write them. Here they compute in floats."""

from ..ops.pointwise.activations import relu
from ..ops.shape.join import cat
from ..tensor import Tensor
from .module import Module

__all__ = ["FloatFunctional"]


class FloatFunctional(Module):
    """``add``, ``mul``, ``cat`` and the like as methods of a module.

    >>> fw.nn.quantized.FloatFunctional().add_relu(fw.tensor([-2., 1.]), fw.tensor([1., 1.]))
    tensor([0., 2.])
    """

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("FloatFunctional: call its methods (add, mul, cat, ...), not the module")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y of two tensors."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y of two tensors."""
        return x * y

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """The product of matrices."""
        return x @ y

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)."""
        return relu(x + y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """The tensors joined along a dimension."""
        return cat(x, dim)

    add_scalar, mul_scalar = add, mul
