"""Dynamic batching: the Python for one example runs unchanged for many, their operations run together.

``together(fn, examples)`` calls ``fn`` for each example, but puts its operations off: what a call gives is a
tensor of known shape and dtype whose value is not there yet. Then operations of the same record, settings and
shapes, of all examples and of each one, run as one call by the record's rule for batches, forward and,
since those calls are what is recorded, backward. After G. Neubig, Y. Goldberg and C. Dyer, "On-the-fly
Operation Batching in Dynamic Computation Graphs", arXiv:1705.07860. See docs/batches.md.
"""

from ..config.listing import listing as _listing
from .schedule import Schedule as Schedule
from .schedule import Step as Step
from .session import Results as Results
from .session import Session as Session
from .session import together as together
from .units import unit as unit

__dir__ = _listing(globals())
