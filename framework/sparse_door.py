"""The door to ``framework.sparse``, which is loaded when a tensor becomes sparse for the first time.

What stands below that package (the road of a call, embeddings, backward) meets sparse tensors only after it
was loaded, by the package's own lazy names; a program without them does not pay for its import.
"""

from typing import Any

from .doors import through


def sparse() -> Any:
    """The package ``framework.sparse``."""
    return through("sparse")


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is a sparse tensor, of any layout; loads nothing."""
    return getattr(x, "_entries", None) is not None
