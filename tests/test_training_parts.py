"""Metrics, early stopping, histories, gradient accumulation: the small parts of loops."""

import random
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import framework as fw
from framework.utils import metrics
from framework.utils.training import EarlyStopping, History, accumulated, progress, seed_everything


def cases():
    """Scores and classes: many samples, few, a class that is never said, ties, two classes."""
    rng = np.random.default_rng(0)
    yield rng.normal(size=(200, 5)), rng.integers(0, 5, 200)
    yield rng.normal(size=(7, 3)), np.array([0, 0, 2, 2, 2, 0, 0])
    yield np.eye(4)[[1, 1, 2, 3, 3, 0]], np.array([1, 2, 2, 3, 0, 0])
    yield rng.normal(size=(50, 2)), rng.integers(0, 2, 50)


@pytest.mark.parametrize("scores, target", list(cases()))
def test_metrics_are_those_of_sklearn(scores, target):
    theirs = pytest.importorskip("sklearn.metrics")
    x, y = fw.tensor(scores, requires_grad=True), fw.tensor(target)
    said, classes = scores.argmax(1), list(range(scores.shape[1]))
    assert metrics.accuracy(x, y) == pytest.approx(theirs.accuracy_score(target, said), abs=1e-12)
    assert metrics.accuracy(fw.tensor(said), y) == metrics.accuracy(x, y)
    for k in range(2, scores.shape[1]):
        if len(set(scores.ravel())) == scores.size:  # sklearn breaks ties the other way round
            assert metrics.accuracy(x, y, k=k) == pytest.approx(
                theirs.top_k_accuracy_score(target, scores, k=k, labels=classes), abs=1e-12)
    counts = theirs.confusion_matrix(target, said, labels=classes)
    assert (metrics.confusion_matrix(x, y).numpy() == counts).all()
    for ours in (metrics.precision, metrics.recall, metrics.f1_score):
        reference = getattr(theirs, f"{ours.__name__.removesuffix('_score')}_score")
        for average in ("macro", "micro", "weighted", None):
            labels = classes if average is None else None
            np.testing.assert_allclose(ours(x, y, average=average), reference(
                target, said, average=average, zero_division=0, labels=labels), atol=1e-12)
    if scores.shape[1] == 2:
        assert metrics.f1_score(x, y, average="binary") == pytest.approx(theirs.f1_score(target, said))
        one = np.round(scores[:, 1], 1)  # with equal scores
        area = theirs.roc_auc_score(target, one)
        assert metrics.roc_auc(fw.tensor(one), y) == pytest.approx(area, abs=1e-12)


def test_top_k_of_ties_takes_the_first_classes():
    flat = fw.zeros(4, 4)
    assert [metrics.accuracy(flat, fw.arange(4), k=k) for k in (1, 2, 4)] == [0.25, 0.5, 1.0]


@pytest.mark.parametrize("call, text", [
    (lambda: metrics.accuracy(fw.zeros(3, 4), fw.zeros(2, dtype=fw.int64)), "3.*samples.*2"),
    (lambda: metrics.accuracy(fw.zeros(3), fw.zeros(3)), "class numbers must be integers"),
    (lambda: metrics.accuracy(fw.zeros(3, 4), fw.arange(3), k=5),
     "between 1 and the number of classes 4, got 5"),
    (lambda: metrics.accuracy(fw.zeros(0, 4), fw.zeros(0, dtype=fw.int64)), "no samples"),
    (lambda: metrics.confusion_matrix(fw.arange(3), fw.arange(3), num_classes=2), "class 2 is none of the 2"),
    (lambda: metrics.f1_score(fw.arange(3), fw.arange(3), average="mean"), "average must be .* got 'mean'"),
    (lambda: metrics.f1_score(fw.arange(3), fw.arange(3), average="binary"), "got 3 classes"),
    (lambda: metrics.roc_auc(fw.rand(3), fw.arange(3)), "target must be 0 or 1"),
    (lambda: metrics.roc_auc(fw.rand(3), fw.ones(3)), "both classes, got 0 of class 0 and 3"),
    (lambda: metrics.roc_auc(fw.rand(3, 2), fw.ones(3)), r"must be \(N\)"),
    (lambda: metrics.roc_auc(fw.full((2,), fw.nan), fw.arange(2)), "hold 2 nan"),
    (lambda: EarlyStopping(mode="least"), "mode must be 'min' or 'max'"),
    (lambda: accumulated([], 0), "from 1 on, got 0"),
    (lambda: seed_everything(-1), "got -1"),
    (lambda: History().add(loss="low"), "loss must be a number .* got str"),
])
def test_refusals(call, text):
    with pytest.raises((ValueError, TypeError, IndexError), match=text):
        call()


