"""PyTorch's words for types of arguments: nothing is compiled, they are only to be read.

Those of ``typing`` are found here, too, as models that were written for TorchScript import them from here.
"""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 - programs import these names

__all__ = ["Any", "Dict", "List", "Optional", "Tuple", "Union", "BroadcastingList1", "BroadcastingList2",
           "BroadcastingList3", "BroadcastingList4", "BroadcastingList5", "BroadcastingList6"]


class _Broadcasting:
    """``BroadcastingList2[int]``: a list of two, or one value for both; at run time it says nothing."""

    def __getitem__(self, kind: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Broadcasting()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
