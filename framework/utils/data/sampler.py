"""PyTorch's place for samplers."""

from ...data import BatchSampler as BatchSampler
from ...data import RandomSampler as RandomSampler
from ...data import Sampler as Sampler
from ...data import SequentialSampler as SequentialSampler
from ...data import SubsetRandomSampler as SubsetRandomSampler
from ...data import WeightedRandomSampler as WeightedRandomSampler
