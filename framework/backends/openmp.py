"""OpenMP, which this package does not use: its kernels have a pool of threads of their own."""


def is_available() -> bool:
    """Whether kernels run in OpenMP's threads: False."""
    return False
