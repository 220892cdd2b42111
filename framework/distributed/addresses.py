"""Where ranks meet: by the launcher's environment, an address, a file, or a store."""

import os
from typing import Any
from urllib.parse import parse_qs, urlparse

from ..errors import DistributedError


def place_of(url: str, rank: int, size: int, store: Any, found: Any, turn: int) -> tuple[str, int, int]:
    """What the meeting place is called, this rank and how many there are. turn: which meeting it is."""
    what = "init_process_group"
    if store is not None:
        _check_rank(rank, size, "store")
        key = f"framework/{turn}"
        if rank == 0:
            store.set(key, os.urandom(8).hex())
        return f"store-{bytes(store.get(key)).decode()}", rank, size
    parts = urlparse(url)
    if parts.scheme == "env":
        rank, size = (_from_environment(value, key) for value, key in ((rank, "RANK"), (size, "WORLD_SIZE")))
        _check_rank(rank, size, url)
        local = os.environ.get("LOCAL_WORLD_SIZE")
        if local is not None and int(local) < size:
            raise DistributedError(f"{what}: {size} ranks, of which {local} are on this machine, and the "
                                   f"backend shm is for one machine; use backend='mpi' (pip install "
                                   f"'framework[mpi]') or 'nccl'")
        if found is not None:
            return f"run-{found[1]}", rank, size
        host, port = _variable("MASTER_ADDR"), _variable("MASTER_PORT")
        return f"tcp-{host}:{port}", rank, size
    if parts.scheme in ("tcp", "file"):
        query = parse_qs(parts.query)
        rank = int(query["rank"][0]) if rank < 0 and "rank" in query else rank
        size = int(query["world_size"][0]) if size < 0 and "world_size" in query else size
        _check_rank(rank, size, url)
        if parts.scheme == "tcp" and not parts.port:
            raise ValueError(f"{what}: init_method {url!r} lacks a port, as in tcp://127.0.0.1:23456")
        where = parts.netloc if parts.scheme == "tcp" else os.path.abspath(parts.netloc + parts.path)
        return f"{parts.scheme}-{where}"[-90:], rank, size
    raise ValueError(f"{what}: init_method must begin with env://, tcp:// or file://, got {url!r}")


def _check_rank(rank: int, size: int, where: str) -> None:
    if size < 1 or not 0 <= rank < size:
        raise ValueError(f"init_process_group: {where} needs a rank in [0, world_size), got rank={rank}, "
                         f"world_size={size}")


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(f"init_process_group: env:// needs the environment variable {name}, which is not "
                         f"set (environment variable {name} expected, but not set); start the program with "
                         f"python -m framework.distributed.run -n 2 program.py, or use tcp:// or file://")
    return value


def _from_environment(value: int, name: str) -> int:
    return value if value >= 0 else int(_variable(name))
