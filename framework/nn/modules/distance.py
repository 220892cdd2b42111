"""Where PyTorch programs look for distances: names only."""

from ..loss import CosineSimilarity as CosineSimilarity
from ..loss import PairwiseDistance as PairwiseDistance
