"""What this package was built with, under PyTorch's names."""

from .backends.threads import get_num_threads
from .config.__main__ import report


def show() -> str:
    """A line for each thing: versions, kernels, devices (as ``python -m framework.config`` prints).

    >>> "numpy" in fw.__config__.show().lower()
    True
    """
    return report()


def parallel_info() -> str:
    """How many threads compute.

    >>> fw.__config__.parallel_info().startswith("threads: ")
    True
    """
    return f"threads: {get_num_threads()}"
