"""Import of ONNX: operators by ONNX's own tests, models there and back, and files that are damaged."""

import importlib
import io
import warnings

import numpy as np
import pytest

import framework as fw
from framework import nn

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
onnx_fuzz = importlib.import_module("onnx_fuzz")
onnx_nodes = importlib.import_module("onnx_nodes")  # they need the package

SLOW = ("maxpool", "averagepool", "lppool")  # seconds to be made; all of them: python tests/onnx_nodes.py


def test_operators_by_the_tests_of_onnx():
    with np.errstate(all="ignore"):
        found = {case[0]: onnx_nodes.wrong(*case) for case in onnx_nodes.node_cases(without=SLOW)}
    wrong = {name: why for name, why in found.items() if why}
    assert len(found) > 1000
    assert len(wrong) <= 12, wrong  # the last bits of bfloat16, ensembles of trees


def test_operator_models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = {case[0]: why for case in onnx_nodes.model_cases() if (why := onnx_nodes.wrong(*case))}
    assert not wrong


def round_trip(model, *args, **settings):
    file = io.BytesIO()
    fw.onnx.export(model, args, file, **settings)
    return fw.onnx.load(file.getvalue())


@pytest.mark.parametrize("name", ["CharRNN", "UNet", "GPT2"])
def test_there_and_back(name):
    model, x, axes = {
        "CharRNN": lambda: (fw.models.CharRNN(20, 8), fw.randint(0, 20, (2, 7)), {0: "batch", 1: "length"}),
        "UNet": lambda: (fw.models.UNet(3, 2, 4, 1), fw.randn(1, 3, 8, 8), {0: "batch", 2: "h", 3: "w"}),
        "GPT2": lambda: (fw.models.GPT2(vocabulary=20, context=16, width=8, layers=1, heads=2),
                         fw.randint(0, 20, (2, 7)), {0: "batch", 1: "length"})}[name]()
    model.eval()
    back = round_trip(model, x, input_names=["x"], dynamic_axes={"x": axes})
    more = fw.cat([x, x.flip(0), x], 0)
    expected, found = model(more), back(more)
    first = [t[0] if isinstance(t, tuple) else t for t in (expected, found)]
    fw.testing.assert_close(*first, rtol=1e-4, atol=1e-5)
    named = dict(model.named_parameters())
    kept = {k for k, _ in back.named_parameters()}
    assert kept <= set(named) | {k for k in kept if k.startswith("constant")}
    assert {k for k, p in named.items() if p.ndim > 1} <= kept
    assert "nodes" in repr(back) and "x ->" in repr(back)


def test_what_was_loaded_can_be_trained_and_exported_again():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    x, y = fw.randn(16, 4), fw.randint(0, 3, (16,))
    back = round_trip(model, x, dynamic_axes={"input": {0: "batch"}})
    assert list(back.state_dict()) == list(model.state_dict())
    optimizer = fw.optim.Adam(back.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(back(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] * 0.8
    again = round_trip(back.eval(), x)
    fw.testing.assert_close(again(x), back(x))
    back.load_state_dict(model.state_dict())
    fw.testing.assert_close(back(input=x), model(x))
    with pytest.raises(TypeError, match="no inputs y"):
        back(x, y=x)
    with pytest.raises(fw.onnx.OnnxError, match="Gemm"):
        back(fw.randn(2, 5))


def test_damaged_files_give_an_error():
    found = onnx_fuzz.run(150, seed=1)
    assert found["CheckpointError"] > 20 and sum(found.values()) == 150
    for data in (b"", b"\x80\x04no", b"PK\x03\x04" * 9, b"model" * 100):
        with pytest.raises(fw.errors.CheckpointError):
            fw.onnx.load(data)


def test_weights_beside_the_file_come_from_its_folder_only(tmp_path):
    path = tmp_path / "model.onnx"
    model = nn.Linear(4, 30)
    fw.onnx.export(model, fw.randn(2, 4), path, external_data=True)
    x = fw.randn(5, 4)
    again = fw.onnx.load(path)
    assert again.state_dict()["weight"].tolist() == model.weight.tolist()
    (tmp_path.parent / "secret").write_bytes(b"0" * 100)
    proto = onnx.load(path, load_external_data=False)
    for place in ("../secret", str(tmp_path.parent / "secret"), "", "nothing"):
        for entry in proto.graph.initializer[0].external_data:
            if entry.key == "location":
                entry.value = place
        path.write_bytes(proto.SerializeToString())
        with pytest.raises(fw.errors.CheckpointError, match="folder of the model|refuses"):
            fw.onnx.load(path)
    assert x.shape == (5, 4)


def test_all_unknown_operators_are_named():
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 20, "me" : 1]>
        main (string[N] x) => (float[N] z) {
            y, n = StringSplit (x)
            z = me.Mine (y)
        }
    """)
    with pytest.raises(fw.onnx.OnnxError, match=r"StringSplit \(version 20\), me.Mine \(version 1\)"):
        fw.onnx.load(model)


def test_functions_and_graphs_inside_of_graphs():
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18, "me" : 1]>
        main (float[N] x) => (float[N] y) {
            zero = Constant <value = float {0.0}> ()
            total = ReduceSum <keepdims = 0> (x)
            up = Greater (total, zero)
            z = If (up) <then_branch = a () => (float[N] p) { p = me.scaled <factor = 3.0> (x) },
                         else_branch = b () => (float[N] q) { q = Neg (x) }>
            y = Identity (z)
        }
        <domain: "me", opset_import: ["" : 18]>
        scaled <factor> (x) => (y) {
            f = Constant <value_float : float = @factor> ()
            y = Mul (x, f)
        }
    """)
    module = fw.onnx.load(model)
    assert module(fw.tensor([1.0, 2.0])).tolist() == [3.0, 6.0]
    assert module(fw.tensor([1.0, -2.0])).tolist() == [-1.0, 2.0]
