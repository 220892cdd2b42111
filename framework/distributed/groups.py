"""Groups of ranks: joining the world, parts of it, and who is who."""

import contextlib
import datetime
import os
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from multiprocessing import util
from typing import Any

from ..errors import DistributedError
from ..random import default_generator, stream
from . import job, mpi, nccl
from .addresses import place_of
from .board import CODE, Board, Peers
from .meeting import fetch, hand_out
from .shm import ShmBackend, new_arena
from .work import Lane

default_pg_timeout = datetime.timedelta(minutes=30)
_SAME = {"gloo": "shm", "shm": "shm", "mpi": "mpi", "nccl": "nccl"}


class Backend(str):
    """The name of a backend: ``shm`` (also under the name ``gloo``), ``mpi``, ``nccl``."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    SHM = "shm"
    MPI = "mpi"
    NCCL = "nccl"
    backend_list = ["undefined", "gloo", "shm", "mpi", "nccl"]

    def __new__(cls, name: str) -> "Backend":
        if not isinstance(name, str):
            raise ValueError(f"Backend: the name must be a str, got {type(name).__name__}")
        return str.__new__(cls, name.lower())


class ProcessGroup:
    """Ranks that make calls together. Made by ``init_process_group`` and ``new_group``."""

    def __init__(self, backend: Any, ranks: list[int], name: str, timeout: float, called: str) -> None:
        self.backend, self.ranks, self.group_name, self.timeout = backend, ranks, name, timeout
        self.called = called  # the name that the user gave the backend
        self._lanes: dict[Any, Lane] = {}
        self.closed = False

    def rank(self) -> int:
        """This process's rank in the group."""
        return self.backend.rank

    def size(self) -> int:
        """How many ranks the group has."""
        return self.backend.size

    def name(self) -> str:
        """The backend."""
        return self.backend.name

    def lane(self, key: Any = "all") -> Lane:
        """The thread for calls beside the caller: one for collectives, one per peer and direction."""
        if key not in self._lanes:
            self._lanes[key] = Lane(f"distributed-{self.group_name or 'world'}-{key}")
        return self._lanes[key]

    def settle(self) -> None:
        """Wait for the collectives that run beside the caller, so that all ranks keep one order."""
        lane = self._lanes.get("all")
        if lane is not None:
            lane.drain()

    def close(self) -> None:
        """Leave."""
        if self.closed:
            return
        self.closed = True
        for lane in self._lanes.values():
            lane.close()
        self.backend.leave()

    def __repr__(self) -> str:
        where = self.group_name or "world"
        return f"<ProcessGroup {where}: rank {self.rank()} of {self.size()}, {self.name()}>"


class _World:
    """What a process is part of."""

    def __init__(self) -> None:
        self.group: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.peers: Peers | None = None
        self.token = ""
        self.pids: list[int] = []
        self.inits = self.made = 0
        self.pid = 0
        self.local: dict[tuple, int] = {}  # groups made by their members alone
        self.at_exit: Any = None


_world = _World()


