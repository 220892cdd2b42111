"""The blocks in which operations choose their dtype, and the functions that ask and say what holds in one."""

import warnings
from copy import copy
from types import TracebackType
from typing import Any

from .. import dtypes
from ..autograd.mode import _Mode
from ..backends import cuda
from ..device import as_device
from ..dtypes import DType, as_dtype
from ..ops.record.autocast import thread, use
from .casting import choose
from .state import state

_DTYPES = (dtypes.bfloat16, dtypes.float16)


def _known(device_type: Any, op: str) -> str:
    """The name of a kind of device; raises what is none."""
    if not isinstance(device_type, str):
        raise TypeError(
            f"{op}: device_type must be a str such as 'cpu', got {type(device_type).__name__}: "
            f"{device_type!r}; of a tensor it is x.device.type"
        )
    if device_type not in ("cpu", "cuda"):
        hint = ""
        if ":" in device_type:
            hint = f"; give the kind without a number, '{as_device(device_type).type}'"
        raise RuntimeError(f"{op}: device_type must be 'cpu' or 'cuda', got {device_type!r}{hint}")
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether ``autocast`` has an effect for a kind of device: on the CPU, and on GPUs where there is one.

    >>> fw.amp.is_autocast_available("cpu")
    True
    """
    return _known(device_type, "is_autocast_available") == "cpu" or cuda.is_available()


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operations on a kind of device choose their dtype here, in this thread.

    >>> with fw.autocast("cpu"):
    ...     fw.is_autocast_enabled("cpu")
    True
    """
    kind = _known(device_type, "is_autocast_enabled")
    return thread.choose is not None and getattr(state, kind)


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Let operations on a kind of device choose their dtype from here on, in this thread, or not."""
    kind = _known(device_type, "set_autocast_enabled")
    if enabled:
        if not is_autocast_available(kind):
            raise RuntimeError(
                f"set_autocast_enabled: there is no autocast for {kind!r} here, only for 'cpu': there is no "
                f"GPU"
            )
        _fetch(get_autocast_dtype(kind))
        use()
    setattr(state, kind, bool(enabled))
    thread.choose = choose if state.cpu or state.cuda else None


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype of products in blocks that name none: bfloat16 on the CPU, float16 on a GPU.

    >>> fw.get_autocast_dtype("cpu")
    framework.bfloat16
    """
    return state.dtype if _known(device_type, "get_autocast_dtype") == "cpu" else state.cuda_dtype


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Set the dtype of products in blocks of this thread that name none."""
    if _known(device_type, "set_autocast_dtype") == "cpu":
        state.dtype = as_dtype(dtype)
    else:
        state.cuda_dtype = as_dtype(dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether the cast of a weight is made once in a block and used again.

    >>> fw.is_autocast_cache_enabled()
    True
    """
    return state.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Let the casts of weights be used again inside a block, or not."""
    state.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the casts of weights; the end of the outermost block does so."""
    state.casts.clear()


def autocast_increment_nesting() -> int:
    """Open one more block around; the number of those open now."""
    state.depth += 1
    return state.depth


def autocast_decrement_nesting() -> int:
    """Close one; the number of those still open."""
    state.depth -= 1
    return state.depth


def _fetch(dtype: DType) -> None:
    """Have the dtype's package imported, or raise MissingExtraError."""
    dtype.numpy  # noqa: B018


def _settings() -> tuple:
    """All that holds in this thread, for ``_set``."""
    return thread.choose, state.cpu, state.cuda, state.dtype, state.cuda_dtype, state.caching


def _set(settings: tuple) -> None:
    thread.choose, state.cpu, state.cuda, state.dtype, state.cuda_dtype, state.caching = settings


class autocast(_Mode):
    """Inside the block, operations on ``device_type`` choose their dtype: products ``dtype``, losses float32.

    dtype: bfloat16 (the default on the CPU) or float16; for another one a warning says that the block does
    nothing. Products (``linear``, ``matmul``, convolutions, attention, recurrent layers) convert floating
    operands to it and give it; losses, spectra and decompositions run in float32; all others in the dtypes
    they get. On GPUs softmax, norms, sums, powers and exponentials run in float32, too, ``dot``,
    ``bilinear``, ``index_put``, ``scatter_add``, ``tensordot`` and ``grid_sample`` in the widest dtype of
    their tensors, and ``binary_cross_entropy`` is refused (RuntimeError). Operands of float64 are left alone,
    as are in-place forms and calls with ``out=``. Parameters stay what they are, and so do their gradients.
    cache_enabled: convert a weight once in a block, however often it is used (default: as around). Backward
    is best called after the block; its operations run in the dtypes of the forward pass in any case. As a
    decorator, around every call. Raises TypeError or RuntimeError for an unknown kind of device,
    MissingExtraError where bfloat16 needs a package.

    Micikevicius et al., "Mixed Precision Training" (arXiv:1710.03740).

    >>> model, x = fw.nn.Linear(3, 2), fw.ones(4, 3)
    >>> with fw.autocast("cpu", fw.bfloat16):
    ...     y = model(x)
    ...     loss = fw.nn.functional.mse_loss(y, fw.zeros(4, 2))
    >>> y.dtype, loss.dtype
    (framework.bfloat16, framework.float32)
    >>> loss.backward()
    >>> model.weight.grad.dtype
    framework.float32
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = _known(device_type, "autocast")
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else as_dtype(dtype)
        self._cache_enabled = state.caching if cache_enabled is None else bool(cache_enabled)
        self._enabled = bool(enabled) and self._possible()
        self._open: list[tuple] = []

    def _possible(self) -> bool:
        if not is_autocast_available(self.device):
            warnings.warn(
                f"autocast: there is none for device_type={self.device!r} here, only for 'cpu': there is no "
                f"GPU; the block does nothing",
                stacklevel=3,
            )
            return False
        if self.fast_dtype not in _DTYPES:
            where = "the CPU" if self.device == "cpu" else "a GPU"
            warnings.warn(
                f"autocast: dtype must be bfloat16 or float16 on {where}, got {self.fast_dtype}; the "
                f"block does nothing",
                stacklevel=3,
            )
            return False
        return True

    def __enter__(self) -> "autocast":  # type: ignore[override]
        self._open.append(_settings())
        if self._enabled:
            _fetch(self.fast_dtype)
            set_autocast_dtype(self.device, self.fast_dtype)
        if self._enabled or self.device == "cpu":
            set_autocast_enabled(self.device, self._enabled)
        else:
            state.cuda = False
        state.caching = self._cache_enabled
        state.depth += 1
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _set(self._open.pop())
        state.depth -= 1
        if not state.depth:
            state.casts.clear()

    def _fresh(self) -> "autocast":
        fresh = copy(self)
        fresh._open = []
        return fresh


class Surroundings(autocast):
    """The autocast of this place, to be entered again elsewhere; what it casts inside it keeps for itself.

    A function that is to be called twice with the same effect must find the same casts made: none.
    """

    def __init__(self) -> None:
        self._here = _settings()
        self._open = []
        self._around: list[dict] = []

    def __enter__(self) -> "Surroundings":  # type: ignore[override]
        self._open.append(_settings())
        _set(self._here)
        state.depth += 1
        self._around.append(state.casts)
        state.casts = {}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        state.casts = self._around.pop()
        super().__exit__(kind, error, trace)
