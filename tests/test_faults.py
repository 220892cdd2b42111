"""Every step of saving, loading and training may fail: old or new, no leak, and the next call works."""

import gc
import multiprocessing
import os

import numpy as np
import pytest
from faults import Fault, descriptors, killed_to_exhaustion, to_exhaustion

import framework as fw
import framework.nn.functional as F
from framework.data import DataLoader, Dataset
from framework.errors import CheckpointError, SaveError
from framework.io import Checkpointer, atomic, file_layout, load, save, stream

pytestmark = pytest.mark.skipif(os.name != "posix", reason="descriptors, fork and SIGKILL are POSIX here")
SAVING = ("allocate", "open", "write", "fsync", "rename")


def state(step):
    """What is saved: strided parts, so that there is something to allocate."""
    r = np.random.default_rng(step)
    return {
        "step": step,
        "w": fw.from_numpy(r.random((40, 50))).t(),
        "b": fw.from_numpy(r.random((30, 30)))[:, ::2],
    }


def is_state(found, *steps):
    """Whether ``found`` is whole, and of one of the steps."""
    wanted = state(found["step"])
    return found["step"] in steps and all(fw.equal(found[k], wanted[k]) for k in ("w", "b"))


# -- save and load ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["data", "blocks on two threads", "whole object"])
@pytest.mark.parametrize("kind", SAVING)
def test_save(tmp_path, monkeypatch, kind, way):
    path, options = tmp_path / "x.ckpt", {"weights_only": False} if way == "whole object" else {}
    if way == "blocks on two threads":
        for module in (file_layout, stream):
            monkeypatch.setattr(module, "BLOCK", 4096)
        monkeypatch.setattr(stream, "_THREADED", 4096)
    save(state(1), path, **options)
    before, rounds = descriptors(), 0
    new = state(2)
    for fault in to_exhaustion(kind):
        with fault:
            save(new, path, **options)
        found = load(path, weights_only=False)
        after_rename = kind in ("open", "fsync") and is_state(found, 2)  # only the directory is not synced
        assert is_state(found, 1) if fault.fired and not after_rename else is_state(found, 2)
        assert os.listdir(tmp_path) == ["x.ckpt"] and descriptors() == before
        if isinstance(fault.error, OSError):
            assert isinstance(fault.error, SaveError) and str(path) in str(fault.error)
        save(state(1), path, **options)
        rounds += 1
    assert rounds > 1


def test_what_a_full_disk_says(tmp_path):
    with pytest.raises(SaveError, match="disk is full; free some space.*untouched") as info, \
            Fault("write", 0) as fault:
        try:
            save(state(1), tmp_path / "x.ckpt")
        finally:
            fault.countdown.fired = False  # let it through
    assert info.value.errno == 28 and info.value.filename == str(tmp_path / "x.ckpt")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_that_is_full():
    with pytest.raises(OSError, match="[Nn]o space"):
        save(state(1), "/dev/full")


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("kind", ["allocate", "open"])
def test_load(tmp_path, kind, mmap):
    path = tmp_path / "x.ckpt"
    save({**state(1), "f": fw.tensor([True])}, path)
    before = descriptors()
    if kind == "allocate" and mmap:
        pytest.skip("mapping allocates nothing")
    for fault in to_exhaustion(kind):
        found = None
        with fault:
            found = load(path, mmap=mmap)
        assert (found is None) == fault.fired
        del found
        assert descriptors() == before
        assert is_state(load(path, mmap=mmap), 1)


@pytest.mark.parametrize("kind", ["write", "fsync", "rename"])
def test_a_saver_is_killed(tmp_path, kind):
    path = tmp_path / "x.ckpt"
    save(state(1), path)
    deaths = 0
    for _ in killed_to_exhaustion(kind, lambda: save(state(2), path)):
        assert is_state(load(path), 1, 2)
        deaths += 1
    assert deaths >= (2 if kind == "fsync" else 1)
    assert is_state(load(path), 2)
    save(state(3), path)
    assert os.listdir(tmp_path) == ["x.ckpt"]  # what the dead left behind is gone


