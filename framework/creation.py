"""Tensors of no data: filled, in ranges, like others. Those of data are made in ``from_data.py``."""

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, dtypes
from .backends import backend_for, cuda, move, on_device
from .backends.precision import are_deterministic_algorithms_enabled
from .device import Device, as_device
from .errors import DTypeError, ShapeError
from .from_data import tensor
from .memory_formats import MemoryFormat, axes_of, back, checked, inverse, need_dims, order, turned
from .ops.convert.memory_format import made_like
from .ops.record.args import size_args
from .ops.record.arming import FURTHER
from .ops.record.public import bare, by_keyword, with_out
from .quiet import quietly, readable
from .seam import Maker
from .sparse_door import is_sparse, sparse
from .tensor import Tensor, made, wrap


def _of_one_value(name: str) -> Maker:
    return Maker(name, ("value",), onnx="full(value, shape, dtype)", runtime="full(value)")


def _of_no_value(name: str) -> Maker:
    return Maker(name, (), constant=False, onnx="full(0, shape, dtype)", runtime="full(0)")


ZEROS, ONES, FULL = _of_one_value("zeros"), _of_one_value("ones"), _of_one_value("full")
EMPTY, EMPTY_STRIDED = _of_no_value("empty"), _of_no_value("empty_strided")
EMPTY_PERMUTED = _of_no_value("empty_permuted")
ARANGE = Maker("arange", ("start", "end", "step"), onnx="counting(start, end, step, dtype)",
               runtime="counting(start, end, step)")
RANGE = Maker("range", ("start", "end", "step"))
LINSPACE = Maker("linspace", ("start", "end", "steps"), onnx="evenly_spaced(start, end, steps, dtype)")
LOGSPACE = Maker("logspace", ("start", "end", "steps", "base"))
EYE = Maker("eye", ("n", "m"), onnx="identity(n, m, dtype)")


def _unusual(*given: Any) -> Any:
    return NotImplemented


# a tensor (shape, dtype, number), or like another (x, number); for None uninitialised
_filled_new = getattr(_native.module, "filled", _unusual)
_filled_like = getattr(_native.module, "filled_like", _unusual)
_identity = getattr(_native.module, "identity", _unusual)
_spaced = getattr(_native.module, "spaced", _unusual)


def _filled(maker: Maker, size: tuple, fill: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    name = maker.name
    shape = size_args(size, name)
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    target = as_device(device)
    plain = target.type == "cpu" and (fill is not None or not are_deterministic_algorithms_enabled())
    if plain and (result := _filled_new(shape, kind.numpy, fill)) is not NotImplemented:
        return result.requires_grad_(True) if requires_grad else result
    if shape and min(shape) < 0:
        raise ShapeError(f"{name}: sizes must not be negative, got {list(shape)}")
    if target.type == "cpu":
        try:
            if not plain:
                unused = np.iinfo(kind.numpy).max if kind.numpy.kind in "iu" else np.nan
                array = np.full(shape, unused, kind.numpy)
            elif fill is None:
                array = np.empty(shape, kind.numpy)
            elif type(fill) is int and fill == 0 or fill == 0 and not _is_negative(fill):
                array = np.zeros(shape, kind.numpy)
            else:
                array = np.empty(shape, kind.numpy)
                quietly(array.fill, _held(fill, kind.numpy))
        except OverflowError as error:
            raise readable(error, name) from None
    else:
        array = backend_for(target).empty(shape, kind.numpy, target)
        if fill is not None:
            try:
                with on_device(array):
                    array.fill(fill)
            except OverflowError as error:
                raise readable(error, name) from None
    result = made(maker, array) if fill is None else made(maker, array, fill)
    return result.requires_grad_(True) if requires_grad else result


def _is_negative(number: Any) -> bool:
    return isinstance(number, float) and math.copysign(1.0, number) < 0


def _held(number: Any, dtype: np.dtype) -> Any:
    """The number; an integer in its dtype, as NumPy 2.0 fills with those that do not fit wrapped around."""
    return dtype.type(number) if isinstance(number, int) and dtype.kind in "iu" else number


@with_out
@by_keyword
def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros.

    >>> fw.zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """
    return _filled(ZEROS, size, 0, dtype, device, requires_grad)


@with_out
@by_keyword
def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones.

    >>> fw.ones(3)
    tensor([1., 1., 1.])
    """
    return _filled(ONES, size, 1, dtype, device, requires_grad)


@with_out
@by_keyword
def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
          memory_format: MemoryFormat | None = None) -> Tensor:
    """A tensor of uninitialised memory.

    >>> fw.empty(2, 3).shape
    (2, 3)
    """
    if memory_format is None or checked(memory_format, "empty").ndim == 0:
        return _filled(EMPTY, size, None, dtype, device, requires_grad)
    shape = size_args(size, "empty")
    need_dims(shape, memory_format, "empty")
    rows = _filled(EMPTY, tuple(shape[d] for d in order(len(shape))), None, dtype, device, False)
    return wrap(rows._array.transpose(back(len(shape)))).requires_grad_(requires_grad)


