"""framework.multiprocessing: tensors shared between processes, by every start method."""

import gc
import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import processes as jobs
import pytest
import shm

import framework as fw
import framework.multiprocessing as mp
from framework.backends import threads
from framework.backends.segments import segment_of
from framework.errors import AutogradError, DeviceError, SharedMemoryError
from framework.multiprocessing import channels, reduction

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
METHODS = ["fork", "spawn", "forkserver"]
ROOT = Path(__file__).resolve().parent.parent


def descriptors():
    gc.collect()
    return sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))


@pytest.fixture(scope="module", params=METHODS)
def call(request):
    """Runs a function of processes.py in one process, the same for all tests of a start method."""
    ctx = mp.get_context(request.param)
    ours, theirs = ctx.Pipe()
    process = ctx.Process(target=jobs.serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()

    def run(function, *args):
        ours.send((function.__name__, args))
        return ours.recv()
    yield run
    ours.send(None)
    process.join(10)
    assert process.exitcode == 0


# -- tensors through a pipe --------------------------------------------------------------------------

def test_writes_are_seen_both_ways(call):
    t = fw.zeros(3)
    assert call(jobs.add, t, 1) == [1, 1, 1] == t.tolist()
    t[0] = 5
    assert call(jobs.add, t, 1) == [6, 2, 2] == t.tolist()


@pytest.mark.parametrize("t", [
    fw.tensor(2.5), fw.zeros(0, 3), fw.tensor([True, False]), fw.tensor([1 + 2j]),
    fw.ones(2, dtype=fw.float16), fw.arange(12).reshape(3, 4).t()[1:, ::2], fw.ones(1).expand(3),
    fw.tensor([1, 2], dtype=fw.uint8), fw.nn.Parameter(fw.ones(2)),
    fw.nn.Parameter(fw.ones(2), requires_grad=False),
    fw.nn.Buffer(fw.ones(2), persistent=False), fw.ones(2, requires_grad=True)], ids=str)
def test_every_kind_of_tensor(call, t):
    kind, dtype, values, stride, attributes = call(jobs.look, t)
    assert kind == (type(t).__name__, t.requires_grad, True)
    assert (dtype, values, stride) == (str(t.dtype), t.tolist(), t.stride())
    assert attributes == getattr(t, "__dict__", {}) and t.is_shared()


def test_a_class_of_the_users(call):
    t = fw.zeros(2).as_subclass(jobs.Tagged) if hasattr(fw.Tensor, "as_subclass") else None
    if t is None:
        from framework.tensor import wrap
        t = wrap(np.zeros(2), jobs.Tagged)
    assert call(jobs.look, t)[0] == ("Tagged", False, True)
    assert call(jobs.add, t, 1) == [1, 1] == t.tolist()


def test_views_arrive_as_views(call):
    whole = fw.zeros(3, 4)
    part = whole[1, 1:3]
    got_whole, got_part, distance = call(jobs.write_part, whole, part)
    assert got_whole == whole.tolist() and got_part == part.tolist() == [7, 0] and distance == 20
    assert whole[0, 0] == 5 and whole[1, 1] == 7
    call(jobs.add, part, 1)
    assert whole[1].tolist() == [0, 8, 1, 0]


def test_a_model_with_tied_parameters(call):
    model = fw.nn.Sequential(fw.nn.Linear(2, 2, bias=False), fw.nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    same, passed, value = call(jobs.tied, model, model[0].weight)
    assert same and passed and value == 72
    assert model[0].weight.tolist() == [[3, 3], [3, 3]] and model[1].weight is model[0].weight


def test_tensors_come_back(call):
    t = call(jobs.make, 2, 2)
    assert t.is_shared() and call(jobs.add, t, 1) == [[2, 2], [2, 2]] == t.tolist()
    twice = call(jobs.echo, (t, t))
    assert twice[0] is twice[1]
    twice[0].zero_()
    assert not t.any()


def test_many_in_one_message(call):
    tensors = [fw.full((70_000,), float(i)) for i in range(3)] + [fw.full((2,), float(i)) for i in range(600)]
    call(jobs.double_all, tensors)
    assert all(float(t[-1]) == 2 * (i if i < 3 else i - 3) for i, t in enumerate(tensors))


def test_more_segments_than_fit_one_message(call):
    kept = [mp.Segment.create(8) for _ in range(600)]
    for i, segment in enumerate(kept):
        segment.array("i8", 1)[0] = i
    back = call(jobs.echo, kept)
    assert all(a is b for a, b in zip(kept, back))


def test_products_in_parent_and_child(call):
    for _ in range(5):
        assert call(jobs.product, 200) == jobs.product(200) == 200.0 ** 3


def test_large_messages(call):
    data = bytes(3 << 20)
    assert call(jobs.echo, data) == data


def test_nothing_is_left_behind(call):
    call(jobs.add, fw.zeros(3), 1)
    before, names = descriptors(), shm.names()
    for _ in range(20):
        t = call(jobs.echo, fw.zeros(100_000))
        call(jobs.add, t, 1)
        del t
    assert descriptors() == before and not shm.left(names)


def test_refused(call, monkeypatch):
    w = fw.ones(2, requires_grad=True)
    with pytest.raises(AutogradError, match="detach"):
        call(jobs.echo, w * 2)
    assert call(jobs.add, (w * 2).detach(), 1) == [3, 3]
    t = fw.zeros(2)
    monkeypatch.setattr(fw.Tensor, "is_cuda", True)
    with pytest.raises(DeviceError, match="cpu()"):
        call(jobs.echo, t)


# -- processes, queues, pools ------------------------------------------------------------------------

@pytest.mark.parametrize("method", METHODS)
def test_sender_gone_before_the_receiver_reads(method):
    ctx = mp.get_context(method)
    queue, t = ctx.Queue(), fw.zeros(2)
    first, second = ctx.Pipe(duplex=False)
    going = [ctx.Process(target=jobs.put_and_go, args=(queue, 20)),
             ctx.Process(target=jobs.send_and_die, args=(second,))]
    for p in going:
        p.start()
    for p in going:
        p.join(20)
    assert [p.exitcode for p in going] == [0, -signal.SIGKILL]
    assert [queue.get(timeout=5)[2].item() for _ in range(20)] == list(range(20))
    assert first.recv().tolist() == [4, 4, 4]
    assert not t.is_shared()


def test_arguments_are_shared_over_fork_too():
    t, model = fw.zeros(2), fw.nn.Linear(1, 2)
    p = mp.get_context("fork").Process(target=jobs.double_all, args=([t, *model.parameters()],))
    t.add_(1)
    p.start()
    p.join(10)
    assert t.tolist() == [2, 2] and model.weight.is_shared()
    inner = fw.nn.Linear(1, 1)
    circle = [inner, fw.nn.Linear]
    circle.append(circle)
    reduction.share_all({"a": [(circle,)], "b": (fw.ones(1, requires_grad=True) * 2, 3)})
    assert inner.bias.is_shared()


def test_receiver_dies():
    ctx = mp.get_context("fork")
    queue, t = ctx.Queue(), fw.zeros(2)
    p = ctx.Process(target=jobs.take_and_die, args=(queue,))
    p.start()
    queue.put(t)
    p.join(10)
    assert p.exitcode == -signal.SIGKILL and t.tolist() == [1, 1]
    queue.put(t)
    queue.get(timeout=5).add_(1)
    assert t.tolist() == [2, 2]


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue", "JoinableQueue"])
def test_queues_in_one_process(kind):
    before = descriptors()
    queue = getattr(mp, kind)()
    t = fw.zeros(2)
    queue.put({"t": t, "more": [t[0], np.arange(3)]})
    got = queue.get()
    got["t"].add_(1)
    assert t.tolist() == [1, 1] and got["more"][0] == 1 and got["more"][1].tolist() == [0, 1, 2]
    assert queue.empty()
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        queue.put(lambda: 0)
    queue.put("next")
    assert queue.get() == "next"
    queue.close()
    if kind != "SimpleQueue":
        queue.join_thread()
    del queue, got
    assert len(descriptors()) <= len(before) + 1  # the arena of small tensors


def test_joinable_queue_between_processes():
    ctx = mp.get_context("fork")
    queue, (first, second) = ctx.JoinableQueue(), ctx.Pipe(duplex=False)
    p = ctx.Process(target=jobs.drain, args=(queue, second))
    p.start()
    for item in (fw.ones(3), fw.zeros(2), None):
        queue.put(item)
    queue.join()
    assert first.recv()
    p.join(10)


def test_pool_and_manager():
    with mp.get_context("fork").Pool(2) as pool:
        t = fw.zeros(2)
        (back, value), = pool.map(jobs.total, [t])
        assert value == 2 and back.tolist() == [1, 1] == t.tolist()
    with multiprocessing.get_context("fork").Manager() as manager:
        box = manager.list([t])
        box[0].add_(1)
        assert t.tolist() == [2, 2]


def test_pipes():
    first, second = mp.Pipe()
    second.send([1, fw.ones(1)])
    assert first.poll(1) and first.recv()[0] == 1
    first.send_bytes(b"abc")
    assert second.recv_bytes() == b"abc"
    first.send_bytes(b"abcdef")
    target = bytearray(6)
    assert second.recv_bytes_into(target) == 6 and target == b"abcdef"
    first.send_bytes(b"")
    assert second.recv_bytes() == b""
    first.send_bytes(b"too long")
    with pytest.raises(OSError, match="bad message length"):
        second.recv_bytes(3)
    first.close()
    with pytest.raises(OSError):
        first.send(1)
    reader, writer = mp.Pipe(duplex=False)
    with pytest.raises(OSError, match="read-only"):
        reader.send(1)
    with pytest.raises(OSError, match="write-only"):
        writer.recv()
    writer.close()
    with pytest.raises(EOFError):
        reader.recv()


def test_as_many_descriptors_under_way_as_may_be(monkeypatch):
    """Where the system takes no further ones, the sender waits until some have been read."""
    refused = iter([True, True, False])
    real = channels.socket.socket

    class Busy(real):
        def sendmsg(self, *args):
            if next(refused, False):
                raise OSError(channels.errno.ETOOMANYREFS, "too many")
            return super().sendmsg(*args)
    monkeypatch.setattr(channels.socket, "socket", Busy)
    reader, writer = mp.Pipe(duplex=False)
    writer.send(fw.ones(2))
    assert reader.recv().tolist() == [1, 1]


def test_more_tensors_than_descriptors():
    """Under a limit of 64: thousands of tensors are received and kept, and large ones as well."""
    script = """if True:
        import os, resource
        import framework as fw, framework.multiprocessing as mp
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        def send(queue):
            for i in range(3000):
                queue.put(fw.full((1000,), float(i)))
            for i in range(100):
                queue.put(fw.full((100_000,), float(i)))
        queue = mp.get_context("fork").Queue()
        process = mp.get_context("fork").Process(target=send, args=(queue,))
        process.start()
        kept = [queue.get() for _ in range(3100)]
        process.join()
        assert all(float(t[-1]) == (i if i < 3000 else i - 3000) for i, t in enumerate(kept))
        assert len(os.listdir("/proc/self/fd")) < 50
        """
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_received_while_descriptors_run_short(call, monkeypatch):
    monkeypatch.setattr(reduction, "descriptor_limit", lambda: 4)
    t = call(jobs.make, 3)
    assert segment_of(t._array).fd is None
    with pytest.raises(SharedMemoryError, match=r"ulimit -n.*clone\(\)"):
        call(jobs.add, t, 1)
    monkeypatch.undo()
    assert call(jobs.add, t.clone(), 1) == [2, 2, 2] and t.tolist() == [1, 1, 1]


def test_no_descriptor_left_to_receive():
    reader, writer = mp.Pipe(duplex=False)
    segment = mp.Segment.create(8)
    there = mp.get_context("fork").Process(target=writer.send, args=(mp.Segment.create(8),))
    there.start()
    there.join(10)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(descriptors()) + 1, limits[1]))
        held = []
        try:
            while True:
                held.append(os.dup(segment.fd))
        except OSError:
            pass
        with pytest.raises(SharedMemoryError, match="ulimit -n"):
            reader.recv()
        writer.send(segment)  # the same memory again needs none
        assert reader.recv() is segment
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for fd in held:
            os.close(fd)


