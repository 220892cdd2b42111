"""Rows of ops/sequence/multihead.py."""

from typing import Any

import numpy as np

from ..base import Sample, masks, normal, row
from .attention import reference as attend

E, H, L, S, N = 4, 2, 3, 5, 2
Q, K, V = normal(L, N, E), normal(S, N, E, seed=1), normal(S, N, E, seed=2)
W, B = normal(3 * E, E, seed=3), normal(3 * E, seed=4)
OUT, C = normal(E, E, seed=5), normal(E, seed=6)
K3, V5 = normal(S, N, 3, seed=7), normal(S, N, 5, seed=8)
WQ, WK, WV = normal(E, E, seed=9), normal(E, 3, seed=10), normal(E, 5, seed=11)
BK, BV = normal(1, 1, E, seed=12), normal(1, 1, E, seed=13)
SHUT = masks(L, S, seed=14) & (np.arange(S) > 0)
PADS = np.array([[False, False, False, True, True], [False] * 5])
ADDED = normal(N * H, L, S, seed=15)
STATIC = normal(N * H, S, E // H, seed=16)
_NAMES = [
    "query",
    "key",
    "value",
    "embed_dim_to_check",
    "num_heads",
    "in_proj_weight",
    "in_proj_bias",
    "bias_k",
    "bias_v",
    "add_zero_attn",
    "dropout_p",
    "out_proj_weight",
    "out_proj_bias",
]
_USUAL: dict[str, Any] = {
    "embed_dim_to_check": E,
    "num_heads": H,
    "in_proj_weight": None,
    "in_proj_bias": None,
    "bias_k": None,
    "bias_v": None,
    "add_zero_attn": False,
    "dropout_p": 0.0,
    "out_proj_bias": None,
}


def _call(M: Any, **given: Any) -> Any:
    settings = {**_USUAL, **given}
    return M.nn.functional.multi_head_attention_forward(*[settings.pop(n) for n in _NAMES], **settings)


def _reference(
    query: Any,
    key: Any,
    value: Any,
    in_proj_weight: Any = None,
    out_proj_weight: Any = None,
    in_proj_bias: Any = None,
    out_proj_bias: Any = 0.0,
    bias_k: Any = None,
    bias_v: Any = None,
    add_zero_attn: bool = False,
    attn_mask: Any = None,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    static_k: Any = None,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    **_: Any,
) -> Any:
    """One batch and one head after the other."""
    ws = (
        np.split(in_proj_weight, 3)
        if q_proj_weight is None
        else (q_proj_weight, k_proj_weight, v_proj_weight)
    )
    bs = (0, 0, 0) if in_proj_bias is None else np.split(in_proj_bias, 3)
    alone = query.ndim == 2
    if alone:
        query, key, value = query[:, None], key[:, None], value[:, None]
    q, k, v = [x @ w.T + b for x, w, b in zip((query, key, value), ws, bs)]
    out, shown = np.zeros(q.shape), []
    for n in range(q.shape[1]):
        for h in range(H):
            part = slice(h * E // H, (h + 1) * E // H)
            kk, vv = k[:, n, part], v[:, n, part]
            if static_k is not None:
                kk = static_k[n * H + h]
            added = np.zeros((L, kk.shape[0]))
            for mask, pick in ((attn_mask, n * H + h), (key_padding_mask, n)):
                if mask is not None:
                    m = mask if mask is attn_mask and mask.ndim == 2 or mask.ndim == 1 else mask[pick]
                    added = added + (np.where(m, -np.inf, 0.0) if mask.dtype == bool else m)
            if bias_k is not None:
                kk, vv = np.vstack([kk, bias_k[0, :, part]]), np.vstack([vv, bias_v[0, :, part]])
            if add_zero_attn:
                kk, vv = np.vstack([kk, np.zeros((1, E // H))]), np.vstack([vv, np.zeros((1, E // H))])
            added = np.pad(added, ((0, 0), (0, len(kk) - added.shape[1])))
            out[:, n, part] = attend(q[:, n, part], kk, vv, added)
            shown.append(attend(q[:, n, part], kk, np.eye(len(kk)), added))
    y = out @ out_proj_weight.T + out_proj_bias
    weights = np.array(shown).reshape(q.shape[1], H, L, -1)
    weights = weights.mean(1) if average_attn_weights else weights
    if alone:
        y, weights = y[:, 0], weights[0]
    return (y, weights) if need_weights else y


def _sample(label: str, arrays: dict[str, Any], **settings: Any) -> Sample:
    names = list(arrays)

    def call(M: Any, *xs: Any) -> Any:
        y, weights = _call(M, **dict(zip(names, xs)), **settings)
        return (y, weights) if settings.get("need_weights", True) else y

    return Sample(
        label,
        call,
        tuple(arrays.values()),
        lambda *xs: _reference(**dict(zip(names, xs)), **settings),
        noncontiguous=label == "biases",
    )


_PLAIN = {"query": Q, "key": K, "value": V, "in_proj_weight": W, "out_proj_weight": OUT}
_BIASED = {**_PLAIN, "in_proj_bias": B, "out_proj_bias": C}
_ONES = {"in_proj_weight": None, "out_proj_weight": None}


def _wrong(**given: Any) -> Any:
    def call(M: Any) -> Any:
        usual = {
            "query": M.ones(L, N, E),
            "key": M.ones(S, N, E),
            "value": M.ones(S, N, E),
            "in_proj_weight": M.ones(3 * E, E),
            "out_proj_weight": M.eye(E),
        }
        return _call(M, **{**usual, **{k: v(M) if callable(v) else v for k, v in given.items()}})

    return call


row(
    "multi_head_attention_forward",
    _sample("plain", _PLAIN),
    _sample("biases", _BIASED),
    _sample("no batch", {**_BIASED, "query": Q[:, 0], "key": K[:, 0], "value": V[:, 0]}),
    _sample(
        "no batch, padding",
        {**_PLAIN, "query": Q[:, 0], "key": K[:, 0], "value": V[:, 0], "key_padding_mask": PADS[0]},
    ),
    Sample(
        "self-attention",
        lambda M, x, w, o: _call(M, query=x, key=x, value=x, in_proj_weight=w, out_proj_weight=o),
        (Q, W, OUT),
        lambda x, w, o: _reference(x, x, x, w, o),
    ),
    _sample(
        "separate weights",
        {
            "query": Q,
            "key": K3,
            "value": V5,
            "out_proj_weight": OUT,
            "in_proj_bias": B,
            "q_proj_weight": WQ,
            "k_proj_weight": WK,
            "v_proj_weight": WV,
        },
        use_separate_proj_weight=True,
    ),
    _sample("bool mask", {**_PLAIN, "attn_mask": SHUT}),
    _sample("bool mask, no weights", {**_PLAIN, "attn_mask": SHUT}, need_weights=False),
    _sample("floating mask", {**_PLAIN, "attn_mask": ADDED}),
    _sample("floating mask, no weights", {**_PLAIN, "attn_mask": ADDED}, need_weights=False),
    _sample(
        "further keys, no weights",
        {**_BIASED, "bias_k": BK, "bias_v": BV, "attn_mask": SHUT, "key_padding_mask": PADS},
        add_zero_attn=True,
        need_weights=False,
    ),
    _sample(
        "causal, no weights",
        {**_PLAIN, "key": K[:L], "value": V[:L], "attn_mask": ~np.tri(L, dtype=bool)},
        is_causal=True,
        need_weights=False,
    ),
    _sample("padding", {**_PLAIN, "key_padding_mask": PADS}),
    _sample("both masks", {**_PLAIN, "attn_mask": SHUT, "key_padding_mask": PADS}),
    _sample("weights of each head", _PLAIN, average_attn_weights=False),
    _sample(
        "bias_k and zeros",
        {**_BIASED, "bias_k": BK, "bias_v": BV, "attn_mask": SHUT, "key_padding_mask": PADS},
        add_zero_attn=True,
    ),
    _sample("static", {**_PLAIN, "static_k": STATIC}),
    _sample(
        "causal",
        {**_PLAIN, "key": K[:L], "value": V[:L], "attn_mask": ~np.tri(L, dtype=bool)},
        is_causal=True,
    ),
    _sample("dropout in evaluation", _PLAIN, dropout_p=0.5, training=False),
    namespace="nn.functional",
    errors=[
        ("features", _wrong(embed_dim_to_check=8), ValueError, "8 features"),
        ("heads", _wrong(num_heads=3), ValueError, "num_heads=3"),
        ("weight", _wrong(in_proj_weight=lambda M: M.ones(3, 4)), ValueError, "[12, 4]"),
        ("no weight", _wrong(in_proj_weight=None), TypeError, "q_proj_weight"),
        ("length", _wrong(value=lambda M: M.ones(2, N, E)), ValueError, "length"),
        ("dimensions", _wrong(query=lambda M: M.ones(L, E)), ValueError, "(length, batch, features)"),
        ("mask", _wrong(attn_mask=lambda M: M.ones(2, 2) > 0), ValueError, "[3, 5] or [4, 3, 5]"),
        ("integer mask", _wrong(attn_mask=lambda M: M.ones(L, S).long()), TypeError, "bool"),
        ("causal", _wrong(is_causal=True), ValueError, "needs attn_mask"),
        ("bias_v", _wrong(bias_k=lambda M: M.ones(1, 1, E)), TypeError, "belong together"),
        ("static", _wrong(static_v=lambda M: M.ones(1, S, 2)), ValueError, "static_v"),
        ("word", _wrong(query="x"), TypeError, "must be a Tensor"),
    ],
)
