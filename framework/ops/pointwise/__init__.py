"""Functions of one element, or of elements at the same place."""

from . import activations as activations
from . import arithmetic as arithmetic
from . import choose as choose
from . import compare as compare
from . import complex_numbers as complex_numbers
from . import elementary as elementary
from . import float_parts as float_parts
from . import rounding as rounding
