"""The few names of PyTorch's C++ core that programs use: ``__torch_function__``, and what imports ask for.

Nothing is dispatched by keys here: ``DispatchKeySet`` is a set of names and no more.
"""

import enum

from .ops.linalg.factor import LinAlgError as _LinAlgError  # noqa: F401
from .ops.record.torch_function import DisableTorchFunction as DisableTorchFunction
from .ops.record.torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from .ops.record.torch_function import disabled as _disabled_torch_function_impl  # noqa: F401


def _log_api_usage_once(event: str) -> None:
    """Nothing: nobody is told what is used. PyTorch, too, writes it down only where a logger was set."""


def _get_tracing_state() -> None:
    """None: nothing is traced."""


class DispatchKey(enum.Enum):
    """Names of the layers that PyTorch sends a call through, as far as libraries name them."""

    Undefined, CPU, CUDA, Meta, Autograd, AutogradCPU, AutogradCUDA = range(7)
    AutocastCPU, AutocastCUDA, AutocastXPU = range(7, 10)
    CompositeImplicitAutograd, CompositeExplicitAutograd = range(10, 12)


class DispatchKeySet:
    """A set of keys, with PyTorch's operators."""

    def __init__(self, key: DispatchKey) -> None:
        self._keys = frozenset([key])

    def _with(self, keys: frozenset) -> "DispatchKeySet":
        made = object.__new__(DispatchKeySet)
        made._keys = keys
        return made

    def __or__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return self._with(self._keys | other._keys)

    def __and__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return self._with(self._keys & other._keys)

    def __sub__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return self._with(self._keys - other._keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether the key is in it."""
        return key in self._keys
