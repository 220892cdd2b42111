"""PyTorch's place for the loader and for what makes batches."""

from ...data import DataLoader as DataLoader
from ...data import default_collate as default_collate
from ...data import default_convert as default_convert
from ...data import get_worker_info as get_worker_info
