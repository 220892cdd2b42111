"""Intel's MKL, which this package does not call; NumPy may have been built with it."""


def is_available() -> bool:
    """Whether this package calls MKL: False."""
    return False
