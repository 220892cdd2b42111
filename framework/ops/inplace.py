"""Writing into a tensor: the one way that every in-place form, assignment and ``copy_`` takes.

An in-place op is its functional form followed by ``write``: the values go into the tensor's memory,
its version is bumped, and it takes the result's place in the graph. If the tensor is a view, its base
gets a node that puts the new values into the old base, and every live view is replayed from it.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..autograd.mode import state
from ..backends import array_module
from ..dtypes import can_cast
from ..errors import AutogradError, DTypeError, ShapeError
from ..node import Leaf, Node
from ..tensor import Tensor, counter_of, wrap
from .cast import cast
from .elementwise import Elementwise
from .op import Op, quiet


def write(x: Tensor, value: Tensor, name: str) -> Tensor:
    """Put ``value`` (same shape, any dtype that fits) into ``x``, under autograd."""
    if value.shape != x.shape:
        raise ShapeError(f"{name}: the result has shape {list(value.shape)}, which does not fit into a "
                         f"tensor of shape {list(x.shape)} in place")
    if not can_cast(value.dtype, x.dtype):
        raise DTypeError(f"{name}: the result is {value.dtype}, which does not fit into a tensor of "
                         f"{x.dtype} in place; convert the tensor first")
    guard(x, name)
    if value.dtype is not x.dtype:
        value = cast.run(value, dtype=x.dtype)
    _memory(x, name)[...] = value._array
    _bump(x, name)
    if state.enabled:
        _adopt(x, value)
    return x


def guard(x: Tensor, name: str) -> None:
    """Raise if ``x`` may not be changed in place here: a recorded leaf, or a view of one."""
    if not state.enabled:
        return
    for tensor, what in ((x, "a leaf tensor that requires grad"),
                         (x._base, "a view of a leaf tensor that requires grad")):
        if tensor is not None and type(tensor._node) is Leaf:
            raise AutogradError(f"{name}: {what} cannot be changed in place while gradients are recorded; "
                                f"use the out-of-place form, or wrap the change in framework.no_grad()")


def _memory(x: Tensor, name: str) -> Any:
    array = x._array
    if not x.is_cuda and not array.flags.writeable:
        if array.base is not None and array.size and 0 in array.strides:
            raise AutogradError(f"{name}: this tensor is an expanded view, several elements of which share "
                                f"one place in memory; clone() it before changing it")
        raise ValueError(f"{name}: this tensor's memory is read-only; clone() it before changing it")
    return array


def _bump(x: Tensor, name: str) -> None:
    counter = counter_of(x)
    counter[0] += 1
    counter[1] = name


def _adopt(x: Tensor, value: Tensor) -> None:
    """Give ``x`` the place of ``value`` in the graph, and its base and views theirs."""
    base = x._base
    if base is None:
        if value._node is None and x._node is None:
            return
        x._node = value._node
        base = x
    else:
        if value._node is None and base._node is None:
            return
        chain = x._more.chain  # type: ignore[union-attr]
        base._node = Node(put_view, (base._node, value._node), None, None,
                          {"shape": base.shape, "chain": chain}, None)
    _replay_views(base)


def _replay_views(base: Tensor) -> None:
    for ref in (base._more.views if base._more is not None else None) or ():
        view = ref()
        if view is None or type(view._node) is Leaf:
            continue
        t = wrap(base._array, node=base._node)
        for op, settings in view._more.chain:
            t = op.run(t, **settings)
        view._node = t._node


def _put_view_vjp(g: Any, needs: tuple, shape: tuple[int, ...], chain: tuple) -> tuple:
    part = g
    for op, settings in chain:
        part = op(part, **settings)
    if not needs[0]:
        return None, part
    array = g._array if isinstance(g, Tensor) else g
    xp = array_module(array)
    places = xp.arange(int(np.prod(shape))).reshape(shape)
    for op, settings in chain:
        places = op(places, **settings)
    keep = xp.ones(int(np.prod(shape)), dtype=bool)
    keep[places.reshape(-1)] = False
    keep = keep.reshape(shape)
    if isinstance(g, Tensor):
        from .pointwise import _where
        return _where.run(wrap(keep), g, 0.0), part
    return xp.where(keep, g, xp.zeros_like(g)), part


def _put_view_kernel(xp: Any, x: Any, value: Any, *, shape: tuple[int, ...], chain: tuple) -> Any:
    out = x.copy()
    part = out
    for op, settings in chain:
        part = op(part, **settings)
    part[...] = value
    return out


put_view = Op("put_view", "x value", kernel=_put_view_kernel, vjp=_put_view_vjp, jvp="linear")


def inplace(function: Callable, name: str, op: Op | None) -> Callable:
    """The in-place form ``name_`` of a public function whose first argument is the tensor."""
    method = f"{name}_"
    direct = op if isinstance(op, Elementwise) and op.ufunc and op.result == "same" else None

    @wraps(function)
    def form(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if direct is not None and not kwargs and _write_direct(direct, x, args, method):
            return x
        source = x
        if x._node is not None and state.enabled:
            guard(x, method)
            source = wrap(x._array.copy(), node=x._node)  # what backward keeps must survive the write
        return write(x, function(source, *args, **kwargs), method)

    form.__name__ = form.__qualname__ = method
    form.__doc__ = f"``{name}`` in place: writes into this tensor and returns it."
    return form


def _write_direct(op: Elementwise, x: Tensor, args: tuple, name: str) -> bool:
    """Let the ufunc write straight into memory, where nothing is recorded and nothing is promoted."""
    array = x._array
    if (state.enabled and x._node is not None) or len(args) != len(op.inputs) - 1:
        return False
    operands = [array]
    for other in args:
        if isinstance(other, Tensor):
            b = other._array
            if (b.dtype is not array.dtype or (state.enabled and other._node is not None)
                    or type(b) is not type(array) or (b.shape != array.shape and b.ndim)):
                return False
            operands.append(b)
        elif type(other) is float and array.dtype.kind == "f":
            operands.append(other)
        else:
            return False
    guard(x, name)
    quiet.run(op.kernel_for(operands), *operands, out=_memory(x, name))
    _bump(x, name)
    return True
