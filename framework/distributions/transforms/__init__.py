"""Transforms of random numbers: maps with inverses, Jacobians, domains and codomains."""

from ...config.listing import listing as _listing
from .base import ComposeTransform as ComposeTransform
from .base import IndependentTransform as IndependentTransform
from .base import Transform as Transform
from .base import identity_transform as identity_transform
from .joined import CatTransform as CatTransform
from .joined import ReshapeTransform as ReshapeTransform
from .joined import StackTransform as StackTransform
from .matrices import CorrCholeskyTransform as CorrCholeskyTransform
from .matrices import LowerCholeskyTransform as LowerCholeskyTransform
from .matrices import PositiveDefiniteTransform as PositiveDefiniteTransform
from .numbers import AbsTransform as AbsTransform
from .numbers import AffineTransform as AffineTransform
from .numbers import CumulativeDistributionTransform as CumulativeDistributionTransform
from .numbers import ExpTransform as ExpTransform
from .numbers import PowerTransform as PowerTransform
from .numbers import SigmoidTransform as SigmoidTransform
from .numbers import SoftplusTransform as SoftplusTransform
from .numbers import TanhTransform as TanhTransform
from .simplex import SoftmaxTransform as SoftmaxTransform
from .simplex import StickBreakingTransform as StickBreakingTransform

__dir__ = _listing(globals())
