"""``torch.onnx``: ``framework.onnx``, and what libraries look for when they are imported."""

from collections.abc import Callable

from ....onnx import ONNXProgram as ONNXProgram
from ....onnx import export as export
from ....onnx import is_in_onnx_export as is_in_onnx_export

_SYMBOLIC: dict[tuple[str, int], Callable] = {}


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """Keep a rule of a library, which registers it when it is imported; nothing asks for it here."""
    _SYMBOLIC[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Drop a rule."""
    _SYMBOLIC.pop((symbolic_name, opset_version), None)
