"""Elementwise ops written straight into a tensor's memory: what in-place forms and ``out=`` try first."""

from typing import Any, NamedTuple

from .. import dtypes
from ..autograd.mode import state
from ..backends import array_module
from ..errors import AutogradError
from ..node import Leaf
from ..quiet import quietly
from ..tensor import Tensor, bump
from .views import overlaps_itself


class Call(NamedTuple):
    """One call of a record, by which a public function can be computed: ``op.run(*inputs, **settings)``."""

    op: Any
    inputs: tuple
    settings: dict[str, Any] = {}

    def run(self) -> Tensor:
        return self.op.run(*self.inputs, **self.settings)


def guard(x: Tensor, name: str) -> None:
    """Raise if ``x`` may not be changed in place here: a recorded leaf, or a view of one."""
    if not state.recording:
        return
    for tensor, what in ((x, "a leaf tensor that requires grad"),
                         (x._base, "a view of a leaf tensor that requires grad")):
        if tensor is not None and type(tensor._node) is Leaf:
            raise AutogradError(f"{name}: {what} cannot be changed in place while gradients are recorded; "
                                f"use the out-of-place form, or wrap the change in framework.no_grad()")


def memory_of(x: Tensor, name: str) -> Any:
    """The array of ``x``, to be written into; raises if it is read-only or has elements in one place."""
    array = x._array
    if x.is_cuda or not array.flags.writeable:
        if overlaps_itself(array):
            raise AutogradError(f"{name}: this tensor of shape {list(x.shape)} is an expanded or overlapping "
                                f"view, several elements of which share one place in memory; clone() it "
                                f"before changing it")
        if not x.is_cuda:
            raise ValueError(f"{name}: this tensor's memory is read-only; clone() it before changing it")
    return array


def computed_into(x: Any, call: Call, name: str) -> bool:
    """Whether the kernel has written the result of ``call`` into ``x``: nothing is recorded, nothing promoted.

    Nothing has changed where the answer is no.
    """
    if not isinstance(x, Tensor) or state.enabled and (
            x._node is not None or x._base is not None and x._base._node is not None):
        return False
    op, inputs, settings = call
    operands = _operands(op, x, inputs)
    if operands is None:
        return False
    guard(x, name)
    memory = memory_of(x, name)
    try:
        quietly(op.cpu if dtypes.plain else op.kernel_for(operands), *operands, **settings, out=memory)
    except TypeError:
        return False  # a formula that has no ``out``, or a ufunc no loop that gives this dtype
    except Exception as error:
        op._rescue(error, inputs, operands, settings)
    bump(x, name)
    return True


def _operands(op: Any, x: Tensor, inputs: tuple) -> list | None:
    """The arrays of the inputs; None unless their result has the dtype and the shape of ``x``."""
    array, shape = x._array, x._array.shape
    dtype, kind = array.dtype, array.dtype.kind
    if op.result not in _LIKE_INPUTS or kind not in op.kinds and kind != "V" or kind == "c" and op.result == "real":
        return None
    operands, whole = [], False
    for i, other in enumerate(inputs):
        if isinstance(other, Tensor):
            b = other._array
            wanted = b.dtype.kind == "b" if i == 0 and op.result == "select" else b.dtype is dtype
            if (not wanted or type(b) is not type(array) or state.enabled and other._node is not None
                    or b.shape != shape and not _broadcasts(b.shape, shape)
                    or x.is_cuda and b is not array and array_module(b).may_share_memory(b, array)):
                return None
            whole = whole or b.shape == shape
            operands.append(b)
        elif type(other) in (float, int) and kind == "f":
            operands.append(other)
        else:
            return None
    return operands if whole else None


_LIKE_INPUTS = ("same", "number", "real", "float", "select")


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to)))
