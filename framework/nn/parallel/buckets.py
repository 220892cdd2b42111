"""Gradients in buckets: flat memory that is summed over the ranks in a few calls, of which they are views.

With the backend ``shm`` buckets lie in memory that all ranks have mapped, so they are summed where they are.
Kernels that can make the gradients of weights in their places do so. Behind the last bucket stands a number
per parameter that says whether it was used; it is summed along, and so all ranks know which parameters some
rank has a gradient for. Buckets of one dtype lie side by side, and are summed in one call unless that is to
begin before backward has ended.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends import array_module
from ...backends.cuda import index_of
from ...distributed.collectives import all_reduce
from ...distributed.groups import ProcessGroup
from ...distributed.reductions import ReduceOp
from ...distributed.work import Future
from ...node import Leaf
from ...ops.record import placing
from ...tensor import Tensor, wrap

FIRST, LATER = 1 << 20, 25 << 20  # bytes
_ALIGNED = 64


class GradBucket:
    """What a communication hook gets: gradients of some parameters in one flat tensor."""

    def __init__(self, index: int, last: bool, params: list[Tensor], array: Any, places: list[slice]) -> None:
        self._index, self._last, self._params = index, last, params
        self.array, self.places = array, places
        self.tensor = wrap(array)
        self.views = [wrap(array[s].reshape(p.shape)) for p, s in zip(params, places)]
        self.missing = len(params)
        self.work: Any = None

    def index(self) -> int:
        """Which bucket this is; they are reduced in this order."""
        return self._index

    def is_last(self) -> bool:
        """Whether this is the last bucket of the backward."""
        return self._last

    def buffer(self) -> Tensor:
        """The flat tensor."""
        return self.tensor

    def set_buffer(self, tensor: Tensor) -> None:
        """Put other numbers into it."""
        self.array[...] = tensor._array

    def gradients(self) -> list[Tensor]:
        """The gradients, as views."""
        return list(self.views)

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return list(self._params)


class Reducer:
    """Collects the gradients of a backward and sums them over the ranks."""

    def __init__(self, params: list[Tensor], group: ProcessGroup, cap: int, op: ReduceOp) -> None:
        self.params, self.group, self.op = params, group, op
        self.hook: Callable | None = None
        self.hook_state: Any = None
        self.beside = False  # whether buckets are reduced while backward goes on
        self._memory: list[Any] = []
        self.buckets: list[GradBucket] = []
        self._homes: list[Any] = []
        self._lay_out(_divided(params, cap))
        self.where = {id(p): (b, k) for b in self.buckets for k, p in enumerate(b._params)}
        self.number = {id(p): i for i, p in enumerate(params)}
        self.used = np.zeros(len(params), bool)
        self._next = 0

    def _lay_out(self, chunks: list[list[Tensor]]) -> None:
        """Make the buckets, those of one dtype and device in one piece of memory."""
        ends: dict[tuple, int] = {}
        spans = []
        for chunk in chunks:
            kind = chunk[0].dtype, chunk[0].device
            step = max(_ALIGNED // chunk[0]._array.itemsize, 1)
            start = end = ends.get(kind, 0)
            places = []
            for p in chunk:
                places.append(slice(end - start, end - start + p.numel()))
                end += -(-p.numel() // step) * step
            ends[kind] = end
            spans.append((kind, slice(start, end), places))
        last, at, _ = spans[-1]
        ends[last] += len(self.params)
        first = {(p.dtype, p.device): p._array for p in reversed(self.params)}
        memory = {kind: self._allocate(first[kind], count) for kind, count in ends.items()}
        self._flags, self._last = memory[last][at.stop:], wrap(memory[last][at.start:])
        self._wholes = [wrap(array) for array in memory.values()]
        for i, (chunk, (kind, span, places)) in enumerate(zip(chunks, spans)):
            bucket = GradBucket(i, i == len(chunks) - 1, chunk, memory[kind][span], places)
            self.buckets.append(bucket)
            for p, view in zip(chunk, bucket.views):
                if isinstance(view._array, np.ndarray) and type(p._node) is Leaf:
                    self._homes.append(placing.use(p._node, view._array))

    def _allocate(self, like: Any, count: int) -> Any:
        symmetric = getattr(self.group.backend, "symmetric", None)
        if isinstance(like, np.ndarray) and symmetric is not None:
            self.group.settle()
            memory = symmetric(count * like.itemsize)
            self._memory.append(memory)
            return memory.array(self.group.rank(), like.dtype, count)
        if isinstance(like, np.ndarray):
            return np.zeros(count, like.dtype)
        with array_module(like).cuda.Device(index_of(wrap(like).device)):
            return array_module(like).zeros(count, like.dtype)

    # -- one backward ----------------------------------------------------------------------------

    def begin(self) -> None:
        """A backward begins."""
        self.used[:] = False
        self._next = 0
        for bucket in self.buckets:
            bucket.missing, bucket.work = len(bucket._params), None

    def ready(self, p: Tensor) -> None:
        """The gradient of ``p`` is there: it moves into its bucket, unless it lies there already."""
        number = self.number[id(p)]
        bucket, k = self.where[id(p)]
        self._take(p, bucket.views[k])
        if not self.used[number]:
            self.used[number] = True
            bucket.missing -= 1
            if self.beside and bucket.missing == 0:
                self._launch_ready()

    @staticmethod
    def _take(p: Tensor, view: Tensor) -> None:
        g: Any = p.grad
        if g is not view:
            if g._array is not view._array:  # else it was made there
                view._array[...] = g._array
            p.grad = view

    def _launch_ready(self) -> None:
        """Reduce the buckets that are complete, in their order; the last one waits for the end."""
        while self._next < len(self.buckets) - 1 and self.buckets[self._next].missing == 0:
            self._launch(self.buckets[self._next])
            self._next += 1

    def finish(self) -> None:
        """Backward has ended: what is missing counts as zero, and the rest is reduced."""
        for p, used in zip(self.params, self.used):
            if used:
                continue
            bucket, k = self.where[id(p)]
            if p.grad is None:
                bucket.views[k]._array[...] = 0
            else:  # it was gathered under no_sync
                fresh = p.grad is not bucket.views[k]
                self._take(p, bucket.views[k])
                self.used[self.number[id(p)]] = fresh
        flags = self._flags
        if isinstance(flags, np.ndarray):
            flags[:] = self.used
        else:
            flags[...] = array_module(flags).asarray(self.used)
        if self.beside or self.hook is not None:
            for bucket in self.buckets[self._next:]:
                self._launch(bucket)
            for bucket in self.buckets:
                if bucket.work is not None:
                    self._settle(bucket)
        else:
            for whole in self._wholes:
                all_reduce(whole, self.op, self.group)
        for home in self._homes:
            home.free = True
        if self.used.all():
            return
        anybody = flags if isinstance(flags, np.ndarray) else flags.get()
        for p, here in zip(self.params, anybody.astype(np.float32) != 0):
            bucket, k = self.where[id(p)]
            if here and p.grad is None:
                p.grad = bucket.views[k]

    def _launch(self, bucket: GradBucket) -> None:
        if self.hook is not None:
            if bucket.is_last():
                all_reduce(wrap(self._flags), ReduceOp.MAX, self.group)
            bucket.work = self.hook(self.hook_state, bucket)
            return
        whole = self._last if bucket.is_last() else bucket.tensor
        bucket.work = all_reduce(whole, self.op, self.group, async_op=True)

    def _settle(self, bucket: GradBucket) -> None:
        if self.hook is None:
            bucket.work.wait()
            return
        value = bucket.work.wait() if isinstance(bucket.work, Future) or hasattr(bucket.work, "wait") \
            else bucket.work
        value = value[0] if isinstance(value, (list, tuple)) else value
        if not isinstance(value, Tensor):
            raise TypeError(f"DistributedDataParallel: a communication hook must return a Future of a "
                            f"Tensor, or a Tensor, got {type(value).__name__}")
        if value._array is not bucket.array:
            bucket.set_buffer(value)

    def shadow(self) -> None:
        """Answer one backward of others, with zeros."""
        self.begin()
        kept = [(p, p.grad) for p in self.params]
        for p in self.params:
            p.grad = None
        try:
            self.finish()
        finally:
            for p, g in kept:
                p.grad = g


def _divided(params: list[Tensor], cap: int) -> list[list[Tensor]]:
    """Parameters of one dtype and device together, from the last to the first, the first bucket small."""
    chunks: list[list[Tensor]] = []
    open_: dict[tuple, tuple[list[Tensor], int]] = {}
    for p in reversed(params):
        key = p.dtype, p.device
        chunk, size = open_.get(key, ([], 0))
        if not chunk:
            chunks.append(chunk)
        chunk.append(p)
        size += p.nbytes
        limit = min(FIRST, cap) if chunks[0] is chunk else cap
        open_[key] = ([], 0) if size >= limit else (chunk, size)
    return chunks
