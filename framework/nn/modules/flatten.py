"""Where PyTorch programs look for Flatten and Unflatten: names only."""

from ..flatten import Flatten as Flatten
from ..flatten import Unflatten as Unflatten
