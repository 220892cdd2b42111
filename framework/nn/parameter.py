"""Parameter and Buffer: the tensors that a Module registers when they are assigned to it."""

from typing import Any

from ..creation import empty
from ..tensor import Tensor, counter_of, wrap


def _over(data: Any, cls: type) -> Any:
    """A tensor of class ``cls`` over the memory of ``data``, outside its graph."""
    if data is None:
        data = empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(f"{cls.__name__}: argument 'data' must be a Tensor, got {type(data).__name__}; "
                        f"convert it with framework.tensor(...)")
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

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> "Parameter":
        return _over(data, cls).requires_grad_(requires_grad)

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        pass

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that belongs to a Module's state and is not trained; assignment registers it.

    persistent: whether ``state_dict`` holds it.

    >>> m = fw.nn.Module()
    >>> m.count = fw.nn.Buffer(fw.zeros(1))
    >>> list(m.state_dict())
    ['count']
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> "Buffer":
        made = _over(data, cls)
        made.persistent = persistent
        return made

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        pass
