"""Optimizers and learning-rate schedules."""

from ..config.listing import listing as _listing
from . import lr_scheduler as lr_scheduler
from . import swa_utils as swa_utils

# isort: split
# classes of the files, written by framework.ops.stub
from .adadelta import Adadelta as Adadelta
from .adafactor import Adafactor as Adafactor
from .adagrad import Adagrad as Adagrad
from .adam import Adam as Adam
from .adam import AdamW as AdamW
from .adamax import Adamax as Adamax
from .asgd import ASGD as ASGD
from .lbfgs import LBFGS as LBFGS
from .lion import Lion as Lion
from .muon import Muon as Muon
from .nadam import NAdam as NAdam
from .optimizer import Optimizer as Optimizer
from .radam import RAdam as RAdam
from .rmsprop import RMSprop as RMSprop
from .rprop import Rprop as Rprop
from .sgd import SGD as SGD
from .sparse_adam import SparseAdam as SparseAdam

# end of the classes

__dir__ = _listing(globals(), "lr_scheduler swa_utils optimizer sgd adam lbfgs")