def test_the_temporary_file_of_a_living_saver_stays(tmp_path):
    """Two savers at once: neither takes the other's file for abandoned."""
    path = tmp_path / "x.ckpt"

    def outer(file):
        file.write(b"outer")
        save(state(1), path)
        assert len(os.listdir(tmp_path)) == 2
    atomic.write_atomically(path, outer)
    assert path.read_bytes() == b"outer" and os.listdir(tmp_path) == ["x.ckpt"]


def test_a_cleaner_that_comes_before_the_lock(tmp_path, monkeypatch):
    """The file of a living saver that was taken for abandoned is made anew."""
    real, stolen = atomic.locked, []

    def steal(file, wait):
        if not stolen:
            stolen.extend(os.listdir(tmp_path))
            os.unlink(tmp_path / stolen[0])
        return real(file, wait)
    before = descriptors()
    monkeypatch.setattr(atomic, "locked", steal)
    save(state(1), tmp_path / "x.ckpt")
    assert stolen and os.listdir(tmp_path) == ["x.ckpt"] and is_state(load(tmp_path / "x.ckpt"), 1)
    assert descriptors() == before


# -- the Checkpointer ------------------------------------------------------------------------------


def is_sound(directory, *steps):
    """The newest checkpoint is of one of the steps, and nothing lies around."""
    model = fw.nn.Linear(3, 2)
    found = Checkpointer(directory).resume(model=model)
    names = set(os.listdir(directory)) - {".lock", "index.json"}
    return (found["step"] in steps and float(model.weight[0, 0].detach()) == found["step"]
            and all(name.startswith("step-") for name in names))


def model_of(step):
    model = fw.nn.Linear(3, 2)
    model.weight.data.fill_(step)
    return model


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("kind", [*SAVING, "unlink"])
def test_checkpointer(tmp_path, monkeypatch, kind, background):
    if kind != "fsync":
        monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # many rounds
    before = descriptors()
    for fault in to_exhaustion(kind):
        folder = tmp_path / str(fault.n)
        checkpoints = Checkpointer(folder, keep=2, best="max", background=background)
        for step in (1, 2, 3):
            checkpoints.save(step, model=model_of(step), metric=-step)
        checkpoints.wait()
        with fault:
            checkpoints.save(4, model=model_of(4), metric=-4)
            checkpoints.wait()
        assert is_sound(folder, 3, 4) if fault.fired else is_sound(folder, 4)
        assert os.path.basename(checkpoints.best) == "step-0000000001.ckpt"
        checkpoints.save(5, model=model_of(5))
        assert is_sound(checkpoints.latest.rpartition("/")[0], 5) and checkpoints.steps[0] == 1
        assert len(checkpoints.steps) == 3
        assert descriptors() == before


@pytest.mark.parametrize("kind", ["write", "fsync", "rename", "unlink"])
def test_checkpointer_is_killed(tmp_path, kind):
    first = Checkpointer(tmp_path, keep=2)
    for step in (1, 2):
        first.save(step, model=model_of(step))

    def work():
        second = Checkpointer(tmp_path, keep=2)
        for step in (3, 4):
            second.save(step, model=model_of(step))
    for _ in killed_to_exhaustion(kind, work):
        again = Checkpointer(tmp_path, keep=2)
        model = fw.nn.Linear(3, 2)
        assert again.resume(model=model)["step"] in (2, 3, 4)
        again.save(2, model=model_of(2))
        assert again.steps[-1] == 2 and len(again.steps) == 2
        assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp") and "index" not in name
                    and "step-0000000002" in name]
    assert is_sound(tmp_path, 4)


# -- restoring and training ------------------------------------------------------------------------


def a_run():
    fw.manual_seed(3)
    model = fw.nn.Sequential(fw.nn.Linear(4, 8), fw.nn.ReLU(), fw.nn.Dropout(0.5), fw.nn.Linear(8, 2))
    optimizer = fw.optim.Adam(model.named_parameters(), lr=0.1)
    return model, optimizer, fw.optim.lr_scheduler.StepLR(optimizer, 2)


