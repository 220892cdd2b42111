"""Where PyTorch programs look for batch norms: names only."""

from ..lazy import LazyBatchNorm1d as LazyBatchNorm1d
from ..lazy import LazyBatchNorm2d as LazyBatchNorm2d
from ..lazy import LazyBatchNorm3d as LazyBatchNorm3d
from ..lazy import _LazyNorm as _LazyNormBase
from ..norm import BatchNorm1d as BatchNorm1d
from ..norm import BatchNorm2d as BatchNorm2d
from ..norm import BatchNorm3d as BatchNorm3d
from ..norm import SyncBatchNorm as SyncBatchNorm
from ..norm import _BatchNorm as _BatchNorm
from ..norm import _Norm as _NormBase
