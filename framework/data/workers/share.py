"""How far a worker's part of a stream has been handed out."""

from dataclasses import dataclass
from typing import Any


@dataclass
class Share:
    """batches: handed out so far. ended: whether there are no more. dataset: its own state, if it has one."""

    batches: int = 0
    ended: bool = False
    dataset: Any = None

    def state(self) -> dict[str, Any]:
        """As part of a loader's ``state_dict``."""
        return {"batches": self.batches, "ended": self.ended, "dataset": self.dataset}
