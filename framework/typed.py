"""Types of tensors as they were before dtypes: ``FloatTensor`` and its kin, ``Tensor(...)``, ``new``."""

from typing import Any

import numpy as np

from . import dtypes
from .backends import backend_for
from .config import names
from .device import Device, as_device, set_default_device
from .errors import DTypeError, ShapeError
from .from_data import tensor
from .ops.convert.cast import to
from .ops.record.args import size_args
from .ops.record.arming import arm_for
from .size import Size
from .tensor import Tensor, counter_of, hand_out, wrap

KINDS = {"Bool": dtypes.bool_, "Byte": dtypes.uint8, "Char": dtypes.int8, "Short": dtypes.int16,
         "Int": dtypes.int32, "Long": dtypes.int64, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16,
         "Float": dtypes.float32, "Double": dtypes.float64, "ComplexFloat": dtypes.complex64,
         "ComplexDouble": dtypes.complex128}
NAMES = {dtype: name for name, dtype in KINDS.items()}


class TensorType(type):
    """The class of FloatTensor, LongTensor ...: a dtype and a device, by which isinstance asks.

    >>> isinstance(fw.ones(2), fw.FloatTensor), isinstance(fw.ones(2), fw.LongTensor)
    (True, False)
    """

    dtype: dtypes.DType
    place: str

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype and x.device.type == cls.place

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        place = Device(cls.place if device is None else device)
        if place.type != cls.place:
            raise TypeError(f"{cls!r} makes tensors on {cls.place!r}, not on {str(place)!r}")
        return constructed(f"{cls.__name__}", cls.dtype, place, args)

    def __repr__(cls) -> str:
        return f"<class '{label(cls.dtype, cls.place)}'>"


def label(dtype: dtypes.DType, place: str) -> str:
    """The name of a type: "framework.FloatTensor", "framework.cuda.LongTensor"."""
    if dtype not in NAMES:
        raise DTypeError(f"type: {dtype} has no such name; read x.dtype")
    return f"{names.package}.{place + '.' if place != 'cpu' else ''}{NAMES[dtype]}Tensor"


def types_of(place: str, module: str) -> dict[str, TensorType]:
    """{"FloatTensor": the type ...} of the tensors of a device."""
    return {f"{name}Tensor": TensorType(f"{name}Tensor", (), {
        "dtype": dtype, "place": place, "__module__": module,
        "__doc__": f"Tensors of {dtype} on '{place}': isinstance, and a constructor like ``Tensor(...)``."})
        for name, dtype in KINDS.items() if not dtype.is_complex}


def constructed(op: str, dtype: dtypes.DType | None, place: Device, args: tuple,
                cls: type = Tensor) -> Tensor:
    """What ``Tensor(*args)`` and its typed kin give: sizes make room, data is copied, tensors are shared."""
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    if len(args) == 1 and isinstance(args[0], Tensor):
        source = args[0]
        if dtype is not None and source.dtype is not dtype:
            raise TypeError(f"{op}: wanted a tensor of {dtype}, got one of {source.dtype}; use x.to({dtype})")
        hand_out(source)
        result = wrap(source._array, cls)
        result._counter = counter_of(source)
        return result
    if len(args) == 1 and not isinstance(args[0], (Size, int, np.integer)):
        if isinstance(args[0], float) or not hasattr(args[0], "__len__"):
            raise TypeError(f"{op}: data must be a sequence or sizes, got {type(args[0]).__name__}; for one "
                            f"number use framework.tensor(number)")
        result = tensor(args[0], dtype=kind, device=place)
        return result if cls is Tensor else wrap(result._array, cls)
    shape = size_args(args or (0,), op)
    if any(s < 0 for s in shape):
        raise ShapeError(f"{op}: sizes must not be negative, got {list(shape)}")
    return wrap(backend_for(place).empty(shape, kind.numpy, place), cls)


def type_(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The tensor in another dtype, given as such, as a type or as a name like "framework.FloatTensor".

    ``Tensor`` itself is the dtype and the device that new tensors take. Without ``dtype`` the name of the
    tensor's own type, with "cuda." before its last part on a GPU.

    >>> fw.ones(2).type()
    'framework.FloatTensor'
    >>> fw.ones(2).type(fw.LongTensor)
    tensor([1, 1])
    >>> fw.tensor([1, 2]).type(fw.Tensor)
    tensor([1., 2.])
    """
    if dtype is None:
        return label(input.dtype, input.device.type)
    if isinstance(dtype, TensorType):
        return to(input, dtype.place, dtype.dtype)
    if dtype is Tensor or isinstance(dtype, str) and dtype in ("framework.Tensor", "torch.Tensor"):
        return to(input, as_device(None), dtypes.get_default_dtype())
    if not isinstance(dtype, str):
        return to(input, dtype)
    kind, place = _named(dtype, "type")
    return to(input, place or input.device, kind)


def _named(name: str, op: str) -> tuple[dtypes.DType, str]:
    """The dtype and the device ("" unless it says) of a name like "torch.cuda.FloatTensor"."""
    *lead, last = name.split(".")
    kind = KINDS.get(last.removesuffix("Tensor")) if last.endswith("Tensor") else None
    if kind is None or lead[:1] not in ([], ["framework"], ["torch"]) or lead[1:] not in ([], ["cuda"]):
        raise DTypeError(f"{op}: {name!r} names no type of tensor; give a dtype such as framework.float32, "
                         f"or a name such as 'framework.FloatTensor'")
    return kind, lead[1] if lead[1:] else "cpu" if lead else ""


def new(input: Tensor, *args: Any, device: Any = None) -> Tensor:
    """As ``Tensor(*args)``, in the dtype and on the device of this tensor.

    >>> fw.tensor([1]).new([1.7, 2]), fw.ones(2).new(2, 3).shape
    (tensor([1, 2]), (2, 3))
    """
    return constructed("new", input.dtype, input.device if device is None else Device(device), args)


def set_default_tensor_type(t: Any) -> None:
    """Set the dtype and the device that new tensors take, by a type or its name.

    Raises TypeError for a type that is not floating. ``set_default_dtype`` and ``set_default_device`` say
    the same in two steps.

    >>> fw.set_default_tensor_type(fw.DoubleTensor); fw.ones(1).dtype
    framework.float64
    >>> fw.set_default_tensor_type("framework.FloatTensor")
    """
    if isinstance(t, TensorType):
        kind, place = t.dtype, t.place
    elif isinstance(t, str):
        kind, place = _named(t, "set_default_tensor_type")
    else:
        raise TypeError(f"set_default_tensor_type: wanted a type such as framework.FloatTensor, got {t!r}; "
                        f"for a dtype use set_default_dtype")
    if not kind.is_floating_point:
        raise TypeError(f"set_default_tensor_type: wanted a floating type, got {t!r}")
    if place:
        backend_for(Device(place))
    dtypes.set_default_dtype(kind)
    set_default_device(place or None)


def _new_tensor(cls: type, *args: Any, device: Any = None) -> Tensor:
    """``Tensor(2, 3)`` is uninitialised, ``Tensor([1, 2])`` copies numbers, ``Tensor(x)`` shares memory."""
    if cls is not Tensor:
        arm_for(cls)
    return constructed(cls.__name__, None, as_device(device), args, cls)


Tensor.__new__ = staticmethod(_new_tensor)  # type: ignore[method-assign, assignment]
for _name, _method in (("type", type_), ("new", new)):
    setattr(Tensor, _name, _method)
_TYPES = types_of("cpu", "framework")
BFloat16Tensor = _TYPES["BFloat16Tensor"]
BoolTensor = _TYPES["BoolTensor"]
ByteTensor = _TYPES["ByteTensor"]
CharTensor = _TYPES["CharTensor"]
DoubleTensor = _TYPES["DoubleTensor"]
FloatTensor = _TYPES["FloatTensor"]
HalfTensor = _TYPES["HalfTensor"]
IntTensor = _TYPES["IntTensor"]
LongTensor = _TYPES["LongTensor"]
ShortTensor = _TYPES["ShortTensor"]
