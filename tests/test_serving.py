"""An exported model in servers and in a browser: the recipes of examples/serving give what the model gives.

Servers and browser are large and stay out of the environment of the tests. Each test runs where its tools are
named, and is skipped elsewhere:

- FRAMEWORK_MLSERVER: the python of an environment with mlserver, onnxruntime and tritonclient[all];
- FRAMEWORK_TRITON: the python of one with nvidia-pytriton and onnxruntime (the client is that of the former);
- FRAMEWORK_WEB: a folder in which ``npm install onnxruntime-web playwright-core`` has run; Chromium and node
  are looked for on the path.
"""

import json
import os
import shutil
import socket
import subprocess
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

import framework as fw
from framework import nn

RECIPE = Path(__file__).resolve().parent.parent / "examples" / "serving"
HERE = Path(__file__).resolve().parent


def tool(variable, what):
    """The path in an environment variable, or the test is skipped."""
    found = os.environ.get(variable)
    if not found:
        pytest.skip(f"{variable} does not name {what} (examples/serving/README.md)")
    return found


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def small_net():
    """A network for images of 8 x 8, with a norm and dropout as trained ones have them."""
    fw.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, 10))
    with fw.no_grad():
        for _ in range(3):
            model(fw.randn(32, 1, 8, 8))
    return model.eval()


@pytest.fixture
def exported(tmp_path):
    """A folder with model.onnx and cases.npz: inputs of batches 1, 2 and 5 and what the model gives."""
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    model = small_net()
    fw.onnx.export(model, fw.randn(2, 1, 8, 8), tmp_path / "model.onnx", input_names=["image"],
                   output_names=["logits"], dynamic_axes={"image": {0: "batch"}})
    inputs = [fw.randn(n, 1, 8, 8) for n in (1, 2, 5)]
    with fw.no_grad():
        cases = {f"x{i}": x.numpy() for i, x in enumerate(inputs)}
        cases |= {f"y{i}": model(x).numpy() for i, x in enumerate(inputs)}
    np.savez(tmp_path / "cases.npz", **cases)
    return tmp_path


@contextmanager
def server(*command, folder):
    """A process that ends with the block; what it printed is shown if the block fails."""
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # the server needs nothing of ours
    with open(folder / "server.log", "w") as log:
        running = subprocess.Popen(command, cwd=folder, env=plain, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
    except BaseException:
        print((folder / "server.log").read_text()[-4000:])
        raise
    finally:
        running.terminate()
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def asked(python, folder, http, grpc):
    """What the client in its own environment found."""
    command = [python, HERE / "serving_client.py", "digits", f"127.0.0.1:{http}", f"127.0.0.1:{grpc}",
               folder / "cases.npz", "50"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def check(found):
    for protocol in ("http", "grpc"):
        assert len(found[protocol]["differences"]) == 3
        assert max(found[protocol]["differences"]) < 1e-5
        assert found[protocol]["wrong shape"]
        print(f"{protocol}: median {found[protocol]['ms'][0]:.2f} ms, 99 of 100 within "
              f"{found[protocol]['ms'][1]:.2f} ms")


def test_mlserver(exported):
    python = tool("FRAMEWORK_MLSERVER", "a Python with mlserver")
    for name in ("onnx_server.py", "model-settings.json"):
        shutil.copy(RECIPE / name, exported)
    http, grpc, metrics = free_ports(3)
    settings = json.loads((RECIPE / "settings.json").read_text())
    settings |= {"http_port": http, "grpc_port": grpc, "metrics_port": metrics}
    (exported / "settings.json").write_text(json.dumps(settings))
    with server(Path(python).parent / "mlserver", "start", ".", folder=exported):
        found = asked(python, exported, http, grpc)
        short = {"name": "image", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": [0.5]}
        body = json.dumps({"inputs": [short]}).encode()
        request = Request(f"http://127.0.0.1:{http}/v2/models/digits/infer", body,
                          {"content-type": "application/json"})
        with pytest.raises(HTTPError) as refused:
            urlopen(request, timeout=20)
        answer = refused.value.read().decode()
    check(found)
    assert "image" in found["http"]["wrong shape"]
    assert refused.value.code == 400 and "image" in answer and "Traceback" not in answer


def test_triton(exported):
    python, client = tool("FRAMEWORK_TRITON", "a Python with nvidia-pytriton"), tool(
        "FRAMEWORK_MLSERVER", "a Python with tritonclient")
    http, grpc = free_ports(2)
    with server(python, RECIPE / "triton_server.py", "model.onnx", "--http", str(http), "--grpc", str(grpc),
                folder=exported):
        check(asked(client, exported, http, grpc))


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *args):
        pass


# as one draws them, on a sheet of 280 x 280
STROKES = {
    "0": [[[140, 40], [90, 70], [75, 140], [90, 210], [140, 240], [190, 210], [205, 140], [190, 70],
           [140, 40]]],
    "1": [[[110, 80], [145, 45], [145, 240]]],
    "3": [[[85, 60], [140, 40], [190, 70], [175, 115], [130, 135], [185, 155], [200, 200], [150, 240],
           [85, 220]]],
    "4": [[[160, 40], [80, 170], [215, 170]], [[170, 110], [170, 245]]],
    "7": [[[80, 45], [200, 45], [150, 140], [125, 245]]],
}


def trained_net():
    """``small_net`` after two seconds with scikit-learn's digits."""
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    images, labels = datasets.load_digits(return_X_y=True)
    x, y = fw.tensor(images).float().reshape(-1, 1, 8, 8) / 16, fw.tensor(labels).long()
    model = small_net().train()
    optimizer = fw.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(12):
        for rows in fw.randperm(len(x)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    return model.eval()


def test_drawn_digits_in_a_browser(tmp_path):
    folder = tool("FRAMEWORK_WEB", "a folder with onnxruntime-web and playwright-core")
    modules = Path(folder) / "node_modules"
    chromium, node = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("node")
    if not chromium or not node:
        pytest.skip("chromium or node is not on the path")
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    model = trained_net()
    fw.onnx.export(model, fw.randn(2, 1, 8, 8), tmp_path / "model.onnx", input_names=["image"],
                   output_names=["logits"], dynamic_axes={"image": {0: "batch"}})
    shutil.copy(RECIPE / "index.html", tmp_path)
    (tmp_path / "ort").symlink_to(modules / "onnxruntime-web" / "dist")
    (tmp_path / "node_modules").symlink_to(modules)
    shutil.copy(HERE / "draw_digits.mjs", tmp_path)
    inputs = [fw.randn(n, 1, 8, 8) for n in (1, 2, 5)]
    task = {"strokes": STROKES, "inputs": [{"shape": list(x.shape), "data": x.reshape(-1).tolist()}
                                           for x in inputs]}
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as pages:
        Thread(target=pages.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{pages.server_address[1]}/index.html"
        done = subprocess.run([node, "draw_digits.mjs", url, chromium, tmp_path], cwd=tmp_path, text=True,
                              input=json.dumps(task), capture_output=True, timeout=120)
        pages.shutdown()
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    print(found["state"], found["times"], sep="; ")
    assert not found["errors"] and found["state"].startswith("ready")
    assert found["answers"] == {digit: f"It is a {digit}" for digit in STROKES}
    with fw.no_grad():
        for x, logits in zip(inputs, found["logits"]):
            y = model(x)
            fw.testing.assert_close(fw.tensor(logits).reshape(y.shape), y, rtol=1e-5, atol=1e-5)
    assert all((tmp_path / f"digit-{digit}.png").stat().st_size > 5000 for digit in STROKES)
