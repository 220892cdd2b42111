"""load: mapping, places, shared memory, classes, whole objects, and what it must never do."""

import io
import os
import pickle
import random
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework.device import Device
from framework.errors import CheckpointError
from framework.io import Checkpointer, load, save
from framework.tensor import Tensor

ROOT = Path(__file__).resolve().parents[1]


def dumps(obj, **options):
    file = io.BytesIO()
    save(obj, file, **options)
    return file.getvalue()


def loads(data, *args, **options):
    return load(io.BytesIO(data), *args, **options)


def again(obj):
    return loads(dumps(obj))


# -- mapping ---------------------------------------------------------------------------------------


def test_a_mapped_tensor_can_be_written_and_the_file_stays(tmp_path):
    path = tmp_path / "x.ckpt"
    save({"w": fw.arange(5000).float(), "e": fw.zeros(0, 3)}, path)
    before = path.read_bytes()
    back = load(path, mmap=True)
    back["w"].add_(1)
    assert back["w"][4999].item() == 5000 and back["e"].shape == (0, 3)
    assert path.read_bytes() == before
    save({"w": back["w"]}, path)  # over the file that is mapped
    assert back["w"][1].item() == 2 == load(path)["w"][1].item()


def test_mapping_needs_a_path(tmp_path):
    with pytest.raises(TypeError, match="mmap=True needs a path"):
        loads(dumps(1), mmap=True)
    save({}, tmp_path / "x")
    assert load(tmp_path / "x", mmap=True) == {}


def test_a_mapped_model_trains(tmp_path):
    model = fw.nn.Linear(3, 2)
    save(model.state_dict(), tmp_path / "x")
    other = fw.nn.Linear(3, 2)
    other.load_state_dict(load(tmp_path / "x", mmap=True), assign=True)
    other(fw.ones(1, 3)).sum().backward()
    fw.optim.SGD(other.parameters(), lr=0.1).step()
    assert fw.allclose(other.weight, model.weight - 0.1)


