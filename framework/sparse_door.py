"""The door to ``framework.sparse``, which is loaded when a tensor becomes sparse for the first time.

What stands below that package (the road of a call, embeddings, backward) meets sparse tensors only after it
was loaded, by the package's own lazy names; a program without them does not pay for its import.
"""

import sys
from typing import Any


def sparse() -> Any:
    """The package ``framework.sparse``."""
    return sys.modules[__package__].sparse


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is a sparse tensor, of any layout; loads nothing."""
    return getattr(x, "_entries", None) is not None