class _GroupMember(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all ranks, or None."""
        return _world.group


class GroupMember(metaclass=_GroupMember):
    """``WORLD`` is the group of all ranks; ``NON_GROUP_MEMBER`` is what ``new_group`` gives to others."""

    NON_GROUP_MEMBER = -100


class group(metaclass=_GroupMember):
    """``group.WORLD`` is the group of all ranks."""


# -- questions -----------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether processes can work together on this system.

    >>> import framework.distributed as dist
    >>> dist.is_available()
    True
    """
    return hasattr(os, "fork")


def is_initialized() -> bool:
    """Whether this process has joined a group.

    >>> import framework.distributed as dist
    >>> dist.is_initialized()
    False
    """
    return _world.group is not None


def is_gloo_available() -> bool:
    """Whether the backend called ``gloo`` is there: here it is ``shm``."""
    return is_available()


def is_mpi_available() -> bool:
    """Whether mpi4py can be found; it is not loaded."""
    return find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Whether CuPy can be loaded, and it brings NCCL."""
    return nccl.available()


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process."""
    return job.VARIABLE in os.environ or "TORCHELASTIC_RUN_ID" in os.environ


def world() -> ProcessGroup:
    """The group of all ranks; DistributedError if there is none."""
    if _world.group is None:
        raise DistributedError("Default process group has not been initialized: call "
                               "framework.distributed.init_process_group() first, or start the program with "
                               "python -m framework.distributed.run")
    return _world.group


def member(group: Any, what: str) -> ProcessGroup | None:
    """The group meant; None where this process is not in it."""
    if group is None:
        return world()
    if group is GroupMember.NON_GROUP_MEMBER or group == GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"{what}: group must be a ProcessGroup, got {type(group).__name__}")
    if group.closed:
        raise DistributedError(f"{what}: this group was destroyed")
    return group


def get_rank(group: Any = None) -> int:
    """This process's rank in the group; -1 if it is not in it."""
    found = member(group, "get_rank")
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """How many ranks the group has; -1 if this process is not in it."""
    found = member(group, "get_world_size")
    return -1 if found is None else found.size()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine, which launchers give in ``LOCAL_RANK``."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("get_node_local_rank: the environment variable LOCAL_RANK is not set; start the "
                       "program with python -m framework.distributed.run, or pass fallback_rank=")


