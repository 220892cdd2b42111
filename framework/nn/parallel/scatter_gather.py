"""PyTorch's place for what cuts batches into pieces and joins them."""

from .pieces import gather as gather
from .pieces import scatter as scatter
from .pieces import scatter_kwargs as scatter_kwargs
