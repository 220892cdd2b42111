"""SummaryWriter: what its files hold, as tensorboardX and, where it is installed, TensorBoard read it."""

import struct

import numpy as np
import pytest

import framework as fw
from framework import nn
from framework.errors import MissingExtraError
from framework.utils import tensorboard as board


def records(directory):
    """The events of the only file of a run."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    (file,) = directory.glob("events.out.tfevents.*")
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        found.append(event_pb2.Event.FromString(data[at + 12 : at + 12 + length]))
        at += 16 + length
    return found


def values(directory):
    return {(v.tag, e.step): v for e in records(directory) for v in e.summary.value}


def test_tensors_are_taken_everywhere(tmp_path):
    pytest.importorskip("tensorboardX")
    w = fw.randn(3, 4, requires_grad=True)
    with board.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", (w * 0 + 2.5).mean(), 3)
        writer.add_scalar("half", fw.tensor(1.5, dtype=fw.float16), 0)
        writer.add_histogram("w", w, 0)
        writer.add_image("picture", fw.rand(3, 5, 6), 0)
        writer.add_images("pictures", fw.rand(2, 1, 5, 6), 0)
        writer.add_text("note", "hello", 0)
        writer.add_pr_curve("pr", fw.tensor([0, 1, 1]), fw.tensor([0.1, 0.8, 0.4]), 0)
        writer.add_embedding(fw.randn(4, 3), metadata=["a", "b", "c", "d"])
        assert writer.get_logdir() == str(tmp_path)
    found = values(tmp_path)
    assert found["loss", 3].simple_value == 2.5 and found["half", 0].simple_value == 1.5
    assert found["w", 0].histo.num == 12 and found["w", 0].histo.sum == pytest.approx(
        w.sum().item(), rel=1e-5
    )
    assert (found["picture", 0].image.height, found["picture", 0].image.width) == (5, 6)
    assert {"pictures", "note/text_summary", "pr"} <= {tag for tag, _ in found}


def test_hyperparameters_and_several_scalars(tmp_path):
    pytest.importorskip("tensorboardX")
    with board.SummaryWriter(log_dir=tmp_path) as writer:
        writer.add_hparams({"lr": fw.tensor(0.5), "name": "x"}, {"score": fw.tensor(2.0)}, name="run")
        writer.add_scalars("losses", {"a": fw.tensor(1.0), "b": 2.0}, 1)
    assert values(tmp_path / "run")["score", 0].simple_value == 2.0
    assert values(tmp_path / "losses" / "b")["losses", 1].simple_value == 2.0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x):
        return self.rest(self.first(x)).softmax(1)


def test_graph_of_a_model():
    nodes = {node.name: node for node in board.graph_of(Net(), fw.ones(5, 3))}
    assert nodes["input/0"].shape == (5, 3) and nodes["Net/first/weight"].op == "Parameter"
    linear = nodes["Net/first/linear"]
    assert linear.inputs == ["input/0", "Net/first/weight", "Net/first/bias"] and linear.shape == (5, 4)
    assert nodes["Net/rest/0/relu"].inputs == ["Net/first/linear"]
    assert nodes["Net/softmax"].inputs == ["Net/rest/1/linear"]


class Counting(nn.Module):
    """Batch norm, dropout and a buffer of its own: what a call in training changes."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(3), nn.Dropout()
        self.register_buffer("calls", fw.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        self.norm.running_var.add_(1)
        return self.drop(self.norm(x)) + fw.rand(3)


@pytest.mark.parametrize("look", [lambda m: board.graph_of(m, fw.ones(5, 3)),
                                  lambda m: nn.utils.summary(m, (5, 3))])
def test_a_model_that_is_looked_at_stays_as_it_was(look):
    model = Counting()
    model.norm.eval()
    before, random = {k: v.clone() for k, v in model.state_dict().items()}, fw.get_rng_state()
    buffers = dict(model.named_buffers())
    look(model)
    assert all(fw.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(v is buffers[k] for k, v in model.named_buffers())
    assert fw.equal(fw.get_rng_state(), random)
    assert (model.training, model.norm.training, model.drop.training) == (True, False, True)


def test_graph_in_a_file(tmp_path):
    graph_pb2 = pytest.importorskip("tensorboardX.proto.graph_pb2")
    with board.SummaryWriter(tmp_path) as writer:
        writer.add_graph(Net(), fw.ones(5, 3))
        with pytest.raises(TypeError, match="input_to_model"):
            writer.add_graph(Net())
    graph = graph_pb2.GraphDef.FromString(next(e.graph_def for e in records(tmp_path) if e.graph_def))
    node = next(n for n in graph.node if n.name == "Net/rest/1/linear")
    assert list(node.input)[0] == "Net/rest/0/relu"
    assert [d.size for d in node.attr["_output_shapes"].list.shape[0].dim] == [5, 2]


def test_figures(tmp_path):
    pytest.importorskip("tensorboardX")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure()
    figure.add_subplot().plot(np.arange(3))
    with board.SummaryWriter(tmp_path) as writer:
        writer.add_figure("plot", figure, 0)
    assert values(tmp_path)["plot", 0].image.width > 100


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorboardX", None)
    with pytest.raises(MissingExtraError, match=r"framework\[tensorboard\]"):
        board.SummaryWriter()


def test_tensorboard_itself_reads_it(tmp_path):
    """The real program's reader, where it is installed."""
    pytest.importorskip("tensorboardX")
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with board.SummaryWriter(tmp_path) as writer:
        for step in range(5):
            writer.add_scalar("loss", fw.tensor(float(step)), step)
        writer.add_graph(Net(), fw.ones(1, 3))
    events = reader.EventAccumulator(str(tmp_path))
    events.Reload()
    assert [e.value for e in events.Scalars("loss")] == [0, 1, 2, 3, 4]
    assert any(n.name == "Net/softmax" for n in events.Graph().node)
