"""PyTorch's ``_foreach_*``: one function for the tensors of a list each, as optimizers of libraries write it.

``_foreach_mul(xs, ys)`` is ``[x * y for x, y in zip(xs, ys)]``; ``ys`` may also be one number or 0-dim
tensor for all, or a list of numbers. Names with ``_`` at the end write into ``xs`` and return None.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .ops.reduce.vector_norm import vector_norm
from .tensor import Tensor

ONE = ("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac",
       "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign",
       "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "zero")
MORE = ("add", "addcdiv", "addcmul", "clamp_max", "clamp_min", "copy", "div", "lerp", "maximum", "minimum",
        "mul", "pow", "sub")


def _parts(op: str, count: int, arg: Any) -> Sequence[Any]:
    """What each tensor gets of an argument: its item of a list, or the one thing that is for all."""
    if not isinstance(arg, (list, tuple)):
        return [arg] * count
    if len(arg) != count:
        raise RuntimeError(f"{op}: {count} tensors and a list of {len(arg)}; give one for each")
    return arg


def _each(name: str, inplace: bool) -> Callable:
    method, op = name + "_" * inplace, f"_foreach_{name}{'_' * inplace}"

    def foreach(self: Sequence[Tensor], *args: Any, **settings: Any) -> list[Tensor] | None:
        if name == "pow" and not isinstance(self, (list, tuple)):  # one base, a list of exponents
            return [exponent.new_tensor(self).pow(exponent) for exponent in args[0]]
        columns = [_parts(op, len(self), arg) for arg in args]
        if not settings and not inplace and name not in ("addcmul", "addcdiv"):
            return list(map(getattr(Tensor, method), self, *columns))
        named = {key: _parts(op, len(self), arg) for key, arg in settings.items()}
        made = []
        for i, x in enumerate(self):
            rest = {key: parts[i] for key, parts in named.items()}
            last = [parts[i] for parts in columns]
            if name in ("addcmul", "addcdiv") and len(last) == 3:
                rest["value"] = last.pop()
            made.append(getattr(x, method)(*last, **rest))
        return None if inplace else made

    foreach.__name__ = foreach.__qualname__ = op
    foreach.__doc__ = f"``x.{method}(...)`` for each tensor x of a list."
    return foreach


def _foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> list[Tensor]:
    """The norm of each tensor, taken as a vector."""
    return [vector_norm(x, ord, dtype=dtype) for x in self]


globals().update((f.__name__, f) for name in (*ONE, *MORE) for inplace in (False, True)
                 if name not in ("zero", "copy") or inplace for f in [_each(name, inplace)])
