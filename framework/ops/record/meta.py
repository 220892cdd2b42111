"""Shape and dtype of tensors without their values, and calls as text."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...dtypes import DType
from ...tensor import Tensor


class Meta(NamedTuple):
    """Shape and dtype without values: what ``infer`` rules take and give."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


def meta(x: Tensor) -> Meta:
    """The Meta of a tensor."""
    return Meta(x.shape, x.dtype)


def describe_call(op: Any, inputs: Iterable, settings: dict) -> str:
    """``softmax(float32[2, 3], dim=5)``, for notes on errors."""
    parts = [str(meta(x)) if isinstance(x, Tensor) else repr(x) for x in inputs]
    return f"{op.name}({', '.join(parts + [f'{k}={v!r}' for k, v in settings.items()])})"
