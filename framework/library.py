"""Operators of one's own: ``custom_op`` with a shape rule, a derivative and kernels for devices.

An operator is a function with a name ``"space::name"`` that users may call like any other, also as
``fw.ops.space.name``; how it is differentiated is registered beside it. `Library` registers the same by
pieces, as older programs do.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from .autograd.function import Function
from .autograd.mode import no_grad
from .config.listing import own as _own
from .ops.spaces import space as _space
from .tensor import Tensor
from .testing import assert_close

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "triton_op",
    "wrap_triton",
]

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
        self._whole: Callable | None = None
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
        if self._whole is not None:
            return self._whole(*args, **kwargs)
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
    return _shown(made)


def _shown(op: CustomOpDef) -> CustomOpDef:
    """The operator, to be found as ``fw.ops.space.name`` from here on."""
    space, _, name = op._name.partition("::")
    _OPS[op._name] = op
    _space(space).put(name, op)
    return op


def _found(op: Any, what: str) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    op = getattr(op, "_qualified_op_name", op)  # as ``fw.ops.space.name`` has it
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


# what PyTorch calls the devices that a function is for; "": for all
_KEYS = {
    "CPU": ("cpu",),
    "CUDA": ("cuda",),
    "CompositeExplicitAutograd": (None,),
    "CompositeImplicitAutograd": (None,),
    "": (None,),
    "default": (None,),
}


class Library:
    """Operators of a space, registered by pieces: ``define`` their names, then ``impl`` their functions.

    kind: "DEF" for a space of one's own, "FRAGMENT" for more of it, "IMPL" for functions of operators that
    are there. Raises ValueError for another kind, and for PyTorch's own spaces, whose operators are not
    replaced here.

    >>> lib = fw.library.Library("examples", "FRAGMENT")
    >>> lib.define("plus_one(Tensor x) -> Tensor")
    'plus_one'
    >>> lib.impl("plus_one", lambda x: x + 1, "CPU")
    >>> fw.ops.examples.plus_one(fw.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Library: kind must be 'DEF', 'FRAGMENT' or 'IMPL', got {kind!r}")
        if ns in ("aten", "prim", "prims"):
            raise ValueError(
                f"Library: the operators of {ns} are functions of this package, and are not replaced; "
                f"choose a space of your own"
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """A new operator, "name(Tensor x, ...) -> Tensor"; types are taken and not checked."""
        match = re.match(r"\s*(\w+)(\.\w+)?\s*\(", schema)
        if match is None:
            raise ValueError(f"Library.define: wanted 'name(arguments) -> results', got {schema!r}")
        if self.kind == "IMPL":
            raise ValueError(
                "Library.define: a library of kind 'IMPL' defines nothing; make one of kind 'DEF'"
            )
        _shown(_found(f"{self.ns}::{match[1]}", "Library.define"))
        return match[1]

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """The function of an operator for "CPU", "CUDA", "Meta" (shapes), "Autograd" (in place of
        everything).

        Raises ValueError for another key, or an operator that is not defined.
        """
        if with_keyset:
            raise ValueError("Library.impl: there are no sets of keys here; call it without with_keyset")
        name = getattr(op_name, "_qualified_op_name", op_name).rpartition("::")[2].partition(".")[0]
        if f"{self.ns}::{name}" not in _OPS:
            raise ValueError(f"Library.impl: there is no operator {self.ns}::{name}; define it first")
        found = _OPS[f"{self.ns}::{name}"]
        key = dispatch_key or self.dispatch_key
        if key == "Meta":
            found.register_fake(fn)
        elif key.startswith("Autograd"):
            found._whole = fn
        elif key in _KEYS:
            found._kernels.update(dict.fromkeys(_KEYS[key], fn))
        else:
            raise ValueError(
                f"Library.impl: there is no dispatch key {key!r} here, but {', '.join(_KEYS)}, Meta and "
                f"Autograd"
            )


def _library(qualname: str, lib: Library | None) -> tuple[Library, str]:
    ns, _, name = qualname.partition("::")
    if not name:
        raise ValueError(f"library: the name must be 'space::name', got {qualname!r}")
    return lib or Library(ns, "FRAGMENT"), name


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """A new operator "space::name"; schema: "(Tensor x) -> Tensor"."""
    library, name = _library(qualname, lib)
    library.define(name + schema)


def impl(qualname: str, types: Any, func: Callable | None = None, *, lib: Library | None = None) -> Any:
    """The function of an operator for devices ("cpu", "CUDA", "default", or several); else a decorator."""
    if func is None:
        return lambda made: (impl(qualname, types, made, lib=lib), made)[1]
    library, name = _library(qualname, lib)
    for kind in (types,) if isinstance(types, str) else types:
        library.impl(name, func, {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}.get(kind, kind))
    return None


impl_abstract = register_fake


def get_ctx() -> NoReturn:
    """Refused: sizes that depend on values have no symbol on the meta device."""
    raise RuntimeError(
        "library.get_ctx: a shape rule gives sizes here; one that depends on values has none, so let "
        "the rule raise for it"
    )


def triton_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: Any = (), schema: str | None = None
) -> Any:
    """``custom_op`` of a function that is to launch Triton's kernels; `wrap_triton` refuses here.

    Its derivative is that of the operations in it, unless one is registered.
    """
    if fn is None:
        return lambda made: triton_op(name, made, mutates_args=mutates_args, schema=schema)
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Callable) -> NoReturn:
    """Refused: Triton's kernels take PyTorch's tensors."""
    raise RuntimeError(
        "library.wrap_triton: Triton's kernels are not run here; write the operator with tensors, or "
        "a kernel for the GPU with CuPy's RawKernel"
    )


