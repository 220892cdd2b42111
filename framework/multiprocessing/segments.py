"""The segments of shared memory, under the name of the room that passes them between processes."""

from ..backends.segments import Segment as Segment
from ..backends.segments import available as available
from ..backends.segments import segment_of as segment_of