def test_running_mean_weighs_batches():
    mean = metrics.RunningMean()
    assert np.isnan(mean.value)
    for batch in fw.arange(10.0).split(4):
        mean.update(batch.mean(), len(batch))
    assert mean.value == pytest.approx(4.5) and mean.count == 10


def test_seed_everything_starts_all_generators():
    states = random.getstate(), np.random.get_state(), fw.get_rng_state()
    try:
        drawn = []
        for _ in range(2):
            seed_everything(3)
            drawn.append((fw.rand(2).tolist(), np.random.rand(), random.random()))
        assert drawn[0] == drawn[1]
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        fw.set_rng_state(states[2])


def test_early_stopping_waits_and_resumes():
    values = [0.5, 0.6, 0.62, 0.61, float("nan"), 0.6]
    stopping = EarlyStopping(patience=3, mode="max", min_delta=0.05)
    told = [(stopping.step(v), stopping.improved) for v in values]
    assert told == [(i > 3, i < 2) for i in range(6)]
    again = EarlyStopping(patience=3, mode="max", min_delta=0.05)
    for v in values[:3]:
        again.step(v)
    resumed = EarlyStopping(patience=3, mode="max", min_delta=0.05)
    resumed.load_state_dict(again.state_dict())
    assert [resumed.step(v) for v in values[3:]] == [told[i][0] for i in range(3, 6)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("batches, every", [(6, 3), (7, 3), (2, 5), (1, 1), (0, 2)])
def test_accumulated_steps_are_those_of_large_batches(batches, every, stream):
    """The sum of share * gradient equals the gradient of the group's mean, the last smaller one, too."""
    x, y = fw.randn(batches, 4, 3), fw.randn(batches, 4, 1)
    ours, large = fw.nn.Linear(3, 1), fw.nn.Linear(3, 1)
    large.load_state_dict(ours.state_dict())
    optimizers = [fw.optim.SGD(m.parameters(), lr=0.1) for m in (ours, large)]
    pairs = list(zip(x, y))
    for (a, b), share, due in accumulated(iter(pairs) if stream else pairs, every):
        ((ours(a) - b).square().mean() * share).backward()
        if due:
            optimizers[0].step()
            optimizers[0].zero_grad()
    for start in range(0, batches, every):
        a, b = x[start:start + every].reshape(-1, 3), y[start:start + every].reshape(-1, 1)
        optimizers[1].zero_grad()
        (large(a) - b).square().mean().backward()
        optimizers[1].step()
    fw.testing.assert_close(ours.weight, large.weight)


def test_history_goes_through_a_file_and_draws(tmp_path):
    history = History()
    history.add(epoch=1, loss=fw.tensor(2.5), note=1)
    history.add(epoch=2, loss=0.25)
    history.add(epoch=3, loss=float("inf"), accuracy=0.5)
    history.save_csv(tmp_path / "run.csv")
    assert History.load_csv(tmp_path / "run.csv").rows == history.rows
    assert history["accuracy"] == [None, None, 0.5] and history.best("loss")["epoch"] == 2
    assert history.table(last=1).split() == ["epoch", "loss", "note", "accuracy", "3", "inf", "0.5"]
    svg = history.plot("loss", "accuracy", path=tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text() == svg
    root = ElementTree.fromstring(svg)
    lines = [e.get("points") for e in root.iter() if e.tag.endswith("polyline")]
    assert len(lines) == 1 and len(lines[0].split()) == 2  # inf has no place; one accuracy is a dot
    assert len([e for e in root.iter() if e.tag.endswith("circle")]) == 1
    first, last = (tuple(map(float, p.split(","))) for p in lines[0].split())
    assert first[0] < last[0] and first[1] < last[1]  # down is down
    assert history.plot("loss", log=True) != svg
    with pytest.raises(ValueError, match="no finite numbers"):
        History().plot()
    with pytest.raises(KeyError, match="no column 'gain'"):
        history["gain"]


def test_progress_shows_means(capsys):
    with progress(range(3), desc="train", ncols=80) as bar:
        for i in bar:
            bar.show(n=i + 1, loss=float(i))
    assert bar.means == {"loss": pytest.approx(8 / 6)}
    assert "loss=1.33" in capsys.readouterr().err.replace("\r", "\n").splitlines()[-1]
