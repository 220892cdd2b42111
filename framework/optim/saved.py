"""``state_dict`` and ``load_state_dict`` of optimizers: PyTorch's layout, read by position or by name.

A class of ours (one with ``update``) knows from ``init_state`` what it keeps, so what is loaded is compared
with that first. A class with a ``step`` of its own keeps what it likes: that is taken as it is.
"""

from collections import defaultdict
from copy import deepcopy
from typing import Any

import numpy as np

from ..errors import CheckpointError
from ..tensor import Tensor
from .arrays import cast_to, laid_like, number

_NOT_OPTIONS = ("params", "param_names")
_OWN_OPTIONS = ("eps_inside",)  # which PyTorch has not: saved where they are set, and off where they are not


def pack(optimizer: Any) -> dict[str, Any]:
    """``{"state": {position: {...}}, "param_groups": [{option: value, "params": [positions]}]}``."""
    places: dict[int, int] = {}
    state: dict[Any, Any] = {}
    groups, start = [], 0
    unsaved = optimizer._unsaved if optimizer._knows_its_state else ()
    for group in optimizer.param_groups:
        for i, p in enumerate(group["params"], start):
            if places.setdefault(id(p), i) == i and optimizer.state.get(p):
                kept = optimizer.state[p]
                kept = {k: v for k, v in kept.items() if k not in unsaved} if isinstance(kept, dict) else kept
                if kept != {}:
                    state[i] = kept
        start += len(group["params"])
        options = {k: v for k, v in group.items() if k != "params" and (k not in _OWN_OPTIONS or v)}
        groups.append({**options, "params": [places[id(p)] for p in group["params"]]})
    state.update((key, kept) for key, kept in optimizer.state.items() if not isinstance(key, Tensor))
    return {"state": state, "param_groups": groups}


def unpack(optimizer: Any, saved: dict[str, Any]) -> tuple[defaultdict, list[dict[str, Any]]]:
    """The state and the groups that ``saved`` means for the optimizer; raises without a change to it."""
    kind = type(optimizer).__name__
    if not isinstance(saved, dict) or not {"state", "param_groups"} <= set(saved):
        got = sorted(map(str, saved)) if isinstance(saved, dict) else type(saved).__name__
        raise CheckpointError(f"{kind}.load_state_dict: wanted a dict with the keys 'state' and "
                              f"'param_groups', got {got}; is it an optimizer's?")
    problems = _unsound(saved["state"], saved["param_groups"]) or _compare_groups(optimizer,
                                                                                  saved["param_groups"])
    if not problems:
        groups = _groups(optimizer, saved["param_groups"])
        state = _state(optimizer, saved, groups, problems)
    if problems:
        raise CheckpointError(f"{kind}.load_state_dict: the checkpoint does not fit this optimizer; nothing "
                              f"was changed:\n  " + "\n  ".join(problems))
    return state, groups


def _unsound(state: Any, groups: Any) -> list[str]:
    """What makes these no state and no groups of any optimizer."""
    if not isinstance(state, dict) or not isinstance(groups, (list, tuple)):
        return [f"'state' must be a dict and 'param_groups' a list, got {type(state).__name__} and "
                f"{type(groups).__name__}"]
    problems = []
    for i, group in enumerate(groups):
        places = group.get("params") if isinstance(group, dict) else None
        if not isinstance(places, (list, tuple)):
            problems.append(f"group {i} has no list 'params'")
        elif len(group.get("param_names") or places) != len(places):
            problems.append(f"group {i} has {len(places)} parameters and {len(group['param_names'])} names")
    return problems


def _compare_groups(optimizer: Any, saved: list[dict]) -> list[str]:
    if len(saved) != len(optimizer.param_groups):
        return [f"the checkpoint has {len(saved)} parameter groups, the optimizer "
                f"{len(optimizer.param_groups)}"]
    problems = []
    for i, (group, theirs) in enumerate(zip(optimizer.param_groups, saved)):
        ours, names = group.get("param_names"), theirs.get("param_names")
        if ours and names:
            problems += [f"group {i}: '{n}' is missing from the checkpoint" for n in ours if n not in names]
            problems += [f"group {i}: '{n}' is in the checkpoint but not in the optimizer" for n in names
                         if n not in ours]
        elif len(group["params"]) != len(theirs["params"]):
            problems.append(f"group {i} has {len(theirs['params'])} parameters in the checkpoint, "
                            f"{len(group['params'])} in the optimizer")
    return problems


