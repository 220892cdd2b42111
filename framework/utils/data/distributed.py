"""PyTorch's place for the sampler of several processes."""

from ...data import DistributedSampler as DistributedSampler
