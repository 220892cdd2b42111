"""Operators that reduce or run along axes: sums, extremes, norms, order, running sums, losses."""

from collections.abc import Callable
from typing import Any

import numpy as np

import framework as fw
from framework import Tensor

from .table import floating, ints, number, op

F = fw.nn.functional


def _wide(x: Tensor) -> Tensor:
    return x.to(fw.float32) if x.dtype in (fw.float16, fw.bfloat16) else x


def _reduction(name: str, function: Callable) -> None:
    @op(f"Reduce{name}")
    def reduce(x: Tensor, at: Any = None, *, axes: Any = None, keepdims: int = 1,
               noop_with_empty_axes: int = 0) -> Tensor:
        dims = ints(at, axes)
        if not dims:
            if noop_with_empty_axes:
                return function(x, [], True).reshape(x.shape) if name not in ("Sum", "Mean", "Max", "Min",
                                                                              "Prod") else x
            dims = list(range(x.ndim))
        dims = [d % x.ndim for d in dims] if x.ndim else []
        return function(x, dims, bool(keepdims)).to(x.dtype)


def _empty_or(function: Callable, value: float) -> Callable:
    """Extremes of nothing are the smallest and the largest numbers."""
    def extreme(x: Tensor, dims: list, keepdim: bool) -> Tensor:
        if x.numel() or not dims:
            return function(x, dims, keepdim) if dims else x
        shape = [1 if i in dims else n for i, n in enumerate(x.shape)]
        limit = value
        if not floating(x):
            info = np.iinfo(x.numpy().dtype)
            limit = info.min if value < 0 else info.max
        y = fw.full(shape, limit, dtype=x.dtype)
        return y if keepdim else y.reshape([n for i, n in enumerate(shape) if i not in dims])
    return extreme


def _extreme(best: Callable) -> Callable:
    def extreme(x: Tensor, dims: list, keepdim: bool) -> Tensor:
        if x.dtype == fw.bool:
            return best(x.to(fw.uint8), dims, keepdim) != 0
        return best(x, dims, keepdim)
    return extreme


def _product(x: Tensor, dims: list, keepdim: bool) -> Tensor:
    for d in sorted(dims, reverse=True):
        x = fw.prod(x, d, keepdim)
    return x


def _sum(x: Tensor, dims: list, keepdim: bool) -> Tensor:
    return fw.sum(x, dims, keepdim) if dims else x


def _log_sum_exp(x: Tensor, dims: list, keepdim: bool) -> Tensor:
    x = x if floating(x) else x.to(fw.float64)
    if not x.numel() and dims:
        return fw.log(_sum(x, dims, keepdim))
    return fw.logsumexp(x, dims, keepdim) if dims else x


for _name, _function in {
        "Sum": _sum, "Mean": lambda x, d, k: (fw.mean(x, d, k) if floating(x) else fw.mean(x.to(fw.float64),
                                                                                           d, k))
        if d else x,
        "Max": _extreme(_empty_or(fw.amax, -np.inf)), "Min": _extreme(_empty_or(fw.amin,
                                                                                np.inf)), "Prod": _product,
        "L1": lambda x, d, k: _sum(fw.abs(x), d, k),
        "L2": lambda x, d, k: fw.sqrt(_sum(x * x, d, k) if floating(x) else _sum(x * x, d, k).to(fw.float64)),
        "SumSquare": lambda x, d, k: _sum(x * x, d, k),
        "LogSum": lambda x, d, k: fw.log(_sum(x if floating(x) else x.to(fw.float64), d, k)),
        "LogSumExp": _log_sum_exp}.items():
    _reduction(_name, _function)


