"""How a room makes a function public: one decorator, one list that ``ops/__init__`` binds from."""

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from ... import _native
from ...autograd.mode import state
from ...dtypes import can_cast
from ...errors import DeviceError, DTypeError, ShapeError, kind_of
from ...layouts import strided
from ...tensor import Tensor
from . import autocast
from .autocast import Policy, choosing, without_choosing
from .deferred import Deferred
from .entries import entered
from .into import answered, computed_into, native_into
from .op import Op
from .torch_function import asked_late


class Public(NamedTuple):
    """A public function: its home, its Tensor methods, and the record it is the face of (if one)."""

    name: str
    namespace: str
    function: Callable
    methods: tuple[str, ...]
    inplace: bool | Callable
    op: Op | None
    property: bool = False
    call: Callable | None = None
    autocast: Policy | None = None
    deferred: Deferred = False


PUBLIC: list[Public] = []
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
HINTS = {"layout": "", "pin_memory": ""}  # what PyTorch's makers of tensors take besides: no argument of ours
T = TypeVar("T")
copied_into = native_into("same")


def public(namespace: str = "framework", *, method: bool | str = False,
           inplace: bool | Callable = False,
           op: Op | None = None, name: str | None = None, alias: str = "",
           as_property: bool = False, out: bool | str = False, also: str = "",
           numpy: bool | None = None, call: Callable | None = None, autocast: Policy | None = None,
           asks: bool = True, deferred: Deferred = False) -> Callable:
    """Register a function under ``namespace``; with ``method``, also as a method of Tensor.

    method: True for the function's own name, or a string of names ("add __add__"). alias: further names in
    the namespace. inplace: also the method ``name_``; a function of the same arguments is asked first, which
    has written the result into the first of them if it gives that back. namespace "": only the methods.
    out: the function gets an argument ``out=`` (its methods have none, as in PyTorch); "exact": it must have
    the result's own dtype.
    also: further keywords for arguments, "axis0=dim0 axis1=dim1", where PyTorch has several names for one.
    numpy: whether NumPy's ``axis=`` and ``keepdims=`` stand for ``dim=`` and ``keepdim=`` (default: but in
    nn.functional). call: a function of the same arguments that answers with the one `Call` of an elementwise
    record which computes the result, or None; in-place forms and ``out=`` then let it write straight into
    memory. autocast: how it chooses its dtype in a block of autocast, see ``autocast.py``. asks: whether that
    is asked around the function, which otherwise does so itself. deferred: whether a compiled function may
    put a call off, see ``deferred.py``.
    """
    takes_numpy = namespace != "nn.functional" if numpy is None else numpy

    def register(function: Callable) -> Callable:
        own = name or function.__name__
        plan = call
        if call is not None:
            call.__name__ = call.__qualname__ = own  # what Python says of arguments that do not fit
            plan = answered(call)
        given = bare(function)
        if autocast is not None and asks:
            function = given = choosing(given, autocast)
        plain = by_keyword(given, also, takes_numpy)
        if out or plain is not given:
            takes_out = out or function is not given
            function = with_out(plain, own, plan, exact=out == "exact", op=op) if takes_out else plain
        if namespace == "nn.functional":
            function = with_old_reduction(function)
        methods = (own,) if method is True else tuple(method.split()) if method else ()
        for home in (own, *alias.split()):
            first = home == own
            PUBLIC.append(Public(home, namespace, function, methods if first else (),
                                 first and inplace, op, as_property, plan, autocast, deferred))
        return function
    return register


def bare(function: Callable) -> Callable:
    """What a method is bound to: the function without its ``out=``."""
    return getattr(function, "without_out", function)


class _Outlined:
    """Stands between a function and its form with ``out=``, for those who ask for that one's signature.

    It is made when somebody asks: to make all of them would take a twentieth of the import.
    """

    def __init__(self, function: Callable) -> None:
        self.__wrapped__ = function

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self.__wrapped__)
        annotation = Tensor | None if signature.return_annotation is Tensor else Any
        given = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        return signature.replace(parameters=[*signature.parameters.values(), given])