def opcheck(
    op: Any,
    args: tuple,
    kwargs: dict | None = None,
    *,
    test_utils: Any = ("test_schema", "test_autograd_registration", "test_faketensor"),
    raise_exception: bool = True,
    atol: Any = None,
    rtol: Any = None,
) -> dict[str, str]:
    """Check how an operator is registered, on one call: {test: "SUCCESS" or what is wrong}.

    test_schema: it changes no argument and gives none back. test_autograd_registration: it has a derivative
    where an argument requires grad. test_faketensor: its shape rule gives what the call gives. Raises
    RuntimeError with all that is wrong, unless ``raise_exception=False``.

    >>> @fw.library.custom_op("examples::twice", mutates_args=())
    ... def twice(x: fw.Tensor) -> fw.Tensor:
    ...     return 2 * x
    >>> fw.library.opcheck(twice, (fw.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    found, settings = _found(op, "opcheck"), dict(kwargs or {})
    tests = {
        "test_schema": _unchanged,
        "test_autograd_registration": _differentiable,
        "test_faketensor": _shaped,
    }
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    results = {}
    for name in wanted:
        if name == "test_aot_dispatch_dynamic":
            continue  # a test of PyTorch's compiler
        if name not in tests:
            raise ValueError(f"opcheck: there is no test {name!r}, but {', '.join(tests)}")
        try:
            tests[name](found, args, settings)
            results[name] = "SUCCESS"
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    wrong = [f"{name}: {text}" for name, text in results.items() if text != "SUCCESS"]
    if wrong and raise_exception:
        raise RuntimeError(f"opcheck of {found._name}: " + "; ".join(wrong))
    return results


def _tensors(values: Any) -> list[Tensor]:
    return [x for x in values if isinstance(x, Tensor)]


def _outputs(result: Any) -> list[Tensor]:
    return _tensors(result if isinstance(result, (tuple, list)) else [result])


def _unchanged(op: CustomOpDef, args: tuple, settings: dict) -> None:
    given = _tensors([*args, *settings.values()])
    before = [x.detach().clone() for x in given]  # type: ignore[attr-defined]
    with no_grad():
        results = _outputs(op(*args, **settings))
    for x, y in zip(given, before):
        assert_close(x.detach(), y, rtol=0, atol=0, equal_nan=True, msg="it changes an argument")
    if any(result is x for result in results for x in given):
        raise AssertionError("it returns one of its arguments; return a clone")


def _differentiable(op: CustomOpDef, args: tuple, settings: dict) -> None:
    if not any(x.requires_grad for x in _tensors([*args, *settings.values()])):
        return
    if not any(x.requires_grad for x in _outputs(op(*args, **settings))):
        raise AssertionError(
            "an argument requires grad and no result does; register_autograd gives its derivative"
        )


def _shaped(op: CustomOpDef, args: tuple, settings: dict) -> None:
    def on_meta(x: Any) -> Any:
        return x.detach().to("meta") if isinstance(x, Tensor) else x  # type: ignore[attr-defined]

    if op._fake is None:
        raise AssertionError("it has no shape rule; register_fake gives one")
    with no_grad():
        real = _outputs(op(*args, **settings))
        fake = _outputs(op._fake(*map(on_meta, args), **{k: on_meta(v) for k, v in settings.items()}))
    for x, y in zip(real, fake, strict=True):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise AssertionError(
                f"the shape rule gives {y.dtype} {list(y.shape)}, the call {x.dtype} {list(x.shape)}"
            )


__dir__ = _own(globals())
