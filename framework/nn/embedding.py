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


class Embedding(Module):
    """``y[...] = weight[x[...]]``: x (...) of integers, weight (num, dim) from N(0, 1), y (..., dim).

    padding_idx: a row that starts at 0 and receives no gradient. max_norm: rows looked up are scaled
    down in place to that norm. sparse is accepted, gradients are dense.

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
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"Embedding: padding_idx={padding_idx} is out of range for "
                                 f"num_embeddings={num_embeddings}")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            table = empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if _weight.shape != (num_embeddings, embedding_dim):
                raise ShapeError(f"Embedding: a weight of shape {list(_weight.shape)} does not fit "
                                 f"[{num_embeddings}, {embedding_dim}]")
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draw the table anew: N(0, 1), zeros at padding_idx."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)  # type: ignore[index]

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
