"""Random numbers on GPUs: a generator for each device. Seeding without a GPU checks the seed, no more."""

from collections.abc import Iterable, Sequence
from typing import Any

from ..config.listing import own as _own
from ..device import Device
from ..random import Generator, check_seed, generator_of
from ..tensor import Tensor
from .devices import device_count, needed


class _Generators(Sequence):
    """The default generators of all GPUs, by number."""

    def __len__(self) -> int:
        return device_count()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple([self[i] for i in range(len(self))[index]])
        found: Generator = generator_of(Device("cuda", range(len(self))[index]))
        return found


default_generators = _Generators()


def manual_seed(seed: int) -> None:
    """Start the generator of the current GPU from a seed, if there is one.

    >>> fw.cuda.manual_seed(0)
    """
    check_seed(seed, "cuda.manual_seed")
    if device_count():
        generator_of(needed()).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Start the generators of all GPUs from a seed.

    >>> fw.cuda.manual_seed_all(0)
    """
    check_seed(seed, "cuda.manual_seed_all")
    for index in range(device_count()):
        generator_of(Device("cuda", index)).manual_seed(seed)


def seed() -> None:
    """Start the generator of the current GPU from a seed that the system draws, if there is one."""
    if device_count():
        generator_of(needed()).seed()


def seed_all() -> None:
    """Start the generators of all GPUs from one seed that the system draws."""
    if device_count():
        manual_seed_all(generator_of(needed()).seed())


def initial_seed() -> int:
    """The seed that the generator of the current GPU was last started from; DeviceError without a GPU."""
    return generator_of(needed()).initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of the generator of a device; DeviceError where it is not there."""
    return generator_of(needed(device)).get_state()


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all GPUs."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Continue from a state of ``get_rng_state``; DeviceError where the device is not there."""
    generator_of(needed(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Continue from the states of ``get_rng_state_all``."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


__dir__ = _own(globals(), "default_generators")
