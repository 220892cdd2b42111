"""Scaled dot-product attention and its backward as NumPy (CuPy) formulas, with the table of weights.

With W the weights and m dropout's factors: out = (W m) v. Backward, with D = sum of g * out over the
features: dS = W (m (g v^T) - D), dq = scale dS k, dk = scale dS^T q, dv = (W m)^T g.
"""

from typing import Any

import numpy as np

from ...philox import coins
from ..linalg.contract import plain_product
from ..random.cuda import factor
from ..shape.broadcast import sum_to


def _as_permuted(xp: Any, x: Any, like: Any) -> Any:
    """``x`` laid so that (batch, heads, length, features) becomes (batch, length, heads * features) for free.

    The length comes behind the first dimension in memory, or before it where that of ``like`` does.
    """
    if x.ndim < 4:
        return xp.ascontiguousarray(x)
    to = 0 if like.strides[-2] > like.strides[0] else 1
    return xp.moveaxis(xp.ascontiguousarray(xp.moveaxis(x, -2, to)), to, -2)


def _closed(xp: Any, q: Any, k: Any, mask: Any, causal: bool) -> Any:
    """Where attending is forbidden, or None."""
    if causal:
        return xp.arange(q.shape[-2])[:, None] < xp.arange(k.shape[-2])
    return ~mask if mask is not None and mask.dtype == bool else None


def _scores(xp: Any, q: Any, k: Any, v: Any, mask: Any, closed: Any, scale: float) -> Any:
    scores = plain_product(q * q.dtype.type(scale), k.swapaxes(-1, -2))
    if closed is not None:
        scores = xp.where(closed, scores.dtype.type(-xp.inf), scores)
    elif mask is not None:
        scores = scores + mask
    lead = np.broadcast_shapes(scores.shape[:-2], v.shape[:-2])
    return xp.broadcast_to(scores, (*lead, *scores.shape[-2:]))


def _shut(xp: Any, mask: Any, causal: bool) -> Any:
    """The rows whose mask allows nothing, or None."""
    if mask is None:
        return None
    return (~mask if mask.dtype == bool else mask == -xp.inf).all(axis=-1, keepdims=True)


def _factors(xp: Any, weights: Any, p: float, key: int) -> Any:
    mask = coins(key, weights.size, p).reshape(weights.shape).astype(weights.dtype)
    mask *= factor(p)
    return xp.asarray(mask)


def attention_kernel(xp: Any, q: Any, k: Any, v: Any, mask: Any, *, causal: bool, scale: float, p: float,
                     key: int) -> tuple:
    scores = _scores(xp, q, k, v, mask, _closed(xp, q, k, mask, causal), scale)
    if scores.shape[-1]:
        top = scores.max(axis=-1, keepdims=True)
    else:  # nothing to attend to; CuPy's max takes no ``initial``
        top = xp.full((*scores.shape[:-1], 1), -xp.inf, scores.dtype)
    weights = xp.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True, dtype=weights.dtype)
    lse = top + xp.log(total)
    weights /= total
    if p:
        weights *= _factors(xp, weights, p, key)
    out = plain_product(weights, v)
    shut = _shut(xp, mask, causal)
    if shut is not None:
        out, lse = xp.where(shut, out.dtype.type(0), out), xp.where(shut, lse.dtype.type(xp.inf), lse)
    return _as_permuted(xp, out, q), xp.ascontiguousarray(lse[..., 0])


def attention_grad_kernel(xp: Any, g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, *,
                          causal: bool, scale: float, p: float, key: int, wanted: tuple) -> tuple:
    closed = _closed(xp, q, k, mask, causal)
    weights = xp.exp(_scores(xp, q, k, v, mask, closed, scale) - lse[..., None])
    shut = _shut(xp, mask, causal)
    if shut is not None:
        weights = xp.where(shut, weights.dtype.type(0), weights)
    through = plain_product(g, v.swapaxes(-1, -2))
    kept = weights
    if p:
        factors = _factors(xp, weights, p, key)
        kept = weights * factors
        through *= factors
    through -= (g * out).sum(axis=-1, keepdims=True, dtype=g.dtype)
    through *= weights
    if closed is not None:
        through = xp.where(closed, through.dtype.type(0), through)
    factor = q.dtype.type(scale)
    made = (lambda: plain_product(through, k) * factor,
            lambda: plain_product(through.swapaxes(-1, -2), q * factor),
            lambda: plain_product(kept.swapaxes(-1, -2), g), lambda: through)
    found = []
    for x, make, want in zip((q, k, v, mask), made, wanted):
        part = sum_to.kernel(xp, make(), size=x.shape) if want else xp.empty(0, q.dtype)
        found.append(xp.ascontiguousarray(part) if x is mask or not want else _as_permuted(xp, part, x))
    return tuple(found)
