"""``python -m framework.distributed.run``: what ranks find, what is printed, and how jobs end."""

import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from framework.distributed import run

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import os, sys, signal, time
import framework as fw, framework.distributed as dist
kind, rank = sys.argv[1], int(os.environ["RANK"])
if kind == "restart" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and rank == 1:
    raise ValueError("the first time")
dist.init_process_group(timeout=60)
group = dist.new_group(timeout=1.0) if kind == "stop" else None
last = dist.get_world_size() - 1
for step in range(40):
    if step == 20 and rank == last:
        if kind == "raise": raise ValueError("my own")
        if kind == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if kind == "exit0": os._exit(0)
        if kind == "stop": os.kill(os.getpid(), signal.SIGSTOP)
        if kind == "early": sys.exit(0)
        if kind == "sleep": print("asleep", os.getpid(), flush=True); time.sleep(60)
    x = fw.ones(10)
    dist.all_reduce(x, group=group)
print("done", fw.get_num_threads(), dist.get_node_local_rank(), float(x[0]))
"""


def launch(tmp_path, *args, n="2", options=(), **more):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    env = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    command = [sys.executable, "-m", "framework.distributed.run", "-n", n, *options, str(program), *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**env, "PYTHONPATH": str(ROOT)}, **more)


def children(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(p) for p in path.read_text().split()] if path.exists() else []


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ranks_run_and_their_lines_are_marked(tmp_path):
    out, err = (p := launch(tmp_path, "fine")).communicate(timeout=60)
    assert p.returncode == 0, err
    assert sorted(line[:13] for line in out.splitlines()) == ["[rank 0] done", "[rank 1] done"]
    assert all(line.endswith(f" {r} 2.0") for r, line in enumerate(sorted(out.splitlines())))


@pytest.mark.parametrize("kind, code, last, said", [
    ("raise", 1, "ValueError: my own", "first to fail was rank 1: exit code 1"),
    ("kill", 137, "first to fail was rank 1: killed by SIGKILL", "rank 1 died"),
    ("exit0", 1, "ended with exit code 0 in the middle", "rank 1 died"),
    ("stop", 1, "for rank 1, which is at call 20", "waited 1."),
    ("early", 1, "rank 1 has ended after call 20", "equally many"),
])
def test_a_failure_ends_the_job_and_its_cause_stands_last(tmp_path, kind, code, last, said):
    start = time.monotonic()
    p = launch(tmp_path, kind)
    out, err = p.communicate(timeout=60)
    assert p.returncode == code and time.monotonic() - start < 30
    assert last in err.splitlines()[-1], err
    # on a busy machine rank 0 is stopped before it noticed
    late = kind in ("kill", "exit0") and "rank 0 killed by SIGTERM" in err
    assert said in err or late, err
    assert not out


def test_restart_with_fewer_ranks(tmp_path):
    p = launch(tmp_path, "restart", n="1:2", options=["--max-restarts", "1", "--nproc_per_node", "1:2"])
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and "restart 1 of 1 with 1 ranks" in err and "ValueError: the first time" in err
    assert out.startswith("done")


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads /proc")
def test_what_mpi_forgets_is_removed_unless_it_is_used(tmp_path):
    for name in ("used", "left"):
        (tmp_path / name).write_bytes(bytes(4096))
    with open(tmp_path / "used", "r+b") as file, mmap.mmap(file.fileno(), 0):
        run._remove_unused(set(tmp_path.iterdir()))
        assert [path.name for path in tmp_path.iterdir()] == ["used"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
def test_a_launcher_that_is_ended_leaves_nothing(tmp_path, number):
    p = launch(tmp_path, "sleep")
    line = p.stdout.readline()
    assert "asleep" in line
    ranks = children(p.pid)
    assert len(ranks) == 2
    p.send_signal(number)
    p.communicate(timeout=20)
    assert p.returncode in (-number, 128 + number)
    until = time.monotonic() + 10
    while any(map(alive, ranks)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(alive, ranks))
