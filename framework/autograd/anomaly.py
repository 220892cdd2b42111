"""Anomaly mode: stop at the op that first makes a NaN or Inf, forward or backward, in the user's frame.

While the mode is on in a thread, its calls and derivatives come by ``Watch`` (see ``seam.py``), and every
node notes the line that made it. While it is off, nothing here runs.

What counts, forward: an op's result holds NaN and no argument does, or it holds Inf and all arguments are
finite. So an Inf that was given (``full(..., inf)``, ``masked_fill(mask, -inf)``, padding) is no anomaly,
nor is what later ops make of it, until one makes NaN of it (``softmax`` of a row of -inf).
"""

import linecache
import math
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from ..backends import array_module
from ..dtypes import INEXACT
from ..errors import AnomalyError, AutogradError, add_note
from ..node import notes_of, place_of
from ..quiet import quiet, quietly
from ..seam import BACKWARD, MAKE, OP, Event, intercept
from ..tensor import Tensor
from .frames import user_frame
from .listen import listen, unlisten
from .mode import state

ndarray = np.ndarray
NAN, INF = 1, 2


# -- switching ------------------------------------------------------------------------------------


class set_detect_anomaly:
    """Switch anomaly mode of this thread on or off; as a context manager, until the end of the block.

    check_nan: raise AnomalyError at the op that first makes a NaN or Inf, forward or backward, and at a loss
    that is none; without it, errors of backward only tell the forward line. With the mode on, a kept value
    that was changed in place is reported with both lines.

    >>> with fw.autograd.set_detect_anomaly(True):
    ...     fw.tensor([1.0, 0.0]).log()
    Traceback (most recent call last):
    framework.errors.AnomalyError: log made 1 Inf among 2 numbers, the first (-inf) at index [1], ...
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (is_anomaly_enabled(), is_anomaly_check_nan_enabled())
        _switch(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        _switch(*self._before)


class detect_anomaly:
    """Anomaly mode inside the block: see ``set_detect_anomaly``.

    >>> x = fw.tensor([0.0, 1.0], requires_grad=True)
    >>> with fw.autograd.detect_anomaly():
    ...     x.sqrt().sum().backward()
    Traceback (most recent call last):
    framework.errors.AnomalyError: backward of sqrt made 1 Inf among 2 numbers of the gradient of 'input', ...
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self._blocks: list[set_detect_anomaly] = []

    def __enter__(self) -> None:
        self._blocks.append(set_detect_anomaly(True, self.check_nan))

    def __exit__(self, *exception: Any) -> None:
        self._blocks.pop().__exit__(*exception)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread."""
    return state.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode of this thread looks for NaN and Inf."""
    return state.anomaly is not None and state.anomaly.check_nan


def _switch(mode: bool, check_nan: bool) -> None:
    if mode and state.anomaly is None:
        listen(_note_line)
        quiet.site = Changed
        state.anomaly = Watch()
        state.anomaly.__enter__()
    elif not mode and state.anomaly is not None:
        unlisten(_note_line)
        quiet.site = None
        state.anomaly.__exit__(None, None, None)
        state.anomaly = None
    if mode:
        state.anomaly.check_nan = check_nan


# -- lines ----------------------------------------------------------------------------------------


class Site:
    """A line of the user's program; ``parent``: the forward line, if it is one that ran backward."""

    __slots__ = ("code", "line", "parent")

    def __init__(self, parent: "Site | None" = None) -> None:
        frame = user_frame()
        self.code = None if frame is None else frame.f_code
        self.line = 0 if frame is None else frame.f_lineno
        self.parent = parent

    def __str__(self) -> str:
        if self.code is None:
            return "a line that is not known"
        text = linecache.getline(self.code.co_filename, self.line).strip()
        where = f"{self.code.co_filename}:{self.line} in {self.code.co_name}" + (f": {text}" if text else "")
        return where if self.parent is None else f"{where}\n    in the backward of {self.parent}"


class Changed(str):
    """The name of an op that changed a tensor in place, with the line that called it."""

    site: Site

    def __new__(cls, name: str) -> "Changed":
        self = super().__new__(cls, name)
        self.site = Site()
        return self


def _note_line(node: Any) -> None:
    pulled = state.anomaly.pulled
    notes_of(node)["site"] = Site(None if pulled is None else site_of(pulled))


