"""Losses: one small class around each loss of ``nn.functional``, and two distances.

``reduction`` is "mean", "sum" or "none". ``size_average`` and ``reduce`` are PyTorch's old words for it.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

from ..ops.losses.linear import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from ..tensor import Tensor
from . import functional as F
from .linear import Linear
from .module import Module


class _Loss(Module):
    """How the losses of the elements become one number."""

    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__()
        if isinstance(size_average, Tensor) or isinstance(reduce, Tensor):
            kind = type(self).__name__
            raise TypeError(f"{kind}: takes settings, got a Tensor; a loss is built first and then called: "
                            f"{kind}()(input, target)")
        if size_average is not None or reduce is not None:
            reduction = ("none" if reduce is False else "mean" if size_average is not False else "sum")
            warnings.warn(f"{type(self).__name__}: size_average and reduce are old; use "
                          f"reduction='{reduction}'", UserWarning, stacklevel=3)
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"{type(self).__name__}: reduction must be 'none', 'mean' or 'sum', got "
                             f"{reduction!r}")
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with a weight per class or element, kept as a buffer."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """``(input - target)^2``

    >>> fw.nn.MSELoss()(fw.tensor([1.0, 2.0]), fw.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The squared error."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """``|input - target|``"""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The absolute error."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """``d^2 / (2 beta)`` where ``d = |input - target| < beta``, else ``d - beta / 2`` (Girshick 2015)."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The smooth absolute error."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """``d^2 / 2`` where ``d = |input - target| < delta``, else ``delta * (d - delta / 2)`` (Huber 1964)."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if isinstance(delta, bool) or not isinstance(delta, (int, float, Tensor)):
            raise TypeError(f"HuberLoss: delta must be a float or int, got {type(delta).__name__}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The Huber loss."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class CrossEntropyLoss(_WeightedLoss):
    """``-log softmax(input)[target]`` for scores (N, C, ...) and classes (N, ...) or probabilities.

    weight: (C,), per class. ignore_index: targets that do not count. label_smoothing in [0, 1].

    >>> fw.nn.CrossEntropyLoss()(fw.zeros(1, 2), fw.tensor([1]))
    tensor(0.6931)
    """

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The cross entropy of the scores ``input``."""
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index,
                               reduction=self.reduction, label_smoothing=self.label_smoothing)


class NLLLoss(_WeightedLoss):
    """``-input[target]`` for log-probabilities (N, C, ...) and classes (N, ...)."""

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The negative log-likelihood."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index,
                          reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The old name of NLLLoss for images, with a FutureWarning."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn("nn.NLLLoss2d is deprecated; use nn.NLLLoss, which takes images", FutureWarning,
                      stacklevel=2)
        super().__init__(*args, **kwargs)


class BCELoss(_WeightedLoss):
    """``-(target * log(input) + (1 - target) * log(1 - input))`` for probabilities."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The binary cross entropy."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """The binary cross entropy of sigmoid(input), computed stably; pos_weight weighs target 1.

    >>> fw.nn.BCEWithLogitsLoss()(fw.zeros(1), fw.ones(1))
    tensor(0.6931)
    """

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean",
                 pos_weight: Tensor | None = None) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)
        self.pos_weight: Tensor | None

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The binary cross entropy of the scores ``input``."""
        return F.binary_cross_entropy_with_logits(input, target, weight=self.weight,
                                                  reduction=self.reduction,
                                                  pos_weight=self.pos_weight)


class KLDivLoss(_Loss):
    """``target * (log(target) - input)`` for log-probabilities input.

    reduction "batchmean" divides the sum by the batch size. log_target: target holds logarithms too.
    """

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(size_average, reduce, "sum" if reduction == "batchmean" else reduction)
        if reduction == "batchmean":
            self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The Kullback-Leibler divergence."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CosineEmbeddingLoss(_Loss):
    """``1 - cos`` where target is 1, ``max(0, cos - margin)`` where it is -1."""

    def __init__(self, margin: float = 0.0, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss of pairs of vectors."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin,
                                       reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """``max(0, -target * (input1 - input2) + margin)``"""

    def __init__(self, margin: float = 0.0, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """The loss of pairs of scores."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin,
                                     reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """``input`` where target is 1, ``max(0, margin - input)`` where it is -1."""

    def __init__(self, margin: float = 1.0, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of distances ``input``."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """``max(0, |anchor - positive|_p - |anchor - negative|_p + margin)`` (Schroff et al. 2015)."""

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        if not margin > 0:
            raise ValueError(f"TripletMarginLoss: margin must be positive, got {margin!r}")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss of triplets of vectors."""
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p,
                                     eps=self.eps, swap=self.swap, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))`` for targets 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The logistic loss."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class PoissonNLLLoss(_Loss):
    """``exp(input) - target * input``; ``input - target * log(input + eps)`` if not log_input."""

    def __init__(self, log_input: bool = True, full: bool = False,
                 size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The Poisson negative log-likelihood."""
        return F.poisson_nll_loss(input, target, log_input=self.log_input, full=self.full,
                                  eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """``(log(var) + (input - target)^2 / var) / 2``, var at least eps (Nix and Weigend 1994)."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        """The Gaussian negative log-likelihood."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps,
                                   reduction=self.reduction)


