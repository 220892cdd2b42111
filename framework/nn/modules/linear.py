"""Where PyTorch programs look for linear layers: names only."""

from ..lazy import LazyLinear as LazyLinear
from ..linear import Bilinear as Bilinear
from ..linear import Identity as Identity
from ..linear import Linear as Linear
from ..linear import NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear
