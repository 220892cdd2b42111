"""One module on several devices of a machine: a replica and a part of the batch for each, in threads."""

from .data_parallel import DataParallel as DataParallel
from .data_parallel import data_parallel as data_parallel
from .pieces import gather as gather
from .pieces import scatter as scatter
from .pieces import scatter_kwargs as scatter_kwargs
from .replicas import parallel_apply as parallel_apply
from .replicas import replicate as replicate
