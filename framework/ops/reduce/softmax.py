"""Softmax and its logarithm along one dimension, stable for any finite input."""

import warnings
from typing import Any

from ... import _native
from ...config import names
from ...tensor import Tensor
from ..pointwise.elementary import exp
from ..record import autocast
from ..record.args import floating, one_dim, tensor_arg
from ..record.batched import along
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.view import take_shape
from . import cuda
from .sums import sum_op


def _shifted(xp: Any, x: Any, dim: int) -> Any:
    return x - x.max(axis=dim, keepdims=True)


def _softmax_kernel(xp: Any, x: Any, *, dim: int) -> Any:
    if not x.size:
        return x.copy()
    out = _shifted(xp, x, dim)
    xp.exp(out, out=out)
    out /= out.sum(axis=dim, keepdims=True, dtype=x.dtype)
    return out


def _log_softmax_kernel(xp: Any, x: Any, *, dim: int) -> Any:
    if not x.size:
        return x.copy()
    out = _shifted(xp, x, dim)
    out -= xp.log(xp.exp(out).sum(axis=dim, keepdims=True, dtype=x.dtype))
    return out


def _softmax_grad_kernel(xp: Any, g: Any, y: Any, *, dim: int) -> Any:
    out = g * y
    total = out.sum(axis=dim, keepdims=True, dtype=y.dtype)
    xp.subtract(g, total, out=out)
    out *= y
    return out


def _log_softmax_grad_kernel(xp: Any, g: Any, y: Any, *, dim: int) -> Any:
    out = xp.exp(y)
    out *= g.sum(axis=dim, keepdims=True, dtype=y.dtype)
    xp.subtract(g, out, out=out)
    return out


def _sum(x: Any, dim: int) -> Any:
    return sum_op(x, dims=(dim,), keepdim=True)


def _softmax_grad_of_y(h: Any, g: Any, y: Any, dim: int) -> Any:
    return h * (g - _sum(g * y, dim)) - g * _sum(h * y, dim)


def _log_softmax_grad_of_g(h: Any, y: Any, dim: int) -> Any:
    return h - _sum(h * exp.op(y), dim)


def _infer(x: Meta, *, dim: int) -> Meta:
    floating(x, "softmax", "input")
    one_dim(dim, x.ndim, "softmax")
    return x


# the backward of softmax, y * (g - sum(g * y)), and that of its logarithm, g - exp(y) * sum(g)
softmax_grad = Op("softmax_grad", "g y", kernel=_softmax_grad_kernel, native="softmax_grad",
                  device=cuda.softmax_grad,
                  batch=along("dim"),
                  infer=lambda g, y, *, dim: y, vjp={"g": lambda h, y, dim: softmax_grad(h, y, dim=dim),
                                                     "y": _softmax_grad_of_y})
log_softmax_grad = Op("log_softmax_grad", "g y", kernel=_log_softmax_grad_kernel, native="log_softmax_grad",
                      device=cuda.log_softmax_grad,
                      batch=along("dim"),
                      infer=lambda g, y, *, dim: y, vjp={
                          "g": _log_softmax_grad_of_g,
                          "y": lambda h, g, y, dim: -h * exp.op(y) * _sum(g, dim)})

softmax_op = Op("softmax", "x", onnx="Softmax(x, axis=dim)", runtime="softmax(x, dim)",
                kernel=_softmax_kernel, native="softmax", infer=_infer, jvp="symmetric", device=cuda.softmax,
                batch=along("dim"),
                vjp={"x": lambda g, out, dim: softmax_grad(g, out, dim=dim)})
log_softmax_op = Op("log_softmax", "x", onnx="LogSoftmax(x, axis=dim)", runtime="softmax(x, dim, True)",
                    kernel=_log_softmax_kernel, native="log_softmax", infer=_infer, device=cuda.log_softmax,
                    batch=along("dim"),
                    vjp={"x": lambda g, out, dim: log_softmax_grad(g, out, dim=dim)})


def _along(op: Op, x: Tensor, dim: int | None, dtype: Any) -> Tensor:
    tensor_arg(x, op.name, "input")
    if dim is None and names.package == "torch":
        warnings.warn(f"{op.name}: dim is chosen by the number of dimensions, as PyTorch did at first; pass "
                      f"dim=", UserWarning, stacklevel=3)
        dim = 0 if x.ndim in (0, 1, 3) else 1
    if dim is None:
        raise TypeError(f"{op.name}: dim is needed: the dimension along which the results sum to 1, "
                        f"e.g. dim=-1")
    at = one_dim(dim, x.ndim, op.name)
    if dtype is not None:
        x = x.to(dtype)  # type: ignore[attr-defined]
    floating(x, op.name, "input")
    if x.ndim:
        return op.run(x, dim=at)
    return take_shape(op.run(take_shape(x, (1,)), dim=0), ())


if hasattr(_native.module, "before"):
    _along = _native.module.before("run_along", _along)


@public(method=True, op=softmax_op, deferred=True)
@public("nn.functional", op=softmax_op, out=True, numpy=True, deferred=True)
def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """``exp(x_i) / sum_j exp(x_j)`` along ``dim``.

    dtype: convert the input first. A slice that is all -inf gives nan. Raises DTypeError for
    integers, TypeError without ``dim``.

    >>> fw.softmax(fw.tensor([0.0, 0.0, 0.0, 0.0]), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    return _along(softmax_op, input, dim, dtype)


@public(method=True, op=log_softmax_op, deferred=True)
@public("nn.functional", op=log_softmax_op, out=True, numpy=True, deferred=True)
def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """``x_i - log(sum_j exp(x_j))`` along ``dim``; more exact than the log of softmax.

    dtype: convert the input first. Raises DTypeError for integers, TypeError without ``dim``.

    >>> fw.log_softmax(fw.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    return _along(log_softmax_op, input, dim, dtype)


@public("nn.functional", deferred=True)
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """``softmax(-input)`` along ``dim``.

    >>> fw.nn.functional.softmin(fw.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    return _along(softmax_op, -tensor_arg(input, "softmin", "input"), dim, dtype)  # type: ignore