class CosineSimilarity(Module):
    """``x1 . x2 / max(|x1| |x2|, eps)`` along dim.

    >>> fw.nn.CosineSimilarity(dim=0)(fw.tensor([1.0, 0.0]), fw.tensor([2.0, 0.0]))
    tensor(1.)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosine of the angle between ``x1`` and ``x2``."""
        return F.cosine_similarity(x1, x2, dim=self.dim, eps=self.eps)


class PairwiseDistance(Module):
    """``|x1 - x2 + eps|_p`` along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The distance of the vectors."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CTCLoss(_Loss):
    """-log of the probability of all alignments of the targets (Graves et al. 2006).

    blank: the class that stands for none. zero_infinity: 0 where a target is too long for its input.

    >>> scores = fw.zeros(2, 1, 2).log_softmax(-1)
    >>> fw.nn.CTCLoss()(scores, fw.tensor([[1]]), fw.tensor([2]), fw.tensor([1]))
    tensor(0.2877)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any,
                target_lengths: Any) -> Tensor:
        """The loss of scores (T, N, C) and labels (N, S), of which the lengths say how much counts."""
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                          self.zero_infinity)


class MultiMarginLoss(_WeightedLoss):
    """The mean over all classes i other than t of ``weight[t] * max(0, margin - input[t] + input[i])^p``.

    >>> fw.nn.MultiMarginLoss()(fw.tensor([[0.0, 0.5]]), fw.tensor([0]))
    tensor(0.7500)
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                 size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p must be 1 or 2, got {p}")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores (N, C) and classes (N)."""
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight,
                                   reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The sum of ``max(0, 1 - input[t] + input[i]) / C`` over targets t and all i that are none."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores (N, C) and classes (N, C), which count up to the first -1 of each row."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of ``-t * log(s) - (1 - t) * log(1 - s)`` with ``s = sigmoid(input)``."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores and labels 0 and 1, both (N, C)."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """``max(0, d(a, p) - d(a, n) + margin)`` for any distance d, PairwiseDistance unless given."""

    def __init__(self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                 margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        if not margin > 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: margin must be positive, got {margin}")
        self.distance_function = distance_function or PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """The loss of three batches."""
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin,
            swap=self.swap, reduction=self.reduction)


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of a linear layer's scores: input (N, in_features) or (in_features).

    target: class numbers (N, *out_features), or probabilities (N, C, *out_features). The layer is
    ``self.linear``, of num_classes times the product of out_features outputs.

    >>> loss = fw.nn.LinearCrossEntropyLoss(5, 10, out_features=(4,))
    >>> loss(fw.ones(2, 5), fw.zeros(2, 4, dtype=fw.int64)).shape
    ()
    """

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (),
                 bias: bool = False, device: Any = None, dtype: Any = None, reduction: str = "mean",
                 weight: Tensor | None = None, ignore_index: int | None = None,
                 label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None) -> None:
        super().__init__(weight, reduction=reduction)
        self.in_features = in_features
        self.options = options
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, num_classes * math.prod(self.out_features), bias, device, dtype)

    def reset_parameters(self) -> None:
        """Draw the layer's weights anew."""
        self.linear.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of inputs and classes or probabilities."""
        shape = (self.num_classes, *self.out_features)
        w: Any = self.linear.weight
        b: Any = self.linear.bias
        return F.linear_cross_entropy(
            input, w.reshape(*shape, self.in_features), target,
            linear_bias=None if b is None else b.reshape(shape), weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
            options=self.options)
