"""How a ``Function`` of one's own behaves in a block of autocast, and its backward after it."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from ..dtypes import DType, as_dtype
from ..tensor import Tensor
from .casting import convertible
from .mode import _known, autocast, get_autocast_dtype, is_autocast_enabled


def _converted(value: Any, dtype: DType, kind: str) -> Any:
    """The tensors that autocast may convert, also those inside of containers, in ``dtype``."""
    if isinstance(value, Tensor):
        fits = convertible(value) and value.is_cuda == (kind == "cuda")
        return value.to(dtype) if fits else value  # type: ignore[attr-defined]
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, dict):
        return {_converted(k, dtype, kind): _converted(v, dtype, kind) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_converted(v, dtype, kind) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """For ``forward`` of a ``Function``: say how it runs under autocast, and tell ``custom_bwd`` of it.

    cast_inputs: in a block of autocast, convert floating tensors among the arguments to this dtype and run
    with autocast off; otherwise operations inside choose their dtypes as the block says.

    >>> class Square(fw.autograd.Function):
    ...     @staticmethod
    ...     @fw.amp.custom_fwd(device_type="cpu", cast_inputs=fw.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @fw.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         return 2 * g * ctx.saved_tensors[0]
    >>> with fw.autocast("cpu", fw.bfloat16):
    ...     Square.apply(fw.ones(2).bfloat16()).dtype
    framework.float32
    """
    _known(device_type, "custom_fwd")
    if fwd is None:
        return partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    wanted = None if cast_inputs is None else as_dtype(cast_inputs)

    @wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = enabled and wanted is None
        if wanted is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_converted(args, wanted, device_type), **_converted(kwargs, wanted, device_type))

    return forward


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Any:
    """For ``backward`` of a ``Function``: run it under the autocast that ``forward`` ran under.

    ``forward`` must have ``custom_fwd`` with the same device_type.

    >>> fw.amp.custom_bwd(device_type="cpu")(lambda ctx, g: g).__name__
    '<lambda>'
    """
    _known(device_type, "custom_bwd")
    if bwd is None:
        return partial(custom_bwd, device_type=device_type)

    @wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return backward
