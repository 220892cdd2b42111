"""PyTorch's words for arguments where one value stands for several: nothing is compiled, they are only to be
read."""

from typing import Any

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4",
           "BroadcastingList5", "BroadcastingList6"]


class _Broadcasting:
    """``BroadcastingList2[int]``: a list of two, or one value for both; at run time it says nothing."""

    def __getitem__(self, kind: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Broadcasting()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
