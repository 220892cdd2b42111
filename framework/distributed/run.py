"""The launcher: ``python -m framework.distributed.run -n 4 train.py [arguments]``.

It starts the ranks, waits for them, and ends them all when one fails; the traceback of the first that failed
is what it prints last, and its exit code is the launcher's. The arguments of ``torchrun`` are taken.
"""

import argparse
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..backends import cuda
from ..backends.threads import VARIABLES, usable_cores
from . import job

_GRACE = 2.0  # seconds in which the other ranks may fail by themselves, with messages of their own
_TERM = 3.0  # seconds between SIGTERM and SIGKILL
_KEPT = 400  # lines of each rank's errors
_PR_SET_PDEATHSIG = 1
_PICTURE = "Traceback (most recent call last)"


def main(argv: list[str] | None = None) -> int:
    """Run the launcher; returns the exit code."""
    args = _parser().parse_args(argv)
    if args.backend == "mpi" or args.nnodes != (1, 1):
        return run_mpi(args)
    least, most = args.nproc_per_node
    n = most
    for attempt in range(args.max_restarts + 1):
        status = Run(args, n, attempt).wait()
        if status == 0 or status == 130 or attempt == args.max_restarts:
            return status
        n = max(least, n - 1)
        print(f"[launcher] restart {attempt + 1} of {args.max_restarts} with {n} "
              f"ranks", file=sys.stderr, flush=True)
    return status


class Rank:
    """A process, the ends of its pipes, and the last lines it wrote to stderr."""

    def __init__(self, rank: int, process: subprocess.Popen) -> None:
        self.rank, self.process = rank, process
        self.pidfd = os.pidfd_open(process.pid)
        self.status: int | None = None
        self.rest = {1: b"", 2: b""}
        self.last: deque[str] = deque(maxlen=_KEPT)


