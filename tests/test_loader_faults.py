"""Workers of the loader that fail, and the end of loaders and programs: told, and nothing left behind."""

import contextlib
import ctypes
import gc
import itertools
import multiprocessing
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from loader_samples import Augmented, Does, Stream, Two, epochs, plain, seeded
from loader_samples import nothing_left as nothing_left

import framework as fw
from framework.data import (
    DataLoader,
    Dataset,
    WorkerDied,
    WorkerError,
    WorkerStallWarning,
    WorkerTimeout,
    get_worker_info,
)
from framework.data.workers import memory, pool

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="worker processes are tested where fork is")


# -- faults ----------------------------------------------------------------------------------------


def failing(what, error, *, match=None, size=4, **kwargs):
    """The error of a loader whose sample 5 does ``what``; the loader works again afterwards."""
    data = Does(what)
    loader = DataLoader(data, size, **{"num_workers": 2, **kwargs})
    start = time.monotonic()
    with pytest.raises(error, match=match) as caught:
        list(loader)
    assert time.monotonic() - start < 5
    data.at = None
    assert [b[0, 0].item() for b in loader] == [0, 4, 8]
    return caught.value


def raiser(error):
    def run():
        raise error
    return run


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_errors_keep_their_type(kind):
    error = failing(raiser(KeyError("oops")), KeyError, match="oops", worker_type=kind)
    notes = "".join(error.__notes__)
    assert "sample 5 of Does" in notes and "DataLoader worker" in notes
    if kind == "process":
        assert "raise error" in str(error.__cause__) and "KeyError" in str(error.__cause__)


def test_errors_that_pickle_cannot_keep():
    class Local(Exception):
        pass

    def chained():
        try:
            raise OSError("first")
        except OSError as error:
            raise ValueError("second") from error

    for what in (raiser(Two(1, 2)), raiser(Local("local")), raiser(ValueError(lambda: 0)),
                 raiser(KeyboardInterrupt("stop")), raiser(SystemExit(3)), raiser(GeneratorExit())):
        error = failing(what, WorkerError)
        assert (error.index, error.dataset) == (5, "Does") and error.worker_id in (0, 1)
        assert error.type_name in str(error) and "raise error" in error.remote_traceback
        assert "sample 5 of Does" in str(error)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
    error = failing(chained, ValueError, match="second")
    assert "OSError: first" in str(error.__cause__) and "direct cause" in str(error.__cause__)
    failing(raiser(StopIteration()), RuntimeError, match="StopIteration for sample 5")


def test_persistent_workers_outlive_an_error():
    loader = DataLoader(Does(raiser(Two(1, 2))), 4, num_workers=2, persistent_workers=True)
    pids = set()
    for _ in range(2):
        with pytest.raises(WorkerError, match="1 and 2"):
            list(loader)
        pids |= {p.pid for p in multiprocessing.active_children()}
    assert len(pids) == 2


@pytest.mark.parametrize("what, number, text", [
    (lambda: os.kill(os.getpid(), signal.SIGKILL), 9, "SIGKILL.*memory runs out"),
    (lambda: os._exit(7), None, "exited with code 7"),
    (lambda: os.kill(os.getpid(), signal.SIGSEGV), 11, r"(?s)SIGSEGV.*Python stack.*__getitem__")])
def test_a_worker_that_ends_is_told(what, number, text):
    error = failing(what, WorkerDied, match=text)
    assert error.signal == number and error.pid > 0 and error.worker_id in (0, 1)
    assert [4, 5, 6, 7] in error.indices and "samples [4, 5, 6, 7]" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_worker_killed_from_outside():
    for persistent in (False, True):
        loader = DataLoader(Augmented(400), 1, num_workers=2, persistent_workers=persistent)
        it = iter(loader)
        next(it)
        victim = multiprocessing.active_children()[-1].pid
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(WorkerDied) as caught:
            list(it)
        assert caught.value.pid == victim and list(it) == []
        assert len(list(loader)) == 400


def test_a_persistent_worker_killed_between_epochs():
    loader = DataLoader(Augmented(), 4, num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 6
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        list(loader)
    assert len(list(loader)) == 6


def test_stalls():
    stuck = Does(lambda: time.sleep(30))
    loader = DataLoader(stuck, 4, num_workers=1, timeout=0.5)
    loader.stall_warning = 0.1
    for kind in ("process", "thread"):
        loader = DataLoader(stuck if kind == "process" else Does(lambda: time.sleep(1)), 4, num_workers=1,
                            timeout=0.5, worker_type=kind)
        loader.stall_warning = 0.1
        start = time.monotonic()
        where = r"(?s)worker 0 is at samples \[4, 5, 6, 7\].*__getitem__"
        with pytest.warns(WorkerStallWarning, match=where), \
                pytest.raises(WorkerTimeout, match=r"timeout=0.5"):
            list(loader)
        assert time.monotonic() - start < 3
    stuck.at = None


def test_errors_of_collate_and_init():
    def broken(_):
        raise OSError("cannot")

    loader = DataLoader(Augmented(), 4, num_workers=2, collate_fn=broken)
    with pytest.raises(OSError, match="cannot") as caught:
        next(iter(loader))
    assert "collating samples [0, 1, 2, 3] of Augmented" in "".join(caught.value.__notes__)
    for kind in ("process", "thread"):
        with pytest.raises(OSError, match="cannot") as caught:
            next(iter(DataLoader(Augmented(), 4, num_workers=2, worker_init_fn=broken, worker_type=kind)))
        assert kind == "thread" or "worker_init_fn of Augmented" in "".join(caught.value.__notes__)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)) as caught:
        next(iter(DataLoader(Augmented(), 4, num_workers=1, collate_fn=lambda x: (y for y in x))))
    assert "cannot be sent to the main process" in "".join(caught.value.__notes__)


