"""Scaled dot-product attention: a record that never keeps the table of weights, and its backward.

Forward keeps the logarithm of the sum of each row's exponentials; from it backward makes the weights once
more, block by block (Rabe and Staats, arXiv:2112.05682; Dao et al., arXiv:2205.14135). Without the native
kernels the formulas of ``attention_kernels`` hold the table while they run. Complex numbers, and the
derivative of backward, take the composite of matmul, softmax and dropout.
"""

import math
from typing import Any

import numpy as np

from ... import _native, random
from ...backends import array_module, device_code, on_device, sdp
from ...dtypes import COMPLEX, FLOAT, INTEGER, bfloat16, float32, promote_types
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor, as_tensor, wrap
from ..convert.cast import cast
from ..linalg.matmul import matmul_op, same_dtype, swap_last
from ..pointwise.choose import where_op
from ..random.dropout import dropout_op
from ..record.args import floating, tensor_arg
from ..record.batched import aligned, call, everywhere, rowwise
from ..record.deferred import InSteps
from ..record.op import Meta, Op
from ..record.public import public
from ..record.road import NEVER
from ..record.rounded import rounded_as, widen
from ..reduce.softmax import softmax_op
from ..shape.broadcast import broadcast_shape, expand
from ..shape.view import take_shape
from ..write.twice import twice
from . import cuda
from .attention_kernels import attention_grad_kernel, attention_kernel

_OP = "scaled_dot_product_attention"
_BY_UNIT = _native.module is not None and _native.module.has_matrix_unit()
_MOST_BY_UNIT = 512  # numbers of a row (MOST_NARROW of attention.h)


# -- the composite ---------------------------------------------------------------------------------


def weights_of(scores: Any, mask: Any) -> Tensor:
    """Softmax of the masked scores; a row that may attend to nothing gets zeros, not nan."""
    if mask is None:
        return softmax_op.run(scores, dim=scores.ndim - 1)
    with on_device(mask._array):
        return _masked_weights(scores, mask)


def _masked_weights(scores: Any, mask: Any) -> Tensor:
    array, below = mask._array, float("-inf")
    boolean = array.dtype.kind == "b"
    closed = ~array if boolean else array == below
    empty = closed.all(axis=-1, keepdims=True)
    some_empty = device_code.is_device_array(array) or bool(empty.any())  # a device is not waited for
    if boolean:
        scores = where_op.run(wrap(array | empty) if some_empty else mask, scores, below)
    else:
        scores = scores + (where_op.run(wrap(empty), 0.0, mask) if some_empty else mask)
    weights = softmax_op.run(scores, dim=scores.ndim - 1)
    return where_op.run(wrap(empty), 0.0, weights) if some_empty else weights


def _composite(q: Any, k: Any, v: Any, mask: Any = None, *, causal: bool, scale: float, p: float,
               key: int) -> Tensor:
    if causal:
        xp = array_module(q._array)
        mask = wrap(xp.arange(q.shape[-2])[:, None] >= xp.arange(k.shape[-2]))
    weights: Any = weights_of(matmul_op.run(q * scale, swap_last(k)), mask)
    if p:
        lead = broadcast_shape((weights.shape[:-2], v.shape[:-2]), _OP)
        weights = expand.run(weights, size=(*lead, *weights.shape[-2:]))  # a number for each of all weights
        weights = dropout_op.run(weights, p=p, key=key)
    return matmul_op.run(weights, v)


# -- records ---------------------------------------------------------------------------------------


def _infer(q: Meta, k: Meta, v: Meta, mask: Any = None, **settings: Any) -> tuple[Meta, Meta]:
    shapes = [x.shape[:-2] for x in (q, k, v, mask) if x is not None]
    rows = (*broadcast_shape(tuple(shapes), _OP), q.shape[-2])
    return Meta((*rows, v.shape[-1]), q.dtype), Meta(rows, float32 if q.dtype.itemsize == 2 else q.dtype)