class Run:
    """One attempt: all ranks from start to end."""

    def __init__(self, args: Any, n: int, attempt: int) -> None:
        self.n = n
        self.page = job.Page.create(n)
        self.run = f"{os.getpid()}.{attempt}.{os.urandom(6).hex()}"
        self.plain = args.no_prefix or n == 1
        self.ranks: list[Rank] = []
        self.first: Rank | None = None
        self.stopped = 0  # the signal that the launcher was told to stop by
        self.poll = select.poll()
        self.at: dict[int, tuple[Rank, int]] = {}
        self._old: dict[int, Any] = {}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._old[number] = signal.signal(number, self._stop)
        try:
            for rank in range(n):
                self._start(args, rank, attempt)
        except BaseException:
            self._kill(signal.SIGKILL)
            raise

    def _start(self, args: Any, rank: int, attempt: int) -> None:
        fd = self.page.segment.fd
        assert fd is not None
        end = None if self.plain and self.n == 1 else subprocess.PIPE
        process = subprocess.Popen(command(args), env=environment(args, rank, self.n, attempt, fd, self.run),
                                   pass_fds=(fd,), preexec_fn=_die_with(os.getpid()),
                                   stdout=end, stderr=end)
        one = Rank(rank, process)
        self.ranks.append(one)
        self._watch(one.pidfd, one, 0)
        for which, pipe in ((1, process.stdout), (2, process.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._watch(pipe.fileno(), one, which)

    def _watch(self, fd: int, rank: Rank, which: int) -> None:
        self.at[fd] = rank, which
        self.poll.register(fd, select.POLLIN)

    def _stop(self, number: int, frame: Any) -> None:
        self.stopped = self.stopped or number

    def wait(self) -> int:
        """Wait until all have ended; the exit code."""
        deadline: float | None = None
        stages: list[tuple[float, int]] = []
        try:
            while any(r.status is None for r in self.ranks):
                self._listen(0.2 if deadline is None else max(min(deadline - time.monotonic(), 0.2), 0))
                if deadline is None and (self.first is not None or self.stopped):
                    pause = _GRACE if self.first is not None else 0
                    stages = [(pause, signal.SIGTERM), (_TERM, signal.SIGKILL), (_TERM, signal.SIGKILL)]
                    if self.stopped == signal.SIGINT:  # a terminal sends it to the ranks, too
                        stages.insert(0, (_TERM, signal.SIGINT))
                    deadline = time.monotonic() + stages[0][0]
                if deadline is not None and time.monotonic() >= deadline and stages:
                    self._kill(stages.pop(0)[1])
                    self._kill(signal.SIGCONT)  # one that is stopped hears nothing else
                    deadline = time.monotonic() + (stages[0][0] if stages else _TERM)
            while self._listen(0.02):
                pass
        finally:
            self._kill(signal.SIGKILL)
            for number, old in self._old.items():
                signal.signal(number, old)
            for one in self.ranks:
                for pipe in (one.process.stdout, one.process.stderr):
                    if pipe is not None:
                        pipe.close()
        return self._end()

    def _listen(self, wait: float) -> bool:
        """Pass on what the ranks write and note who ends; whether anything was there."""
        events = self.poll.poll(wait * 1000)
        for fd, _ in sorted(events, key=lambda e: self.at[e[0]][1] == 0):  # words before ends
            rank, which = self.at[fd]
            if which == 0:
                self.poll.unregister(fd)
                os.close(fd)
                self._ended(rank, rank.process.wait())
            else:
                self._words(fd, rank, which)
        return bool(events)

    def _words(self, fd: int, rank: Rank, which: int) -> None:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self.poll.unregister(fd)
            if rank.rest[which]:
                self._print(rank, which, rank.rest[which])
                rank.rest[which] = b""
            return
        *lines, rank.rest[which] = (rank.rest[which] + data).split(b"\n")
        for line in lines:
            self._print(rank, which, line)

    def _print(self, rank: Rank, which: int, line: bytes) -> None:
        stream = sys.stdout if which == 1 else sys.stderr
        text = line.decode(errors="replace")
        if which == 2:
            rank.last.append(text)
        try:
            stream.write(f"{text}\n" if self.plain else f"[rank {rank.rank}] {text}\n")
            stream.flush()
        except (BrokenPipeError, ValueError):
            self.stopped = self.stopped or signal.SIGPIPE

    def _ended(self, rank: Rank, status: int) -> None:
        rank.status = status
        lost = status == 0 and self.page.joined(rank.rank) and not self.page.finished(rank.rank)
        if lost:
            rank.status = -1000
        self.page.set_dead(rank.rank, status)
        if rank.status and self.first is None and not self.stopped:
            self.first = rank

    def _kill(self, number: int) -> None:
        for rank in self.ranks:
            if rank.status is None and rank.process.returncode is None:
                rank.process.send_signal(number)

    def _end(self) -> int:
        if self.first is None:
            return 128 + self.stopped if self.stopped else 0
        rank, status = self.first, self.first.status
        assert status is not None
        how = ("ended with exit code 0 in the middle of its work (os._exit?)" if status == -1000
               else job.described(status))
        lines = list(rank.last)
        starts = [i for i, line in enumerate(lines) if _PICTURE in line]
        chained = starts[0] if starts else len(lines)
        others = [f"rank {r.rank} {job.described(r.status)}" for r in self.ranks
                  if r is not rank and r.status and r.status != -1000]
        print(f"[launcher] {'; '.join(others)}" if others else "[launcher] the other ranks were ended",
              file=sys.stderr)
        print(f"[launcher] the first to fail was rank {rank.rank}: {how}", file=sys.stderr)
        for line in lines[chained:]:
            print(line, file=sys.stderr)
        sys.stderr.flush()
        return 1 if status == -1000 else status if status > 0 else 128 - status


def _die_with(launcher: int) -> Callable[[], None]:
    """For the new process: be ended by the kernel when the launcher ends, however that happens."""
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != launcher:
            os._exit(1)
    return prepare


def command(args: Any) -> list[str]:
    """What a rank runs."""
    if args.no_python:
        return [args.program, *args.arguments]
    return [sys.executable, *(["-m"] if args.module else []), args.program, *args.arguments]


def environment(args: Any, rank: int, n: int, attempt: int, fd: int | None, run: str) -> dict[str, str]:
    """The variables of a rank: those of torchrun, the descriptor of the job's page, threads per rank."""
    env = dict(os.environ)
    env.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(n), LOCAL_WORLD_SIZE=str(n),
               GROUP_RANK="0", ROLE_RANK=str(rank), ROLE_WORLD_SIZE=str(n), MASTER_ADDR=args.master_addr,
               MASTER_PORT=str(args.master_port), TORCHELASTIC_RUN_ID=run,
               TORCHELASTIC_RESTART_COUNT=str(attempt), TORCHELASTIC_MAX_RESTARTS=str(args.max_restarts))
    env[job.VARIABLE] = f"{fd}:{run}"
    if not any(v in env for v in VARIABLES):
        env["OMP_NUM_THREADS"] = str(max(usable_cores() // n, 1))
    env.setdefault("PYTHONUNBUFFERED", "1")
    return env


def run_mpi(args: Any) -> int:
    """Run mpiexec; its exit code, or 1 where it says 0 though a rank vanished (MPICH does)."""
    before = _mpi_segments()
    with tempfile.TemporaryDirectory() as directory:
        end = os.path.join(directory, "end")
        try:
            status = subprocess.call(mpi_command(args), env={**os.environ, job.MPI_END: end},
                                     preexec_fn=_die_with(os.getpid()))
        finally:
            _remove_unused(_mpi_segments() - before)
        if status == 0 and not os.path.exists(end):
            print("[launcher] mpiexec reports success, but the ranks did not all come to the end of the "
                  "program: "
                  "one ended in the middle of its work (os._exit?), or none called init_process_group('mpi')",
                  file=sys.stderr)
            return 1
        return status if status >= 0 else 128 - status


def _mpi_segments() -> set[Path]:
    """Shared memory of MPI processes of this user: MPICH and Open MPI forget theirs when a rank dies."""
    found = [p for name in ("mpich_shm_*", "sm_segment.*") for p in Path("/dev/shm").glob(name)]
    return {p for p in found if p.exists() and p.stat().st_uid == os.getuid()}


def _remove_unused(segments: set[Path]) -> None:
    """Remove those which no process has mapped: other jobs may run."""
    used = ""
    for maps in Path("/proc").glob("[0-9]*/maps") if segments else ():
        with contextlib.suppress(OSError):
            used += maps.read_text()
    for path in segments:
        if str(path) not in used:
            path.unlink(missing_ok=True)


def mpi_command(args: Any) -> list[str]:
    """The ``mpiexec`` command that starts the ranks, on as many machines as its own settings say."""
    here = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    mpiexec = args.mpiexec or (here if os.path.exists(here) else "mpiexec")
    total = args.nproc_per_node[1] * args.nnodes[1]
    return [mpiexec, "-n", str(total), *command(args)]


def _count(text: str) -> int:
    if text in ("auto", "cpu"):
        return usable_cores()
    if text == "gpu":
        from_cuda = cuda.device_count()
        if not from_cuda:
            raise argparse.ArgumentTypeError("there is no GPU that CuPy sees")
        return from_cuda
    try:
        n = int(text)
    except ValueError:
        n = 0
    if n < 1:
        raise argparse.ArgumentTypeError(f"wanted a positive number, auto, cpu or gpu, got {text!r}")
    return n


def _span(text: str) -> tuple[int, int]:
    low, colon, high = text.partition(":")
    least, most = _count(low), _count(high if colon else low)
    if least > most:
        raise argparse.ArgumentTypeError(f"{text!r}: the first number must not be above the second")
    return least, most


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m framework.distributed.run", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-n", "--nproc-per-node", "--nproc_per_node", type=_span, default=(1, 1),
                   metavar="N or MIN:MAX",
                   help="ranks on this machine: a number, auto, cpu, gpu; 2:4 begins with 4 and takes one "
                        "fewer "
                   "at each restart")
    p.add_argument("--max-restarts", "--max_restarts", type=int, default=0,
                   help="how often all ranks are started anew after one failed")
    p.add_argument("--nnodes", type=_span, default=(1, 1), help="machines; above 1 the ranks are started "
                                                                "by mpiexec")
    p.add_argument("--backend", choices=("shm", "gloo", "mpi", "nccl"), default="shm",
                   help="mpi: start the ranks by mpiexec")
    p.add_argument("--mpiexec", help="the program that starts MPI's processes")
    p.add_argument("--master-addr", "--master_addr", default="127.0.0.1")
    p.add_argument("--master-port", "--master_port", type=int, default=29500,
                   help="a name on one machine: no port is opened")
    p.add_argument("--no-prefix", action="store_true", help="print what ranks write as it is")
    p.add_argument("-m", "--module", action="store_true", help="the program is a module, as of python -m")
    p.add_argument("--no-python", "--no_python", action="store_true", help="the program is not a Python file")
    for name in ("--standalone", "--run-path", "--run_path"):
        p.add_argument(name, action="store_true", help="torchrun's; nothing to do")
    for name in ("--node-rank", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf",
                 "--monitor-interval", "--start-method", "--role", "--log-dir", "--redirects", "--tee",
                 "--local-ranks-filter", "--local-addr"):
        other = "--" + name[2:].replace("-", "_")
        p.add_argument(*{name: 0, other: 0}, help="torchrun's; not needed here")
    p.add_argument("program")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    return p


if __name__ == "__main__":
    sys.exit(main())
