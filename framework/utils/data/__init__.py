"""The names of ``framework.data``, where programs written for PyTorch look for them."""

from ...data import *  # noqa: F403 - the same names, so that no second list can fall behind
from . import dataloader as dataloader
from . import dataset as dataset
from . import distributed as distributed
from . import sampler as sampler
