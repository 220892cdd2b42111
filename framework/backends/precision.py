"""How exact products of float32 must be, and whether only what gives the same bits every time may run."""

import warnings
from typing import Any

from .. import _native

_PRECISIONS = ("highest", "high", "medium")
_precision = "highest"
_deterministic, _warns = False, False


def set_float32_matmul_precision(precision: str) -> None:
    """Say how exact products of float32 tensors must be: "highest", or less for speed: "high", "medium".

    Less is a permission: on GPUs, operands of float32 may then be rounded to TF32; on CPUs with a matrix unit
    (AMX) "medium" lets ``matmul`` and ``linear`` round them to bfloat16, while sums stay float32. Raises
    ValueError for another word.

    >>> fw.set_float32_matmul_precision("high"); fw.get_float32_matmul_precision()
    'high'
    >>> fw.set_float32_matmul_precision("highest")
    """
    global _precision
    if precision not in _PRECISIONS:
        raise ValueError(f"set_float32_matmul_precision: wanted one of {', '.join(_PRECISIONS)}, got "
                         f"{precision!r}")
    _precision = precision
    if _native.module is not None:
        _native.module.set_rounded_products(precision == "medium")


def get_float32_matmul_precision() -> str:
    """What ``set_float32_matmul_precision`` said last.

    >>> fw.get_float32_matmul_precision()
    'highest'
    """
    return _precision


def is_tf32(word: str, place: str) -> bool:
    """What PyTorch's words for the precision of float32 ask for; ValueError for others."""
    if word not in ("none", "ieee", "tf32"):
        raise ValueError(f"{place}.fp32_precision: wanted 'ieee', 'tf32' or 'none', got {word!r}")
    return word == "tf32"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Have sums added in the same order in each run; refuse operations where that cannot be, or only warn.

    On the CPU none differs, with the same number of threads; on a GPU sums into places that repeat
    (``scatter_add``, ``index_add``) sort their places then, and raise RuntimeError, or warn, where our
    kernels are switched off or do not take the dtype. Uninitialised memory is filled with NaN, or the largest
    integer, so that a use of it shows.

    >>> fw.use_deterministic_algorithms(True); fw.empty(1)
    tensor([nan])
    >>> fw.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, (bool, int)):
        raise TypeError(f"use_deterministic_algorithms: mode must be a bool, got {type(mode).__name__}: "
                        f"{mode!r:.40}")
    global _deterministic, _warns
    _deterministic, _warns = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether ``use_deterministic_algorithms`` is on.

    >>> fw.are_deterministic_algorithms_enabled()
    False
    """
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it only warns.

    >>> fw.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _deterministic and _warns


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same with one word: 0 or "default", 1 or "warn", 2 or "error".

    >>> fw.set_deterministic_debug_mode("warn"); fw.get_deterministic_debug_mode()
    1
    >>> fw.set_deterministic_debug_mode(0)
    """
    modes: dict[Any, int] = {"default": 0, "warn": 1, "error": 2, 0: 0, 1: 1, 2: 2}
    if debug_mode not in modes:
        raise ValueError(f"set_deterministic_debug_mode: wanted 0, 1, 2, 'default', 'warn' or 'error', got "
                         f"{debug_mode!r}")
    mode = modes[debug_mode]
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0: off, 1: warns, 2: raises.

    >>> fw.get_deterministic_debug_mode()
    0
    """
    return (1 if _warns else 2) if _deterministic else 0


def check_deterministic(op: str, on_gpu: bool) -> None:
    """Raise, or warn, where ``op`` may differ from run to run: on a GPU, if that is refused."""
    if not (_deterministic and on_gpu):
        return
    message = (f"{op}: on a GPU its sums may differ in the last bits from run to run, and "
               f"use_deterministic_algorithms(True) refuses that; run it on the CPU, or pass warn_only=True")
    if not _warns:
        raise RuntimeError(message)
    warnings.warn(message, stacklevel=3)
