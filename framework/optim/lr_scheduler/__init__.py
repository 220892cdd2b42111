"""Learning-rate schedules: change ``lr`` of an optimizer's groups from epoch to epoch.

Most rules give the next rate from the present one, so that schedulers can be combined on one
optimizer: call ``step()`` of each, after ``optimizer.step()``.
"""

from ...config.listing import listing as _listing
from .base import LRScheduler as LRScheduler
from .base import _LRScheduler as _LRScheduler
from .cosine import CosineAnnealingLR as CosineAnnealingLR
from .cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from .cosine import OneCycleLR as OneCycleLR
from .cyclic import CyclicLR as CyclicLR
from .decay import ConstantLR as ConstantLR
from .decay import ExponentialLR as ExponentialLR
from .decay import LambdaLR as LambdaLR
from .decay import LinearLR as LinearLR
from .decay import MultiplicativeLR as MultiplicativeLR
from .decay import MultiStepLR as MultiStepLR
from .decay import PolynomialLR as PolynomialLR
from .decay import ReduceLROnPlateau as ReduceLROnPlateau
from .decay import StepLR as StepLR
from .sequential import ChainedScheduler as ChainedScheduler
from .sequential import SequentialLR as SequentialLR

__dir__ = _listing(globals())
