"""Export to ONNX: what is written gives what the model gives, at other sizes too, or it is refused with the
line.
"""

import io
import sys

import layer_rows
import numpy as np
import pytest
import table

import framework as fw
from benchmarks import onnx_models
from framework import nn
from framework.nn import functional as F

pytest.importorskip("onnx", reason="the package onnx is not installed")
ALL = {0: "batch", 1: "length"}
IMAGE = {0: "batch", 2: "h", 3: "w"}


def lengths(program):
    return [tuple(sizes.values()) for sizes, _ in program.checked]


MODELS = {
    "MLP": lambda: (fw.models.MLP(20, (16,), 5), fw.randn(2, 20), {0: "batch"}),
    "LeNet": lambda: (fw.models.LeNet(), fw.randn(1, 1, 28, 28), {0: "batch"}),
    "MobileNetV2": lambda: (fw.models.MobileNetV2(5, width=0.25), fw.randn(1, 3, 32, 32), {0: "batch"}),
    "CharRNN": lambda: (fw.models.CharRNN(30, 8), fw.randint(0, 30, (2, 9)), ALL),
    "GPT2": lambda: (fw.models.GPT2(vocabulary=50, context=32, width=16, layers=2, heads=2),
                     fw.randint(0, 50, (2, 12)), ALL),
    "ViT": lambda: (fw.models.VisionTransformer(image_size=16, patch_size=8, layers=1, heads=2, width=16,
                                                hidden=32,
                                                num_classes=5), fw.randn(1, 3, 16, 16), {0: "batch"}),
    "UNet": lambda: (fw.models.UNet(3, 2, 4, 2), fw.randn(1, 3, 16, 16), IMAGE),
    "DCGANGenerator": lambda: (fw.models.DCGANGenerator(10, 4), fw.randn(2, 10, 1, 1), {0: "batch"}),
    "TransformerEncoder": lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16,
                                                                                    batch_first=True), 1),
                                   fw.randn(2, 6, 8), ALL),
    "LSTM": lambda: (nn.LSTM(8, 5, 2, bidirectional=True, batch_first=True), fw.randn(2, 6, 8), ALL),
    "GRU": lambda: (nn.GRU(8, 5, batch_first=True), fw.randn(2, 6, 8), ALL),
    "interpolate": lambda: (nn.Upsample(scale_factor=2, mode="bilinear"), fw.randn(1, 2, 7, 9), IMAGE),
    "GroupNorm": lambda: (nn.GroupNorm(2, 4), fw.randn(2, 4, 6, 5), IMAGE),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_at_other_sizes(name):
    model, x, axes = MODELS[name]()
    before = [(k, v.clone()) for k, v in model.state_dict().items()]
    training = model.training
    program = fw.onnx.export(model, x, input_names=["x"], output_names=["y"], dynamic_axes={"x": axes})
    assert {sizes["batch"] for sizes, _ in program.checked} >= {1, 2, 5}
    for label in set(axes.values()) - {"batch"}:
        assert len({sizes[label] for sizes, _ in program.checked}) >= 2
    assert model.training is training
    assert all(fw.equal(v, model.state_dict()[k]) for k, v in before)
    kept = {k for k, _ in model.named_parameters()}
    assert {t.name for t in program.model_proto.graph.initializer if len(t.dims) > 1} >= {
        k for k, p in model.named_parameters() if p.ndim > 1 and "pos" not in k} & kept


