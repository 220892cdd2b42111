"""Steps of optimizers at once: what the native kernels take, found out in one pass over the parameters.

It is ``Optimizer._run`` for the usual case, in its order and with its checks; options, gradients and state
are read at every step, so that schedulers, replaced gradients and loaded state count at once. Whatever is
not usual (a first step, a gradient that does not fit, sparse ones, options that are tensors, subclasses with
methods of their own) is left to the optimizer before anything has changed.
"""

from typing import Any

import numpy as np

from .. import _native
from ..autograd.mode import no_grad
from ..backends import cuda, on_device
from ..nn.parameter import Parameter
from ..node import Leaf
from ..quiet import quiet
from ..tensor import Tensor, bump

_OWN = ("_run", "_ready", "update_group", "_update_natively", "_update_one", "numbers_of", "first_state")
_usual: dict[type, tuple[str, tuple] | None] = {}


def is_usual(kind: Any, base: Any) -> tuple[str, tuple] | None:
    """Its step's name and its options, where an optimizer of this class steps as ``Optimizer``, its base,
    does, by native kernels."""
    if kind not in _usual:
        own = all(getattr(kind, name) is getattr(base, name) for name in _OWN)
        good = own and kind.fused is not base.fused and kind.__module__.startswith(
            base.__module__.rpartition(".")[0])
        _usual[kind] = (kind.__name__ + ".step", tuple(kind.limits)) if good else None
    return _usual[kind]


def step(optimizer: Any, base: Any) -> bool:
    """Make the step, if it is a usual one; otherwise nothing is changed and the answer is False."""
    if quiet.settle is not None:  # what is put off may make gradients
        quiet.settle()
    kind = type(optimizer)
    usual = _usual.get(kind) or is_usual(kind, base)
    if _native.module is None or cuda._cupy is not None or usual is None or not optimizer._is_fused():
        return False
    name, limits = usual
    module: Any = _native.module
    module.set_up_tapes(Tensor, Parameter, Leaf)
    left = module.step_groups(optimizer.param_groups, limits, optimizer.state, optimizer.fused, module, name,
                              quiet.site is not None)
    if left is None:
        return False
    for group, (params, states, _, _, number), skipped in left:
        if skipped is NotImplemented:
            skipped = range(len(params))
        for i, (p, kept) in enumerate(zip(params, states)):
            if i not in skipped:
                kept["step"] = number
                bump(p, name)
        with no_grad(), np.errstate(all="ignore"):
            for p in [params[i] for i in skipped]:
                with on_device(p._array):
                    optimizer._update_one(p, p._array, group.get("maximize", False), group)
                bump(p, name)
    return True
