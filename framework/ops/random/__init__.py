"""What draws random numbers: tensors of them, dropout, random activations."""

from . import activations as activations
from . import draw_kernels as draw_kernels
from . import draws as draws
from . import dropout as dropout
from . import fills as fills
from . import numbers as numbers
