"""What kind of tensor one is, as PyTorch's programs ask: mostly that it is none of the special ones."""

import math
from typing import Any

from .backends import cuda
from .errors import AutogradError, DeviceError, DTypeError, ShapeError
from .layouts import Layout, strided
from .ops.record.args import size_args
from .ops.record.arming import subclass
from .ops.record.torch_function import default
from .seam import settled
from .sparse_door import sparse
from .tensor import Tensor, bump


def _never(name: str, what: str) -> property:
    def answer(self: Tensor) -> bool:
        return False
    answer.__name__ = name
    return property(answer, doc=f"Whether the tensor {what}: False.")


for _name, _what in (("is_quantized", "holds quantised numbers"), ("is_mkldnn", "lies in oneDNN's layout"),
                     ("is_mps", "is on an Apple GPU"), ("is_xpu", "is on an Intel GPU"),
                     ("is_ipu", "is on an IPU"), ("is_sparse", "stores only what is not 0"),
                     ("is_sparse_csr", "stores only what is not 0, by rows"),
                     ("is_nested", "is a list of tensors of several shapes"),
                     ("is_xla", "is on a TPU"), ("is_vulkan", "is on a Vulkan device")):
    if not hasattr(Tensor, _name):
        setattr(Tensor, _name, _never(_name, _what))


def is_cpu(self: Tensor) -> bool:
    """Whether the tensor is in the memory of the CPU."""
    return self.device.type == "cpu"


def is_meta(self: Tensor) -> bool:
    """Whether the tensor is a shape without memory."""
    return self.device.type == "meta"


def layout(self: Tensor) -> Layout:
    """How the elements are stored."""
    return strided


for _property in (is_cpu, is_meta, layout):
    if not hasattr(Tensor, _property.__name__):
        setattr(Tensor, _property.__name__, property(_property))


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same memory, at the same place in the graph, as a tensor of a subclass.

    >>> class Mine(fw.Tensor):
    ...     pass
    >>> type(fw.ones(2).as_subclass(Mine)).__name__
    'Mine'
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass: wanted a subclass of Tensor, got {cls!r}")
    return subclass(self, cls)


def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """A tensor of class ``cls`` over the memory of ``data``, outside its graph.

    >>> class Mine(fw.Tensor):
    ...     pass
    >>> type(fw.Tensor._make_subclass(Mine, fw.ones(2)) * 2).__name__
    'Mine'
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"_make_subclass: wanted a subclass of Tensor, got {cls!r}")
    return subclass(data.detach(), cls).requires_grad_(require_grad)


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Give the tensor another shape, in its memory where that is large enough; returns it.

    What comes to the memory behind its elements is not set. Raises AutogradError where grad is required.

    >>> fw.arange(4).resize_(2, 1)
    tensor([[0],
            [1]])
    """
    shape = size_args(sizes, "resize_")
    if any(s < 0 for s in shape):
        raise ShapeError(f"resize_: sizes must not be negative, got {list(shape)}")
    if self._node is not None:
        raise AutogradError("resize_: this tensor requires grad, and a change of its shape is not recorded; "
                            "use x.detach() or reshape()")
    settled((self,))
    old = self._array.reshape(-1)
    count = math.prod(shape)
    if count > old.size:
        new = self.new_empty(count)._array  # type: ignore[attr-defined]
        new[:old.size] = old
    else:
        new = old[:count]
    self._array = new.reshape(shape)
    bump(self, "resize_")
    return self


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """``resize_`` to the shape of another tensor.

    >>> fw.resize_as_(fw.arange(4), fw.ones(2))
    tensor([0, 1])
    """
    return resize_(input, the_template.shape)


def record_stream(self: Tensor, stream: Any) -> None:
    """Say that a stream uses the memory: what is in the stream when the last tensor there goes will be done
    before others get it. On a GPU only; DeviceError on the CPU.
    """
    if not self.is_cuda:
        raise DeviceError("record_stream: this tensor is on the CPU, where nothing waits in a stream")
    cuda.keep_for(self._array, stream.own)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What ``load_state_dict`` puts in place of this parameter: ``other``, or itself filled from it."""
    return other.detach() if assign else self.copy_(other).detach()  # type: ignore[attr-defined]


def detach(input: Tensor) -> Tensor:
    """The same memory without its history: ``input.detach()``, as a function.

    >>> fw.detach(fw.ones(2, requires_grad=True)).requires_grad
    False
    """
    return input.detach()


def _settable(part: str) -> property:
    """The property of a tensor, as a place that can be assigned to."""
    read: Any = vars(Tensor)[part].fget

    def write(self: Tensor, value: Any) -> None:
        if part == "imag" and not self.is_complex():
            raise DTypeError(f"imag: a tensor of {self.dtype} has no imaginary part to assign to")
        place = read(self)
        if isinstance(value, Tensor):
            place.copy_(value)
        else:
            place.fill_(value)

    return property(read, write, doc=read.__doc__)


for _part in ("real", "imag"):
    setattr(Tensor, _part, _settable(_part))


for _method in (as_subclass, resize_, resize_as_, record_stream, module_load):
    setattr(Tensor, _method.__name__, _method)
Tensor.__torch_function__ = classmethod(default)  # type: ignore[attr-defined]
Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]


def _to_sparse(name: str, doc: str) -> Any:
    def convert(self: Tensor, *args: Any, **settings: Any) -> Tensor:
        return getattr(sparse(), name)(self, *args, **settings)
    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = doc
    return convert


for _name, _what in (
        ("to_sparse", "What is not 0, in a sparse layout: to_sparse(sparse_dim) in COO, or layout=, "
                      "blocksize=."),
        ("to_sparse_coo", "What is not 0, in the sparse layout COO."),
        ("to_sparse_csr", "What is not 0 in a matrix, in the sparse layout CSR."),
        ("to_sparse_csc", "What is not 0 in a matrix, in the sparse layout CSC."),
        ("to_sparse_bsr", "What is not 0 in a matrix, in blocks of the given size: layout BSR."),
        ("to_sparse_bsc", "What is not 0 in a matrix, in blocks of the given size: layout BSC."),
        ("sparse_mask", "The elements at the places of a sparse tensor, as a sparse tensor.")):
    setattr(Tensor, _name, _to_sparse(_name, _what))


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool = True) -> Tensor:
    """All elements as a dense tensor: of a dense one itself, in ``dtype`` if that is given.

    >>> fw.ones(2).to_dense()
    tensor([1., 1.])
    """
    return self if dtype is None else self.to(dtype)  # type: ignore[attr-defined]


setattr(Tensor, "to_dense", to_dense)  # noqa: B010


def typename(obj: Any) -> str:
    """The name of the type of a tensor, or of any object with its module.

    >>> fw.typename(fw.ones(1)), fw.typename(3)
    ('framework.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return obj.type()  # type: ignore[attr-defined]
    kind = obj if isinstance(obj, type) or hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "")
    return kind.__qualname__ if module in ("builtins", "", None) else f"{module}.{kind.__qualname__}"


def get_device(input: Tensor) -> int:
    """The CUDA device number, or -1 on the CPU.

    >>> fw.get_device(fw.ones(1))
    -1
    """
    return input.get_device()
