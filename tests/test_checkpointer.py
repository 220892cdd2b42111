"""Checkpointer: what is kept, what comes back, two at once, and damaged directories."""

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import framework as fw
from framework.errors import CheckpointError
from framework.io import Checkpointer, load, save

ROOT = Path(__file__).resolve().parents[1]


def files(folder):
    return sorted(int(name[5:-5]) for name in os.listdir(folder) if name.endswith(".ckpt"))


def model_of(value):
    model = fw.nn.Linear(2, 2)
    model.weight.data.fill_(value)
    return model


def value_of(model):
    return float(model.weight[0, 0].detach())


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("keep, best, kept", [
    (3, None, [7, 8, 9]), (1, None, [9]), (None, None, list(range(10))), (2, "min", [4, 8, 9]),
    (2, "max", [5, 8, 9]), (1, "max", [5, 9])])
def test_retention(tmp_path, keep, best, kept):
    metrics = [3, 4, 5, 4, 1, 9, 5, 5, 5, 2]
    checkpoints = Checkpointer(tmp_path, keep=keep, best=best)
    for step, metric in enumerate(metrics):
        path = checkpoints.save(step, model=model_of(step), metric=metric)
        assert path == checkpoints.latest and os.path.exists(path)
        if best:
            top = {"min": min, "max": max}[best](metrics[:step + 1])
            assert load(checkpoints.best)["metric"] == top
    assert files(tmp_path) == kept == sorted(checkpoints.steps)
    assert Checkpointer(tmp_path, keep=keep, best=best).steps == checkpoints.steps


def test_nan_is_never_best(tmp_path):
    checkpoints = Checkpointer(tmp_path, best="min")
    checkpoints.save(1, metric=float("nan"))
    assert checkpoints.best is None
    with pytest.raises(CheckpointError, match="no checkpoint was saved with a metric"):
        checkpoints.resume("best")
    checkpoints.save(2, metric=0.5)
    checkpoints.save(3, metric=float("inf"))
    assert checkpoints.resume("best") == {"step": 2, "metric": 0.5}


def test_latest_is_what_was_saved_last(tmp_path):
    """A run that went back to an earlier step goes on from there."""
    checkpoints = Checkpointer(tmp_path, keep=2)
    for step in (10, 20, 15):
        checkpoints.save(step, model=model_of(step))
    model = fw.nn.Linear(2, 2)
    assert Checkpointer(tmp_path).resume(model=model)["step"] == 15 == value_of(model)
    assert checkpoints.steps == [20, 15]
    checkpoints.save(20, model=model_of(-1))
    assert checkpoints.steps == [15, 20] and checkpoints.resume(20, model=model) and value_of(model) == -1


def test_plain_values_and_parts_not_asked_for_come_back(tmp_path):
    checkpoints = Checkpointer(tmp_path)
    assert checkpoints.resume(model=fw.nn.Linear(2, 2)) is None
    checkpoints.save(3, model=model_of(7), epoch=2, losses=[0.5, 0.25], best_loss=float("inf"))
    model = model_of(0)
    found = checkpoints.resume(model=model)
    assert found == {"step": 3, "metric": None, "epoch": 2, "losses": [0.5, 0.25], "best_loss": float("inf")}
    assert value_of(model) == 7
    assert set(checkpoints.resume(3)["model"]) == {"weight", "bias"}


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda d: Checkpointer(d, keep=0), "keep must be"),
        (lambda d: Checkpointer(d, best="lowest"), "best must be"),
        (lambda d: Checkpointer(d).save(-1), "step must be"),
        (lambda d: Checkpointer(d).save(1.0), "step must be"),
        (lambda d: Checkpointer(d).save(1, random=3), "can be called 'random'"),
        (lambda d: Checkpointer(d).resume("best"), "needs Checkpointer"),
        (lambda d: Checkpointer(d).resume("newest"), "'latest', 'best' or a step"),
        (lambda d: Checkpointer(d).resume(7), "no checkpoint of step 7"),
    ],
)
def test_wrong_calls(tmp_path, make, error):
    with pytest.raises(ValueError, match=error):
        make(tmp_path)


