"""The state of a whole run: taken in one call, and given back all together or not at all."""

import random
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np

from .. import random as ours
from ..device import Device
from ..errors import CheckpointError, DeviceError, MissingExtraError, add_note
from ..random import Generator
from ..tensor import Tensor, wrap


def collect(parts: dict[str, Any]) -> dict[str, Any]:
    """The state of every part, and of the random generators that Python, NumPy and this package share."""
    return {"parts": {name: _state(part) for name, part in parts.items()}, "random": random_states()}


def _state(part: Any) -> Any:
    kind = _kind(part)
    return part if kind is None else kind[0](part)


def _kind(part: Any) -> tuple[Callable, Callable] | None:
    """How the state of an object is taken and given back; None for plain data."""
    if callable(getattr(part, "state_dict", None)) and callable(getattr(part, "load_state_dict", None)):
        return (lambda p: p.state_dict()), (lambda p, state: p.load_state_dict(state))
    for cls, take, give in _generators():
        if isinstance(part, cls):
            return take, give
    return None


def _give_numpy(generator: "np.random.Generator", state: Any) -> None:
    generator.bit_generator.state = _unpacked(state)


def _generators() -> tuple[tuple[type, Callable, Callable], ...]:
    """Kinds of generators; NumPy's are looked up when asked for, as its import of them takes long."""
    return ((Generator, Generator.get_state, Generator.set_state),
            (random.Random, random.Random.getstate, random.Random.setstate),
            (np.random.Generator, lambda g: _packed(g.bit_generator.state), _give_numpy),
            (np.random.RandomState, lambda g: _packed(g.get_state(legacy=False)),
             lambda g, state: g.set_state(_unpacked(state))))


def _packed(state: Any) -> Any:
    """NumPy's state as data that can be saved."""
    if isinstance(state, dict):
        return {k: _packed(v) for k, v in state.items()}
    if isinstance(state, np.ndarray):
        return {"array": state.astype("<u8").tobytes(), "dtype": state.dtype.name}
    return state.item() if isinstance(state, np.generic) else state


def _unpacked(state: Any) -> Any:
    if isinstance(state, dict) and set(state) == {"array", "dtype"}:
        return np.frombuffer(state["array"], "<u8").astype(state["dtype"])
    return {k: _unpacked(v) for k, v in state.items()} if isinstance(state, dict) else state


# -- the generators everybody draws from -----------------------------------------------------------


def random_states() -> dict[str, Any]:
    """The states of the default generators: this package's (every device used), Python's, NumPy's."""
    return {"framework": ours.default_generator.get_state(),
            "cuda": {i: g.get_state() for i, g in sorted(ours._cuda_generators.items())},
            "python": random.getstate(), "numpy": _packed(np.random.get_state(legacy=False))}


def set_random_states(states: dict[str, Any]) -> None:
    """Continue from ``random_states()``; CUDA devices that are not there are passed over."""
    try:
        ours.default_generator.set_state(states["framework"])
        for i, state in states["cuda"].items():
            with suppress(DeviceError, MissingExtraError):  # the run moved to a machine without the device
                ours.generator_of(Device("cuda", i)).set_state(state)
        random.setstate(states["python"])
        np.random.set_state(_unpacked(states["numpy"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"the random states are not sound ({type(error).__name__}: {error})") from error


# -- all or nothing --------------------------------------------------------------------------------


def restore(state: dict[str, Any], parts: dict[str, Any], random_too: bool, what: str) -> dict[str, Any]:
    """Give the parts their saved states; on any failure all are as before. Returns what no part took.

    Raises CheckpointError for a part that the checkpoint does not have, or what the part itself raises,
    with a note that names it.
    """
    saved = dict(state["parts"])
    missing = sorted(set(parts) - set(saved))
    if missing:
        raise CheckpointError(f"{what} holds no {', '.join(missing)}; it holds "
                              f"{', '.join(saved) or 'nothing'}; nothing was changed")
    work: list[tuple[str, Callable[[], None], Callable[[], Callable[[], None]]]] = []
    for name, part in sorted(parts.items(), key=lambda item: hasattr(item[1], "named_parameters")):
        kind = _kind(part)
        if kind is None:
            raise TypeError(f"{what}: {name} is a {type(part).__name__}, which has no load_state_dict(); "
                            f"plain values are returned by resume(), do not pass them")
        work.append((name, _giver(kind, part, saved.pop(name)), _undo(kind, part)))
    now = random_states()
    wanted = state["random"] if random_too else now
    # twice: a loader that is asked for its state may draw its seed, and is put back before the generators
    draw = ("random", lambda: set_random_states(wanted), lambda: lambda: set_random_states(now))
    last = work[-1:] if work and hasattr(parts[work[-1][0]], "named_parameters") else []
    rest = work[:len(work) - len(last)]
    # a module as the last needs no memory of what it was: its own load is all or nothing
    _run([draw, *rest, draw, *((name, give, _nothing) for name, give, _ in last)], what)
    return saved


def _giver(kind: tuple[Callable, Callable], part: Any, state: Any) -> Callable[[], None]:
    return lambda: kind[1](part, state)


def _undo(kind: tuple[Callable, Callable], part: Any) -> Callable[[], Callable[[], None]]:
    """Remembers the part's state when called; what it returns gives it back."""
    def remember() -> Callable[[], None]:
        now = kind[0](part)
        # an optimizer's load replaces its tensors and leaves the old ones as they are
        kept = now if hasattr(part, "param_groups") else _copied(now)
        return lambda: kind[1](part, kept)
    return remember


def _nothing() -> Callable[[], None]:
    return lambda: None


def _copied(state: Any) -> Any:
    if isinstance(state, Tensor):
        return wrap(state._array.copy())
    if isinstance(state, dict):
        return {k: _copied(v) for k, v in state.items()}
    return deepcopy(state)


def _run(work: list, what: str) -> None:
    """Do all of ``work``, or none."""
    undo: list[Callable[[], None]] = []
    try:
        for name, give, remember in work:
            try:
                undo.append(remember())
                give()
            except Exception as error:
                add_note(error, f"while restoring {name} from {what}; all parts are as before")
                raise
    except BaseException:
        for back in reversed(undo):
            back()
        raise
