"""Where PyTorch programs look for norms over parts of a sample: names only."""

from ..norm import CrossMapLRN2d as CrossMapLRN2d
from ..norm import GroupNorm as GroupNorm
from ..norm import LayerNorm as LayerNorm
from ..norm import LocalResponseNorm as LocalResponseNorm
from ..norm import RMSNorm as RMSNorm
