"""The Kullback-Leibler divergence between kinds: ``-H(p) - E[log q(x)]``, x of p.

The second term needs a few expectations over p only, which stand here by the kind of p. Where p gives numbers
that q cannot, the divergence is infinite.
"""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .distribution import Distribution
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

# -- expectations over p ---------------------------------------------------------------------------


def _mean_log(p: Any) -> Tensor:
    """``E[log x]``."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (fw.xlogy(p.high, p.high) - fw.xlogy(p.low, p.low)) / (p.high - p.low) - 1  # uniform


def _mean_log_rest(p: Any) -> Tensor:
    """``E[log(1 - x)]``, x in [0, 1]: of a beta distribution or a uniform one."""
    if isinstance(p, Beta):
        return p.concentration0.digamma() - (p.concentration1 + p.concentration0).digamma()
    return _mean_log(Uniform(1 - p.high, 1 - p.low, validate_args=False))


def _mean_decay(p: Any, t: Tensor) -> Tensor:
    """``E[exp(-t x)]``."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate + t)
    if isinstance(p, Gamma):
        return (p.rate / (p.rate + t)) ** p.concentration
    if isinstance(p, Normal):
        return (-t * p.loc + 0.5 * (t * p.scale).square()).exp()
    if isinstance(p, Gumbel):
        return (-t * p.loc + (1 + t * p.scale).lgamma()).exp()
    return ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low))  # uniform


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    like = next(v for v in vars(p).values() if isinstance(v, Tensor))
    shape = fw.broadcast_shapes(p.batch_shape, q.batch_shape)
    return fw.full(shape, fw.inf, dtype=like.dtype, device=like.device)


# -- the kinds of q --------------------------------------------------------------------------------


@register_kl(Exponential, Exponential)
@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
@register_kl(Uniform, Exponential)
def _to_exponential(p: Any, q: Exponential) -> Tensor:
    result = -p.entropy() - q.rate.log() + q.rate * p.mean
    return fw.where(p.low < 0, fw.inf, result) if isinstance(p, Uniform) else result


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
@register_kl(Pareto, Gamma)
@register_kl(Uniform, Gamma)
def _to_gamma(p: Any, q: Gamma) -> Tensor:
    a, b = q.concentration, q.rate
    result = -p.entropy() + a.lgamma() - a * b.log() - (a - 1) * _mean_log(p) + b * p.mean
    return fw.where(p.low < 0, fw.inf, result) if isinstance(p, Uniform) else result


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Any, q: Normal) -> Tensor:
    far = (p.variance + (p.mean - q.loc).square()) / q.scale.square()
    result = -p.entropy() + q.scale.log() + 0.5 * math.log(2 * math.pi) + 0.5 * far
    return fw.where(p.alpha <= 2, fw.inf, result) if isinstance(p, Pareto) else result


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
@register_kl(Gumbel, Gumbel)
@register_kl(Normal, Gumbel)
@register_kl(Uniform, Gumbel)
def _to_gumbel(p: Any, q: Gumbel) -> Tensor:
    decay = (q.loc / q.scale).exp() * _mean_decay(p, q.scale.reciprocal())
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + decay


@register_kl(Normal, Laplace)
def _normal_to_laplace(p: Normal, q: Laplace) -> Tensor:
    off = p.loc - q.loc
    turned = off / p.scale
    near = p.scale * (2 / math.pi) ** 0.5 * (-0.5 * turned.square()).exp()
    distance = near + off * (turned / 2 ** 0.5).erf()  # E|x - loc|
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


@register_kl(Pareto, Pareto)
@register_kl(Uniform, Pareto)
def _to_pareto(p: Any, q: Pareto) -> Tensor:
    low = p.scale if isinstance(p, Pareto) else p.low
    result = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * _mean_log(p)
    return fw.where(low < q.scale, fw.inf, result)


@register_kl(Uniform, Beta)
def _uniform_to_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    result = -p.entropy() + q._log_normalizer(a, b) - (a - 1) * _mean_log(p) - (b - 1) * _mean_log_rest(p)
    return fw.where((p.low < 0) | (p.high > 1), fw.inf, result)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    result = -p.entropy() - q._log_constant() - p.mean * q.logits - (-q.probs).log1p()
    return fw.where((p.low < 0) | (p.high > 1), fw.inf, result) if isinstance(p, Uniform) else result


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_to_uniform(p: Any, q: Uniform) -> Tensor:
    return fw.where((q.low > 0) | (q.high < 1), fw.inf, -p.entropy() + (q.high - q.low).log())


@register_kl(Bernoulli, Poisson)
def _bernoulli_to_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - fw.xlogy(p.probs, q.rate) + q.rate


_WIDER: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,), ContinuousBernoulli: (Pareto,), Poisson: (Bernoulli, Binomial),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform), Pareto: (Beta, ContinuousBernoulli, Uniform),
    **dict.fromkeys((Gumbel, Laplace, Normal),
                    (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform))}
for _p, _narrower in _WIDER.items():
    for _q in _narrower:
        register_kl(_p, _q)(_infinite)
