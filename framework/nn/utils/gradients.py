"""Helpers around parameters: clipping gradients, and all parameters as one vector."""

import math
import warnings
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from ... import _native
from ...autograd.mode import no_grad
from ...backends import array_module, cuda, move, on_device, tensor_lists
from ...creation import zeros
from ...dtypes import promote_types
from ...errors import ShapeError, kind_of
from ...ops.language.cuda_fold import tickets
from ...ops.shape.join import cat
from ...quiet import settle
from ...seam import is_watched
from ...sparse_door import is_sparse, sparse
from ...tensor import Tensor, bump, wrap


def _gradients(parameters: Any, op: str) -> list[Tensor]:
    if not isinstance(parameters, Iterable):
        hint = "; pass its .parameters()" if hasattr(parameters, "parameters") else ""
        raise TypeError(f"{op}: parameters must be an iterable of Tensors, got "
                        f"{type(parameters).__name__}{hint}")
    items = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for p in items:
        if not isinstance(p, Tensor):
            raise TypeError(f"{op}: parameters must be Tensors, found {type(p).__name__}")
    return [_plain(p.grad) for p in items if p.grad is not None]


def _plain(g: Tensor) -> Tensor:
    """The values of a sparse gradient, each place once; a dense one as it is."""
    return sparse().merged_values(g) if is_sparse(g) else g


@no_grad()
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Scale all gradients down together so that their total norm is at most ``max_norm``.

    Returns the norm before. Raises RuntimeError for a norm that is nan or inf if
    ``error_if_nonfinite``; the gradients are unchanged then.

    >>> p = fw.nn.Parameter(fw.zeros(2)); p.grad = fw.tensor([3.0, 4.0])
    >>> fw.nn.utils.clip_grad_norm_([p], 1.0)
    tensor(5.)
    >>> p.grad
    tensor([0.6000, 0.8000])
    """
    grads = _gradients(parameters, "clip_grad_norm_")
    if not grads:
        return zeros(())
    total = _checked_norm("clip_grad_norm_", grads, norm_type, error_if_nonfinite)
    _scale_down(grads, max_norm, total)
    with on_device(total):
        return wrap(array_module(total).asarray(total))


def _checked_norm(op: str, tensors: list[Tensor], norm_type: float, error_if_nonfinite: bool) -> Any:
    total = _total_norm(tensors, norm_type)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(f"{op}: the total norm of the gradients is {float(total)}; look for nan or inf in "
                           f"the loss, or pass error_if_nonfinite=False")
    return total


def _by_place(tensors: list[Tensor]) -> list[list[Tensor]]:
    """The tensors of each device together, those of the first one first."""
    if not cuda.is_loaded():
        return [tensors]
    places: dict[Any, list[Tensor]] = {}
    for t in tensors:
        places.setdefault(t.device, []).append(t)
    return list(places.values())


def _scale_down(grads: list[Tensor], max_norm: float, total: Any) -> None:
    for part in _by_place(grads):
        with on_device(part[0]._array):
            _scale_down_here(part, max_norm, move(total, part[0].device) if len(part) < len(grads) else total)


def _scale_down_here(grads: list[Tensor], max_norm: float, total: Any) -> None:
    if not is_watched() and tensor_lists.scale_all([g._array for g in grads], total, max_norm):
        for g in grads:
            bump(g, "mul_")
        return
    factor = max_norm / (total + 1e-6)
    factor = array_module(factor).minimum(factor, 1.0)
    on_host = isinstance(factor, np.ndarray | np.generic)
    if not (on_host and _change_all("scale_all", grads, "mul_", factor=float(factor))):
        for g in grads:
            g.mul_(wrap(factor.astype(g._array.dtype)))  # type: ignore[attr-defined]


@no_grad()
def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The norm of all elements of the tensors together.

    Raises RuntimeError for a norm that is nan or inf if ``error_if_nonfinite``.

    >>> fw.nn.utils.get_total_norm([fw.tensor([3.0]), fw.tensor([4.0])])
    tensor(5.)
    """
    items = [_plain(g) for g in ([tensors] if isinstance(tensors, Tensor) else tensors)]
    if not items:
        return zeros(())
    total = _checked_norm("get_total_norm", items, norm_type, error_if_nonfinite)
    with on_device(total):
        return wrap(array_module(total).asarray(total))


@no_grad()
def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor,
                          foreach: bool | None = None) -> None:
    """``clip_grad_norm_`` with a total norm that is known.

    >>> p = fw.nn.Parameter(fw.zeros(1)); p.grad = fw.tensor([4.0])
    >>> fw.nn.utils.clip_grads_with_norm_([p], 1.0, fw.tensor(4.0)); p.grad
    tensor([1.0000])
    """
    grads = _gradients(parameters, "clip_grads_with_norm_")
    if grads:
        _scale_down(grads, float(max_norm), total_norm._array)


