"""Communication hooks of DistributedDataParallel."""

from . import default_hooks as default_hooks
