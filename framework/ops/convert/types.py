"""Questions about dtypes, and types by name."""

from typing import Any

from ... import dtypes
from ...errors import DTypeError
from ...tensor import Tensor
from ..record.args import tensor_arg
from ..record.public import public
from .cast import to

_NAMES = {"BoolTensor": dtypes.bool_, "ByteTensor": dtypes.uint8, "CharTensor": dtypes.int8,
          "ShortTensor": dtypes.int16, "IntTensor": dtypes.int32, "LongTensor": dtypes.int64,
          "HalfTensor": dtypes.float16, "BFloat16Tensor": dtypes.bfloat16, "FloatTensor": dtypes.float32,
          "DoubleTensor": dtypes.float64, "ComplexFloatTensor": dtypes.complex64,
          "ComplexDoubleTensor": dtypes.complex128}


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
