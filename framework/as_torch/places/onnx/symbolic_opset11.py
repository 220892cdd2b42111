"""Rules of PyTorch for ONNX, of which there are none here: each name says so when it is asked for."""
