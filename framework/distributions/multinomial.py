"""The multinomial distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution, _size

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each class came in ``total_count`` draws with probabilities in proportion to ``probs`` (...,
    n).

    Probability: ``total_count! prod p_i**x_i / x_i!``.

    >>> d = fw.distributions.Multinomial(2, probs=fw.ones(2))
    >>> d.log_prob(fw.tensor([1.0, 1.0]))
    tensor(-0.6931)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: total_count must be one int for the whole batch")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = _size(batch_shape)
        new = self._get_checked_instance(Multinomial, _instance)
        new._categorical = self._categorical.expand(shape)
        return self._expanded(new, shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """Counts that sum to total_count."""
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities, which sum to 1."""
        return self._categorical.probs

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of ``probs`` and ``logits``."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            shape = self._extended_shape(sample_shape)
            picked = self._categorical.sample((self.total_count, *_size(sample_shape))).movedim(0, -1)
            counts = self.probs.new_zeros(shape)
            return counts.scatter_add(-1, picked, self.probs.new_ones(picked.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = fw.broadcast_tensors(self.logits, value)
        impossible = (value == 0) & (logits == -fw.inf)  # 0 log 0 is 0
        return ((value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
                + (logits.masked_fill(impossible, 0.0) * value).sum(-1))

    def entropy(self) -> Tensor:
        """``n H(p) - log n! + sum of E[log x_i!]``, x_i binomial."""
        n = self.total_count
        x = fw.arange(1, n + 1, dtype=self.probs.dtype, device=self.probs.device)
        x = x.reshape((n, *[1] * self.probs.ndim))
        whole = fw.tensor(float(n), dtype=self.probs.dtype, device=self.probs.device)
        ways = (whole + 1).lgamma() - (x + 1).lgamma() - (whole - x + 1).lgamma()
        chance = (ways + fw.xlogy(x, self.probs) + fw.special.xlog1py(whole - x, -self.probs)).exp()
        beyond = (chance * (x + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - (whole + 1).lgamma() + beyond
