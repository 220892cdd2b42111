"""Functions of one element, or of elements at the same place."""

from . import activations as activations
from . import arithmetic as arithmetic
from . import compare as compare
from . import complex_numbers as complex_numbers
from . import elements as elements
from . import functions as functions
