"""``norm`` of the main namespace: of vectors by their elements, of matrices by their singular values."""

from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import tensor_arg
from ..record.public import public
from ..reduce.vector_norm import norm_op, p_norm
from .matrix_norm import matrix_norm


def _of_vectors(input: Tensor, p: Any = "fro", *others: Any, **settings: Any) -> str | None:
    return "singular values, which may not converge" if p == "nuc" else None


@public(method=True, op=norm_op, out=True, deferred=_of_vectors)
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, *,
         dtype: Any = None) -> Tensor:
    """The norm of order ``p`` over ``dim`` of the elements as a vector; "fro" is ``p=2``.

    "nuc" is the sum of the singular values of a matrix, or of those in the two dimensions ``dim``. See
    ``linalg.vector_norm`` and ``linalg.matrix_norm``. Raises ValueError for another word.

    >>> fw.norm(fw.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    if p == "nuc":
        if dim is None and tensor_arg(input, "norm").ndim != 2:
            raise ShapeError(f"norm: p='nuc' without dim wants a matrix, got shape {list(input.shape)}; name "
                             f"its two dimensions in dim")
        return matrix_norm(input, "nuc", (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f"norm: p must be a number, 'fro' or 'nuc', got {p!r}")
    return p_norm(input, 2 if isinstance(p, str) or p is None else p, dim, keepdim, dtype, "norm")
