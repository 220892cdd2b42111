"""SyncBatchNorm learns of the ranks: its sums go over all of them, forward and backward."""

from typing import Any

from ..nn.normalization import SyncBatchNorm
from ..tensor import Tensor
from .groups import is_initialized
from .nn.functional import all_reduce


def sum_over_ranks(tensor: Tensor, group: Any) -> Tensor:
    """The sum of ``tensor`` over the ranks of ``group``; the tensor itself where no group was joined."""
    return all_reduce(tensor, group=group) if is_initialized() else tensor


SyncBatchNorm.all_reduce = staticmethod(sum_over_ranks)
