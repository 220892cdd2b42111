"""Losses: over elements, over classes, by margins and distances, over alignments."""

from . import classes as classes
from . import ctc as ctc
from . import distances as distances
from . import elements as elements
from . import linear as linear
from . import margins as margins
