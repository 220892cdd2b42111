"""The scaler of losses on a GPU: its factor stays there, one launch divides gradients, nobody waits."""

from pathlib import Path
from typing import Any

import numpy as np

from ..backends import cuda, device_code, tensor_lists

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"), tensor_lists.HEADER, dtypes="fdE")


class Held:
    """The factor, and after how many iterations without an overflow; what changes them makes new ones, until
    a graph has recorded where they are.
    """

    def __init__(self, scale: float, tracker: int, device: Any) -> None:
        cuda.refuse_in_capture("GradScaler: the first scale(), which brings the factor to the device",
                               "make a step with the scaler before you record one")
        with device:
            self.state = cuda.cupy().asarray(np.array([scale, tracker], np.float32))
        self.stays = False  # whether a graph reads and writes this memory

    def factor(self, like: Any) -> Any:
        """The factor, on the device of an array."""
        self.stays = self.stays or cuda.capture_here() is not None
        if like.device == self.state.device:
            return self.state[0].copy() if self.stays else self.state[0]
        with like.device:
            return cuda.cupy().asarray(self.state)[0]

    def unscale(self, gradients: list[Any]) -> Any:
        """Divide gradients by the factor, in place; a number on the device that says whether one overflowed.

        None where kernels do not take them: they lie in odd ways, on several devices, or in shared memory.
        """
        groups: dict[str, list[Any]] = {}
        for g in gradients:
            if not device_code.is_device_array(g) or g.device != self.state.device:
                return None
            groups.setdefault(device_code.letter(g.dtype), []).append(g)
        chars = {c: tensor_lists.alike(arrays) for c, arrays in groups.items()}
        if not all(chars.values()) or not set(chars) <= set(_SOURCE.dtypes):
            return None
        with self.state.device:
            found = cuda.cupy().zeros((), np.float32)
            for char, arrays in groups.items():
                table, blocks = tensor_lists.table([[a] for a in arrays], "unscale")
                _SOURCE.kernel("unscale_all", char)(
                    (blocks,), (device_code.THREADS,), (table, len(arrays), 3, self.state, found)
                )
        return found

    def adapt(self, found: list[Any], growth: float, backoff: float, interval: int) -> None:
        """The factor and the count of the next iteration."""
        module = cuda.cupy()
        with self.state.device:
            worst = found[0]
            for other in found[1:]:
                worst = module.maximum(worst, module.asarray(other, np.float32))
            following = self.state if self.stays else module.empty(2, np.float32)
            _SOURCE.kernel("adapt", "f")(
                (1,), (32,), (following, self.state, worst, float(growth), float(backoff), int(interval))
            )
        self.state = following

    def write(self, scale: float, tracker: int) -> None:
        """Set both where they are."""
        with self.state.device:
            self.state[...] = cuda.cupy().asarray(np.array([scale, tracker], np.float32))

    def read(self) -> tuple[float, int]:
        """Factor and count, for which the host waits."""
        scale, tracker = cuda.to_numpy(self.state).tolist()
        return scale, int(tracker)


def held(array: Any, scale: float, tracker: int) -> Held | None:
    """What holds the factor on the device of an array; None where kernels are switched off, or on the CPU."""
    if not device_code.enabled or not device_code.is_device_array(array):
        return None
    return Held(scale, tracker, array.device)