@by_keyword
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, device: Any = None,
                  requires_grad: bool = False) -> Tensor:
    """Uninitialised memory with the given strides, counted in elements; some may lie on one place.

    Raises ShapeError for negative sizes or strides.

    >>> fw.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    sizes, steps = size_args((size,), "empty_strided"), size_args((stride,), "empty_strided", "stride")
    if len(sizes) != len(steps) or any(s < 0 for s in (*sizes, *steps)):
        raise ShapeError(f"empty_strided: size {list(sizes)} and stride {list(steps)} must be equally many "
                         f"numbers, none negative")
    span = 0 if 0 in sizes else 1 + sum((n - 1) * s for n, s in zip(sizes, steps))
    memory = _filled(EMPTY_STRIDED, (span,), None, dtype, device, False)
    return memory.as_strided(sizes, steps).detach().requires_grad_(requires_grad)  # type: ignore[attr-defined]


@by_keyword
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, device: Any = None,
                   requires_grad: bool = False) -> Tensor:
    """Uninitialised memory, dense, with its dimensions in the order ``physical_layout`` from the largest
    steps to the smallest. Raises ShapeError where that does not name every dimension once.

    >>> fw.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    sizes, axes = size_args((size,), "empty_permuted"), size_args((physical_layout,), "empty_permuted")
    if sorted(axes) != list(range(len(sizes))):
        raise ShapeError(f"empty_permuted: physical_layout must name each of the {len(sizes)} dimensions "
                         f"once, got {list(axes)}")
    memory = _filled(EMPTY_PERMUTED, tuple(sizes[d] for d in axes), None, dtype, device, False)
    turned = memory._array.transpose(tuple(axes.index(d) for d in range(len(axes))))
    return wrap(turned).requires_grad_(requires_grad)


@with_out
@by_keyword
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:
    """A tensor filled with one number, whose type decides the dtype.

    >>> fw.full((2,), 7)
    tensor([7, 7])
    """
    if type(fill_value) is not float:
        if isinstance(fill_value, (Tensor, np.generic)):
            fill_value = fill_value.item()
        if not isinstance(fill_value, (bool, int, float, complex)):
            raise DTypeError(f"full: fill_value must be a number, got {type(fill_value).__name__}: "
                             f"{fill_value!r:.40}")
    kind = dtypes.scalar_dtype(fill_value) if dtype is None else dtype
    return _filled(FULL, (size,), fill_value, kind, device, requires_grad)


def _alike(x: Any, others: tuple, number: float | None, maker: Maker, make: Callable) -> Tensor | None:
    """A tensor like x of that number (None: uninitialised), if no other argument is given: by the extension,
    or what NumPy's ``make`` gives in the shape and dtype of a plain tensor."""
    if any(others):
        return None
    found: Tensor = _filled_like(x, number)
    if found is not NotImplemented:
        return found
    if type(x) is not Tensor:
        return None
    array = x._array
    if type(array) is not np.ndarray or array.dtype.kind not in "fiub":
        return None
    fill = () if number is None else (number,)
    if array.flags.c_contiguous or not turned(array):
        return made(maker, make(array.shape, array.dtype), *fill)
    axes, shape = axes_of(array), array.shape
    return made(maker, make([shape[d] for d in axes], array.dtype).transpose(inverse(axes)), *fill)


def _source(x: Tensor) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"wanted a Tensor to take the shape and dtype from, got {type(x).__name__}")
    return x


def _like(x: Tensor, dtype: Any, device: Any) -> dict:
    return {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}


def _made_like(make: Any, input: Tensor, dtype: Any, device: Any, requires_grad: bool, memory_format: Any,
               *fill: Any) -> Tensor:
    settings = _like(input, dtype, device)
    return made_like(lambda shape: make(shape, *fill, **settings), input, memory_format, requires_grad,
                     f"{make.__name__}_like")


@by_keyword
def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
               memory_format: MemoryFormat | None = None) -> Tensor:
    """Zeros in the shape, dtype, device and memory format of ``input``; sparse of a sparse tensor.

    >>> fw.zeros_like(fw.tensor([1, 2]))
    tensor([0, 0])
    """
    alike = _alike(input, (dtype, device, requires_grad, memory_format), 0, ZEROS, np.zeros)
    if alike is not None:
        return alike
    if is_sparse(input):
        return sparse().zeros_like(input, dtype, device, requires_grad)
    return _made_like(zeros, _source(input), dtype, device, requires_grad, memory_format)


