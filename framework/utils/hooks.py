"""PyTorch's place for what takes a hook back, and for what is said of hooks when a tensor is pickled."""

import warnings
from collections.abc import Callable
from typing import Any

from ..autograd.hooks import RemovableHandle as RemovableHandle
from ..config.listing import own as _own


def unserializable_hook(f: Callable) -> Callable:
    """Mark a hook, so that ``warn_if_has_hooks`` says that it is not pickled."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of each marked hook of a tensor."""
    for hook in getattr(tensor._node, "hooks", None) or ():
        if hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"the hook {hook!r} of this tensor is not pickled", stacklevel=2)


__dir__ = _own(globals(), "RemovableHandle")
