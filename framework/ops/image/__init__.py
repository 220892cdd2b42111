"""Convolution, pooling, padding and resampling of images (and signals and volumes)."""

from . import adaptive_pool as adaptive_pool
from . import conv as conv
from . import fold as fold
from . import fractional as fractional
from . import grid_sample as grid_sample
from . import int8 as int8
from . import interpolate as interpolate
from . import joined as joined
from . import other_names as other_names
from . import pad as pad
from . import pixel_shuffle as pixel_shuffle
from . import pool as pool
from . import power_pool as power_pool
from . import resample as resample
from . import windows as windows