def with_out(function: Callable[..., T], name: str | None = None,
             plan: Callable | None = None, *, exact: bool = False, op: Op | None = None) -> Callable[..., T]:
    """The function with ``out=``: a tensor, or a tuple of them where it gives several. op: its record."""
    name = name or function.__name__
    names = getattr(function, "also", {})
    direct = function.__wrapped__ if names else function  # type: ignore[attr-defined]
    unchosen = without_choosing(direct)

    @wraps(function)
    def call(*args: Any, out: Any = None, **settings: Any) -> Any:
        if out is None:
            plain = direct if autocast.used else unchosen
            try:
                return plain(*args, **settings) if settings else plain(*args)
            except TypeError:
                if names.keys().isdisjoint(settings):
                    if (asked := asked_late(entry, args, settings)) is not NotImplemented:
                        return asked
                    raise
        elif plan is not None and names.keys().isdisjoint(settings) \
                and (planned := plan(*args, **settings)) is not None:
            record, inputs, given = planned
            return compute_into(record, inputs, given, out, name)
        if out is None:
            return function(*args, **settings)
        if autocast.used:
            return check_result(out, autocast.as_given(function, *args, **settings), name, exact)
        plain = unchosen if not settings or names.keys().isdisjoint(settings) else function
        return run_into(plain, args, settings, out, name, exact, op)

    call.__wrapped__ = _Outlined(function)  # type: ignore[attr-defined, assignment]
    call.without_out = function  # type: ignore[attr-defined]
    call.also = names  # type: ignore[attr-defined]
    entry = entered(call, unchosen, names, (name, exact, op, plan))
    return entry


def _arguments(function: Callable) -> tuple[list[str], list[str], str]:
    """The names of a function's arguments: by position or keyword, by keyword only, and of ``*these``.

    Read from its code, as making a signature of every function would take a fifth of the import.
    """
    code = inspect.unwrap(function).__code__
    positional, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    starred = code.co_varnames[end] if code.co_flags & inspect.CO_VARARGS else ""
    names = list(code.co_varnames[:end])
    return names[code.co_posonlyargcount:positional], names[positional:], starred


