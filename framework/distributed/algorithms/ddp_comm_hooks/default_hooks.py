"""Hooks that average a bucket, in its own dtype or rounded to 2 bytes for the way."""

from collections.abc import Callable
from typing import Any

from ....dtypes import DType, bfloat16, float16
from ....tensor import Tensor
from ...collectives import all_reduce
from ...groups import get_world_size
from ...reductions import ReduceOp
from ...work import Future


def allreduce_hook(process_group: Any, bucket: Any) -> Future:
    """The mean over the ranks.

    ``model.register_comm_hook(None, allreduce_hook)``; the state is the group, None for all.
    """
    work: Any = all_reduce(bucket.buffer(), ReduceOp.AVG, process_group, async_op=True)
    return work.get_future().then(lambda f: f.value()[0])


def _compressed(process_group: Any, bucket: Any, dtype: DType) -> Future:
    buffer = bucket.buffer()
    small = (buffer / get_world_size(process_group)).to(dtype)
    work: Any = all_reduce(small, ReduceOp.SUM, process_group, async_op=True)
    return work.get_future().then(lambda f: f.value()[0].to(buffer.dtype))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean, sent as float16."""
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The mean, sent as bfloat16: half the bytes, all the range."""
    return _compressed(process_group, bucket, bfloat16)


class _Cast:
    """What a wrapped hook sees of a bucket: its buffer in another dtype."""

    def __init__(self, bucket: Any, buffer: Tensor) -> None:
        self._bucket, self._buffer = bucket, buffer

    def buffer(self) -> Tensor:
        return self._buffer

    def set_buffer(self, tensor: Tensor) -> None:
        self._buffer = tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bucket, name)


def _wrapper(hook: Callable, dtype: DType) -> Callable:
    def run(state: Any, bucket: Any) -> Future:
        buffer = bucket.buffer()
        return hook(state, _Cast(bucket, buffer.to(dtype))).then(
            lambda f: _first(f.value()).to(buffer.dtype))
    return run


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) else value


def fp16_compress_wrapper(hook: Callable) -> Callable:
    """``hook``, which gets the bucket as float16."""
    return _wrapper(hook, float16)


def bf16_compress_wrapper(hook: Callable) -> Callable:
    """``hook``, which gets the bucket as bfloat16."""
    return _wrapper(hook, bfloat16)
