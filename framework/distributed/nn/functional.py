"""Collectives with derivatives: what one rank sends forward, gradients take back.

Every rank must go backward through them in the same order, since backward makes collective calls, too. The
loss whose gradient is taken is the sum of the losses of all ranks. They can be differentiated again.
"""

from typing import Any

from ...autograd.function import Function
from ...config.listing import own as _own
from ...creation import empty, zeros_like
from ...errors import ShapeError
from ...ops.shape.join import cat, stack
from ...tensor import Tensor
from .. import collectives
from ..groups import ProcessGroup, member
from ..reductions import ReduceOp

_SUMS = (ReduceOp.SUM, ReduceOp.AVG)


def _group(group: Any, what: str) -> ProcessGroup:
    found = member(group, what)
    if found is None:
        raise ValueError(f"{what}: this process is not in the group")
    return found


def _only_sums(op: ReduceOp, what: str) -> None:
    if op not in _SUMS:
        raise ValueError(f"{what}: {op!r} has no derivative here; use ReduceOp.SUM or AVG, or the call of "
                         f"the same name in framework.distributed on tensors that need no gradient")


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: ReduceOp, group: ProcessGroup) -> Tensor:
        ctx.op, ctx.group = op, group
        y = x.clone()  # type: ignore[attr-defined]
        collectives.all_reduce(y, op, group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _AllReduce.apply(g, ctx.op, ctx.group), None, None


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction (SUM or AVG) of ``tensor`` over the ranks; its gradient is the same of all gradients."""
    _only_sums(op, "all_reduce")
    return _AllReduce.apply(tensor, op, _group(group, "all_reduce"))


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, root: int, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.group = root, group
        y = x.clone()  # type: ignore[attr-defined]
        collectives.broadcast(y, group=group, group_src=root)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Reduce.apply(g, ctx.root, ctx.group), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, root: int, group: ProcessGroup) -> Tensor:
        ctx.root, ctx.group = root, group
        y = x.clone()  # type: ignore[attr-defined]
        collectives.reduce(y, group=group, group_dst=root)
        return y if group.rank() == root else zeros_like(y)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Broadcast.apply(g, ctx.root, ctx.group), None, None


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """``tensor`` of rank ``src`` on every rank; its gradient there is the sum of all, elsewhere zero."""
    found = _group(group, "broadcast")
    return _Broadcast.apply(tensor, collectives._root(found, src, None, "broadcast", "src"), found)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum of ``tensor`` over the ranks on rank ``dst``, zeros elsewhere; its gradient goes to all."""
    found = _group(group, "reduce")
    if op is not ReduceOp.SUM:
        _only_sums(ReduceOp.MAX if op is ReduceOp.AVG else op, "reduce")
    return _Reduce.apply(tensor, collectives._root(found, dst, None, "reduce", "dst"), found)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        y = empty((group.size(), *x.shape), dtype=x.dtype, device=x.device)
        collectives.all_gather_into_tensor(y, x, group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _ReduceScatter.apply(g, ctx.group), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        y = empty(x.shape[1:], dtype=x.dtype, device=x.device)
        collectives.reduce_scatter_tensor(y, x, ReduceOp.SUM, group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _AllGather.apply(g, ctx.group), None


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """``tensor`` of every rank, on every rank; its gradient is the sum of what all ranks have for it."""
    return _AllGather.apply(tensor, _group(group, "all_gather")).unbind(0)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """``tensor`` of every rank on rank ``dst``; zeros elsewhere."""
    found = _group(group, "gather")
    root = collectives._root(found, dst, None, "gather", "dst")
    whole = _AllGather.apply(tensor, found)
    return tuple(whole.unbind(0) if found.rank() == root else (whole * 0).unbind(0))


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """``tensors[r]`` of rank ``src`` on rank r; the others give tensors of the same shape, unused."""
    found = _group(group, "scatter")
    root = collectives._root(found, src, None, "scatter", "src")
    if len(tensors) != found.size():
        raise ValueError(f"scatter: tensors must hold one for each of the {found.size()} ranks, got "
                         f"{len(tensors)}")
    return _Broadcast.apply(stack(list(tensors)), root, found)[found.rank()]


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM,
                   group: Any = None) -> Tensor:
    """The sum of everybody's ``input_list[r]`` on rank r. output: only its shape is looked at."""
    found = _group(group, "reduce_scatter")
    if op is not ReduceOp.SUM:
        _only_sums(ReduceOp.MAX if op is ReduceOp.AVG else op, "reduce_scatter")
    if len(input_list) != found.size() or any(t.shape != output.shape for t in input_list):
        raise ShapeError(f"reduce_scatter: input_list must hold {found.size()} tensors of shape "
                         f"{list(output.shape)}, got {[list(t.shape) for t in input_list]}")
    return _ReduceScatter.apply(stack(list(input_list)), found)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, sent: list[int], got: list[int], group: ProcessGroup) -> Tensor:
        ctx.sent, ctx.got, ctx.group = sent, got, group
        y = empty((sum(got), *x.shape[1:]), dtype=x.dtype, device=x.device)
        collectives.all_to_all_single(y, x, got, sent, group)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _AllToAll.apply(g, ctx.got, ctx.sent, ctx.group), None, None, None


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
                      input_split_sizes: list[int] | None = None, group: Any = None) -> Tensor:
    """Parts of ``input`` along its first dimension to all ranks, and theirs. output: for its shape."""
    found = _group(group, "all_to_all_single")
    n = found.size()
    sent = list(input_split_sizes or [input.shape[0] // n] * n)
    got = list(output_split_sizes or [output.shape[0] // n] * n)
    return _AllToAll.apply(input, sent, got, found)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor],
               group: Any = None) -> tuple[Tensor, ...]:
    """``input_tensor_list[i]`` of rank r as result r of rank i. output_tensor_list: for their shapes."""
    found = _group(group, "all_to_all")
    sent = [t.numel() for t in input_tensor_list]
    got = [t.numel() for t in output_tensor_list]
    flat = _AllToAll.apply(cat([t.reshape(-1) for t in input_tensor_list]), sent, got, found)  # type: ignore
    parts = flat.split(got)
    return tuple(p.reshape(t.shape) for p, t in zip(parts, output_tensor_list))


__dir__ = _own(globals(), "ReduceOp")
