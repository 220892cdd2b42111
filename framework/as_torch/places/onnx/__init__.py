"""``torch.onnx``: programs import it at the top, and use it behind an option. Exporting is not there."""

from collections.abc import Callable
from typing import Any

_SYMBOLIC: dict[tuple[str, int], Callable] = {}


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """Keep a rule for exporting an operator of a library, which registers it when it is imported."""
    _SYMBOLIC[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Drop a rule."""
    _SYMBOLIC.pop((symbolic_name, opset_version), None)


def is_in_onnx_export(*args: Any) -> bool:
    """False: nothing is exported."""
    return False
