"""Models of 8-bit numbers as ONNX: in QDQ form where ranges are known, as sums of whole numbers where they
are found at each call; what ONNX Runtime gives is what the model gives.
"""

from collections import Counter

import numpy as np
import pytest

import framework as fw
from framework import nn
from framework.ao import quantization

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


class Net(nn.Module):
    """Convolutions of several kinds and linear layers on images and on rows of vectors."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.grouped = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=4)
        self.line = nn.Conv1d(8, 6, 3, dilation=2, padding=2)
        self.rows, self.out = nn.Linear(6, 12), nn.Linear(12, 5, bias=False)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.norm(self.first(x)).relu(), 2)
        x = self.line(self.grouped(x).relu().flatten(2)).transpose(1, 2)
        return self.out(nn.functional.gelu(self.rows(x))).mean(1)


def quantized(kind):
    fw.manual_seed(0)
    model, images = Net().eval(), fw.randn(32, 2, 8, 8)
    if kind == "dynamic":
        return quantization.quantize_dynamic(model, {nn.Linear, nn.Conv1d, nn.Conv2d})
    model = quantization.fuse_modules(model, ["first", "norm"])
    model.qconfig = quantization.get_default_qconfig()
    return quantization.quantize(model, lambda m: m(images), ())


def exported(model, x, tmp_path, **settings):
    fw.onnx.export(model, x, tmp_path / "model.onnx", input_names=["x"], output_names=["y"], **settings)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", options,
                                           providers=["CPUExecutionProvider"])
    return session, *[Counter(n.op_type for n in onnx.load(tmp_path / name).graph.node)
                      for name in ("model.onnx", "fused.onnx")]


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_layers_of_8_bit_numbers(kind, tmp_path):
    model = quantized(kind)
    session, nodes, fused = exported(model, fw.randn(2, 2, 8, 8), tmp_path,
                                     dynamic_axes={"x": {0: "batch"}})
    x = fw.randn(50, 2, 8, 8)
    with fw.no_grad():
        wanted, again = model(x).numpy(), fw.onnx.load(tmp_path / "model.onnx")(x).numpy()
    found, = session.run(None, {"x": x.numpy()})
    scale = np.abs(wanted).max()
    for other in (found, again):  # a number on the edge of two steps may fall to the other side
        assert np.abs(other - wanted).max() < 0.02 * scale
        assert np.median(np.abs(other - wanted)) < 1e-4 * scale
    if kind == "static":
        assert nodes["QuantizeLinear"] == 5 and nodes["DequantizeLinear"] >= 10
        assert fused["QLinearConv"] >= 1 and fused["MatMulIntegerToFloat"] + fused["QGemm"] == 2
    else:
        assert nodes["ConvInteger"] == 3 and nodes["MatMulInteger"] == 2
    held = {t.name: t.data_type for t in onnx.load(tmp_path / "model.onnx").graph.initializer}
    assert all(held[f"{name}.weight.uint8"] == onnx.TensorProto.UINT8
               for name in ("first", "grouped", "line", "out"))


def test_attention_and_shared_weights(tmp_path):
    fw.manual_seed(0)
    heads, one = nn.MultiheadAttention(8, 2, batch_first=True).eval(), nn.Linear(8, 8)
    model = quantization.quantize_dynamic(nn.ModuleDict({"heads": heads, "one": one}))

    def forward(x):
        y = model["heads"](x, x, x, need_weights=False)[0]
        return model["one"](model["one"](y).relu())
    axes = {"x": {0: "batch", 1: "length"}}
    session, nodes, _ = exported(forward, fw.randn(2, 6, 8), tmp_path, dynamic_axes=axes)
    x = fw.randn(3, 9, 8)
    with fw.no_grad():
        wanted = forward(x).numpy()
    assert np.abs(session.run(None, {"x": x.numpy()})[0] - wanted).max() < 0.02 * np.abs(wanted).max()
    assert nodes["MatMulInteger"] == 6
    held = onnx.load(tmp_path / "model.onnx").graph.initializer
    assert sum(t.data_type == onnx.TensorProto.UINT8 and len(t.dims) == 2 for t in held) == 5


def test_a_language_model(tmp_path):
    fw.manual_seed(0)
    model = fw.models.GPT2(vocabulary=30, context=16, width=16, layers=2, heads=2).eval()
    words = fw.randint(0, 30, (4, 12))
    model.qconfig = quantization.get_default_qconfig()
    small = quantization.quantize(model, lambda m: m(words), ())
    session, nodes, _ = exported(small, words, tmp_path, dynamic_axes={"x": {0: "batch", 1: "length"}})
    assert nodes["QuantizeLinear"] == 8
    x = fw.randint(0, 30, (3, 7))
    with fw.no_grad():
        wanted = small(x)
    wanted = (wanted[0] if isinstance(wanted, tuple) else wanted).numpy()
    assert np.abs(session.run(None, {"x": x.numpy()})[0] - wanted).max() < 0.02 * np.abs(wanted).max()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(16, 4, batch_first=True), nn.Linear(16, 5)

    def forward(self, x):
        return self.out(self.attention(x, x, x, need_weights=False)[0])


def test_calibrated_attention(tmp_path):
    fw.manual_seed(0)
    model = Attention().eval()
    model.qconfig = quantization.get_default_qconfig()
    small = quantization.quantize(model, lambda m: m(fw.randn(16, 7, 16)), ())
    session, nodes, _ = exported(small, fw.randn(2, 7, 16), tmp_path,
                                 dynamic_axes={"x": {0: "batch", 1: "length"}})
    assert nodes["QuantizeLinear"] == 5 and nodes["DequantizeLinear"] >= 10  # weights and biases, too
    x = fw.randn(6, 9, 16)
    found, = session.run(None, {"x": x.numpy()})
    with fw.no_grad():
        assert np.abs(found - small(x).numpy()).max() < 1e-4