# -- spawn -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("method", METHODS)
def test_spawn_runs_a_function_in_each(method):
    t = fw.zeros(3)
    assert mp.spawn(jobs.count_up, (t, 10), nprocs=3, start_method=method) is None
    assert t.tolist() == [10, 20, 30]


@pytest.mark.parametrize("kind, error", [
    ("raise", mp.ProcessRaisedException), ("unpicklable", mp.ProcessRaisedException),
    ("long", mp.ProcessRaisedException), ("odd", mp.ProcessRaisedException),
    ("exit", mp.ProcessExitedException), ("kill", mp.ProcessExitedException)])
def test_the_first_error_comes_home(kind, error, capfd):
    sleeper, conn = mp.Pipe(duplex=False)
    begin = time.monotonic()
    with pytest.raises(error) as caught:
        mp.start_processes(jobs.fail, (kind, conn), nprocs=2, start_method="fork")
    assert time.monotonic() - begin < 30  # process 0 sleeps for 60
    found = caught.value
    assert found.error_index == 1 and f"process 1 (pid {found.error_pid})" in str(found)
    if kind == "raise":
        assert "KeyError: ('lost', 3)" in str(found) and "in fail" in str(found)
        assert isinstance(found.__cause__, KeyError) and found.__cause__.args == ("lost", 3)
    elif kind == "unpicklable":
        assert "TwoArguments: first" in str(found) and found.__cause__ is None
    elif kind == "odd":
        assert "NoExceptionAgain" in str(found) and found.__cause__ is None
    elif kind == "long":  # more than a pipe holds
        assert len(str(found.__cause__)) == 2_000_000
    else:
        expected = (7, None) if kind == "exit" else (-9, "SIGKILL")
        assert (found.exit_code, found.signal_name) == expected
    assert type(pickle.loads(pickle.dumps(found))) is error
    assert not alive(found.error_pid) and not alive(sleeper.recv()) and capfd.readouterr() == ("", "")


