"""Apple's GPUs: there is no backend for them here."""


def is_available() -> bool:
    """Whether tensors can be on an Apple GPU: False."""
    return False


def is_built() -> bool:
    """Whether this package was built for Apple GPUs: False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether the system has an Apple GPU backend of at least this macOS: False."""
    return False