def test_no_descriptor_stays_open(tmp_path):
    save({"w": fw.ones(9)}, tmp_path / "x")
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    for _ in range(3):
        load(tmp_path / "x")
        load(tmp_path / "x", mmap=True)
        save(1, tmp_path / "y")
    opened = [os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")]
    assert not [path for path in opened if path.startswith(str(tmp_path))]


# -- places ----------------------------------------------------------------------------------------


def test_map_location_as_a_function():
    data = dumps({"a": fw.ones(2), "b": fw.zeros(3), "n": 1})
    seen = []

    def place(tensor, saved):
        seen.append((tensor.shape, saved))
        return None if tensor.shape == (3,) else tensor
    back = loads(data, place)
    assert seen == [((2,), "cpu"), ((3,), "cpu")] and back["a"].tolist() == [1.0, 1.0]
    assert loads(data, lambda storage, loc: storage)["n"] == 1
    with pytest.raises(TypeError, match="must return None or the tensor"):
        loads(data, lambda storage, loc: 3)


# -- memory that is shared -------------------------------------------------------------------------


def shares(a, b):
    return np.shares_memory(a._array, b._array)


def test_views_are_tied_again():
    base = fw.arange(24).float().reshape(4, 6)
    obj = {"row": base[1], "base": base, "t": base.t(), "column": base[:, 2:4], "flat": base.view(24),
           "back": [base[3, 3], base], "twin": base.clone()}
    data = dumps(obj)
    back = loads(data)
    for name in ("row", "t", "column", "flat"):
        assert shares(back[name], back["base"]) and back[name].tolist() == obj[name].tolist()
        assert back[name].stride() == obj[name].stride()
    assert not shares(back["twin"], back["base"]) and back["back"][1] is back["base"]
    back["base"].mul_(2)
    assert back["row"].tolist() == (base[1] * 2).tolist() and back["back"][0].item() == 42
    assert len(data) < 8 * base.nbytes + 2000


def test_a_change_through_a_loaded_view_is_noticed_by_backward():
    w = fw.ones(3, requires_grad=True)
    back = again({"w": w, "part": w.detach()[1:]})
    y = (back["w"] ** 2).sum()
    back["part"].mul_(2)
    with pytest.raises(fw.errors.AutogradError):
        y.backward()


def test_slices_that_overlap_are_tied_and_those_that_do_not_are_apart():
    line = fw.arange(1000)
    back = again([line[:10], line[5:15], line[500:510]])
    assert shares(back[0], back[1]) and not shares(back[0], back[2])
    back[0][7] = -1
    assert back[1][2].item() == -1
    assert len(dumps([line[:10], line[5:15], line[500:510]])) < 2000  # not the thousand
    table = fw.zeros(1000, 1000)
    assert len(dumps([table[:, 0], table[:, 1]])) < 12_000
    assert not shares(*again([table[:, 0], table[:, 1]]))


def test_expanded_tensors_are_small():
    data = dumps(fw.ones(1).expand(1000, 1000))
    assert len(data) < 1000
    back = loads(data)
    assert back.shape == (1000, 1000) and back.stride() == (0, 0) and back.sum().item() == 1e6


def test_tensors_of_other_kinds_over_one_memory():
    x = fw.arange(4).float()
    back = again({"x": x, "bits": x.view(fw.int32), "c": fw.tensor([1 + 2j, 3j])})
    assert shares(back["x"], back["bits"]) and back["bits"].tolist() == x.view(fw.int32).tolist()
    c = fw.tensor([1 + 2j, 3j, 4.0])
    back = again([c[1:], c, c[:2]])
    assert back[0].tolist() == [3j, 4] and shares(back[0], back[1]) and shares(back[2], back[1])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(1, 3), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
def test_any_windows_keep_values_and_sharing(cuts):
    base = fw.arange(36).reshape(6, 6)
    views = [(base.t() if turned else base)[a:a + n:step, ::step] for a, n, step, turned in cuts]
    back = again(views)
    for i, (a, b) in enumerate(zip(views, back)):
        assert a.tolist() == b.tolist()
        for c, d in zip(views[:i], back[:i]):
            assert shares(a, c) == shares(b, d)


def test_tied_weights_of_a_model():
    class Tied(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = fw.nn.Linear(2, 2, bias=False), fw.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight
    state = again(Tied().state_dict())
    assert type(state) is OrderedDict and shares(state["a.weight"], state["b.weight"])


def test_parameters_and_buffers_stay_what_they_are():
    p = fw.nn.Parameter(fw.ones(2))
    frozen = fw.nn.Parameter(fw.ones(1), requires_grad=False)
    buffer = fw.nn.Buffer(fw.zeros(1), persistent=False)
    back = again({"p": p, "list": [p, frozen], "b": buffer, "plain": p.detach()})
    assert type(back["p"]) is fw.nn.Parameter and back["p"] is back["list"][0] and back["p"].requires_grad
    assert type(back["list"][1]) is fw.nn.Parameter and not back["list"][1].requires_grad
    assert type(back["b"]) is fw.nn.Buffer and not back["b"].persistent
    assert type(back["plain"]) is Tensor and shares(back["plain"], back["p"])

    class Own(fw.nn.Parameter):
        pass
    with pytest.raises(TypeError, match=r"obj\['x'\].*class of your own"):
        dumps({"x": Own(fw.ones(1))})


@pytest.mark.parametrize("name", ["bfloat16", "uint16", "uint32", "uint64"])
def test_the_other_element_types(name):
    kind = getattr(fw, name, None)
    if not isinstance(kind, fw.dtype):
        pytest.skip(f"no {name} here")
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="the lowprecision extra is not installed")
    x = fw.tensor([1, 2, 3]).to(dtype=kind)
    back = again({"x": x, "t": fw.tensor([[1, 2], [3, 4]]).to(dtype=kind).t(), "e": x[:0], "s": x[0]})
    assert back["x"].dtype is kind and back["x"].tolist() == [1, 2, 3] and back["e"].shape == (0,)
    assert back["t"].tolist() == [[1, 3], [2, 4]] and shares(back["s"], back["x"])


# -- whole objects ---------------------------------------------------------------------------------


def test_a_whole_model_needs_weights_only_false(tmp_path):
    model = fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.ReLU())
    path = tmp_path / "model.ckpt"
    save(model, path)
    for options in ({}, {"weights_only": True}, {"mmap": True}):
        with pytest.raises(
            CheckpointError, match="runs whatever code.*trust.*weights_only=False.*state_dict"
        ):
            load(path, **options)
    back = load(path, weights_only=False)
    assert type(back) is fw.nn.Sequential and back[0].weight.tolist() == model[0].weight.tolist()
    back(fw.ones(1, 2)).sum().backward()
    assert back[0].weight.grad is not None
    assert type(loads(dumps(model), "cpu", weights_only=False)[0].weight) is fw.nn.Parameter


