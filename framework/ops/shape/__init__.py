"""Tensors seen or arranged in another shape; no element is computed."""

from . import alone as alone
from . import arrange as arrange
from . import broadcast as broadcast
from . import complex_parts as complex_parts
from . import diagonals as diagonals
from . import grids as grids
from . import join as join
from . import slices as slices
from . import split as split
from . import view as view
from . import windows as windows
