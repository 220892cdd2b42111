"""``fully_shard``: each rank keeps its part of the parameters, gradients and optimizer states.

The parameters of a module lie in one padded row, which is divided evenly; rank r owns the r-th part, as one
Parameter, the *shard*, which the optimizer steps. Before a forward the row is made whole and the module's
parameters are views of it; at the end of backward the gradients are averaged, every rank keeps its part, and
the row is let go.

On one machine (backend ``shm``) the row lies once in memory that all ranks have mapped, and a shard is a part
of it: an optimizer's step changes what all ranks read, nothing is gathered, and the weights cost the machine
one copy instead of one per rank.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...autograd.mode import no_grad, state
from ...backends import array_module
from ...errors import CheckpointError
from ...nn.module import Module
from ...nn.parameter import Parameter
from ...tensor import Tensor, bump, wrap
from ..collectives import all_gather_into_tensor, barrier, broadcast, reduce_scatter_tensor
from ..groups import ProcessGroup, member
from ..reductions import ReduceOp

_ALIGNED = 1024  # numbers: a multiple of a page, so that parts of shared memory follow each other
_NAME = "shard"


class Unit:
    """Parameters of one dtype and device of one module, sharded together."""

    def __init__(self, home: Module, name: str, params: dict[str, Tensor], group: ProcessGroup) -> None:
        self.home, self.name, self.params, self.group = home, name, params, group
        tensors = list(params.values())
        first, n, rank = tensors[0]._array, group.size(), group.rank()
        ends = np.cumsum([0, *(-(-p.numel() // 16) * 16 for p in tensors)]).tolist()
        per = _ALIGNED * 4
        self.part = -(-ends[-1] // (n * per)) * per
        self.places = [slice(a, a + p.numel()) for a, p in zip(ends, tensors)]
        self.shapes = [p.shape for p in tensors]
        self.xp, self.dtype = array_module(first), first.dtype
        self.row: Any = None  # the whole, where it lies in shared memory
        full = self.xp.zeros(n * self.part, self.dtype)
        for p, place in zip(tensors, self.places):
            full[place] = p._array.reshape(-1)
        broadcast(wrap(full), group=group, group_src=0)
        mine = slice(rank * self.part, (rank + 1) * self.part)
        symmetric = getattr(group.backend, "symmetric", None)
        if symmetric is not None and isinstance(first, np.ndarray):
            group.settle()
            memory = symmetric(self.part * first.itemsize)
            self.row = memory.segment.array(self.dtype, (n * self.part,))
            self.row[mine] = full[mine]
            barrier(group)
        own = full[mine].copy() if self.row is None else self.row[mine]
        self.shard = Parameter(wrap(own))
        self.seen = 0  # the shard's version at the last forward
        self.make_whole(self.row)

    def make_whole(self, row: Any = None) -> None:
        """Let the parameters be views of the whole row."""
        if row is None:
            if self.row is not None:
                return
            row = self.xp.empty(self.group.size() * self.part, self.dtype)
            with no_grad():
                all_gather_into_tensor(wrap(row), self.shard.detach(), self.group)
        for p, place, shape in zip(self.params.values(), self.places, self.shapes):
            p._array = row[place].reshape(shape)

    def look(self) -> None:
        """Before a forward: graphs made before the shard was stepped know that their weights have changed."""
        if self.shard._version != self.seen:
            self.seen = self.shard._version
            for p in self.params.values():
                bump(p, "a step of its shard")

    def let_go(self) -> None:
        """Forget the whole; in shared memory it costs nothing and stays."""
        if self.row is None:
            nothing = self.xp.zeros((), self.dtype)
            for p, shape in zip(self.params.values(), self.shapes):
                p._array = self.xp.broadcast_to(nothing, shape)

    def reduce(self) -> None:
        """The mean of everybody's gradients, of which this rank keeps its part."""
        full = self.xp.zeros(self.group.size() * self.part, self.dtype)
        for p, place in zip(self.params.values(), self.places):
            if p.grad is not None:
                full[place] = p.grad._array.reshape(-1)
                p.grad = None
        mine = self.xp.empty(self.part, self.dtype)
        reduce_scatter_tensor(wrap(mine), wrap(full), ReduceOp.AVG, self.group)
        if self.shard.grad is None:
            self.shard.grad = wrap(mine)
        else:
            self.shard.grad._array += mine
            bump(self.shard.grad, "backward")


class _Sharded:
    """The units of a model by the names of its parameters, and what happens around its steps."""

    def __init__(self, group: ProcessGroup) -> None:
        self.group = group
        self.units: list[Unit] = []
        self.names: list[dict[str, str]] = []  # per unit: name in the unit -> name in the model
        self.walk: Any = None

    def before(self, module: Module, args: tuple) -> None:
        """A forward begins: what all ranks stepped is there for all."""
        if any(u.row is not None for u in self.units):
            barrier(self.group)
        for unit in self.units:
            unit.look()
            unit.make_whole()

    def arrived(self, p: Tensor) -> None:
        """The first gradient of a backward: at its end all are reduced."""
        if any(u.shard._version != u.seen for u in self.units):
            raise RuntimeError("fully_shard: the shards were stepped between a forward and its backward, "
                               "which would see other weights; call backward() before step()")
        walk = state.walk
        if self.walk is not walk:
            self.walk = walk
            if walk.ends is None:
                walk.ends = []
            walk.ends.append(self._ended)

    def _ended(self) -> None:
        self.walk = None
        for unit in self.units:
            unit.reduce()  # every rank has read the row by then: its reduction is a meeting
            unit.let_go()


