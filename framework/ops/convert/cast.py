"""Dtype and device of a tensor: ``to`` and its kin, and copies."""

import warnings
from functools import partial
from typing import Any

from ... import _native, dtypes
from ...backends import backend_for, meta, move, passes, turned
from ...backends import cuda as _cuda
from ...device import Device, as_device, cuda_device
from ...memory_formats import (
    MemoryFormat,
    channels_last,
    channels_last_3d,
    checked,
    contiguous_format,
    lies_in,
    preserve_format,
)
from ...seam import settled
from ...tensor import Tensor, hand_out, wrap
from ..record.args import tensor_arg
from ..record.batched import leading
from ..record.deferred import InSteps
from ..record.entries import entered_itself
from ..record.op import Meta, Op
from ..record.public import public
from .memory_format import copy_in, in_format, preserved_op

if hasattr(_native.module, "set_up_itself"):
    _native.module.set_up_itself(dtypes.DType, Device, channels_last, channels_last_3d)

cast = Op("cast", "x", onnx="converted(x, dtype)", runtime="converted(x)",
          batch=leading, jvp="linear", moves=True, native="cast",
          device=lambda x, *, dtype: passes.converted(x, _numpy(dtype)),
          kernel=lambda xp, x, *, dtype: _converted(x, _numpy(dtype)),
          infer=lambda x, *, dtype: Meta(x.shape, dtypes.as_dtype(_numpy(dtype))),
          vjp={"x": lambda g, x_dtype: cast(g, dtype=x_dtype)})
clone_op = Op("clone", "x", onnx="x", runtime="contiguous(x)",
              batch=leading, jvp="linear", moves=True, native="clone",
              device=lambda x: passes.converted(x, x.dtype) if x.flags.c_contiguous else turned.in_rows(x),
              kernel=lambda xp, x: xp.array(x, copy=True, order="C"),
              infer=lambda x: x, vjp={"x": lambda g: g})
contiguous_op = Op("contiguous", "x", onnx="x", runtime="contiguous(x)",
                   jvp="linear", kernel=lambda xp, x: xp.ascontiguousarray(x), batch=leading,
                   native="contiguous", device=turned.in_rows, infer=lambda x: x,
                   vjp={"x": lambda g: g}, view="maybe")


class _Transfer(Op):
    def inferred(self, *arrays: Any, **settings: Any) -> Any:
        if settings["device"].type != "meta":
            meta.to_numpy(arrays[0])  # refuses: what has no values cannot go where they are needed
        return super().inferred(*arrays, **settings)


transfer = _Transfer("transfer", "x", onnx="x", batch=leading, jvp="linear", moves=True,
                     kernel=lambda xp, x, *, device, back, wait=True: move(x, device, wait),
                     infer=lambda x, *, device, back, wait=True: x,
                     vjp={"x": lambda g, device, back: transfer(g, device=back, back=device)})


def _numpy(dtype: Any) -> Any:
    return dtype.numpy if type(dtype) is dtypes.DType else dtype


def _converted(x: Any, to: Any) -> Any:
    """Of complex numbers the real part, where the dtype is real: also the derivative of the way back."""
    return (x.real if x.dtype.kind == "c" and to.kind not in "cb" else x).astype(to)


def from_array(array: Any, like: Tensor) -> Tensor:
    """A tensor of a NumPy array on the device of ``like``; in a CUDA graph it stays as it is now."""
    if like.is_cuda:
        with _cuda.on(like.device):
            return wrap(_cuda.sent(array)[0])
    return wrap(move(array, like.device))


def as_dtype(input: Tensor, dtype: dtypes.DType) -> Tensor:
    """A tensor of another dtype than ``input``."""
    return cast.run(input, dtype=dtype)


def _cast_in_steps(input: Tensor, *args: Any, dtype: Any = None, **settings: Any) -> Any:
    """``to`` and the like where only the dtype changes, and was floating or bool."""
    wanted = args[0] if len(args) == 1 and dtype is None else dtype
    if settings or len(args) > (dtype is None) or type(wanted) is not dtypes.DType \
            or type(input) is not Tensor or input.dtype.category not in (dtypes.BOOL, dtypes.FLOAT):
        return NotImplemented
    return input if input.dtype is wanted else as_dtype(input, wanted)


