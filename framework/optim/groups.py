"""Groups of parameters and their options: how they are made, and what is refused.

``limits`` of an optimizer says which values options may take; ``LIMITS`` are those that most of them share.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, TypeAlias
from warnings import warn

import numpy as np

from ..errors import DTypeError, kind_of
from ..tensor import Tensor
from .arrays import number

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Limit = tuple[Callable[[Any], bool], str]
AT_LEAST_ZERO: Limit = (lambda v: 0 <= v < inf, "a finite number >= 0")
FRACTION: Limit = (lambda v: 0 <= v < 1, "in [0, 1)")
UNIT: Limit = (lambda v: 0 <= v <= 1, "in [0, 1]")
LIMITS: dict[str, Limit] = {"lr": AT_LEAST_ZERO, "weight_decay": AT_LEAST_ZERO, "eps": AT_LEAST_ZERO,
                            "momentum": AT_LEAST_ZERO, "betas": FRACTION}


_CHOICES = ("foreach", "fused", "differentiable", "capturable")


class _Required:
    """The default of an option that every group must set itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class Groups:
    """What Optimizer knows of its groups: dicts of parameters and options, all checked."""

    limits: dict[str, Limit] = {}
    defaults: dict[str, Any]
    param_groups: list[dict[str, Any]]
    _foreach_takes_tensors = True  # as options beside foreach=True

    def numbers_of(self, group: dict[str, Any]) -> dict[str, Any]:
        """The group with numbers in place of tensors of one element, also in pairs of options."""
        changed = {}
        for name in self.limits:
            value = group.get(name)
            if isinstance(value, Tensor):
                changed[name] = number(value)
            elif type(value) is tuple and any(isinstance(v, Tensor) for v in value):
                changed[name] = tuple(map(number, value))
        return {**group, **changed} if changed else group

    def check_group(self, group: dict[str, Any]) -> None:
        """Raise for an option outside its limits, or for one that is refused."""
        kind = type(self).__name__
        for name, (fits, words) in self.limits.items():
            values = group.get(name, 0)
            if type(values) is float and fits(values):  # nearly always
                continue
            for value in values if isinstance(values, (tuple, list)) else (values,):
                if isinstance(value, Tensor):
                    value = self._one_number(name, value, group)
                if value is required:
                    continue
                if not isinstance(value, (int, float, np.floating, np.integer)):
                    raise TypeError(f"{kind}: {name} must be a number, got {type(value).__name__}: {value!r}")
                if not fits(value):
                    raise ValueError(f"{kind}: {name}={values!r} must be {words}")
        if "betas" in self.limits and "betas" in group:
            betas = group["betas"]
            if not isinstance(betas, (tuple, list)) or len(betas) != 2 \
                    or isinstance(betas[0], Tensor) is not isinstance(betas[1], Tensor):
                raise ValueError(f"{kind}: betas={betas!r} must be two numbers or two tensors")
        if self.limits and any(map(group.get, _CHOICES)):
            self._check_choices(group)

    def _one_number(self, name: str, value: Tensor, group: dict[str, Any]) -> Any:
        if value.numel() != 1:
            raise ValueError(f"{type(self).__name__}: {name} must be a number or a tensor of one element, "
                             f"got a tensor of shape {list(value.shape)}")
        if group.get("foreach") and not self._foreach_takes_tensors:
            raise ValueError(f"{type(self).__name__}: {name} is a tensor, which foreach=True does not take; "
                             f"leave foreach=None")
        return value.item()

    def _check_choices(self, group: dict[str, Any]) -> None:
        """Raise for those of PyTorch's choices among its implementations that would have to change
        something."""
        kind = type(self).__name__
        if group.get("foreach") and group.get("fused"):
            raise RuntimeError(f"{kind}: foreach=True and fused=True are two forms; choose one")
        if group.get("differentiable"):
            raise ValueError(f"{kind}: differentiable=True is not supported: a step is not recorded; use "
                             f"autograd.grad(create_graph=True) and write the update with operators")
        if group.get("capturable") and not self._is_fused():  # type: ignore[attr-defined]
            raise ValueError(f"{kind}: capturable=True is not supported: no kernel makes its steps, and a "
                             f"CUDA graph would repeat one step's numbers; leave it out, and call step() "
                             f"outside of the graph")

    def _groups_of(self, params: Any) -> list[dict[str, Any]]:
        if isinstance(params, (Tensor, dict)) or not isinstance(params, Iterable):
            hint = "wrap it in a list"
            if hasattr(params, "parameters"):
                hint = "pass its .parameters()"
            elif callable(params):
                hint = "call it: model.parameters()"
            elif isinstance(params, dict) and "params" not in params:
                hint = "a state_dict is no list of parameters, pass model.parameters()"
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
        for name, value in group.items():
            if value is required:
                raise ValueError(f"{kind}: every parameter group must give {name!r}, which has no default")
        group.pop("param_names", None)
        if names is not None:
            group["param_names"] = names
        self._check_params(params, names)
        self.check_group(group)
        if len({id(p) for p in params}) < len(params):
            warn(f"{kind}: a parameter group has the same parameter twice, which is updated twice at each "
                 f"step", UserWarning, stacklevel=3)
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
                raise TypeError(f"{kind}: params[{i}] must be a Tensor, got {kind_of(p)}")
            if not (p.is_leaf or p.retains_grad):
                raise ValueError(f"{kind}: params[{i}] (shape {list(p.shape)}) is a non-leaf tensor, one "
                                 f"that was computed; optimize the leaf it was computed from, or "
                                 f"x.detach().requires_grad_()")
            if not (p.is_floating_point() or p.is_complex()):
                raise DTypeError(f"{kind}: params[{i}] must be floating or complex, it is {p.dtype}")
            if id(p) in seen:
                raise ValueError(f"{kind}: params[{i}] (shape {list(p.shape)}) is a duplicate: it appears in "
                                 f"two groups")
        if self.param_groups and (names is None) != ("param_names" not in self.param_groups[0]):
            raise ValueError(f"{kind}: either all groups have parameter names, or none")
        known = [n for group in self.param_groups for n in group.get("param_names", ())]
        twice = sorted({n for n in names or () if (known + names).count(n) > 1} if names else ())
        if twice:
            raise ValueError(f"{kind}: the parameter names {twice} are given to two parameters")


def real_only(kind: str, group: dict[str, Any], error: type[Exception] = DTypeError) -> None:
    """Raise an error if a parameter of the group is complex."""
    for p in group.get("params", ()):
        if p.is_complex():
            raise error(f"{kind}: complex parameters are not supported, got one of shape "
                        f"{list(p.shape)}; use Adam")
