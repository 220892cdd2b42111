"""The base of all optimizers: missing gradients, steps, closures, hooks, state_dict; the groups of parameters
are in ``groups.py``.

A method is two short functions of one parameter, on plain NumPy or CuPy arrays::

    class Sign(Optimizer):
        def __init__(self, params, lr=1e-3):
            super().__init__(params, {"lr": lr})

        def init_state(self, p, group):
            return {}

        def update(self, p, g, state, group):
            p -= group["lr"] * array_module(p).sign(g)

A complex parameter is one of pairs of real numbers: the two functions see it, its gradient and its state
with a last dimension of size 2 more, over the same memory.
"""

from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, wraps
from types import MappingProxyType
from typing import Any
from weakref import WeakSet

import numpy as np

from ..autograd.hooks import RemovableHandle
from ..autograd.mode import enable_grad, no_grad, set_grad_enabled, state
from ..backends import cuda, on_device
from ..config.listing import own as _own
from ..errors import DeviceError, DTypeError, LayoutError, ShapeError
from ..node import Leaf
from ..quiet import quiet
from ..seam import is_watched
from ..sparse_door import is_sparse, sparse
from ..tensor import Tensor, bump, counter_of, wrap
from . import saved, steps
from .arrays import as_kept, real_view, zeros_like
from .fused import Fused, flushing, gradients_fit, kernels_for
from .fused import run as run_fused
from .groups import Groups
from .groups import ParamsT as ParamsT
from .groups import required as required
from .hooks import hooked, register
from .hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from .hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from .rates import by_rate, is_on_gpu

_NO_HOOKS: Any = MappingProxyType({})
_HOOKS = tuple(f"_optimizer_{name}_hooks" for name in (
    "step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre",
    "load_state_dict_post"))


_asking: WeakSet["Optimizer"] = WeakSet()  # those whose last step may have been left out


def _settle_all() -> None:
    for optimizer in [*_asking]:
        optimizer._settle()


cuda.before_captures.append(_settle_all)


