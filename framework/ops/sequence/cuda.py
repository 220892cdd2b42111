"""Attention on GPUs, by kernels that never hold the table of weights (``attention.cu``)."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, cudnn_graphs, device_code, device_launcher, sdp
from ..language.cuda import strides_in
from ..random.cuda import coins, factor
from ..shape.broadcast import sum_to

_SOURCE = device_code.source(Path(__file__).with_name("attention.cu"), "philox.cuh")
_DIMS, _WARPS, _MOST_FEATURES, _SHARED = 4, 8, 128, 48 * 1024
_NAMES = ("q", "k", "v", "mask", "g", "out", "dq", "dk", "dv")
_PLAN = np.dtype(
    [
        *[
            (n, "i8")
            for n in ("lead", "lead_dims", "queries", "keys", "features", "values", "causal", "mask_kind")
        ],
        ("size", "i8", (_DIMS,)),
        ("stride", "i8", (len(_NAMES), _DIMS)),
        ("row", "i8", (len(_NAMES),)),
        ("column", "i8", (len(_NAMES),)),
        ("scale", "f8"),
        ("factor", "f8"),
    ]
)


def _fits(q: Any, k: Any, v: Any, mask: Any, own: int) -> str:
    """The letter of the dtype, or "" for what the kernels leave to the formulas."""
    char = device_code.char_of(q, k, v)
    if (
        char not in device_code.FLOATS
        or max(q.shape[-1], v.shape[-1]) > _MOST_FEATURES
        or not (q.size and k.size and v.size)
    ):
        return ""
    if mask is not None and mask.dtype != bool and device_code.letter(mask.dtype) != char:
        return ""
    if len(_lead(q, k, v, mask)) > _DIMS or _shared(char, q.shape[-1], v.shape[-1], own) > _SHARED:
        return ""
    return char


def takes_half(q: Any, k: Any, v: Any, mask: Any, *, p: float, **settings: Any) -> bool:
    """Whether the kernels take operands of 16 bits as they are, forward and backward."""
    if not device_code.is_device_array(q) or p == 1 or (mask is not None and mask._array.dtype != bool):
        return False
    return bool(_fits(q, k, v, None if mask is None else mask._array, v.shape[-1]))


def _lead(q: Any, k: Any, v: Any, mask: Any) -> tuple[int, ...]:
    return np.broadcast_shapes(*[x.shape[:-2] for x in (q, k, v, mask) if x is not None])


def _shared(char: str, features: int, values: int, own: int) -> int:
    """Bytes of shared memory: two tiles, and rows of the warps' own."""
    numbers = 32 * (features + 1 + values + 1) + _WARPS * (features + own)
    return numbers * (8 if char == "d" else 4)


def _plan(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float, p: float, **others: Any) -> Any:
    """Where all operands lie."""
    lead = _lead(q, k, v, mask)
    plan = np.zeros(1, _PLAN)
    kind = 0 if mask is None or causal else 1 if mask.dtype == bool else 2
    for name, value in (
        ("lead", math.prod(lead)),
        ("lead_dims", len(lead)),
        ("queries", q.shape[-2]),
        ("keys", k.shape[-2]),
        ("features", q.shape[-1]),
        ("values", v.shape[-1]),
        ("causal", causal),
        ("mask_kind", kind),
        ("scale", scale),
        ("factor", factor(p)),
    ):
        plan[name] = value
    plan["size"][0, : len(lead)] = lead
    for name, x in {"q": q, "k": k, "v": v, "mask": mask, **others}.items():
        if x is None:
            continue
        at = _NAMES.index(name)
        whole = (*lead, *x.shape[-2:])
        if name == "mask":
            whole = (*lead, q.shape[-2], k.shape[-2])
        steps = strides_in(whole, x.shape, x.strides, x.itemsize)
        plan["stride"][0, at, : len(lead)] = steps[:-2]
        plan["row"][0, at], plan["column"][0, at] = steps[-2:]
    return plan


def _new(lead: tuple[int, ...], rows: int, columns: int, dtype: Any) -> Any:
    """Memory in which (batch, heads, length, features) becomes (batch, length, heads * features) for free."""
    module = cuda.cupy()
    if len(lead) < 2:
        return device_launcher.empty((*lead, rows, columns), dtype)
    return module.moveaxis(device_launcher.empty((lead[0], rows, *lead[1:], columns), dtype), 1, -2)


