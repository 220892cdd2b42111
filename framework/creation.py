"""Making tensors: from data, filled, in ranges, from NumPy and through DLPack."""

import inspect
import math
import warnings
from typing import Any

import numpy as np

from . import dtypes
from .backends import array_module, backend_for, cuda, move
from .backends.capsule import read_bfloat16
from .backends.precision import are_deterministic_algorithms_enabled
from .device import CPU, as_device
from .errors import DTypeError, RangeError, ShapeError
from .layouts import MemoryFormat, back, checked, need_dims, order
from .ops.convert.memory_format import made_like
from .ops.record.args import size_args
from .ops.record.arming import FURTHER
from .ops.record.public import bare, by_keyword, with_out
from .quiet import quietly, readable
from .sparse_door import is_sparse, sparse
from .tensor import Tensor, made, wrap


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
    """A tensor with a copy of ``data``: numbers, nested sequences, NumPy arrays, tensors.

    Python floats take the default dtype (float32), ints int64, bools bool; arrays keep theirs.
    Raises ShapeError for ragged sequences, DTypeError for elements that are not numbers.

    >>> fw.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    array = _to_array(data, dtype, "tensor")
    target = as_device(device) if device is not None or not isinstance(data, Tensor) else data.device
    if target.type != "cpu":
        array = backend_for(target).asarray(array, None, target)
    elif not isinstance(array, np.ndarray):
        array = move(array, target)
    elif array is data or hasattr(data, "__dlpack__") or not array.flags.writeable:
        array = np.array(array, order="C", copy=True)
    result = made("tensor", array, data)
    if pin_memory:
        result = result.pin_memory()  # type: ignore[attr-defined]
    return result.requires_grad_(requires_grad)


def _to_array(data: Any, dtype: Any, op: str) -> Any:
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, Tensor):
        array = data._array
    elif isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
    elif hasattr(data, "__cuda_array_interface__"):
        array = data
    elif hasattr(data, "__dlpack__"):  # another library's
        array = from_dlpack(data)._array
    else:
        array = _from_sequence(data, op)
        if wanted is None and array.dtype.kind in "fc":
            wanted = dtypes.scalar_dtype(0j if array.dtype.kind == "c" else 0.0)
            if _has_arrays(data):
                wanted = None
        if wanted is not None and wanted.category == dtypes.INTEGER and array.dtype.kind in "iu":
            _check_range(array, wanted, op)
    if wanted is None and dtypes.of_numpy(array.dtype) is None:
        wanted = dtypes.BY_NUMPY.get(array.dtype.newbyteorder("=")) if array.dtype.kind in "biufc" else None
        if wanted is None:
            raise DTypeError(f"{op}: elements of dtype {array.dtype} are not supported; choose one of "
                             f"{', '.join(d.name for d in dtypes.ALL)}, e.g. array.astype('int64')")
    return array if wanted is None or array.dtype == wanted.numpy else quietly(array.astype, wanted.numpy)


def _check_range(array: Any, dtype: dtypes.DType, op: str) -> None:
    """Raise for Python numbers that an integer dtype cannot hold, which a conversion would wrap around."""
    limits = np.iinfo(dtype.numpy)
    wrong = (array < limits.min) | (array > limits.max)
    if wrong.any():
        raise RangeError(f"{op}: the number {array[wrong][0]} is out of bounds for {dtype.name}; choose a "
                         f"wider dtype, e.g. framework.int64")


def _has_arrays(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic, Tensor))


def _without_tensors(data: Any, held: list) -> Any:
    """``data`` with arrays in place of the tensors in it, whose dtypes are noted in ``held``."""
    if isinstance(data, Tensor):
        held.append(data._array.dtype)
        return move(data._array, CPU)
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], (Tensor, list, tuple)):
        return [_without_tensors(d, held) for d in data]
    return data


def _first_stranger(data: Any, place: str = "") -> tuple[str, str] | None:
    """Where in nested sequences the first thing is that is no number, as text, and what it is."""
    if isinstance(data, (list, tuple)) or isinstance(data, np.ndarray) and data.ndim:
        return next(filter(None, (_first_stranger(x, f"{place}[{i}]") for i, x in enumerate(data))), None)
    if isinstance(data, (bool, int, float, complex, np.bool_, np.number)):
        return None
    if data is None:
        return place, "None"
    text, kind = f"{data!r:.40}", type(data).__name__
    return place, f"something of type {kind}" if "<" in text else f"{text} of type {kind}"


def _from_sequence(data: Any, op: str) -> np.ndarray:
    held: list[np.dtype] = []
    data = _without_tensors(data, held)
    if isinstance(data, (str, bytes, dict, set)) or data is None:
        raise TypeError(f"{op}: data must be numbers, sequences of numbers or arrays, got "
                        f"{type(data).__name__}")
    if isinstance(data, range):
        data = list(data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise ShapeError(f"{op}: the nested sequences differ in length, so they form no array; pad them "
                         f"to one length") from error
    if held and array.dtype == np.float64 and np.float64 not in held:  # the Python floats among them
        array = array.astype(dtypes.get_default_dtype().numpy)
    if array.dtype.kind not in "biufc" and dtypes.of_numpy(array.dtype) is None:
        place, stranger = _first_stranger(data) or ("", f"elements of dtype {array.dtype}")
        raise DTypeError(f"{op}: data must hold numbers, found {stranger} at data{place}; leave it out, or "
                         "put a number for it, e.g. math.nan")
    if array.size == 0 and array.dtype == np.float64:
        return array.astype(dtypes.get_default_dtype().numpy)
    return array


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor over ``data``, sharing memory with arrays and tensors where dtype and device allow.

    >>> fw.as_tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)  # type: ignore[attr-defined]
    array = _to_array(data, dtype, "as_tensor")
    target = as_device(device)
    if target.type != "cpu" or not isinstance(array, np.ndarray):
        array = backend_for(target).asarray(array, None, target)
    return made("as_tensor", array, data)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool = False) -> Tensor:
    """A tensor over ``obj``, sharing memory where dtype and device allow, outside the graph.

    copy: True for memory of its own, False to raise ValueError where sharing is not possible.

    >>> fw.asarray(np.ones(2, np.float32), copy=True)
    tensor([1., 1.])
    """
    result = as_tensor(obj, dtype, device).detach()
    source = obj._array if isinstance(obj, Tensor) else obj
    shared = hasattr(source, "__dlpack__") and type(source) is type(result._array) and array_module(
        source).may_share_memory(source, result._array)
    if copy is False and not shared:
        raise ValueError("asarray: copy=False, but this object, dtype or device needs a copy")
    if copy and shared:
        result = result.clone()  # type: ignore[attr-defined]
    return result.requires_grad_(requires_grad)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor over the memory of a NumPy array: changes to one show in the other.

    >>> fw.from_numpy(np.zeros(2))
    tensor([0., 0.], dtype=framework.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy: wanted a numpy.ndarray, got {type(ndarray).__name__}; use tensor()")
    if dtypes.of_numpy(ndarray.dtype) is None:
        hint = "use ndarray.astype(ndarray.dtype.newbyteorder('='))" if ndarray.dtype.kind in "biufc" and \
            ndarray.dtype.newbyteorder("=") in dtypes.BY_NUMPY else "convert it with ndarray.astype(...)"
        raise DTypeError(f"from_numpy: dtype {ndarray.dtype} is not supported; {hint}")
    return made("from_numpy", ndarray, ndarray)


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Tensor:
    """A 1-dim tensor over the memory of a bytes-like object, read-only where that is.

    count: elements to take (-1: all from ``offset``, which is in bytes). Raises TypeError for an object
    without a buffer, ValueError where the elements do not fit into it.

    >>> fw.frombuffer(bytearray(b"abc"), dtype=fw.uint8, offset=1)
    tensor([98, 99], dtype=framework.uint8)
    """
    try:
        array = np.frombuffer(buffer, dtypes.as_dtype(dtype).numpy, count, offset)
    except (ValueError, TypeError) as error:
        raise type(error)(f"frombuffer: {error}; wanted count={count} elements of {dtype} from byte {offset} "
                          f"of a {type(buffer).__name__}") from error
    return wrap(array).requires_grad_(requires_grad)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an object with ``__dlpack__`` (NumPy, CuPy, PyTorch ...).

    device: where the tensor shall be. copy: True for memory of its own, False to raise ValueError where
    that device needs a copy.

    >>> fw.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    if not hasattr(ext_tensor, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: {type(ext_tensor).__name__} does not export DLPack")
    on_gpu = ext_tensor.__dlpack_device__()[0] in (2, 13)
    to_cpu = device is not None and as_device(device).type == "cpu"
    if on_gpu and to_cpu and not isinstance(ext_tensor, Tensor):
        return wrap(np.from_dlpack(ext_tensor, device="cpu", copy=copy))  # the producer copies, without CuPy
    try:
        result = wrap(cuda.cupy().from_dlpack(ext_tensor) if on_gpu else np.from_dlpack(ext_tensor))
    except RuntimeError as error:
        if "dtype" not in str(error):
            raise
        found = None if on_gpu else read_bfloat16(ext_tensor)
        if found is not None:
            result = wrap(found.view(dtypes.bfloat16.numpy))
            return result.clone() if copy else result  # type: ignore[attr-defined]
        raise DTypeError(f"from_dlpack: the elements of this {type(ext_tensor).__name__} are of a dtype that "
                         f"NumPy does not take; convert it first, e.g. to float32") from error
    moved = result if device is None else result.to(device)  # type: ignore[attr-defined]
    if copy is False and moved is not result:
        raise ValueError(f"from_dlpack: copy=False, but the memory is on {result.device}, not on {device}")
    return moved.clone() if copy and moved is result else moved


def _filled(name: str, size: tuple, fill: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    shape = size_args(size, name)
    if any(s < 0 for s in shape):
        raise ShapeError(f"{name}: sizes must not be negative, got {list(shape)}")
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    target = as_device(device)
    if target.type == "cpu":
        try:
            if fill is None and are_deterministic_algorithms_enabled():
                unused = np.iinfo(kind.numpy).max if kind.numpy.kind in "iu" else np.nan
                array = np.full(shape, unused, kind.numpy)
            elif fill is None:
                array = np.empty(shape, kind.numpy)
            elif fill == 0 and not _is_negative(fill):
                array = np.zeros(shape, kind.numpy)
            else:
                array = quietly(np.full, shape, _held(fill, kind.numpy), kind.numpy)
        except OverflowError as error:
            raise readable(error, name) from None
    else:
        array = backend_for(target).empty(shape, kind.numpy, target)
        if fill is not None:
            array.fill(fill)
    result = made(name, array) if fill is None else made(name, array, fill)
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
    return _filled("zeros", size, 0, dtype, device, requires_grad)


@with_out
@by_keyword
def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones.

    >>> fw.ones(3)
    tensor([1., 1., 1.])
    """
    return _filled("ones", size, 1, dtype, device, requires_grad)


@with_out
@by_keyword
def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
          memory_format: MemoryFormat | None = None) -> Tensor:
    """A tensor of uninitialised memory.

    >>> fw.empty(2, 3).shape
    (2, 3)
    """
    if memory_format is None or checked(memory_format, "empty").ndim == 0:
        return _filled("empty", size, None, dtype, device, requires_grad)
    shape = size_args(size, "empty")
    need_dims(shape, memory_format, "empty")
    rows = _filled("empty", tuple(shape[d] for d in order(len(shape))), None, dtype, device, False)
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
    memory = _filled("empty_strided", (span,), None, dtype, device, False)
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
    memory = _filled("empty_permuted", tuple(sizes[d] for d in axes), None, dtype, device, False)
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
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    if isinstance(fill_value, np.generic):
        fill_value = fill_value.item()
    if not isinstance(fill_value, (bool, int, float, complex)):
        raise DTypeError(f"full: fill_value must be a number, got {type(fill_value).__name__}: "
                         f"{fill_value!r:.40}")
    kind = dtypes.scalar_dtype(fill_value) if dtype is None else dtype
    return _filled("full", (size,), fill_value, kind, device, requires_grad)


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
    return _made_like(ones, _source(input), dtype, device, requires_grad, memory_format)


@by_keyword
def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
               memory_format: MemoryFormat | None = None) -> Tensor:
    """Uninitialised memory in the shape, dtype, device and memory format of ``input``.

    >>> fw.empty_like(fw.ones(2, 3)).shape
    (2, 3)
    """
    return _made_like(empty, _source(input), dtype, device, requires_grad, memory_format)


