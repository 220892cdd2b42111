"""What a DataLoader refuses: arguments that contradict each other, states that do not fit."""

import multiprocessing
from typing import Any

from .sampler import positive

_STATE = ("seed", "epoch", "position", "batches")
_MORE = {"ahead", "shares", "turn"}


def check_workers(num_workers: Any, timeout: Any, prefetch_factor: Any, persistent_workers: Any,
                  context: Any, worker_type: Any, init: Any) -> None:
    """The arguments that belong to workers."""
    if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 0:
        raise ValueError(f"DataLoader: num_workers must be an int that is not negative, got "
                         f"{num_workers!r}")
    if not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise ValueError(f"DataLoader: timeout must be a number of seconds that is not negative, got "
                         f"{timeout!r}")
    if worker_type not in ("process", "thread"):
        raise ValueError(f"DataLoader: worker_type must be 'process' or 'thread', got {worker_type!r}")
    if init is not None and not callable(init):
        raise TypeError(f"DataLoader: worker_init_fn must be callable, got {type(init).__name__}")
    if num_workers == 0:
        for name, value, none in (("timeout", timeout, 0), ("prefetch_factor", prefetch_factor, None),
                                  ("persistent_workers", persistent_workers, False),
                                  ("multiprocessing_context", context, None)):
            if value != none:
                raise ValueError(f"DataLoader: {name} is for workers, and num_workers is 0; drop "
                                 f"{name}={value!r}")
    if prefetch_factor is not None:
        positive(prefetch_factor, "DataLoader", "prefetch_factor")
    if context is None:
        return
    if worker_type == "thread":
        raise ValueError("DataLoader: multiprocessing_context is for processes; drop it, or "
                         "worker_type='thread'")
    if not hasattr(context, "Process") and context not in multiprocessing.get_all_start_methods():
        raise ValueError(f"DataLoader: multiprocessing_context must be a context of multiprocessing or one "
                         f"of {', '.join(multiprocessing.get_all_start_methods())}, got {context!r}")


def check_order(streams: bool, batch_size: Any, shuffle: bool, sampler: Any, batch_sampler: Any,
                drop_last: bool) -> None:
    """The arguments that decide the order of samples."""
    given = [name for name, on in (("shuffle", shuffle), ("sampler", sampler is not None),
                                   ("batch_sampler", batch_sampler is not None)) if on]
    if streams and given:
        raise ValueError(f"DataLoader: an IterableDataset has its own order; drop {given[0]}=")
    if shuffle and sampler is not None:
        raise ValueError("DataLoader: shuffle=True and sampler= both give the order; drop one of them")
    if batch_sampler is not None and (shuffle or sampler is not None or drop_last or batch_size != 1):
        raise ValueError("DataLoader: batch_sampler= decides the batches alone; drop batch_size, shuffle, "
                         "sampler and drop_last")
    if batch_size is None and drop_last:
        raise ValueError("DataLoader: drop_last=True needs batches; batch_size=None gives single samples")


def check_state(state: Any, mine: int | None) -> dict[str, Any]:
    """A state of a loader of ``mine`` batches, or ValueError."""
    what = "DataLoader.load_state_dict"
    if not isinstance(state, dict) or not set(_STATE) <= set(state) <= set(_STATE) | _MORE:
        found = sorted(map(str, state)) if isinstance(state, dict) else type(state).__name__
        raise ValueError(f"{what}: wanted a dict with {', '.join(_STATE)}, got {found}")
    for name in ("seed", "epoch", "position"):
        value = state[name]
        if name == "seed" and value is None:
            continue
        if type(value) is not int or value < 0 or value >= 1 << 64:
            raise ValueError(f"{what}: {name} must be an int that is not negative, got {value!r}")
    if state["batches"] != mine:
        raise ValueError(f"{what}: the state is of a loader of {state['batches']} batches, this one has "
                         f"{mine}; use the same dataset and batch size")
    if mine is not None and state["position"] > mine:
        raise ValueError(f"{what}: position {state['position']} is beyond the {mine} batches")
    if not all(type(n) is int and n > state["position"] for n in state.get("ahead", ())):
        raise ValueError(f"{what}: 'ahead' must hold numbers of batches behind the position, got "
                         f"{state['ahead']!r}")
    shares = state.get("shares", [])
    if not all(isinstance(s, dict) and set(s) == {"batches", "ended", "dataset"} and type(s["batches"]) is int
               for s in shares) or not 0 <= state.get("turn", 0) <= len(shares):
        raise ValueError(f"{what}: 'shares' and 'turn' are not what state_dict() gives")
    return state
