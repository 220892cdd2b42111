"""An ONNX model in NVIDIA's Triton server: ``python triton_server.py model.onnx``.

``pip install nvidia-pytriton onnxruntime`` brings the server itself (Linux; no GPU is needed). It holds
Triton's Python backend, so ONNX Runtime is called from here; a server with the ONNX backend, as NVIDIA's
images have, takes the file by itself (README.md).
"""

import argparse

import numpy as np
import onnxruntime
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
          "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8,
          "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}


def tensors(found: list) -> list[Tensor]:
    """Names, dtypes and shapes without the batch, as Triton asks for them."""
    return [Tensor(name=t.name, dtype=DTYPES[t.type],
                   shape=tuple(n if isinstance(n, int) else -1 for n in t.shape[1:])) for t in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="an ONNX file whose first axes are the batch")
    parser.add_argument("--name", default="digits")
    parser.add_argument("--http", type=int, default=8000)
    parser.add_argument("--grpc", type=int, default=8001)
    parser.add_argument("--max-batch", type=int, default=64)
    args = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # several requests at once instead
    session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])

    @batch
    def infer(**inputs: np.ndarray) -> list[np.ndarray]:
        return session.run(None, inputs)

    config = TritonConfig(http_address="127.0.0.1", http_port=args.http, grpc_address="127.0.0.1",
                          grpc_port=args.grpc, allow_metrics=False)
    with Triton(config=config) as server:
        server.bind(model_name=args.name, infer_func=infer, inputs=tensors(session.get_inputs()),
                    outputs=tensors(session.get_outputs()), config=ModelConfig(max_batch_size=args.max_batch))
        server.serve()


if __name__ == "__main__":
    main()
