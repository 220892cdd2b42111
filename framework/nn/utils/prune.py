"""Pruning: parameters of which a mask sets entries to 0 before every call.

``prune.l1_unstructured(layer, "weight", 0.3)`` makes the parameter ``weight_orig`` and the buffer
``weight_mask``; ``layer.weight`` is their product. Pruning again chooses among the entries that are left.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ...config.listing import own as _own
from ...ops.random.numbers import rand, randperm
from ...ops.shape.join import cat
from ...tensor import Tensor
from ..module import Module


class BasePruningMethod(ABC):
    """A way of choosing entries; subclasses have ``compute_mask`` and say what it looks at: PRUNING_TYPE is
    "unstructured" (single entries), "structured" (slices along ``dim``) or "global"."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask for values ``t``; what ``default_mask`` prunes stays pruned."""

    def apply_mask(self, module: Any) -> Any:
        """The original times its mask."""
        mask, original = getattr(module, self._tensor_name + "_mask"), getattr(module,
                                                                              self._tensor_name + "_orig")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None,
              **kwargs: Any) -> "BasePruningMethod":
        """Prune a parameter of ``module`` by this method, on top of what pruned it before."""
        old = _hook(module, name)
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(original.shape):
            raise ValueError(f"prune: importance_scores must have the shape {list(original.shape)} of "
                             f"'{name}', got {list(scores.shape)}")
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        if old is None:
            parameter = module._parameters.get(name)
            if parameter is None:
                raise ValueError(f"prune: {type(module).__name__} has no parameter '{name}'")
            mask = method.compute_mask(scores.detach(), default_mask=parameter.detach().new_ones(
                parameter.shape))
            module.register_parameter(f"{name}_orig", parameter)
            del module._parameters[name]
            module.register_buffer(f"{name}_mask", mask)
            hook = method
        else:
            key, previous = old
            container = PruningContainer()
            container._tensor_name = name
            for part in previous if isinstance(previous, PruningContainer) else (previous,):
                container.add_pruning_method(part)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores.detach(), getattr(module, name + "_mask"))
            module._buffers[f"{name}_mask"] = mask
            del module._forward_pre_hooks[key]
            hook = container
        setattr(module, name, hook.apply_mask(module))
        module.register_forward_pre_hook(hook)
        return hook

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """``t`` with its pruned entries 0."""
        scores = t if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(t.shape):
            raise ValueError(f"prune: importance_scores must have the shape {list(t.shape)}, got "
                             f"{list(scores.shape)}")
        return t * self.compute_mask(scores, default_mask=t.new_ones(t.shape) if default_mask is None
                                     else default_mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor the parameter again; what was pruned stays 0."""
        if _hook(module, self._tensor_name) is None:
            raise ValueError(f"prune: {type(module).__name__} has no pruned parameter '{self._tensor_name}'")
        name, weight = self._tensor_name, self.apply_mask(module)
        delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.detach()
        del module._buffers[name + "_mask"]
        module.register_parameter(name, original)


def _hook(module: Any, name: str) -> Any:
    return next(((key, hook) for key, hook in module._forward_pre_hooks.items()
                 if isinstance(hook, BasePruningMethod) and hook._tensor_name == name), None)


class PruningContainer(BasePruningMethod):
    """Several methods for one tensor, each working on what the ones before left.

    >>> method = fw.nn.utils.prune.PruningContainer()
    >>> len(method)
    0
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1 and isinstance(args[0], Iterable):
            args = tuple(args[0])
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Put another method last; it must be for the same tensor."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"prune: {type(method).__name__} is no BasePruningMethod")
        if method._tensor_name != self._tensor_name:
            raise ValueError(f"prune: this container is for '{self._tensor_name}', the method for "
                             f"'{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of the last method, of the entries that ``default_mask`` leaves, with that mask."""
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            part: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim  # type: ignore[attr-defined]
            kept = mask.sum([d for d in range(t.ndim) if d != dim]) != 0 if t.ndim > 1 else mask != 0
            part = (slice(None),) * dim + (kept,)
        elif method.PRUNING_TYPE == "global":
            part = (slice(None),) * t.ndim
        else:
            raise ValueError(f"prune: PRUNING_TYPE must be unstructured, structured or global, got "
                             f"{method.PRUNING_TYPE!r}")
        new = mask.clone()
        new[part] = method.compute_mask(t[part], default_mask=mask[part]).to(mask.dtype)
        return new


class Identity(BasePruningMethod):
    """Prunes nothing: makes the mask and the original, all entries of the mask being 1."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """``default_mask``"""
        return default_mask


class _ByAmount(BasePruningMethod):
    """A method that prunes a number of entries, or a fraction of them."""

    def __init__(self, amount: float) -> None:
        self.amount = _amount(amount)


class RandomUnstructured(_ByAmount):
    """Prunes entries at random."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """A mask with ``amount`` random zeros more."""
        n = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if n:
            mask.view(-1)[rand(t.shape).reshape(-1).topk(n).indices.to(mask.device)] = 0
        return mask


class L1Unstructured(_ByAmount):
    """Prunes the entries nearest to 0."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """A mask with ``amount`` zeros more, where ``|t|`` is smallest."""
        n = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if n:
            mask.view(-1)[t.abs().reshape(-1).topk(n, largest=False).indices] = 0
        return mask


class _Slices(_ByAmount):
    """A method that prunes whole slices along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _without(self, t: Any, default_mask: Any, order: Any) -> Any:
        """The mask without the slices that ``order(n)`` names, n being their number."""
        if t.ndim <= 1:
            raise ValueError(f"prune: slices are pruned of tensors of at least 2 dimensions, got shape "
                             f"{list(t.shape)}")
        if not -t.ndim <= self.dim < t.ndim:
            raise IndexError(f"prune: dim={self.dim} is out of range for a tensor of {t.ndim} dimensions")
        n = _count(self.amount, t.shape[self.dim])
        mask = default_mask.clone()
        if n:
            mask[(slice(None),) * (self.dim % t.ndim) + (order(n),)] = 0
        return mask


class RandomStructured(_Slices):
    """Prunes slices along ``dim`` at random."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask without ``amount`` random slices."""
        return self._without(t, default_mask, lambda n: randperm(t.shape[self.dim])[:n].to(t.device))


class LnStructured(_Slices):
    """Prunes the slices along ``dim`` of the smallest n-norm."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask without the ``amount`` slices of the smallest norm."""
        def smallest(n: int) -> Any:
            dims = [d for d in range(t.ndim) if d != self.dim % t.ndim]
            return t.norm(p=self.n, dim=dims).topk(n, largest=False).indices
        return self._without(t, default_mask, smallest)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """``default_mask`` times the given one."""
        mask: Any = self.mask
        return default_mask * mask.to(default_mask.dtype)


def _amount(amount: Any) -> Any:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"prune: amount must be a number, got {type(amount).__name__}")
    if amount < 0 or (amount > 1 and not isinstance(amount, int)):
        raise ValueError(f"prune: amount must be a fraction between 0 and 1 or a number of entries, got "
                         f"{amount}")
    return amount


def _count(amount: Any, size: int) -> int:
    if isinstance(amount, int) and amount > size:
        raise ValueError(f"prune: amount={amount} entries are to be pruned, but there are {size}")
    return amount if isinstance(amount, int) else round(amount * size)


def identity(module: Module, name: str) -> Module:
    """Make a parameter a pruned one with a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune entries of a parameter at random: a fraction (float) or a number (int) of them.

    >>> layer = fw.nn.utils.prune.random_unstructured(fw.nn.Linear(4, 5), "weight", 0.25)
    >>> int((layer.weight == 0).sum())
    5
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float,
                    importance_scores: Tensor | None = None) -> Module:
    """Prune the entries of a parameter nearest to 0, or with the smallest ``importance_scores``.

    >>> layer = fw.nn.utils.prune.l1_unstructured(fw.nn.Linear(2, 3), "weight", 2)
    >>> sorted(layer.state_dict())
    ['bias', 'weight_mask', 'weight_orig']
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices of a parameter along ``dim`` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: float, n: Any, dim: int,
                  importance_scores: Tensor | None = None) -> Module:
    """Prune the slices of a parameter along ``dim`` with the smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter by a mask of 0 and 1."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None,
                        **kwargs: Any) -> None:
    """Prune several parameters, (module, name) pairs, as if they were one: which entries go is found among
    all.

    pruning_method: a class of PRUNING_TYPE "unstructured", made with ``kwargs``. importance_scores: a dict
    from pairs to tensors, for those that are not judged by their values.

    >>> a, b = fw.nn.Linear(2, 2), fw.nn.Linear(2, 2)
    >>> prune = fw.nn.utils.prune
    >>> prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=3)
    >>> int((a.weight == 0).sum() + (b.weight == 0).sum())
    3
    """
    if not isinstance(parameters, Iterable):
        raise TypeError(f"global_unstructured: parameters must be (module, name) pairs, got "
                        f"{type(parameters).__name__}")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError(f"global_unstructured: importance_scores must be a dict, got {type(scores).__name__}")
    pairs: list[Any] = list(parameters)
    values = [scores.get((m, n), getattr(m, n)).detach() for m, n in pairs]
    masks = [getattr(m, n + "_mask", getattr(m, n).detach().new_ones(getattr(m, n).shape)) for m, n in pairs]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f"global_unstructured: the method must be unstructured, {pruning_method.__name__} is "
                        f"{method.PRUNING_TYPE}")
    container.add_pruning_method(method)
    found: Any = container.compute_mask(cat([v.reshape(-1) for v in values]),
                                        cat([m.reshape(-1) for m in masks]))
    start = 0
    for (module, name), value in zip(pairs, values):
        custom_from_mask(module, name, found[start:start + value.numel()].reshape(value.shape))
        start += value.numel()


def remove(module: Module, name: str) -> Module:
    """Make a pruned tensor an ordinary parameter again; what was pruned stays 0. ValueError if it is not
    pruned.

    >>> layer = fw.nn.utils.prune.l1_unstructured(fw.nn.Linear(2, 3), "weight", 2)
    >>> sorted(fw.nn.utils.prune.remove(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    found = _hook(module, name)
    if found is None:
        raise ValueError(f"prune.remove: {type(module).__name__} has no pruned parameter '{name}'")
    key, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """Whether the module or one in it is pruned.

    >>> fw.nn.utils.prune.is_pruned(fw.nn.Linear(1, 1))
    False
    """
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() if m._hooks is not None
               for hook in m._forward_pre_hooks.values())


__dir__ = _own(globals())
