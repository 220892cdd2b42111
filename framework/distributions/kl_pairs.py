"""The formulas of the Kullback-Leibler divergence between distributions of one kind."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from .bernoulli import Bernoulli
from .categorical import Categorical
from .exp_family import ExponentialFamily
from .gamma import Gamma
from .independent import Independent
from .kl import kl_divergence, register_kl
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import sum_rightmost


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
                                  "batch "
                                  "dimensions is not known")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of two transformed distributions is known only where their transforms "
                                  "are "
                                  "equal")
    lifted = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), lifted)
