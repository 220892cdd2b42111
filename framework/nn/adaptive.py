"""A softmax over very many classes that computes the rare ones only where they are needed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..creation import zeros
from ..errors import ShapeError
from ..ops.shape.join import cat
from ..tensor import Tensor
from . import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class ASMoutput(NamedTuple):
    """What AdaptiveLogSoftmaxWithLoss computes."""

    output: Tensor
    loss: Tensor


_ASMoutput = ASMoutput


class AdaptiveLogSoftmaxWithLoss(Module):
    """log-softmax over classes that are sorted by frequency, the most frequent first.

    The first ``cutoffs[0]`` classes share a head with one entry for each cluster of rarer ones; the classes
    from one cutoff to the next are such a cluster, whose log-probabilities are added to those of its entry.
    The i-th cluster works on ``in_features / div_value**(i+1)`` features.

    input: (N, in_features) or (in_features), target: (N) or a number, output: the log-probability of each
    target, shaped like it; loss: their negative mean. E. Grave et al., "Efficient softmax approximation for
    GPUs", 2017.

    >>> layer = fw.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10])
    >>> out = layer(fw.ones(3, 8), fw.tensor([0, 5, 19]))
    >>> out.output.shape, layer.predict(fw.ones(3, 8)).shape
    ((3,), (3,))
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("AdaptiveLogSoftmaxWithLoss: cutoffs must not be empty")
        if cutoffs != sorted(set(cutoffs)) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 \
                or any(int(c) != c for c in cutoffs):
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss: cutoffs must be growing whole numbers from 1 to "
                             f"n_classes - 1 = {n_classes - 1}, each once, got {cutoffs}")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(
                Linear(in_features, width, bias=False, **place),
                Linear(width, self.cutoffs[i + 1] - self.cutoffs[i], bias=False, **place)))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> ASMoutput:
        """(log-probability of each target, their negative mean)."""
        x: Any = input
        classes: Any = target
        name = type(self).__name__
        if classes.ndim == 1:
            if x.ndim != 2 or x.shape[0] != classes.shape[0]:
                raise ShapeError(f"{name}: wanted input (N, {self.in_features}) for target (N), got "
                                 f"{list(x.shape)} and {list(classes.shape)}")
        elif classes.ndim == 0:
            if x.ndim != 1:
                raise ShapeError(f"{name}: wanted input ({self.in_features},) for a 0-dim target, got "
                                 f"{list(x.shape)}")
        else:
            raise ShapeError(f"{name}: target must have at most 1 dimension, got {list(classes.shape)}")
        alone = classes.ndim == 0
        if alone:
            x, classes = x.unsqueeze(0), classes.unsqueeze(0)
        if classes.numel() and not 0 <= int(classes.min()) <= int(classes.max()) < self.n_classes:
            raise RuntimeError(f"{name}: targets must be from 0 to {self.n_classes - 1}, got "
                               f"{int(classes.min())} to {int(classes.max())}")
        entry = classes.clone()  # of the head: the class itself, or that of its cluster
        added: Any = zeros(classes.shape, dtype=x.dtype, device=x.device)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((classes >= low) & (classes < high)).nonzero().squeeze(1)
            if rows.numel():
                inside = F.log_softmax(self.tail[i](x.index_select(0, rows)), dim=1)
                own = (classes.index_select(0, rows) - low).unsqueeze(1)
                added = added.index_copy(0, rows, inside.gather(1, own).squeeze(1))
                entry.index_fill_(0, rows, self.shortlist_size + i)
        found = added + F.log_softmax(self.head(x), dim=1).gather(1, entry.unsqueeze(1)).squeeze(1)
        loss = (-found).mean()
        return ASMoutput(found.squeeze(0) if alone else found, loss)

    def _all(self, x: Any, head: Any) -> Any:
        scores = F.log_softmax(head, dim=1)
        first = self.shortlist_size
        parts = [scores[:, :first]]
        parts += [F.log_softmax(part(x), dim=1) + scores[:, first + i].unsqueeze(1)
                  for i, part in enumerate(self.tail)]
        return cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: (N, in_features) -> (N, n_classes)."""
        return self._all(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row: (N, in_features) -> (N); rare ones are only looked at where
        the head prefers their cluster."""
        x: Any = input
        head = self.head(x)
        best = head.argmax(1)
        rare = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rare.numel() == x.shape[0]:
            return self._all(x, head).argmax(1)
        if rare.numel():
            some = x.index_select(0, rare)
            best = best.index_copy(0, rare, self._all(some, head.index_select(0, rare)).argmax(1))
        return best
