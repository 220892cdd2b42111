"""The place of PyTorch's profiler before ``profiler``: the same one here."""

from .profiler import profile as profile
