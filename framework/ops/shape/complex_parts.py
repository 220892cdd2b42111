"""Views of complex tensors: their real and imaginary parts, and both as a last dimension of real numbers."""

from typing import Any

import numpy as np

from ..convert.cast import cast
from ..record.batched import by_element
from ..record.op import Meta, Op
from .view import seen_in


def part_infer(x: Meta) -> Meta:
    return Meta(x.shape, x.dtype.to_real())


real_op = Op("real", "x", kernel=lambda xp, x: x.real, infer=part_infer, view=True, jvp="linear",
             batch=by_element,
             vjp={"x": lambda g, x_dtype: cast(g, dtype=x_dtype)})
imag_op = Op("imag", "x", kernel=lambda xp, x: x.imag, infer=part_infer, view=True, jvp="linear",
             batch=by_element,
             vjp={"x": lambda g, x_dtype: cast(g, dtype=x_dtype) * 1j})


def _as_real_kernel(xp: Any, x: Any) -> Any:
    x = xp.asarray(x)  # the parts of a NumPy scalar would be copies, with other memory after them
    parts = xp.asarray(x).real  # a NumPy scalar has no memory beside its real part
    if xp is np:
        return seen_in(parts, (*x.shape, 2), (*parts.strides, parts.itemsize), 0, True)
    return xp.lib.stride_tricks.as_strided(parts, (*x.shape, 2), (*parts.strides, parts.itemsize))


as_real_op = Op("view_as_real", "x", kernel=_as_real_kernel, view=True, jvp="linear",
                batch=by_element,
                infer=lambda x: Meta((*x.shape, 2), x.dtype.to_real()),
                vjp={"x": lambda g: as_complex_op(g)})


def _as_complex_kernel(xp: Any, x: Any) -> Any:
    if x.strides[-1] != x.itemsize:
        x = xp.ascontiguousarray(x)  # a gradient may lie in memory as it likes
    return x.view(xp.result_type(x.dtype, xp.complex64))[..., 0]


def _as_complex_infer(x: Meta) -> Meta:
    return Meta(x.shape[:-1], x.dtype.to_complex())


as_complex_op = Op("view_as_complex", "x", kernel=_as_complex_kernel, infer=_as_complex_infer, view="maybe",
                   batch=by_element,
                   jvp="linear", vjp={"x": lambda g: as_real_op(g)})