def test_what_cannot_be_saved_is_named(tmp_path):
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(1, a=1)
    with pytest.raises(TypeError, match=r"\['parts'\]\['bad'\]\[0\]"):
        checkpoints.save(2, bad=[object()])
    assert checkpoints.steps == [1]


# -- all or nothing --------------------------------------------------------------------------------


class Part:
    """Something with a state, whose load may fail after it changed."""

    def __init__(self, value, fails=False):
        self.value, self.fails = value, fails

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]
        if self.fails:
            self.fails = False
            raise RuntimeError("half way")


def in_order(x):
    """Text of nested dicts, whatever the order of their keys."""
    if isinstance(x, dict):
        return "{" + ", ".join(sorted(f"{k}: {in_order(v)}" for k, v in x.items())) + "}"
    return str([in_order(v) for v in x] if isinstance(x, (list, tuple)) else x)


def snapshot(model, optimizer, parts):
    return (
        [p.tolist() for p in model.parameters()],
        in_order(optimizer.state_dict()),
        [p.value for p in parts],
        fw.get_rng_state().tolist(),
        random.getstate(),
        np.random.get_state()[1].tolist(),
    )


@pytest.mark.parametrize("wrong", ["model", "optimizer", "part", "scheduler", "missing", "plain"])
def test_a_mismatch_changes_nothing(tmp_path, wrong):
    model = fw.nn.Linear(2, 3)
    optimizer = fw.optim.Adam(model.named_parameters(), lr=0.1)
    model(fw.ones(1, 2)).sum().backward()
    optimizer.step()
    scheduler = fw.optim.lr_scheduler.StepLR(optimizer, 2)
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(1, model=model, optimizer=optimizer, scheduler=scheduler, a=Part(1), z=Part(2), n=5)

    other = fw.nn.Linear(2, 4 if wrong == "model" else 3)
    named = (
        [("x." + n, p) for n, p in other.named_parameters()]
        if wrong == "optimizer"
        else other.named_parameters()
    )
    mine = fw.optim.Adam(named, lr=0.5)
    other(fw.ones(1, 2)).sum().backward()
    mine.step()
    parts = [Part(10), Part(20, fails=wrong == "part")]
    given = {"model": other, "optimizer": mine, "a": parts[0], "z": parts[1],
             "scheduler": fw.optim.lr_scheduler.StepLR(mine, 4)}
    if wrong == "model":
        del given["optimizer"]  # it would fail first
    if wrong == "scheduler":
        given["scheduler"] = fw.optim.lr_scheduler.ExponentialLR(mine, 0.5)
    if wrong == "missing":
        given["another"] = Part(3)
    if wrong == "plain":
        given["n"] = 5
    before = snapshot(other, mine, parts)
    with pytest.raises((ValueError, RuntimeError, TypeError)) as info:
        checkpoints.resume(**given)
    assert snapshot(other, mine, parts) == before
    text = str(info.value) + "".join(getattr(info.value, "__notes__", ()))
    names = {"missing": "another", "plain": "n is a int", "part": "restoring z"}
    assert names.get(wrong, f"restoring {wrong}") in text and "step-0000000001.ckpt" in text


# -- damaged directories ---------------------------------------------------------------------------


def three(tmp_path):
    checkpoints = Checkpointer(tmp_path, keep=3)
    for step in (1, 2, 3):
        checkpoints.save(step, model=model_of(step))
    return checkpoints


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone", "directory"])
def test_a_damaged_latest_falls_back(tmp_path, damage):
    checkpoints = three(tmp_path)
    path = Path(checkpoints.latest)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    if damage in ("gone", "directory"):
        path.unlink()
        if damage == "directory":
            path.mkdir()
    else:
        path.write_bytes({"cut": data[:-9], "flip": data, "empty": b""}[damage])
    model = model_of(0)
    if damage == "gone":
        assert Checkpointer(tmp_path).resume(model=model)["step"] == 2
    else:
        with pytest.warns(RuntimeWarning, match="going back to step 2.*step-0000000003.ckpt"):
            assert checkpoints.resume(model=model)["step"] == 2
        with pytest.raises(IsADirectoryError if damage == "directory" else CheckpointError):
            checkpoints.resume(3, model=model)
    assert value_of(model) == 2


