"""Arguments that many ops share: dims, sizes, and the messages for wrong ones."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _native
from ...errors import DTypeError, ShapeError, kind_of
from ...tensor import Tensor


def tensor_arg(x: Any, op: str, name: str = "input") -> Tensor:
    """``x`` if it is a Tensor, else a TypeError that names the argument."""
    if isinstance(x, Tensor):
        return x
    raise TypeError(f"{op}: argument '{name}' must be a Tensor, got {kind_of(x)}; convert it "
                    f"with framework.tensor(...)")


_OPERANDS = (Tensor, bool, int, float, complex, np.generic, np.ndarray)


def is_foreign(*operands: Any) -> bool:
    """Whether an operand of an operator is of a kind unknown to tensors; Python then asks the other
    operand."""
    return not all(isinstance(x, _OPERANDS) for x in operands)


def real_arg(x: Any, op: str, name: str = "input") -> Tensor:
    """``tensor_arg``, with a DTypeError for complex tensors, for ops that need an order of the numbers."""
    if tensor_arg(x, op, name)._array.dtype.kind == "c":
        raise DTypeError(f"{op}: argument '{name}' must be real, got {x.dtype}; for complex numbers {op} "
                         f"is not defined")
    return x


def number_arg(x: Any, op: str, name: str) -> Any:
    """A setting as a number: a 0-dim tensor counts as the number in it, if no gradient is to flow there."""
    if not isinstance(x, Tensor):
        return x
    if x.ndim or x.requires_grad:
        raise TypeError(f"{op}: {name} must be a number, or a tensor of one without a gradient; got "
                        f"shape {list(x.shape)}, requires_grad={x.requires_grad}; pass {name}.item()")
    return x.item()


def one_dim(dim: Any, ndim: int, op: str, name: str = "dim") -> int:
    """A dimension as a number in [0, ndim); a 0-dim tensor counts as one dimension."""
    if type(dim) is int:  # the usual case, and the cheapest test
        if 0 <= dim < ndim:
            return dim
        if -ndim <= dim < 0:
            return dim + ndim
    if isinstance(dim, (bool, np.ndarray)) or not hasattr(dim, "__index__"):
        raise TypeError(f"{op}: {name} must be an int, got {type(dim).__name__}")
    dim, reach = dim.__index__(), max(ndim, 1)
    if not -reach <= dim < reach:
        raise IndexError(f"{op}: {name}={dim} is out of range for a tensor of {ndim} dimensions; "
                         f"it must be in [{-reach}, {reach - 1}]")
    return dim % reach


_ALL_DIMS = tuple([tuple(range(ndim)) for ndim in range(8)])


def many_dims(dim: Any, ndim: int, op: str, name: str = "dim") -> tuple[int, ...]:
    """Dimensions as a sorted tuple: all for None (and, as in PyTorch, for an empty tuple)."""
    if type(dim) is int and -ndim <= dim < ndim:  # nearly always one of these two, and quicker to know
        return (dim if dim >= 0 else dim + ndim,)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return _ALL_DIMS[ndim] if ndim < len(_ALL_DIMS) else tuple(range(ndim))
    if not isinstance(dim, (tuple, list)):
        at = one_dim(dim, ndim, op, name)
        return (at,) if ndim else ()
    found = tuple(sorted([one_dim(d, ndim, op, name) for d in dim]))
    if len(set(found)) != len(found):
        raise ShapeError(f"{op}: {name}={tuple(dim)} names a dimension twice")
    return found if ndim else ()


# what ``size_args`` gives where nothing is to be said; with ``sizes_of`` where none is negative, either
_ints_of, sizes_of = (getattr(_native.module, name, lambda sizes: None) for name in ("ints_of", "sizes_of"))


def size_args(sizes: tuple, op: str, name: str = "size") -> tuple[int, ...]:
    """``f(2, 3)``, ``f((2, 3))`` and ``f([2, 3])`` alike as a tuple of ints."""
    usual: tuple[int, ...] | None = _ints_of(sizes)
    if usual is not None:
        return usual
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    for s in sizes:
        if type(s) is not int:
            break
    else:
        return sizes
    for s in sizes:
        if isinstance(s, (bool, np.ndarray)) or not hasattr(s, "__index__"):
            raise TypeError(f"{op}: {name} must be ints, found {type(s).__name__}: {s!r}")
    return tuple([s.__index__() for s in sizes])


def ntuple(value: Any, n: int, op: str, name: str) -> tuple[int, ...]:
    """An int, or a sequence of n ints (or of one), as a tuple of n."""
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return (value.__index__(),) * n
    if (isinstance(value, Sequence) and not isinstance(value, str) and len(value) in (1, n)
            and all(hasattr(v, "__index__") for v in value)):
        return tuple(int(v) for v in value) * (n if len(value) == 1 else 1)
    raise TypeError(f"{op}: {name} must be an int or {n} ints, got {value!r}")


# whether all are tensors of one dtype; not True, too, where that is not known
of_one_dtype: Callable = getattr(_native.module, "of_one_dtype", lambda *tensors: NotImplemented)


def floating(x: Any, op: str, name: str = "input") -> None:
    """Raise unless the tensor (or Meta) ``x`` is floating or complex."""
    if x.dtype.category < 2:
        raise DTypeError(f"{op}: argument '{name}' must be floating, got {x.dtype}; convert it, "
                         f"e.g. {name}.float()")


if hasattr(_native.module, "before"):  # in C++, where these are asked for what is unusual
    tensor_arg = _native.module.before("tensor_argument", tensor_arg)
    real_arg = _native.module.before("real_argument", real_arg)
    number_arg = _native.module.before("number_argument", number_arg)
    one_dim = _native.module.before("one_dimension", one_dim)
    many_dims = _native.module.before("dimensions", many_dims)
