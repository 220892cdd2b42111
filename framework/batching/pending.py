"""Tensors whose value is not there yet: ``Later``, over ``Pending`` arrays that know their shape and dtype.

Functions check arguments and choose operations by shape and dtype, so they need nothing else. Whatever asks
for a value (``item()``, a condition, NumPy) has what was put off computed first.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import BY_NUMPY
from ..errors import AutogradError
from ..node import GraphOp, PlainNode
from ..ops.record.batched import READING, PutOff, known
from ..ops.record.meta import Meta
from ..ops.record.torch_function import disabled
from ..tensor import Tensor

ndarray = np.ndarray
_view = ndarray.view
_new = object.__new__


class Kind:
    """The shape and dtype of tensors, and whether they are in the graph; there is one of each.

    template: an array like theirs, of which theirs are views; nobody is to see its elements.
    """

    __slots__ = ("shape", "dtype", "needs", "template", "meta", "node")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, needs: bool) -> None:
        self.shape, self.dtype, self.needs = shape, dtype, needs
        self.template = np.zeros(shape, dtype)
        if dtype.kind in "fc":
            self.template.fill(np.nan)
        self.meta = Meta(shape, BY_NUMPY[dtype])
        self.node = WAITING if needs else None


class Place:
    """Where values come from: output ``slot`` of the calls of a ``bucket``, tensors of a ``kind``."""

    __slots__ = ("kind", "bucket", "slot", "template", "node")

    def __init__(self, kind: Kind, bucket: Any, slot: int) -> None:
        self.kind, self.bucket, self.slot = kind, bucket, slot
        self.template, self.node = kind.template, kind.node


class Pending(PutOff):
    """The array of a tensor whose value is not there yet: that of call ``row`` at a ``place``."""

    __slots__ = ("place", "row")
    place: Place
    row: int

    def value(self) -> ndarray:
        """The array with the value, which is computed if it is not there yet."""
        try:
            place = self.place
        except AttributeError:  # a view that NumPy made of one, whose elements are none
            raise RuntimeError("together: a part of an array was taken whose value is not there") from None
        return place.bucket.session.value(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if settings.get("out") is not None:
            settings["out"] = tuple([known(a) for a in settings["out"]])
        return getattr(ufunc, method)(*[known(a) for a in inputs], **settings)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_all_known(args), **{k: known(v) for k, v in kwargs.items()})

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)}, not computed yet>"

    __str__ = __repr__


def _all_known(values: Any) -> tuple:
    return tuple([type(v)(map(known, v)) if type(v) in (list, tuple) else known(v) for v in values])


def _asking(name: str) -> Callable:
    def ask(self: Pending, *args: Any, **settings: Any) -> Any:
        return getattr(self.value(), name)(*args, **settings)
    ask.__name__ = name
    return ask


for _name in (*READING, "__getitem__", "reshape", "transpose", "astype", "copy", "conj", "view", "squeeze",
              "swapaxes", "__reduce__", "__reduce_ex__", "__deepcopy__", "__copy__", "__array__", "dump",
              "dumps", "tofile"):
    setattr(Pending, _name, _asking(_name))


class _Waiting(GraphOp):
    """What stands at the place of a tensor in the graph while its value is not there."""

    name = "together"

    def pull(self, node: Any, g: Any, edges: tuple, live: bool) -> Any:
        raise AutogradError("backward came to a tensor that batching.together had not computed when it was "
                            "recorded; give fn only what is made of operations, or read a value of it first")


WAITING = PlainNode(_Waiting(), ())


class Later(Tensor):
    """A tensor whose value is not there yet. When it is, the tensor is a plain one (the same object)."""

    __slots__ = ()
    __torch_function__ = disabled  # results are what operations make them, not tensors of this class


def _first_computed(name: str) -> Callable:
    def method(self: Later, *args: Any, **settings: Any) -> Any:
        settle(self)
        return getattr(self, name)(*args, **settings)  # it is a plain tensor now
    method.__name__ = name
    return method


def settle(x: Tensor) -> None:
    """Have the value of the tensor computed, if it is not there."""
    if type(x) is Later:
        x._array.place.bucket.session.settle((x,))


for _name in ("numpy", "item", "tolist", "data_ptr", "_number", "__array__", "__dlpack__", "__reduce_ex__",
              "__deepcopy__", "__copy__", "__bool__", "__float__", "__int__", "__index__", "__complex__",
              "detach", "requires_grad_", "backward", "stride", "is_contiguous", "_extras", "__repr__",
              "__str__", "__format__", "retain_grad", "register_hook", "share_memory_"):
    if hasattr(Tensor, _name):
        setattr(Later, _name, _first_computed(_name))


def _asked_first(name: str) -> property:
    def get(self: Later) -> Any:
        settle(self)
        return getattr(self, name)

    def put(self: Later, value: Any) -> None:
        settle(self)
        setattr(self, name, value)
    return property(get, put)


for _name in ("grad", "grad_fn", "is_leaf", "data", "_version"):
    setattr(Later, _name, _asked_first(_name))


def _base(self: Later) -> Any:
    view = self._array.place.bucket.plan.op.view
    return self if view else None  # whether there is one is all that is asked


Later._base = property(_base)  # type: ignore[assignment, method-assign]


def later(place: Place, row: int) -> Later:
    """The tensor that call ``row`` gives at this place."""
    a = _view(place.template, Pending)
    a.place = place
    a.row = row
    t = _new(Later)
    t._array = a
    t._node = place.node
    t._counter = t._more = None
    return t
