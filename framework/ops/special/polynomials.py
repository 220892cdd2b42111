"""Orthogonal polynomials, by the recurrence of three terms that each family has.

``P_(k+1) = (a_k x + b_k) P_k - c_k P_(k-1)``, from ``P_0 = 1`` and ``P_1 = p x + q``. Derived m times it is
the recurrence of the m-th derivatives: ``D_(k+1) = (a_k x + b_k) D_k + m a_k E_k - c_k D_(k-1)``, where E
are the derivatives before. So one record has derivatives of every order in x. W. Gautschi, "Orthogonal
Polynomials: Computation and Approximation", 2004.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...backends import cuda, device_code
from ...dtypes import FLOAT, get_default_dtype
from ...errors import DTypeError, kind_of
from ...tensor import Tensor
from ..convert.cast import cast, from_array
from ..convert.types import result_type
from ..record.args import tensor_arg
from ..record.batched import by_element
from ..record.op import Meta, Op
from ..record.public import public
from ..record.road import NEVER
from ..shape.broadcast import broadcast_shape, sum_to

_SOURCE = device_code.source(Path(__file__).with_name("polynomials.cu"))
_FAMILY = np.dtype([(name, "d") for name in ("p", "q", "a", "b", "c", "kind")])
_MOST_DERIVED = 8  # as the source has it


class Family(NamedTuple):
    """P_1 = p x + q, and a_k, b_k, c_k: a, b, c alike for all k, or as ``kind`` says."""

    p: float
    q: float
    a: float = 0.0
    b: float = 0.0
    c: float = 1.0
    kind: int = 0  # as polynomials.cu has them

    def step(self, k: int) -> tuple[float, float, float]:
        """a_k, b_k, c_k."""
        if self.kind == LAGUERRE:
            return -1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)
        if self.kind == LEGENDRE:
            return (2 * k + 1) / (k + 1), 0, k / (k + 1)
        return self.a, self.b, self.c * k if self.kind == HERMITE else self.c


HERMITE, LAGUERRE, LEGENDRE = 1, 2, 3
FAMILIES = {
    "chebyshev_polynomial_t": Family(1, 0, 2), "chebyshev_polynomial_u": Family(2, 0, 2),
    "chebyshev_polynomial_v": Family(2, -1, 2), "chebyshev_polynomial_w": Family(2, 1, 2),
    "shifted_chebyshev_polynomial_t": Family(2, -1, 4, -2),
    "shifted_chebyshev_polynomial_u": Family(4, -2, 4, -2),
    "shifted_chebyshev_polynomial_v": Family(4, -3, 4, -2),
    "shifted_chebyshev_polynomial_w": Family(4, -1, 4, -2),
    "hermite_polynomial_h": Family(2, 0, 2, 0, 2, HERMITE),
    "hermite_polynomial_he": Family(1, 0, 1, 0, 1, HERMITE),
    "laguerre_polynomial_l": Family(-1, 1, kind=LAGUERRE),
    "legendre_polynomial_p": Family(1, 0, kind=LEGENDRE),
}


def _kernel(xp: Any, x: Any, n: Any, *, family: str, order: int) -> Any:
    """The derivative of that order; 0 for a negative n, of which the whole part counts."""
    made = FAMILIES[family]
    dtype = x.dtype
    x, n = xp.broadcast_arrays(x, xp.trunc(n))
    x = x.astype("float64", copy=False)
    zero = xp.zeros_like(x)
    before = [zero + 1, *[zero] * order]  # P_0 and its derivatives
    now = [made.p * x + made.q, zero + made.p, *[zero] * (order - 1)][:order + 1]
    out = xp.where(n == 0, before[order], xp.where(n == 1, now[order], zero))
    last = int(xp.where(n == n, n, 0).max()) if n.size else 1
    for k in range(1, last):
        a, b, c = made.step(k)
        after = [(a * x + b) * now[m] - c * before[m] + (m * a * now[m - 1] if m else 0)
                 for m in range(order + 1)]
        before, now = now, after
        out = xp.where(n == k + 1, now[order], out)
    return xp.where(n == n, out, xp.nan).astype(dtype)


def _infer(x: Meta, n: Meta, *, family: str, order: int) -> Meta:
    return Meta(broadcast_shape((x.shape, n.shape), family), x.dtype)


def _on_device(x: Any, n: Any, *, family: str, order: int) -> Any:
    """The device function: a thread for each number."""
    char = device_code.char_of(x, n)
    if char not in device_code.FLOATS or order > _MOST_DERIVED:
        return NotImplemented
    module = cuda.cupy()
    if 1 not in (x.size, n.size) or max(x.ndim, n.ndim) != (x if n.size == 1 else n).ndim:
        x, n = module.broadcast_arrays(x, n)
    x, n = module.ascontiguousarray(x), module.ascontiguousarray(n)
    out = module.empty(x.shape if n.size == 1 else n.shape, x.dtype)
    settings = np.array([FAMILIES[family]], "d").view(_FAMILY)[0]
    if out.size:
        _SOURCE.kernel("polynomial", char)(
            (device_code.blocks(out.size),), (device_code.THREADS,),
            (out, x, n, int(x.size == 1), int(n.size == 1), out.size, settings, order))
    return out


polynomial_op = Op("polynomial", "x n", kernel=_kernel, native="polynomial", infer=_infer, device=_on_device,
                   batch=by_element, loose_from=NEVER, vjp={
    "x": lambda g, x, n, x_shape, family, order: sum_to(
        g * polynomial_op(x, n, family=family, order=order + 1), size=x_shape)})


def _polynomial(name: str, x: Any, n: Any) -> Tensor:
    if type(x) is type(n) is Tensor and x._array.dtype.kind == "f":  # nearly always
        own, degrees = x._array.dtype, n._array.dtype
        if own is degrees:
            return polynomial_op.run(x, n if n._node is None else n.detach(), family=name, order=0)
        if degrees.kind in "iu":
            return polynomial_op.run(x, cast.run(n, dtype=x.dtype), family=name, order=0)
    elif type(x) is type(n) is Tensor and x._array.dtype.kind == n._array.dtype.kind == "i":
        dtype = get_default_dtype()
        return polynomial_op.run(cast.run(x, dtype=dtype), cast.run(n, dtype=dtype), family=name, order=0)
    if not isinstance(n, Tensor):
        tensor_arg(x, name)
    for value, argument in ((x, "input"), (n, "n")):
        if not isinstance(value, (Tensor, int, float)):
            raise TypeError(f"{name}: argument '{argument}' must be a Tensor or a number, got "
                            f"{kind_of(value)}; convert it with framework.tensor(...)")
    both = isinstance(x, Tensor) and isinstance(n, Tensor)
    if both and x.dtype is n.dtype and x.dtype.category == FLOAT:
        return polynomial_op.run(x, n if n._node is None else n.detach(), family=name, order=0)
    if both and x.dtype.category == FLOAT and n.dtype.category < FLOAT:
        return polynomial_op.run(x, cast.run(n, dtype=x.dtype), family=name, order=0)
    dtype = x.dtype if both and x.dtype is n.dtype else result_type(x, n)
    if dtype.category > FLOAT:
        raise DTypeError(f"{name}: wanted real operands, got {dtype}")
    dtype = get_default_dtype() if dtype.category < FLOAT else dtype
    like = x if isinstance(x, Tensor) else n
    x, n = (cast.run(v, dtype=dtype) if isinstance(v, Tensor) else from_array(
        np.asarray(v, dtype.numpy), like) for v in (x, n))
    return polynomial_op.run(x, n.detach(), family=name, order=0)


def _public(name: str, line: str, shown: str) -> Any:
    def function(input: Any, n: Any) -> Tensor:
        return _polynomial(name, input, n)
    function.__doc__ = f"""{line}

    Either may be a number; shapes broadcast, integers become the default float dtype. Of n the whole part
    counts; 0 where it is negative. Derivatives in input, by the recurrence; none in n.

    >>> fw.special.{name}(fw.tensor([0.5, 2.0]), fw.tensor([2, 3]))
    tensor({shown})
    """
    function.__name__ = function.__qualname__ = name
    return public("special", op=polynomial_op, out=True, also="x=input")(function)


chebyshev_polynomial_t = _public(
    "chebyshev_polynomial_t", "Chebyshev's first: ``T_n(cos t) = cos(n t)``.", "[-0.5000, 26.0000]")
chebyshev_polynomial_u = _public(
    "chebyshev_polynomial_u", "Chebyshev's second: ``U_n(cos t) = sin((n + 1) t) / sin(t)``.", "[ 0., 56.]")
chebyshev_polynomial_v = _public(
    "chebyshev_polynomial_v", "Chebyshev's third: ``V_n = U_n - U_(n-1)``.", "[-1., 41.]")
chebyshev_polynomial_w = _public(
    "chebyshev_polynomial_w", "Chebyshev's fourth: ``W_n = U_n + U_(n-1)``.", "[ 1., 71.]")
shifted_chebyshev_polynomial_t = _public(
    "shifted_chebyshev_polynomial_t", "Chebyshev's first on [0, 1]: ``T_n(2 input - 1)``.", "[-1., 99.]")
shifted_chebyshev_polynomial_u = _public(
    "shifted_chebyshev_polynomial_u", "Chebyshev's second on [0, 1]: ``U_n(2 input - 1)``.", "[ -1., 204.]")
shifted_chebyshev_polynomial_v = _public(
    "shifted_chebyshev_polynomial_v", "Chebyshev's third on [0, 1]: ``V_n(2 input - 1)``.", "[ -1., 169.]")
shifted_chebyshev_polynomial_w = _public(
    "shifted_chebyshev_polynomial_w", "Chebyshev's fourth on [0, 1]: ``W_n(2 input - 1)``.", "[ -1., 239.]")
hermite_polynomial_h = _public(
    "hermite_polynomial_h", "The physicists' Hermite polynomial, of weight ``exp(-x**2)``.", "[-1., 40.]")
hermite_polynomial_he = _public(
    "hermite_polynomial_he", "The probabilists' Hermite polynomial, of weight ``exp(-x**2 / 2)``.",
    "[-0.7500,  2.0000]")
laguerre_polynomial_l = _public(
    "laguerre_polynomial_l", "Laguerre's polynomial, of weight ``exp(-x)``.", "[ 0.1250, -0.3333]")
legendre_polynomial_p = _public(
    "legendre_polynomial_p", "Legendre's polynomial, of weight 1 on [-1, 1].", "[-0.1250, 17.0000]")