@by_keyword
def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
              memory_format: MemoryFormat | None = None) -> Tensor:
    """Ones in the shape, dtype, device and memory format of ``input``.

    >>> fw.ones_like(fw.tensor([1.5]))
    tensor([1.])
    """
    alike = _alike(input, (dtype, device, requires_grad, memory_format), 1, ONES, np.ones)
    if alike is not None:
        return alike
    if is_sparse(input):
        return sparse().filled_like(input, 1, dtype, device, requires_grad, "ones_like")
    return _made_like(ones, _source(input), dtype, device, requires_grad, memory_format)


@by_keyword
def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
               memory_format: MemoryFormat | None = None) -> Tensor:
    """Uninitialised memory in the shape, dtype, device and memory format of ``input``.

    >>> fw.empty_like(fw.ones(2, 3)).shape
    (2, 3)
    """
    if not are_deterministic_algorithms_enabled():
        alike = _alike(input, (dtype, device, requires_grad, memory_format), None, EMPTY, np.empty)
        if alike is not None:
            return alike
    if is_sparse(input):
        return sparse().empty_like(input, dtype, device, requires_grad)
    return _made_like(empty, _source(input), dtype, device, requires_grad, memory_format)


@by_keyword
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: MemoryFormat | None = None) -> Tensor:
    """One number in the shape, dtype, device and memory format of ``input``.

    >>> fw.full_like(fw.ones(2), 5.0)
    tensor([5., 5.])
    """
    if dtype is None and device is None and not requires_grad and memory_format is None:
        alike = _filled_like(input, fill_value)
        if alike is not NotImplemented:
            return alike
    if is_sparse(input):
        return sparse().filled_like(input, fill_value, dtype, device, requires_grad, "full_like")
    return _made_like(full, _source(input), dtype, device, requires_grad, memory_format, fill_value)


def _evenly(start: Any, step: Any, count: int, kind: dtypes.DType, device: Device, whole: bool) -> Any:
    """``start + i * step`` as NumPy computes them, on a GPU, to which nothing is copied; None for other
    devices and numbers."""
    usual = all(isinstance(v, int | float) and abs(v) < 1 << 53 for v in (start, step))
    if device.type != "cuda" or not usual:
        return None
    module = cuda.cupy()
    with cuda.on(device):
        if whole:
            array = module.arange(start, start + count * step, step, dtype=np.int64)
        else:
            array = module.arange(count, dtype=np.float64) * ((start + step) - start) + start
        return array.astype(kind.numpy, copy=False)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, (Tensor, np.generic)) else value


