"""How what a trace holds becomes ONNX's operators."""