def _grad_infer(g: Meta, q: Meta, k: Meta, v: Meta, mask: Any, out: Meta, lse: Meta, *, wanted: tuple,
                **settings: Any) -> tuple:
    return tuple([x if want else Meta((0,), q.dtype) for x, want in zip((q, k, v, mask), wanted)])


def _grad_twice(h: list, g: Any, q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float, p: float,
                key: int, wanted: tuple, needs: tuple) -> list:
    """The derivative of backward in its gradient and the operands; ``out`` and ``lse`` follow from those."""
    fixed = mask is not None and as_tensor(mask)._array.dtype.kind == "b"

    def formula(*operands: Any) -> tuple:
        if fixed:
            operands = (*operands, as_tensor(mask))
        return (_composite(*operands, causal=causal, scale=scale, p=p, key=key),)
    operands = (q, k, v) if fixed or mask is None else (q, k, v, mask)
    return twice(formula, h, (g,), operands, wanted, needs)


def _attention_vjp(g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, causal: bool, scale: float,
                   p: float, key: int, needs: tuple) -> list:
    found = attention_grad(g, q, k, v, mask, out, lse, causal=causal, scale=scale, p=p, key=key, wanted=needs)
    return [part if need else None for part, need in zip(found, needs)]


def batch_attention_grad(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches; each gradient has the shape of one example's input, behind the batch."""
    whole = everywhere(size, arrays, batched)
    lse = whole[6]
    ready = aligned([*whole[:6], lse.reshape((*lse.shape, 1))], [a is not None for a in whole])
    found = call(op, *ready[:6], ready[6].reshape(ready[6].shape[:-1]), **settings)
    return tuple([part.reshape(a.shape) if want else part
                  for part, a, want in zip(found, whole[1:5], settings["wanted"])])


def _rounded_grad(*arrays: Any, **settings: Any) -> tuple:
    """Backward of bfloat16: computed in float32, the gradients of q, k and v rounded once."""
    *found, mask = attention_grad.cpu(*[widen(a) for a in arrays], **settings)
    return *rounded_as(found), mask


attention_grad = Op("attention_grad", "g q k v mask out lse", outputs="gq gk gv gmask", infer=_grad_infer,
                    batch=batch_attention_grad,
                    kernel=attention_grad_kernel, native="attention_grad", rounded=_rounded_grad,
                    device=cuda.attention_grad, vjp=_grad_twice,
                    loose_from=NEVER)


def _rounded(*arrays: Any, **settings: Any) -> tuple:
    """Forward of bfloat16: by the matrix unit where there is one; the logarithms stay float32."""
    found = _native.module.attention(*arrays, **settings) if _BY_UNIT else NotImplemented
    if found is not NotImplemented:
        return found
    out, lse = attention.cpu(*[widen(a) for a in arrays], **settings)
    return rounded_as(out), lse


def _flops(q: tuple, k: tuple, v: tuple, mask: Any, out_shape: tuple) -> int:
    return 2 * math.prod(out_shape[:-1]) * k[-2] * (q[-1] + out_shape[-1])


# lse: the logarithm of the sum of each row's exponentials, inf where a row may attend to nothing
attention = Op("scaled_dot_product_attention", "q k v mask",
               onnx="attention(q, k, v, mask, causal, scale, p)",
               runtime="attention(q, k, v, mask, causal, scale, p)",
               outputs="out lse", differentiable=1,
               batch=rowwise,
               infer=_infer, kernel=attention_kernel, native="attention", rounded=_rounded,
               device=cuda.attention, vjp=_attention_vjp,
               arguments="query key value attn_mask", loose_from=NEVER, flops=_flops)


# -- the public function ---------------------------------------------------------------------------


def _check(query: Any, key: Any, value: Any, dropout_p: float) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        floating(tensor_arg(x, _OP, name), _OP, name)
        if x.ndim < 2:
            raise ShapeError(f"{_OP}: {name} must be (..., length, features), got shape {list(x.shape)}")
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(f"{_OP}: query {list(query.shape)} and key {list(key.shape)} must have the same "
                         f"last size")
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"{_OP}: key {list(key.shape)} and value {list(value.shape)} must have the same "
                         f"length (dimension -2)")
    if not 0.0 <= dropout_p <= 1.0:
        raise ValueError(f"{_OP}: dropout_p must be in [0, 1], got {dropout_p}")


def _mask(query: Tensor, key: Tensor, mask: Any, is_causal: bool, grouped: bool) -> Tensor | None:
    """The mask that says who may attend to whom (bool) or what is added to the scores (in their dtype)."""
    if mask is None:
        return None
    if is_causal:
        raise ValueError(f"{_OP}: pass attn_mask or is_causal=True, not both")
    kind = tensor_arg(mask, _OP, "attn_mask").dtype.category
    if kind in (INTEGER, COMPLEX):
        raise DTypeError(f"{_OP}: attn_mask must be bool (True: may attend) or floating (added to the "
                         f"scores), got {mask.dtype}")
    if kind == FLOAT and mask.dtype is not query.dtype:
        if promote_types(mask.dtype, query.dtype) is not query.dtype:
            raise DTypeError(f"{_OP}: attn_mask is {mask.dtype} but query is {query.dtype}; convert one with "
                             f".to(dtype)")
        mask = cast.run(mask, dtype=query.dtype)
    heads = (*key.shape[:-3], 1) if grouped else key.shape[:-2]
    shape = (*broadcast_shape((query.shape[:-2], heads), _OP), query.shape[-2], key.shape[-2])
    if broadcast_shape((mask.shape, shape), _OP) != shape:
        raise ShapeError(f"{_OP}: attn_mask of shape {list(mask.shape)} does not broadcast to the scores' "
                         f"shape {list(shape)}")
    return mask


def _times(query: Tensor, x: Tensor, name: str) -> int:
    """How many heads of the query share one of ``x``."""
    heads, own = query.shape[-3], x.shape[-3]
    if own == 0 or heads % own:
        raise ShapeError(f"{_OP}: enable_gqa needs the query's {heads} heads to be a multiple of the "
                         f"{name}'s {own}")
    return heads // own


