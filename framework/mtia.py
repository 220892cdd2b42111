"""Meta's accelerators: there is no backend for them, so there are 0 devices, and what needs one raises."""

from .absent import answers

globals().update(
    answers(
        __name__,
        "mtia",
        "current_device set_device synchronize get_device_capability current_stream default_stream "
        "set_stream stream get_rng_state set_rng_state",
        nothing="empty_cache",
        zero="memory_allocated",
    )
)
