"""Arrays of a batch that look like one example's: what ``func.vmap`` hands to a function, and to kernels.

``Batched`` is an array of the shape, dtype and strides of one example; ``full`` holds all of them, the batch
in front. Tensors over it need nothing else: arguments are checked, calls recorded and derivatives formed as
for one example, and only the choice of the kernel (``Op.kernel_for``) finds out that there are many. Then the
record's rule, its field ``batch``, says how one call computes them all::

    batch(op, size, arrays, batched, settings)  ->  the result (or tuple of them), the batch in front

``arrays`` are the whole ones, the batch in front of those marked in ``batched``. A record without a rule is
called once per example, after a warning that names it. Levels nest: ``full`` may be Batched itself, and rules
call kernels by ``call``, which looks again.

While no vmap is at work ``dtypes.plain`` holds, and no call asks for any of this.
"""

import linecache
import threading
import warnings
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ... import dtypes
from ...autograd.frames import user_frame
from ...autograd.mode import state
from ...backends import cuda, meta
from ...errors import FrameworkError
from ...node import next_seq
from ...tensor import Tensor

ndarray = np.ndarray
_view = ndarray.view


class DataDependentError(FrameworkError, RuntimeError):
    """A function under vmap asked for a value that differs from example to example."""


class Batched(ndarray):
    """One example's shape over the arrays of all examples (``full``) of a ``level``; see the module."""

    full: Any
    level: "Level"

    def __array_finalize__(self, obj: Any) -> None:
        self.full = None  # NumPy makes views and copies of its own, which are no batches

    # what rules ask of arrays

    def reshape(self, *shape: Any, **_: Any) -> "Batched":  # type: ignore[override]
        shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        return lift(self.full.reshape((self.full.shape[0], *shape)), self.level)

    def transpose(self, *axes: Any) -> "Batched":  # type: ignore[override]
        axes = tuple(axes[0]) if len(axes) == 1 and not isinstance(axes[0], int) else axes
        axes = axes or tuple(reversed(range(self.ndim)))
        return lift(self.full.transpose((0, *[a % self.ndim + 1 for a in axes])), self.level)

    def __getitem__(self, key: Any) -> "Batched":
        key = key if isinstance(key, tuple) else (key,)
        if not all(k is None or k is Ellipsis or isinstance(k, (int, slice)) for k in key):
            raise self.asked("an index that is an array")
        return lift(self.full[(slice(None), *key)], self.level)

    def __setitem__(self, key: Any, value: Any) -> None:
        if key is not Ellipsis:
            raise self.asked("an assignment")
        self.full[...] = self._fitted(value)

    def _fitted(self, value: Any) -> Any:
        """A value of this shape, or one that broadcasts to it, so that it broadcasts to ``full``."""
        if type(value) is Batched and value.level is self.level:
            return value.full.reshape((len(value.full), *(1,) * (self.ndim - value.ndim), *value.shape))
        return value

    def astype(self, dtype: Any, **settings: Any) -> "Batched":  # type: ignore[override]
        return lift(self.full.astype(dtype, **settings), self.level)

    def copy(self, order: Any = "C") -> "Batched":
        return lift(self.full.copy(), self.level)

    def conj(self) -> "Batched":  # type: ignore[override]
        return lift(self.full.conj(), self.level)

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} of each example>"

    __str__ = __repr__

    def fill(self, value: Any) -> None:
        self.full.fill(value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        out = settings.pop("out", (None,))[0]
        if method != "__call__" or out is not None and out is not inputs[0]:
            raise self.asked(f"NumPy's {ufunc.__name__}")
        level, arrays, batched = opened(inputs)
        if type(out) is Batched and out.level is level:
            settings["out"] = (out.full,)
        elif out is not None:
            raise self.asked(f"NumPy's {ufunc.__name__}")
        return lift(ufunc(*aligned(arrays, batched), **settings), level)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _OF_ELEMENTS and not kwargs:
            level, arrays, batched = opened(args)
            return lift(function(*aligned(arrays, batched)), level)
        plain = [_view(a, ndarray) if isinstance(a, Batched) else a for a in args]
        if function in _OF_SHAPES:
            return function(*plain, **kwargs)
        raise self.asked(f"NumPy's {function.__name__}")

    # reads of values, which are refused

    def asked(self, what: str) -> DataDependentError:
        frame = user_frame()
        where = ""
        if frame is not None:
            file, line = frame.f_code.co_filename, frame.f_lineno
            where = f" (line {line} of {file}: {linecache.getline(file, line).strip()})"
        return DataDependentError(
            f"vmap: {what} asks for the value of a tensor that each example has its own of{where}; compute "
            f"with the tensor instead (where() chooses by a condition), or read it outside of the function")


def _refusing(name: str) -> Callable:
    shown = {"__bool__": "a condition (bool())", "__float__": "float()", "__int__": "int()",
             "__index__": "an index or int()", "__complex__": "complex()", "__iter__": "iteration"}

    def refuse(self: Batched, *args: Any, **settings: Any) -> Any:
        raise self.asked(shown.get(name, f"{name}()"))
    refuse.__name__ = name
    return refuse


# methods of NumPy's arrays that read the elements
READING = ("item", "tolist", "tobytes", "__bool__", "__float__", "__int__", "__index__", "__complex__",
           "__iter__", "__contains__", "any", "all", "max", "min", "sum", "mean", "argmax",
           "argmin", "nonzero", "argsort", "cumsum", "prod", "dot", "flatten", "ravel", "take")
for _name in READING:
    setattr(Batched, _name, _refusing(_name))

_OF_ELEMENTS = {np.where, np.clip}  # beside ufuncs
_OF_SHAPES = {np.zeros_like, np.ones_like, np.empty_like, np.may_share_memory, np.shares_memory, np.shape,
              np.ndim, np.size, np.result_type}


def lift(full: Any, level: "Level") -> Batched:
    """The array of one example over those of all, which lie along the first dimension of ``full``."""
    one = _view(ndarray.__getitem__(_view(full, ndarray), (0, ...)), Batched)
    one.full = full
    one.level = level
    return one


_lock = threading.Lock()
_count = 0  # levels, and others who have calls look at what arrays they get, at work in all threads


def look_at_arrays(more: int) -> None:
    """Count one more (1) or one fewer (-1) for whom calls must look at the kinds of their arrays."""
    global _count
    with _lock:
        _count += more
        dtypes.plain = not (_count or cuda._cupy or dtypes.rounded or meta.used)


class PutOff(ndarray):
    """An array whose values are not there yet (``framework.batching``); ``value()`` gives one with them."""

    __slots__ = ()

    def value(self) -> ndarray:
        raise NotImplementedError


def known(a: Any) -> Any:
    """The array with its values; anything else as it is."""
    return a.value() if isinstance(a, PutOff) else a


def enter(x: Any, level: "Level") -> Batched:
    """The array of one example of a batch along the first dimension; later levels stay around it."""
    if type(x) is Batched and x.level.start > level.start:
        return lift(enter(to_front(x.full, 1), level), x.level)
    return lift(x, level)


def leave(x: Any, level: "Level") -> Any:
    """The array with the batch of the level as first dimension; what all examples share is repeated."""
    if type(x) is Batched and x.level is level:
        return x.full
    if type(x) is Batched and x.level.start > level.start:
        return lift(to_front(leave(x.full, level), 1), x.level)
    return spread_out(x, level.size)


def check_holds(memory: Any, value: Any, name: str) -> None:
    """Raise if values that differ from example to example would be written into what all examples share."""
    while type(value) is Batched:
        if not is_of(memory, value.level):
            raise value.asked(f"{name} into a tensor that all examples share (made outside of the function, "
                               f"or of nothing that differs)")
        value = value.full


def is_of(x: Any, level: "Level") -> bool:
    """Whether the array differs from example to example of this level."""
    while type(x) is Batched:
        if x.level is level:
            return True
        x = x.full
    return False


class Level:
    """One vmap: how many examples, how they draw random numbers, and since when its nodes are made."""

    def __init__(self, size: int, randomness: str = "error", warns: bool = True) -> None:
        self.size = size
        self.warns = warns  # of records without a rule, which are called once per example
        self.randomness = randomness
        self.start = next_seq()

    def __enter__(self) -> "Level":
        state.batches += (self,)
        look_at_arrays(1)
        return self

    def drawn(self, draw: Callable, shape: tuple[int, ...]) -> Any:
        """Random numbers ``draw(shape)``: others for each example, or the same for all."""
        if self.randomness != "different":
            return self.outside(lambda: draw(shape))
        return enter(self.outside(lambda: draw((self.size, *shape))), self)

    def repeated(self, draw: Callable) -> Any:
        """What ``draw()`` draws, once for each example or for all."""
        if self.randomness != "different":
            return self.outside(draw)
        return enter(_stacked([self.outside(draw) for _ in range(self.size)]), self)

    def outside(self, function: Callable) -> Any:
        """``function()`` as if this, the innermost level, were not at work."""
        before, state.batches = state.batches, state.batches[:-1]
        try:
            return function()
        finally:
            state.batches = before

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        state.batches = state.batches[:-1]
        look_at_arrays(-1)


def innermost(a: Any) -> Any:
    """The array of all examples of all levels, with its values."""
    while type(a) is Batched:
        a = a.full
    return known(a)


def any_batched(arrays: Any) -> bool:
    """Whether one of the arrays is a batch's."""
    return any(type(a) is Batched for a in arrays)


def opened(arrays: Sequence) -> tuple[Level, list, tuple[bool, ...]]:
    """The innermost level of the arrays, the arrays with its batch in front, and which of them have one."""
    level: Any = None
    for a in arrays:
        if type(a) is Batched and (level is None or a.level.start > level.start):
            level = a.level
    batched = tuple([type(a) is Batched and a.level is level for a in arrays])
    return level, [a.full if own else a for a, own in zip(arrays, batched)], batched


# -- what rules are made of ----------------------------------------------------------------------


def call(op: Any, *arrays: Any, **settings: Any) -> Any:
    """The kernel of a record on arrays, which may be those of an outer batch; tensors go by the road."""
    return op(*arrays, **settings)


def on_tensors(where: Callable = lambda batched, settings: True) -> Callable:
    """Mark a rule that computes with tensors as well as with arrays: by ``call``, ``reshape`` and operators.

    What it makes of tensors is in the graph, so whoever batches calls of a graph (``framework.batching``)
    needs nothing else for the derivatives. where: in which cases, ``where(batched, settings)``.
    """
    def mark(rule: Any) -> Any:
        rule.on_tensors = where
        return rule
    return mark


def rank(a: Any, own: bool) -> int:
    """How many dimensions one example has; 0 for a number."""
    return getattr(a, "ndim", 0) - own


def aligned(arrays: Sequence, batched: Sequence[bool]) -> list:
    """The arrays with ones behind the batch, so that they broadcast as the examples do."""
    most = max([rank(a, own) for a, own in zip(arrays, batched)])
    return [a.reshape((a.shape[0], *(1,) * (most - a.ndim + 1), *a.shape[1:]))
            if own and a.ndim <= most else a for a, own in zip(arrays, batched)]


def spread_out(a: Any, size: int) -> Any:
    """An array that all examples share, once for each of them (in one place in memory)."""
    if isinstance(a, Tensor):
        return a.expand(size, *a.shape)  # type: ignore[attr-defined]
    if type(a) is Batched:
        full = a.full.reshape((a.full.shape[0], 1, *a.shape))
        return lift(_repeated(full, (full.shape[0], size, *a.shape)), a.level)
    return _repeated(np.asarray(a), (size, *np.shape(a)))


def _repeated(a: Any, shape: tuple[int, ...]) -> Any:
    if type(a) is Batched:
        return lift(_repeated(a.full, (a.full.shape[0], *shape)), a.level)
    return np.broadcast_to(a, shape)


def everywhere(size: int, arrays: Sequence, batched: Sequence[bool]) -> list:
    """The arrays, all with a batch in front; None and numbers stay."""
    return [a if own or not hasattr(a, "ndim") else spread_out(a, size) for a, own in zip(arrays, batched)]


def front_moved(a: Any, to: int) -> Any:
    """The array with its first dimension moved to this place."""
    order = list(range(1, a.ndim))
    order.insert(to, 0)
    return _turned(a, order)


def to_front(a: Any, place: int) -> Any:
    """The array with the dimension at this place moved to the front."""
    return _turned(a, (place, *[i for i in range(a.ndim) if i != place]))


def _turned(a: Any, order: Sequence[int]) -> Any:
    return a.permute(order) if isinstance(a, Tensor) else a.transpose(order)  # type: ignore[attr-defined]


# -- rules that many records share -----------------------------------------------------------------


@on_tensors()
def by_element(op: Any, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of records that broadcast their inputs against each other."""
    return call(op, *aligned(arrays, batched), **settings)


@on_tensors()
def leading(op: Any, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of records that take any number of dimensions in front, the same for all inputs."""
    if not all(batched):
        arrays = everywhere(size, arrays, batched)
    return call(op, *arrays, **settings)


@on_tensors()
def rowwise(op: Any, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """As ``leading``, for records that also broadcast what is in front of matrices (or rows)."""
    arrays = everywhere(size, arrays, batched)
    return call(op, *aligned(arrays, [hasattr(a, "ndim") for a in arrays]), **settings)


class along:
    """Of records whose settings named here are dimensions: a number, a tuple, or None for all of them.

    shapes: settings that are shapes of results. All inputs have the same number of dimensions.
    """

    on_tensors = staticmethod(lambda batched, settings: True)

    def __init__(self, *dims: str, shapes: str = "") -> None:
        self.dims = dims
        self.shapes = shapes.split()

    def __call__(self, op: Any, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
        arrays = everywhere(size, arrays, batched)
        ndim = max([a.ndim for a in arrays if hasattr(a, "ndim")]) - 1
        if not ndim:  # a number has the dimension 0 as far as these functions go
            arrays = [a.reshape((size, 1)) if hasattr(a, "ndim") else a for a in arrays]
        moved = dict(settings)
        for name in self.dims:
            moved[name] = _behind(settings[name], max(ndim, 1))
        for name in self.shapes:
            moved[name] = (size, *(settings[name] if ndim else (1,)))
        out = call(op, *arrays, **moved)
        if ndim:
            return out
        several = isinstance(out, (tuple, list))
        return tuple([o.reshape((size,)) for o in out]) if several else out.reshape((size,))


class merged:
    """Of records on images and the like, whose inputs and results have their own batch as first dimension.

    shared: how many inputs, from the end, are not of that kind and must be the same for all examples.
    """

    def __init__(self, shared: int = 0) -> None:
        self.shared = shared

    def on_tensors(self, batched: tuple, settings: dict) -> bool:
        return not any(batched[len(batched) - self.shared:])

    def __call__(self, op: Any, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
        count = len(arrays) - self.shared
        if any(batched[count:]):
            return looped(op, size, arrays, batched, settings)
        own = everywhere(size, arrays[:count], batched)
        ready = [a.reshape((size * a.shape[1], *a.shape[2:])) if hasattr(a, "ndim") else a for a in own]
        moved = dict(settings)
        if "x_shape" in settings:
            moved["x_shape"] = (size * settings["x_shape"][0], *settings["x_shape"][1:])
        out = call(op, *ready, *arrays[count:], **moved)
        return tuple([_split(o, size) for o in out]) if isinstance(out, (tuple, list)) else _split(out, size)


def _split(a: Any, size: int) -> Any:
    return a.reshape((size, a.shape[0] // size, *a.shape[1:]))


def _behind(dims: Any, ndim: int) -> Any:
    if dims is None:
        return tuple(range(1, ndim + 1))
    if isinstance(dims, (tuple, list)):
        return tuple([d % ndim + 1 for d in dims])
    return dims % ndim + 1


# -- one call of a record --------------------------------------------------------------------------

_warned: set[str] = set()


def batched_call(op: Any, *arrays: Any, **settings: Any) -> Any:
    """A record's kernel where an array is a batch's: one call for all examples, by its rule."""
    if hasattr(settings.get("out"), "dtype"):
        raise TypeError(f"{op.name}: a batch is not computed straight into memory")
    for a in arrays:
        if type(a) is Batched and a.full is None:
            raise a.asked(op.name)
    level, fulls, batched = opened(arrays)
    rule = op.batch
    out = looped(op, level.size, fulls, batched, settings) if rule is None else rule(
        op, level.size, fulls, batched, settings)
    if isinstance(out, (tuple, list)):
        return tuple([lift(_laid(op, _filled(o, level.size)), level) for o in out])
    return lift(_laid(op, out), level)


def _filled(out: Any, size: int) -> Any:
    """One of several outputs; that which is not wanted is an empty array, for each example, too."""
    out = out if type(out) is Batched else np.asarray(out)
    return out if out.shape[:1] == (size,) else spread_out(out, size)


def _laid(op: Any, full: Any) -> Any:
    """The result in row-major order where the record's results are."""
    if type(full) is ndarray and full.ndim > op.loose_from and not full.flags.c_contiguous:
        return np.ascontiguousarray(full)
    return full


def looped(op: Any, size: int, arrays: list, batched: tuple, settings: dict, warn: bool = True,
           before: Callable[[], Any] | None = None) -> Any:
    """The record called once per example, after ``before``."""
    if warn and op.name not in _warned and (not state.batches or state.batches[-1].warns):
        _warned.add(op.name)
        warnings.warn(f"vmap: {op.name} has no rule for batches and is called once per example",
                      stacklevel=2)
    outs = []
    for i in range(size):
        if before is not None:
            before()
        out = call(op, *[a[i] if own and a.ndim > 1 else a[i, ...] if own else a
                         for a, own in zip(arrays, batched)], **settings)
        outs.append(out if isinstance(out, (tuple, list)) else (out,))
    stacked = tuple([_stacked([out[k] for out in outs]) for k in range(len(outs[0]))])
    return stacked if len(op.outputs) > 1 else stacked[0]


def _stacked(parts: list) -> Any:
    if not any_batched(parts):
        return np.stack([np.asarray(part) for part in parts])
    level, fulls, batched = opened(parts)
    fulls = everywhere(level.size, fulls, batched)
    return lift(front_moved(_stacked(fulls), 1), level)