class Optimizer(Groups):
    """Changes parameters by their gradients.

    params: tensors, ``(name, tensor)`` pairs such as ``model.named_parameters()``, or dicts with the
    key ``params`` and options of their own. defaults: the options of groups that do not set them.

    A subclass writes ``init_state(p, group)`` and ``update(p, g, state, group)`` (see the head of
    ``optim/optimizer.py``); ``update_group`` is the door for updating many parameters at once, and
    ``limits`` says which values options may take. Or it writes ``step`` alone, in PyTorch's style, and
    keeps in ``self.state[p]`` what it likes.

    PyTorch's choices among its implementations, ``foreach`` and ``fused``, are taken: there is one
    form for both here, with the same numbers. ``capturable`` (for CUDA graphs) is taken where kernels make
    the steps, any of which but the first may be recorded; ``differentiable`` is refused. ``lr`` and
    ``betas`` may be tensors of one element, which are read at each step: a rate on a GPU by the kernel there.
    """

    # on the class, for subclasses in PyTorch's style that do not call __init__
    _opt_called = False  # whether step() ever ran: the schedulers ask
    _stepping = False
    _optimizer_step_pre_hooks: dict[int, Callable] = _NO_HOOKS
    _optimizer_step_post_hooks: dict[int, Callable] = _NO_HOOKS
    _optimizer_state_dict_pre_hooks: dict[int, Callable] = _NO_HOOKS
    _optimizer_state_dict_post_hooks: dict[int, Callable] = _NO_HOOKS
    _optimizer_load_state_dict_pre_hooks: dict[int, Callable] = _NO_HOOKS
    _optimizer_load_state_dict_post_hooks: dict[int, Callable] = _NO_HOOKS

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self.check_group(defaults)
        for group in self._groups_of(params):
            self.add_param_group(group)

    # -- what a subclass writes ------------------------------------------------------------------

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The arrays (or numbers) kept for the parameter's array ``p`` before its first update."""
        return {}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change the array ``p`` in place by its gradient ``g``, which must not be changed.

        state: what ``init_state`` gave, as arrays, and ``step``, the number of this update from 1.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update(p, g, state, group), or step()")

    def fused(self, group: dict[str, Any], step: int) -> Fused | None:
        """``update`` of step number ``step`` as a native function with the same bits, if there is one."""
        return None

    def fused_on_gpu(self, group: dict[str, Any], step: int, kept: dict[str, Any]) -> Fused | None:
        """``update`` of step number ``step`` as kernels of GPUs, if there are some; kept: the state of a
        parameter, which is that of the others but for its tensors."""
        return self.fused(group, step)

    def launch_key(self, kept: dict[str, Any]) -> Any:
        """What in their state parameters have in common that one launch updates, besides the step."""
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fused" in vars(cls) or "fused_on_gpu" in vars(cls):
            cls._fused_update = cls.update
        elif "update" in vars(cls):  # the parent's do the parent's update
            cls.fused = Optimizer.fused  # type: ignore[method-assign]
            cls.fused_on_gpu = Optimizer.fused_on_gpu  # type: ignore[method-assign]
        if vars(cls).get("_flushes"):
            cls._flushing = tuple(vars(cls)[name] for name in ("update", "update_where") if name in vars(cls))
        if "step" in vars(cls):
            cls.step = hooked(vars(cls)["step"])  # type: ignore[method-assign]

    _fused_update: Any = None  # the ``update`` that ``fused`` and ``fused_on_gpu`` stand for

    @classmethod
    def _has_kernels(cls, on_gpu: bool) -> bool:
        return cls.fused is not Optimizer.fused \
            or on_gpu and cls.fused_on_gpu is not Optimizer.fused_on_gpu

    def _is_fused(self, on_gpu: bool = True) -> bool:
        """Whether native functions may take the place of ``update``, which nobody has replaced."""
        return type(self)._has_kernels(on_gpu) \
            and getattr(self.update, "__func__", None) is type(self)._fused_update

    _flushes = False  # said by a class whose own formulas may be ``flushing``
    _flushing: tuple[Callable, ...] = ()  # these formulas: another one in their place sees all numbers

    def _flushed(self, formula: Any, group: dict[str, Any], kept: dict[str, Any]) -> Any:
        """What a formula runs in: ``flushing``, if it is one of the class that says so."""
        own = getattr(formula, "__func__", None) in self._flushing
        return flushing(group, kept) if own else nullcontext()

    _skip: Any = None  # of ``step_unless``, during it
    _skipped: Any = None  # gives what it was, afterwards
    _unsettled: list[tuple[Tensor, dict[str, Any], dict[str, Any]]] = []  # what was counted, and before
    _unsaved: tuple[str, ...] = ()  # parts of the state that follow from the others

    @property
    def _knows_its_state(self) -> bool:
        """Whether ``init_state`` says what is kept: a class with its own ``step`` keeps what it likes."""
        return type(self).step is Optimizer.step and type(self).update is not Optimizer.update

    def update_group(self, params: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one group, whose gradients fit: natively, the rest by ``update``."""
        if quiet.settle is not None:  # a closure may have put calls off
            quiet.settle()
        if cuda.capture is not None and cuda.capture_here() is not None \
                and type(params[0]._array) is not np.ndarray:
            return self._record_update(params, group)
        on_gpu = type(params[0]._array) is not np.ndarray
        if self._is_fused(on_gpu) and kernels_for(params[0]):
            params = self._update_natively(params, group, on_gpu)
        if not params:
            return
        group, sign_flipped = self.numbers_of(group), group.get("maximize", False)
        name = f"{type(self).__name__}.step"
        for p in params:
            with on_device(p._array):
                self._update_one(p, p._array, sign_flipped, group)
            bump(p, name)

    def _update_natively(self, params: list[Tensor], group: dict[str, Any], on_gpu: bool) -> list[Tensor]:
        """Update those of ``params`` that the kernels take; the others are returned."""
        by_step: dict[Any, list[tuple[Tensor, dict[str, Any]]]] = {}
        skip = self._skip
        for p in params:
            kept = self.state.get(p) or {**self.first_state(p, group), "step": 0}
            by_step.setdefault((kept["step"] + 1, self.launch_key(kept)), []).append((p, kept))
        left, name = [], f"{type(self).__name__}.step"
        for (step, _), work in by_step.items():
            plan = self._plan(group, step, work[0][1], on_gpu)
            skipped = range(len(work)) if plan is None else run_fused(plan, work, skip)
            if skipped:
                left += [work[i][0] for i in skipped]
                work = [pair for i, pair in enumerate(work) if i not in set(skipped)]
            after = {**plan.kept, "step": step} if work else {}  # type: ignore[union-attr]
            for p, kept in work:
                self._count(p, kept, after, skip is not None)
                if step == 1:
                    self.state[p] = kept
                bump(p, name)
        return [] if skip is not None and left and bool(skip) else left

    def _plan(self, group: dict[str, Any], step: int, kept: dict[str, Any],
              on_gpu: bool = True) -> Fused | None:
        """Step number ``step`` as a kernel; a learning rate on a GPU is not read where it is linear in it."""
        if not on_gpu:
            return self.fused(self.numbers_of(group), step)
        rate: Any = group.get("lr")
        if is_on_gpu(rate):
            rest = self.numbers_of({**group, "lr": 0.0})
            plan = by_rate(lambda lr: self.fused_on_gpu({**rest, "lr": lr}, step, kept), rate)
            if plan is not None:
                return plan
        return self.fused_on_gpu(self.numbers_of(group), step, kept)

    def _count(self, p: Tensor, kept: dict[str, Any], after: dict[str, Any], unsettled: bool) -> None:
        """Have the numbers of the state that come after a step; unsettled: it may prove to be left out."""
        if unsettled:
            self._unsettled = [*self._unsettled, (p, kept, {name: kept[name] for name in after})]
        kept.update(after)

    def _record_update(self, params: list[Tensor], group: dict[str, Any]) -> None:
        """Have ``params`` updated by the graph that is being recorded, each of whose replays is a step."""
        name = f"{type(self).__name__}.step"
        if any(not self.state.get(p) for p in params):
            cuda.refuse_in_capture(f"{name}: the first step, which makes the state",
                                   "make a step before you record one")
        if not self._is_fused():
            cuda.refuse_in_capture(f"{name}: a step that no kernel makes for all parameters",
                                   "call it outside, after the graph's replay()")
        by_step: dict[Any, list[tuple[Tensor, dict[str, Any]]]] = {}
        for p in params:
            kept = self.state[p]
            by_step.setdefault((kept["step"], self.launch_key(kept)), []).append((p, kept))
        for (step, _), work in by_step.items():
            plan = self._plan(group, step + 1, work[0][1])
            again = partial(self._counted, work, group, self._skip is not None)
            if plan is None or run_fused(plan, work, self._skip, again):
                cuda.refuse_in_capture(f"{name}: parameters that no kernel takes",
                                       "call it outside, after the graph's replay()")

    def _counted(self, work: list[tuple[Tensor, dict[str, Any]]], group: dict[str, Any],
                 unsettled: bool) -> Any:
        """The step that a graph is about to make; unsettled: it may be left out."""
        self._settle()
        step = work[0][1]["step"] + 1
        plan = self._plan(group, step, work[0][1])
        for p, kept in work:
            self._count(p, kept, {**plan.kept, "step": step}, unsettled)  # type: ignore[union-attr]
            bump(p, f"{type(self).__name__}.step")
        return plan

    def step_unless(self, skip: Any, *args: Any, **kwargs: Any) -> Any:
        """``step()``, left out where ``skip``, a number on the device of the parameters, is not 0.

        Nobody waits for it now: the host learns of it before the next step, or when the state is asked for,
        and then takes back what it has counted. So it does after each replay of a graph.
        """
        self._settle()
        self._skip = skip
        try:
            return self.step(*args, **kwargs)
        finally:
            self._skip, capture = None, cuda.capture_here()
            if capture is not None:
                capture.after.append(partial(self._ask_later, skip))
            elif self._unsettled:
                self._ask_later(skip)

    def _ask_later(self, skip: Any) -> None:
        """Have the device say, when it gets there, whether the step was left out."""
        self._skipped = cuda.read_later(skip)
        _asking.add(self)

    def _settle(self) -> None:
        """Take back the counts of a step that was left out on the device."""
        if self._skipped is None:
            return
        left_out, self._skipped = bool(self._skipped() != 0), None
        _asking.discard(self)
        for p, kept, before in self._unsettled if left_out else ():
            kept.update(before)
            if not kept["step"]:
                self.state.pop(p, None)
        self._unsettled = []

    @classmethod
    def can_skip(cls) -> bool:
        """Whether ``step_unless`` is for this class: steps are the base's, and kernels make them."""
        return cls._has_kernels(True) and cls.update_group is Optimizer.update_group

    def _update_one(self, p: Tensor, array: Any, sign_flipped: bool, group: dict[str, Any]) -> None:
        kept = self.state[p]
        if not kept:
            kept.update(self.first_state(p, group), step=0)
        given = {k: v._array if isinstance(v, Tensor) else v for k, v in kept.items()}
        seen, g = array, p.grad._array  # type: ignore[union-attr]
        if array.dtype.kind == "c":
            seen, g = real_view(array), real_view(g)
            given = {k: real_view(v) if hasattr(v, "dtype") else v for k, v in given.items()}
        state = {**given, "step": kept["step"] + 1}
        with self._flushed(self.update, group, given):
            self.update(seen, -g if sign_flipped else g, state, group)
        for key, value in state.items():
            if value is not given.get(key):
                kept[key] = as_kept(value, array)

    def first_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """What ``init_state`` gives, as it is kept: tensors, and complex ones for a complex parameter."""
        with on_device(p._array):
            made = self.init_state(real_view(p._array), self.numbers_of(group))
        return {k: as_kept(v, p._array) for k, v in made.items()}

    # -- stepping --------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or with ``set_to_none=False`` fill them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    if type(p._node) is Leaf:  # ``p.grad = None``, written out
                        p._node.grad = None
                    else:
                        p.grad = None
                    continue
                g = p.grad
                if g is None:
                    continue
                if is_sparse(g):
                    p.grad = (g.detach() * 0).detach()  # type: ignore[operator]
                    continue
                if quiet.settle is not None:
                    quiet.settle()
                with on_device(g._array):
                    if g._node is not None:
                        p.grad = wrap(zeros_like(g._array))
                    elif is_watched():
                        g.zero_()  # type: ignore[attr-defined]
                    else:
                        g._array.fill(0)
                        counter_of(g)[:] = counter_of(g)[0] + 1, "zero_grad"

    @hooked
    def step(self, closure: Callable | None = None) -> Any:
        """Change every parameter that has a gradient; the others are left alone.

        closure: clears the gradients, computes the loss, calls ``backward()`` and returns the loss;
        it runs with gradients enabled, and its result is returned. Gradients that do not fit their
        parameter raise before anything is changed.
        """
        return self._run(closure)

    def _run(self, closure: Callable | None = None) -> Any:
        loss = None
        if self._skipped is not None:
            self._settle()
        if closure is not None:
            with enable_grad():
                loss = closure()
        compiled = state.compiled
        if self._skip is None and (self.step_at_once() if compiled is None else compiled.step(self)):
            return loss
        work = [(group, *self._ready(i, group)) for i, group in enumerate(self.param_groups)]
        with no_grad(), np.errstate(all="ignore"):
            for group, params, by_rows in work:
                if by_rows:
                    self._update_rows(by_rows, group)
                if params:
                    self.update_group(params, group)
        return loss

    def step_at_once(self) -> bool:
        """Make the step by one native call for all parameters of a group, if that is possible; otherwise
        nothing is changed and the answer is False."""
        return steps.step(self, Optimizer)

    def _ready(self, index: int, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
        """The parameters of a group that have a gradient, and those that have a sparse one.

        Raises for a gradient that does not fit.
        """
        grads = [p.grad for p in group["params"]]
        ready = [p for p, g in zip(group["params"], grads) if g is not None]
        try:
            if gradients_fit(ready, [g for g in grads if g is not None]):
                return ready, []
        except LayoutError:  # of a sparse gradient, which has no array
            pass
        ready, by_rows = [], []
        for i, p in enumerate(group["params"]):
            g = p.grad
            if g is None:
                continue
            if is_sparse(g):
                self._check_sparse(p, g, group, self._label(index, i))
                by_rows.append(p)
                continue
            a, b = p._array, g._array
            if a.shape != b.shape or a.dtype != b.dtype or type(a) is not type(b):
                self._misfit(p, g, self._label(index, i))
            if isinstance(a, np.ndarray) and not a.flags.writeable:
                raise ValueError(f"{type(self).__name__}.step: the memory of {self._label(index, i)} is "
                                 f"read-only; clone() it before optimizing it")
            ready.append(p)
        return ready, by_rows

    def _check_sparse(self, p: Tensor, g: Any, group: dict[str, Any], label: str) -> None:
        """Raise for a sparse gradient that does not fit, or that this optimizer does not take."""
        kind = type(self).__name__
        if not hasattr(self, "update_where"):
            raise LayoutError(f"{kind}.step: the gradient of {label} is sparse, which SparseAdam, SGD and "
                              f"Adagrad take and {kind} does not; use one of them for it, or sparse=False "
                              f"in its layer")
        if group.get("weight_decay"):
            raise ValueError(f"{kind}.step: weight_decay={group['weight_decay']} would change all rows of "
                             f"{label}, whose gradient is sparse; set it to 0, or use sparse=False in its "
                             f"layer")
        if p.shape != g.shape or p.dtype is not g.dtype or p.device != g.device or not g.is_sparse:
            self._misfit(p, g, label)

    def _update_rows(self, params: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters whose gradients are sparse, by ``update_where``."""
        group = self.numbers_of(group)
        for p in params:
            kept = self.state[p]
            if not kept:
                kept.update(self.first_state(p, group), step=0)
            with on_device(p._array):
                places, values = sparse().rows_of(p.grad)
            given = {k: v._array if isinstance(v, Tensor) else v for k, v in kept.items()}
            state = {**given, "step": kept["step"] + 1}
            formula = self.update_where  # type: ignore[attr-defined]
            with on_device(p._array), self._flushed(formula, group, given):
                formula(p._array, places, -values if group.get("maximize") else values, state, group)
            for key, value in state.items():
                if value is not given.get(key):
                    kept[key] = as_kept(value, p._array)
            bump(p, f"{type(self).__name__}.step")

    def _misfit(self, p: Tensor, g: Tensor, label: str) -> None:
        error = (ShapeError if p.shape != g.shape else DTypeError if p.dtype is not g.dtype
                 else DeviceError)
        raise error(f"{type(self).__name__}.step: the gradient of {label} is {g.dtype}{list(g.shape)} on "
                    f"{g.device}, but the parameter is {p.dtype}{list(p.shape)} on {p.device}; was its "
                    f".data replaced after backward()? call zero_grad() and backward() again")

    def _label(self, group: int, i: int) -> str:
        names = self.param_groups[group].get("param_names")
        return f"parameter '{names[i]}'" if names else f"params[{i}] of group {group}"

    # -- hooks -----------------------------------------------------------------------------------

    def _hooks(self, name: str) -> dict[int, Callable]:
        return self.__dict__.setdefault(f"_optimizer_{name}_hooks", {})

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new (args, kwargs)."""
        return register(self._hooks("step_pre"), hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return register(self._hooks("step_post"), hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict`` reads the state."""
        return register(self._hooks("state_dict_pre"), hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on what ``state_dict`` gives; it may return another."""
        return register(self._hooks("state_dict_post"), hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading, with a copy of the outermost dict; it may
        return another.
        """
        return register(self._hooks("load_state_dict_pre"), hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return register(self._hooks("load_state_dict_post"), hook, prepend)

    # -- saving and loading ----------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """``{"state": {0: {...}, ...}, "param_groups": [{option: value, "params": [0, ...]}]}``.

        Parameters are numbered through all groups; with names, the groups have ``param_names`` too.
        The tensors in it are those of the optimizer, not copies (as in PyTorch).

        >>> w = fw.ones(2, requires_grad=True)
        >>> group = fw.optim.SGD([("w", w)], lr=0.1).state_dict()["param_groups"][0]
        >>> group["params"], group["param_names"], group["lr"]
        ([0], ['w'], 0.1)
        """
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        self._settle()
        result = saved.pack(self)
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the state and the options of ``state_dict``; floating state takes the parameters' dtype
        and device.

        Parameters are matched by name where both sides have names, else by position. State may be
        NumPy arrays, too. Raises one CheckpointError that lists every difference in names, shapes and
        kinds of state; the optimizer is unchanged then. The state of a class with its own ``step`` is
        taken as it is.
        """
        if isinstance(state_dict, dict):
            state_dict = dict(state_dict)
        self._settle()
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        state, groups = saved.unpack(self, state_dict)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def compare_state(self, p: Tensor, saved_state: dict, group: dict[str, Any], name: str) -> list[str]:
        """What in the saved state of ``p`` does not fit; by what ``init_state`` would give."""
        return saved.compare(type(self).__name__, self._wanted(p, group), saved_state, name)

    def _wanted(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        with on_device(p._array):
            return self.first_state(p, group)

    def cast_state(self, p: Tensor, saved_state: dict, group: dict[str, Any]) -> dict[str, Any]:
        """A copy of the saved state of ``p`` in its dtype and on its device."""
        if not self._knows_its_state:
            own_update = type(self).update is not Optimizer.update  # then step is counted here, as a number
            return saved.cast_unknown(p, saved_state, own_update)
        return saved.cast_known(p, saved_state, self._wanted(p, group))

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return {k: v for k, v in self.__dict__.items() if k not in _HOOKS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k not in ("params", "param_names")]
        return "\n".join([*lines, ")"])


def _use_grad_for_differentiable(step: Callable) -> Callable:
    """A user's ``step`` that is recorded only where ``defaults["differentiable"]`` says so."""
    @wraps(step)
    def unrecorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return step(self, *args, **kwargs)
    return unrecorded


__dir__ = _own(
    globals(),
    "ParamsT RemovableHandle register_optimizer_step_post_hook register_optimizer_step_pre_hook")
