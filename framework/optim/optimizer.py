"""The base of all optimizers: groups, missing gradients, steps, closures, hooks, state_dict.

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
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from math import inf
from typing import Any

import numpy as np

from ..autograd.hooks import RemovableHandle
from ..autograd.mode import enable_grad, no_grad
from ..backends import array_module, move
from ..dtypes import INEXACT
from ..errors import CheckpointError, DeviceError, DTypeError, ShapeError
from ..ops.pointwise.complex_numbers import as_complex_op, as_real_op
from ..tensor import Tensor, bump, counter_of, wrap
from .fused import Fused, fused_step, gradients_fit

Limit = tuple[Callable[[Any], bool], str]
AT_LEAST_ZERO: Limit = (lambda v: 0 <= v < inf, "a finite number >= 0")
FRACTION: Limit = (lambda v: 0 <= v < 1, "in [0, 1)")
UNIT: Limit = (lambda v: 0 <= v <= 1, "in [0, 1]")

_NOT_OPTIONS = ("params", "param_names")
_HINTS = ("foreach", "fused", "capturable", "differentiable")


class Optimizer:
    """Changes parameters by their gradients.

    params: tensors, ``(name, tensor)`` pairs such as ``model.named_parameters()``, or dicts with the
    key ``params`` and options of their own. With names, ``state_dict`` is by name; otherwise the
    names are the positions "0", "1", ... defaults: the options of groups that do not set them.

    A subclass writes ``init_state(p, group)`` and ``update(p, g, state, group)`` (see the head of
    ``optim/optimizer.py``); ``update_group`` is the door for updating many parameters at once.
    ``limits`` says which values options may take.

    PyTorch's speed hints ``foreach``, ``fused`` and ``capturable`` are taken and have no effect.
    """

    limits: dict[str, Limit] = {"lr": AT_LEAST_ZERO, "weight_decay": AT_LEAST_ZERO,
                                "eps": AT_LEAST_ZERO, "momentum": AT_LEAST_ZERO, "betas": FRACTION}

    def __init__(self, params: Iterable, defaults: dict[str, Any], **hints: Any) -> None:
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._start()
        self._check_hints(hints)
        self.check_group(defaults)
        for group in self._groups_of(params):
            self.add_param_group(group)

    def _start(self) -> None:
        self._opt_called = False  # whether step() ever ran: the schedulers ask
        self._pre_hooks: dict[int, Callable] = {}
        self._post_hooks: dict[int, Callable] = {}

    # -- what a subclass writes ------------------------------------------------------------------

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The arrays (or numbers) kept for the parameter's array ``p`` before its first update."""
        return {}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change the array ``p`` in place by its gradient ``g``, which must not be changed.

        state: what ``init_state`` gave, as arrays, and ``step``, the number of this update from 1.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update(p, g, state, group)")

    def fused(self, group: dict[str, Any], step: int) -> Fused | None:
        """``update`` of step number ``step`` as a native function with the same bits, if there is one."""
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "update" in vars(cls) and "fused" not in vars(cls):  # the parent's does the parent's update
            cls.fused = Optimizer.fused  # type: ignore[method-assign]

    def update_group(self, params: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one group, whose gradients fit: natively, the rest by ``update``."""
        sign_flipped, name = group.get("maximize", False), f"{type(self).__name__}.step"
        for p in fused_step(self, params, group):
            with on_device(p._array):
                self._update_one(p, p._array, sign_flipped, group)
            bump(p, name)

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
        self.update(seen, -g if sign_flipped else g, state, group)
        for key, value in state.items():
            if value is not given.get(key):
                kept[key] = _as_kept(value, array)

    def first_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """What ``init_state`` gives, as it is kept: tensors, and complex ones for a complex parameter."""
        made = self.init_state(real_view(p._array), group)
        return {k: _as_kept(v, p._array) for k, v in made.items()}

    def check_group(self, group: dict[str, Any]) -> None:
        """Raise ValueError for an option outside its limits."""
        for name, (fits, words) in self.limits.items():
            values = group.get(name, 0)
            for value in values if isinstance(values, (tuple, list)) else (values,):
                if not isinstance(value, (int, float, np.floating, np.integer)):
                    raise TypeError(f"{type(self).__name__}: {name} must be a number, got "
                                    f"{type(value).__name__}: {value!r}")
                if not fits(value):
                    raise ValueError(f"{type(self).__name__}: {name}={values!r} must be {words}")
        if "betas" in group and len(group["betas"]) != 2:
            raise ValueError(f"{type(self).__name__}: betas={group['betas']!r} must be two numbers")

    # -- groups ----------------------------------------------------------------------------------

    def _check_hints(self, hints: dict[str, Any]) -> None:
        for name, value in hints.items():
            if name not in _HINTS:
                raise TypeError(f"{type(self).__name__}: there is no option {name!r}; it has: "
                                f"{', '.join(self.defaults)}")
            if name == "differentiable" and value:
                raise ValueError(f"{type(self).__name__}: differentiable={value!r} is not supported: "
                                 f"a step is not recorded; use autograd.grad(create_graph=True) and "
                                 f"write the update with operators")

    def _groups_of(self, params: Any) -> list[dict[str, Any]]:
        if isinstance(params, (Tensor, dict)) or not isinstance(params, Iterable):
            hint = "pass its .parameters()" if hasattr(params, "parameters") else "wrap it in a list"
            raise TypeError(f"{type(self).__name__}: params must be an iterable of tensors or of dicts, "
                            f"got {type(params).__name__}; {hint}")
        if isinstance(params, (set, frozenset)):
            raise TypeError(f"{type(self).__name__}: params must be ordered, got a set; use a list")
        items = list(params)
        if not items:
            raise ValueError(f"{type(self).__name__}: got an empty parameter list; was the model's "
                             f"parameters() generator used up before?")
        return items if isinstance(items[0], dict) else [{"params": items}]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own, e.g. ``{"params": [w], "lr": 0.1}``.

        Raises ValueError for a tensor that was computed or is already in a group, TypeError for what
        is no tensor; nothing is changed then.

        >>> a, b = fw.ones(2, requires_grad=True), fw.ones(2, requires_grad=True)
        >>> optimizer = fw.optim.SGD([a], lr=0.1)
        >>> optimizer.add_param_group({"params": [b], "lr": 0.01})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        kind = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(f"{kind}: a parameter group must be a dict, got {type(param_group).__name__}")
        if "params" not in param_group:
            raise ValueError(f"{kind}: a parameter group needs the key 'params', got the keys "
                             f"{sorted(param_group)}")
        params, names = self._split(param_group)
        group = {**self.defaults, **param_group, "params": params}
        group.pop("param_names", None)
        if names is not None:
            group["param_names"] = names
        self.check_group(group)
        self._check_params(params, names)
        self.param_groups.append(group)

    def _split(self, group: dict[str, Any]) -> tuple[list[Tensor], list[str] | None]:
        """The tensors of a group and their names, if it has names."""
        given = group["params"]
        if isinstance(given, (set, frozenset)):
            raise TypeError(f"{type(self).__name__}: params must be ordered, got a set; use a list")
        items: list[Any] = [given] if isinstance(given, Tensor) else list(given)
        pairs = [isinstance(i, tuple) and len(i) == 2 and isinstance(i[0], str) for i in items]
        if any(pairs) and not all(pairs):
            raise ValueError(f"{type(self).__name__}: either all parameters come as (name, tensor) "
                             f"pairs, or none")
        names = group.get("param_names")
        if pairs and pairs[0]:
            names, items = [name for name, _ in items], [p for _, p in items]
        if names is not None and len(names) != len(items):
            raise ValueError(f"{type(self).__name__}: {len(items)} parameters but {len(names)} "
                             f"param_names")
        return items, None if names is None else list(names)

    def _check_params(self, params: list, names: list[str] | None) -> None:
        kind = type(self).__name__
        seen = {id(p) for group in self.param_groups for p in group["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(f"{kind}: params[{i}] must be a Tensor, got {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(f"{kind}: params[{i}] (shape {list(p.shape)}) is a non-leaf tensor, one "
                                 f"that was computed; optimize the leaf it was computed from, or "
                                 f"x.detach().requires_grad_()")
            if not (p.is_floating_point() or p.is_complex()):
                raise DTypeError(f"{kind}: params[{i}] must be floating or complex, it is {p.dtype}")
            if id(p) in seen:
                raise ValueError(f"{kind}: params[{i}] (shape {list(p.shape)}) is a duplicate: it "
                                 f"appears twice in a group, or in two groups")
            seen.add(id(p))
        if self.param_groups and (names is None) != ("param_names" not in self.param_groups[0]):
            raise ValueError(f"{kind}: either all groups have parameter names, or none")
        known = [n for group in self.param_groups for n in group.get("param_names", ())]
        twice = sorted({n for n in names or () if (known + names).count(n) > 1} if names else ())
        if twice:
            raise ValueError(f"{kind}: the parameter names {twice} are given to two parameters")

    # -- stepping --------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or with ``set_to_none=False`` fill them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad
                if set_to_none or g is None:
                    p.grad = None
                    continue
                with on_device(g._array):
                    if g._node is not None:
                        p.grad = wrap(zeros_like(g._array))
                    else:
                        g._array.fill(0)
                        counter_of(g)[:] = counter_of(g)[0] + 1, "zero_grad"

    def step(self, closure: Callable | None = None) -> Any:
        """Change every parameter that has a gradient; the others are left alone.

        closure: clears the gradients, computes the loss, calls ``backward()`` and returns the loss;
        it runs with gradients enabled, and its result is returned. Gradients that do not fit their
        parameter raise before anything is changed.
        """
        args: tuple = () if closure is None else (closure,)
        kwargs: dict[str, Any] = {}
        for hook in list(self._pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise TypeError(f"{type(self).__name__}.step: a pre-hook must return None or (args, "
                                    f"kwargs), got {changed!r}")
                args, kwargs = changed
        self._opt_called = True
        result = self._run(*args, **kwargs)
        for hook in list(self._post_hooks.values()):
            hook(self, args, kwargs)
        return result

    def _run(self, closure: Callable | None = None) -> Any:
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        work = [(group, self._ready(i, group)) for i, group in enumerate(self.param_groups)]
        with no_grad(), np.errstate(all="ignore"):
            for group, params in work:
                if params:
                    self.update_group(params, group)
        return loss

    def _ready(self, index: int, group: dict[str, Any]) -> list[Tensor]:
        """The parameters of a group that have a gradient; raises for one that does not fit."""
        ready = [p for p in group["params"] if p.grad is not None]
        if gradients_fit(ready, [p.grad for p in ready]):
            return ready
        ready = []
        for i, p in enumerate(group["params"]):
            g = p.grad
            if g is None:
                continue
            a, b = p._array, g._array
            if a.shape != b.shape or a.dtype != b.dtype or type(a) is not type(b):
                self._misfit(p, g, self._label(index, i))
            if isinstance(a, np.ndarray) and not a.flags.writeable:
                raise ValueError(f"{type(self).__name__}.step: the memory of {self._label(index, i)} is "
                                 f"read-only; clone() it before optimizing it")
            ready.append(p)
        return ready

    def _misfit(self, p: Tensor, g: Tensor, label: str) -> None:
        error = (ShapeError if p.shape != g.shape else DTypeError if p.dtype is not g.dtype
                 else DeviceError)
        raise error(f"{type(self).__name__}.step: the gradient of {label} is {g.dtype}{list(g.shape)} on "
                    f"{g.device}, but the parameter is {p.dtype}{list(p.shape)} on {p.device}; was its "
                    f".data replaced after backward()? call zero_grad() and backward() again")

    def _label(self, group: int, i: int) -> str:
        names = self.param_groups[group].get("param_names")
        return f"parameter '{names[i]}'" if names else f"params[{i}] of group {group}"

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new (args, kwargs)."""
        return _register(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _register(self._post_hooks, hook)

    # -- saving and loading ----------------------------------------------------------------------

    def _names(self) -> list[list[str]]:
        """Per group the names of its parameters: their own, or their positions."""
        result, count = [], 0
        for group in self.param_groups:
            size = len(group["params"])
            result.append(list(group.get("param_names") or map(str, range(count, count + size))))
            count += size
        return result

    def state_dict(self) -> dict[str, Any]:
        """``{"state": {name: {...}}, "param_groups": [{option: value, "params": [names]}]}``.

        The tensors in it are those of the optimizer, not copies (as in PyTorch).

        >>> w = fw.ones(2, requires_grad=True)
        >>> fw.optim.SGD([("w", w)], lr=0.1).state_dict()["param_groups"][0]["params"]
        ['w']
        """
        state, groups = {}, []
        for group, names in zip(self.param_groups, self._names()):
            packed = {k: v for k, v in group.items() if k != "params"}
            groups.append({**packed, "params": names})
            for p, name in zip(group["params"], names):
                if self.state.get(p):
                    state[name] = dict(self.state[p])
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the state and the options of ``state_dict``; floating state takes the parameters' dtype
        and device.

        Parameters are matched by name where both sides have names, else by position. Raises one
        CheckpointError that lists every difference in names, order, shapes and kinds of state; the
        optimizer is unchanged then.
        """
        if not isinstance(state_dict, dict) or not {"state", "param_groups"} <= set(state_dict):
            got = sorted(map(str, state_dict)) if isinstance(state_dict, dict) else type(state_dict).__name__
            raise CheckpointError(f"{type(self).__name__}.load_state_dict: wanted a dict with the keys "
                                  f"'state' and 'param_groups', got {got}; is it an optimizer's?")
        problems = self._compare_groups(state_dict["param_groups"])
        if not problems:
            groups = self._loaded_groups(state_dict["param_groups"])
            state = self._loaded_state(state_dict, groups, problems)
        if problems:
            raise CheckpointError(
                f"{type(self).__name__}.load_state_dict: the checkpoint does not fit this optimizer; "
                f"nothing was changed:\n  " + "\n  ".join(problems))
        self.__setstate__({"defaults": self.defaults, "state": state, "param_groups": groups})

    def _compare_groups(self, saved: list[dict]) -> list[str]:
        if len(saved) != len(self.param_groups):
            return [f"the checkpoint has {len(saved)} parameter groups, the optimizer "
                    f"{len(self.param_groups)}"]
        problems = []
        for i, (group, theirs) in enumerate(zip(self.param_groups, saved)):
            ours, names = group.get("param_names"), theirs.get("param_names")
            if ours and names:
                problems += _compare_names(i, list(ours), list(names))
            elif len(group["params"]) != len(theirs["params"]):
                problems.append(f"group {i} has {len(theirs['params'])} parameters in the checkpoint, "
                                f"{len(group['params'])} in the optimizer")
        return problems

    def _loaded_groups(self, saved: list[dict]) -> list[dict[str, Any]]:
        groups = []
        for group, theirs in zip(self.param_groups, saved):
            options = {k: v for k, v in theirs.items() if k not in _NOT_OPTIONS}
            own = {k: group[k] for k in _NOT_OPTIONS if k in group}
            groups.append({**self.defaults, **options, **own})
        return groups

    def _loaded_state(self, state_dict: dict, groups: list, problems: list[str]) -> defaultdict:
        saved = {str(k): v for k, v in state_dict["state"].items()}
        state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for group, theirs, names in zip(groups, state_dict["param_groups"], self._names()):
            for p, key, name in zip(group["params"], theirs["params"], names):
                entry = {k: v for k, v in (saved.pop(str(key), None) or {}).items() if v is not None}
                if entry:
                    problems += self.compare_state(p, entry, group, name)
                    state[p] = self.cast_state(p, entry)
        problems += [f"state for '{key}', which no group names" for key in saved]
        return state

    def compare_state(self, p: Tensor, saved: dict, group: dict[str, Any], name: str) -> list[str]:
        """What in the ``saved`` state of ``p`` does not fit; by what ``init_state`` would give."""
        with on_device(p._array):
            wanted = self.first_state(p, group)
        ours, theirs = sorted(wanted), sorted(k for k in saved if k != "step")
        if ours != theirs:
            return [f"{name}: the checkpoint keeps {theirs or 'nothing'}, {type(self).__name__} with its "
                    f"options keeps {ours or 'nothing'}"]
        wanted = {key: value for key, value in wanted.items() if isinstance(value, Tensor)}
        return [f"{name}: {key} has shape {list(getattr(saved[key], 'shape', ()))} in the checkpoint, "
                f"the optimizer needs {list(value.shape)}" for key, value in wanted.items()
                if getattr(saved[key], "shape", ()) != value.shape] + [
                f"{name}: {key} is {saved[key].dtype} in the checkpoint, the optimizer needs {value.dtype}"
                for key, value in wanted.items()
                if isinstance(saved[key], Tensor) and saved[key].is_complex() != value.is_complex()]

    def cast_state(self, p: Tensor, saved: dict) -> dict[str, Any]:
        """A copy of the ``saved`` state of ``p`` in its dtype and on its device; ``step`` as a number."""
        step = saved.get("step", 1)
        step = int(step.item() if isinstance(step, Tensor) else step)
        return {"step": step, **{k: cast_to(v, p._array.dtype, p.device)
                                 for k, v in saved.items() if k != "step"}}

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_opt_called" not in self.__dict__:
            self._start()
        self.__dict__.update(state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k not in _NOT_OPTIONS]
        return "\n".join([*lines, ")"])


def on_device(array: Any) -> AbstractContextManager:
    """Make the GPU that holds ``array`` the current one, which CuPy wants; nothing for the CPU."""
    return _NOWHERE if isinstance(array, np.ndarray) else array.device


_NOWHERE: AbstractContextManager = nullcontext()


def zeros_like(p: Any) -> Any:
    """Zeros of the shape and dtype of the array ``p``, where it is."""
    return array_module(p).zeros_like(p)


def cast_to(value: Any, dtype: np.dtype, device: Any) -> Any:
    """A copy of a tensor on ``device``, not of integers as ``dtype``; also inside lists; else itself."""
    if isinstance(value, (list, tuple)):
        return [cast_to(v, dtype, device) for v in value]
    if not isinstance(value, Tensor):
        return value
    array = value._array
    with on_device(array):
        copy = array.astype(dtype if array.dtype.kind in INEXACT else array.dtype)
    return wrap(move(copy, device))


def real_view(array: Any) -> Any:
    """A complex array as pairs of real numbers, (*) -> (*, 2), over the same memory; a real one as it is."""
    return as_real_op(array) if array.dtype.kind == "c" else array


def _as_kept(value: Any, p: Any) -> Any:
    """An array as a tensor, pairs of a complex parameter ``p`` as complex numbers; others as they are."""
    if not (hasattr(value, "dtype") and hasattr(value, "strides")) or isinstance(value, np.generic):
        return value
    paired = p.dtype.kind == "c" and value.shape == (*p.shape, 2)
    return wrap(as_complex_op(value) if paired else value)


def _register(hooks: dict[int, Callable], hook: Callable) -> RemovableHandle:
    key = max(hooks, default=-1) + 1
    hooks[key] = hook
    return RemovableHandle(hooks, key)


def _compare_names(i: int, ours: list[str], theirs: list[str]) -> list[str]:
    problems = [f"group {i}: '{n}' is missing from the checkpoint" for n in ours if n not in theirs]
    problems += [f"group {i}: '{n}' is in the checkpoint but not in the optimizer" for n in theirs
                 if n not in ours]
    if not problems and ours != theirs:
        at = next(k for k, (a, b) in enumerate(zip(ours, theirs)) if a != b) if ours else 0
        problems.append(f"group {i}: the parameters are in another order, first at position {at}: "
                        f"'{theirs[at]}' in the checkpoint, '{ours[at]}' in the optimizer")
    return problems
