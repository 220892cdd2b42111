"""How a tensor prints: PyTorch's layout, four digits, long dimensions cut in the middle."""

import math
from typing import Any

import numpy as np

from .autograd.forward import tangent_at
from .autograd.mode import state
from .backends import move
from .config import names
from .device import CPU
from .dtypes import bfloat16, get_default_dtype
from .errors import TraceError
from .node import Leaf
from .tensor import Tensor


class _Options:
    precision = 4
    threshold: float = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


options = _Options()
PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision: int | None = None, threshold: int | None = None,
                     edgeitems: int | None = None, linewidth: int | None = None,
                     sci_mode: bool | None = None, profile: str | None = None) -> None:
    """Set digits, the size from which dimensions are cut, items kept at the edges, and line width.

    profile: "default", "short" or "full", which set all four; what is given beside it goes before it.
    sci_mode: always with exponents, or never; None, which is also what a call without it sets, chooses by
    the numbers. Raises ValueError for another profile.

    >>> fw.set_printoptions(precision=2); fw.tensor([1 / 3])
    tensor([0.33])
    >>> fw.set_printoptions(precision=4)
    """
    if profile is not None and (not isinstance(profile, str) or profile.lower() not in PROFILES):
        raise ValueError(f"set_printoptions: profile must be one of {sorted(PROFILES)}, got {profile!r}")
    settings = dict(PROFILES[profile.lower()]) if profile is not None else {}
    for name, value in (("precision", precision), ("threshold", threshold), ("edgeitems", edgeitems),
                        ("linewidth", linewidth)):
        value = settings.get(name) if value is None else value
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


def _float_format(values: np.ndarray) -> Any:
    """A formatter for these numbers: whole numbers, fixed or scientific, one width for all."""
    finite = values[np.isfinite(values) & (values != 0)]
    size = np.abs(finite.astype(np.float64))
    digits = options.precision
    whole = not size.size or bool(np.equal(np.rint(size), size).all())
    wide = size.size and (size.max() / size.min() > 1000.0 or size.max() > 1e8
                          or (not whole and size.min() < 1e-4))
    if options.sci_mode or (options.sci_mode is None and wide):
        def form(v: float) -> str:
            return f"{v:.{digits}e}"
    elif whole:
        def form(v: float) -> str:
            return f"{v:.0f}." if math.isfinite(v) else f"{v}"
    else:
        def form(v: float) -> str:
            return f"{v:.{digits}f}" if math.isfinite(v) else f"{v}"
    return form


def _formatter(values: np.ndarray) -> Any:
    if values.dtype.kind == "f":
        form = _float_format(values)
    elif values.dtype.kind == "c":
        real, imag = _float_format(values.real), _float_format(values.imag)

        def form(v: complex) -> str:
            return f"{real(v.real)}{'-' if math.copysign(1, v.imag) < 0 else '+'}{imag(abs(v.imag))}j"
    else:
        form = str
    counted = values[np.isfinite(values) & (values != 0)] if values.dtype.kind == "f" else values
    width = max((len(form(v)) for v in counted.ravel().tolist()), default=0)
    return lambda v: form(v).rjust(width)


def _shown(array: np.ndarray) -> np.ndarray:
    """The elements that will be printed, so that formatting does not look at millions."""
    edge = options.edgeitems
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            index = [*range(edge), *range(size - edge, size)]
            array = np.take(array, index, axis)
    return array


def _lines(array: Any, form: Any, indent: int, cut: bool) -> str:
    if array.ndim == 0:
        return form(array.item())
    edge = options.edgeitems
    cut_here = cut and array.shape[0] > 2 * edge
    if array.ndim == 1:
        items = [form(v) for v in (array if not cut_here else np.concatenate(
            [array[:edge], array[-edge:]])).tolist()]
        per_line = max(1, (options.linewidth - indent) // (len(items[0]) + 2)) if items else 1
        if cut_here:
            items.insert(edge, " ...")
        rows = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    rows = [array[i] for i in (range(array.shape[0]) if not cut_here else
                               [*range(edge), *range(array.shape[0] - edge, array.shape[0])])]
    parts = [_lines(row, form, indent + 1, cut) for row in rows]
    if cut_here:
        parts.insert(edge, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


_NOTHING = np.empty(0)  # what is shown of a tensor without values


def node_name(node: Any) -> str:
    """The name of the record; for programs of PyTorch, which look for it, as PyTorch's nodes are called."""
    if names.package == "framework":
        return node.name()
    return "".join(part.capitalize() for part in node.name().split("_")) + "Backward0"


def tensor_repr(x: Tensor, name: str = "tensor") -> str:
    """The text of a tensor, e.g. ``tensor([1., 2.], requires_grad=True)``."""
    array = _NOTHING if x.device.type == "meta" else move(x._array, CPU)
    if x.dtype is bfloat16:
        array = array.astype(np.float32)
    cut = array.size > options.threshold
    prefix = f"{name}("
    if array.size == 0:
        body = "..." if array is _NOTHING else "[]"
    else:
        body = _lines(array, _formatter(_shown(array) if cut else array), len(prefix), cut)
    notes = []
    if array.size == 0 and array.ndim != 1 or array is _NOTHING:
        notes.append(f"size={x.shape}")
    if x.device.type != "cpu":
        notes.append(f"device='{x.device}'")
    told = array.size and x.dtype.name in ("int64", "bool", "complex64")
    if x.dtype is not get_default_dtype() and not told:
        notes.append(f"dtype={x.dtype}")
    if x.grad_fn is not None:
        notes.append(f"grad_fn=<{node_name(x.grad_fn)}>")
    elif type(x._node) is Leaf:
        notes.append("requires_grad=True")
    notes += [f"tangent={t!r}" for t in [tangent_at(x._node, level) for level in state.levels[-1:]]
              if t is not None]
    tail = "".join(f", {n}" for n in notes)
    return f"{prefix}{body}{tail})"


def _format(self: Tensor, spec: str) -> str:
    """The text in an f-string: of one number it is the number, as programs print their losses."""
    if not spec:
        if self.ndim or type(self) is not Tensor or self.device.type == "meta":
            return repr(self)
        try:
            return format(self.item())
        except TraceError:  # a trace has no numbers to be read, but may be printed
            return repr(self)
    if self.ndim:
        raise TypeError(f"only a 0-dim tensor takes a format, this one has shape {list(self.shape)}")
    return format(self.item(), spec)


setattr(Tensor, "__repr__", lambda self: tensor_repr(self))  # noqa: B010 - a layer above gives it
setattr(Tensor, "__format__", _format)  # noqa: B010
