"""Elements without repetition."""

from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import one_dim, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.join import cat


def _unique_kernel(xp: Any, x: Any, *, dim: int | None) -> tuple:
    values, inverse, counts = xp.unique(x, return_inverse=True, return_counts=True, axis=dim,
                                        equal_nan=False)
    shape = x.shape if dim is None else (x.shape[dim],)
    return values, inverse.reshape(shape).astype("int64"), counts.astype("int64")


# no shape rule can tell how many elements differ: the record is private
unique_op = Op("_unique", "x", kernel=_unique_kernel, outputs="values inverse counts", differentiable=1,
               vjp="undefined")


@public(method=True, op=unique_op)
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The different elements, sorted; with ``dim``, the different slices along it.

    return_inverse: also, for each element, where its value is in the result. return_counts: also how
    often each occurs. Every nan counts as different. Backward through it raises.

    >>> fw.unique(fw.tensor([3, 1, 3]))
    tensor([1, 3])
    >>> fw.unique(fw.tensor([3, 1, 3]), return_counts=True)[1]
    tensor([1, 2])
    """
    at = None if dim is None else one_dim(dim, tensor_arg(input, "unique").ndim, "unique")
    if at is not None and not input.ndim:
        raise ShapeError("unique: dim is for a tensor with dimensions, this one is 0-dim")
    values, inverse, counts = unique_op.run(input, dim=at)
    result = (values,) + ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return values if len(result) == 1 else result


firsts = Op("_unique_consecutive", "x index", vjp="undefined", moves=True,
            kernel=lambda xp, x, index, *, dim: xp.take(x, index, dim),
            infer=lambda x, index, *, dim: Meta(x.shape[:dim] + index.shape + x.shape[dim + 1:], x.dtype))


@public(method=True)
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The elements (or slices along ``dim``) without those that equal the one before them.

    return_inverse: also where each went; return_counts: also how many each stands for. Backward
    through it raises.

    >>> fw.unique_consecutive(fw.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    x: Any = tensor_arg(input, "unique_consecutive")
    at = 0 if dim is None else one_dim(dim, x.ndim, "unique_consecutive")
    shape = x.shape
    x = x.reshape(-1) if dim is None else x
    n = x.shape[at]
    rows = x.movedim(at, 0).reshape(n, -1) if x.numel() else x.new_zeros((n, 1))
    new = (rows[1:] != rows[:-1]).any(1).long()
    group = cat([new.new_zeros((min(n, 1),)), new.cumsum(0)], 0)
    first = cat([new.new_ones((min(n, 1),)), new], 0).nonzero().reshape(-1)
    found = [firsts.run(x, first, dim=at)]
    if return_inverse:
        found.append(group.reshape(shape) if dim is None else group)
    if return_counts:
        found.append(group.bincount() if n else group)
    return found[0] if len(found) == 1 else tuple(found)
