"""The older place of ``framework.profiler``."""

from collections.abc import Callable
from typing import Any

from ..config.listing import own as _own
from ..cuda import nvtx
from ..profiler import Average as FunctionEventAvg  # noqa: F401
from ..profiler import Averages as EventList  # noqa: F401
from ..profiler import profile as profile
from ..profiler import record_function as record_function
from ..seam import BACKWARD, Event, intercept


class emit_itt:
    """Refused when it is entered: ranges of Intel's VTune need its library, which PyTorch is built with.

    enabled: False to do nothing. ``profile`` and ``emit_nvtx`` are here.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> "emit_itt":
        if self.enabled:
            raise RuntimeError("emit_itt: ranges for Intel's VTune are not made here; use profiler.profile")
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class emit_nvtx:
    """In the block each operation is a range of NVTX, for NVIDIA's profilers; backward's, too.

    Raises MissingExtraError or DeviceError without CuPy and a GPU. enabled: False to do nothing.
    record_shapes: the ranges' names have the shapes of the operands.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.shapes = enabled, record_shapes
        self._seam = intercept(self._range)

    def _range(self, event: Event, proceed: Callable) -> Any:
        shapes = [list(x.shape) for x in event.inputs if hasattr(x, "shape")] if self.shapes else ""
        nvtx.range_push(f"{event.name}{'_backward' * (event.kind == BACKWARD)}{shapes}")
        try:
            return proceed(*event.inputs, **event.settings)
        finally:
            nvtx.range_pop()

    def __enter__(self) -> "emit_nvtx":
        if self.enabled:
            nvtx.mark("emit_nvtx")  # raises where there is none
            self._seam.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.enabled:
            self._seam.__exit__(*error)


__dir__ = _own(globals(), "EventList profile record_function")
