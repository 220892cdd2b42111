"""What the relaxed distributions share: a relaxed draw of unbounded numbers, squeezed into probabilities."""

from typing import Any

from ..tensor import Tensor
from .transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """The temperature and the parameters are those of the distribution before the squeezing."""

    has_rsample = True

    @property
    def temperature(self) -> Any:
        """How far from a discrete draw it is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The probabilities' logarithms, of a coin ``log(p / (1 - p))``."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes, of a coin that of success."""
        return self.base_dist.probs
