"""How a room makes a function public: one decorator, one list that ``ops/__init__`` binds from."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from ..dtypes import can_cast
from ..errors import DTypeError, ShapeError
from ..tensor import Tensor
from .op import Op


class Public(NamedTuple):
    """A public function: its home, its Tensor methods, and the record it is the face of (if one)."""

    name: str
    namespace: str
    function: Callable
    methods: tuple[str, ...]
    inplace: bool
    op: Op | None
    property: bool = False


PUBLIC: list[Public] = []
T = TypeVar("T")


def public(namespace: str = "framework", *, method: bool | str = False, inplace: bool = False,
           op: Op | None = None, name: str | None = None, alias: str = "",
           as_property: bool = False, out: bool = False, also: str = "") -> Callable:
    """Register a function under ``namespace``; with ``method``, also as a method of Tensor.

    method: True for the function's own name, or a string of names ("add __add__"). alias: further
    names in the namespace. inplace: also the method ``name_``. namespace "": only the methods.
    out: the function gets an argument ``out=`` (its methods have none, as in PyTorch). also: further
    keywords for arguments, "axis0=dim0 axis1=dim1", where PyTorch has several names for one.
    """
    def register(function: Callable) -> Callable:
        own = name or function.__name__
        function = by_keyword(function, also)
        if out:
            function = with_out(function, own)
        methods = (own,) if method is True else tuple(method.split()) if method else ()
        for home in (own, *alias.split()):
            first = home == own
            PUBLIC.append(Public(home, namespace, function, methods if first else (),
                                 inplace and first, op, as_property))
        return function
    return register


def bare(function: Callable) -> Callable:
    """What a method is bound to: the function without its ``out=``."""
    return getattr(function, "without_out", function)


def with_out(function: Callable[..., T], name: str | None = None) -> Callable[..., T]:
    """The function with ``out=``: a tensor, or a tuple of them where it gives several."""
    name = name or function.__name__

    @wraps(function)
    def call(*args: Any, out: Any = None, **settings: Any) -> Any:
        result: Any = function(*args, **settings)
        if out is None:
            return result
        if isinstance(result, Tensor):
            return check_out(out, result, name)
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{name}: out must be {len(result)} Tensors, got {type(out).__name__}")
        results = [check_out(o, r, name) for o, r in zip(out, result)]
        return type(result)(*results) if hasattr(result, "_fields") else tuple(results)

    annotation = Tensor | None if _gives_one(function) else Any
    _describe(call, function, inspect.Parameter(
        "out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    call.without_out = function  # type: ignore[attr-defined]
    call.also = getattr(function, "also", {})  # type: ignore[attr-defined]
    return call


def _gives_one(function: Callable) -> bool:
    return inspect.signature(function).return_annotation is Tensor


def _describe(call: Callable, function: Callable, *further: inspect.Parameter) -> None:
    """Show ``function``'s signature, with further parameters, as that of ``call``."""
    signature = inspect.signature(function)
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *further])


def by_keyword(function: Callable[..., T], also: str = "") -> Callable[..., T]:
    """Let ``f(x, 2, 3)`` with ``*size`` be called as ``f(x, size=(2, 3))``; accept the ``also`` names too.

    A function that needs neither, or can do so already, is returned as it is.
    """
    parameters = inspect.signature(function).parameters.values()
    starred = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
    leading = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    names = dict(pair.split("=") for pair in also.split())
    if starred in ("size", "shape", "dims", "repeats"):
        names = {starred: starred, **names}
    if not names or names == getattr(function, "also", None):
        return function

    @wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        for name in settings.keys() & names.keys():
            if names[name] == starred:
                last = settings.pop(name)
                args = (*args, *[settings.pop(n) for n in leading[len(args):] if n in settings], last)
            else:
                settings[names[name]] = settings.pop(name)
        return function(*args, **settings)
    _describe(call, function)
    call.also = names  # type: ignore[attr-defined]
    return call


def check_out(out: Any, result: Tensor, op: str) -> Tensor:
    """Write ``result`` into ``out=`` of a function, PyTorch's rules: same dtype category, no grad."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{op}: out must be a Tensor, got {type(out).__name__}")
    if out._node is not None or result._node is not None:
        raise RuntimeError(f"{op}: out= cannot be recorded; use the function's result, or no_grad()")
    if not can_cast(result.dtype, out.dtype):
        raise DTypeError(f"{op}: a result of {result.dtype} does not fit out= of {out.dtype}")
    if out.shape != result.shape:
        raise ShapeError(f"{op}: the result has shape {list(result.shape)}, out= has {list(out.shape)}")
    out.copy_(result)  # type: ignore[attr-defined]
    return out
