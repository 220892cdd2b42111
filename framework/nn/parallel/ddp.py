"""DistributedDataParallel: one model in every rank, gradients summed over the ranks by backward itself."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...autograd.mode import is_grad_enabled, no_grad, state
from ...backends import move
from ...device import CPU
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ...distributed.collectives import broadcast
from ...distributed.groups import member
from ...distributed.objects import all_gather_object
from ...distributed.reductions import ReduceOp
from ...errors import DistributedError
from ...tensor import Tensor, bump, wrap
from ..module import Module
from .buckets import LATER, Reducer

_SYNC, _TRAIN = 1, 2


class DistributedDataParallel(Module, Joinable):
    """``module`` in every rank: each computes on its own batch, backward leaves the mean of the gradients.

    Rank 0's parameters and buffers are sent to all when it is made, and in training its buffers before every
    forward (``broadcast_buffers``). Where backward ends, the gradients of all ranks have been averaged, in
    buckets of ``bucket_cap_mb`` MiB of which ``.grad`` are views. A parameter that a rank did not use counts
    as zero there; one that no rank used keeps ``grad`` None: no flag is needed. Every rank must use at least
    one.

    average: "mean" over the ranks, or "sum", for losses that are divided by a number of tokens of all ranks.
    process_group: the ranks (default: all). init_sync: whether parameters are sent at the start. The other
    arguments of PyTorch's are taken; what they switch on is always so here (``find_unused_parameters``,
    ``gradient_as_bucket_view``), or needs no switch (``static_graph``, ``device_ids``).

    ``state_dict`` has PyTorch's keys, with the prefix "module."; ``load_state_dict`` also takes them without.
    S. Li et al., "PyTorch distributed: experiences on accelerating data parallel training", 2020.

    >>> import framework.distributed as dist
    >>> dist.init_process_group("shm", "tcp://127.0.0.1:29513", rank=0, world_size=1)
    >>> model = fw.nn.parallel.DistributedDataParallel(fw.nn.Linear(2, 1))
    >>> model(fw.ones(3, 2)).sum().backward()
    >>> model.module.bias.grad
    tensor([3.])
    >>> dist.destroy_process_group()
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool = True, init_sync: bool = True, process_group: Any = None,
                 bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
                 check_reduction: bool = False, gradient_as_bucket_view: bool = False,
                 static_graph: bool = False, *, average: str = "mean") -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(f"DistributedDataParallel: module must be a Module, got {type(module).__name__}")
        if average not in ("mean", "sum"):
            raise ValueError(f"DistributedDataParallel: average must be 'mean' or 'sum', got {average!r}")
        group = member(process_group, "DistributedDataParallel")
        if group is None:
            raise ValueError("DistributedDataParallel: this process is not in process_group")
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, p) for name, p in module.named_parameters() if name not in ignored]
        params: list[Tensor] = [p for _, p in named if p.requires_grad]
        if not params:
            raise RuntimeError("DistributedDataParallel: no parameter of the module requires a gradient; "
                               "there is nothing to average")
        self.module = module
        self.process_group, self.broadcast_buffers, self.average = group, broadcast_buffers, average
        self.device_ids, self.output_device, self.dim = device_ids, output_device, dim
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.require_backward_grad_sync = True
        self._all = [p for _, p in named]
        self._own_buffers = [b for name, b in module.named_buffers() if name not in ignored]
        self._compare(named)
        if init_sync:
            self._send(self._all + self._own_buffers, 0)
        cap = LATER if bucket_cap_mb is None else max(int(bucket_cap_mb * (1 << 20)), 1)
        self.reducer = Reducer(params, group, cap, ReduceOp.AVG if average == "mean" else ReduceOp.SUM)
        self._walk: Any = None
        for p in params:
            p.register_post_accumulate_grad_hook(self._arrived)

    def _compare(self, named: list) -> None:
        ours = [(name, tuple(p.shape), str(p.dtype), p.requires_grad) for name, p in named]
        all_: list[Any] = [None] * self.process_group.size()
        all_gather_object(all_, ours, self.process_group)
        for rank, theirs in enumerate(all_):
            if theirs == all_[0]:
                continue
            a, b = next(((a, b) for a, b in zip(all_[0], theirs) if a != b), (len(all_[0]), len(theirs)))
            raise DistributedError(f"DistributedDataParallel: the models of ranks 0 and {rank} differ: {a} "
                                   f"and {b}")

    def _send(self, tensors: list[Tensor], root: int) -> None:
        """Rank ``root``'s numbers to all, in one call."""
        if not tensors or self.process_group.size() == 1:
            return
        if self.process_group.backend.device == "cuda":
            with no_grad():
                for t in tensors:
                    broadcast(t.detach(), group=self.process_group, group_src=root)
            return
        sizes = np.cumsum([0, *(t.nbytes for t in tensors)])
        whole = np.empty(int(sizes[-1]), np.uint8)
        places = [whole[a:b] for a, b in zip(sizes, sizes[1:])]
        me = self.process_group.rank()
        if me == root:
            for t, place in zip(tensors, places):
                place[:] = np.ascontiguousarray(move(t._array, CPU)).reshape(-1).view(np.uint8)
        broadcast(wrap(whole), group=self.process_group, group_src=root)
        if me != root:
            for t, place in zip(tensors, places):
                array = t._array
                array[...] = move(place.view(array.dtype).reshape(array.shape), t.device)
                bump(t, "broadcast")

    # -- a step ----------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """``module`` of the arguments."""
        flags = (_SYNC if self.require_backward_grad_sync and is_grad_enabled() else 0) | (
            _TRAIN if self.training else 0)
        Join.notify_join_context(self, flags)
        if self.training and self._sends_buffers():
            self._send(self._own_buffers, self._source())
        return self.module(*args, **kwargs)

    def _sends_buffers(self) -> bool:
        return bool(self.broadcast_buffers and self._own_buffers and self.require_backward_grad_sync)

    def _source(self) -> int:
        """The rank whose buffers count: the first that has inputs."""
        return self._joining.alive[0] if self._joining is not None else 0

    def _arrived(self, p: Tensor) -> None:
        if not self.require_backward_grad_sync:
            return
        walk = state.walk
        if self._walk is not walk:
            self._walk = walk
            self.reducer.begin()
            if walk.ends is None:
                walk.ends = []
            walk.ends.append(self._ended)
        self.reducer.ready(p)

    def _ended(self) -> None:
        self._walk = None
        self.reducer.finish()
        self._rescale()

    def _rescale(self) -> None:
        """Under ``join`` the mean may be over those that have inputs."""
        join = self._joining
        if join is None or self.average == "sum" or self._divide_by_initial:
            return
        factor = self.process_group.size() / max(len(join.alive), 1)
        for bucket in self.reducer.buckets:
            bucket.array *= factor

    _divide_by_initial = True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backwards in the block only gather gradients; the next one outside averages the sums.

        Only where backward runs counts, not where forward did.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """``hook(state, bucket)`` reduces each bucket instead: it returns a Future of the flat tensor, or a
        Tensor.

        The result takes the place of the mean, so the hook divides by the number of ranks.
        """
        if not callable(hook):
            raise TypeError(f"register_comm_hook: hook must be callable, got {type(hook).__name__}")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook: there is a communication hook already")
        self.reducer.hook, self.reducer.hook_state = hook, state

    # -- uneven inputs ---------------------------------------------------------------------------

    @contextmanager
    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> Iterator[None]:
        """A block in which ranks may have unequally many batches; see ``Join``.

        divide_by_initial_world_size: the mean counts ranks without inputs as zeros; else it is over the
        others.
        """
        with Join([self], enable, throw_on_early_termination,
                  divide_by_initial_world_size=divide_by_initial_world_size):
            yield

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank without inputs does."""
        self._divide_by_initial = bool(kwargs.get("divide_by_initial_world_size", True))
        return _Shadow(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self._all[0].device

    @property
    def join_process_group(self) -> Any:
        """The ranks."""
        return self.process_group

    # -- state -----------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True,
                        assign: bool = False) -> Any:
        """As ``Module.load_state_dict``; keys may lack the prefix "module."."""
        if state_dict and not any(k.startswith("module.") for k in state_dict):
            state_dict = {f"module.{k}": v for k, v in state_dict.items()}
        return super().load_state_dict(state_dict, strict, assign)

    def __getstate__(self) -> dict[str, Any]:
        raise RuntimeError("DistributedDataParallel: it belongs to the processes of its group and cannot "
                           "be pickled or copied; save .module, or its state_dict()")


class _Shadow(JoinHook):
    """Takes the part of a rank without inputs: sends the buffers, and zeros as gradients."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self._ddp = ddp

    def main_hook(self) -> None:
        ddp = self._ddp
        join = ddp._joining
        assert join is not None
        flags = int(join.states[join.alive[0], 1])
        if flags & _TRAIN and ddp.broadcast_buffers and ddp._own_buffers and flags & _SYNC:
            ddp._send(ddp._own_buffers, ddp._source())
        if flags & _SYNC:
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Send the model of a rank that was among the last to all others."""
        ddp = self._ddp
        lasts: list[Any] = [None] * ddp.process_group.size()
        all_gather_object(lasts, is_last_joiner, ddp.process_group)
        ddp._send(ddp._all + ddp._own_buffers, lasts.index(True) if True in lasts else 0)