def test_modules_of_the_examples(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("PIL", "sklearn", "tqdm"):
        pytest.importorskip(name, reason="the examples need it")
    found, why = {}, {}
    for name, module, args, axes in onnx_models.example_modules():
        fw.manual_seed(0)
        try:
            found[name] = len(fw.onnx.export(module, args, dynamic_axes=axes).checked)
        except (fw.onnx.OnnxError, ValueError) as error:
            why[name] = str(error)
    assert len(found) >= 15 and found.pop("translation.Translator.decode") == 1  # it has no dynamic axis
    assert all(sizes >= 3 for sizes in found.values())
    assert set(why) == {"gcn.GCN", "names.Classifier", "tree_lstm.TreeLSTM"}
    assert "sparse" in why["gcn.GCN"] and "names.py" in why["names.Classifier"] and \
        "no tensor" in why["tree_lstm.TreeLSTM"]


def refused(model, *args, match, **settings):
    with pytest.raises(fw.onnx.OnnxError, match=match):
        fw.onnx.export(model, args, **settings)


def test_reads_of_values_are_refused_with_their_line():
    def chosen(x):
        return x * 2 if x.sum() > 0 else x
    refused(chosen, fw.ones(3), match=r"(?s)bool\(\), a condition.*test_onnx_export.py: return x \* 2 if")
    refused(lambda x: x * float(x.sum()), fw.ones(3), match="float")
    refused(lambda x: fw.tensor(x.numpy()), fw.ones(3), match="numpy")
    refused(lambda x: x if fw.equal(x, x + 1) else -x, fw.ones(3), match="reads a value")
    refused(lambda x: x if fw.allclose(x, x + 1) else -x, fw.ones(3), match="reads a value")
    scale = fw.tensor(2.0)  # what does not depend on the inputs may be read
    assert fw.onnx.export(lambda x: x * float(scale), (fw.ones(3),)).checked


def test_all_that_is_lacking_is_named_at_once():
    def two(x):
        a = fw.linalg.inv(x)
        return a + fw.lgamma(x) + x.cos()
    with pytest.raises(fw.onnx.OnnxError, match="2 operations") as error:
        fw.onnx.export(two, (fw.eye(3) + 1,))
    assert "a = fw.linalg.inv(x)" in str(error.value) and "lgamma" in str(error.value)


def test_sizes_are_followed_or_refused():
    B = {"x": {0: "batch"}}
    program = fw.onnx.export(lambda x: x.reshape(x.shape[0] * 2, -1) + fw.arange(x.shape[0] * 2).unsqueeze(1),
                             (fw.randn(3, 4),), dynamic_axes=B)
    assert lengths(program) == [(1,), (2,), (5,)]
    program = fw.onnx.export(lambda x: x[:, : x.shape[1] // 2] * x.shape[0], (fw.randn(3, 8),),
                             dynamic_axes={"x": {0: "batch", 1: "n"}})
    assert len({n for _, n in lengths(program)}) >= 3
    refused(lambda x: x * (1 / x.shape[0]), fw.randn(3, 4), dynamic_axes=B, match="depends on the size")
    refused(lambda x: x * 2 if x.shape[0] > 2 else x + 1, fw.randn(3, 4), dynamic_axes=B, match="another way")
    outside = fw.randn(3, 4)
    with pytest.raises(Exception, match="broadcast|few sizes"):
        fw.onnx.export(lambda x: x + outside, (fw.randn(3, 4),), dynamic_axes=B)


def test_positions_that_are_computed():
    def f(x, i):
        y = x.clone()
        y[i] = 2.0
        return x[i], x[:, i % 3], x[i, i % 3], y, x.index_add(0, i, x[i]), x.scatter_add(1, i[:, None] % 3, x)
    inputs = (fw.randn(5, 3), fw.tensor([4, 0, 1, 1, 2]))
    program = fw.onnx.export(f, inputs)
    assert max(worst for _, worst in program.checked) < 1e-6


def test_every_function_is_written_right_or_refused():
    """A sample of each row of the table of functions: what is exported was compared, all else is refused."""
    pytest.importorskip("onnxruntime", reason="ONNX's reference evaluator does not run all operators")
    good = 0
    for row in table.ROWS:
        sample = row.samples[0] if row.samples else None
        if sample is None or row.name.startswith(("_", "cholesky_inverse")):
            continue
        arrays = [np.asarray(a) for a in sample.inputs]
        tensors = [fw.tensor(a.astype(np.float32) if a.dtype.kind == "f" else a) for a in arrays]
        if not tensors or any(t.is_complex() for t in tensors):
            continue
        try:
            good += bool(fw.onnx.export(lambda *xs, s=sample: s.call(fw, *xs), tensors,
                                        input_names=[f"x{i}" for i in range(len(tensors))]).checked)
        except fw.onnx.OnnxError as error:
            assert "differs at" not in str(error) and "does not run" not in str(error), (row.name, error)
    assert good > 400


# layers whose sample reads values (offsets, lengths, a mask that is looked at), or has no ONNX form
REFUSED = {"EmbeddingBag-settings": "numpy", "CTCLoss": "numpy", "TransformerEncoder": "a condition",
           "CrossEntropyLoss-settings": "label_smoothing"}
ONE_SIZE = {"FractionalMaxPool2d", "FractionalMaxPool3d", "InstanceNorm1d-no batch", "GaussianNLLLoss-mean",
            "GaussianNLLLoss-sum", "GaussianNLLLoss-none"}  # samples that do not run at another batch


def test_every_layer_is_written_right_or_refused():
    """A layer of each row, in evaluation mode, the first axis dynamic: at batches of 1, 2 and 5."""
    pytest.importorskip("onnxruntime", reason="ONNX's reference evaluator does not run all operators")
    found = {}
    for row in layer_rows.ROWS:
        fw.manual_seed(0)
        model, tensors = row.make(fw).eval(), [fw.tensor(a) for a in row.inputs]
        names = [f"x{i}" for i in range(len(tensors))]
        same = [n for n, t in zip(names, tensors) if t.ndim and len(t) == len(tensors[0])]
        axes = None if row.id in ONE_SIZE else {n: {0: "batch"} for n in same}
        try:
            program = fw.onnx.export(model, tensors, input_names=names, dynamic_axes=axes)
            assert {s.get("batch", 5) for s, _ in program.checked} >= ({1, 2, 5} if axes else {5})
        except fw.onnx.OnnxError as error:
            found[row.id] = str(error)
    assert set(found) == set(REFUSED), {k: v for k, v in found.items() if k not in REFUSED}
    assert all(why in found[name] for name, why in REFUSED.items())


def test_writing_into_memory_becomes_values():
    def f(x):
        y = x.clone()
        row = y[:, 0]
        y[:, 1] = 7.0
        y[0] += 1
        row.mul_(3)
        view = y.reshape(-1)[2:4]
        view.zero_()
        return y, row, view
    assert fw.onnx.export(f, (fw.randn(3, 4),), dynamic_axes={"x": {0: "batch"}}).checked
    model = nn.Sequential(nn.BatchNorm1d(4))
    refused(model, fw.randn(3, 4), training="preserve", match="changes 0.* in place")


def test_the_file_is_whole_or_as_before(tmp_path):
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    model = nn.Sequential(nn.Linear(3, 40), nn.Dropout(0.5), nn.Linear(40, 3))
    fw.onnx.export(model, fw.randn(2, 3), path)
    written = path.read_bytes()
    refused(lambda x: fw.lgamma(x), fw.ones(2), f=path, match="lgamma")
    assert path.read_bytes() == written and [p.name for p in tmp_path.iterdir()] == ["model.onnx"]
    assert {t.name for t in onnx.load(path).graph.initializer} == {"0.weight", "0.bias", "2.weight", "2.bias"}
    program = fw.onnx.export(model, fw.randn(2, 3), path, external_data=True, training="train")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert any(n.op_type == "Dropout" for n in program.model_proto.graph.node)


def test_weights_that_no_message_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(fw.onnx.protobuf, "_EXTERNAL_FROM", (1 << 24) + 1000)  # "2 GB"
    model = nn.Linear(30, 30)
    with pytest.raises(fw.onnx.OnnxError, match="give a path"):
        fw.onnx.export(model, fw.randn(2, 30), io.BytesIO())
    program = fw.onnx.export(model, fw.randn(2, 30), tmp_path / "a.onnx",
                             dynamic_axes={"input": {0: "batch"}})
    assert "weight" in program.beside and program.model_proto.ByteSize() < 1000  # it was in no message
    assert (tmp_path / "a.onnx").stat().st_size < 1000 < (tmp_path / "a.onnx.data").stat().st_size
    x = fw.randn(4, 30)
    fw.testing.assert_close(fw.onnx.load(tmp_path / "a.onnx")(x), model(x))


@pytest.mark.parametrize("opset", fw.onnx.export.__globals__["OPSETS"])
def test_opsets(opset):
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.GELU(), nn.Mish(),
                          nn.AdaptiveAvgPool2d(1))
    program = fw.onnx.export(lambda x: (model(x).mean((1, 2)), x.amax(1), F.pad(x, (1, 2)), x.var(1)),
                             (fw.randn(2, 2, 6, 6),), opset_version=opset, dynamic_axes={"x": {0: "batch"}})
    assert program.model_proto.opset_import[0].version == opset and len(program.checked) == 3


@pytest.mark.parametrize("opset", range(17, 23))
def test_what_models_are_made_of_in_each_opset(opset):
    pytest.importorskip("onnxruntime", reason="ONNX's reference evaluator does not run all operators")
    words, lstm, gru = nn.Embedding(9, 4), nn.LSTM(4, 3, batch_first=True), nn.GRU(3, 4, batch_first=True)
    heads = nn.MultiheadAttention(4, 2, batch_first=True)

    def text(i):
        y = gru(lstm(words(i))[0])[0]
        return heads(y, y, y)[0] + F.scaled_dot_product_attention(y, y, y, is_causal=True)

    def image(x, grid):
        y = F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
        for mode in ("nearest", "bilinear", "bicubic"):
            y = F.interpolate(y, scale_factor=2, mode=mode)
        small = F.interpolate(y, size=(5, 3), mode="bilinear", antialias=True) if opset > 17 else y.sum()
        return fw.where(y > 0, y, 0.1 * y).clamp(-1, 2), small
    for f, inputs, axes in ((text, (fw.randint(0, 9, (2, 6)),), ALL),
                            (image, (fw.randn(2, 2, 5, 6), fw.rand(2, 4, 4, 2) * 2 - 1), {0: "batch"})):
        names = [f"x{i}" for i in range(len(inputs))]
        program = fw.onnx.export(f, inputs, input_names=names, dynamic_axes=dict.fromkeys(names, axes),
                                 opset_version=opset)
        assert program.model_proto.opset_import[0].version == opset
        assert {sizes["batch"] for sizes, _ in program.checked} >= {1, 2, 5}