def step(model, optimizer, scheduler):
    x = fw.arange(12).float().reshape(3, 4) / 12
    loss = F.cross_entropy(model(x), fw.tensor([0, 1, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()


def bits(model, optimizer, scheduler):
    """Everything a run consists of, as bytes and numbers."""
    moments = [{k: v.numpy().tobytes() if isinstance(v, fw.Tensor) else v for k, v in s.items()}
               for s in optimizer.state_dict()["state"].values()]
    return ([p.detach().numpy().tobytes() for p in model.parameters()], moments, scheduler.state_dict(),
            optimizer.param_groups[0]["lr"], fw.get_rng_state().tolist())


@pytest.mark.parametrize("kind", ["allocate", "open"])
def test_resume_changes_all_or_nothing(tmp_path, kind):
    run = a_run()
    names = ("model", "optimizer", "scheduler")
    step(*run)
    step(*run)
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(2, **dict(zip(names, run)))
    saved = bits(*run)
    other = a_run()
    step(*other)
    mine = bits(*other)
    for fault in to_exhaustion(kind):
        with fault:
            checkpoints.resume(**dict(zip(names, other)))
        assert bits(*other) == (mine if fault.fired else saved)
    assert mine != saved


def test_a_training_step_that_runs_out_of_memory():
    """Forward and backward change no parameter; the step stops between parameters; the next one works."""
    run = a_run()
    for fault in to_exhaustion("allocate"):
        run = a_run()
        step(*run)
        before = bits(*run)[0]
        model, optimizer, scheduler = run
        with fault:
            loss = F.cross_entropy(model(fw.ones(3, 4)), fw.tensor([0, 1, 0]))
            optimizer.zero_grad()
            loss.backward()
        assert bits(*run)[0] == before
        step(*run)
        assert all(p.isfinite().all() for p in model.parameters())
    assert fault.n > 15  # each op of a step, forward and backward, layers that run joined as one


def test_an_optimizer_step_that_runs_out_of_memory():
    for cls, options in ((fw.optim.SGD, {"momentum": 0.9}), (fw.optim.Adam, {})):
        for fault in to_exhaustion("allocate"):
            model = a_run()[0]
            optimizer = cls(model.named_parameters(), lr=0.1, **options)
            model(fw.ones(3, 4)).sum().backward()
            with fault:
                optimizer.step()
            assert all(p.isfinite().all() for p in model.parameters())
            state = optimizer.state_dict()
            cls(model.named_parameters(), lr=0.1, **options).load_state_dict(state)  # what it kept is whole
            optimizer.step()


class Squares(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return fw.full((3000,), i * i)  # more than goes through a socket


# what CPython's own multiprocessing forgets when a process cannot be started: two pipes, or the first
FORGOTTEN = {"fork": 4, "pipe": 2, "send": 0}


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("kind", FORGOTTEN)
def test_the_loader_with_workers(kind, persistent):
    """An epoch that fails leaves no process and no descriptor, and the next epoch is whole."""
    def fresh():
        return DataLoader(Squares(), batch_size=3, num_workers=2, persistent_workers=persistent,
                          multiprocessing_context="fork")
    wanted = [batch.tolist() for batch in fresh()]
    gc.collect()
    children, before, failed = multiprocessing.active_children(), descriptors(), 0
    for fault in to_exhaustion(kind, 300):
        loader, found = fresh(), None
        with fault:
            found = [batch.tolist() for batch in loader]
        failed += found is None
        assert found in (None, wanted)
        fault.error = None  # its traceback holds the workers
        assert [batch.tolist() for batch in loader] == wanted
        del loader
    gc.collect()
    assert failed and len(multiprocessing.active_children()) <= len(children)
    assert len(descriptors()) <= len(before) + FORGOTTEN[kind] * failed


def test_the_harness_itself():
    with Fault("allocate", 0) as fault:
        np.empty(10)
    assert fault.fired and isinstance(fault.error, MemoryError)
    with Fault("allocate", 50) as fault:
        a = np.ones(2000)
    assert not fault.fired
    with Fault("allocate", 0) as fault:
        a + a
    assert fault.fired
    with pytest.raises(CheckpointError), Fault("allocate", 10 ** 6):
        raise CheckpointError("not one of ours")