def by_keyword(function: Callable[..., T], also: str = "", numpy: bool = False) -> Callable[..., T]:
    """Let ``f(x, 2, 3)`` with ``*size`` be called as ``f(x, size=(2, 3))``; accept the ``also`` names too.

    numpy: also ``axis`` for ``dim`` and ``keepdims`` for ``keepdim``. Factory functions (they have
    ``requires_grad``) take the hints ``layout=``, which must be strided, and ``pin_memory=``. A function that
    needs none of it, or can do so already, is returned as it is. The names are looked at only after Python
    refused them, so that other calls do not pay for them.
    """
    leading, others, starred = _arguments(function)
    had: dict[str, str] = getattr(function, "also", {})
    names = {**had, **dict(pair.split("=") for pair in also.split())}
    if starred in ("size", "shape", "dims", "repeats"):
        names = {starred: starred, **names}
    if numpy:
        names.update({theirs: own for theirs, own in NUMPY_NAMES.items() if own in (*leading, *others)})
    if "requires_grad" in others:
        names.update({hint: "" for hint in HINTS if hint not in (*leading, *others)})
    if names == had:
        return function

    def renamed(args: tuple, settings: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        for name in settings.keys() & names.keys():
            if names[name] == starred:
                last = settings.pop(name)
                args = (*args, *[settings.pop(n) for n in leading[len(args):] if n in settings], last)
            elif names[name] in settings:
                raise TypeError(f"{function.__name__}: {name}= and {names[name]}= are one argument; give one "
                                f"of them")
            else:
                settings[names[name]] = settings.pop(name)
        return args, settings

    @wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        try:
            return function(*args, **settings) if settings else function(*args)
        except TypeError:
            if names.keys().isdisjoint(settings):
                if (asked := asked_late(entry, args, settings)) is not NotImplemented:
                    return asked
                raise
        hints = {name: settings.pop(name) for name in HINTS if name in settings and not names.get(name, name)}
        args, settings = renamed(args, settings)
        result: Any = function(*args, **settings)
        return hinted(result, function.__name__, **hints) if hints else result
    call.also = names  # type: ignore[attr-defined]
    entry = entered(call, without_choosing(function), names)
    return entry


def hinted(result: Tensor, op: str, layout: Any = None, pin_memory: Any = False) -> Tensor:
    """A new tensor as the hints given to its factory function want it."""
    if layout not in (None, strided):
        raise ValueError(f"{op}: layout must be {strided!r}, got {layout!r}; make the tensor, then convert "
                         f"it, e.g. by to_sparse()")
    if not pin_memory:
        return result
    return result.detach().pin_memory().requires_grad_(result.requires_grad)  # type: ignore[attr-defined]


def with_old_reduction(function: Callable[..., T]) -> Callable[..., T]:
    """Let a loss take PyTorch's old words for ``reduction=``: ``size_average=`` and ``reduce=``.

    They are looked at only after Python refused them, so that other calls do not pay for them.
    """
    leading, others, _ = _arguments(function)
    if "reduction" not in (*leading, *others) or "size_average" in (*leading, *others):
        return function

    plain = without_choosing(function)

    @wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        try:
            return function(*args, **settings) if autocast.used else plain(*args, **settings)
        except TypeError:
            if settings.keys().isdisjoint(("size_average", "reduce")):
                if (asked := asked_late(entry, args, settings)) is not NotImplemented:
                    return asked
                raise
        average, reduce = settings.pop("size_average", None), settings.pop("reduce", None)
        if average is not None or reduce is not None:
            word = "none" if reduce is False else "sum" if average is False else "mean"
            warnings.warn(f"{function.__name__}: size_average and reduce are old; use reduction={word!r}",
                          UserWarning, stacklevel=2)
            settings["reduction"] = word
        return function(*args, **settings)
    entry = entered(call, plain, {"size_average": "", "reduce": ""})
    return entry


def compute_into(record: Any, inputs: tuple, settings: dict[str, Any], out: Any, op: str) -> Tensor:
    """The result of a record's call, in ``out=`` of a function."""
    if record.writes and isinstance(out, Tensor) and out._node is None \
            and computed_into(out, (record, inputs, settings), op):
        return out
    return run_into(record.run, inputs, settings, out, op, False, record)


def check_result(out: Any, result: Any, op: str, exact: bool = False) -> Any:
    """Write the result of a function, or several, into ``out=``."""
    if isinstance(result, Tensor):
        return check_out(out, result, op, exact)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{op}: out must be {len(result)} Tensors, got {type(out).__name__}")
    results = [check_out(o, r, op, exact) for o, r in zip(out, result)]
    return type(result)._make(results) if hasattr(result, "_fields") else tuple(results)


def run_into(function: Callable, args: tuple, settings: dict[str, Any], out: Any, op: str,
             exact: bool, record: Op | None) -> Any:
    """What ``function(*args, **settings)`` gives, in ``out=``; the kernel of ``record`` writes there if it
    may.
    """
    return check_result(out, function(*args, **settings), op, exact)


def check_out(out: Any, result: Tensor, op: str, exact: bool = False) -> Tensor:
    """Write ``result`` into ``out=`` of a function, PyTorch's rules: same dtype (category), no grad."""
    if copied_into(out, result, op) is out:  # of one dtype and shape, outside of the graph
        return out
    if not isinstance(out, Tensor):
        raise TypeError(f"{op}: out must be a Tensor, got {kind_of(out)}")
    if state.enabled and (out._node is not None or result._node is not None):
        raise RuntimeError(f"{op}: out= cannot be recorded; use the function's result, or no_grad()")
    if not can_cast(result.dtype, out.dtype) or exact and out.dtype is not result.dtype:
        raise DTypeError(f"{op}: a result of {result.dtype} does not fit out= of {out.dtype}; give one of "
                         f"the result's dtype")
    if result.is_cuda and out.device != result.device:
        raise DeviceError(f"{op}: the result is on {result.device}, out= on {out.device}; give one of the "
                          f"result's device")
    if out.shape != result.shape and not out._array.size:  # an empty one takes the shape, as in PyTorch
        out.resize_(result.shape)  # type: ignore[attr-defined]
    if out.shape != result.shape:
        raise ShapeError(f"{op}: the result has shape {list(result.shape)}, out= has {list(out.shape)}; give "
                         f"one of the result's shape")
    out.copy_(result)  # type: ignore[attr-defined]
    return out


if hasattr(_native.module, "set_up_placed"):
    _native.module.set_up_placed(check_result, compute_into)
    run_into, compute_into = _native.module.run_into, _native.module.compute_into
