"""Derivatives against central differences, of first and second order.

``fast_mode`` compares one number per input and output, ``v . (J u)`` for random unit vectors u and v;
otherwise every entry of every Jacobian is compared.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..backends import array_module, move
from ..device import as_device
from ..dtypes import FLOAT
from ..errors import FrameworkError
from ..tensor import Tensor, wrap
from .engine import grad
from .forward import close_level, open_level, tangent_at
from .forward_ad import attach


class GradcheckError(FrameworkError, RuntimeError):
    """A derivative that differs from the numerical one."""


def gradcheck(func: Callable, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
              check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
              check_forward_ad: bool = False, check_backward_ad: bool = True,
              fast_mode: bool = False) -> bool:
    """Whether the gradients of ``func(*inputs)`` agree with central differences of step ``eps``.

    Checked for every floating or complex output and every input that requires grad, which should be
    float64, or complex128, whose real and imaginary parts are varied. The values are close if
    ``|analytical - numerical| <= atol + rtol * |numerical|``. Also checked: that two backwards agree within
    ``nondet_tol``, and (``check_undefined_grad``) that an incoming gradient of zeros gives zeros.
    ``check_forward_ad`` compares the tangents of forward mode as well (or, with
    ``check_backward_ad=False``, instead). Raises GradcheckError, which names the input, the output and both
    values, or returns False with ``raise_exception=False``.

    >>> x = fw.tensor([0.5, 2.0], dtype=fw.float64, requires_grad=True)
    >>> fw.autograd.gradcheck(lambda x: (x * x).sum(), (x,))
    True
    """
    args = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    _check_inputs(args, "gradcheck")
    if not check_forward_ad and not check_backward_ad:
        raise ValueError("gradcheck: nothing to check; check_backward_ad or check_forward_ad must be True")
    check = _Check(func, args, eps, atol, rtol)
    try:
        if check_forward_ad:
            check.tangents(fast_mode)
        if not check_backward_ad:
            return True
        if fast_mode:
            check.one_direction()
        else:
            check.all_entries()
        check.repeatable(nondet_tol)
        if check_undefined_grad:
            check.zeros_give_zeros()
        if check_grad_dtypes:
            check.dtypes()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func: Callable, inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
                  raise_exception: bool = True, nondet_tol: float = 0.0,
                  check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
                  check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
                  fast_mode: bool = False) -> bool:
    """Whether the gradients of the gradients of ``func(*inputs)`` agree with central differences.

    grad_outputs: the gradients of the outputs to start from (random if left out). check_fwd_over_rev,
    check_rev_over_rev: differentiate the gradients by forward mode, by reverse mode. The other arguments are
    those of ``gradcheck``.

    >>> x = fw.tensor([0.5, 2.0], dtype=fw.float64, requires_grad=True)
    >>> fw.autograd.gradgradcheck(lambda x: x ** 3, (x,))
    True
    """
    args = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    _check_inputs(args, "gradgradcheck")
    if grad_outputs is None:
        outputs = _floating_outputs(func(*args))
        seeds = [_random_like(y, gen_non_contig_grad_outputs) for y in outputs]
    else:
        seeds = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    count = len(args)

    def first_order(*everything: Any) -> tuple:
        own, gs = everything[:count], everything[count:]
        wanted = [x for x in own if isinstance(x, Tensor) and x.requires_grad]
        pairs = [(y, g) for y, g in zip(_floating_outputs(func(*own)), gs) if y.requires_grad]
        if not pairs:
            return ()
        found = grad([y for y, _ in pairs], wanted, [g for _, g in pairs], create_graph=True,
                     allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradcheck(first_order, (*args, *seeds), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
                     fast_mode=fast_mode)


def _check_inputs(args: tuple, name: str) -> None:
    found = [x for x in args if isinstance(x, Tensor) and x.requires_grad]
    if not found:
        raise ValueError(f"{name}: no input requires grad; call requires_grad_() on those to check")
    for i, x in enumerate(args):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        if x.dtype.to_real().itemsize < 8:
            warnings.warn(f"{name}: input {i} is {x.dtype}; central differences need float64 or complex128 "
                          f"inputs to be exact enough", stacklevel=3)
        if x.numel() and any(s == 0 and n > 1 for s, n in zip(x._array.strides, x.shape)):
            raise RuntimeError(f"{name}: several elements of input {i} share one place in memory (it is an "
                               f"expanded view), so they cannot be varied singly; clone() it")


def _floating_outputs(outputs: Any) -> list[Tensor]:
    items = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return [y for y in items if isinstance(y, Tensor) and y.dtype.category >= FLOAT]


def _random_like(y: Tensor, strided: bool) -> Tensor:
    values = _normal(np.random.default_rng(7), y)
    if strided and values.ndim:
        values = np.repeat(values, 2, axis=-1)[..., ::2]
    return wrap(move(values, y.device)).requires_grad_()


def _normal(rng: "np.random.Generator", y: Tensor) -> np.ndarray:
    """Random numbers of the shape and dtype of ``y``."""
    values = np.asarray(rng.normal(size=y.shape))
    if y.is_complex():
        values = values + 1j * rng.normal(size=y.shape)
    return np.asarray(values, y.dtype.numpy)


def _product(a: np.ndarray, b: np.ndarray) -> float:
    """The inner product of complex numbers as pairs of real ones: Re(sum conj(a) b)."""
    return float(np.vdot(a, b).real)


def _units(x: Tensor) -> tuple:
    """The directions in which one element can vary."""
    return (1.0, 1j) if x.is_complex() else (1.0,)


def _host(x: Tensor) -> np.ndarray:
    return np.array(move(x._array, as_device("cpu")))


class _Check:
    """One function at one point."""

    def __init__(self, func: Callable, args: tuple, eps: float, atol: float, rtol: float) -> None:
        self.func, self.args, self.eps, self.atol, self.rtol = func, args, eps, atol, rtol
        self.wanted = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]
        self.outputs = _floating_outputs(func(*args))
        self.rng = np.random.default_rng(11)

    # -- numbers ---------------------------------------------------------------------------------

    def values(self) -> list[np.ndarray]:
        return [_host(y) for y in _floating_outputs(self.func(*self.args))]

    def difference(self, i: int, place: Any, step: np.ndarray | complex) -> list[np.ndarray]:
        """The central difference of all outputs when ``step`` is added at ``place`` of input i."""
        array = self.args[i]._array
        before = array[place].copy()
        shift = before.dtype.type(self.eps) * step
        if isinstance(step, np.ndarray) and not isinstance(array, np.ndarray):
            shift = array_module(array).asarray(shift)
        try:
            array[place] = before + shift
            above = self.values()
            array[place] = before - shift
            below = self.values()
        finally:
            array[place] = before
        return [(a - b) / (2 * self.eps) for a, b in zip(above, below)]

    def pulled(self, y: Tensor, g: np.ndarray) -> list[np.ndarray]:
        """The gradients of all wanted inputs for the cotangent ``g`` of ``y``."""
        inputs = [self.args[i] for i in self.wanted]
        if not y.requires_grad:
            return [np.zeros(x.shape, x.dtype.numpy) for x in inputs]
        seed = wrap(move(np.asarray(g, y.dtype.numpy), y.device))
        found = grad(y, inputs, seed, retain_graph=True, allow_unused=True)
        return [np.zeros(x.shape, x.dtype.numpy) if f is None else _host(f)
                for x, f in zip(inputs, found)]

    # -- checks ----------------------------------------------------------------------------------

    def one_direction(self) -> None:
        directions = [self._unit(self.args[i]) for i in self.wanted]
        numerical = [self.difference(i, ..., u) for i, u in zip(self.wanted, directions)]
        for o, y in enumerate(self.outputs):
            v = self._unit(y)
            for k, (f, u) in enumerate(zip(self.pulled(y, v), directions)):
                self.compare(_product(f, u), _product(v, numerical[k][o]), self.wanted[k], o,
                             "in a random direction")

    def all_entries(self) -> None:
        analytical = [[(j, unit, self.pulled(y, self._one(y, j, unit))) for j in _places(y.shape)
                       for unit in _units(y)] for y in self.outputs]
        for k, i in enumerate(self.wanted):
            for place, step in product(_places(self.args[i].shape), _units(self.args[i])):
                found = self.difference(i, place, step)
                for o, rows in enumerate(analytical):
                    for j, unit, grads in rows:
                        self.compare(_product(grads[k][place], step), _product(unit, found[o][j]), i, o,
                                     f"at input element {list(place)} and output element {list(j)}")

    def tangents(self, fast: bool) -> None:
        """Forward mode against the differences, in one direction or in every one."""
        for i in self.wanted:
            x = self.args[i]
            steps = [(..., self._unit(x))] if fast else product(_places(x.shape), _units(x))
            for place, step in steps:
                direction = np.zeros(x.shape, x.dtype.numpy)
                direction[place] = step
                pairs = zip(self.pushed(i, direction), self.difference(i, place, step))
                for o, (tangent, numerical) in enumerate(pairs):
                    for j, unit in product(_places(tangent.shape), _units(self.outputs[o])):
                        self.compare(_product(unit, tangent[j]), _product(unit, numerical[j]), i, o,
                                     f"in forward mode at output element {list(j)}")

    def pushed(self, i: int, direction: np.ndarray) -> list[np.ndarray]:
        """The tangents of all outputs for a tangent of input i."""
        level = open_level()
        try:
            args = list(self.args)
            args[i] = attach(args[i], wrap(move(direction, args[i].device)), level, "gradcheck")
            outputs = _floating_outputs(self.func(*args))
            found = [tangent_at(y._node, level) for y in outputs]
        finally:
            close_level(level)
        return [np.zeros(y.shape, y.dtype.numpy) if t is None else _host(t) for t, y in zip(found, outputs)]

    def repeatable(self, tolerance: float) -> None:
        for o, y in enumerate(self.outputs):
            v = self._unit(y)
            for i, a, b in zip(self.wanted, self.pulled(y, v), self.pulled(y, v)):
                if a.size and not np.abs(a - b).max() <= tolerance and not np.array_equal(
                        a, b, equal_nan=True):
                    raise GradcheckError(f"gradcheck: two backwards of output {o} gave input {i} different "
                                         f"gradients, up to {np.abs(a - b).max()}; more than "
                                         f"nondet_tol={tolerance}")

    def zeros_give_zeros(self) -> None:
        for o, y in enumerate(self.outputs):
            for i, f in zip(self.wanted, self.pulled(y, np.zeros(y.shape))):
                if f.any():
                    raise GradcheckError(f"gradcheck: a gradient of zeros for output {o} gave input {i} a "
                                         f"gradient that is not zero: {f.ravel()[f.ravel() != 0][0]}")

    def dtypes(self) -> None:
        for o, y in enumerate(self.outputs):
            for i, f in zip(self.wanted, self.pulled(y, np.ones(y.shape))):
                if f.dtype != self.args[i].dtype.numpy:
                    raise GradcheckError(f"gradcheck: the gradient of output {o} for input {i} is {f.dtype},"
                                         f" the input {self.args[i].dtype}")

    def compare(self, analytical: float, numerical: float, i: int, o: int, where: str) -> None:
        if abs(analytical - numerical) <= self.atol + self.rtol * abs(numerical):
            return
        raise GradcheckError(f"gradcheck: the gradient of output {o} with respect to input {i} is wrong "
                             f"{where}: numerical {numerical!r}, analytical {analytical!r} (allowed: "
                             f"atol={self.atol} + rtol={self.rtol} * |numerical|)")

    def _unit(self, y: Tensor) -> np.ndarray:
        v = np.asarray(_normal(self.rng, y), "complex128" if y.is_complex() else "float64")
        return np.asarray(v / max(np.linalg.norm(v), 1e-30))

    @staticmethod
    def _one(y: Tensor, place: tuple, unit: complex) -> np.ndarray:
        g = np.zeros(y.shape, y.dtype.numpy)
        g[place] = unit
        return g


def _places(shape: Sequence[int]) -> Iterator[tuple]:
    return product(*[range(n) for n in shape])
