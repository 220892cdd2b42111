"""Ranks from a program or a notebook, with a launcher or without: ``launch(fn, n)``."""

import contextlib
import os
from collections.abc import Callable
from multiprocessing import get_all_start_methods
from typing import Any

from ..backends.threads import set_num_threads, usable_cores
from ..multiprocessing.process import get_context
from ..multiprocessing.spawn import start_processes
from .groups import destroy_process_group, init_process_group, is_initialized


def launch(fn: Callable, n: int | None, *args: Any, timeout: Any = None,
           start_method: str | None = None) -> list:
    """Run ``fn(*args)`` in ``n`` ranks that have joined a group; what each returns, by rank.

    n: None for the ranks that a launcher has started, of which this process is one: it joins them, runs
    ``fn`` and returns a list of its own result. Otherwise they are copies of this process (fork), so ``fn``
    may be a lambda or stand in a notebook; tensors among args are shared. Each has ``cores / n`` threads.
    start_method: "spawn" or "forkserver" instead, for functions that can be imported. Raises
    ProcessRaisedException with the traceback of the first rank that failed, or ProcessExitedException, after
    the others have been ended.

    >>> import framework.distributed as dist
    >>> def program(x):
    ...     y = x * (dist.get_rank() + 1)
    ...     dist.all_reduce(y)
    ...     return y.tolist()
    >>> dist.launch(program, 2, fw.ones(2))
    [[3.0, 3.0], [3.0, 3.0]]
    """
    if n is None:
        init_process_group(timeout=timeout)
        result = fn(*args)
        if is_initialized():
            destroy_process_group()
        return [result]
    method = start_method or ("fork" if "fork" in get_all_start_methods() else "spawn")
    ctx = get_context(method)
    pipes = [ctx.Pipe(duplex=False) for _ in range(n)]
    name = f"{os.getpid()}-{os.urandom(6).hex()}"
    context = start_processes(_rank, (n, name, timeout, fn, args, [out for _, out in pipes]), n, join=False,
                              start_method=method)
    assert context is not None
    results: dict[int, Any] = {}
    try:
        for _, out in pipes:
            out.close()
        while not context.join(0.05):
            _collect(pipes, results)
        _collect(pipes, results)
    except BaseException:
        context._end(1.0)
        raise
    finally:
        for back, _ in pipes:
            back.close()
    return [results.get(r) for r in range(n)]


def _collect(pipes: list, results: dict[int, Any]) -> None:
    for rank, (back, _) in enumerate(pipes):
        if rank not in results and back.poll():
            with contextlib.suppress(EOFError):
                results[rank] = back.recv()


def _rank(rank: int, n: int, name: str, timeout: Any, fn: Callable, args: tuple, outs: list) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(n), LOCAL_WORLD_SIZE=str(n))
    set_num_threads(max(usable_cores() // n, 1))
    init_process_group("shm", f"file:///{name}", timeout, n, rank)
    for other, out in enumerate(outs):
        if other != rank:
            out.close()
    result = fn(*args)
    if is_initialized():
        destroy_process_group()
    outs[rank].send(result)
    outs[rank].close()
