"""The old weight norm and spectral norm, which compute a weight in a hook before each call.

State dicts have ``weight_g`` and ``weight_v``, or ``weight_orig``, ``weight_u`` and ``weight_v``, as
PyTorch's. ``nn.utils.parametrizations`` has the ones to use.
"""

import warnings
from typing import Any

from ...autograd.mode import no_grad
from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from ..parameter import Parameter
from .parametrizations import norm_except


class WeightNorm:
    """The hook of ``weight_norm``."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """``g v / |v|``"""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except(v, self.dim))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


class SpectralNorm:
    """The hook of ``spectral_norm``."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations must be positive, got {n_power_iterations}")
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """The weight as a matrix (``dim``, all the rest)."""
        if self.dim:
            weight = weight.permute(self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        return weight.reshape(weight.shape[0], -1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """``w / sigma``"""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.mT.mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def _known(module: Module, name: str, kind: Any) -> Any:
    return next(((key, hook) for key, hook in module._forward_pre_hooks.items()
                 if isinstance(hook, kind) and hook.name == name), (None, None))


def _parameter(op: str, module: Module, name: str, kind: type) -> Any:
    if _known(module, name, kind)[1] is not None:
        raise RuntimeError(f"{op}: {type(module).__name__} has it on '{name}' already")
    weight = module._parameters.get(name)
    if weight is None:
        raise ValueError(f"{op}: {type(module).__name__} has no parameter '{name}'")
    return weight


def _removed(op: str, module: Module, name: str, kind: Any) -> Any:
    """The key of the hook that is to go, and the hook."""
    key, hook = _known(module, name, kind)
    if hook is None:
        raise ValueError(f"remove_{op}: {type(module).__name__} has no {op} on '{name}'")
    return key, hook


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """The old form of ``parametrizations.weight_norm``, with a FutureWarning: ``name_g`` and ``name_v``
    take the place of the parameter. Returns the module.

    Raises RuntimeError where it is there already, ValueError for a name that is no parameter.
    """
    warnings.warn("nn.utils.weight_norm is deprecated; use nn.utils.parametrizations.weight_norm",
                  FutureWarning, stacklevel=2)
    weight = _parameter("weight_norm", module, name, WeightNorm)
    hook = WeightNorm(name, dim)
    del module._parameters[name]
    with no_grad():
        g = norm_except(weight, hook.dim)
    module.register_parameter(f"{name}_g", Parameter(g.detach()))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo ``weight_norm``: the parameter has the value of now. Raises ValueError where there is none."""
    key, hook = _removed("weight_norm", module, name, WeightNorm)
    with no_grad():
        weight = hook.compute_weight(module)
    delattr(module, name)
    for end in ("_g", "_v"):
        del module._parameters[name + end]
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[key]
    return module


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """The old form of ``parametrizations.spectral_norm``: ``name_orig`` and the buffers ``name_u`` and
    ``name_v`` take the place of the parameter. Returns the module.

    Raises RuntimeError where it is there already, ValueError for a name that is no parameter.

    >>> layer = fw.nn.utils.spectral_norm(fw.nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    weight = _parameter("spectral_norm", module, name, SpectralNorm)
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    with no_grad():
        matrix = hook.reshape_weight_to_matrix(weight)
        u = F.normalize(weight.new_empty(matrix.shape[0]).normal_(), dim=0, eps=eps)
        v = F.normalize(weight.new_empty(matrix.shape[1]).normal_(), dim=0, eps=eps)
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo ``spectral_norm``: the parameter has the value of now. Raises ValueError where there is none."""
    key, hook = _removed("spectral_norm", module, name, SpectralNorm)
    with no_grad():
        weight: Tensor = hook.compute_weight(module, False)
    delattr(module, name)
    for end in ("_u", "_v"):
        del module._buffers[name + end]
    del module._parameters[name + "_orig"]
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[key]
    return module
