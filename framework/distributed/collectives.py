"""The collectives on tensors: PyTorch's names, arguments and meanings.

Every rank of the group must make the same calls in the same order; what differs (the call, the dtype, the
number of elements, the reduction, the root) is an error on every rank, before data moves. Tensors may have
any dtype and any layout, and lie on the CPU or, with a copy through the host, on a GPU.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..backends import move
from ..device import CPU
from ..errors import DeviceError, DTypeError, ShapeError, kind_of
from ..tensor import Tensor, bump, wrap
from .groups import ProcessGroup, member
from .reductions import ReduceOp, check
from .work import Work


class _Flat:
    """A tensor as the flat array that a backend works on; ``back`` brings the result home."""

    __slots__ = ("tensor", "array", "copied")

    def __init__(self, t: Tensor, device: str, read: bool = True) -> None:
        a = t._array
        self.tensor, self.copied = t, False
        if device == "cpu" and not isinstance(a, np.ndarray):
            a, self.copied = move(a, CPU), True
        if not a.flags.c_contiguous:
            a = a.copy(order="C") if read or device != "cpu" else np.empty(a.shape, a.dtype)
            self.copied = True
        self.array = a.reshape(-1)

    def back(self, name: str) -> None:
        t = self.tensor
        if self.copied:
            t._array[...] = move(self.array.reshape(t.shape), t.device)
        if t._counter is not None:
            bump(t, name)


def _tensor(t: Any, what: str, name: str = "tensor") -> Tensor:
    if not isinstance(t, Tensor):
        raise TypeError(f"{what}: {name} must be a Tensor, got {kind_of(t)}")
    return t


def _output(t: Any, what: str, name: str = "tensor") -> Tensor:
    _tensor(t, what, name)
    a = t._array
    if a.size and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape)):
        raise ValueError(f"{what}: {name} is an expanded tensor, whose elements share memory; use "
                         f"{name}.clone()")
    if isinstance(a, np.ndarray) and not a.flags.writeable:
        raise ValueError(f"{what}: {name} lies in read-only memory; use {name}.clone()")
    return t


def _tensors(ts: Any, what: str, name: str, n: int, like: Tensor | None = None) -> list[Tensor]:
    if isinstance(ts, Tensor) or not isinstance(ts, Sequence):
        raise TypeError(f"{what}: {name} must be a list of Tensors, got {type(ts).__name__}")
    found = [_tensor(t, what, f"{name}[{i}]") for i, t in enumerate(ts)]
    if len(found) != n:
        raise ValueError(f"{what}: {name} must hold a tensor for each of the {n} ranks, got {len(found)}")
    for i, t in enumerate(found):
        if like is not None and t.dtype is not like.dtype:
            raise DTypeError(f"{what}: {name}[{i}] is {t.dtype}, the other tensor {like.dtype}")
        if like is not None and t.numel() != like.numel():
            raise ShapeError(f"{what}: {name}[{i}] has shape {list(t.shape)}, the other tensor "
                             f"{list(like.shape)}")
    return found


def _same_device(found: ProcessGroup, tensors: list[Tensor], what: str) -> None:
    if found.backend.device == "cuda":
        for t in tensors:
            if not t.is_cuda:
                raise DeviceError(f"{what}: the backend nccl takes tensors on a GPU, this one is on "
                                  f"{t.device}; use t.cuda(), or backend='shm'")


def _root(found: ProcessGroup, given: int | None, in_group: int | None, what: str, name: str,
          default: int | None = None) -> int:
    """A root or peer as rank in the group; it is given as global rank, or as ``in_group``."""
    if given is None and in_group is None:
        if default is None:
            raise ValueError(f"{what}: {name} is not given")
        given = found.ranks[default]
    if given is not None and in_group is not None:
        raise ValueError(f"{what}: give {name} or group_{name}, not both")
    if in_group is not None:
        if not 0 <= in_group < found.size():
            raise ValueError(f"{what}: group_{name}={in_group} is not in [0, {found.size()})")
        return in_group
    if given not in found.ranks:
        raise ValueError(f"{what}: {name}={given} is not one of the group's ranks {found.ranks}")
    return found.ranks.index(given)  # type: ignore[arg-type]


def _run(found: ProcessGroup, call: Callable, async_op: bool, result: Any) -> Work | None:
    if async_op:
        return found.lane().put(Work(result), call)
    if found._lanes:
        found.settle()
    call()
    return None


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None,
               async_op: bool = False) -> Work | None:
    """Reduce ``tensor`` over the ranks, in place; all get the same bits.

    async_op: return a Work at once; ``work.wait()`` before the tensor is used. Sums are made in the order of
    ranks, of 2-byte floats in float32. None where this process is not in the group. Raises DistributedError
    if ranks make different calls, do not come within the timeout, or are gone.
    """
    found = member(group, "all_reduce")
    if found is None:
        return None
    _output(tensor, "all_reduce")
    check(op, tensor._array.dtype, "all_reduce")
    _same_device(found, [tensor], "all_reduce")

    def call() -> None:
        flat = _Flat(tensor, found.backend.device)
        found.backend.all_reduce(flat.array, op)
        flat.back("all_reduce")
    return _run(found, call, async_op, [tensor])


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:
    """Copy ``tensor`` of rank ``src`` into ``tensor`` of all others.

    src: a global rank; group_src: a rank of the group instead.
    """
    found = member(group, "broadcast")
    if found is None:
        return None
    root = _root(found, src, group_src, "broadcast", "src")
    (_tensor if found.rank() == root else _output)(tensor, "broadcast")
    _same_device(found, [tensor], "broadcast")

    def call() -> None:
        flat = _Flat(tensor, found.backend.device)
        found.backend.broadcast(flat.array, root)
        if found.rank() != root:
            flat.back("broadcast")
    return _run(found, call, async_op, [tensor])


def reduce(tensor: Tensor, dst: int | None = None, op: ReduceOp = ReduceOp.SUM, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """Reduce ``tensor`` over the ranks into ``tensor`` of rank ``dst``; the others keep theirs."""
    found = member(group, "reduce")
    if found is None:
        return None
    root = _root(found, dst, group_dst, "reduce", "dst")
    _output(tensor, "reduce")
    check(op, tensor._array.dtype, "reduce")
    _same_device(found, [tensor], "reduce")

    def call() -> None:
        flat = _Flat(tensor, found.backend.device)
        found.backend.reduce(flat.array, root, op)
        if found.rank() == root:
            flat.back("reduce")
    return _run(found, call, async_op, [tensor])


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None,
               async_op: bool = False) -> Work | None:
    """``tensor`` of rank r into ``tensor_list[r]``, on every rank."""
    found = member(group, "all_gather")
    if found is None:
        return None
    _tensor(tensor, "all_gather")
    outs = _tensors(tensor_list, "all_gather", "tensor_list", found.size(), tensor)
    for t in outs:
        _output(t, "all_gather", "tensor_list")
    _same_device(found, [tensor], "all_gather")

    def call() -> None:
        device = found.backend.device
        flats = [_Flat(t, device, read=False) for t in outs]
        found.backend.all_gather([f.array for f in flats], _Flat(tensor, device).array)
        for f in flats:
            f.back("all_gather")
    return _run(found, call, async_op, outs)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                           async_op: bool = False) -> Work | None:
    """``input_tensor`` of all ranks into one tensor, joined along its first dimension or stacked."""
    what = "all_gather_into_tensor"
    found = member(group, what)
    if found is None:
        return None
    _tensor(input_tensor, what, "input_tensor")
    _output(output_tensor, what, "output_tensor")
    _fits(output_tensor, input_tensor, found.size(), what, "output_tensor")
    _same_device(found, [input_tensor, output_tensor], what)

    def call() -> None:
        device = found.backend.device
        flat = _Flat(output_tensor, device, read=False)
        found.backend.all_gather(_pieces(flat.array, found.size()), _Flat(input_tensor, device).array)
        flat.back(what)
    return _run(found, call, async_op, [output_tensor])


def _fits(large: Tensor, small: Tensor, n: int, what: str, name: str) -> None:
    if large.dtype is not small.dtype:
        raise DTypeError(f"{what}: {name} is {large.dtype}, the other tensor {small.dtype}")
    if large.numel() != n * small.numel():
        raise ShapeError(f"{what}: {name} must have {n} times the {small.numel()} elements of the other "
                         f"tensor, got shape {list(large.shape)}")


def _pieces(a: Any, n: int) -> list:
    size = a.size // n
    return [a[i * size:(i + 1) * size] for i in range(n)]


def _list_of_root(found: ProcessGroup, root: int, given: list[Tensor] | None, what: str, role: str,
                  tensor: Tensor) -> list[Tensor] | None:
    """One tensor like ``tensor`` per rank, which the root alone gives; None on the other ranks."""
    name = f"{what}_list"
    if found.rank() == root:
        if given is None:
            raise ValueError(f"{what}: rank {found.ranks[root]} is {role} and must give {name}")
        return _tensors(given, what, name, found.size(), tensor)
    if given:
        raise ValueError(f"{what}: only the rank {role} gives {name}")
    return None


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """``tensor`` of rank r into ``gather_list[r]``, on rank ``dst`` (default 0), which alone gives a list."""
    found = member(group, "gather")
    if found is None:
        return None
    root = _root(found, dst, group_dst, "gather", "dst", 0)
    _tensor(tensor, "gather")
    outs = _list_of_root(found, root, gather_list, "gather", "dst", tensor)
    _same_device(found, [tensor], "gather")

    def call() -> None:
        device = found.backend.device
        flats = None if outs is None else [_Flat(t, device, read=False) for t in outs]
        found.backend.gather(flats and [f.array for f in flats], _Flat(tensor, device).array, root)
        for f in flats or ():
            f.back("gather")
    return _run(found, call, async_op, outs or [])


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None,
            group: Any = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """``scatter_list[r]`` of rank ``src`` (default 0), which alone gives it, into ``tensor`` of rank r."""
    found = member(group, "scatter")
    if found is None:
        return None
    root = _root(found, src, group_src, "scatter", "src", 0)
    _output(tensor, "scatter")
    parts = _list_of_root(found, root, scatter_list, "scatter", "src", tensor)
    _same_device(found, [tensor], "scatter")

    def call() -> None:
        device = found.backend.device
        flat = _Flat(tensor, device, read=False)
        found.backend.scatter(flat.array, parts and [_Flat(t, device).array for t in parts], root)
        flat.back("scatter")
    return _run(found, call, async_op, [tensor])


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None,
                   async_op: bool = False) -> Work | None:
    """The reduction of ``input_list[r]`` of all ranks into ``output`` of rank r."""
    found = member(group, "reduce_scatter")
    if found is None:
        return None
    _output(output, "reduce_scatter", "output")
    parts = _tensors(input_list, "reduce_scatter", "input_list", found.size(), output)
    check(op, output._array.dtype, "reduce_scatter")
    _same_device(found, [output, *parts], "reduce_scatter")

    def call() -> None:
        device = found.backend.device
        flat = _Flat(output, device, read=False)
        found.backend.reduce_scatter(flat.array, [_Flat(t, device).array for t in parts], op)
        flat.back("reduce_scatter")
    return _run(found, call, async_op, [output])


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None,
                          async_op: bool = False) -> Work | None:
    """The reduction of ``input`` over the ranks, of which rank r keeps the r-th part in ``output``."""
    what = "reduce_scatter_tensor"
    found = member(group, what)
    if found is None:
        return None
    _output(output, what, "output")
    _tensor(input, what, "input")
    _fits(input, output, found.size(), what, "input")
    check(op, output._array.dtype, what)
    _same_device(found, [output, input], what)

    def call() -> None:
        device = found.backend.device
        flat = _Flat(output, device, read=False)
        found.backend.reduce_scatter(flat.array, _pieces(_Flat(input, device).array, found.size()), op)
        flat.back(what)
    return _run(found, call, async_op, [output])


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None,
               async_op: bool = False) -> Work | None:
    """``input_tensor_list[i]`` of rank r into ``output_tensor_list[r]`` of rank i; sizes may differ."""
    found = member(group, "all_to_all")
    if found is None:
        return None
    parts = _tensors(input_tensor_list, "all_to_all", "input_tensor_list", found.size())
    outs = _tensors(output_tensor_list, "all_to_all", "output_tensor_list", found.size())
    for t in [*parts[1:], *outs]:
        if t.dtype is not parts[0].dtype:
            raise DTypeError(f"all_to_all: tensors of {parts[0].dtype} and {t.dtype}; all must be of one "
                             f"dtype")
    _same_device(found, [*parts, *outs], "all_to_all")

    def call() -> None:
        device = found.backend.device
        flats = [_Flat(_output(t, "all_to_all"), device, read=False) for t in outs]
        found.backend.all_to_all([f.array for f in flats], [_Flat(t, device).array for t in parts])
        for f in flats:
            f.back("all_to_all")
    return _run(found, call, async_op, outs)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
                      input_split_sizes: Sequence[int] | None = None, group: Any = None,
                      async_op: bool = False) -> Work | None:
    """Parts of ``input`` along its first dimension to all ranks, and theirs, in order, into ``output``.

    split_sizes: lengths of the parts; by default the dimension is divided evenly.
    """
    what = "all_to_all_single"
    found = member(group, what)
    if found is None:
        return None
    n = found.size()
    cuts_in = _cuts(_tensor(input, what, "input"), input_split_sizes, n, what, "input")
    cuts_out = _cuts(_output(output, what, "output"), output_split_sizes, n, what, "output")
    if input.dtype is not output.dtype:
        raise DTypeError(f"{what}: output is {output.dtype}, input {input.dtype}")
    _same_device(found, [input, output], what)

    def call() -> None:
        device = found.backend.device
        flat = _Flat(output, device, read=False)
        given = _Flat(input, device).array
        found.backend.all_to_all([flat.array[c] for c in cuts_out], [given[c] for c in cuts_in])
        flat.back(what)
    return _run(found, call, async_op, [output])


def _cuts(t: Tensor, sizes: Sequence[int] | None, n: int, what: str, name: str) -> list[slice]:
    if t.ndim == 0:
        raise ShapeError(f"{what}: {name} needs a first dimension")
    length = t.shape[0]
    if not sizes:
        if length % n:
            raise ShapeError(f"{what}: the first dimension of {name}, {length}, is no multiple of the {n} "
                             f"ranks; give {name}_split_sizes")
        sizes = [length // n] * n
    if len(sizes) != n or sum(sizes) != length or min(sizes) < 0:
        raise ValueError(f"{what}: {name}_split_sizes must be {n} lengths with the sum {length}, got "
                         f"{list(sizes)}")
    row = t.numel() // length if length else 0
    ends = np.cumsum([0, *sizes]) * row
    return [slice(int(a), int(b)) for a, b in zip(ends, ends[1:])]


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all ranks of the group are here."""
    found = member(group, "barrier")
    if found is None:
        return None
    return _run(found, found.backend.barrier, async_op, [])


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """``barrier``, whose error names all ranks that did not come; so does that of every call here."""
    found = member(group, "monitored_barrier")
    if found is None:
        return
    found.settle()
    board = getattr(found.backend, "board", None)
    if board is None or timeout is None:
        found.backend.barrier()
        return
    before, board.timeout = board.timeout, getattr(timeout, "total_seconds", lambda: timeout)()
    try:
        found.backend.barrier("monitored_barrier")
    finally:
        board.timeout = before


def mean(total: Tensor, count: Any, group: Any = None) -> Tensor:
    """``sum of total / sum of count`` over the ranks: a mean weighted by how many numbers each rank has.

    total: a sum, such as ``F.cross_entropy(..., reduction="sum")``; count: how many terms it has. The mean
    of the     ranks' means is another number where they have unequally many. No gradient goes through it.

    >>> import framework.distributed as dist
    >>> dist.init_process_group("shm", "tcp://127.0.0.1:29512", rank=0, world_size=1)
    >>> dist.mean(fw.tensor(6.0), 4)
    tensor(1.5000)
    >>> dist.destroy_process_group()
    """
    _tensor(total, "mean", "total")
    both = np.append(move(total._array, CPU).astype(np.float64), float(count))
    all_reduce(wrap(both), ReduceOp.SUM, group)
    out = (both[:-1] / both[-1]).reshape(total.shape).astype(total._array.dtype)
    return wrap(move(out, total.device))
