"""The older place of ``framework.profiler``."""

from ..profiler import profile as profile
from ..profiler import record_function as record_function
