"""The names of ``framework.data``, where programs written for PyTorch look for them."""

from ..data.collate import default_collate as default_collate
from ..data.collate import default_convert as default_convert
from ..data.dataset import ChainDataset as ChainDataset
from ..data.dataset import ConcatDataset as ConcatDataset
from ..data.dataset import Dataset as Dataset
from ..data.dataset import IterableDataset as IterableDataset
from ..data.dataset import StackDataset as StackDataset
from ..data.dataset import Subset as Subset
from ..data.dataset import TensorDataset as TensorDataset
from ..data.dataset import random_split as random_split
from ..data.datasets import MNIST as MNIST
from ..data.datasets import FashionMNIST as FashionMNIST
from ..data.datasets import read_idx as read_idx
from ..data.loader import DataLoader as DataLoader
from ..data.loader import get_worker_info as get_worker_info
from ..data.sampler import BatchSampler as BatchSampler
from ..data.sampler import DistributedSampler as DistributedSampler
from ..data.sampler import RandomSampler as RandomSampler
from ..data.sampler import Sampler as Sampler
from ..data.sampler import SequentialSampler as SequentialSampler
from ..data.sampler import SubsetRandomSampler as SubsetRandomSampler
from ..data.sampler import WeightedRandomSampler as WeightedRandomSampler
