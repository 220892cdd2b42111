"""Array: a Tensor whose operators follow the standard, and the two steps every function takes.

A function first brings its operands together (``together``), then calls the op, then gives the result as an
``Array`` (``give``). No element is touched in between, and whatever is recorded stays recorded.
"""

from typing import Any

import numpy as np

from .. import dtypes
from ..errors import DTypeError
from ..ops.convert.cast import to
from ..ops.record.arming import subclass
from ..ops.shape.arrange import flip
from ..tensor import Tensor, wrap

SCALARS = (bool, int, float, complex)
OPERANDS = (Tensor, *SCALARS, np.ndarray, np.generic)


class Size(int):
    """The number of elements, as the standard's ``x.size``; ``x.size()`` and ``x.size(0)`` are PyTorch's."""

    shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]


class Array(Tensor):
    """A Tensor under the rules of the array API standard.

    It differs from a plain Tensor where the standard differs from PyTorch: 0-dim arrays count fully in dtype
    promotion, ``//`` follows the standard at infinities, slices may have negative steps, and an index array
    may have any integer dtype. Methods are PyTorch's. The functions of ``framework.array_api`` take both and
    give Arrays; ``asarray`` makes one over a Tensor's memory, in the same graph.

    >>> x = fw.array_api.asarray(fw.tensor([1.0, 2.0, 3.0], requires_grad=True))
    >>> x[::-1].tolist(), x.requires_grad
    ([3.0, 2.0, 1.0], True)
    """

    __slots__ = ()
    __hash__ = Tensor.__hash__

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module ``framework.array_api``."""
        return Tensor.__array_namespace__(self, api_version=api_version)  # type: ignore[attr-defined]

    @property
    def size(self) -> Size:  # type: ignore[override]
        size = Size(self.numel())
        size.shape = self.shape
        return size

    def __getitem__(self, key: Any) -> "Array":
        key, axes = forward(key, self)
        out = Tensor.__getitem__(self, key)  # type: ignore[attr-defined]
        return give(flip(out, axes) if axes else out, self)

    def __setitem__(self, key: Any, value: Any) -> None:
        key, axes = forward(key, self)
        if axes and isinstance(value, Tensor) and value.ndim:
            part: Any = Tensor.__getitem__(self, key)  # type: ignore[attr-defined]
            value = flip(value.expand(part.shape), axes)  # type: ignore[attr-defined]
        Tensor.__setitem__(self, key, value)  # type: ignore[attr-defined]


def give(result: Tensor, *inputs: Any) -> Array:
    """An op's result as an Array; a view of it where it is one of the inputs, which stays what it is."""
    if type(result) is not Array:
        if type(result) is not Tensor or any(result is x for x in inputs):
            result = Tensor.__getitem__(result, ...)  # type: ignore[attr-defined]
        return subclass(result, Array)
    return result


def together(name: str, *operands: Any) -> list[Any]:
    """The operands with all arrays in their common dtype; Python numbers stay, and are weak."""
    arrays = [x for x in operands if isinstance(x, Tensor)]
    if not arrays:
        operands = tuple(wrap(x) if isinstance(x, np.ndarray) else x for x in operands)
        arrays = [x for x in operands if isinstance(x, Tensor)]
    if not arrays:
        raise TypeError(f"{name}: one operand at least must be an array, got "
                        f"{', '.join(type(x).__name__ for x in operands)}; convert one with asarray(...)")
    first = arrays[0].dtype
    if len(arrays) == len(operands) and all(x.dtype is first for x in arrays):
        return list(operands)
    return _promoted(name, operands)


def _promoted(name: str, operands: tuple) -> list[Any]:
    ready = []
    for i, x in enumerate(operands):
        if isinstance(x, (np.ndarray, np.generic)):
            x = wrap(np.asarray(x)) if x.ndim else x.item()
        if not isinstance(x, (Tensor, *SCALARS)):
            raise TypeError(f"{name}: argument {i + 1} must be an array or a number, got {type(x).__name__}")
        ready.append(x)
    dtype = common_dtype([x for x in ready if isinstance(x, Tensor)])
    return [to(x, dtype) if isinstance(x, Tensor) else x for x in ready]


def common_dtype(arrays: list) -> dtypes.DType:
    """The dtype of a result of these arrays, each of them counting in full whatever its shape."""
    dtype = arrays[0].dtype
    for x in arrays[1:]:
        dtype = dtypes.promote_types(dtype, x.dtype)
    return dtype


def array_arg(x: Any, name: str, argument: str = "x") -> Tensor:
    """``x`` if it is an array, else a TypeError that names the argument."""
    if isinstance(x, Tensor):
        return x
    raise TypeError(f"{name}: argument '{argument}' must be an array, got {type(x).__name__}; convert it "
                    f"with asarray(...)")


def forward(key: Any, x: Tensor) -> tuple[Any, tuple[int, ...]]:
    """A key without negative steps, and the axes of the result that must be turned round for it."""
    keys = [_integers(k) for k in (key if isinstance(key, tuple) else (key,))]
    if not any(isinstance(k, slice) and k.step is not None and k.step.__index__() < 0 for k in keys):
        return (tuple(keys) if isinstance(key, tuple) else keys[0]), ()
    if any(isinstance(k, (Tensor, np.ndarray, list)) for k in keys):
        raise IndexError("index: a negative step cannot be mixed with index arrays; index in two steps")
    given = sum(k is not None and k is not Ellipsis for k in keys)
    axis = place = 0  # the axis of x that the next key is for, the axis of the result it makes
    turned = []
    for i, k in enumerate(keys):
        if k is Ellipsis:
            axis, place = axis + x.ndim - given, place + x.ndim - given
        elif k is None:
            place += 1
        elif isinstance(k, slice):
            if k.step is not None and k.step.__index__() < 0 and axis < x.ndim:
                keys[i] = _upwards(k, x.shape[axis])
                turned.append(place)
            axis, place = axis + 1, place + 1
        else:
            axis += 1
    return tuple(keys), tuple(turned)


def _upwards(k: slice, size: int) -> slice:
    """The slice that takes the same elements in rising order."""
    taken = range(size)[k]
    return slice(taken[-1], taken[0] + 1, -taken.step) if len(taken) else slice(0, 0)


def _integers(k: Any) -> Any:
    """An index array of any integer dtype as int64, the one PyTorch's rules take without question."""
    if isinstance(k, Tensor) and k.dtype.category == dtypes.INTEGER:
        return to(k, dtypes.int64)
    if isinstance(k, Tensor) and k.dtype.category > dtypes.INTEGER:
        raise DTypeError(f"index: an index array must be integer or bool, got {k.dtype}")
    return k


def named(function: Any, name: str, module: str, line: str) -> Any:
    """A function made by another, as one that was written out shows itself."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = line
    return function