def test_a_process_that_has_not_met_bfloat16(tmp_path):
    pytest.importorskip("ml_dtypes", reason="the lowprecision extra is not installed")
    path = tmp_path / "model.ckpt"
    save([fw.ones(2).to(fw.bfloat16)], path, weights_only=False)
    script = f"import framework as fw; x, = fw.load({str(path)!r}, weights_only=False); assert x.sum() == 2"
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_data_is_never_pickled_unless_asked():
    inside = {"model": fw.nn.Linear(1, 1)}
    with pytest.raises(TypeError, match=r"obj\['model'\].*state_dict.*weights_only=False"):
        dumps(inside)
    assert type(loads(dumps(inside, weights_only=False), weights_only=False)["model"]) is fw.nn.Linear
    with pytest.raises(TypeError, match="cannot be saved as data"):
        dumps(fw.nn.Linear(1, 1), weights_only=True)
    assert loads(dumps({"a": 1}), weights_only=False) == {"a": 1}
    with pytest.raises(TypeError, match="cannot be pickled"):
        dumps([lambda: None], weights_only=False)


def test_a_damaged_container_is_never_unpickled(monkeypatch):
    data = dumps(fw.nn.Linear(1, 1))
    monkeypatch.setattr(pickle, "Unpickler", None)
    for bad in [data[:n] for n in range(8, len(data), 7)] + [
            data[:i] + bytes([data[i] ^ 1]) + data[i + 1:] for i in range(8, len(data))]:
        with pytest.raises(CheckpointError, match="damaged|version"):
            loads(bad, weights_only=False)


def test_a_class_that_is_gone(monkeypatch):
    class Here(fw.nn.Module):
        pass
    monkeypatch.setitem(globals(), "Here", Here)
    Here.__qualname__ = "Here"
    data = dumps(Here())
    monkeypatch.delitem(globals(), "Here")
    with pytest.raises(CheckpointError, match="needs code that is not there.*Here"):
        loads(data, weights_only=False)


# -- no code from a file ---------------------------------------------------------------------------

AUDITED = """
import io, sys
import zipfile, argparse, encodings.cp437  # what the reader itself may load
import framework as fw, framework.io, framework.nn
from framework.errors import CheckpointError
files = [open(name, "rb").read() for name in sys.argv[1:]]
sys.modules["pickle"] = sys.modules["_pickle"] = None  # an import of it would fail
before, seen = set(sys.modules), []
sys.addaudithook(lambda event, args: seen.append((event, args)) if event in (
    "import", "exec", "compile", "pickle.find_class", "os.system", "subprocess.Popen", "ctypes.dlopen",
    "code.__new__", "function.__new__", "marshal.loads") else None)
outcomes = []
for data in files:
    try:
        fw.load(io.BytesIO(data), map_location="cpu")
        outcomes.append("loaded")
    except CheckpointError:
        outcomes.append("refused")
print(outcomes, [e for e in seen if e != ("import", ("framework.nn.parameter", None, None, None, None))],
      sorted(set(sys.modules) - before))
"""


def test_loading_imports_and_runs_nothing(tmp_path):
    """Data, a pickled object, bare pickles and PyTorch's kind of file, under an audit hook."""
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/pwned",)
    save({"p": fw.nn.Parameter(fw.ones(2)), "x": [1, (2.5, b"x"), OrderedDict(a=1 << 80)]}, tmp_path / "data")
    save({"evil": Evil()}, tmp_path / "container", weights_only=False)
    (tmp_path / "pickle").write_bytes(pickle.dumps(Evil()))
    import zipfile
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil()))
    names = [str(tmp_path / name) for name in ("data", "container", "pickle", "zip")]
    done = subprocess.run([sys.executable, "-c", AUDITED, *names], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['loaded', 'refused', 'refused', 'refused'] [] []"
    assert not (tmp_path / "pwned").exists()


def test_it_is_the_only_place_that_unpickles():
    """No other file of the room names the module."""
    for path in (ROOT / "framework" / "io").glob("*.py"):
        text = path.read_text()
        assert (
            path.name == "container.py"
            or 'import_module("pickle")' not in text
            and "import pickle" not in text
        )


# -- the generators --------------------------------------------------------------------------------


def test_every_generator_can_be_a_part(tmp_path):
    parts = {"a": fw.Generator().manual_seed(3), "b": random.Random(4), "c": np.random.default_rng(5),
             "d": np.random.RandomState(6), "e": np.random.Generator(np.random.Philox(7))}
    draw = lambda: (fw.rand(2, generator=parts["a"]).tolist(), parts["b"].gauss(0, 1), parts["c"].random(),
                    parts["d"].randn(), parts["e"].integers(0, 99, 3).tolist(), random.random(),
                    np.random.rand(), fw.rand(1).item())
    draw()
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(1, **parts)
    first = draw()
    assert checkpoints.resume(**parts) == {"step": 1, "metric": None}
    assert draw() == first
    checkpoints.resume(random=False, **parts)
    mixed = draw()
    assert mixed[:5] == first[:5] and mixed[5:] != first[5:]


def test_places_of_devices_that_are_not_there():
    data = dumps({"d": Device("cuda:3")})
    assert loads(data)["d"] == Device("cuda:3")
