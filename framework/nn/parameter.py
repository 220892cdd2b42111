"""Parameter and Buffer: the tensors that a Module registers when they are assigned to it."""

from typing import Any

from .. import _native
from ..config.listing import own as _own
from ..creation import empty
from ..errors import LayoutError, kind_of
from ..ops.record.arming import arm_for
from ..ops.record.torch_function import PLAIN, disabled
from ..sparse_door import is_sparse
from ..tensor import Tensor, counter_of, hand_out, wrap


def _sharing(data: Any, cls: type) -> Any:
    """A tensor of class ``cls`` over the memory of ``data``, outside its graph."""
    if data is None:
        data = empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(f"{cls.__name__}: argument 'data' must be a Tensor, got {kind_of(data)}; "
                        f"convert it with framework.tensor(...)")
    if is_sparse(data):
        raise LayoutError(f"{cls.__name__}: argument 'data' is sparse; train its values, "
                          f"{cls.__name__}(x.values()), and build the tensor from them in forward, e.g. "
                          f"framework.sparse_csr_tensor(crow, col, values, size)")
    arm_for(cls)
    hand_out(data)
    made = wrap(data._array, cls)
    made._counter = counter_of(data)
    return made


class Parameter(Tensor):
    """A tensor that is trained: assigned to a Module, it appears in ``module.parameters()``.

    data: the values, whose memory is shared. requires_grad: whether backward gathers its gradient.
    Results of operations on parameters are plain tensors. Raises AutogradError for data that is not
    floating, unless ``requires_grad=False``.

    >>> fw.nn.Parameter(fw.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    __torch_function__ = disabled

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> "Parameter":
        return _sharing(data, cls).requires_grad_(requires_grad)

    def __init__(self, *args: Any, **settings: Any) -> None:
        pass  # all is done by __new__, whose arguments subclasses choose

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


if hasattr(_native.module, "set_up_parameters"):
    _native.module.set_up_parameters(Parameter)


class Buffer(Tensor):
    """A tensor that belongs to a Module's state and is not trained; assignment registers it.

    persistent: whether ``state_dict`` holds it.

    >>> m = fw.nn.Module()
    >>> m.count = fw.nn.Buffer(fw.zeros(1))
    >>> list(m.state_dict())
    ['count']
    """

    __torch_function__ = disabled
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> "Buffer":
        made = _sharing(data, cls)
        made.persistent = persistent
        return made

    def __init__(self, *args: Any, **settings: Any) -> None:
        pass


PLAIN.update((Parameter, Buffer))


class _Pending:
    """What an uninitialised tensor has for an array: a dtype and a device; all else raises."""

    __slots__ = ("dtype", "place", "what")

    def __init__(self, dtype: Any, place: Any, what: str) -> None:
        self.dtype, self.place, self.what = dtype, place, what

    def __getattr__(self, name: str) -> Any:
        raise ValueError(f"this {self.what} has no shape and no values yet; call its module once with an "
                         f"input, which initialises it, or materialize(shape)")


class _Uninitialized:
    """What the two uninitialised tensors share: they know a dtype and a device until ``materialize``."""

    __slots__ = ()
    _array: Any
    cls_to_become: Any = None

    @classmethod
    def _pending(cls, device: Any, dtype: Any) -> Any:
        like = empty(0, device=device, dtype=dtype)
        made: Any = wrap(_Pending(like._array.dtype, like.device, cls.__name__), cls)
        return made

    @property
    def device(self) -> Any:
        return self._array.place

    @property
    def shape(self) -> Any:
        raise RuntimeError(f"{type(self).__name__}: it has no shape yet; call its module once with an input, "
                           f"which initialises it, or materialize(shape)")

    @property
    def is_cuda(self) -> bool:
        return self._array.place.type == "cuda"

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an initialised tensor of this shape, in place, with any values."""
        values = empty(shape, device=self.device if device is None else device,
                       dtype=self.dtype if dtype is None else dtype)  # type: ignore[attr-defined]
        self._array = values._array
        self.__class__ = self.cls_to_become  # as in PyTorch: an optimizer may hold this very object

    def converted(self, function: Any) -> _Pending:
        """What to ``become``: dtype and device are those that ``function`` gives a tensor like this."""
        like = function(empty(0, device=self.device, dtype=self.dtype))  # type: ignore[attr-defined]
        return _Pending(like._array.dtype, like.device, self._array.what)

    def become(self, pending: _Pending) -> None:
        """Take another dtype and device."""
        self._array = pending

    def share_memory_(self) -> Any:
        """Not before ``materialize``."""
        raise RuntimeError(f"{type(self).__name__}: there is no memory to share yet; "
                           f"materialize(shape) first")

    def detach(self) -> Any:
        """The tensor itself: there are no values to look at from outside the graph."""
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self.__reduce_ex__(4)[0](*self.__reduce_ex__(4)[1])
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        args = (type(self), self.dtype, str(self.device), self.requires_grad)  # type: ignore[attr-defined]
        return _uninitialized, args


def _uninitialized(cls: Any, dtype: Any, device: str, requires_grad: bool) -> Any:
    return cls._pending(device, dtype).requires_grad_(requires_grad)


class UninitializedParameter(_Uninitialized, Parameter):
    """A Parameter whose shape is not known yet: it has a dtype and a device, and raises for everything else.

    ``materialize(shape)`` makes it a Parameter, the same object; the lazy modules do so at their first call.

    >>> p = fw.nn.UninitializedParameter()
    >>> p.materialize((2,))
    >>> type(p).__name__, p.shape
    ('Parameter', (2,))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None,  # type: ignore[misc]
                dtype: Any = None) -> "UninitializedParameter":
        return cls._pending(device, dtype).requires_grad_(requires_grad)


class UninitializedBuffer(_Uninitialized, Tensor):
    """A buffer whose shape is not known yet; ``materialize(shape)`` makes it a Tensor, the same object.

    >>> b = fw.nn.UninitializedBuffer()
    >>> b.materialize((2,)); b.shape
    (2,)
    """

    __slots__ = ()
    cls_to_become = Tensor
    persistent = True
    __torch_function__ = disabled

    def __new__(cls, requires_grad: bool = False, device: Any = None,
                dtype: Any = None) -> "UninitializedBuffer":
        return cls._pending(device, dtype).requires_grad_(requires_grad)

    def __init__(self, *args: Any, **settings: Any) -> None:
        pass


def is_lazy(value: Any) -> bool:
    """Whether a tensor is uninitialised yet."""
    return isinstance(value, _Uninitialized)


__dir__ = _own(globals())
