"""A drop-in for ``multiprocessing`` in which tensors are shared, not copied.

Tensors and Parameters that are put on its queues and pipes, or are arguments of its processes, move to
shared memory, in place: both sides see what either writes. Everything else is as in ``multiprocessing``.
"""

from multiprocessing import Array as Array
from multiprocessing import AuthenticationError as AuthenticationError
from multiprocessing import Barrier as Barrier
from multiprocessing import BoundedSemaphore as BoundedSemaphore
from multiprocessing import BufferTooShort as BufferTooShort
from multiprocessing import Condition as Condition
from multiprocessing import Event as Event
from multiprocessing import Lock as Lock
from multiprocessing import Manager as Manager
from multiprocessing import ProcessError as ProcessError
from multiprocessing import RawArray as RawArray
from multiprocessing import RawValue as RawValue
from multiprocessing import RLock as RLock
from multiprocessing import Semaphore as Semaphore
from multiprocessing import TimeoutError as TimeoutError
from multiprocessing import Value as Value
from multiprocessing import active_children as active_children
from multiprocessing import allow_connection_pickling as allow_connection_pickling
from multiprocessing import cpu_count as cpu_count
from multiprocessing import current_process as current_process
from multiprocessing import freeze_support as freeze_support
from multiprocessing import get_all_start_methods as get_all_start_methods
from multiprocessing import get_logger as get_logger
from multiprocessing import get_start_method as get_start_method
from multiprocessing import log_to_stderr as log_to_stderr
from multiprocessing import parent_process as parent_process
from multiprocessing import reducer as reducer
from multiprocessing import set_executable as set_executable
from multiprocessing import set_forkserver_preload as set_forkserver_preload
from multiprocessing import set_start_method as set_start_method

from ..config.listing import listing as _listing
from .channels import Pipe as Pipe
from .process import JoinableQueue as JoinableQueue
from .process import Pool as Pool
from .process import Process as Process
from .process import Queue as Queue
from .process import SimpleQueue as SimpleQueue
from .process import get_context as get_context
from .reduction import get_all_sharing_strategies as get_all_sharing_strategies
from .reduction import get_sharing_strategy as get_sharing_strategy
from .reduction import set_sharing_strategy as set_sharing_strategy
from .segments import Segment as Segment
from .spawn import ProcessContext as ProcessContext
from .spawn import ProcessExitedException as ProcessExitedException
from .spawn import ProcessRaisedException as ProcessRaisedException
from .spawn import SpawnContext as SpawnContext
from .spawn import spawn as spawn
from .spawn import start_processes as start_processes

_PYTHONS = " ".join(name for name, value in globals().items()
                    if getattr(value, "__module__", "").startswith("multiprocessing"))
__dir__ = _listing(globals(), further=_PYTHONS)
