"""Dropout: in training, elements or whole channels are set to 0 at random; in eval, nothing happens."""

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Dropout(Module):
    """The probability and its check."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not isinstance(p, (int, float)):
            raise TypeError(f"{type(self).__name__}: p must be a number, a probability in [0, 1], got "
                            f"{type(p).__name__} {p!r}")
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"{type(self).__name__}: p must be a probability in [0, 1], got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The settings."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Each element is 0 with probability p, the others are divided by 1 - p (Srivastava et al. 2014).

    >>> fw.nn.Dropout(0.5).eval()(fw.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """``input`` with elements dropped in training mode."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Whole channels of x (N, C, L) are 0 with probability p."""

    def forward(self, input: Tensor) -> Tensor:
        """``input`` with channels dropped in training mode."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Whole channels of x (N, C, H, W) are 0 with probability p."""

    def forward(self, input: Tensor) -> Tensor:
        """``input`` with channels dropped in training mode."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Whole channels of x (N, C, D, H, W) are 0 with probability p."""

    def forward(self, input: Tensor) -> Tensor:
        """``input`` with channels dropped in training mode."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for SELU networks (Klambauer et al. 2017)."""

    def forward(self, input: Tensor) -> Tensor:
        """``input`` with elements dropped in training mode."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """AlphaDropout of whole channels of x (N, C, ...)."""

    def forward(self, input: Tensor) -> Tensor:
        """``input`` with channels dropped in training mode."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