def test_a_context_to_join_later():
    context = mp.spawn(jobs.wait_long, nprocs=2, join=False, daemon=True, start_method="fork")
    assert isinstance(context, mp.ProcessContext) and len(set(context.pids())) == 2
    assert context.join(timeout=0.05) is False
    context.processes[1].terminate()
    with pytest.raises(mp.ProcessExitedException, match="SIGTERM"):
        context.join(timeout=10)
    assert not any(alive(pid) for pid in context.pids())


def test_wrong_arguments_of_spawn():
    with pytest.raises(TypeError, match="callable"):
        mp.spawn(3)
    with pytest.raises(ValueError, match="nprocs"):
        mp.spawn(jobs.wait_long, nprocs=0)
    with pytest.raises(ValueError, match="start method"):
        mp.spawn(jobs.wait_long, start_method="thread")


def test_processes_end_with_their_parent():
    script = """if True:
        import sys
        sys.path.insert(0, "tests")
        import processes
        import framework.multiprocessing as mp
        context = mp.spawn(processes.wait_long, nprocs=2, join=False, start_method="fork")
        print(*context.pids(), flush=True)
        context.join()
        """
    main = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    pids = [int(word) for word in main.stdout.readline().split()]
    main.kill()
    main.wait()
    main.stdout.close()
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(pids) == 2 and not any(alive(pid) for pid in pids)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# -- the module ------------------------------------------------------------------------------------