def site_of(node: Any) -> Site | None:
    """The line that made a node, if anomaly mode was on then."""
    return notes_of(node).get("site")


def _fail(text: str) -> None:
    """Raise, so that the innermost frame of the traceback, where pdb goes, is the user's."""
    frame = user_frame()
    error = AnomalyError(text)
    if frame is not None:
        error = error.with_traceback(TracebackType(None, frame, frame.f_lasti, frame.f_lineno))
    raise error


# -- numbers --------------------------------------------------------------------------------------


def finite(a: Any) -> bool:
    """Whether an array (or NumPy scalar) holds finite numbers only."""
    kind = a.dtype.kind
    if kind not in INEXACT:
        return True
    if type(a) is ndarray and kind == "f" and a.itemsize > 2 and a.flags.c_contiguous:
        flat = a.reshape(-1)
        if math.isfinite(np.dot(flat, flat)):  # one quick pass; it may overflow where all are finite
            return True
    return bool(array_module(a).isfinite(a).all())


def kinds(value: Any) -> int:
    """Which of NAN and INF are in a value: a number, an array, a tensor, or a nest of them."""
    if isinstance(value, Tensor):
        value = _bare(value)
    if hasattr(value, "dtype"):
        if finite(value):
            return 0
        xp = array_module(value)
        return (NAN if xp.isnan(value).any() else 0) | (INF if xp.isinf(value).any() else 0)
    if isinstance(value, float):
        return NAN if math.isnan(value) else INF if math.isinf(value) else 0
    if isinstance(value, complex):
        return kinds(value.real) | kinds(value.imag)
    if isinstance(value, (tuple, list)):
        found = 0
        for part in value:
            found |= kinds(part)
        return found
    return kinds(list(value.values())) if isinstance(value, dict) else 0


def _found(a: Any) -> tuple[str, tuple[int, ...]]:
    """("2 NaN and 1 Inf among 6 numbers", the index of the first)."""
    xp = array_module(a)
    bad = ~xp.isfinite(a)
    nans = int(xp.isnan(a).sum())
    infs = int(bad.sum()) - nans
    counts = " and ".join(f"{n} {what}" for n, what in ((nans, "NaN"), (infs, "Inf")) if n)
    first = tuple([int(i[0]) for i in xp.nonzero(bad)]) if a.ndim else ()
    return f"{counts} among {a.size} number{'s' * (a.size != 1)}", first


# -- forward --------------------------------------------------------------------------------------


def _look(event: Event, out: Any) -> None:
    """Raise for a result that holds NaN or Inf, if the op made them."""
    new = 0
    for part in out if isinstance(out, tuple) else (out,):
        if part._base is None and not finite(part._array):  # a view shows nothing new
            new |= kinds(part)
    if new:
        given = kinds(event.inputs) | kinds(event.settings)
        if not given or (new & NAN and not given & NAN):
            _fail(_forward_text(event, out, given))


def _forward_text(event: Event, out: Any, given: int) -> str:
    op = event.op
    outs = [o._array for o in (out if isinstance(out, tuple) else (out,))]
    bad = next(o for o in outs if not finite(o))
    counts, index = _found(bad)
    names = op.arguments if not op.variadic else ()
    shown = [_show(_bare(a), names[i] if i < len(names) else f"argument {i}", bad, index, hasattr(op, "expr"))
             for i, a in enumerate(event.inputs)]
    shown += [f"{k} = {_short(v)}" for k, v in event.settings.items()]
    what = "finite arguments" if not given else "arguments with Inf but no NaN"
    first = f"the first ({bad[index]}) at index {list(index)}"
    return "\n".join([f"{op.name} made {counts}, {first}, from {what}", *[f"  {line}" for line in shown],
                      f"  at {Site()}"])


def _show(a: Any, name: str, out: Any, index: tuple[int, ...], elementwise: bool) -> str:
    if not hasattr(a, "dtype"):
        return f"{name} = {_short(a)}"
    text = f"{name}: {a.dtype}{list(a.shape)}"
    if elementwise and a.size:
        place = tuple(0 if n == 1 else i for i, n in zip(index[len(index) - a.ndim:], a.shape))
        text += f", {a[place]} there"
    return text


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# -- backward -------------------------------------------------------------------------------------


