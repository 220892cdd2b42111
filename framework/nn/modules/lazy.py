"""Where PyTorch programs look for lazy modules: names only."""

from ..lazy import LazyModuleMixin as LazyModuleMixin
