"""Functions on nested tensors, by name: what works on the values, and what looks at the lengths."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ops.language.elementwise import Elementwise
from ..ops.record.public import PUBLIC
from ..ops.shape.join import cat as cat_values
from ..tensor import Tensor
from . import per_sequence
from .tensor import HANDLERS, NestedTensor, Ragged, nested, rows

_OF_ELEMENTS = {p.name: p for p in PUBLIC if isinstance(p.op, Elementwise)}
_LOSSES = {"poisson_nll_loss", "soft_margin_loss",  # made of elementwise functions
           *(name for name, p in _OF_ELEMENTS.items()
             if "reduction" in inspect.signature(p.function).parameters)}
_ON_VALUES = _OF_ELEMENTS.keys() - _LOSSES | {
    "rsub", "relu6", "selu", "celu", "dropout", "alpha_dropout", "to", "float", "double", "half", "bfloat16",
    "int", "long", "bool", "type", "clone", "contiguous", "zeros_like", "ones_like", "full_like",
    "empty_like", "rand_like", "randn_like", "masked_fill", "type_as", "cpu", "cuda", "isclose", "hardtanh",
    "relu", "abs", "float_power", "rrelu", "logical_not", "cast", "requires_grad_", "bernoulli", "detach_"}
_OPERATORS = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"}
_RULES: dict[str, Callable] = {}


def rule(*names: str) -> Callable:
    """Register the form of functions of these names for nested tensors."""
    def keep(function: Callable) -> Callable:
        _RULES.update(dict.fromkeys(names, function))
        return function
    return keep


def call(func: Any, args: tuple, kwargs: dict) -> Any:
    """A public function, or method, on arguments of which some are nested."""
    name = func.__name__.strip("_") if func.__name__.startswith("__") else func.__name__
    form = _RULES.get(name)
    if form is not None:
        return form(func, *args, **kwargs)
    in_place = name.endswith("_") and name[:-1] in _ON_VALUES
    if name in _ON_VALUES or in_place or name[:1] in ("i", "r") and name[1:] in _OPERATORS:
        return _on_values(func, args, kwargs)
    raise NotImplementedError(
        f"{name}: there is no form of it for nested tensors; use x.to_padded_tensor(padding), work on "
        f"x.values(), which are the elements of all sequences, or on each of x.unbind()")


HANDLERS.call = call


# -- elements ------------------------------------------------------------------------------------


def _fitted(x: Tensor, like: NestedTensor, name: str) -> Tensor:
    """The values of an operand, or a tensor that broadcasts to them as it does to the nested one."""
    if isinstance(x, NestedTensor):
        if x._sizes != like._sizes or x._place != like._place or x.ndim != like.ndim:
            raise ShapeError(f"{name}: nested tensors of shapes {like.shape} and {x.shape} with lengths "
                             f"{like._sizes.lengths.tolist()[:6]} and {x._sizes.lengths.tolist()[:6]} do not "
                             f"fit; the lengths must be equal")
        return x._packed
    if not x.ndim:
        return x
    if x.ndim > like.ndim:
        raise ShapeError(f"{name}: a tensor of shape {list(x.shape)} has more dimensions than {like.shape}")
    whole = x.reshape((1,) * (like.ndim - x.ndim) + tuple(x.shape))  # type: ignore[attr-defined]
    if whole.shape[like._place] != 1:
        raise ShapeError(f"{name}: a tensor of shape {list(x.shape)} does not broadcast to {like.shape}: "
                         f"along the ragged dimension its size must be 1; nested.narrow() makes a nested one")
    shape = [n for i, n in enumerate(whole.shape) if i != like._place]
    whole = whole.reshape(shape)
    if shape[0] == 1:
        return whole.reshape(shape[1:])
    if shape[0] != len(like):
        raise ShapeError(f"{name}: {shape[0]} rows for {len(like)} sequences")
    return rows(whole, like._sizes.index)


def _first(args: Any) -> NestedTensor:
    return next(x for x in args if isinstance(x, NestedTensor))


def _on_values(func: Any, args: tuple, kwargs: dict) -> Any:
    like = _first((*args, *kwargs.values()))
    fit = [_fitted(x, like, func.__name__) if isinstance(x, Tensor) else x for x in args]
    named = {k: _fitted(x, like, func.__name__) if isinstance(x, Tensor) else x for k, x in kwargs.items()}
    out = func(*fit, **named)
    if out is like._packed:
        return like
    return nested(out, like._sizes, like._place)


@rule(*_LOSSES)
def _loss(func: Any, input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    like = _first((input, target))
    out = func(_fitted(input, like, func.__name__), _fitted(target, like, func.__name__), *args, **kwargs)
    return nested(out, like._sizes, like._place) if out.ndim == like._packed.ndim else out


@rule("cross_entropy", "nll_loss")
def _class_loss(func: Any, input: NestedTensor, target: Any, *args: Any, **kwargs: Any) -> Any:
    """Classes come last, (batch, j, C) with targets (batch, j); the mean is that over all elements."""
    if not isinstance(input, NestedTensor) or input._place != 1 or input.ndim != 3:
        raise ShapeError(f"{func.__name__}: wanted nested scores (batch, j, C), got {input.shape}")
    if not isinstance(target, NestedTensor) or target._sizes != input._sizes:
        raise ShapeError(f"{func.__name__}: target must be nested with the lengths of input")
    out = func(input._packed, target._packed, *args, **kwargs)
    return nested(out, input._sizes, 1) if out.ndim else out


@rule("eq", "ne")
def _compare(func: Any, input: Any, other: Any) -> Any:
    return _on_values(func, (input, other), {})


@rule("equal", "allclose")
def _same(func: Any, input: Any, other: Any, *args: Any, **kwargs: Any) -> bool:
    if not isinstance(input, NestedTensor) or not isinstance(other, NestedTensor):
        raise TypeError(f"{func.__name__}: a nested tensor is compared with a nested one")
    return input._sizes == other._sizes and input._place == other._place and func(
        input._packed, other._packed, *args, **kwargs)


@rule("is_same_size")
def _same_size(func: Any, input: Any, other: Any) -> bool:
    return input.shape == other.shape


# -- layers --------------------------------------------------------------------------------------


def _last(x: NestedTensor, name: str, count: int = 1) -> None:
    if not isinstance(x, NestedTensor) or x._place > x.ndim - 1 - count:
        raise ShapeError(f"{name}: the ragged dimension must not be among the last {count}, got shape "
                         f"{x.shape}")


@rule("linear")
def _linear(func: Any, input: NestedTensor, weight: Tensor, bias: Any = None) -> NestedTensor:
    _last(input, "linear")
    return nested(func(input._packed, weight, bias), input._sizes, input._place)


@rule("matmul", "rmatmul")
def _matmul(func: Any, input: Any, other: Any) -> NestedTensor:
    if not isinstance(input, NestedTensor) or isinstance(other, NestedTensor) or other.ndim != 2:
        raise NotImplementedError("matmul: a nested tensor takes a matrix on its right; use "
                                  "scaled_dot_product_attention, x.unbind() or x.to_padded_tensor(0)")
    _last(input, "matmul")
    return nested(func(input._packed, other), input._sizes, input._place)


@rule("layer_norm", "rms_norm")
def _norm(func: Any, input: NestedTensor, normalized_shape: Any, *args: Any, **kwargs: Any) -> NestedTensor:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    _last(input, func.__name__, len(shape))
    return nested(func(input._packed, shape, *args, **kwargs), input._sizes, input._place)


@rule("embedding")
def _embedding(func: Any, input: NestedTensor, *args: Any, **kwargs: Any) -> NestedTensor:
    return nested(func(input._packed, *args, **kwargs), input._sizes, input._place)


@rule("scaled_dot_product_attention")
def _attention(func: Any, *args: Any, **kwargs: Any) -> NestedTensor:
    return per_sequence.attention(*args, **kwargs)


# -- dimensions ----------------------------------------------------------------------------------


def _dim(x: NestedTensor, dim: int, name: str) -> int:
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(f"{name}: dim={dim} is out of range for a nested tensor of {x.ndim} dimensions")
    return dim % x.ndim


def _inner(x: NestedTensor, dim: int) -> int:
    """The dimension of the values for one that is neither the batch nor ragged."""
    return dim if dim < x._place else dim - 1


def _plain_dim(x: NestedTensor, dim: int, name: str) -> int:
    found = _dim(x, dim, name)
    if found in (0, x._place):
        what = "the batch" if not found else "ragged"
        raise NotImplementedError(f"{name}: dim={dim} of a nested tensor is {what}, where there is no form "
                                  f"of it; use x.to_padded_tensor(padding), or x.unbind()")
    return _inner(x, found)


@rule("softmax")
def _softmax(func: Any, input: NestedTensor, dim: int | None = None, *args: Any, log: bool = False,
             **kwargs: Any) -> Any:
    if dim is None:
        raise ValueError(f"{func.__name__}: give dim")
    if _dim(input, dim, func.__name__) == input._place:
        out = per_sequence.softmax(input._packed, input._sizes, log)
    else:
        out = func(input._packed, _plain_dim(input, dim, func.__name__))
    return nested(out, input._sizes, input._place)


rule("log_softmax")(partial(_softmax, log=True))


@rule("sum", "mean", "amax", "amin", "all", "any", "logsumexp", "var", "std", "prod", "norm", "max", "min",
      "argmax", "argmin")
def _reduce(func: Any, input: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    name = func.__name__
    kwargs = dict(kwargs)
    lead = list(args)
    position = 1 if name == "norm" else 0
    dim = kwargs.pop("dim") if "dim" in kwargs else lead.pop(position) if len(lead) > position else None
    if dim is None:
        return func(input._packed, *lead, **kwargs)
    dims = [_dim(input, d, name) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    if 0 in dims:
        raise NotImplementedError(f"{name}: sequences of different lengths are not reduced along the batch; "
                                  f"use x.to_padded_tensor(padding)")
    keep = kwargs.get("keepdim", lead[position] if len(lead) > position else False)
    others = [_inner(input, d) for d in dims if d != input._place]
    out: Any = input._packed
    if others:
        out = func(out, *lead[:position], dim=others[0] if len(others) == 1 else tuple(others),
                   **{**kwargs, "keepdim": keep})
    before = 0 if keep else sum(1 for d in dims if d < input._place)
    place = input._place - before
    if input._place not in dims:
        if isinstance(out, tuple):
            return type(out)(*[nested(o, input._sizes, place) for o in out])
        return nested(out, input._sizes, place)
    if name not in ("sum", "mean", "amax", "amin", "max", "min", "logsumexp", "all", "any") \
            or isinstance(out, tuple):
        raise NotImplementedError(f"{name}: there is no form of it along the ragged dimension; use "
                                  f"x.to_padded_tensor(padding), or x.unbind()")
    found = _along(name, out, input._sizes, kwargs.get("dtype"))
    return found.unsqueeze(place) if keep else found


def _along(name: str, values: Any, sizes: Ragged, dtype: Any) -> Any:
    values = values if dtype is None else values.to(dtype)
    if name == "sum":
        return per_sequence.total(values, sizes)
    if name == "mean":
        many = sizes.lengths.reshape(-1, *(1,) * (values.ndim - 1))
        return per_sequence.total(values, sizes) / values.new_tensor(many)
    if name == "logsumexp":
        top = per_sequence.extreme(values.detach(), sizes, "amax")
        return per_sequence.total((values - rows(top, sizes.index)).exp(), sizes).log() + top
    if name in ("all", "any"):
        counts = per_sequence.total((values == 0 if name == "all" else values != 0).long(), sizes)
        return counts == 0 if name == "all" else counts != 0
    return per_sequence.extreme(values, sizes, {"max": "amax", "min": "amin"}.get(name, name))


def _shown(x: NestedTensor) -> list:
    """For each dimension behind the batch, that of the values."""
    return [*range(1, x._place), 0, *range(x._place, x._packed.ndim)]


@rule("transpose", "swapaxes", "swapdims")
def _transpose(func: Any, input: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    dims = list(range(input.ndim))
    a, b = _dim(input, dim0, "transpose"), _dim(input, dim1, "transpose")
    dims[a], dims[b] = dims[b], dims[a]
    return _permute(func, input, dims)


@rule("permute")
def _permute(func: Any, input: NestedTensor, *dims: Any) -> NestedTensor:
    flat = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = [_dim(input, d, "permute") for d in flat]
    if sorted(order) != list(range(input.ndim)) or order[0]:
        raise NotImplementedError(f"permute: the batch of a nested tensor stays in front, got {list(flat)}")
    shown = [_shown(input)[d - 1] for d in order[1:]]
    place = shown.index(0) + 1
    return nested(input._packed.permute(0, *[d for d in shown if d]), input._sizes, place)  # type: ignore[attr-defined]


@rule("unsqueeze")
def _unsqueeze(func: Any, input: NestedTensor, dim: int) -> NestedTensor:
    at = dim % (input.ndim + 1)
    if not at:
        raise NotImplementedError("unsqueeze: the batch of a nested tensor stays in front")
    inner = at if at <= input._place else at - 1
    return nested(input._packed.unsqueeze(inner), input._sizes, input._place + (at <= input._place))  # type: ignore[attr-defined]


@rule("squeeze")
def _squeeze(func: Any, input: NestedTensor, dim: int) -> NestedTensor:
    inner, at = _plain_dim(input, dim, "squeeze"), dim % input.ndim
    out = input._packed.squeeze(inner)  # type: ignore[attr-defined]
    return nested(out, input._sizes, input._place - (at < input._place and out.ndim < input._packed.ndim))


@rule("flatten")
def _flatten(func: Any, input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    a, b = _plain_dim(input, start_dim, "flatten"), _plain_dim(input, end_dim, "flatten")
    if start_dim % input.ndim < input._place < end_dim % input.ndim:
        raise NotImplementedError("flatten: the ragged dimension of a nested tensor is not merged")
    merged = max(0, b - a) if end_dim % input.ndim < input._place else 0
    return nested(func(input._packed, a, b), input._sizes, input._place - merged)


@rule("unflatten")
def _unflatten(func: Any, input: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    inner, at = _plain_dim(input, dim, "unflatten"), dim % input.ndim
    more = len(sizes) - 1 if at < input._place else 0
    return nested(func(input._packed, inner, sizes), input._sizes, input._place + more)


@rule("reshape", "view")
def _reshape(func: Any, input: NestedTensor, *shape: Any) -> NestedTensor:
    sizes = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape)
    ragged = len(sizes) > 1 and (sizes[1] == input._sizes or sizes[1] == -1)
    if input._place != 1 or not ragged or sizes[0] not in (-1, len(input)):
        raise NotImplementedError(f"{func.__name__}: wanted (batch, j, ...) with the ragged dimension (or "
                                  f"-1) second, as x.shape has it, got {sizes} of {input.shape}")
    return nested(input._packed.reshape(input._packed.shape[0], *sizes[2:]), input._sizes, 1)  # type: ignore[attr-defined]


@rule("split", "chunk", "tensor_split", "split_with_sizes")
def _split(func: Any, input: NestedTensor, sizes: Any, dim: int = 0) -> tuple:
    parts = func(input._packed, sizes, dim=_plain_dim(input, dim, func.__name__))
    return tuple([nested(p, input._sizes, input._place) for p in parts])


@rule("cat", "concat", "concatenate")
def _cat(func: Any, tensors: Any, dim: int = 0) -> NestedTensor:
    parts = list(tensors)
    first = parts[0]
    if not all(isinstance(x, NestedTensor) and (x.ndim, x._place) == (first.ndim, first._place)
               for x in parts):
        raise ShapeError("cat: all tensors must be nested, with as many dimensions and the same ragged one")
    at = _dim(first, dim, "cat")
    if at not in (0, first._place):
        whole = cat_values([_fitted(x, first, "cat") for x in parts], _inner(first, at))
        return nested(whole, first._sizes, first._place)
    whole = cat_values([x._packed for x in parts])
    if not at:
        lengths = np.concatenate([x._sizes.lengths for x in parts])
        return nested(whole, Ragged(np.concatenate([[0], np.cumsum(lengths)])), first._place)
    if len({len(x) for x in parts}) > 1:
        raise ShapeError(f"cat: {[len(x) for x in parts]} sequences do not go together")
    begins, starts = 0, []
    for x in parts:
        starts.append(x._sizes.starts + begins)
        begins += len(x._packed)
    pieces = [np.arange(s[i], s[i + 1]) for i in range(len(first)) for s in starts]
    sizes = Ragged(np.concatenate([[0], np.cumsum(sum(x._sizes.lengths for x in parts))]))
    return nested(rows(whole, np.concatenate(pieces)), sizes, first._place)


@rule("select")
def _select(func: Any, input: NestedTensor, dim: int, index: int) -> Any:
    at = _dim(input, dim, "select")
    if not at:
        return input[index]
    if at == input._place:
        if at != 1:
            raise NotImplementedError("select: along the ragged dimension it must be the second")
        return input.step(index)
    inner = _inner(input, at)
    return nested(func(input._packed, inner, index), input._sizes, input._place - (at < input._place))
