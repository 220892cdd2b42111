"""Functions that check their arguments once for each kind of call, and keep what is to be done.

To check and complete the arguments of a call takes Python longer than the kernel of a small tensor. Such a
function is written in two halves: ``prepare(input, ...)`` raises what is wrong and gives the steps, which
need no further look at the arguments. The steps are kept for calls with tensors of the same shapes and
dtypes, and other arguments of the same types and values; so ``prepare`` may depend on nothing else. Tensors
of other kinds, calls that somebody looks at (``seam.py``) and forward mode are prepared each time.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ... import _native
from ...autograd.mode import state
from ...dtypes import FLOATING
from ...quiet import quiet

Step = tuple[Callable, int, dict[str, Any]]
"""A function, how many inputs it takes, and its settings. Its first input is the result of the step before
(the first step's: the first argument of the call), the others are the call's further arguments, by place."""


def planned(prepare: Callable[..., Sequence[Step]]) -> Callable:
    """The function, of positional arguments, that does the steps of ``prepare``.

    Tensors come first among them. Steps of a call with tensors that no step takes are not kept.

    >>> from framework.ops.record.planned import planned
    >>> f = planned(lambda x, n: [(fw.roll, 1, {"shifts": n % x.shape[0]}), (fw.add, 1, {"other": 1})])
    >>> f(fw.tensor([1, 2, 3]), 4)
    tensor([4, 2, 3])
    """
    if hasattr(_native.module, "planned"):
        return _native.module.planned(prepare)

    @wraps(prepare)
    def call(*args: Any) -> Any:
        steps, out = prepare(*args), args[0]
        for function, inputs, settings in steps:
            out = function(out, *args[1:inputs], **settings)
        return out
    return call


def writes_graphs() -> bool:
    """Whether somebody who looks on writes a graph of operations that others know."""
    for one in quiet.stack:  # noqa: SIM110 - a generator would take longer than the answer
        if one.wholes:
            return True
    return False


_known: Callable = getattr(_native.module, "have_kernels", lambda *tensors: NotImplemented)


def have_kernels(*tensors: Any, moved: bool = False) -> bool:
    """Whether a call on these may be one kernel of ours in place of several ops: all are None or NumPy's
    arrays, of which the floating ones have one dtype (of 16 bits as float32), there are kernels, nobody
    writes a graph of the call, and nothing is differentiated forward.

    moved: whether elements are only moved, whatever they are.
    """
    if not moved and _known(*tensors) is True:  # nearly always
        return True
    if _native.module is None or type(state.enabled) is not bool or writes_graphs():
        return False
    found = None
    for t in tensors:
        if t is None:
            continue
        a = getattr(t, "_array", None)
        if type(a) is not np.ndarray:
            return False
        if moved:
            found = a.dtype
        if moved or a.dtype.kind in "iub":
            continue
        dtype = a.dtype
        if dtype.kind not in FLOATING or found is not None and dtype != found:
            return False
        found = dtype
    return found is not None