def test_files_of_killed_savers_are_removed(tmp_path):
    three(tmp_path)
    left = tmp_path / ".step-0000000004.ckpt.0123456789ab.tmp"
    others = tmp_path / ".precious.0123456789ab.tmp"
    for path in (left, others):
        path.write_bytes(b"half")
    Checkpointer(tmp_path)
    assert not left.exists() and others.exists()


@pytest.mark.skipif(os.name != "posix", reason="flock")
def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def unsupported(*args):
        raise OSError(95, "not supported")
    monkeypatch.setattr("fcntl.flock", unsupported)
    assert three(tmp_path).steps == [1, 2, 3]


def test_all_damaged(tmp_path):
    checkpoints = three(tmp_path)
    for name in os.listdir(tmp_path):
        if name.endswith(".ckpt"):
            (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="no checkpoint can be read.*0003.*0002.*0001"):
        checkpoints.resume()


def test_a_checkpoint_that_does_not_fit_is_no_reason_to_go_back(tmp_path):
    with pytest.raises(CheckpointError, match="shape differs"):
        three(tmp_path).resume(model=fw.nn.Linear(3, 3))


@pytest.mark.parametrize("text", [
    b"", b"{", b"[]", b'{"format": "other"}', b"\xff", b"[" * 100_000,
    b'{"format":"framework.checkpoints","version":9,"saves":[]}',
    b'{"format":"framework.checkpoints","version":1,"saves":[{"file":"../precious","step":1,"metric":null}]}',
    b'{"format":"framework.checkpoints","version":1,"saves":[{"file":"step-1.ckpt","step":2,"metric":null}]}'])
def test_a_damaged_index(tmp_path, text):
    three(tmp_path / "run")
    (tmp_path / "precious").write_text("stays")
    for step in (1, 2, 3):
        os.utime(tmp_path / "run" / f"step-{step:010d}.ckpt", (step, step))
    (tmp_path / "run" / "index.json").write_bytes(text)
    checkpoints = Checkpointer(tmp_path / "run", keep=2)
    with pytest.warns(RuntimeWarning, match="index.json' is damaged|index.json is damaged"):
        assert checkpoints.steps == [1, 2, 3]
    with pytest.warns(RuntimeWarning, match="is damaged"):
        checkpoints.save(4, model=model_of(4))
    assert checkpoints.steps == [3, 4] and (tmp_path / "precious").exists()


def test_files_without_an_index(tmp_path):
    three(tmp_path)
    (tmp_path / "index.json").unlink()
    save({"foreign": 1}, tmp_path / "step-0000000009.ckpt")
    os.utime(tmp_path / "step-0000000009.ckpt", (1, 1))
    checkpoints = Checkpointer(tmp_path)
    assert set(checkpoints.steps) == {1, 2, 3, 9}
    with pytest.raises(CheckpointError, match="not saved by a Checkpointer"):
        checkpoints.resume(9)


def test_hostile_random_states(tmp_path):
    checkpoints = three(tmp_path)
    state = load(checkpoints.latest)
    for bad in ({}, {**state["random"], "python": (3, (1, 2), None)}, {**state["random"], "numpy": {}},
                {**state["random"], "framework": fw.zeros(3)}, {**state["random"], "cuda": 3}):
        save({**state, "random": bad}, checkpoints.latest)
        before = fw.get_rng_state().tolist(), random.getstate()
        with pytest.raises(CheckpointError, match="random states are not sound"):
            checkpoints.resume()
        assert (fw.get_rng_state().tolist(), random.getstate()) == before


# -- in the background -----------------------------------------------------------------------------


def test_a_background_save_holds_the_values_of_its_call(tmp_path, monkeypatch):
    gate = threading.Event()
    import framework.io.checkpointer as home
    real = home.write_plan
    monkeypatch.setattr(home, "write_plan", lambda *args: gate.wait(10) and real(*args))
    checkpoints = Checkpointer(tmp_path, background=True)
    model, extra = model_of(1), [1, 2]
    model.tied = model.weight
    path = checkpoints.save(1, model=model, extra=extra)
    model.weight.data.fill_(2)
    extra.append(3)
    assert not os.path.exists(path)
    gate.set()
    checkpoints.close()
    state = load(path)["parts"]
    assert state["extra"] == [1, 2] and state["model"]["weight"].tolist() == [[1.0, 1.0]] * 2
    assert state["model"]["tied"].data_ptr() == state["model"]["weight"].data_ptr()


