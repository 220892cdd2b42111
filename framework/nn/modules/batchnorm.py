"""Where PyTorch programs look for batch norms: names only."""

from ..lazy import LazyBatchNorm1d as LazyBatchNorm1d
from ..lazy import LazyBatchNorm2d as LazyBatchNorm2d
from ..lazy import LazyBatchNorm3d as LazyBatchNorm3d
from ..lazy import _LazyNorm as _LazyNormBase
from ..normalization import BatchNorm1d as BatchNorm1d
from ..normalization import BatchNorm2d as BatchNorm2d
from ..normalization import BatchNorm3d as BatchNorm3d
from ..normalization import SyncBatchNorm as SyncBatchNorm
from ..normalization import _BatchNorm as _BatchNorm
from ..normalization import _Norm as _NormBase
