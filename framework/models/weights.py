"""Published weights for a model: from a file, under its names or others that the model knows."""

from collections.abc import Callable
from typing import Any

from ..errors import CheckpointError
from ..io import load, load_safetensors
from ..nn import Module
from ..tensor import Tensor

_INSIDE = ("state_dict", "model_state_dict", "model")  # where training programs put them


def load_weights(model: Module, source: Any, *, strict: bool = True) -> Module:
    """Load a file of weights, or a state dict, into ``model``; returns the model.

    source: the path of a file of ``framework.save``, of PyTorch (.pt, .pth, .bin) or of safetensors, or a
    dict from names to tensors. A training checkpoint is looked into for its state dict; ``module.`` before
    all names, as data-parallel training leaves it, is taken off. A model may know further names of its
    weights (``model.published_name``), e.g. those of files without a common prefix.
    strict: raise where names are missing or left over; else only shapes are checked.
    Raises CheckpointError listing every name that does not fit; the model is unchanged then.

    >>> model = fw.models.MLP(4, [8], 2)
    >>> _ = fw.models.load_weights(model, {f"module.{k}": v for k, v in model.state_dict().items()})
    """
    found = source if isinstance(source, dict) else _read(source)
    found = next((found[k] for k in _INSIDE if isinstance(found.get(k), dict)), found)
    tensors = {k: v for k, v in found.items() if isinstance(k, str) and isinstance(v, Tensor)}
    if not tensors:
        raise CheckpointError(f"load_weights: no tensors by name in it, found the keys {list(found)[:5]}")
    if all(k.startswith("module.") for k in tensors):
        tensors = {k.removeprefix("module."): v for k, v in tensors.items()}
    rename: Callable = getattr(model, "published_name", lambda name: name)
    renamed: dict[str, Tensor] = {}
    for name, x in tensors.items():
        own = rename(name)
        if own is not None:
            renamed[own] = x
    model.load_state_dict(renamed, strict=strict)
    return model


def _read(source: Any) -> dict:
    if str(source).endswith(".safetensors"):
        try:
            return dict(load_safetensors(source))
        except TypeError:  # an open file
            pass
    found = load(source, map_location="cpu")
    if not isinstance(found, dict):
        raise CheckpointError(
            f"load_weights: wanted a dict from names to tensors, found {type(found).__name__}"
        )
    return found