def fully_shard(module: Module, *, process_group: Any = None, units: Iterable[Module] | None = None,
                mesh: Any = None, reshard_after_forward: Any = None) -> Module:
    """Divide the parameters of ``module`` among the ranks, in place; returns the module.

    Its ``parameters()`` are the shards from then on, one for each module of ``units`` (default: ``module`` as
    a whole) and dtype, so the optimizer is made after it. Rank 0's numbers count. Gradients are means over
    the ranks, and each rank has, and steps, its part: elementwise optimizers (SGD, Adam, ...) work as they
    are; norms over a tensor or all gradients would be of parts. ``full_state_dict`` gives the parameters
    under their own names, ``load_full_state_dict`` takes them, with any number of ranks. mesh,
    reshard_after_forward: PyTorch's; the row is kept until backward has ended.

    S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", 2020.

    >>> import framework.distributed as dist
    >>> dist.init_process_group("shm", "tcp://127.0.0.1:29515", rank=0, world_size=1)
    >>> model = dist.fsdp.fully_shard(fw.nn.Sequential(fw.nn.Linear(4, 4), fw.nn.Linear(4, 1)))
    >>> optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    >>> model(fw.ones(1, 4)).sum().backward(); optimizer.step()
    >>> sorted(dist.fsdp.full_state_dict(model))
    ['0.bias', '0.weight', '1.bias', '1.weight']
    >>> dist.destroy_process_group()
    """
    group = member(process_group, "fully_shard")
    if group is None:
        raise ValueError("fully_shard: this process is not in process_group")
    if hasattr(module, "_sharded"):
        raise ValueError("fully_shard: this module is sharded already")
    sharded = _Sharded(group)
    taken: set[int] = set()
    paths = {id(m): path for path, m in module.named_modules()}
    for home in [*(units or ()), module]:
        if id(home) not in paths:
            raise ValueError(f"fully_shard: units has a {type(home).__name__} that is not part of the module")
        start = paths[id(home)]
        by_kind: dict[tuple, dict[str, Tensor]] = {}
        for name, p in home.named_parameters():
            if id(p) not in taken and p.requires_grad:
                taken.add(id(p))
                by_kind.setdefault((str(p.dtype), str(p.device)), {})[name] = p
        for k, params in enumerate(by_kind.values()):
            unit = Unit(home, f"{_NAME}{k}", params, group)
            sharded.units.append(unit)
            sharded.names.append({name: f"{start}.{name}" if start else name for name in params})
            for trained in params.values():
                trained.register_post_accumulate_grad_hook(sharded.arrived)
    _hide(module, taken)
    for unit in sharded.units:
        unit.home.register_parameter(unit.name, unit.shard)
    module.__dict__["_sharded"] = sharded
    module.register_forward_pre_hook(sharded.before)
    return module


def _hide(module: Module, taken: set[int]) -> None:
    """Modules keep their parameters as plain attributes: what is trained are the shards."""
    for part in module.modules():
        for name, p in list(part._parameters.items()):
            if id(p) in taken:
                del part._parameters[name]
                vars(part)[name] = p


def _of(module: Module, what: str) -> Any:
    sharded = module.__dict__.get("_sharded")
    if sharded is None:
        raise ValueError(f"{what}: this module was not given to fully_shard")
    return sharded


def full_state_dict(module: Module) -> dict[str, Tensor]:
    """Copies of all parameters and buffers under their own names; every rank must call it.

    Frozen parameters and buffers are not sharded, and are this rank's.
    """
    sharded = _of(module, "full_state_dict")
    shards = {id(u.shard) for u in sharded.units}
    found = {k: v for k, v in module.state_dict(keep_vars=True).items() if id(v) not in shards}
    sharded.before(module, ())
    for unit, names in zip(sharded.units, sharded.names):
        found.update({names[k]: p.detach() for k, p in unit.params.items()})
    found = {k: v.detach().clone() for k, v in found.items()}
    barrier(sharded.group)  # nobody steps while others copy
    for unit in sharded.units:
        unit.let_go()
    return found


def load_full_state_dict(module: Module, state_dict: Mapping[str, Any]) -> None:
    """Put parameters and buffers of ``full_state_dict``, or of the model before it was sharded, in place.

    Raises CheckpointError for names that are missing and shapes that differ; nothing is changed then.
    """
    sharded = _of(module, "load_full_state_dict")
    wanted = [(names[k], p, shape, unit, place) for unit, names in zip(sharded.units, sharded.names)
              for (k, p), shape, place in zip(unit.params.items(), unit.shapes, unit.places)]
    shards = {id(u.shard) for u in sharded.units}
    others = {k: v for k, v in module.state_dict(keep_vars=True).items() if id(v) not in shards}
    wrong = [n for n, _, shape, _, _ in wanted
             if n not in state_dict or tuple(state_dict[n].shape) != tuple(shape)]
    wrong += [n for n, v in others.items() if n not in state_dict or state_dict[n].shape != v.shape]
    if wrong:
        raise CheckpointError(f"load_full_state_dict: missing, or of another shape: {', '.join(wrong)}")
    barrier(sharded.group)
    with no_grad():
        for name, v in others.items():
            v.detach().copy_(state_dict[name])
        for name, _, _, unit, place in wanted:
            rank = sharded.group.rank()
            start = rank * unit.part
            low, high = max(place.start, start), min(place.stop, start + unit.part)
            if low < high:
                flat = state_dict[name]._array.reshape(-1)
                unit.shard._array[low - start:high - start] = flat[low - place.start:high - place.start]
    barrier(sharded.group)
