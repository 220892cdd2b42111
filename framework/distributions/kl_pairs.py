"""The formulas of the Kullback-Leibler divergence between distributions of one kind.

The kinds that differ, and those of one kind whose formula is the same sum, are in ``kl_mixed.py``.
"""

from typing import Any

import framework as fw

from ..tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .gamma import Gamma
from .geometric import Geometric
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, _half_log_det
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import all_hold, sum_rightmost


@register_kl(ExponentialFamily, ExponentialFamily)
def _families(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Of one family: ``F(q) - F(p) - <q - p, grad F(p)>`` in natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(f"no KL(p || q) is known for p of {type(p).__name__} and q of "
                                  f"{type(q).__name__}; register_kl adds one")
    theta, normalizer, slopes = p._normalizer_and_slopes()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for own, other, slope in zip(theta, others, slopes):
        events = own.ndim - len(p.batch_shape) if p.event_shape else 0
        result = result - sum_rightmost((other - own) * slope, events)
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    softplus = fw.nn.functional.softplus
    heads = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    tails = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    # 0 log 0 is 0, and what p can give and q cannot is infinitely far
    heads = fw.where(p.probs == 0, 0.0, fw.where(q.probs == 0, fw.inf, heads))
    tails = fw.where(p.probs == 1, 0.0, fw.where(q.probs == 1, fw.inf, tails))
    return heads + tails


@register_kl(Categorical, Categorical)
def _categoricals(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = fw.where((q.probs == 0).expand(terms.shape), fw.inf, terms)
    return fw.where((p.probs == 0).expand(terms.shape), 0.0, terms).sum(-1)


@register_kl(Gamma, Gamma)
def _gammas(p: Gamma, q: Gamma) -> Tensor:
    return (q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma() - p.concentration.lgamma()
            + (p.concentration - q.concentration) * p.concentration.digamma()
            + (q.rate - p.rate) * (p.concentration / p.rate))


@register_kl(Normal, Normal)
def _normals(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Uniform, Uniform)
def _uniforms(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return fw.where((q.low > p.low) | (q.high < p.high), fw.inf, result)


@register_kl(Independent, Independent)
def _independents(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of two Independent distributions that take in different numbers of "
                                  "batch dimensions is not known")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of two transformed distributions is known only where their transforms "
                                  "are equal")
    lifted = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), lifted)


@register_kl(Beta, Beta)
def _betas(p: Beta, q: Beta) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    return (q._log_normalizer(c, d) - p._log_normalizer(a, b) + (a - c) * a.digamma() + (b - d) * b.digamma()
            + (c + d - a - b) * (a + b).digamma())


@register_kl(Binomial, Binomial)
def _binomials(p: Binomial, q: Binomial) -> Tensor:
    if not all_hold(p.total_count >= q.total_count):
        raise NotImplementedError("KL of two Binomial distributions is not known where q has more trials "
                                  "than p")
    result = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return fw.where(p.total_count > q.total_count, fw.inf, result)


@register_kl(Cauchy, Cauchy)
def _cauchys(p: Cauchy, q: Cauchy) -> Tensor:
    # F. Chyzak and F. Nielsen, "A closed-form formula for the KL divergence between Cauchy distributions",
    # 2019
    far = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return far.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoullis(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return (p.mean * (p.logits - q.logits) + p._log_constant() - q._log_constant()
            + (-p.probs).log1p() - (-q.probs).log1p())


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    slope = a.digamma() - a.sum(-1, keepdim=True).digamma()
    return q._log_normalizer(b) - p._log_normalizer(a) + ((a - b) * slope).sum(-1)


@register_kl(Geometric, Geometric)
def _geometrics(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - p.mean * (-q.probs).log1p() - q.probs.log()


@register_kl(HalfNormal, HalfNormal)
def _half_normals(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normals(p.base_dist, q.base_dist)  # type: ignore[arg-type]


@register_kl(Laplace, Laplace)
def _laplaces(p: Laplace, q: Laplace) -> Tensor:
    off = (p.loc - q.loc).abs()
    return (q.scale / p.scale).log() + (p.scale * (-off / p.scale).exp() + off) / q.scale - 1


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hots(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categoricals(p._categorical, q._categorical)


@register_kl(Poisson, Poisson)
def _poissons(p: Poisson, q: Poisson) -> Tensor:
    return fw.xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


# -- normal vectors --------------------------------------------------------------------------------


def _root(p: Any) -> Tensor:
    """A matrix F with covariance ``F F^T``."""
    if isinstance(p, MultivariateNormal):
        return p._unbroadcasted_scale_tril
    diagonal = p._unbroadcasted_cov_diag.sqrt().diag_embed()
    factor = p._unbroadcasted_cov_factor
    batch = fw.broadcast_shapes(tuple(factor.shape[:-2]), tuple(diagonal.shape[:-2]))
    return fw.cat([x.expand((*batch, *x.shape[-2:])) for x in (factor, diagonal)], -1)


def _whitened(q: Any, columns: Tensor) -> Tensor:
    """``trace(F^T S^-1 F)`` with S the covariance of q: (..., n, k) -> (...)."""
    rows = columns.mT  # each column of F is a vector of its own
    if isinstance(q, MultivariateNormal):
        factor = q._unbroadcasted_scale_tril
        return _batch_mahalanobis(factor if factor.ndim == 2 else factor.unsqueeze(-3), rows).sum(-1)
    weighed, small = q._weighed, q._capacitance_tril
    far = (rows.square() / q._unbroadcasted_cov_diag.unsqueeze(-2)).sum((-2, -1))
    low = (weighed @ columns).mT
    return far - _batch_mahalanobis(small if small.ndim == 2 else small.unsqueeze(-3), low).sum(-1)


def _log_det(p: Any) -> Tensor:
    """``log det`` of the covariance."""
    full = isinstance(p, MultivariateNormal)
    return 2 * _half_log_det(p._unbroadcasted_scale_tril) if full else p._log_det()


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _normal_vectors(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: the vectors of p have {p.event_shape[0]} parts, those of q "
                         f"{q.event_shape[0]}")
    spread = _whitened(q, _root(p)) + _whitened(q, (p.loc - q.loc).unsqueeze(-1))
    return 0.5 * (_log_det(q) - _log_det(p) + spread - p.event_shape[0])
