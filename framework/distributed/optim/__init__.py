"""Optimizers whose state is divided among the ranks."""

from .zero import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer
