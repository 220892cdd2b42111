"""How a room makes a function public: one decorator, one list that ``ops/__init__`` binds from."""

from collections.abc import Callable
from typing import Any, NamedTuple

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


def public(namespace: str = "framework", *, method: bool | str = False, inplace: bool = False,
           op: Op | None = None, name: str | None = None, alias: str = "",
           as_property: bool = False) -> Callable:
    """Register a function under ``namespace``; with ``method``, also as a method of Tensor.

    method: True for the function's own name, or a string of names ("add __add__"). alias: further
    names in the namespace. inplace: also the method ``name_``. namespace "": only the methods.
    """
    def register(function: Callable) -> Callable:
        own = name or function.__name__
        methods = (own,) if method is True else tuple(method.split()) if method else ()
        for home in (own, *alias.split()):
            first = home == own
            PUBLIC.append(Public(home, namespace, function, methods if first else (),
                                 inplace and first, op, as_property))
        return function
    return register


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