def clip_grad_norm(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The old name of ``clip_grad_norm_``, with a FutureWarning."""
    warnings.warn("nn.utils.clip_grad_norm is deprecated; use nn.utils.clip_grad_norm_", FutureWarning,
                  stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def _native_call(function: str, grads: list[Tensor], *args: Any) -> Any:
    call = getattr(_native.module, function, None)
    return NotImplemented if call is None else call([g._array for g in grads], *args)


def _change_all(function: str, grads: list[Tensor], name: str, **numbers: float) -> bool:
    """Change all gradients by the native function; False, and nothing changed, where it takes not all."""
    settle()
    if is_watched() or _native_call(function, grads, numbers) is NotImplemented:
        return False
    for g in grads:
        bump(g, name)
    return True


def _total_norm(grads: list[Tensor], kind: float) -> Any:
    places = _by_place(grads)
    if len(places) == 1:
        with on_device(grads[0]._array):
            return _total_norm_here(grads, kind)
    totals = [move(_total_norm(part, kind), grads[0].device) for part in places]
    with on_device(totals[0]):
        return _norm(totals, kind)


def _total_norm_here(grads: list[Tensor], kind: float) -> Any:
    total = tensor_lists.norm_of_all([g._array for g in grads], kind, tickets)
    if total is not NotImplemented:
        return total
    if kind == 2:
        total = _native_call("norm_of_all", grads)
        if total is not NotImplemented:
            return np.asarray(total, _dtype_of(grads))
    total, dtype = _norm([_norm_of(g, kind) for g in grads], kind), _dtype_of(grads)
    return total if dtype.kind == "c" else total.astype(dtype)


def _dtype_of(grads: list[Tensor]) -> Any:
    return reduce(promote_types, {g.dtype for g in grads}).numpy


def _norm_of(g: Tensor, kind: float) -> Any:
    a, xp = g._array, array_module(g._array)
    if a.dtype == "float16":
        a = a.astype("float32")
    if kind == math.inf:
        return xp.asarray(abs(a).max() if a.size else a.sum())
    if kind == 2:
        flat = a.reshape(-1)
        return xp.sqrt(xp.asarray(xp.vdot(flat, flat).real))
    return xp.asarray((abs(a) ** kind).sum() ** (1.0 / kind))


def _norm(norms: list, kind: float) -> Any:
    xp = array_module(norms[0])
    every = xp.stack(norms)
    return xp.asarray(every.max() if kind == math.inf else (every ** kind).sum() ** (1.0 / kind))


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float,
                     foreach: bool | None = None) -> None:
    """Clip every element of the gradients to [-clip_value, clip_value].

    >>> p = fw.nn.Parameter(fw.zeros(2)); p.grad = fw.tensor([3.0, -0.5])
    >>> fw.nn.utils.clip_grad_value_(p, 1.0); p.grad
    tensor([ 1.0000, -0.5000])
    """
    grads = _gradients(parameters, "clip_grad_value_")
    arrays = [] if is_watched() else [g._array for g in grads]
    if arrays and tensor_lists.clip_all(arrays, -clip_value, clip_value):
        for g in grads:
            bump(g, "clamp_")
        return
    if not _change_all("clip_all", grads, "clamp_", low=-clip_value, high=clip_value):
        for g in grads:
            g.clamp_(-clip_value, clip_value)  # type: ignore[attr-defined]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters in a row, recorded by autograd.

    >>> fw.nn.utils.parameters_to_vector([fw.ones(1, 2), fw.zeros(1)])
    tensor([1., 1., 0.])
    """
    return cat([p.reshape(-1) for p in parameters])  # type: ignore[attr-defined]


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of ``vec`` into the parameters, in order; the sizes must add up.

    >>> p = fw.nn.Parameter(fw.zeros(2))
    >>> fw.nn.utils.vector_to_parameters(fw.tensor([1.0, 2.0]), [p]); p
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """
    items = list(parameters)
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: vec must be a Tensor, got {kind_of(vec)}")
    if vec.shape != (total := sum(p.numel() for p in items),):
        raise ShapeError(f"vector_to_parameters: vec has shape {list(vec.shape)}, the parameters hold "
                         f"{total} elements")
    start = 0
    for p in items:
        part = vec[start:start + p.numel()]  # type: ignore[index]
        p.copy_(part.reshape(p.shape))
        start += p.numel()
