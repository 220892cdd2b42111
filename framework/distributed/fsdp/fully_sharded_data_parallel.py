"""``FullyShardedDataParallel``: PyTorch's older form of ``fully_shard``, a module around the model."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...autograd.mode import no_grad
from ...backends import array_module
from ...nn.module import Module
from ...tensor import Tensor, wrap
from ..collectives import all_gather_into_tensor, all_reduce
from ..groups import member
from ..reductions import ReduceOp
from .api import CPUOffload as CPUOffload
from .api import FullOptimStateDictConfig as FullOptimStateDictConfig
from .api import FullStateDictConfig as FullStateDictConfig
from .api import MixedPrecision as MixedPrecision
from .api import ShardingStrategy as ShardingStrategy
from .api import StateDictType as StateDictType
from .shards import full_state_dict, fully_shard, load_full_state_dict
from .wrap import ModuleWrapPolicy, units_of


class FullyShardedDataParallel(Module):
    """A model whose parameters, gradients and optimizer state are divided among the ranks.

    It is ``fully_shard`` in a module. Make the optimizer of its ``parameters()`` afterwards. ``state_dict()``
    is a meeting of all ranks and gives everything under the model's own names, unless ``state_dict_type``
    asks for this rank's shards.

    auto_wrap_policy: which parts are units (``fsdp.wrap``), or a set of classes. sharding_strategy:
    FULL_SHARD or SHARD_GRAD_OP; others are refused, as are mixed_precision (use ``amp.autocast``) and
    parameters of a GPU offloaded to the CPU. ignored_modules keep their parameters whole. Rank 0's numbers
    always count (sync_module_states), nothing is gathered ahead (the settings of prefetching and of gathers
    are taken and mean nothing), and parameters are those of ``fully_shard`` (use_orig_params).

    S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", 2020.

    >>> import framework.distributed as dist
    >>> dist.init_process_group("shm", "tcp://127.0.0.1:29517", rank=0, world_size=1)
    >>> model = dist.fsdp.FullyShardedDataParallel(fw.nn.Linear(4, 1))
    >>> optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    >>> model(fw.ones(1, 4)).sum().backward(); optimizer.step()
    >>> sorted(model.state_dict())
    ['bias', 'weight']
    >>> dist.destroy_process_group()
    """

    def __init__(self, module: Module, process_group: Any = None,
                 sharding_strategy: ShardingStrategy | None = None, cpu_offload: CPUOffload | None = None,
                 auto_wrap_policy: Any = None, backward_prefetch: Any = None,
                 mixed_precision: MixedPrecision | None = None, ignored_modules: Any = None,
                 param_init_fn: Any = None, device_id: Any = None, sync_module_states: bool = False,
                 forward_prefetch: bool = False, limit_all_gathers: bool = True,
                 use_orig_params: bool = False) -> None:
        super().__init__()
        what = "FullyShardedDataParallel"
        if sharding_strategy not in (None, ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
            raise ValueError(f"{what}: sharding_strategy={sharding_strategy} is not done; for "
                             f"parameters that stay whole use nn.parallel.DistributedDataParallel")
        if mixed_precision is not None and vars(mixed_precision) != vars(MixedPrecision()):
            raise ValueError(f"{what}: mixed_precision changes no dtype here; compute under amp.autocast, or "
                             f"convert the model with .to(dtype) first")
        if param_init_fn is not None:
            raise ValueError(f"{what}: param_init_fn is not called; initialise the model, then wrap it")
        if device_id is not None:
            module = module.to(device_id if not isinstance(device_id, int) else f"cuda:{device_id}")
        offload = cpu_offload is not None and cpu_offload.offload_params
        if offload and any(p.is_cuda for p in module.parameters()):
            raise ValueError(f"{what}: cpu_offload of parameters on a GPU is not done; keep them there")
        kept = {id(p): p for m in ignored_modules or () for p in m.parameters() if p.requires_grad}
        for p in kept.values():
            p.requires_grad_(False)
        policy = auto_wrap_policy
        if isinstance(policy, (set, frozenset, list, tuple)):
            policy = ModuleWrapPolicy(policy)
        try:
            fully_shard(module, process_group=process_group,
                        units=None if policy is None else units_of(module, policy))
        finally:
            for p in kept.values():
                p.requires_grad_(True)
        self.module = module
        self._kind: tuple[StateDictType, Any] = StateDictType.FULL_STATE_DICT, None

    @property
    def process_group(self) -> Any:
        """The ranks that it is divided among."""
        return self.module._sharded.group

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the model gives."""
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            inner = self.__dict__.get("_modules", {}).get("module")
            if inner is None:
                raise
            return getattr(inner, name)

    # -- state -----------------------------------------------------------------------------------

    @staticmethod
    @contextmanager
    def state_dict_type(module: Module, state_dict_type: StateDictType, state_dict_config: Any = None,
                        optim_state_dict_config: Any = None) -> Iterator[None]:
        """A block in which ``state_dict`` and ``load_state_dict`` of the models in it are of this kind."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        before = [one._kind for one in found]
        for one in found:
            one._kind = state_dict_type, state_dict_config
        try:
            yield
        finally:
            for one, kind in zip(found, before):
                one._kind = kind

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list["FullyShardedDataParallel"]:
        """The models of this class in ``module``."""
        return [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Everything under the model's own names, from all ranks; or this rank's shards."""
        kind, config = self._kind
        if kind is not StateDictType.FULL_STATE_DICT:
            return self.module.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)
        found = {f"{prefix}{name}": value for name, value in full_state_dict(self.module).items()}
        if getattr(config, "offload_to_cpu", False):
            found = {name: value.cpu() for name, value in found.items()}
        if getattr(config, "rank0_only", False) and self.process_group.rank():
            found = {}
        if destination is None:
            return found
        destination.update(found)
        return destination

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Take a dict of the kind that ``state_dict`` gives now; all of it or nothing."""
        if self._kind[0] is not StateDictType.FULL_STATE_DICT:
            return self.module.load_state_dict(state_dict, strict, assign)
        load_full_state_dict(self.module, state_dict)
        return self.module.load_state_dict({}, strict=False)._replace(missing_keys=[])

    @staticmethod
    @contextmanager
    def summon_full_params(module: Module, recurse: bool = True, writeback: bool = False,
                           rank0_only: bool = False, offload_to_cpu: bool = False,
                           with_grads: bool = False) -> Iterator[None]:
        """A block in which the models' own parameters are whole, to be read; writeback=True is refused."""
        if writeback:
            raise ValueError("summon_full_params: writeback=True is not done; change a state_dict() and "
                             "load it")
        found = FullyShardedDataParallel.fsdp_modules(module)
        for one in found:
            one.module._sharded.before(one.module, ())
        try:
            yield
        finally:
            for one in found:
                for unit in one.module._sharded.units:
                    unit.let_go()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients so that the norm of all of them, on all ranks, is at most ``max_norm``."""
        grads = [p.grad for p in self.module.parameters() if p.grad is not None]
        group = member(self.process_group, "clip_grad_norm_")
        with no_grad():
            if norm_type == math.inf:
                total = wrap(np.array(max([float(g.abs().max()) for g in grads], default=0.0)))
                all_reduce(total, ReduceOp.MAX, group)
            else:
                total = wrap(np.array(sum([float((g.abs() ** norm_type).sum()) for g in grads])))
                all_reduce(total, ReduceOp.SUM, group)
                total = total ** (1 / norm_type)
            factor = min(max_norm / (float(total) + 1e-6), 1.0)
            for g in grads:
                g.mul_(factor)
        return total

    # -- the optimizer's state -------------------------------------------------------------------

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, optim_state_dict: Any = None, group: Any = None) -> dict:
        """``{"state": {name: {...}}, "param_groups": [...]}`` of whole tensors by the model's own names.

        Every rank must call it. State that has a shard's shape is gathered, the rest is this rank's.
        """
        saved = optim.state_dict() if optim_state_dict is None else optim_state_dict
        names: dict[int, list[str]] = {}
        state: dict[str, dict] = {}
        numbers = {id(p): i for i, p in enumerate(p for g in optim.param_groups for p in g["params"])}
        for one in FullyShardedDataParallel.fsdp_modules(model):
            for name, p in one.module.named_parameters():  # those that are not sharded keep their names
                if id(p) in numbers:
                    names[numbers[id(p)]] = [name]
                    state[name] = saved["state"].get(numbers[id(p)], {})
            for unit, own in zip(one.module._sharded.units, one.module._sharded.names):
                number = numbers[id(unit.shard)]
                state.pop(names[number][0])
                names[number] = [own[k] for k in unit.params]
                parts = saved["state"].get(number, {})
                rows = {k: _gathered(unit, v) for k, v in parts.items() if _is_part(unit, v)}
                for k, place, shape in zip(unit.params, unit.places, unit.shapes):
                    whole = {key: wrap(row[place].reshape(shape).copy()) for key, row in rows.items()}
                    state[own[k]] = {**parts, **whole}
        groups = [{**{k: v for k, v in g.items() if k not in ("params", "param_names")},
                   "params": [name for i in g["params"] for name in names[i]]} for g in saved["param_groups"]]
        return {"state": state, "param_groups": groups}

    @staticmethod
    def full_optim_state_dict(model: Module, optim: Any, optim_input: Any = None, rank0_only: bool = True,
                              group: Any = None) -> dict:
        """``optim_state_dict``; with rank0_only the other ranks get an empty dict."""
        found = FullyShardedDataParallel.optim_state_dict(model, optim)
        mine = FullyShardedDataParallel.fsdp_modules(model)[0].process_group.rank()
        return {} if rank0_only and mine else found

    @staticmethod
    def optim_state_dict_to_load(model: Module, optim: Any, optim_state_dict: dict, *_: Any) -> dict:
        """What ``optim.load_state_dict`` takes on this rank, of a dict of ``optim_state_dict``."""
        saved = optim.state_dict()
        state: dict[int, dict] = {}
        numbers = {id(p): i for i, p in enumerate(p for g in optim.param_groups for p in g["params"])}
        for one in FullyShardedDataParallel.fsdp_modules(model):
            rank = one.process_group.rank()
            for name, p in one.module.named_parameters():
                if id(p) in numbers and optim_state_dict["state"].get(name):
                    state[numbers[id(p)]] = optim_state_dict["state"][name]
            for unit, own in zip(one.module._sharded.units, one.module._sharded.names):
                named = [optim_state_dict["state"].get(own[k], {}) for k in unit.params]
                merged: dict[str, Any] = {}
                for key, first in (named[0] if named else {}).items():
                    if not isinstance(first, Tensor) or first.shape != unit.shapes[0]:
                        merged[key] = first
                        continue
                    row = unit.xp.zeros(one.process_group.size() * unit.part, first._array.dtype)
                    for part, place in zip(named, unit.places):
                        row[place] = part[key]._array.reshape(-1)
                    merged[key] = wrap(row[rank * unit.part:(rank + 1) * unit.part].copy())
                if merged:
                    state[numbers[id(unit.shard)]] = merged
        groups = [{**mine, **{k: v for k, v in theirs.items() if k != "params"}} for mine, theirs
                  in zip(saved["param_groups"], optim_state_dict["param_groups"])]
        return {"state": state, "param_groups": groups}


def _is_part(unit: Any, value: Any) -> bool:
    return isinstance(value, Tensor) and tuple(value.shape) == (unit.part,)


def _gathered(unit: Any, value: Tensor) -> Any:
    row = array_module(value._array).empty(unit.group.size() * unit.part, value._array.dtype)
    with no_grad():
        all_gather_into_tensor(wrap(row), value.detach(), unit.group)
    return row
