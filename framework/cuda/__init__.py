"""NVIDIA GPUs as CuPy sees them. Without one everything here imports and answers so: there are 0 devices."""

from ..config.listing import listing as _listing
from ..errors import OutOfMemoryError as OutOfMemoryError
from ..random import Generator as Generator
from ..typed import types_of as _types_of
from . import amp as amp
from . import comm as comm
from . import graphs as graphs
from . import memory as _memory
from . import nccl as nccl
from . import nvtx as nvtx
from . import profiler as profiler
from . import random as random
from .devices import CudaError as CudaError
from .devices import can_device_access_peer as can_device_access_peer
from .devices import check_error as check_error
from .devices import cudart as cudart
from .devices import cudaStatus as cudaStatus
from .devices import current_blas_handle as current_blas_handle
from .devices import current_device as current_device
from .devices import device as device
from .devices import device_count as device_count
from .devices import device_of as device_of
from .devices import get_arch_list as get_arch_list
from .devices import get_device_capability as get_device_capability
from .devices import get_device_name as get_device_name
from .devices import get_device_properties as get_device_properties
from .devices import get_gencode_flags as get_gencode_flags
from .devices import get_sync_debug_mode as get_sync_debug_mode
from .devices import init as init
from .devices import is_available as is_available
from .devices import is_bf16_supported as is_bf16_supported
from .devices import is_initialized as is_initialized
from .devices import is_tf32_supported as is_tf32_supported
from .devices import set_device as set_device
from .devices import set_sync_debug_mode as set_sync_debug_mode
from .devices import synchronize as synchronize
from .graphs import CUDAGraph as CUDAGraph
from .graphs import graph as graph
from .graphs import graph_pool_handle as graph_pool_handle
from .graphs import make_graphed_callables as make_graphed_callables
from .kernels import precompile as precompile
from .memory import empty_cache as empty_cache
from .memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from .memory import ipc_collect as ipc_collect
from .memory import max_memory_allocated as max_memory_allocated
from .memory import max_memory_cached as max_memory_cached
from .memory import max_memory_reserved as max_memory_reserved
from .memory import mem_get_info as mem_get_info
from .memory import memory_allocated as memory_allocated
from .memory import memory_cached as memory_cached
from .memory import memory_reserved as memory_reserved
from .memory import memory_snapshot as memory_snapshot
from .memory import memory_stats as memory_stats
from .memory import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from .memory import memory_summary as memory_summary
from .memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from .memory import reset_max_memory_allocated as reset_max_memory_allocated
from .memory import reset_max_memory_cached as reset_max_memory_cached
from .memory import reset_peak_memory_stats as reset_peak_memory_stats
from .memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from .pools import MemPool as MemPool
from .pools import caching_allocator_alloc as caching_allocator_alloc
from .pools import caching_allocator_delete as caching_allocator_delete
from .pools import get_allocator_backend as get_allocator_backend
from .pools import use_mem_pool as use_mem_pool
from .random import default_generators as default_generators
from .random import get_rng_state as get_rng_state
from .random import get_rng_state_all as get_rng_state_all
from .random import initial_seed as initial_seed
from .random import manual_seed as manual_seed
from .random import manual_seed_all as manual_seed_all
from .random import seed as seed
from .random import seed_all as seed_all
from .random import set_rng_state as set_rng_state
from .random import set_rng_state_all as set_rng_state_all
from .readings import clock_rate as clock_rate
from .readings import device_memory_used as device_memory_used
from .readings import list_gpu_processes as list_gpu_processes
from .readings import memory_usage as memory_usage
from .readings import power_draw as power_draw
from .readings import temperature as temperature
from .readings import utilization as utilization
from .streams import Event as Event
from .streams import ExternalStream as ExternalStream
from .streams import Stream as Stream
from .streams import StreamContext as StreamContext
from .streams import current_stream as current_stream
from .streams import default_stream as default_stream
from .streams import get_stream_from_external as get_stream_from_external
from .streams import is_current_stream_capturing as is_current_stream_capturing
from .streams import set_stream as set_stream
from .streams import stream as stream


def __getattr__(name: str) -> bool:
    if name == "_initialized":  # read by copies of PyTorch's checkpointing, in reversible layers for example
        return is_initialized()
    raise AttributeError(f"module 'framework.cuda' has no attribute {name!r}")


_types = _types_of("cuda", "framework.cuda")
BFloat16Tensor = _types["BFloat16Tensor"]
BoolTensor = _types["BoolTensor"]
ByteTensor = _types["ByteTensor"]
CharTensor = _types["CharTensor"]
DoubleTensor = _types["DoubleTensor"]
FloatTensor = _types["FloatTensor"]
HalfTensor = _types["HalfTensor"]
IntTensor = _types["IntTensor"]
LongTensor = _types["LongTensor"]
ShortTensor = _types["ShortTensor"]

for _name in _memory.ELSEWHERE:
    setattr(_memory, _name, globals()[_name])
_lazy_init = init  # called by extensions before they look for a device
has_half = True  # every GPU that CuPy knows computes with float16
has_magma = False  # linear algebra is cuSOLVER's

__dir__ = _listing(globals(), "amp comm graphs memory nccl nvtx profiler random", "has_half has_magma")
