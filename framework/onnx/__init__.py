"""Models as ONNX files, and ONNX files as modules (docs/onnx.md). Needs the package onnx:
``framework[onnx]``.
"""

from .export import ONNXProgram as ONNXProgram
from .export import export as export
from .trace import OnnxError as OnnxError
