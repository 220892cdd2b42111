"""Models as ONNX files, and ONNX files as modules (docs/onnx.md). Needs the package onnx:
``framework[onnx]``.
"""

from ..config.listing import listing as _listing
from . import operators as operators
from .reading import OnnxModule as OnnxModule
from .reading import load as load
from .trace import OnnxError as OnnxError
from .trace import is_in_onnx_export as is_in_onnx_export
from .writing import ONNXProgram as ONNXProgram
from .writing import export as export

__dir__ = _listing(globals())
