"""Questions about dtypes."""

from typing import Any

from ... import dtypes
from ...tensor import Tensor
from ..record.args import tensor_arg
from ..record.public import public


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
