"""Datasets, samplers and the loader that makes batches of them."""

from ..config.listing import listing as _listing
from . import transforms as transforms
from .arrays import ArrayDataset as ArrayDataset
from .arrays import TextLineDataset as TextLineDataset
from .arrays import TokenDataset as TokenDataset
from .cifar import CIFAR10 as CIFAR10
from .cifar import CIFAR100 as CIFAR100
from .collate import default_collate as default_collate
from .collate import default_convert as default_convert
from .dataset import ChainDataset as ChainDataset
from .dataset import ConcatDataset as ConcatDataset
from .dataset import Dataset as Dataset
from .dataset import IterableDataset as IterableDataset
from .dataset import StackDataset as StackDataset
from .dataset import Subset as Subset
from .dataset import TensorDataset as TensorDataset
from .dataset import random_split as random_split
from .datasets import MNIST as MNIST
from .datasets import FashionMNIST as FashionMNIST
from .datasets import read_idx as read_idx
from .folder import DatasetFolder as DatasetFolder
from .folder import ImageFolder as ImageFolder
from .loader import DataLoader as DataLoader
from .packed import PackedList as PackedList
from .sampler import BatchSampler as BatchSampler
from .sampler import DistributedSampler as DistributedSampler
from .sampler import RandomSampler as RandomSampler
from .sampler import Sampler as Sampler
from .sampler import SequentialSampler as SequentialSampler
from .sampler import SubsetRandomSampler as SubsetRandomSampler
from .sampler import WeightedRandomSampler as WeightedRandomSampler
from .workers.errors import WorkerDied as WorkerDied
from .workers.errors import WorkerError as WorkerError
from .workers.errors import WorkerStallWarning as WorkerStallWarning
from .workers.errors import WorkerTimeout as WorkerTimeout
from .workers.info import WorkerInfo as WorkerInfo
from .workers.info import get_worker_info as get_worker_info

__dir__ = _listing(globals(), "transforms datasets dataset sampler")
