"""Convolution, pooling, padding and resampling of images (and signals and volumes)."""

from . import adaptive_pool as adaptive_pool
from . import conv as conv
from . import fused as fused
from . import grid_sample as grid_sample
from . import pad as pad
from . import pool as pool
from . import power_pool as power_pool
