"""Tensors of data that is there: numbers, sequences, NumPy's arrays, buffers, other libraries' tensors."""

from typing import Any

import numpy as np

from . import dtypes
from .backends import array_module, backend_for, cuda, meta, move, on_device
from .backends.capsule import Exported, read_bfloat16
from .backends.native import native_or
from .device import CPU, Device, as_device
from .errors import DTypeError, RangeError, ShapeError
from .ops.record.arming import FURTHER
from .quiet import quietly
from .seam import Maker
from .tensor import Tensor, made, wrap

_DOUBLE, _LONG, _BOOL = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)
# nested lists of Python's numbers as np.array makes of them; NotImplemented for what needs a second look
_listed = native_or("listed", lambda data: NotImplemented)
_cast = native_or("cast", lambda x, dtype: quietly(x.astype, dtype))
TENSOR, AS_TENSOR, FROM_NUMPY = Maker("tensor"), Maker("as_tensor"), Maker("from_numpy")


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
    if device is None and isinstance(data, Tensor):
        target = data.device
    else:
        target = _place(array, device)
    if target.type != "cpu":
        there = backend_for(target).asarray(array, None, target)
        shared = there is array and not isinstance(there, meta.MetaArray) and (
            array is data._array if isinstance(data, Tensor) else hasattr(data, "__cuda_array_interface__"))
        with on_device(there):
            array = there.copy() if shared else there
    elif not isinstance(array, np.ndarray):
        array = move(array, target)
    elif array is data or hasattr(data, "__dlpack__") or not array.flags.writeable:
        array = np.array(array, order="C", copy=True)
    result = made(TENSOR, array, data)
    if pin_memory:
        result = result.pin_memory()  # type: ignore[attr-defined]
    return result if requires_grad is False else result.requires_grad_(requires_grad)


def _place(array: Any, device: Any) -> Device:
    """Where a tensor of an array goes: it stays on its GPU unless a device is named."""
    on_gpu = device is None and cuda.array_type is not None and isinstance(array, cuda.array_type)
    return cuda.device_of(array) if on_gpu else as_device(device)


def _of_numbers(data: Any) -> np.ndarray | None:
    """A Python number, or a list of them: an array in the dtype that they take. None for anything else, and
    for those that need a sentence.
    """
    kind = type(data[0] if type(data) is list and data else data)
    if kind is not float and kind is not int and kind is not bool:
        return None
    array = _listed(data) if type(data) is list else NotImplemented
    if array is NotImplemented:
        try:
            array = np.array(data)
        except ValueError:  # of different lengths
            return None
    if array.dtype is _DOUBLE:
        wanted = dtypes.get_default_dtype().numpy
        return array if wanted is _DOUBLE else _cast(array, dtype=wanted)
    return array if array.dtype is _LONG or array.dtype is _BOOL else None


def _to_array(data: Any, dtype: Any, op: str) -> Any:
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if wanted is None and (array := _of_numbers(data)) is not None:
        return array
    if isinstance(data, Tensor):
        array = data._array
    elif isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
    elif hasattr(data, "__cuda_array_interface__"):
        array = data if cuda.is_loaded() and isinstance(data, cuda.array_type) else cuda.cupy().asarray(data)
    elif hasattr(data, "__dlpack__"):  # another library's
        array = from_dlpack(data)._array
    else:
        array = _listed(data)
        array = _from_sequence(data, op) if array is NotImplemented else array
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
    plain = type(data) is np.ndarray and dtype is None
    if plain and dtypes.of_numpy(data.dtype) and as_device(device) is CPU:
        return made(AS_TENSOR, data, data)
    array = _to_array(data, dtype, "as_tensor")
    target = _place(array, device)
    if target.type != "cpu":
        array = backend_for(target).asarray(array, None, target)
    elif not isinstance(array, np.ndarray):
        array = move(array, target)
    return made(AS_TENSOR, array, data)


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
    return made(FROM_NUMPY, ndarray, ndarray)


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
    """A tensor over the memory of an object with ``__dlpack__`` (NumPy, CuPy, PyTorch ...), or of a capsule.

    device: where the tensor shall be. copy: True for memory of its own, False to raise ValueError where
    that device needs a copy.

    >>> fw.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = Exported(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: {type(ext_tensor).__name__} does not export DLPack")
    on_gpu = ext_tensor.__dlpack_device__()[0] in (2, 13)
    to_cpu = device is not None and as_device(device).type == "cpu"
    if on_gpu and to_cpu and not isinstance(ext_tensor, Tensor):
        return wrap(np.from_dlpack(ext_tensor, device="cpu", copy=copy))  # the producer copies, without CuPy
    try:
        result = wrap(cuda.cupy().from_dlpack(ext_tensor) if on_gpu else np.from_dlpack(ext_tensor))
    except (RuntimeError, BufferError) as error:  # the latter since NumPy 2.5
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


FURTHER.extend((tensor, as_tensor, asarray, frombuffer, from_dlpack))
