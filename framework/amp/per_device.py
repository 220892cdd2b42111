"""Questions about autocast by names that name the device."""

from .. import dtypes
from .mode import get_autocast_dtype, is_autocast_enabled, set_autocast_dtype, set_autocast_enabled


def is_autocast_cpu_enabled() -> bool:
    """``is_autocast_enabled("cpu")``.

    >>> fw.is_autocast_cpu_enabled()
    False
    """
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> dtypes.DType:
    """``get_autocast_dtype("cpu")``.

    >>> fw.get_autocast_cpu_dtype()
    framework.bfloat16
    """
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtypes.DType:
    """``get_autocast_dtype("cuda")``.

    >>> fw.get_autocast_gpu_dtype()
    framework.float16
    """
    return get_autocast_dtype("cuda")


def set_autocast_cpu_dtype(dtype: dtypes.DType) -> None:
    """``set_autocast_dtype("cpu", dtype)``.

    >>> fw.set_autocast_cpu_dtype(fw.bfloat16)
    """
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dtypes.DType) -> None:
    """``set_autocast_dtype("cuda", dtype)``.

    >>> fw.set_autocast_gpu_dtype(fw.float16)
    """
    set_autocast_dtype("cuda", dtype)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """``set_autocast_enabled("cpu", enabled)``.

    >>> fw.set_autocast_cpu_enabled(False)
    """
    set_autocast_enabled("cpu", enabled)