def _groups(optimizer: Any, saved: list[dict]) -> list[dict[str, Any]]:
    groups = []
    for group, theirs in zip(optimizer.param_groups, saved):
        options = {k: deepcopy(v) for k, v in theirs.items() if k not in _NOT_OPTIONS}  # may be a list
        own = {k: group[k] for k in _NOT_OPTIONS if k in group}
        off = {k: False for k in _OWN_OPTIONS if k in group}
        groups.append({**optimizer.defaults, **off, **options, **own})
    return groups


def _keys(group: dict[str, Any], theirs: dict[str, Any]) -> list:
    """For each parameter of ``group`` the key of its state: by name where both sides have names."""
    if group.get("param_names") and theirs.get("param_names"):
        by_name = dict(zip(theirs["param_names"], theirs["params"]))
        return [by_name[name] for name in group["param_names"]]
    return list(theirs["params"])


def _state(optimizer: Any, saved: dict, groups: list, problems: list[str]) -> defaultdict:
    left = {str(k): (k, v) for k, v in saved["state"].items()}
    state: defaultdict[Any, Any] = defaultdict(dict)
    start = 0
    for group, theirs in zip(groups, saved["param_groups"]):
        names = group.get("param_names") or range(start, start + len(group["params"]))
        start += len(group["params"])
        for p, key, name in zip(group["params"], _keys(group, theirs), names):
            _, entry = left.pop(str(key), (None, None))
            if optimizer._knows_its_state:
                entry = {k: v for k, v in (entry or {}).items() if v is not None}
                if entry:
                    problems += optimizer.compare_state(p, entry, group, str(name))
            if entry:
                state[p] = optimizer.cast_state(p, entry, group)
    if optimizer._knows_its_state:
        problems += [f"state for '{key}', which no group names" for key in left]
    else:
        state.update(left.values())
    return state


def compare(kind: str, wanted: dict[str, Any], saved: dict[str, Any], name: str) -> list[str]:
    """What in the ``saved`` state of parameter ``name`` differs in kind or shape from the ``wanted`` one."""
    ours, theirs = sorted(wanted), sorted(k for k in saved if k != "step")
    if ours != theirs:
        return [f"{name}: the checkpoint keeps {theirs or 'nothing'}, {kind} with its options keeps "
                f"{ours or 'nothing'}"]
    problems = []
    for key, value in wanted.items():
        has, needs = (tuple(getattr(v, "shape", ())) for v in (saved[key], value))
        if has != needs:
            problems.append(f"{name}: {key} has shape {list(has)} in the checkpoint, the optimizer needs "
                            f"{list(needs)}")
        elif _is_complex(saved[key]) != _is_complex(value):
            problems.append(f"{name}: {key} is {saved[key].dtype} in the checkpoint, the optimizer needs "
                            f"{value.dtype}")
    return problems


def _is_complex(value: Any) -> bool:
    array = getattr(value, "_array", value)
    return isinstance(array, complex) or getattr(getattr(array, "dtype", None), "kind", "") == "c"


def cast_known(p: Tensor, saved: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """A copy in the dtype and on the device of ``p``; ``step``, and what is a number here, as numbers."""
    step = int(number(saved.get("step", 1)))
    return {"step": step, **{
        k: laid_like(cast_to(v, p._array.dtype, p.device), wanted.get(k))
        if _is_array(wanted.get(k, v)) else number(v) for k, v in saved.items() if k != "step"}}


def _is_array(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray, list, tuple, dict))


def cast_unknown(p: Tensor, saved: Any, counted: bool) -> Any:
    """The same for a state that a class with its own ``step`` made: nothing comes, goes or is renamed.

    counted: whether ``step`` is a number here, since the class has an ``update`` that counts.
    """
    if not isinstance(saved, dict):
        return cast_to(saved, p._array.dtype, p.device)
    cast = {k: cast_to(v, p._array.dtype, p.device) for k, v in saved.items() if k != "step"}
    if "step" not in saved:
        return cast
    step = saved["step"]
    kept = number(step) if counted else cast_to(step, _dtype_of(step), p.device)
    return {"step": kept, **cast}


def _dtype_of(value: Any) -> Any:
    return getattr(getattr(value, "_array", value), "dtype", np.dtype("float32"))
