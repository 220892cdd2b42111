"""How good predictions are: the numbers that evaluation loops keep rewriting.

Scores are (N, C), a row per sample and a column per class, or what is said already: (N) class numbers.
Results are Python numbers, or tensors where there are several; nothing here is recorded.
"""

from typing import Any

import numpy as np

from ..config.listing import own as _own
from ..errors import DTypeError, ShapeError, kind_of
from ..from_data import tensor
from ..tensor import Tensor


def _array(value: Any, what: str) -> np.ndarray:
    """The numbers of a tensor (or of whatever NumPy makes an array of), on the CPU."""
    if isinstance(value, Tensor):
        return np.asarray(value.detach().cpu().numpy())
    found = np.asarray(value)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{what} must be a Tensor or numbers, got {kind_of(value)}")
    return found


def _classes(input: Any, target: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    """What was said and what it was, as class numbers (N)."""
    said, true = _array(input, f"{where}: input"), _array(target, f"{where}: target")
    if said.ndim > true.ndim:
        if said.ndim != true.ndim + 1:
            raise ShapeError(f"{where}: input has shape {list(said.shape)} and target {list(true.shape)}; "
                             f"wanted scores (N, C) or class numbers (N), and targets (N)")
        said = said.argmax(1)
    if said.shape != true.shape:
        raise ShapeError(f"{where}: input is for {list(said.shape)} samples and target for "
                         f"{list(true.shape)}; they must "
                         "be the same")
    if true.dtype.kind == "f" or said.dtype.kind == "f":
        raise DTypeError(f"{where}: class numbers must be integers or bool, got "
                         f"{'target' if true.dtype.kind == 'f' else 'input'} of dtype "
                         f"{true.dtype if true.dtype.kind == 'f' else said.dtype}; for two classes write a "
                         "comparison, e.g. scores > 0")
    if not true.size:
        raise ValueError(f"{where}: there are no samples")
    return said.ravel().astype(np.int64), true.ravel().astype(np.int64)


def accuracy(input: Any, target: Any, k: int = 1) -> float:
    """The share of samples whose class is among the ``k`` highest scores.

    input: scores (N, C), or class numbers (N) where k is 1; target: class numbers (N). Also (N, C, ...) and
    (N, ...). Among equal scores the first class counts as the higher. Raises ShapeError or DTypeError for
    others, ValueError for a k that is no number of classes.

    >>> from framework.utils.metrics import accuracy
    >>> scores = fw.tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])
    >>> accuracy(scores, fw.tensor([1, 1])), accuracy(scores, fw.tensor([1, 1]), k=2)
    (0.5, 1.0)
    """
    if k == 1:
        said, true = _classes(input, target, "accuracy")
        return float((said == true).mean())
    scores, true = _array(input, "accuracy: input"), _array(target, "accuracy: target")
    if scores.ndim != true.ndim + 1 or (scores.shape[0], *scores.shape[2:]) != true.shape:
        raise ShapeError(f"accuracy: with k={k} input must be scores (N, C) and target class numbers (N), "
                         f"got shapes {list(scores.shape)} and {list(true.shape)}")
    if not 1 <= k <= scores.shape[1]:
        raise ValueError(f"accuracy: k must be between 1 and the number of classes "
                         f"{scores.shape[1]}, got {k}")
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return float((best == np.expand_dims(true, 1)).any(1).mean())


def confusion_matrix(input: Any, target: Any, num_classes: int | None = None) -> Tensor:
    """How often class i (row) was taken for class j (column), as int64 (C, C).

    input: scores (N, C) or class numbers (N); target: class numbers (N). num_classes: default the scores'
    columns, or the highest number that occurs and 1. Raises IndexError for a class beyond it.

    >>> from framework.utils.metrics import confusion_matrix
    >>> confusion_matrix(fw.tensor([0, 1, 1, 1]), fw.tensor([0, 0, 1, 1]))
    tensor([[1, 1],
            [0, 2]])
    """
    said, true = _classes(input, target, "confusion_matrix")
    low, high = int(min(said.min(), true.min())), int(max(said.max(), true.max()))
    if num_classes is None:
        shape = np.shape(_array(input, "confusion_matrix: input"))
        scores = len(shape) > np.ndim(_array(target, "confusion_matrix: target"))
        num_classes = shape[1] if scores else high + 1
    if low < 0 or high >= num_classes:
        raise IndexError(f"confusion_matrix: class {low if low < 0 else high} is none of the {num_classes} "
                         f"classes 0 to {num_classes - 1}; give num_classes=")
    counts = np.bincount(true * num_classes + said, minlength=num_classes * num_classes)
    return tensor(counts.reshape(num_classes, num_classes))


def _shares(input: Any, target: Any, average: str | None, where: str, formula: Any) -> Any:
    """A share per class from (hits, said, true), and its average."""
    if average not in ("macro", "micro", "weighted", "binary", None):
        raise ValueError(f"{where}: average must be 'macro', 'micro', 'weighted', 'binary' or None, got "
                         f"{average!r}")
    matrix = confusion_matrix(input, target).numpy().astype(np.float64)
    hits, said, true = np.diag(matrix), matrix.sum(0), matrix.sum(1)
    if average == "micro":
        hits, said, true = (np.array([v.sum()]) for v in (hits, said, true))
    top, bottom = formula(hits, said, true)
    each = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
    if average is None:
        return tensor(each)
    if average == "binary":
        if len(each) > 2:
            raise ValueError(f"{where}: average='binary' is for the classes 0 and 1, got {len(each)} "
                             f"classes; take 'macro'")
        return float(each[1]) if len(each) == 2 else 0.0
    if average == "weighted":
        return float((each * true).sum() / true.sum())
    seen = (said + true) > 0  # a class that neither is nor is said has no share to average
    return float(each[seen].mean())


def precision(input: Any, target: Any, average: str | None = "macro") -> Any:
    """Of the samples taken for a class, the share that are of it: hits / said. 0 where it was never said.

    Arguments as in `f1_score`.

    >>> from framework.utils.metrics import precision
    >>> precision(fw.tensor([0, 1, 1, 1]), fw.tensor([0, 0, 0, 1]), average="binary")
    0.3333333333333333
    """
    return _shares(input, target, average, "precision", lambda hits, said, true: (hits, said))


def recall(input: Any, target: Any, average: str | None = "macro") -> Any:
    """Of the samples of a class, the share taken for it: hits / true. 0 where there were none.

    Arguments as in `f1_score`.

    >>> from framework.utils.metrics import recall
    >>> recall(fw.tensor([0, 1, 1, 1]), fw.tensor([0, 0, 0, 1]), average="binary")
    1.0
    """
    return _shares(input, target, average, "recall", lambda hits, said, true: (hits, true))


def f1_score(input: Any, target: Any, average: str | None = "macro") -> Any:
    """``2 * hits / (said + true)``, the harmonic mean of precision and recall.

    input: scores (N, C) or class numbers (N); target: class numbers (N). average: "macro", the mean over
    the classes that occur; "weighted", by their numbers of samples; "micro", of all samples at once;
    "binary", of class 1 of two; None, a tensor (C). Raises ValueError for another.

    >>> from framework.utils.metrics import f1_score
    >>> f1_score(fw.tensor([0, 1, 1, 1]), fw.tensor([0, 0, 0, 1]), average="binary")
    0.5
    """
    return _shares(input, target, average, "f1_score", lambda hits, said, true: (2 * hits, said + true))


def roc_auc(scores: Any, target: Any) -> float:
    """The area under the curve of hits against false alarms: how probably a positive scores above a negative.

    scores (N); target (N): 0 or 1, or bool. Equal scores count one half. The sum of the positives' ranks
    gives it without the curve: ``(ranks - n1 (n1 + 1) / 2) / (n0 n1)`` (Mann and Whitney, 1947). Raises
    ValueError unless both classes occur.

    >>> from framework.utils.metrics import roc_auc
    >>> roc_auc(fw.tensor([0.1, 0.4, 0.35, 0.8]), fw.tensor([0, 0, 1, 1]))
    0.75
    """
    s, t = _array(scores, "roc_auc: scores"), _array(target, "roc_auc: target")
    if s.ndim != 1 or s.shape != t.shape:
        raise ShapeError(f"roc_auc: scores and target must be (N), got shapes {list(s.shape)} and "
                         f"{list(t.shape)}; of "
                         "scores (N, 2) take one column")
    if not np.isin(t, (0, 1)).all():
        raise ValueError(f"roc_auc: target must be 0 or 1, got values {np.unique(t)[:5].tolist()}; for "
                         f"class c write target == c")
    if np.isnan(s).any():
        raise ValueError(f"roc_auc: scores hold {int(np.isnan(s).sum())} nan, which have no order")
    positive = t.astype(bool)
    n1 = int(positive.sum())
    n0 = len(t) - n1
    if not n0 or not n1:
        raise ValueError(f"roc_auc: needs samples of both classes, got {n0} of class 0 and {n1} of class 1")
    _, place, count = np.unique(s, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # equal scores share the mean of their ranks
    return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n0 * n1))


class RunningMean:
    """The mean of what it was told so far, weighted by numbers of samples.

    >>> from framework.utils.metrics import RunningMean
    >>> mean = RunningMean()
    >>> mean.update(1.0, 3); mean.update(5.0, 1)
    >>> mean.value, mean.count
    (2.0, 4)
    """

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def update(self, value: float | Tensor, n: int = 1) -> None:
        """Take in the mean ``value`` of ``n`` samples, a number or a tensor of one element."""
        if n < 0:
            raise ValueError(f"RunningMean.update: n must be a number of samples, got {n}")
        number = value.item() if isinstance(value, Tensor) else float(value)
        self.total += number * n
        self.count += n

    @property
    def value(self) -> float:
        """The mean; nan before the first sample."""
        return self.total / self.count if self.count else float("nan")

    def reset(self) -> None:
        """Begin again, at the start of an epoch."""
        self.total, self.count = 0.0, 0

    def __repr__(self) -> str:
        return f"RunningMean({self.value:.4g} over {self.count})"


__dir__ = _own(globals())
