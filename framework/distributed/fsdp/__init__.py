"""Models whose parameters, gradients and optimizer states are divided among the ranks."""

from .shards import full_state_dict as full_state_dict
from .shards import fully_shard as fully_shard
from .shards import load_full_state_dict as load_full_state_dict
