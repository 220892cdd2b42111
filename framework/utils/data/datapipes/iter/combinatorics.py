"""Pipes that change the order of samples."""

import random
from collections.abc import Iterator
from typing import Any

from .....data import SequentialSampler
from .....ops.random.numbers import randint
from ..datapipe import IterDataPipe, functional_datapipe


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler makes of a pipe, or of anything with a length."""

    def __init__(
        self,
        datapipe: Any,
        sampler: Any = SequentialSampler,
        sampler_args: Any = None,
        sampler_kwargs: Any = None,
    ) -> None:
        self.sampler = sampler(
            *(sampler_args or ()),
            data_source=datapipe,
            **(sampler_kwargs or {}),
        )

    def __iter__(self) -> Iterator:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """The samples in a random order, by a buffer: each that comes takes the place of a random one, which
    goes out.

    The order depends on the generator of the package, or on ``set_seed``, which holds for the next iteration.
    """

    def __init__(self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size < 1:
            raise ValueError(f"shuffle: buffer_size must be at least 1, got {buffer_size}")
        self.datapipe: Any = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level)
        self.buffer_size = buffer_size
        self._enabled, self._seed = True, None  # type: bool, int | None

    def set_shuffle(self, shuffle: bool = True) -> "ShufflerIterDataPipe":
        """Whether to shuffle at all."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> "ShufflerIterDataPipe":
        """The seed of the next iteration."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator:
        if not self._enabled:
            yield from self.datapipe
            return
        seed, self._seed = self._seed, None
        draw = random.Random(int(randint(0, 1 << 31, ()).item()) if seed is None else seed)
        buffer: list[Any] = []
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
                continue
            i = draw.randrange(len(buffer))
            buffer[i], sample = sample, buffer[i]
            yield sample
        draw.shuffle(buffer)
        yield from buffer

    def __len__(self) -> int:
        return len(self.datapipe)
