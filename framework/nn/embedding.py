"""Embedding: a table of vectors looked up by number."""

from typing import Any

from ..autograd.mode import no_grad
from ..creation import empty
from ..errors import ShapeError
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


def _padding_row(padding_idx: int | None, rows: int, name: str) -> int | None:
    """``padding_idx`` counted from 0, if it is a row of the table."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise ValueError(f"{name}: padding_idx={padding_idx} is out of range for num_embeddings={rows}")
    return padding_idx % rows


class _Table(Module):
    """A layer with a table of vectors."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    weight: Parameter

    def _set_table(self, given: Tensor | None, device: Any, dtype: Any, trained: bool = True) -> None:
        """Let ``weight`` be the table given, or a new one."""
        shape = (self.num_embeddings, self.embedding_dim)
        if given is not None and given.shape != shape:
            raise ShapeError(f"{type(self).__name__}: a weight of shape {list(given.shape)} does not fit "
                             f"{list(shape)}")
        table = empty(shape, device=device, dtype=dtype) if given is None else given
        self.weight = Parameter(table, requires_grad=trained)
        if given is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew: N(0, 1), zeros at padding_idx."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)  # type: ignore[index]


class Embedding(_Table):
    """``y[...] = weight[x[...]]``: x (...) of integers, weight (num, dim) from N(0, 1), y (..., dim).

    padding_idx: a row that starts at 0 and receives no gradient. max_norm: rows looked up are scaled
    down in place to that norm. sparse: the gradient of weight is a sparse tensor of the rows looked up, for
    SparseAdam, SGD or Adagrad.

    >>> fw.nn.Embedding(10, 3)(fw.tensor([[1, 2], [4, 5]])).shape
    (2, 2, 3)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
                 _freeze: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _padding_row(padding_idx, num_embeddings, "Embedding")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._set_table(_weight, device, dtype, not _freeze)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                        max_norm: float | None = None, norm_type: float = 2.0,
                        scale_grad_by_freq: bool = False, sparse: bool = False) -> "Embedding":
        """An Embedding over a given table (num, dim), not trained unless ``freeze=False``.

        >>> e = fw.nn.Embedding.from_pretrained(fw.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> e(fw.tensor(1))
        tensor([3., 4.])
        """
        if not isinstance(embeddings, Tensor) or embeddings.ndim != 2:
            what = list(embeddings.shape) if isinstance(embeddings, Tensor) else type(embeddings).__name__
            raise ShapeError(f"Embedding.from_pretrained: embeddings must be a matrix, got {what}")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        """The rows at the numbers ``input``."""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        """The settings that differ from the defaults."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in (("padding_idx", None), ("max_norm", None), ("norm_type", 2.0),
                              ("scale_grad_by_freq", False), ("sparse", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows of weight (num, dim): x (B, n), or (N) with offsets (B).

    mode: "sum", "mean" or "max". padding_idx: a row that is left out of the bags. The other settings are
    those of Embedding; include_last_offset: the last offset is where the last bag ends.

    >>> bags = fw.nn.EmbeddingBag.from_pretrained(fw.tensor([[1.0], [2.0], [4.0]]), mode="sum")
    >>> bags(fw.tensor([0, 1, 2]), fw.tensor([0, 1]))
    tensor([[1.],
            [6.]])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                 sparse: bool = False, _weight: Tensor | None = None, include_last_offset: bool = False,
                 padding_idx: int | None = None, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"EmbeddingBag: mode must be 'sum', 'mean' or 'max', got {mode!r}")
        self.padding_idx = _padding_row(padding_idx, num_embeddings, "EmbeddingBag")
        self._set_table(_weight, device, dtype)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                        sparse: bool = False, include_last_offset: bool = False,
                        padding_idx: int | None = None) -> "EmbeddingBag":
        """An EmbeddingBag over a given table (num, dim), not trained unless ``freeze=False``."""
        if not isinstance(embeddings, Tensor) or embeddings.ndim != 2:
            what = list(embeddings.shape) if isinstance(embeddings, Tensor) else type(embeddings).__name__
            raise ShapeError(f"EmbeddingBag.from_pretrained: embeddings must be a matrix, got {what}")
        rows, columns = embeddings.shape
        bag = cls(rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
                  include_last_offset, padding_idx)
        bag.weight.requires_grad_(not freeze)
        return bag

    def forward(self, input: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:
        """The bags of the rows at the numbers ``input``, (B, dim)."""
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type,
                               self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
                               self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        """The settings that differ from the defaults."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in (("max_norm", None), ("norm_type", 2.0), ("scale_grad_by_freq", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