@public("", method=True, op=transfer, deferred=InSteps(_cast_in_steps))
@entered_itself()
def to(input: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False,
       copy: bool = False, memory_format: MemoryFormat | None = None) -> Tensor:
    """The tensor with another dtype, device or memory format; itself when nothing changes.

    Forms: ``input.to(dtype)``, ``input.to(device)``, ``input.to(device, dtype)``, ``input.to(other_tensor)``,
    ``input.to(memory_format=framework.channels_last)``.

    non_blocking: from pinned memory to a GPU the copy goes on beside the program, which must leave that
    memory as it is meanwhile; other copies are done, or have left the memory, when this returns.

    >>> fw.tensor([1, 2]).to(fw.float64)
    tensor([1., 2.], dtype=framework.float64)
    """
    flags: list[bool] | None = None
    for arg in args:
        if isinstance(arg, bool):
            flags = [*(flags or ()), arg]
        elif isinstance(arg, (Device, str, int)):
            device = arg
        elif isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif arg is not None:
            dtype = arg
    if flags:
        non_blocking, copy = flags[0], flags[1] if len(flags) > 1 else copy
    result = input
    if dtype is not None and dtypes.as_dtype(dtype) is not input.dtype:
        if input.dtype.is_complex and dtypes.as_dtype(dtype).category in (dtypes.INTEGER, dtypes.FLOAT):
            warnings.warn(f"to: the imaginary part is discarded by converting {input.dtype} to {dtype}; "
                          f"input.real says so", stacklevel=2)
        result = cast.run(result, dtype=dtypes.as_dtype(dtype))
    if device is not None:
        result = _to_device(result, as_device(device), not non_blocking)
    if memory_format is not None and checked(memory_format, "to") is not preserve_format:
        result = contiguous(result, memory_format)
    return clone(input) if copy and result is input else result


def _to_device(x: Tensor, device: Device, wait: bool) -> Tensor:
    if device.type == "cpu" == x.device.type:
        return x
    backend = backend_for(device)
    if device.type == "cuda":
        device = Device("cuda", backend.index_of(device))
    if x.device == device:
        return x
    settings = {} if wait else {"wait": False}
    return transfer.run(x, device=device, back=x.device, **settings)


@public("", method=True)
def cpu(input: Tensor) -> Tensor:
    """The tensor in host memory; itself if it is there.

    >>> fw.ones(2).cpu()
    tensor([1., 1.])
    """
    return to(input, device="cpu")


@public("", method=True)
def cuda(input: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a CUDA device (the current one by default).

    Raises DeviceError or MissingExtraError where there is none, and for a device of another kind.
    """
    return to(input, device=cuda_device(device), non_blocking=non_blocking)


@public("", method=True)
@entered_itself()
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of ``other``.

    >>> fw.ones(1).type_as(fw.tensor([1])).dtype
    framework.int64
    """
    return to(input, other.dtype)


def _caster(name: str, dtype: dtypes.DType) -> None:
    def convert(x: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
        if memory_format is None and (own := x.dtype).category != dtypes.COMPLEX:
            return x if own is dtype else cast.run(x, dtype=dtype)
        return to(x, dtype) if memory_format is None else to(x, dtype, memory_format=memory_format)
    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The tensor as {dtype}; itself if it is that already."
    kept = dtype in (dtypes.float32, dtypes.float64, dtypes.bool_)  # what compiled functions put off
    steps = InSteps(partial(_cast_in_steps, dtype=dtype)) if kept else False
    public("", method=True, deferred=steps)(entered_itself(dtype)(convert))


for _name, _dtype in (("float", dtypes.float32), ("double", dtypes.float64), ("half", dtypes.float16),
                      ("int", dtypes.int32), ("long", dtypes.int64), ("short", dtypes.int16),
                      ("bfloat16", dtypes.bfloat16), ("bool", dtypes.bool_), ("byte", dtypes.uint8),
                      ("char", dtypes.int8), ("cfloat", dtypes.complex64),
                      ("cdouble", dtypes.complex128)):
    _caster(_name, _dtype)


@public(method=True, op=clone_op, deferred=True)
def clone(input: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """A copy in new memory, through which gradients flow; by default images keep their memory format.

    >>> fw.clone(fw.tensor([1.0]))
    tensor([1.])
    """
    if memory_format is None:
        return (clone_op if tensor_arg(input, "clone")._array.flags.c_contiguous else preserved_op).run(input)
    copy = copy_in(tensor_arg(input, "clone"), checked(memory_format, "clone"), "clone")
    return clone_op.run(input) if copy is None else copy


@public("", method=True, op=contiguous_op, deferred=True)
@entered_itself(True)
def contiguous(input: Tensor, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """The tensor in row-major memory, or with its channels last; itself if it is already.

    Raises ShapeError where the format is not for so many dimensions.

    >>> fw.ones(2, 3).t().contiguous().is_contiguous()
    True
    """
    if memory_format is contiguous_format:
        return input if input.is_contiguous() else contiguous_op.run(input)
    if type(input) is Tensor and memory_format in (channels_last, channels_last_3d) \
            and lies_in(input._array, memory_format):
        return input
    if checked(memory_format, "contiguous") is preserve_format:
        raise ValueError("contiguous: preserve_format names no layout; use clone() for a copy that keeps it")
    return in_format(input, memory_format, "contiguous")  # type: ignore[return-value]


@public("", method=True)
def detach_(input: Tensor) -> Tensor:
    """Cut this tensor out of its graph; views cannot be.

    >>> (fw.ones(1, requires_grad=True) * 2).detach_().requires_grad
    False
    """
    settled((input,))
    if input._base is not None:
        raise RuntimeError("detach_: this tensor is a view, which cannot be cut from its base; use "
                           "detach()")
    hand_out(input)
    input._node = None
    return input
