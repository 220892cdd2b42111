"""How operations come to choose their dtype in a block: what their public records' words mean.

A thread in a block has ``choose`` where public functions ask (``ops/record/autocast.py``). What an operation
calls is part of it: while it runs, its thread asks nothing.
"""

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..autograd.mode import state as recording
from ..dtypes import promote_types
from ..nn.rnn import GRU
from ..nn.rnn_cell import GRUCell, LSTMCell
from ..nn.utils.rnn import PackedSequence
from ..node import Leaf
from ..ops.convert.cast import cast
from ..ops.record.autocast import thread
from ..sparse_door import is_sparse
from ..tensor import Tensor, counter_of
from .state import state

# -- one tensor -----------------------------------------------------------------------------------


def eligible(x: Any) -> bool:
    """Whether autocast may convert ``x``: it is on for its device."""
    return convertible(x) and (state.cuda if x.is_cuda else state.cpu)


def convertible(x: Any) -> bool:
    """Whether ``x`` is what autocast converts: a floating tensor, but not float64."""
    if not isinstance(x, Tensor) or is_sparse(x):
        return False
    dtype = x._array.dtype
    return dtype.kind in dtypes.FLOATING and dtype.itemsize < 8


def _fast(x: Tensor) -> dtypes.DType:
    """The dtype of products on the device of ``x``."""
    return state.cuda_dtype if x.is_cuda else state.dtype


def lowered(x: Any) -> Any:
    """``x`` in the block's dtype; the cast of a weight is made once in a block."""
    if not eligible(x) or x._array.dtype == (fast := _fast(x)).numpy:
        return x
    mode = recording.enabled
    if not (
        type(x._node) is Leaf
        and x._base is None
        and state.caching
        and state.depth
        and isinstance(mode, bool)
        and x._array.dtype.itemsize == 4
    ):
        return cast.run(x, dtype=fast)
    counter, key = counter_of(x), (id(x), mode)
    found = state.casts.get(key)
    if (
        found is None
        or found[1] is not x._array  # ``x.data`` was given other memory
        or found[2] != counter[0]
        or found[3].dtype is not fast
    ):
        found = state.casts[key] = (x, x._array, counter[0], cast.run(x, dtype=fast))
    return found[3]


def widened(x: Any) -> Any:
    """``x`` in float32."""
    return cast.run(x, dtype=dtypes.float32) if eligible(x) and x._array.dtype.itemsize < 4 else x


def _each(convert: Callable, value: Any) -> Any:
    """Tensors, also those in lists and tuples, converted."""
    if type(value) in (list, tuple):
        return type(value)([_each(convert, v) for v in value])
    if isinstance(value, PackedSequence):
        return value._replace(data=convert(value.data))
    return convert(value)


# -- one call -------------------------------------------------------------------------------------


def choose(policy: Any, function: Callable, args: tuple, settings: dict) -> Any:
    """``function(*args, **settings)`` in the dtype that its policy asks for."""
    thread.choose = None
    try:
        word = policy(*args, **settings) if callable(policy) else policy
        return POLICIES[word](function, args, settings)
    finally:
        thread.choose = choose


def _converted(convert: Callable, function: Callable, args: tuple, settings: dict) -> Any:
    args = tuple([_each(convert, a) for a in args])
    return function(*args, **{k: _each(convert, v) for k, v in settings.items()})


def _lower(function: Callable, args: tuple, settings: dict) -> Any:
    if any(map(is_sparse, args)):  # products with sparse matrices run in the dtypes that they get
        return function(*args, **settings)
    return _converted(lowered, function, args, settings)


def _float32(function: Callable, args: tuple, settings: dict) -> Any:
    return _converted(widened, function, args, settings)


def _float32_on_a_gpu(function: Callable, args: tuple, settings: dict) -> Any:
    def there(x: Any) -> Any:
        return widened(x) if isinstance(x, Tensor) and x.is_cuda else x
    return _converted(there, function, args, settings)


def _widest(function: Callable, args: tuple, settings: dict) -> Any:
    """In the widest dtype of the tensors that may be converted."""
    widest: Any = None
    for x in (*args, *settings.values()):
        if eligible(x):
            widest = x.dtype if widest is None else promote_types(widest, x.dtype)
    return _converted(lambda x: x.to(widest) if eligible(x) else x, function, args, settings)


def _as_given(function: Callable, args: tuple, settings: dict) -> Any:
    return function(*args, **settings)


def _refused(function: Callable, args: tuple, settings: dict) -> Any:
    raise RuntimeError(f"{function.__name__}: a block of autocast('cuda') refuses it, as PyTorch does, since "
                       f"its gradients may overflow; use binary_cross_entropy_with_logits "
                       f"(nn.BCEWithLogitsLoss) on numbers before sigmoid, or leave the block for it")


def _recurrent(function: Callable, args: tuple, settings: dict) -> Any:
    """A recurrent layer or cell: its record is to choose, its input has the dtype of the weights until then.

    On the CPU what mixes with a state of the input's dtype at its end comes out in that, as in PyTorch.
    """
    module, x, *rest = args
    thread.choose = choose
    data = x.data if isinstance(x, PackedSequence) else x
    mixes = isinstance(module, (GRU, GRUCell, LSTMCell)) and eligible(data) and not data.is_cuda
    kept = data.dtype if mixes else _fast(data)
    weights = next(module.parameters()).dtype

    def fitted(value: Any) -> Any:
        return _each(lambda t: t.to(weights) if eligible(t) else t, value)

    found = function(module, *map(fitted, (x, *rest)), **{k: fitted(v) for k, v in settings.items()})
    return _each(lambda t: t.to(kept) if eligible(t) else t, found)


POLICIES: dict[str, Callable] = {"lower": _lower, "float32": _float32, "widest": _widest,
                                 "float32 on a GPU": _float32_on_a_gpu, "as given": _as_given,
                                 "recurrent": _recurrent, "refused": _refused}
