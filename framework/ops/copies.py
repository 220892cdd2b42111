"""Views as tensors of their own memory: ``fw.permute_copy(x, dims)`` is ``fw.permute(x, dims).clone()``."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..dtypes import DType
from ..tensor import Tensor
from .pointwise.complex_numbers import view_as_complex, view_as_real
from .record.aliases import view_maker
from .record.args import one_dim, tensor_arg
from .record.public import bare, public
from .shape.broadcast import _expand_method as expand
from .shape.diagonals import diagonal
from .shape.slices import select, slice_along
from .shape.split import split_with_sizes, unbind, unsafe_split
from .shape.view import permute, reshape, squeeze, t, transpose, unsqueeze, view
from .shape.windows import unfold
from .write.strided import as_strided


def _copied(found: Any) -> Any:
    return tuple([part.clone() for part in found]) if isinstance(found, tuple) else found.clone()


# pieces of a length along a dimension, or positions where that is 0, of a tensor in no graph
_pieces_copied = view_maker("copied_pieces")


def _copy_form(function: Callable, example: str, shown: str, base: str = "",
               length: Callable | None = None) -> Callable:
    """``name_copy``; example: the arguments of ``fw.name_copy(x, ...)`` with x = [[1, 2], [3, 4]].

    length: gives the dimension and the length of pieces, of a call's arguments.
    """
    base = base or function.__name__
    name = f"{base}_copy"
    plain = bare(function)

    @wraps(plain, updated=())  # its further keywords are added anew
    def form(input: Tensor, *args: Any, **settings: Any) -> Any:
        if length is not None and not settings:
            out = _pieces_copied(input, *length(*args))
            if out is not NotImplemented:
                return out
        return _copied(plain(tensor_arg(input, name), *args, **settings))
    form.__name__ = form.__qualname__ = name
    form.__module__ = __name__
    form.__doc__ = (f"``{base}`` as a tensor of its own memory (tensors, where those are views)."
                    f"\n\n    >>> x = fw.tensor([[1.0, 2.0], [3.0, 4.0]])\n"
                    f"    >>> fw.{name}(x{example})\n    {shown}\n    ")
    return public(out=True)(form)


as_strided_copy = _copy_form(as_strided, ", (2,), (3,)", "tensor([1., 4.])")
diagonal_copy = _copy_form(diagonal, "", "tensor([1., 4.])")
expand_copy = _copy_form(expand, "[0], (2, 2)", "tensor([[1., 2.],\n            [1., 2.]])", "expand")
permute_copy = _copy_form(permute, ", (1, 0)", "tensor([[1., 3.],\n            [2., 4.]])")
select_copy = _copy_form(select, ", 1, 0", "tensor([1., 3.])")
split_copy = _copy_form(unsafe_split, ", 1", "(tensor([[1., 2.]]), tensor([[3., 4.]]))", "split",
                        length=lambda size=None, dim=0, *_: (dim, size or None))
split_with_sizes_copy = _copy_form(split_with_sizes, ", [1, 1]", "(tensor([[1., 2.]]), tensor([[3., 4.]]))")
squeeze_copy = _copy_form(squeeze, "[:1]", "tensor([1., 2.])")
t_copy = _copy_form(t, "", "tensor([[1., 3.],\n            [2., 4.]])")
transpose_copy = _copy_form(transpose, ", 0, 1", "tensor([[1., 3.],\n            [2., 4.]])")
unbind_copy = _copy_form(unbind, "", "(tensor([1., 2.]), tensor([3., 4.]))",
                         length=lambda dim=0, *_: (dim, 0))
unfold_copy = _copy_form(unfold, "[0], 0, 1, 1", "tensor([[1.],\n            [2.]])")
unsqueeze_copy = _copy_form(unsqueeze, "[0], 0", "tensor([[1., 2.]])")
view_as_complex_copy = _copy_form(view_as_complex, "", "tensor([1.+2.j, 3.+4.j])")
view_as_real_copy = _copy_form(view_as_real, "[0].to(fw.complex64)",
                               "tensor([[1., 0.],\n            [2., 0.]])")


@public(out=True, also="dtype=size")
def view_copy(input: Tensor, *size: Any) -> Tensor:
    """``reshape`` as a tensor of its own memory, or, given a dtype, the bytes read as that.

    >>> fw.view_copy(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), (4,))
    tensor([1., 2., 3., 4.])
    """
    x = tensor_arg(input, "view_copy")
    if len(size) == 1 and isinstance(size[0], DType):
        return _copied(view(x, size[0]))
    return _copied(reshape(x, *size))


@public(out=True, alias="detach_copy")
def alias_copy(input: Tensor) -> Tensor:
    """The tensor in memory of its own, as ``clone`` makes it; gradients flow under both names, as in PyTorch.

    >>> fw.alias_copy(fw.tensor([1.0]))
    tensor([1.])
    """
    return tensor_arg(input, "alias_copy").clone()  # type: ignore[attr-defined]


@public(out=True)
def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
               step: int = 1) -> Tensor:
    """The positions ``start:end:step`` along ``dim`` in memory of their own.

    >>> fw.slice_copy(fw.arange(5), 0, 1, 5, 2)
    tensor([1, 3])
    """
    at = one_dim(dim, tensor_arg(input, "slice_copy").ndim, "slice_copy")
    if step <= 0:
        raise ValueError(f"slice_copy: step must be positive, got {step}")
    return slice_along(input, at, slice(start, end, step)).clone()  # type: ignore[attr-defined]
