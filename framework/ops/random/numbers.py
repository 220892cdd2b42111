"""Tensors of random numbers: fresh ones, and in the shape of others.

No gradient flows through a draw. Every function takes ``generator=`` (default: the generator of the
device), and the same seed gives the same uniform and normal numbers on each (see ``framework/random.py``).
"""

from functools import cache
from typing import Any

import numpy as np

from ...backends import on_device
from ...backends.native import converted, native_or
from ...device import CPU, Device, as_device
from ...dtypes import DType, as_dtype, float32, get_default_dtype, int64
from ...errors import DTypeError, ShapeError
from ...memory_formats import MemoryFormat
from ...random import (
    Generator,
    drawn_at_once,
    integers_array,
    integers_at_once,
    normal_array,
    permutation_array,
    uniform_array,
)
from ...seam import Maker
from ...tensor import Tensor, made, wrap
from ..convert.memory_format import made_like
from ..record.args import size_args, sizes_of, tensor_arg
from ..record.public import check_out, public
from . import cuda


def _sizes(size: tuple, op: str) -> tuple[int, ...]:
    shape = size_args(size, op)
    if shape and min(shape) < 0:
        raise ShapeError(f"{op}: sizes must not be negative, got {list(shape)}")
    return shape


def _float_kind(dtype: Any, op: str) -> DType:
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    if kind.category < 2:
        raise DTypeError(f"{op}: dtype must be floating, got {kind}; use randint for integers")
    return kind


def _target(device: Any) -> Device:
    return device if isinstance(device, Device) else as_device(device)


RAND = Maker("rand", (), constant=False, random=True)
RANDN = RAND._replace(name="randn")
RANDINT = RAND._replace(name="randint")
RANDPERM = RAND._replace(name="randperm")


def _finish(array: Any, maker: Maker, out: Tensor | None, requires_grad: bool) -> Tensor:
    result = made(maker, array)
    if out is not None:
        return check_out(out, result, maker.name)
    return result.requires_grad_(requires_grad) if requires_grad else result


def _at_once(function: str, maker: Maker, size: tuple) -> Tensor | None:
    """A tensor of the usual call, of which nothing but the size is said: float32 on the CPU."""
    if get_default_dtype() is not float32 or as_device(None) is not CPU:
        return None
    array = drawn_at_once(function, sizes_of(size) or _sizes(size, maker.name), False)
    return None if array is None else made(maker, array)


def _kind_and_target(dtype: Any, device: Any, out: Tensor | None) -> tuple[Any, Device]:
    """With ``out=`` and nothing else said, its dtype and device decide."""
    if out is not None:
        tensor_arg(out, "random", "out")
        return out.dtype if dtype is None else dtype, out.device if device is None else _target(device)
    return dtype, _target(device)


# -- fresh tensors ---------------------------------------------------------------------------------


