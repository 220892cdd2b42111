"""``Variable``, which was what recorded before tensors did: now a tensor itself."""

from typing import Any

from ..errors import kind_of
from ..tensor import Tensor


class _Kind(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor)

    def __call__(cls, data: Tensor, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: data must be a Tensor, got {kind_of(data)}; convert it with "
                            f"framework.tensor(...)")
        if volatile:
            raise TypeError("Variable: volatile=True has been given up; run the model under no_grad()")
        return data.detach().requires_grad_() if requires_grad else data.detach()


class Variable(metaclass=_Kind):
    """``Variable(x)`` is ``x.detach()``, with ``requires_grad`` as said; every tensor is an instance.

    volatile: only False and None; ``no_grad`` has taken its place.

    >>> x = fw.autograd.Variable(fw.ones(2), requires_grad=True)
    >>> x, isinstance(x, fw.autograd.Variable)
    (tensor([1., 1.], requires_grad=True), True)
    """
