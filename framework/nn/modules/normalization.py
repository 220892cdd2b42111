"""Where PyTorch programs look for norms over parts of a sample: names only."""

from ..normalization import CrossMapLRN2d as CrossMapLRN2d
from ..normalization import GroupNorm as GroupNorm
from ..normalization import LayerNorm as LayerNorm
from ..normalization import LocalResponseNorm as LocalResponseNorm
from ..normalization import RMSNorm as RMSNorm