def _parted(x: Any, times: int) -> Any:
    """Heads as groups of ``times``; those of one head for all stay one."""
    *lead, heads, rows, cols = x.shape
    parts = (1, 1) if heads == 1 else (heads // times, times)
    return take_shape(x, (*lead, *parts, rows, cols))


def _repeated(x: Any, times: int) -> Any:
    *lead, heads, rows, cols = x.shape
    longer = _parted(x, 1).expand(*lead, heads, times, rows, cols)
    return take_shape(longer, (*lead, heads * times, rows, cols))


def _grouped(query: Tensor, key: Tensor, value: Tensor, mask: Any, settings: dict) -> Tensor:
    """Groups of the query's heads, each with one of key and value (Ainslie et al., arXiv:2305.13245)."""
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise ShapeError(f"{_OP}: enable_gqa needs heads: (..., heads, length, features)")
    times, others = _times(query, key, "key"), _times(query, value, "value")
    if times != others:
        return attend(query, _repeated(key, times), _repeated(value, others), mask, settings)
    if mask is not None and mask.ndim > 2:
        mask = _parted(mask, times)
    out: Any = attend(_parted(query, times), _parted(key, 1), _parted(value, 1), mask, settings)
    *lead, groups, times, rows, cols = out.shape
    return take_shape(out, (*lead, groups * times, rows, cols))


def settings_of(query: Tensor, dropout_p: float, causal: bool, scale: float | None = None) -> dict:
    """The record's settings; for dropout a new key is drawn."""
    return {"causal": causal, "scale": 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale,
            "p": float(dropout_p), "key": random.key_of_call(query.device) if dropout_p else 0}


_LEAST_BY_UNIT = 1024  # multiplications of a head; the unit takes a while to begin


def _unit_takes(query: Tensor, value: Tensor, mask: Any) -> bool:
    """Whether the CPU's matrix unit takes the operands as they are; a mask that is added would be float32."""
    return (_BY_UNIT and query.dtype is bfloat16 and type(query._array) is np.ndarray
            and (mask is None or mask._array.dtype.kind == "b")
            and max(query.shape[-1], value.shape[-1]) <= _MOST_BY_UNIT
            and math.prod(query.shape[-2:]) * value.shape[-2] >= _LEAST_BY_UNIT)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Any, settings: dict) -> Tensor:
    """The attention of operands that fit, by the record where it takes their dtype."""
    dtype = query.dtype
    if not query.dtype is key.dtype is value.dtype:
        same_dtype(_OP, query=query, key=key, value=value)
    if sdp.none_left:
        raise RuntimeError(f"{_OP}: no way to compute it is allowed here; allow SDPBackend.MATH or "
                           f"FLASH_ATTENTION")
    if dtype.category == COMPLEX or sdp.composite:
        return _composite(query, key, value, mask, **settings)
    if dtype.itemsize > 2 or _unit_takes(query, value, mask) or cuda.takes_half(
            query._array, key._array, value._array, mask, **settings):
        return attention.run(query, key, value, mask, **settings)[0]
    if mask is not None and mask.dtype.category == FLOAT:
        mask = cast.run(mask, dtype=float32)
    wide = [cast.run(x, dtype=float32) for x in (query, key, value)]
    return cast.run(attention.run(*wide, mask, **settings)[0], dtype=dtype)


def _in_steps(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
              dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
              enable_gqa: bool = False) -> Any:
    """``scaled_dot_product_attention`` with dropout and without a mask, whose key is drawn at once."""
    if type(dropout_p) is not float or not 0.0 < dropout_p <= 1.0 or attn_mask is not None or enable_gqa \
            or not all(type(x) is Tensor for x in (query, key, value)):
        return NotImplemented
    _check(query, key, value, dropout_p)
    out: Any = attend(query, key, value, None, settings_of(query, dropout_p, bool(is_causal), scale))
    return out.clone() if out.ndim != 4 and out.requires_grad else out


def _without_dropout(*args: Any, dropout_p: float = 0.0, **settings: Any) -> str | None:
    return "random numbers" if len(args) > 4 or dropout_p != 0.0 else None


@public("nn.functional", op=attention, autocast="lower",
        deferred=InSteps(_in_steps, _without_dropout, "dropout_p"))
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor,
                                 attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """``softmax(q k^T * scale + mask) v`` (Vaswani et al., arXiv:1706.03762).

    query (..., L, E), key (..., S, E), value (..., S, F) give (..., L, F). attn_mask, broadcast to
    (..., L, S): bool, True where attending is allowed, or floating, added to the scores. is_causal:
    position i attends to positions up to i. scale: 1 / sqrt(E) by default. dropout_p is always
    applied. enable_gqa: heads (dimension -3) of key and value are shared by those of the query. A query
    that may attend to nothing gives zeros. Raises ShapeError, DTypeError or ValueError.

    >>> q, k = fw.zeros(1, 2), fw.ones(3, 2)
    >>> fw.nn.functional.scaled_dot_product_attention(q, k, fw.tensor([[0.0], [3.0], [6.0]]))
    tensor([[3.]])
    """
    _check(query, key, value, dropout_p)
    mask = _mask(query, key, attn_mask, is_causal, enable_gqa)
    run = _grouped if enable_gqa else attend
    out = run(query, key, value, mask, settings_of(query, dropout_p, bool(is_causal), scale))
    # backward keeps the result, but as in PyTorch that forbids changes in place in four dimensions only
    return out.clone() if out.ndim != 4 and out.requires_grad else out  # type: ignore[attr-defined]