class Watch(intercept):
    """What anomaly mode does with each call. ``pulled``: the node whose derivative is being computed."""

    check_nan = True

    def __init__(self) -> None:
        super().__init__(self.look)
        self.pulled: Any = None

    def look(self, event: Event, proceed: Callable) -> Any:
        """Compute, and look at the result; not at each step of a derivative, but of a user's ``backward``."""
        if event.kind == BACKWARD:
            return self.pull(event, proceed)
        out = proceed(*event.inputs, **event.settings)
        in_rule = self.pulled is not None and not hasattr(self.pulled.op, "ctx")
        made = event.kind == OP or event.kind == MAKE and event.inputs  # else it is what was in memory
        if made and self.check_nan and not in_rule:
            quietly(_look, event, out)
        return out

    def start(self, roots: list, seeds: list) -> None:
        """A loss, and the gradients given, must be finite."""
        if not self.check_nan:
            return
        for i, (root, seed) in enumerate(zip(roots, seeds)):
            if root._array.size == 1 and not finite(root._array):
                site = site_of(place_of(root._node)[0])
                made = "" if site is None else f"\n  made at {site}"
                _fail(f"backward: the value it starts from, a result of {root._node.name()}, is "
                      f"{root._array.item()}. No op made that from finite numbers while anomaly mode was on: "
                      f"it came in with the data or parameters{made}")
            if kinds(seed):
                _fail(f"backward: the gradient given for tensor {i} holds {_found(_bare(seed))[0]}")

    def pull(self, event: Event, proceed: Callable) -> Any:
        """A derivative, its result checked, its errors with the forward line."""
        node, (g,) = event.node, event.inputs
        outer, self.pulled = self.pulled, node
        try:
            grads = proceed(g, **event.settings)
        except Exception as error:
            _explain(error, node)
            raise
        finally:
            self.pulled = outer
        if self.check_nan:
            for i, part in enumerate(grads):
                if node.edges[i] is not None and part is not None and not finite(_bare(part)):
                    _fail(_backward_text(node, i, _bare(part), kinds(g)))
        return grads

    def arrived(self, leaf: Any, g: Any) -> None:
        """The gradient of a leaf must be finite; parts that are can have a sum that is not."""
        if self.check_nan and kinds(g):
            _fail(f"backward: the gradient of a leaf of shape {list(g.shape)} holds {_found(_bare(g))[0]}, "
                  f"though each part of it was finite: their sum overflowed, or a hook changed it")


def _bare(x: Any) -> Any:
    return getattr(x, "_entries", x)._array if isinstance(x, Tensor) else x  # the values of a sparse tensor


def _explain(error: Exception, node: Any) -> None:
    """Add the lines to an error from a derivative."""
    lines = [f"{node.name()} ran at {site_of(node)}"] if site_of(node) is not None else []
    for counter, version in node.versions or ():
        if counter[0] != version and isinstance(counter[1], Changed):
            lines.append(f"{counter[1]} ran at {counter[1].site}")
    text = "".join(f"\n  {line}" for line in dict.fromkeys(lines))
    if isinstance(error, AutogradError) and len(error.args) == 1 and "\n" not in str(error.args[0]):
        error.args = (f"{error.args[0]}{text}",)
    elif lines:
        add_note(error, text.strip("\n"))


def _backward_text(node: Any, i: int, part: Any, incoming: int) -> str:
    names = getattr(node.op, "arguments", ())
    which = f"'{names[i]}'" if i < len(names) else f"argument {i}"
    counts, index = _found(part)
    if incoming:
        head = (f"the gradient that came to {node.name()} is not finite, though each part of it was: their "
                f"sum overflowed, or a hook changed it")
    else:
        head = (f"backward of {node.name()} made {counts} of the gradient of {which}, the first "
                f"({part[index]}) at index {list(index)}, from a finite one")
    kept = [f"{k}: {v.dtype}{list(v.shape)}" + (f", {v[index]} there" if v.shape == part.shape else "")
            for k, v in (node.kept or {}).items() if hasattr(v, "shape")]
    if node.settings:
        kept += [f"{k} = {_short(v)}" for k, v in node.settings.items()]
    lines = [f"  {line}" for line in kept]
    if site_of(node) is not None:
        lines.append(f"  {node.name()} ran at {site_of(node)}")
    return "\n".join([head, *lines])