@with_out
@by_keyword
def arange(start: Any = None, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
    """Numbers from ``start`` (default 0) up to but without ``end``, in steps.

    >>> fw.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if type(start) is int and dtype is None and device is None and not requires_grad \
            and type(step) is int and step > 0 and as_device(None).type == "cpu":  # the usual calls
        low, high = (0, start) if end is None else (start, end)
        if type(high) is int and high >= low:
            return made(ARANGE, np.arange(low, high, step), low, high, step)
    start, end, step = _number(start), _number(end), _number(step)
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError("arange: no end was given; write arange(end) or arange(start, end, step)")
    start = 0 if start is None else start
    if step == 0:
        raise ValueError("arange: step must not be 0")
    if (end - start) * step < 0:
        raise ValueError(f"arange: from {start} to {end} the step {step} leads away from the end")
    whole = all(isinstance(v, int) for v in (start, end, step))
    kind = dtypes.as_dtype(dtype) if dtype is not None else (
        dtypes.int64 if whole else dtypes.get_default_dtype())
    array = _evenly(start, step, max(math.ceil((end - start) / step), 0), kind, as_device(device), whole)
    if array is None:
        array = move(quietly(np.arange(start, end, step).astype, kind.numpy), as_device(device))
    return made(ARANGE, array, start, end, step).requires_grad_(requires_grad)


def _kind_of(*numbers: Any) -> dtypes.DType:
    """The default float dtype, or its complex one where a number is complex."""
    kind = dtypes.get_default_dtype()
    return kind.to_complex() if any(isinstance(n, complex) for n in numbers) else kind


@with_out
@by_keyword
def range_(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None,
          requires_grad: bool = False) -> Tensor:
    """Numbers from ``start`` up to ``end``, which is one of them if the steps hit it; with a UserWarning, as
    ``arange`` leaves the end out, like Python. The default dtype is the floating one.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     fw.range(1, 2, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    warnings.warn("range is deprecated, since its end is included; use arange(start, end + step, step)",
                  UserWarning, stacklevel=3)
    if end is None:
        start, end = 0, start
    start, end, step = _number(start), _number(end), _number(step)
    if step == 0 or (end - start) * step < 0:
        raise ValueError(f"range: step must lead from {start} to {end}, got {step}")
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    array = quietly((start + step * np.arange(math.floor((end - start) / step) + 1)).astype, kind.numpy)
    return made(RANGE, move(array, as_device(device)), start, end, step).requires_grad_(requires_grad)


range_.__name__ = range_.__qualname__ = "range"


@with_out
@by_keyword
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """``steps`` evenly spaced numbers from ``start`` to ``end``, both included.

    >>> fw.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    if steps < 0:
        raise ValueError(f"linspace: steps must not be negative, got {steps}")
    ends = _number(start), _number(end)
    kind = _kind_of(*ends) if dtype is None else dtypes.as_dtype(dtype)
    target = as_device(device)
    if target.type == "cpu" and type(steps) is int \
            and (result := _spaced((steps,), kind.numpy, None, *ends)) is not NotImplemented:
        return result.requires_grad_(True) if requires_grad else result
    array = quietly(lambda: np.linspace(*ends, steps).astype(kind.numpy))
    return made(LINSPACE, move(array, target), *ends, steps).requires_grad_(requires_grad)


@with_out
@by_keyword
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """``base`` to the powers of ``linspace(start, end, steps)``.

    >>> fw.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    ends = _number(start), _number(end)
    kind = _kind_of(*ends) if dtype is None else dtypes.as_dtype(dtype)
    exponents = np.linspace(*ends, steps)
    array = quietly(lambda: np.power(float(base), exponents).astype(kind.numpy))
    return made(LOGSPACE, move(array, as_device(device)), *ends, steps, base).requires_grad_(requires_grad)


@with_out
@by_keyword
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None,
        requires_grad: bool = False) -> Tensor:
    """The identity matrix of n rows and m (default n) columns.

    >>> fw.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise ValueError(f"eye: {name} must not be negative, got {size}")
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    target = as_device(device)
    if target.type == "cpu" \
            and (result := _identity((n, n if m is None else m), kind.numpy, 0)) is not NotImplemented:
        return result.requires_grad_(True) if requires_grad else result
    if target.type == "cuda" and kind.numpy.kind in "fiub":
        with cuda.on(target):
            array = cuda.cupy().eye(n, m, dtype=kind.numpy)
    else:
        array = move(np.eye(n, m, dtype=kind.numpy), target)
    return made(EYE, array, n, m).requires_grad_(requires_grad)


@by_keyword
def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-dim tensor of the default dtype.

    >>> fw.scalar_tensor(2)
    tensor(2.)
    """
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    return full((), s, dtype=kind, device=device, requires_grad=requires_grad)


def _at_once(like: Tensor, sizes: tuple, fill: Any) -> Any:
    """``_filled_new`` in the dtype of another tensor, where nothing else is said."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    if type(like._array) is not np.ndarray or fill is None and are_deterministic_algorithms_enabled():
        return NotImplemented
    return _filled_new(sizes, like._array.dtype, fill)


def _new(name: str, make: Any, *fill: Any) -> None:
    def method(self: Tensor, *args: Any, dtype: Any = None, device: Any = None,
               requires_grad: bool = False, **named: Any) -> Tensor:
        if fill and dtype is device is None and not requires_grad and not named and type(self) is Tensor \
                and (result := _at_once(self, args, fill[0])) is not NotImplemented:
            return result
        return make(*args, **named, requires_grad=requires_grad, **_like(self, dtype, device))
    method.__name__ = method.__qualname__ = name
    signature = inspect.signature(make)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Tensor)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *(p for p in signature.parameters.values() if p.name != "out")])
    method.__doc__ = f"``framework.{name[4:]}`` in the dtype and on the device of this tensor."
    setattr(Tensor, name, method)


for _name, _make, *_fill in (("new_zeros", bare(zeros), 0), ("new_ones", bare(ones), 1),
                             ("new_empty", bare(empty), None), ("new_full", bare(full)),
                             ("new_empty_strided", empty_strided), ("new_tensor", tensor)):
    _new(_name, _make, *_fill)


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a Tensor.

    >>> fw.is_tensor(fw.ones(1)), fw.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements.

    >>> fw.numel(fw.ones(2, 3))
    6
    """
    return input.numel()


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is floating.

    >>> fw.is_floating_point(fw.ones(1))
    True
    """
    return input.is_floating_point()


FURTHER.extend(value for name, value in list(globals().items())
               if callable(value) and getattr(value, "__module__", "") == __name__
               and not name.startswith("_") and name not in ("is_tensor",))
