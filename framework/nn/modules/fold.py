"""Where PyTorch programs look for Fold and Unfold: names only."""

from ..flatten import Fold as Fold
from ..flatten import Unfold as Unfold
