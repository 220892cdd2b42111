"""Intel's GPUs: there is no backend for them here, so there are 0 devices, and what needs one raises."""

from .absent import answers
from .errors import DeviceError

globals().update(answers(
    __name__, "xpu", "current_device set_device synchronize get_device_name get_device_properties "
    "get_device_capability get_rng_state set_rng_state initial_seed current_stream Stream Event mem_get_info",
    nothing="empty_cache reset_peak_memory_stats seed seed_all",
    zero="memory_allocated max_memory_allocated memory_reserved max_memory_reserved"))


def is_bf16_supported() -> bool:
    """Whether such a device computes with bfloat16: False."""
    return False


def get_rng_state_all() -> list:
    """The states of the generators of all such devices: none."""
    return []


def set_rng_state_all(new_states: list) -> None:
    """Set the states of the generators of all such devices; raises DeviceError for any, as there are none."""
    if list(new_states):
        raise DeviceError(f"xpu.set_rng_state_all: {len(list(new_states))} states for 0 devices")
