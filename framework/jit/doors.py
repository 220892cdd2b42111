"""The functions that a compiled function may put off, and the code that they have while one runs.

A *door* (``_native/deferral/``) stands in front of a function: it matches the call against recorded ones,
or calls the function. Functions keep their identity and get another code that calls their door, as
``ops/record/arming.py`` does it, but only while a compiled function runs: others pay nothing.

Only functions are listed whose result depends on nothing but the kinds of their arguments and the numbers in
them, that change nothing, and that do not fail for numbers of theirs (those that do, for positions, say so
with a range that is looked at when they are called). Everything else runs when it is called, after what was
put off before it.
"""

import threading
from types import FunctionType
from typing import Any

from .. import _native
from ..nn import functional as F
from ..nn import joins, rnn_cell
from ..ops.language.elementwise import Elementwise
from ..ops.record import arming
from ..ops.record.public import PUBLIC, bare
from ..tensor import Tensor

FUNCTIONS = ("matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "linear", "sum", "mean", "softmax",
             "log_softmax", "layer_norm", "rms_norm", "scaled_dot_product_attention", "cross_entropy",
             "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits",
             "embedding", "__getitem__", "reshape", "view", "flatten", "transpose", "permute", "unsqueeze",
             "squeeze", "expand", "contiguous", "chunk", "split", "unbind", "t", "cat", "stack", "conv2d",
             "conv1d", "max_pool2d", "avg_pool2d", "gelu", "softplus", "leaky_relu", "elu", "silu", "var",
             "std", "amax", "amin", "logsumexp", "pad", "unflatten", "swapaxes", "movedim", "tril", "triu")
# what is told of a tensor that was put off without making it
MAKERS = ("arange", "zeros", "ones", "full", "empty", "eye", "linspace")  # of no tensors
TOLD = ("shape", "ndim", "dtype", "device", "requires_grad", "is_leaf", "is_cuda", "itemsize", "nbytes")
TOLD_CALLS = ("size", "dim", "numel", "is_floating_point", "is_complex", "is_contiguous", "stride")

_TEMPLATE = """
def around({names}):
    def template(*args, **settings):
        door = "<door>"
        return door(args, settings)
        {names}
    return template
"""
_doors: list[tuple[FunctionType, Any, Any, Any]] = []  # function, its door, its own code, that of the door
_lock = threading.Lock()
_inside = 0  # compiled functions at work, in all threads
_armed: dict[FunctionType, Any] = {}


def _add(found: dict, function: Any, name: str, kind: str) -> None:
    if type(function) is not FunctionType or function in found:
        return
    own = function.__code__
    original = FunctionType(own, function.__globals__, function.__name__, function.__defaults__,
                            function.__closure__)
    original.__kwdefaults__ = function.__kwdefaults__
    original.__qualname__, original.__module__ = function.__qualname__, function.__module__
    door = _native.module.make_door(original, name, kind)
    names = ", ".join(f"free{i}" for i in range(len(own.co_freevars)))
    space: dict[str, Any] = {}
    exec(_TEMPLATE.format(names=names), space)
    code = space["around"](*[None] * len(own.co_freevars)).__code__
    code = code.replace(co_consts=tuple(door if c == "<door>" else c for c in code.co_consts),
                        co_freevars=own.co_freevars, co_name=own.co_name, co_filename=own.co_filename,
                        co_firstlineno=own.co_firstlineno)
    found[function] = (function, door, own, code)


def doors() -> list[tuple[FunctionType, Any, Any, Any]]:
    """All of them; made when the first compiled function runs."""
    if not _doors:
        with _lock:
            found: dict = {}
            for p in PUBLIC:
                if p.name.endswith("_") and not p.name.endswith("__"):
                    continue
                if p.property or p.namespace == "linalg":
                    continue
                if isinstance(p.op, Elementwise) or p.name in FUNCTIONS:
                    for function in (p.function, bare(p.function), getattr(p.function, "operator", None),
                                     *[vars(Tensor).get(m) for m in (p.name, *p.methods)]):
                        _add(found, function, p.name, "d")
            for name in ("radd", "rsub", "rmul", "rtruediv"):
                _add(found, vars(Tensor).get(f"__{name}__"), name, "d")
            for function in (joins.linear_relu, joins.conv_then, rnn_cell.cell_step):
                _add(found, function, function.__name__, "d")
            for name in FUNCTIONS:
                _add(found, getattr(F, name, None), name, "d")
            for function in arming.FURTHER:
                if function.__name__ in MAKERS:
                    _add(found, function, function.__name__, "n")
            _add(found, Tensor.backward, "backward", "b")
            for name in TOLD:
                _add(found, vars(Tensor)[name].fget, name, "m")
            for name in TOLD_CALLS:
                _add(found, vars(Tensor)[name], name, "m")
            _doors.extend(found.values())
    return _doors


def arm(wanted: list) -> None:
    """Have these functions ask their doors until ``disarm``, in this thread."""
    global _inside
    with _lock:
        _inside += 1
        for function, _, own, code in wanted:
            if function.__code__ is own:
                _armed[function] = own
                function.__code__ = code


def disarm() -> None:
    """The other end: the last one that leaves gives the functions their own code back."""
    global _inside
    with _lock:
        _inside -= 1
        if not _inside:
            codes = _codes()
            for function, own in _armed.items():
                if function.__code__ is codes[function]:  # else others have put theirs around it meanwhile
                    function.__code__ = own
            _armed.clear()


def _codes() -> dict:
    if not _by_function:
        _by_function.update({function: code for function, _, _, code in _doors})
    return _by_function


_by_function: dict = {}
