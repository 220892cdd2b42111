"""What is done to all tensors of a module at once: convert, move, share, clear gradients.

Each of them prepares everything before it changes anything, so that a failure changes nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any

from .. import dtypes
from ..autograd.mode import no_grad
from ..creation import zeros_like
from ..device import Device, as_device
from ..memory_formats import MemoryFormat, checked
from ..ops.convert.share import share
from ..sparse_door import is_sparse
from ..tensor import Tensor
from .parameter import is_lazy


def share_memory(module: Any) -> Any:
    """See ``Module.share_memory``."""
    parameters = list(module.parameters())
    share([*parameters, *(p.grad for p in parameters if p.grad is not None), *module.buffers()])
    return module


def convert(modules: Iterable[Any], function: Callable[[Tensor], Tensor]) -> None:
    """Give every parameter, gradient and buffer of these modules the memory of ``function`` of it."""
    tensors = {id(t): t for m in modules for kind in ("parameter", "buffer") for _, t in m._own(kind)}
    with no_grad():
        ready = [(t, t.converted(function) if is_lazy(t) else function(t.detach()),  # type: ignore
                  None if t.grad is None else function(t.grad.detach())) for t in tensors.values()]
    for t, new, grad in ready:
        if is_lazy(t):
            t.become(new)  # type: ignore[attr-defined]
        elif is_sparse(t) or new._array is not t._array or grad is not None:
            if grad is not None:
                t.grad = None
            t.data = new
            if grad is not None:
                t.grad = grad


def to(module: Any, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False,
       memory_format: MemoryFormat | None = None) -> Any:
    """See ``Module.to``."""
    for arg in args:
        if isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, (str, Device, int)) and not isinstance(arg, bool):
            device = arg
        elif isinstance(arg, bool):
            non_blocking = arg
        elif arg is not None:
            dtype = arg
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    if memory_format is not None:
        checked(memory_format, f"{type(module).__name__}.to")
    if kind is not None and kind.category < 2:
        raise TypeError(f"{type(module).__name__}.to: dtype must be floating, got {kind}; "
                        f"use .type({kind}) to convert everything")
    place = None if device is None else as_device(device)

    def move(t: Tensor) -> Tensor:
        new = kind if kind is None or t.dtype.category >= dtypes.FLOAT else t.dtype
        if new is not None and t.is_complex():
            new = new.to_complex()  # a real dtype names the precision, not the loss of imaginary parts
        order = memory_format if memory_format is not None and memory_format.ndim in (0, t.ndim) else None
        return t.to(device=place, dtype=new, memory_format=order, non_blocking=non_blocking)  # type: ignore[attr-defined]
    return module._apply(move)


def zero_grad(parameters: Iterable[Tensor], set_to_none: bool) -> None:
    """See ``Module.zero_grad``."""
    for p in parameters:
        if p.grad is not None:
            p.grad = None if set_to_none else zeros_like(p.grad)
