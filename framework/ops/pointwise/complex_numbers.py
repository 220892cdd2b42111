"""Complex numbers: their parts, conjugates and angles, and complex tensors seen as real ones.

A gradient of a complex z = x + iy is ``dL/dx + i dL/dy`` (the conjugate Wirtinger derivative, twice):
the direction of steepest ascent, as for real tensors; K. Kreutz-Delgado, "The complex gradient operator
and the CR-calculus", 2009. The functions here are linear over the reals or not holomorphic at all, so
their rules are written for that gradient (``adjoint``); a holomorphic record needs no rule of its own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _native
from ...dtypes import float32, float64
from ...errors import DTypeError, ShapeError
from ...quiet import quiet
from ...tensor import Tensor
from ..language.elementwise import Elementwise, elementwise
from ..record.aliases import view_maker
from ..record.args import of_one_dtype, tensor_arg
from ..record.batched import by_element
from ..record.op import Meta, Op
from ..record.public import public
from ..record.road import NEVER
from ..shape.broadcast import broadcast_shape, sum_to
from ..shape.complex_parts import as_complex_op, as_real_op, imag_op, part_infer, real_op
from ..shape.view import transpose
from .arithmetic import over
from .choose import where_op
from .rounding import NOTHING

# -- parts -----------------------------------------------------------------------------------------

_conj = Elementwise("conj", "x", "conj(x)", ufunc="conjugate", vjp={"x": "conj(g)"}, jvp="linear",
                    complex=True)



@public(method=True)
def conj(input: Tensor) -> Tensor:
    """The complex conjugate: ``x - iy`` of ``x + iy``. A real tensor is returned as it is.

    A copy, where PyTorch gives a view that conjugates when it is read.

    >>> fw.conj(fw.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return _conj.run(input) if tensor_arg(input, "conj")._array.dtype.kind == "c" else input


@public(method=True, inplace=True, op=_conj, out=True)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate in new memory.

    >>> fw.conj_physical(fw.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if not tensor_arg(input, "conj_physical").is_complex():
        return input.clone()  # type: ignore[attr-defined]
    return _conj.run(input)


@public(method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: ``conj`` writes its result out at once, nothing is left to resolve.

    >>> fw.resolve_conj(fw.tensor([1 + 2j]).conj())
    tensor([1.-2.j])
    """
    return tensor_arg(input, "resolve_conj")


@public(method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: no tensor here is negated only when it is read.

    >>> fw.resolve_neg(fw.tensor([1.0]))
    tensor([1.])
    """
    return tensor_arg(input, "resolve_neg")


@public(method=True)
def is_conj(input: Tensor) -> bool:
    """False: no tensor here is conjugated only when it is read.

    >>> fw.is_conj(fw.tensor([1j]).conj())
    False
    """
    tensor_arg(input, "is_conj")
    return False


@public(method=True)
def is_neg(input: Tensor) -> bool:
    """False: no tensor here is negated only when it is read.

    >>> fw.is_neg(fw.tensor([1j]).conj().imag)
    False
    """
    tensor_arg(input, "is_neg")
    return False


@public(op=real_op)
def real(input: Tensor) -> Tensor:
    """The real parts, a view of the tensor's memory; a real tensor is returned as it is.

    >>> fw.real(fw.tensor([1 + 2j]))
    tensor([1.])
    """
    return real_op.run(input) if tensor_arg(input, "real").is_complex() else input


@public(op=imag_op)
def imag(input: Tensor) -> Tensor:
    """The imaginary parts, a view of the tensor's memory. Raises DTypeError for a real tensor.

    >>> fw.imag(fw.tensor([1 + 2j]))
    tensor([2.])
    """
    return imag_op.run(_complex_arg(input, "imag"))


public("", method="real", as_property=True, name="real")(real)
public("", method="imag", as_property=True, name="imag")(imag)


def _complex_arg(x: Any, op: str) -> Tensor:
    if not tensor_arg(x, op).is_complex():
        raise DTypeError(f"{op}: argument 'input' must be complex, got {x.dtype}")
    return x


@public()
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex.

    >>> fw.is_complex(fw.tensor([1j]))
    True
    """
    return tensor_arg(input, "is_complex").is_complex()


@public(method=True)
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0, as bool.

    >>> fw.isreal(fw.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    x = tensor_arg(input, "isreal").detach()
    return x.imag == 0 if x.is_complex() else x.new_ones(x.shape, dtype=bool)  # type: ignore[attr-defined]


# -- angle and direction ---------------------------------------------------------------------------


def _angle_vjp(g: Any, x: Any) -> Any:
    zero = x == 0
    squared = where_op(zero, 1.0, real_op(x * _conj(x)))
    return where_op(zero, 0.0, over(g, squared)) * (x * 1j)


angle_op = Op("angle", "x", kernel=lambda xp, x: xp.angle(x), infer=part_infer, adjoint=True,
              batch=by_element, loose_from=NEVER, vjp={"x": _angle_vjp})
_angle_of_real = Elementwise("angle_of_real", "x", "where(x < 0, 3.141592653589793, where(x != x, x, 0.0))",
                             result="float", vjp={"x": NOTHING}, jvp="symmetric")
sgn = elementwise("sgn", "x", "sgn(x)", """The sign; of a complex number x / |x|, and 0 of 0.
    >>> fw.sgn(fw.tensor([3 + 4j]))
    tensor([0.6000+0.8000j])
    """, result="number", complex=True, adjoint=True, writes="fiV",
    vjp={"x": "where(x == 0, 0.0, over(g - out * real(conj(out) * g), abs(where(x == 0, 1.0, x))))"})


@public(method=True, op=angle_op, out=True)
def angle(input: Tensor) -> Tensor:
    """The angle of a complex number in (-pi, pi]; of a real one 0, or pi if it is negative.

    Its derivative at 0 is 0.

    >>> fw.angle(fw.tensor([1j, -1.0 + 0j]))
    tensor([1.5708, 3.1416])
    """
    x = tensor_arg(input, "angle")
    return angle_op.run(x) if x.is_complex() else _angle_of_real.run(x)


# -- complex tensors made of real ones, and seen as such -------------------------------------------


def _join_kernel(xp: Any, real: Any, imag: Any) -> Any:
    dtype = xp.result_type(real.dtype, xp.complex64)
    out = (xp.empty_like(real, dtype) if real.shape == imag.shape
           else xp.empty(np.broadcast_shapes(real.shape, imag.shape), dtype))
    out.real[...], out.imag[...] = real, imag
    return out


def _join_infer(real: Meta, imag: Meta) -> Meta:
    return Meta(broadcast_shape((real.shape, imag.shape), "complex"), real.dtype.to_complex())


join_op = Op("complex", "real imag", batch=by_element, kernel=_join_kernel, infer=_join_infer, jvp="linear",
             loose_from=NEVER, native="join_parts",
             vjp={"real": lambda g, real_shape: sum_to(real_op(g), size=real_shape),
                  "imag": lambda g, imag_shape: sum_to(imag_op(g), size=imag_shape)})


@public(op=join_op, out=True)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """``real + 1j * imag``; both float32 or both float64, shapes broadcast. Raises DTypeError for others.

    >>> fw.complex(fw.tensor([1.0]), fw.tensor([2.0]))
    tensor([1.+2.j])
    """
    _pair("complex", real=real, imag=imag)
    return join_op.run(real, imag)


def _pair(op: str, **tensors: Any) -> None:
    (first, x), (second, y) = tensors.items()
    if type(x) is Tensor is type(y) and x._array.dtype is y._array.dtype and x._array.dtype.char in "fd":
        return
    tensor_arg(x, op, first), tensor_arg(y, op, second)
    if x.dtype is not y.dtype or x.dtype not in (float32, float64):
        raise DTypeError(f"{op}: '{first}' and '{second}' must both be float32 or both float64, got "
                         f"{x.dtype} and {y.dtype}")


_across = Elementwise("polar_real", "x y", "x * cos(y)", arguments="abs angle",
                      vjp={"x": "g * cos(y)", "y": "-(g * x) * sin(y)"})
_up = Elementwise("polar_imag", "x y", "x * sin(y)", arguments="abs angle",
                  vjp={"x": "g * sin(y)", "y": "g * x * cos(y)"})


@public(out=True, autocast="float32")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """``abs * (cos(angle) + 1j * sin(angle))``; both float32 or both float64, shapes broadcast.

    >>> fw.polar(fw.tensor([2.0]), fw.tensor([0.0]))
    tensor([2.+0.j])
    """
    if of_one_dtype(abs, angle) is not True or abs._array.dtype.char not in "fd":
        _pair("polar", abs=abs, angle=angle)
    if abs._node is angle._node is None and quiet.run is not None \
            and type(abs._array) is type(angle._array) is np.ndarray:
        return _polar.run(abs, angle)
    return join_op.run(_across.run(abs, angle), _up.run(abs, angle))


# of numbers on the CPU, in no graph
_polar = Op("polar", "abs angle", infer=_join_infer, loose_from=NEVER, batch=by_element,
            kernel=lambda xp, x, y: join_op.cpu(_across.cpu(x, y), _up.cpu(x, y)))


_parts, _pairs = view_maker("parts"), view_maker("pairs")


@public(op=as_real_op)
def view_as_real(input: Tensor) -> Tensor:
    """Real and imaginary parts as a last dimension of size 2, over the same memory: (*) -> (*, 2).

    >>> fw.view_as_real(fw.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    out = _parts(input, as_real_op)
    return as_real_op.run(_complex_arg(input, "view_as_real")) if out is NotImplemented else out


@public(op=as_complex_op, autocast="float32")
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of the last dimension as complex numbers, over the same memory: (*, 2) -> (*).

    float32 or float64. Raises ShapeError for another last size, ValueError where the pairs do not lie
    together in memory.

    >>> fw.view_as_complex(fw.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    out = _pairs(input, as_complex_op)
    if out is not NotImplemented:
        return out
    x = tensor_arg(input, "view_as_complex")
    if x.dtype not in (float32, float64):
        raise DTypeError(f"view_as_complex: argument 'input' must be float32 or float64, got {x.dtype}")
    if not x.ndim or x.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: the last size must be 2, got shape {list(x.shape)}")
    if x._array.strides[-1] != x.itemsize and x.numel():
        raise ValueError("view_as_complex: the last dimension must have stride 1; call contiguous() first")
    return as_complex_op.run(x)


# -- conjugate transposes --------------------------------------------------------------------------


@public(method=True)
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of every matrix: (*, m, n) -> (*, n, m).

    >>> fw.adjoint(fw.tensor([[1j, 2 + 0j]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    own = tensor_arg(input, "adjoint")._array
    if own.ndim < 2:
        raise ShapeError(f"adjoint: wanted at least 2 dimensions, got shape {list(input.shape)}")
    if own.dtype.kind == "c" and (turned := _turned_alone(input)) is not NotImplemented:
        return _conj.run(turned)
    return conj(transpose(input, -2, -1))


# the last two dimensions of a tensor in no graph swapped, for a record alone
_turned_alone: Callable = getattr(_native.module, "turned_alone", lambda x: NotImplemented)


@public("", method="mH", as_property=True)
def mH(input: Tensor) -> Tensor:
    """The conjugate transpose of every matrix of a batch."""
    return adjoint(input)


@public("", method="H", as_property=True)
def H(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    ndim = input._array.ndim
    if ndim not in (0, 2):
        raise ShapeError(f"H: wanted a matrix, got shape {list(input.shape)}; mH takes batches")
    return adjoint(input) if ndim else conj(input)
