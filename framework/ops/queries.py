"""Questions about tensors, and methods that few programs use: types, diagonals, functions of elements."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..backends import array_module
from ..errors import AutogradError, DTypeError, ShapeError
from ..tensor import Tensor
from ..tensor import wrap as over
from .args import tensor_arg
from .broadcast import broadcast_shape
from .cast import to
from .inplace import copy_, inplace
from .pointwise import masked_fill
from .public import public

_NAMES = {"BoolTensor": dtypes.bool_, "ByteTensor": dtypes.uint8, "CharTensor": dtypes.int8,
          "ShortTensor": dtypes.int16, "IntTensor": dtypes.int32, "LongTensor": dtypes.int64,
          "HalfTensor": dtypes.float16, "BFloat16Tensor": dtypes.bfloat16, "FloatTensor": dtypes.float32,
          "DoubleTensor": dtypes.float64, "ComplexFloatTensor": dtypes.complex64,
          "ComplexDoubleTensor": dtypes.complex128}


@public(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not 0; ShapeError for any other number of elements.

    >>> fw.is_nonzero(fw.tensor([2.0]))
    True
    """
    if tensor_arg(input, "is_nonzero").numel() != 1:
        raise ShapeError(f"is_nonzero: wanted a tensor of one element, got shape {list(input.shape)}; use "
                         f".any() or .all()")
    return bool(input.item() != 0)


@public(method=True)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype holds negative numbers.

    >>> fw.is_signed(fw.tensor([1])), fw.is_signed(fw.tensor([True]))
    (True, False)
    """
    return tensor_arg(input, "is_signed")._array.dtype.kind not in "ub"


@public(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape.

    >>> fw.is_same_size(fw.ones(2), fw.ones(2, 1))
    False
    """
    return tensor_arg(input, "is_same_size").shape == tensor_arg(other, "is_same_size", "other").shape


@public()
def result_type(tensor: Any, other: Any) -> dtypes.DType:
    """The dtype of ``tensor + other``, each a tensor or a Python number.

    >>> fw.result_type(fw.tensor([1, 2]), 1.0)
    framework.float32
    """
    groups: tuple[list, list, list] = ([], [], [])
    for x in (tensor, other):
        if isinstance(x, Tensor):
            groups[0 if x.ndim else 1].append(x.dtype)
        else:
            groups[2].append(dtypes.scalar_dtype(x))
    return dtypes.combine(groups)


@public("", method="type", name="type")
def type_(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The tensor in another dtype, given as such or as a name like "framework.FloatTensor".

    Without ``dtype`` that name, with "cuda." before its last part on a GPU.

    >>> fw.ones(2).type()
    'framework.FloatTensor'
    >>> fw.ones(2).type(fw.int64)
    tensor([1, 1])
    """
    if dtype is None:
        own = next((n for n, d in _NAMES.items() if d is input.dtype), None)
        if own is None:
            raise DTypeError(f"type: {input.dtype} has no such name; read x.dtype")
        return f"framework.{'cuda.' * input.is_cuda}{own}"
    if not isinstance(dtype, str):
        return to(input, dtype)
    *lead, last = dtype.split(".")
    if last not in _NAMES or lead not in ([], ["framework"], ["framework", "cuda"]):
        raise DTypeError(f"type: {dtype!r} names no type of tensor; give a dtype such as framework.float32, "
                         f"or a name such as 'framework.FloatTensor'")
    return to(input, "cuda" if "cuda" in lead else "cpu" if lead else input.device, _NAMES[last])


def _with_diagonal(input: Tensor, fill_value: float, wrap: bool) -> Tensor:
    if input.ndim < 2 or (input.ndim > 2 and len(set(input.shape)) != 1):
        raise ShapeError(f"fill_diagonal_: wanted a matrix, or more dimensions of one size, got shape "
                         f"{list(input.shape)}")
    xp = array_module(input._array)
    mask = xp.zeros(input.shape, bool)
    xp.fill_diagonal(mask, True, wrap)
    return masked_fill(input, over(mask), fill_value)


_fill_diagonal = inplace(_with_diagonal, "fill_diagonal", None)


@public("", method=True)
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Set the elements whose indices are all equal to ``fill_value``; returns this tensor.

    wrap: in a matrix of more rows than columns, start again below the diagonal, one row left out. Raises
    ShapeError below 2 dimensions, or for more of different sizes.

    >>> fw.zeros(2, 3).fill_diagonal_(5)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    return _fill_diagonal(input, fill_value, wrap)


def _mapped(x: Tensor, function: Callable, *others: Tensor, name: str) -> Tensor:
    if x._node is not None or any(o._node is not None for o in others):
        raise AutogradError(f"{name}: a Python function of the elements is not recorded; use x.detach()")
    for other in others:
        if broadcast_shape((x.shape, other.shape), name) != x.shape:
            raise ShapeError(f"{name}: other of shape {list(other.shape)} does not broadcast to "
                             f"{list(x.shape)}")
    arrays = np.broadcast_arrays(*[to(t, "cpu")._array for t in (x, *others)])
    flat = [function(*row) for row in zip(*[a.reshape(-1).tolist() for a in arrays])]
    return copy_(x, over(np.array(flat, x._array.dtype).reshape(x.shape)))


@public("", method=True)
def apply_(input: Tensor, callable: Callable) -> Tensor:
    """Replace every element by ``callable(element)``, one Python call each; returns this tensor.

    Slow, and unrecorded: AutogradError where grad is required.

    >>> fw.tensor([1.0, 2.0]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    return _mapped(input, callable, name="apply_")


@public("", method=True)
def map_(input: Tensor, other: Tensor, callable: Callable) -> Tensor:
    """Replace every element by ``callable(element, that of other)``; shapes broadcast to this tensor's.

    Slow, and unrecorded: AutogradError where grad is required.

    >>> fw.tensor([1.0, 2.0]).map_(fw.tensor([3.0]), lambda a, b: a * b)
    tensor([3., 6.])
    """
    return _mapped(input, callable, tensor_arg(other, "map_", "other"), name="map_")
