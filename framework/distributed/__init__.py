"""Many processes that work together: groups of ranks, collectives, and what training on them needs.

``python -m framework.distributed.run -n 4 train.py`` starts ranks; in them::

    import framework.distributed as dist
    dist.init_process_group()
    model = fw.nn.parallel.DistributedDataParallel(model)
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from ..config.listing import listing as _listing
from ..errors import DistributedError as DistributedError
from . import algorithms as algorithms
from . import nn as nn
from . import sync_norm as _sync_norm  # noqa: F401 - teaches SyncBatchNorm of ranks
from .collectives import all_gather as all_gather
from .collectives import all_gather_into_tensor as all_gather_into_tensor
from .collectives import all_reduce as all_reduce
from .collectives import all_to_all as all_to_all
from .collectives import all_to_all_single as all_to_all_single
from .collectives import barrier as barrier
from .collectives import broadcast as broadcast
from .collectives import gather as gather
from .collectives import mean as mean
from .collectives import monitored_barrier as monitored_barrier
from .collectives import reduce as reduce
from .collectives import reduce_scatter as reduce_scatter
from .collectives import reduce_scatter_tensor as reduce_scatter_tensor
from .collectives import scatter as scatter
from .groups import Backend as Backend
from .groups import GroupMember as GroupMember
from .groups import ProcessGroup as ProcessGroup
from .groups import default_pg_timeout as default_pg_timeout
from .groups import destroy_process_group as destroy_process_group
from .groups import get_backend as get_backend
from .groups import get_global_rank as get_global_rank
from .groups import get_group_rank as get_group_rank
from .groups import get_node_local_rank as get_node_local_rank
from .groups import get_process_group_ranks as get_process_group_ranks
from .groups import get_rank as get_rank
from .groups import get_world_size as get_world_size
from .groups import group as group
from .groups import init_process_group as init_process_group
from .groups import is_available as is_available
from .groups import is_gloo_available as is_gloo_available
from .groups import is_initialized as is_initialized
from .groups import is_mpi_available as is_mpi_available
from .groups import is_nccl_available as is_nccl_available
from .groups import is_torchelastic_launched as is_torchelastic_launched
from .groups import manual_seed as manual_seed
from .groups import new_group as new_group
from .groups import new_subgroups as new_subgroups
from .groups import new_subgroups_by_enumeration as new_subgroups_by_enumeration
from .messages import P2POp as P2POp
from .messages import batch_isend_irecv as batch_isend_irecv
from .messages import irecv as irecv
from .messages import isend as isend
from .messages import recv as recv
from .messages import send as send
from .objects import all_gather_object as all_gather_object
from .objects import broadcast_object_list as broadcast_object_list
from .objects import gather_object as gather_object
from .objects import recv_object_list as recv_object_list
from .objects import scatter_object_list as scatter_object_list
from .objects import send_object_list as send_object_list
from .reductions import ReduceOp as ReduceOp
from .start import launch as launch
from .store import FileStore as FileStore
from .store import HashStore as HashStore
from .store import PrefixStore as PrefixStore
from .store import Store as Store
from .store import TCPStore as TCPStore
from .work import Future as Future
from .work import Work as Work

DistError = DistBackendError = DistNetworkError = DistributedError  # PyTorch's names


def __getattr__(name: str) -> _Any:
    """The parts that stand on modules and optimizers, imported when first named."""
    if name in ("fsdp", "optim"):
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'framework.distributed' has no attribute '{name}'")

__dir__ = _listing(globals(), "algorithms fsdp nn")
