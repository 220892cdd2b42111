"""Products of matrices on GPUs (``cublas.py``), linear layers, vectors of length 1."""

import math
from typing import Any

from ...backends import device_code, device_launcher, device_products
from ..language.cuda import DeviceKernel
from ..language.cuda_fold import DeviceFold
from ..reduce.along import kept_shape
from ..reduce.cuda import vector_norm
from . import cublas


def matmul(x: Any, y: Any) -> Any:
    """The device function of matmul."""
    return cublas.product(x, y)


def linear(x: Any, w: Any, b: Any) -> Any:
    """That of linear: one product of matrices with the bias added to it."""
    if w.ndim != 2 or b is not None and (b.dtype != w.dtype or b.shape not in (w.shape[:1], (1,), ())):
        return NotImplemented
    return cublas.product(x, w.T, b)


def _linear_active(x: Any, w: Any, b: Any, active: int, kept: Any = None) -> Any:
    """A linear layer and what follows it as one product; NotImplemented where cuBLASLt has no plan for it."""
    fits = b is None or b.dtype == w.dtype and b.shape == w.shape[:1] and b.flags.c_contiguous
    if w.ndim != 2 or not fits:
        return NotImplemented
    end = active | (0 if b is None else device_products.BIAS) | (0 if kept is None else device_products.KEPT)
    return cublas.followed(x, w.T, end, b, kept)


def linear_relu(x: Any, w: Any, b: Any) -> Any:
    """``relu(linear(x, w, b))``"""
    return _linear_active(x, w, b, device_products.RELU)


def linear_gelu(x: Any, w: Any, b: Any) -> Any:
    """``gelu(linear(x, w, b), "tanh")``"""
    return _linear_active(x, w, b, device_products.GELU)


def linear_gelu_kept(x: Any, w: Any, b: Any) -> Any:
    """The same, and what gelu was of, which its derivative reads."""
    before = cublas.kept_of(device_products.GELU, math.prod(x.shape[:-1]), w.shape[0], x.dtype)
    out = _linear_active(x, w, b, device_products.GELU, before)
    return out if out is NotImplemented else (out, before.reshape(out.shape))


def _as_rows(*arrays: Any) -> list:
    return [a.reshape(-1, a.shape[-1]) for a in arrays]


def linear_gradients(g: Any, x: Any) -> Any:
    """The gradients of a linear layer's weight and bias by one product; NotImplemented where cuBLASLt has no
    plan for it."""
    if g.ndim < 2 or device_code.char_of(g, x) not in device_code.FLOATS:
        return NotImplemented
    rows, columns = _as_rows(g, x)
    total = device_launcher.empty(rows.shape[1:], g.dtype)
    out = cublas.followed(rows.T, columns, device_products.SUM_OF_SECOND, total)
    return out if out is NotImplemented else (out, total)


_ACTIVE = {"relu": (device_products.RELU, device_products.RELU_SLOPE),
           "gelu": (device_products.GELU, device_products.GELU_SLOPE)}


def feed_forward(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, *, active: str) -> Any:
    """The device function of feed_forward."""
    code = _ACTIVE[active][0]
    kept = cublas.kept_of(code, math.prod(x.shape[:-1]), w1.shape[0], x.dtype)
    hidden = _linear_active(x, w1, b1, code, kept)
    if hidden is NotImplemented:
        return hidden
    y = linear(hidden, w2, b2)
    return y if y is NotImplemented else (y, hidden, kept)


def hidden_gradients(g: Any, w: Any, kept: Any, *, active: str, biased: bool) -> Any:
    """The slope of what an activation was of, from that of the layer behind it whose weight is ``w``, and its
    sum, the gradient of a bias, or None; NotImplemented where cuBLASLt has no plan for it."""
    rows, end = _as_rows(g)[0], _ACTIVE[active][1]
    total = device_launcher.empty(w.shape[1], g.dtype) if biased else None
    d = cublas.followed(rows, w, end | device_products.SLOPE_SUM if biased else end, total, kept)
    return d if d is NotImplemented else (d.reshape(*g.shape[:-1], w.shape[1]), total)


# -- vectors scaled to length 1 ------------------------------------------------------------------------

_scaled = DeviceKernel("x / maximum(size, eps)", ("x", "size", "eps"), lambda *_: NotImplemented)
_product = DeviceFold("g * x", ("g", "x"))
_turned = DeviceKernel(
    "(g - where(size < eps, 0.0, dot / maximum(size, eps) * (x / maximum(size, eps)))) / maximum(size, eps)",
    ("g", "x", "size", "dot", "eps"), lambda *_: NotImplemented)


def _length(x: Any, dim: int) -> Any:
    return vector_norm(x, ord=2.0, dims=(dim,), keepdim=True)


def unit(x: Any, *, dim: int, eps: float) -> Any:
    """The device function of normalize."""
    size = _length(x, dim)
    return size if size is NotImplemented else _scaled(x, size, eps)


def unit_grad(g: Any, x: Any, dim: int, eps: float) -> Any:
    """That of its backward: ``(g - u (g . u)) / size``, u being of length 1."""
    size = _length(x, dim)
    dot = NotImplemented if size is NotImplemented else _product(
        "sum", (dim,), kept_shape(x.shape, (dim,)), g, x)
    return dot if dot is NotImplemented else _turned(g, x, size, dot, eps)