def _extreme_position(name: str, largest: bool) -> None:
    @op(name)
    def position(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
        y = x.flip(axis) if select_last_index else x
        at = (fw.argmax if largest else fw.argmin)(y, axis, bool(keepdims))
        return x.shape[axis] - 1 - at if select_last_index else at


_extreme_position("ArgMax", True)
_extreme_position("ArgMin", False)


@op("TopK")
def top_k(x: Tensor, count: Any = None, *, k: int | None = None, axis: int = -1, largest: int = 1,
          sorted: int = 1) -> Any:
    n = int(number(count, k))
    values, places = fw.sort(x, axis, bool(largest), stable=True)
    return values.narrow(axis, 0, n), places.narrow(axis, 0, n)


def _running(name: str, function: Callable, one: int) -> None:
    @op(name)
    def running(x: Tensor, axis: Tensor, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
        d = number(axis) % x.ndim
        y = x.flip(d) if reverse else x
        if exclusive:
            first = fw.full([1 if i == d else n for i, n in enumerate(y.shape)], one, dtype=y.dtype)
            y = fw.cat([first, y.narrow(d, 0, y.shape[d] - 1)], d)
        y = function(y, d).to(x.dtype)
        return y.flip(d) if reverse else y


_running("CumSum", fw.cumsum, 0)
_running("CumProd", fw.cumprod, 1)


# -- normalisation -------------------------------------------------------------------------------------


@op("BatchNormalization", since=7)
def batch_norm(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5,
               momentum: float = 0.9, training_mode: int = 0, spatial: int = 1, outputs: int = 1) -> Any:
    if not training_mode:
        if x.ndim >= 2 and spatial:
            return F.batch_norm(x, mean, var, scale, bias, False, 0.1, epsilon)
        return (x - mean) / fw.sqrt(var + epsilon) * scale + bias
    dims = [d for d in range(x.ndim) if d != 1]
    now, spread = fw.mean(x, dims), fw.var(x, dims, correction=0)
    shape = (-1, *[1] * (x.ndim - 2))
    y = (x - now.reshape(shape)) / fw.sqrt(spread.reshape(shape) + epsilon)
    y = y * scale.reshape(shape) + bias.reshape(shape)
    after = mean * momentum + now * (1 - momentum), var * momentum + spread * (1 - momentum)
    return y if outputs == 1 else (y, *after)[:outputs]


@op("BatchNormalization")
def batch_norm_as_was(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *,
                      epsilon: float = 1e-5, momentum: float = 0.9, is_test: int = 0, spatial: int = 1,
                      consumed_inputs: Any = None) -> Any:
    return batch_norm(x, scale, bias, mean, var, epsilon=epsilon, spatial=spatial)


@op("InstanceNormalization")
def instance_norm(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5,
                  consumed_inputs: Any = None) -> Tensor:
    dims = list(range(2, x.ndim))
    shape = (-1, *[1] * (x.ndim - 2))
    centred = x - fw.mean(x, dims, True)
    var = fw.mean(centred * centred, dims, True)
    return centred / fw.sqrt(var + epsilon) * scale.reshape(shape) + bias.reshape(shape)


@op("LayerNormalization")
def layer_norm(x: Tensor, scale: Tensor, bias: Any = None, *, axis: int = -1, epsilon: float = 1e-5,
               stash_type: int = 1,
               outputs: int = 1) -> Any:
    dims = list(range(axis % x.ndim, x.ndim))
    shape = tuple(x.shape[dims[0]:])
    if outputs == 1 and tuple(scale.shape) == shape and (bias is None or tuple(bias.shape) == shape):
        return F.layer_norm(x, shape, scale, bias, epsilon)
    wide = _wide(x)
    mean = fw.mean(wide, dims, True)
    centred = wide - mean
    rate = 1 / fw.sqrt(fw.mean(centred * centred, dims, True) + epsilon)
    y = (centred * rate).to(x.dtype) * scale
    y = y if bias is None else y + bias
    return y if outputs == 1 else (y, mean, rate)[:outputs]


@op("RMSNormalization")
def rms_norm(x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5,
             stash_type: int = 1) -> Tensor:
    dims = list(range(axis % x.ndim, x.ndim))
    wide = _wide(x)
    return (wide / fw.sqrt(fw.mean(wide * wide, dims, True) + epsilon)).to(x.dtype) * scale


@op("GroupNormalization", since=21)
def group_norm(x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5,
               stash_type: int = 1) -> Tensor:
    return F.group_norm(x, num_groups, scale, bias, epsilon)


@op("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    size = fw.sum(fw.abs(x), axis, True) if p == 1 else fw.sqrt(fw.sum(x * x, axis, True))
    return fw.where(size == 0, fw.zeros_like(x), x / fw.where(size == 0, fw.ones_like(size), size))


@op("LRN")
def lrn(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    low, high = (size - 1) // 2, size // 2
    square = F.pad((x * x).movedim(1, -1), (low, high)).movedim(-1, 1)
    n = x.shape[1]
    total: Any = sum(square.narrow(1, i, n) for i in range(size))
    return x / (bias + alpha / size * total) ** beta


# -- losses ---------------------------------------------------------------------------------------------


def _lost(logp: Tensor, target: Tensor, weight: Any, ignore: int | None, reduction: str) -> Tensor:
    places = target.to(fw.int64)
    known = fw.ones(places.shape, dtype=fw.bool) if ignore is None else places != ignore
    safe = fw.where(known, places, 0)
    share = fw.ones(safe.shape, dtype=logp.dtype) if weight is None else weight[safe]
    share = share * known.to(logp.dtype)
    loss = -fw.gather(logp, 1, safe.unsqueeze(1)).squeeze(1) * share
    if reduction == "none":
        return loss
    return fw.sum(loss) / fw.sum(share) if reduction == "mean" else fw.sum(loss)


@op("NegativeLogLikelihoodLoss")
def nll_loss(x: Tensor, target: Tensor, weight: Any = None, *, ignore_index: int | None = None,
             reduction: str = "mean") -> Tensor:
    return _lost(x, target, weight, ignore_index, reduction)


@op("SoftmaxCrossEntropyLoss")
def cross_entropy(x: Tensor, target: Tensor, weight: Any = None, *, ignore_index: int | None = None,
                  reduction: str = "mean", outputs: int = 1) -> Any:
    logp = F.log_softmax(x, 1)
    loss = _lost(logp, target, weight, ignore_index, reduction)
    return loss if outputs == 1 else (loss, logp)
