"""Apple's GPUs: there is no backend for them here, so there are 0 devices, and what needs one raises."""

from .absent import answers

globals().update(answers(
    __name__, "mps", "synchronize empty_cache current_allocated_memory driver_allocated_memory "
    "recommended_max_memory get_rng_state set_rng_state set_per_process_memory_fraction", nothing="seed"))