def _for_cudnn(mask: Any, p: float) -> bool:
    """Whether attention is of the kind that cuDNN is asked for."""
    return mask is None and not p and sdp.WAYS["cudnn"]


def _grid(plan: Any, rows: int) -> tuple[int]:
    return (min(int(plan["lead"][0]) * -(-rows // _WARPS), 1 << 30),)


def attention(q: Any, k: Any, v: Any, mask: Any, *, causal: bool, scale: float, p: float, key: int) -> Any:
    """The device function of scaled_dot_product_attention."""
    char = _fits(q, k, v, mask, 0)
    if not char or p == 1:
        return NotImplemented
    lead = _lead(q, k, v, mask)
    out = _new(lead, q.shape[-2], v.shape[-1], q.dtype)
    lse = device_launcher.empty((*lead, q.shape[-2]), np.float64 if char == "d" else np.float32)
    if _for_cudnn(mask, p) and cudnn_graphs.attend(char, (q, k, v, out, lse[..., None]), causal, scale):
        return out, lse
    plan = _plan(q, k, v, mask, causal, scale, p, out=out)
    _SOURCE.kernel("attention", char)(
        _grid(plan, q.shape[-2]),
        (32 * _WARPS,),
        (out, lse, q, k, v, mask, plan, coins(key, p)),
        shared_mem=_shared(char, q.shape[-1], v.shape[-1], 0),
    )
    return out, lse


def attention_grad(
    g: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    out: Any,
    lse: Any,
    *,
    causal: bool,
    scale: float,
    p: float,
    key: int,
    wanted: tuple,
) -> Any:
    """That of its backward."""
    values = v.shape[-1]
    char = _fits(q, k, v, mask, values)
    if (
        not char
        or p == 1
        or device_code.char_of(g, out) != char
        or lse.dtype != (np.float64 if char == "d" else np.float32)
    ):
        return NotImplemented
    lead, module = _lead(q, k, v, mask), cuda.cupy()
    dq, dk, dv = [
        _new(lead, x.shape[-2], x.shape[-1], q.dtype) if want else None for x, want in zip((q, k, v), wanted)
    ]
    if all(wanted[:3]) and not wanted[3] and _for_cudnn(mask, p):
        lse = module.ascontiguousarray(lse)
        if cudnn_graphs.attend(char, (q, k, v, out, lse[..., None], g, dq, dk, dv), causal, scale):
            return dq, dk, dv, device_launcher.empty(0, q.dtype)
    delta = device_launcher.empty(lse.shape, lse.dtype)
    slopes = device_launcher.empty((*lse.shape, k.shape[-2]), lse.dtype) if wanted[3] else None
    plan = _plan(q, k, v, mask, causal, scale, p, g=g, out=out, dq=dq, dk=dk, dv=dv)
    lse, drawn = module.ascontiguousarray(lse), coins(key, p)
    shared = _shared(char, q.shape[-1], values, values)
    _SOURCE.kernel("attention_dq", char)(
        _grid(plan, q.shape[-2]),
        (32 * _WARPS,),
        (dq, delta, slopes, g, q, k, v, mask, out, lse, plan, drawn),
        shared_mem=shared,
    )
    if wanted[1] or wanted[2]:
        _SOURCE.kernel("attention_dkv", char)(
            _grid(plan, k.shape[-2]),
            (32 * _WARPS,),
            (dk, dv, delta, g, q, k, v, mask, lse, plan, drawn),
            shared_mem=shared,
        )
    found = []
    for x, part in zip((q, k, v), (dq, dk, dv)):
        found.append(
            device_launcher.empty(0, q.dtype)
            if part is None
            else part
            if part.shape == x.shape
            else sum_to(part, size=x.shape)
        )
    if slopes is None:
        return *found, device_launcher.empty(0, q.dtype)
    added = slopes if slopes.shape == mask.shape else sum_to(slopes, size=mask.shape)
    return *found, added.astype(mask.dtype, copy=False)
