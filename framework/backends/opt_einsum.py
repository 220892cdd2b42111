"""The package opt_einsum, which chooses the order of products of several operands. It is not asked here."""

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether ``einsum`` asks opt_einsum for the order of its products: False, from left to right."""
    return False


def get_opt_einsum() -> None:
    """The package, if it is asked: None."""
    return None
