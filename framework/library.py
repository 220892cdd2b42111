"""Operators of one's own: ``custom_op`` with a shape rule, a derivative and kernels for devices.

An operator is a function with a name ``"space::name"`` that users may call like any other; how it is
differentiated is registered beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .autograd.function import Function
from .autograd.mode import no_grad
from .tensor import Tensor

__all__ = ["CustomOpDef", "custom_op", "get_kernel", "register_autograd", "register_fake", "register_kernel"]

_OPS: dict[str, "CustomOpDef"] = {}


def operators() -> Mapping[str, "CustomOpDef"]:
    """All operators that can be called, by name: not those that only a rule has been registered for."""
    return MappingProxyType({name: op for name, op in _OPS.items() if op._kernels})


class CustomOpDef:
    """An operator made by `custom_op`; calling it runs its kernel for the device of the first tensor."""

    def __init__(self, name: str) -> None:
        self._name, self._opoverload = name, self
        self._kernels: dict[str | None, Callable] = {}
        self._fake: Callable | None = None
        self._backward: Callable | None = None
        self._setup: Callable | None = None
        self.__name__ = name.rpartition("::")[2]

    def register_kernel(self, device_types: Any, func: Callable | None = None) -> Callable:
        """Use ``func`` for tensors of these devices ("cpu", "cuda", a list of them, or None for all).

        Without func, a decorator.
        """
        if func is None:
            return lambda made: self.register_kernel(device_types, made)
        for kind in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
            self._kernels[kind] = func
        return func

    def register_fake(self, fn: Callable) -> Callable:
        """The rule for shapes, which meta tensors run: arguments -> empty tensors like the result."""
        self._fake = fn
        return fn

    register_abstract = register_fake

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """The derivative: ``backward(ctx, *grads)`` gives a gradient (or None) per argument.

        ``setup_context(ctx, inputs, output)`` keeps what it needs, by ``ctx.save_for_backward``.
        """
        if not callable(backward):
            raise TypeError(f"register_autograd: backward must be a function, got {type(backward).__name__}")
        self._backward, self._setup = backward, setup_context

    def _kernel_for(self, args: Sequence[Any]) -> Callable:
        device = next((x.device.type for x in args if isinstance(x, Tensor)), None)
        if device == "meta" and self._fake is not None:
            return self._fake
        kernel = self._kernels.get(device) or self._kernels.get(None)
        if kernel is None:
            raise NotImplementedError(f"{self._name}: there is no kernel for {device}; register_kernel("
                                      f"{device!r}) adds one")
        return kernel

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kernel = self._kernel_for([*args, *kwargs.values()])
        if self._backward is None:
            return kernel(*args, **kwargs)
        backward, setup, names = self._backward, self._setup, list(kwargs)

        class Call(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                cut = len(inputs) - len(names)
                with no_grad():
                    output = kernel(*inputs[:cut], **dict(zip(names, inputs[cut:])))
                if setup is not None:
                    setup(ctx, inputs, output)
                return output

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return backward(ctx, *grads)

        Call.__name__ = self.__name__
        return Call.apply(*args, *kwargs.values())

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"


def custom_op(name: str, fn: Callable | None = None, /, *, mutates_args: Any = (), device_types: Any = None,
              schema: str | None = None) -> Any:
    """An operator ``"space::name"`` of a function; without one, a decorator.

    mutates_args: the arguments that it changes in place; schema: taken and not checked. Raises ValueError for
    a name without a space; the operator of a name that is taken is replaced, and one that only rules were
    registered for keeps them.

    >>> @fw.library.custom_op("examples::double", mutates_args=())
    ... def double(x: fw.Tensor) -> fw.Tensor:
    ...     return 2 * x
    >>> double.register_autograd(lambda ctx, g: 2 * g)
    >>> x = fw.ones(2, requires_grad=True)
    >>> double(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if fn is None:
        return lambda made: custom_op(name, made, mutates_args=mutates_args, device_types=device_types,
                                      schema=schema)
    space, _, last = name.partition("::")
    if not space or not last:
        raise ValueError(f"custom_op: the name must be 'space::name', got {name!r}")
    waiting = _OPS.get(name)
    made = CustomOpDef(name) if waiting is None or waiting._kernels else waiting
    made.register_kernel(device_types, fn)
    made.__doc__ = fn.__doc__
    _OPS[name] = made
    return made


def _found(op: Any, what: str) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if "::" not in str(op):
        raise ValueError(f"{what}: wanted an operator or its name 'space::name', got {op!r}")
    return _OPS.setdefault(op, CustomOpDef(op))  # a rule may come before its operator, which takes it over


def register_fake(op: Any, func: Callable | None = None, /, **settings: Any) -> Any:
    """`CustomOpDef.register_fake` of an operator or its name."""
    found = _found(op, "register_fake")
    return found.register_fake if func is None else found.register_fake(func)


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, **settings: Any) -> Any:
    """`CustomOpDef.register_kernel` of an operator or its name."""
    return _found(op, "register_kernel").register_kernel(device_types, func)


def register_autograd(op: Any, backward: Callable, /, *, setup_context: Callable | None = None,
                      **settings: Any) -> None:
    """`CustomOpDef.register_autograd` of an operator or its name."""
    _found(op, "register_autograd").register_autograd(backward, setup_context=setup_context)


def get_kernel(op: Any, device_type: str | None = None) -> Callable:
    """The function that runs for a device."""
    found = _found(op, "get_kernel")
    kernel = found._kernels.get(device_type) or found._kernels.get(None)
    if kernel is None:
        raise NotImplementedError(f"{found._name}: there is no kernel for {device_type}")
    return kernel
