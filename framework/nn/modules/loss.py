"""Where PyTorch programs look for losses: names only."""

from ..loss import BCELoss as BCELoss
from ..loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from ..loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from ..loss import CrossEntropyLoss as CrossEntropyLoss
from ..loss import CTCLoss as CTCLoss
from ..loss import GaussianNLLLoss as GaussianNLLLoss
from ..loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from ..loss import HuberLoss as HuberLoss
from ..loss import KLDivLoss as KLDivLoss
from ..loss import L1Loss as L1Loss
from ..loss import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from ..loss import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from ..loss import MarginRankingLoss as MarginRankingLoss
from ..loss import MSELoss as MSELoss
from ..loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from ..loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from ..loss import MultiMarginLoss as MultiMarginLoss
from ..loss import NLLLoss as NLLLoss
from ..loss import NLLLoss2d as NLLLoss2d
from ..loss import PoissonNLLLoss as PoissonNLLLoss
from ..loss import SmoothL1Loss as SmoothL1Loss
from ..loss import SoftMarginLoss as SoftMarginLoss
from ..loss import TripletMarginLoss as TripletMarginLoss
from ..loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from ..loss import _Loss as _Loss
from ..loss import _WeightedLoss as _WeightedLoss
