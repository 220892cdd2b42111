"""An independent client of the Open Inference Protocol, NVIDIA's, in an environment of its own: ``python
serving_client.py MODEL HTTP GRPC CASES.npz [REQUESTS]``.

Sends x0, x1, ... of the file and prints, as JSON, by protocol: the largest differences from y0, y1, ..., what
the server says of a wrong shape, and the median and the 99th percentile of the times of requests of x0 in ms.
"""

import json
import statistics
import sys
import time

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException


def ready(client, model, seconds=60):
    """Wait until the server answers for the model."""
    end = time.monotonic() + seconds
    while True:
        try:
            if client.is_model_ready(model):
                return
        except Exception as error:  # not listening yet: each client has its own exception for that
            why = error
        if time.monotonic() > end:
            raise TimeoutError(f"{model} is not ready: {why}")
        time.sleep(0.05)


def asked(module, url, model, cases, requests):
    client = module.InferenceServerClient(url)
    ready(client, model)
    said = client.get_model_metadata(model, **({"as_json": True} if module is tritonclient.grpc else {}))
    name, output = said["inputs"][0]["name"], said["outputs"][0]["name"]
    plain = {"binary_data": False} if module is tritonclient.http else {}  # MLServer takes JSON only

    def infer(x):
        given = module.InferInput(name, x.shape, "FP32")
        given.set_data_from_numpy(x, **plain)
        return client.infer(model, [given], outputs=[module.InferRequestedOutput(output, **plain)])
    count = sum(key.startswith("x") for key in cases)
    found = {"differences": [float(np.abs(infer(cases[f"x{i}"]).as_numpy(output) - cases[f"y{i}"]).max())
                             for i in range(count)]}
    try:
        infer(np.zeros((1, 3), np.float32))
    except InferenceServerException as error:
        found["wrong shape"] = str(error)
    times = []
    for _ in range(requests):
        start = time.perf_counter()
        infer(cases["x0"])
        times.append(1e3 * (time.perf_counter() - start))
    if times:
        found["ms"] = [statistics.median(times), sorted(times)[int(0.99 * len(times))]]
    return found


if __name__ == "__main__":
    model, http, grpc, path, *more = sys.argv[1:]
    with np.load(path) as file:
        cases = dict(file)
    requests = int(more[0]) if more else 0
    print(json.dumps({"http": asked(tritonclient.http, http, model, cases, requests),
                      "grpc": asked(tritonclient.grpc, grpc, model, cases, requests)}))
