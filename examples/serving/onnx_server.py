"""ONNX models in MLServer: ``mlserver start FOLDER``, which holds this file, its two settings and model.onnx.

MLServer speaks the Open Inference Protocol (version 2) over HTTP and gRPC; ONNX Runtime computes. Nothing of
``framework`` is needed where the model is served.
"""

import asyncio

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor
from mlserver.utils import get_model_uri

DATATYPES = {"tensor(float)": "FP32", "tensor(double)": "FP64", "tensor(float16)": "FP16",
             "tensor(int64)": "INT64", "tensor(int32)": "INT32", "tensor(int8)": "INT8",
             "tensor(uint8)": "UINT8", "tensor(bool)": "BOOL"}


class OnnxModel(MLModel):
    """The model whose path the settings name; inputs and outputs as the file says."""

    async def load(self) -> bool:
        path = await get_model_uri(self._settings)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # several requests at once instead
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs, self.outputs = [
            [MetadataTensor(name=t.name, datatype=DATATYPES[t.type],
                            shape=[n if isinstance(n, int) else -1 for n in t.shape]) for t in tensors]
            for tensors in (self.session.get_inputs(), self.session.get_outputs())]
        self.wanted = {tensor.name: tensor for tensor in self.inputs}
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        feeds = {}
        for given in payload.inputs:
            tensor = self.wanted.get(given.name)
            if tensor is None:
                raise InferenceError(f"{self.name}: no input {given.name!r}; wanted {', '.join(self.wanted)}")
            if given.datatype != tensor.datatype:
                raise InferenceError(f"{self.name}: {given.name} must be {tensor.datatype}, got "
                                     f"{given.datatype}")
            try:
                feeds[given.name] = NumpyCodec.decode_input(given)
            except ValueError as error:  # numbers that do not fill the shape
                raise InferenceError(f"{self.name}: {given.name}: {error}") from error
        names = [o.name for o in payload.outputs or self.outputs]
        run = asyncio.get_running_loop().run_in_executor
        try:
            found = await run(None, self.session.run, names, feeds)  # other requests go on meanwhile
        except Exception as error:  # ONNX Runtime has an exception for each kind of mistake
            raise InferenceError(f"{self.name}: {error}") from error
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=[
            NumpyCodec.encode_output(name, array) for name, array in zip(names, found)])
