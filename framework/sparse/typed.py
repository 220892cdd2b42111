"""``sparse.FloatTensor(indices, values, size)`` and its kin, from before dtypes; and what is refused."""

from typing import Any, NoReturn

from ..dtypes import DType
from ..errors import DTypeError
from ..layouts import sparse_coo
from ..tensor import Tensor
from ..typed import KINDS
from .make import sparse_coo_tensor


class SparseType(type):
    """The class of sparse.FloatTensor ...: a dtype, by which isinstance asks.

    >>> x = fw.sparse.FloatTensor(fw.tensor([[0, 2]]), fw.tensor([1.0, 2.0]), (3,))
    >>> x.to_dense(), isinstance(x, fw.sparse.FloatTensor), isinstance(x, fw.sparse.LongTensor)
    (tensor([1., 0., 2.]), True, False)
    """

    dtype: DType

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x.layout is sparse_coo and x.dtype is cls.dtype  # type: ignore[attr-defined]

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if args and isinstance(args[0], Tensor) and len(args) > 1:
            indices, values = args[:2]
            if values.dtype is not cls.dtype:
                raise DTypeError(f"sparse.{cls.__name__}: wanted values of {cls.dtype}, got {values.dtype}")
            return sparse_coo_tensor(indices, values, *args[2:], device=device)
        size: Any = args[0] if len(args) == 1 and not isinstance(args[0], int) else args or (0,)
        return sparse_coo_tensor(tuple(size), dtype=cls.dtype, device=device)


TYPES: dict[str, Any] = {
    f"{name}Tensor": SparseType(
        f"{name}Tensor",
        (),
        {
            "dtype": dtype,
            "__module__": "framework.sparse",
            "__doc__": f"Sparse tensors of {dtype}: isinstance, and ``(indices, values, size)``.",
        },
    )
    for name, dtype in KINDS.items()
    if not dtype.is_complex
}


class SparseSemiStructuredTensor(Tensor):
    """The class of tensors with two zeros in every four: there are none here."""


def to_sparse_semi_structured(original_tensor: Tensor, transposed: bool = False) -> NoReturn:
    """Refused: products with two zeros in every four are faster on NVIDIA's sparse cores only."""
    raise RuntimeError(
        "to_sparse_semi_structured: products with two zeros in every four elements are not there; "
        "x.to_sparse_csr() keeps what is not 0 of any pattern"
    )

