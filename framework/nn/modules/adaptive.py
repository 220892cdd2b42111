"""Where PyTorch programs look for the adaptive softmax: names only."""

from ..adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from ..adaptive import _ASMoutput as _ASMoutput
