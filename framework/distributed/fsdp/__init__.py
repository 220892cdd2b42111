"""Models whose parameters, gradients and optimizer states are divided among the ranks."""

from ...config.listing import listing as _listing
from . import wrap as wrap
from .api import CPUOffload as CPUOffload
from .api import FullOptimStateDictConfig as FullOptimStateDictConfig
from .api import FullStateDictConfig as FullStateDictConfig
from .api import MixedPrecision as MixedPrecision
from .api import ShardingStrategy as ShardingStrategy
from .api import StateDictType as StateDictType
from .fully_sharded_data_parallel import FullyShardedDataParallel as FullyShardedDataParallel
from .shards import full_state_dict as full_state_dict
from .shards import fully_shard as fully_shard
from .shards import load_full_state_dict as load_full_state_dict

__dir__ = _listing(globals())