def get_backend(group: Any = None) -> str:
    """The backend of the group, under the name it was asked for by."""
    found = member(group, "get_backend")
    if found is None:
        raise ValueError("get_backend: this process is not in the group")
    return found.called


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The global ranks of the group's members, by their rank in it."""
    found = member(group, "get_process_group_ranks")
    return [] if found is None else list(found.ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in ``group`` of a global rank; ValueError if it is not in it."""
    found = member(group, "get_group_rank") or world()
    if global_rank not in found.ranks:
        raise ValueError(f"get_group_rank: rank {global_rank} is not in the group of ranks {found.ranks}")
    return found.ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The global rank of a rank of ``group``; ValueError if there is none."""
    found = member(group, "get_global_rank") or world()
    if not 0 <= group_rank < found.size():
        raise ValueError(f"get_global_rank: there is no rank {group_rank} in a group of {found.size()}")
    return found.ranks[group_rank]


def manual_seed(seed: int, group: Any = None) -> None:
    """Seed the default generator with a stream of its own for each rank: (seed, rank) is the key.

    For dropout and augmentation after the model was made: ``framework.manual_seed`` gives all ranks the same
    numbers, as an initialisation needs.

    >>> import framework.distributed as dist
    >>> dist.launch(lambda: (dist.manual_seed(1), fw.rand(1).item())[1], 2)[0] == fw.rand(1).item()
    False
    """
    found = member(group, "manual_seed")
    if found is None:
        raise ValueError("manual_seed: this process is not in the group")
    default_generator.set_state(stream(seed, found.rank()).get_state())


# -- joining -------------------------------------------------------------------------------------


def init_process_group(backend: str | None = None, init_method: str | None = None,
                       timeout: datetime.timedelta | float | None = None, world_size: int = -1,
                       rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None,
                       device_id: Any = None) -> None:
    """Join the group of all ranks; returns when all have come.

    backend: "shm" (default; "gloo" is another name of it) for processes of one machine, "mpi" between
    machines (extra ``mpi``), "nccl" for GPUs (extras ``cuda12``, ``cuda13``). "cpu:gloo,cuda:nccl" takes the
    first. init_method: "env://" (default) reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which the
    launcher sets; "tcp://host:port" and "file:///path" take ``rank`` and ``world_size`` (as arguments, or as
    ``?rank=0&world_size=2``); on one machine the address is only a name, no port is opened and no file is
    written. store: a Store, instead of init_method. timeout: a timedelta, or seconds, that a rank waits for
    the others in any call, before DistributedError says who has not come and where it is (default: 30
    minutes).

    Raises DistributedError if ranks do not come, come twice, or disagree on how many there are.

    >>> import framework.distributed as dist
    >>> dist.init_process_group("shm", "tcp://127.0.0.1:29511", rank=0, world_size=1)
    >>> x = fw.ones(2)
    >>> dist.all_reduce(x)
    >>> x, dist.get_rank(), dist.get_world_size()
    (tensor([1., 1.]), 0, 1)
    >>> dist.destroy_process_group()
    """
    what = "init_process_group"
    if _world.group is not None:
        raise DistributedError(f"{what}: this process is in a group already (trying to initialize the "
                               f"default process group twice); call destroy_process_group() first")
    called = _backend_name(backend)
    seconds = _seconds(timeout, what)
    if store is not None and init_method is not None:
        raise ValueError(f"{what}: give init_method or store, not both")
    found = job.found()
    if called == "mpi":
        made: Any = mpi.world_backend(seconds)
        _world.inits += 1
        _enter(ProcessGroup(made, list(range(made.size)), "", seconds, called), found)
        return
    url = init_method or ("" if store else "env://")
    name, rank, world_size = place_of(url, rank, world_size, store, found, _world.inits + 1)
    _world.peers = Peers()
    _world.inits += 1
    try:
        segment_backend = _meet(f"{name}-{_world.inits}", rank, world_size, seconds, found)
    except BaseException:
        _world.inits -= 1
        raise
    made = nccl.NcclBackend(segment_backend, device_id) if called == "nccl" else segment_backend
    _enter(ProcessGroup(made, list(range(world_size)), "", seconds, called), found)


def _enter(group: ProcessGroup, found: Any) -> None:
    _world.group, _world.pid = group, os.getpid()
    _world.at_exit = util.Finalize(None, _at_exit, exitpriority=100)
    if found is not None and "RANK" in os.environ:
        found[0].set_joined(int(os.environ["RANK"]))


def _meet(name: str, rank: int, size: int, seconds: float, found: Any) -> ShmBackend:
    """The arena of all ranks."""
    what = "init_process_group"
    deadline = time.monotonic() + seconds
    ranks = list(range(size))
    if rank == 0:
        segment, _world.token = hand_out(name, what, ranks, 0, deadline, lambda: new_arena(size),
                                         os.urandom(8).hex())
    else:
        segment, _world.token = fetch(name, what, rank, size, 0, deadline)
    assert _world.peers is not None
    board = Board(segment, rank, ranks, "", seconds, _world.peers, None if found is None else found[0].fate)
    board.calls = -1  # so that the user's first call is number 1
    board.begin(CODE[what])
    board.meet_all()
    _world.pids = board.pids()
    for other, pid in enumerate(_world.pids):
        _world.peers.watch(other, pid)
    return ShmBackend(segment, board, _world.token)


def _backend_name(backend: Any) -> str:
    if backend is None:
        return "shm"
    if not isinstance(backend, str):
        raise TypeError(f"init_process_group: backend must be a str, got {type(backend).__name__}")
    name = backend.lower().partition(",")[0].rpartition(":")[2]
    if name not in _SAME:
        raise ValueError(f"init_process_group: there is no backend {backend!r}; there are: shm (also called "
                         f"gloo), mpi, nccl")
    return name


def _seconds(timeout: Any, what: str) -> float:
    if timeout is None:
        return default_pg_timeout.total_seconds()
    if isinstance(timeout, datetime.timedelta):
        return timeout.total_seconds()
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout > 0:
        return float(timeout)
    raise TypeError(f"{what}: timeout must be a datetime.timedelta or a positive number of seconds, got "
                    f"{timeout!r}")


def new_group(ranks: Sequence[int] | None = None, timeout: Any = None, backend: str | None = None,
              pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
              device_id: Any = None) -> Any:
    """A group of some of the ranks; every rank of the world must call it, with the same ``ranks``.

    ranks: global ranks (None: all). Gives ``GroupMember.NON_GROUP_MEMBER`` to those that are not among them.
    use_local_synchronization: only the members call it.
    """
    all_ranks = world()
    chosen = sorted(range(all_ranks.size()) if ranks is None else ranks)
    if len(set(chosen)) != len(chosen) or not chosen or not all(0 <= r < all_ranks.size() for r in chosen):
        raise ValueError(f"new_group: ranks must be different ranks in [0, {all_ranks.size()}), got {ranks}")
    seconds = all_ranks.timeout if timeout is None else _seconds(timeout, "new_group")
    all_ranks.settle()
    if not use_local_synchronization:
        all_ranks.backend.announce_group(chosen)
    if use_local_synchronization:
        key = tuple(chosen)
        count = _world.local[key] = _world.local.get(key, 0) + 1
        place = f"{_world.token}-local-{'.'.join(map(str, chosen))}-{count}"
    else:
        _world.made += 1
        place = f"{_world.token}-group-{_world.made}"
    if all_ranks.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    name = group_desc or f"the group of ranks {chosen}"
    made = ProcessGroup(all_ranks.backend.subgroup(chosen, name, seconds, place), chosen, name, seconds,
                        all_ranks.called if backend is None else _backend_name(backend))
    _world.groups.append(made)
    return made


def new_subgroups(group_size: int | None = None, group: Any = None, timeout: Any = None,
                  backend: str | None = None, pg_options: Any = None,
                  group_desc: str | None = None) -> tuple[Any, list]:
    """Groups of ``group_size`` ranks that follow each other; this rank's, and all of them.

    group_size: by default as many ranks as are on a machine.
    """
    n = get_world_size()
    size = int(os.environ.get("LOCAL_WORLD_SIZE", n)) if group_size is None else group_size
    if size < 1 or n % size:
        raise ValueError(f"new_subgroups: the number of ranks, {n}, must be a multiple of group_size={size}")
    return new_subgroups_by_enumeration([list(range(i, i + size)) for i in range(0, n, size)], timeout,
    backend,
                                        pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: Any = None,
                                 backend: str | None = None, pg_options: Any = None,
                                 group_desc: str | None = None) -> tuple[Any, list]:
    """Groups of the ranks listed; the one this rank is in (or None), and all of them."""
    ours, made = None, []
    for ranks in ranks_per_subgroup_list:
        one = new_group(ranks, timeout, backend)
        made.append(one)
        if get_rank() in ranks:
            if ours is not None:
                raise ValueError(f"new_subgroups_by_enumeration: rank {get_rank()} is in two of the groups")
            ours = one
    return ours, made


def destroy_process_group(group: Any = None) -> None:
    """Leave a group, or (None) the world and all its groups. What runs beside the caller is waited for.

    A process that ends in an orderly way does it by itself.
    """
    if group is not None and group is not _world.group:
        found = member(group, "destroy_process_group")
        if found is not None:
            found.settle()
            found.close()
            _world.groups.remove(found)
        return
    whole = world()
    for one in [*_world.groups, whole]:
        one.settle()
        one.close()
    _world.groups.clear()
    _world.group = None
    if _world.peers is not None:
        _world.peers.close()
        _world.peers = None


def _at_exit() -> None:
    """The process ends as programs do: peers that still wait learn it from the board."""
    if _world.pid != os.getpid():
        return
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    failed = error is not None and not (isinstance(error, SystemExit) and not error.code)
    if _world.group is not None:
        with contextlib.suppress(Exception):
            for one in [*_world.groups, _world.group]:
                one.backend.leave(failed)
    found = job.found()
    if found is not None:
        found[0].set_finished(int(os.environ.get("RANK", 0)))