def test_has_all_of_multiprocessing():
    assert not [name for name in multiprocessing.__all__ if not hasattr(mp, name)]


def test_sharing_strategies():
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    assert mp.get_sharing_strategy() == "file_descriptor"
    try:
        mp.set_sharing_strategy("file_system")
        assert mp.get_sharing_strategy() == "file_system"
    finally:
        mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="file_system"):
        mp.set_sharing_strategy("names")


def test_contexts():
    assert mp.get_context("spawn").get_start_method() == "spawn"
    assert type(mp.get_context()) is type(mp.get_context(mp.get_start_method()))
    assert mp.get_context("fork").get_context("spawn") is mp.get_context("spawn")
    with pytest.raises(ValueError, match="fork"):
        mp.get_context("thread")


def test_plain_pickle_and_copy_are_untouched():
    t = fw.ones(2).share_memory_()
    other = pickle.loads(pickle.dumps(t))
    assert other.tolist() == [1, 1] and not other.is_shared()


def test_number_of_threads(monkeypatch, tmp_path):
    before = fw.get_num_threads()
    try:
        fw.set_num_threads(1)
        assert fw.get_num_threads() == 1
    finally:
        fw.set_num_threads(before)
    for wrong, error in ((0, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="set_num_threads"):
            fw.set_num_threads(wrong)
    monkeypatch.setattr(threads, "_CGROUP", f"{tmp_path}/")
    cores = threads.usable_cores()
    assert 1 <= cores <= os.cpu_count()
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert threads.usable_cores() == cores
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert threads.usable_cores() == 1
