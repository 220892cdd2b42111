"""What autocast is set to in this thread, and the casts of weights that it remembers."""

from typing import Any

from .. import dtypes
from .._native import Local


class _State(Local):
    """cpu, cuda: whether operations on such devices choose their dtype; dtype, cuda_dtype: that of products.
    depth: how many blocks are open; when the last one ends, the casts of weights are forgotten.
    casts: {(id of the weight, whether it was recorded): (the weight, its version, the cast)}.
    """

    cpu = cuda = False
    dtype: dtypes.DType = dtypes.bfloat16
    cuda_dtype: dtypes.DType = dtypes.float16
    caching = True
    depth = 0

    def __init__(self) -> None:
        self.casts: dict[tuple[int, bool], tuple[Any, Any, int, Any]] = {}


state = _State()