@public()
def rand(*size: Any, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
         device: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers uniform in [0, 1); 1 never occurs.

    Raises DTypeError unless dtype is floating or complex.

    >>> fw.rand(2, 3).shape
    (2, 3)
    """
    if generator is dtype is device is out is None and not requires_grad \
            and (at_once := _at_once("philox_uniform", RAND, size)) is not None:
        return at_once
    dtype, target = _kind_and_target(dtype, device, out)
    array = uniform_array(_sizes(size, "rand"), _float_kind(dtype, "rand").numpy, target, generator)
    return _finish(array, RAND, out, requires_grad)


@public()
def randn(*size: Any, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
          device: Any = None, requires_grad: bool = False) -> Tensor:
    """Standard normal numbers.

    Raises DTypeError unless dtype is floating or complex.

    >>> fw.randn((2, 3), dtype=fw.float64).dtype
    framework.float64
    """
    if generator is dtype is device is out is None and not requires_grad \
            and (at_once := _at_once("philox_normal", RANDN, size)) is not None:
        return at_once
    dtype, target = _kind_and_target(dtype, device, out)
    array = normal_array(_sizes(size, "randn"), _float_kind(dtype, "randn").numpy, target, generator)
    return _finish(array, RANDN, out, requires_grad)


@public()
def randint(low: int = 0, high: Any = None, size: Any = None, *, generator: Generator | None = None,
            out: Tensor | None = None, dtype: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:
    """Integers uniform in [low, high): ``randint(high, size)`` or ``randint(low, high, size)``.

    Raises ValueError for an empty range, or one that does not fit the dtype (int64 by default).

    >>> fw.randint(3, 4, (2,))
    tensor([3, 3])
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None:
        raise TypeError("randint: no size was given; write randint(high, size) or "
                        "randint(low, high, size)")
    if generator is dtype is device is out is None and not requires_grad and type(low) is type(high) is int \
            and as_device(None) is CPU:
        array = integers_at_once(low, high, _sizes((size,), "randint"))
        if array is not None:
            return made(RANDINT, array)
    if generator is dtype is device is None and type(out) is Tensor and out._array.shape == size \
            and type(low) is type(high) is int and out._array.dtype == np.int64 and low < high \
            and drawn_at_once("into_integers", out, low, high - low, "randint") is out:
        return out
    dtype, target = _kind_and_target(dtype, device, out)
    kind = int64 if dtype is None else as_dtype(dtype)
    low, high = _range(low, high, kind, "randint")
    array = integers_array(low, high, _sizes((size,), "randint"), kind.numpy, target, generator)
    return _finish(array, RANDINT, out, requires_grad)


@cache
def _reach(dtype: np.dtype) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _range(low: Any, high: Any, kind: DType, op: str) -> tuple[int, int]:
    if type(low) is not int or type(high) is not int:
        low, high = (int(v.item() if isinstance(v, (Tensor, np.generic)) else v) for v in (low, high))
    if low >= high:
        raise ValueError(f"{op}: wanted low < high, got low={low}, high={high} (high is not included)")
    if kind.category == 0:
        first, last = 0, 1
    elif kind.category == 1:
        first, last = _reach(kind.numpy)
    elif kind.is_complex:
        raise DTypeError(f"{op}: integers cannot be drawn as {kind}")
    else:
        first, last = -(1 << 63), (1 << 63) - 1
    if low < first or high - 1 > last:
        raise ValueError(f"{op}: the range [{low}, {high}) does not fit {kind}, which holds "
                         f"{first} to {last}")
    return low, high


@public()
def randperm(n: int, *, generator: Generator | None = None, out: Tensor | None = None,
             dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The numbers 0 to n - 1 in random order, int64 by default.

    >>> sorted(fw.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"randperm: n must be an int, got {type(n).__name__}")
    n = n.__index__()
    if n < 0:
        raise ValueError(f"randperm: n must not be negative, got {n}")
    if generator is out is dtype is device is None and not requires_grad and as_device(None) is CPU:
        at_once = drawn_at_once("philox_permutation", n)
        return made(RANDPERM, permutation_array(n, CPU) if at_once is None else at_once)
    dtype, target = _kind_and_target(dtype, device, out)
    kind = int64 if dtype is None else as_dtype(dtype)
    array = cuda.permutation(n, target, generator)
    if array is NotImplemented:
        array = permutation_array(n, target, generator)
    with on_device(array):
        array = array.astype(kind.numpy, copy=False)
    return _finish(array, RANDPERM, out, requires_grad)


def _like(x: Tensor, dtype: Any, device: Any, op: str) -> dict:
    tensor_arg(x, op)
    return {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}


def _like_at_once(function: str, maker: Maker, x: Any, given: tuple) -> Tensor | None:
    """A tensor of the usual call: in rows on the CPU, nothing but the other tensor said."""
    array = x._array if type(x) is Tensor and given == _NOTHING else None
    if type(array) is not np.ndarray or array.dtype.char not in "fd":
        return None
    if not array.flags.c_contiguous:
        if array.ndim != 2 or not array.flags.f_contiguous:
            return None
        array = array.T  # numbers are drawn as they lie in memory
    drawn = drawn_at_once(function, array.shape, array.dtype.char == "d")
    return None if drawn is None else made(maker, drawn if array is x._array else drawn.T)


_NOTHING = (None, None, None, False, None)


@public()
def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: MemoryFormat | None = None) -> Tensor:
    """Numbers uniform in [0, 1) in the shape, dtype and device of ``input``.

    >>> fw.rand_like(fw.ones(2, 3)).shape
    (2, 3)
    """
    given = generator, dtype, device, requires_grad, memory_format
    at_once = _like_at_once("philox_uniform", RAND, input, given)
    if at_once is not None:
        return at_once
    settings = _like(input, dtype, device, "rand_like")
    return made_like(lambda shape: rand(shape, generator=generator, **settings), input, memory_format,
                     requires_grad, "rand_like")


@public()
def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: MemoryFormat | None = None) -> Tensor:
    """Standard normal numbers in the shape, dtype and device of ``input``.

    >>> fw.randn_like(fw.ones(2, 3)).shape
    (2, 3)
    """
    given = generator, dtype, device, requires_grad, memory_format
    at_once = _like_at_once("philox_normal", RANDN, input, given)
    if at_once is not None:
        return at_once
    settings = _like(input, dtype, device, "randn_like")
    return made_like(lambda shape: randn(shape, generator=generator, **settings), input, memory_format,
                     requires_grad, "randn_like")


# a tensor in the shape and dtype of another, not written yet
_new_like = native_or("filled_like", lambda x, number: NotImplemented)


@public()
def randint_like(input: Tensor, low: int = 0, high: Any = None, *, generator: Generator | None = None,
                 dtype: Any = None, device: Any = None, requires_grad: bool = False,
                 memory_format: MemoryFormat | None = None) -> Tensor:
    """Integers uniform in [low, high) (or [0, low)) in the shape, dtype and device of ``input``.

    >>> fw.randint_like(fw.ones(2), 5, 6)
    tensor([5., 5.])
    """
    low, high = (0, low) if high is None else (low, high)
    kind = tensor_arg(input, "randint_like").dtype if dtype is None else as_dtype(dtype)
    low, high = _range(low, high, kind, "randint_like")
    if type(input) is Tensor and generator is dtype is device is memory_format is None and not requires_grad \
            and type(input._array) is np.ndarray:
        if input._array.flags.c_contiguous:
            new = _new_like(input, None)
            if new is not NotImplemented and new is drawn_at_once(
                    "into_integers", new, low, high - low, "randint_like"):
                new._counter = None  # nobody else has seen it change
                return new
            array = integers_at_once(low, high, input._array.shape)
            if array is not None:
                kind = input._array.dtype
                return made(RANDINT, array if array.dtype is kind else converted(array, kind))
        elif input.ndim == 2 and input._array.flags.f_contiguous:
            return wrap(randint_like(wrap(input._array.T), low, high)._array.T)
    settings = _like(input, dtype, device, "randint_like")
    return made_like(lambda shape: randint(low, high, shape, generator=generator, **settings), input,
                     memory_format, requires_grad, "randint_like")