def test_an_error_of_set_epoch():
    class Deaf(Augmented):
        def set_epoch(self, epoch):
            if get_worker_info() is not None:
                raise ValueError("deaf")

    with pytest.raises(ValueError, match="deaf"):
        list(DataLoader(Deaf(), 4, num_workers=2))


class Unopenable(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return i

    def __reduce__(self):
        return _refuse, ()


def _refuse():
    raise OSError("no such drive")


def test_a_dataset_that_cannot_be_sent():
    with pytest.raises((AttributeError, pickle.PicklingError)) as caught:
        iter(DataLoader(Does(lambda: 0), 4, num_workers=1, multiprocessing_context="spawn"))
    assert "top of a module" in "".join(caught.value.__notes__)
    with pytest.raises(OSError, match="no such drive") as caught:
        list(DataLoader(Unopenable(), 4, num_workers=1, multiprocessing_context="spawn"))
    assert "opening the dataset" in "".join(caught.value.__notes__)


def test_without_shared_memory_batches_go_through_the_pipe(monkeypatch):
    whole = epochs(seeded(Augmented(), 4, shuffle=True))

    def full(*_, **__):
        raise OSError(28, "no room")

    with monkeypatch.context() as patch:  # the workers cannot have segments
        patch.setattr(memory.Segment, "create", full)
        assert epochs(seeded(Augmented(), 4, shuffle=True, num_workers=2)) == whole
    attach, calls = memory.Segment.attach, itertools.count()

    def sometimes(fd, *more):
        if next(calls) % 2:
            return attach(fd, *more)
        os.close(fd)
        raise fw.errors.SharedMemoryError(24, "no descriptor")

    monkeypatch.setattr(memory.Segment, "attach", sometimes)  # this process cannot
    assert epochs(seeded(Augmented(), 4, shuffle=True, num_workers=2)) == whole
    assert next(calls) > 1


@pytest.mark.parametrize("where, name", [(os, "dup"), (multiprocessing, "Pipe"), (socket, "recv_fds")])
def test_every_failure_of_the_system_once(monkeypatch, where, name):
    """The n-th call fails, for every n; nothing is left (fork, pipe and send: see test_faults)."""
    gc.collect()  # what other tests left open may not be closed meanwhile
    real, before = getattr(where, name), set(os.listdir("/proc/self/fd"))
    for n in itertools.count():
        calls, here = itertools.count(), os.getpid()

        def fails(*args, **kwargs):
            if os.getpid() == here and next(calls) == n:
                raise OSError(24, "injected")
            return real(*args, **kwargs)

        with monkeypatch.context() as patch, contextlib.suppress(OSError):
            patch.setattr(where, name, fails)
            loader = DataLoader(Augmented(12), 4, num_workers=2)
            assert len(list(loader)) == 3
        gc.collect()
        assert not multiprocessing.active_children() and set(os.listdir("/proc/self/fd")) == before
        if n in (0, 3):
            assert len(list(loader)) == 3
        if next(calls) <= n or n > 6:
            break
    assert n > 0


def test_too_few_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    loader = DataLoader(Augmented(), 4, num_workers=16)
    used = set(map(int, os.listdir("/proc/self/fd")))
    limit = [n for n in range(len(used) + 50) if n not in used][12]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        with pytest.raises(OSError) as caught:
            list(loader)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "of a DataLoader; the limit of open files" in "".join(caught.value.__notes__)
    gc.collect()
    assert len(list(loader)) == 6


def test_keeping_batches_needs_no_descriptors():
    loader = DataLoader(Augmented(150), 1, num_workers=1, persistent_workers=True)
    kept = list(itertools.islice(loader, 3))
    before = len(os.listdir("/proc/self/fd"))
    kept += list(loader)
    assert len(os.listdir("/proc/self/fd")) <= before and len(kept) == 153


# -- the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["break", "del", "exception", "collector"])
def test_leaving_early_leaves_nothing(how):
    loader = DataLoader(Does(lambda: time.sleep(20), at=11), 1, num_workers=4, prefetch_factor=4)
    gc.collect()  # what other tests left open may not be closed meanwhile
    before = set(os.listdir("/proc/self/fd"))
    it = iter(loader)
    next(it)
    assert len(multiprocessing.active_children()) == 4
    if how == "collector":
        ring = [it]
        ring.append(ring)
        del it, ring
        gc.collect()
    elif how == "exception":
        try:
            raise ValueError(it)
        except ValueError:
            del it
    else:
        del it
    assert not multiprocessing.active_children() and set(os.listdir("/proc/self/fd")) == before


def test_interleaved_iterators():
    for more in ({}, {"persistent_workers": True}):
        loader = DataLoader(Augmented(9), 2, num_workers=2, **more)
        other = DataLoader(Stream(9), 2, num_workers=1, **more)
        for _ in range(2):
            rows = list(zip(loader, loader, other))
            assert [(a["index"].tolist(), b["index"].tolist(), plain(c)[0]) for a, b, c in rows] == \
                [(x, x, x) for x in ([0, 1], [2, 3], [4, 5], [6, 7], [8])]
    del loader, other, rows


def test_persistent_workers_stay_the_same_and_forget_what_was_left():
    loader = DataLoader(Augmented(60), 1, num_workers=2, persistent_workers=True, shuffle=True)
    for _ in loader:
        break
    pids = {p.pid for p in multiprocessing.active_children()}
    for _ in range(9):
        found = [plain(b) for b in itertools.islice(loader, 7)]
        assert len({b["index"][0] for b in found}) == 7 and len({b["epoch"][0] for b in found}) == 1
        time.sleep(0.02)  # so that batches that nobody takes are there
    assert sorted(b["index"].item() for b in loader) == list(range(60))
    assert {p.pid for p in multiprocessing.active_children()} == pids and len(pids) == 2
    gone = weakref.ref(loader)
    del loader
    assert gone() is None and not multiprocessing.active_children()


def test_a_loader_in_a_thread():
    found, made = [], []

    def run():
        found.extend(b["index"].item() for b in DataLoader(Augmented(9), 1, num_workers=2))
        made.append(iter(DataLoader(Augmented(9), 1, num_workers=2)))
        found.append(next(made[0])["index"].item())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    found += [b["index"].item() for b in made.pop()]  # the thread that started these workers is gone
    assert found == list(range(9)) * 2


def test_loaders_within_workers_are_refused():
    class Nested(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return sum(1 for _ in DataLoader(range(4), 2, num_workers=1))

    with pytest.raises(RuntimeError, match="use num_workers=0 in it"):
        list(DataLoader(Nested(), 1, num_workers=1))


def blas_threads():
    """How many threads NumPy's OpenBLAS works with; None where it is another library."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    for path in {line.split()[-1] for line in maps if "openblas" in line}:
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads"):
            if hasattr(library, name):
                return getattr(library, name)()
    return None


def test_workers_use_one_thread_and_leave_ctrl_c_alone():
    class Facts(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, i):
            product = np.ones((300, 300)) @ np.ones((300, 300))
            return (float(product[0, 0]), blas_threads(), signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
                    signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))

    assert (np.ones((300, 300)) @ np.ones((300, 300)))[0, 0] == 300
    found = next(iter(DataLoader(Facts(), None, num_workers=1)))
    assert found == [300, 1 if blas_threads() else None, True, False]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


PROGRAM = """
import os, signal, sys, time
import numpy as np
import framework as fw

class Slow(fw.data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i):
        time.sleep(0.01)
        return np.zeros(9000)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    loader = fw.data.DataLoader(Slow(), 1, num_workers=4, persistent_workers="persist" in sys.argv)
    for n, batch in enumerate(loader):
        if n == 2:
            import multiprocessing
            print(*[p.pid for p in multiprocessing.active_children()], flush=True)
            if "exit" in sys.argv:
                sys.exit(3)
            if "interrupt" in sys.argv:
                os.killpg(0, signal.SIGINT)
            if "kill" in sys.argv:
                os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how, code, lines", [("exit", 3, 0), ("interrupt", -2, 1), ("kill", -9, 0),
                                              ("exit persist", 3, 0)])
def test_the_end_of_the_main_process(how, code, lines, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run([sys.executable, str(path), *how.split()], capture_output=True, text=True,
                          timeout=30, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == code, done.stderr
    assert done.stderr.count("Traceback") == lines and (lines or not done.stderr), done.stderr
    pids = list(map(int, done.stdout.split()))
    end = time.monotonic() + 3
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.01)
    assert len(pids) == 4 and not any(map(alive, pids))


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_stopped_worker_does_not_hold_up_the_end():
    it = iter(DataLoader(Augmented(99), 1, num_workers=2))
    next(it)
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGSTOP)
    start = time.monotonic()
    del it
    assert time.monotonic() - start < 3 and not multiprocessing.active_children()


def test_the_pool_closes_once():
    loader = DataLoader(Augmented(), 4, num_workers=1)
    it = iter(loader)
    inner = it._source._pool
    assert isinstance(inner, pool.ProcessPool)
    del it
    inner.close()
    assert inner.closed