def test_an_error_behind_is_told_once(tmp_path, monkeypatch):
    import framework.io.checkpointer as home

    def fail(*args):
        raise OSError(28, "no space")
    for call in ("wait", "close", "save", "resume", "steps", "exit"):
        checkpoints = Checkpointer(tmp_path, background=True)
        with monkeypatch.context() as patch:
            patch.setattr(home, "write_plan", fail)
            checkpoints.save(1)
            checkpoints._thread.join()
        with pytest.raises(OSError, match="no space") as info:
            if call == "exit":
                checkpoints.__exit__(None, None, None)
            elif call == "steps":
                assert checkpoints.steps
            else:
                getattr(checkpoints, call)(*[2] * (call == "save"))
        assert "in the background" in info.value.__notes__[0]
        checkpoints.save(2)
        checkpoints.close()


def test_an_error_that_nobody_asked_for_is_reported_at_exit(tmp_path):
    program = ("import framework as fw, framework.io.checkpointer as home\n"
               "def fail(*args): raise OSError(28, 'no space')\n"
               "home.write_plan = fail\n"
               f"fw.io.Checkpointer({str(tmp_path)!r}, background=True).save(1)\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "background save" in done.stderr and "no space" in done.stderr


def test_a_program_that_ends_finishes_its_save(tmp_path):
    """Also when the saving begins after the main thread has ended, and takes a thread of its own."""
    program = ("import time, framework as fw, framework.io.checkpointer as home\n"
               "real = home.write_plan\n"
               "home.write_plan = lambda *args: (time.sleep(0.2), real(*args))\n"
               "fw.io.stream._THREADED = 1000\n"
               f"fw.io.Checkpointer({str(tmp_path)!r}, background=True).save(1, w=fw.ones(1000))\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stderr) == (0, "")
    assert Checkpointer(tmp_path).resume()["w"].sum().item() == 1000


# -- several at once -------------------------------------------------------------------------------

SAVER = """
import sys, framework as fw
checkpoints = fw.io.Checkpointer(sys.argv[1], keep=2, best="max")
for step in range(int(sys.argv[2]), 40, 2):
    checkpoints.save(step, w=fw.full((100,), step), metric=-step)
    found = checkpoints.resume()
    assert found["w"].tolist() == [found["step"]] * 100
"""


def test_what_another_process_takes_away_meanwhile_is_no_damage(tmp_path, monkeypatch):
    """Between the list of checkpoints and their reading others save, and old ones go."""
    one, two = Checkpointer(tmp_path, keep=1), Checkpointer(tmp_path, keep=1)
    one.save(1, w=fw.ones(2))
    real, late = one._open, []

    def slow(save):
        if not late:
            late.append(two.save(2, w=fw.ones(2) * 2))
        return real(save)
    monkeypatch.setattr(one, "_open", slow)
    found = one.resume()  # a warning would be an error
    assert found["step"] == 2 and found["w"].tolist() == [2.0, 2.0]


def test_two_processes_in_one_directory(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SAVER, str(tmp_path), str(k)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in (0, 1)
    ]
    for process in running:
        assert process.communicate(timeout=60)[1] == ""
    checkpoints = Checkpointer(tmp_path, keep=2, best="max")
    assert len(checkpoints.steps) == 3 and files(tmp_path) == sorted(checkpoints.steps)
    assert checkpoints.resume("best")["step"] == 0 and max(checkpoints.steps) in (38, 39)
    listed = json.loads((tmp_path / "index.json").read_text())["saves"]
    assert [entry["step"] for entry in listed] == checkpoints.steps
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_threads_that_save_one_path(tmp_path):
    path, errors = tmp_path / "x.ckpt", []

    def work(k):
        try:
            for _ in range(10):
                save({"w": fw.full((1000,), k)}, path)
                assert len(set(load(path)["w"].tolist())) == 1
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and os.listdir(tmp_path) == ["x.ckpt"]
