"""The settings of ``FullyShardedDataParallel``, under PyTorch's names."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class ShardingStrategy(Enum):
    """What is divided. FULL_SHARD and SHARD_GRAD_OP are one here: rows are kept until backward has ended."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()


class StateDictType(Enum):
    """What ``state_dict()`` of a sharded model is: everything under its own names, or this rank's shards."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class CPUOffload:
    """Whether parameters wait in the memory of the CPU; those of a model on the CPU do."""

    offload_params: bool = False


@dataclass
class MixedPrecision:
    """Dtypes of parameters, reductions and buffers of a sharded model; only None: ``autocast`` does that."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None


@dataclass
class FullStateDictConfig:
    """rank0_only: the other ranks get an empty dict. offload_to_cpu: tensors on the CPU."""

    offload_to_cpu: bool = False
    rank0_only: bool = False


class FullOptimStateDictConfig(FullStateDictConfig):
    """The same for the optimizer's state."""
