"""Where PyTorch programs look for instance norms: names only."""

from ..lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
from ..lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
from ..lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
from ..normalization import InstanceNorm1d as InstanceNorm1d
from ..normalization import InstanceNorm2d as InstanceNorm2d
from ..normalization import InstanceNorm3d as InstanceNorm3d
from ..normalization import _InstanceNorm as _InstanceNorm