@by_keyword
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: MemoryFormat | None = None) -> Tensor:
    """One number in the shape, dtype, device and memory format of ``input``.

    >>> fw.full_like(fw.ones(2), 5.0)
    tensor([5., 5.])
    """
    return _made_like(full, _source(input), dtype, device, requires_grad, memory_format, fill_value)


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
    array = quietly(np.arange(start, end, step).astype, kind.numpy)
    return made("arange", move(array, as_device(device)), start, end, step).requires_grad_(requires_grad)


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
    return made("range", move(array, as_device(device)), start, end, step).requires_grad_(requires_grad)


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
    array = quietly(np.linspace(*ends, steps).astype, kind.numpy)
    return made("linspace", move(array, as_device(device)), *ends, steps).requires_grad_(requires_grad)


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
    return made("logspace", move(array, as_device(device)), *ends, steps, base).requires_grad_(requires_grad)


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
    array = np.eye(n, m, dtype=kind.numpy)
    return made("eye", move(array, as_device(device)), n, m).requires_grad_(requires_grad)


@by_keyword
def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-dim tensor of the default dtype.

    >>> fw.scalar_tensor(2)
    tensor(2.)
    """
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    return full((), s, dtype=kind, device=device, requires_grad=requires_grad)


def _new(name: str, make: Any) -> None:
    def method(self: Tensor, *args: Any, dtype: Any = None, device: Any = None,
               requires_grad: bool = False, **named: Any) -> Tensor:
        return make(*args, **named, requires_grad=requires_grad, **_like(self, dtype, device))
    method.__name__ = method.__qualname__ = name
    signature = inspect.signature(make)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Tensor)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *(p for p in signature.parameters.values() if p.name != "out")])
    method.__doc__ = f"``framework.{name[4:]}`` in the dtype and on the device of this tensor."
    setattr(Tensor, name, method)


for _name, _make in (("new_zeros", bare(zeros)), ("new_ones", bare(ones)), ("new_empty", bare(empty)),
                     ("new_full", bare(full)), ("new_empty_strided", empty_strided),
                     ("new_tensor", tensor)):
    _new(_name, _make)


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
               and not name.startswith("_") and name not in ("from_numpy", "is_tensor"))
