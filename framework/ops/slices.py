"""Writing by flat positions, slices limited in norm, numbers taken apart into mantissa and exponent."""

from typing import Any

from ..dtypes import int32
from ..errors import DTypeError, ShapeError
from ..tensor import Tensor
from . import return_types
from .args import floating, one_dim, real_arg, tensor_arg
from .elementwise import elementwise
from .expression import OPS_BY_NAME
from .getitem import index_put
from .op import Meta, Op
from .public import public
from .stats import vector_norm
from .view import narrow, reshape_op

exp2_op = OPS_BY_NAME["exp2"]

frexp_op = Op("frexp", "x", kernel=lambda xp, x: tuple(xp.frexp(x)), outputs="mantissa exponent",
              differentiable=1, infer=lambda x: (x, Meta(x.shape, int32)),
              vjp={"x": lambda g, exponent: ldexp.op(g, -exponent)})

ldexp = elementwise("ldexp", "x y", "x * exp2(y)", """``input * 2**other``, as ``frexp`` takes it apart.
    >>> fw.ldexp(fw.tensor([0.5, 0.75]), fw.tensor([1, 2]))
    tensor([1., 3.])
    """, result="float", vjp={"x": "g * exp2(y)", "y": "gate(g * 0.6931471805599453, out)"})


@public(method=True, op=frexp_op, out=True)
def frexp(input: Tensor) -> Any:
    """Mantissa in +-[0.5, 1) and int32 exponent of every element: ``input = mantissa * 2**exponent``.

    0, inf and nan are their own mantissa. Raises DTypeError unless input is floating.

    >>> fw.frexp(fw.tensor([4.0, 3.0]))
    frexp(mantissa=tensor([0.5000, 0.7500]), exponent=tensor([3, 2], dtype=framework.int32))
    """
    floating(real_arg(input, "frexp"), "frexp")
    return return_types.frexp(*frexp_op.run(input))


@public(method=True, inplace=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with ``source`` at the positions ``index`` of its flattened elements: (*), (n), (n) -> (*).

    accumulate: added to what is there. Raises ShapeError where index and source have different sizes,
    IndexError for a position that is not there.

    >>> fw.put(fw.zeros(2, 2), fw.tensor([1, 3]), fw.tensor([5.0, 7.0]))
    tensor([[0., 5.],
            [0., 7.]])
    """
    tensor_arg(input, "put"), tensor_arg(index, "put", "index"), tensor_arg(source, "put", "source")
    if source.dtype is not input.dtype:
        raise DTypeError(f"put: source must be {input.dtype} like the tensor, got {source.dtype}; convert it")
    if index.numel() != source.numel():
        raise ShapeError(f"put: index has {index.numel()} elements and source {source.numel()}; they must be "
                         f"equally many")
    flat, places, values = [reshape_op.run(x, shape=(x.numel(),)) for x in (input, index, source)]
    return reshape_op.run(index_put(flat, (places,), values, accumulate), shape=input.shape)


@public(method=True, out=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``narrow`` as a tensor of its own memory.

    >>> fw.narrow_copy(fw.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    return narrow(input, dim, start, length).clone()  # type: ignore[attr-defined]


@public(method=True, inplace=True, out=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along ``dim`` with p-norms above ``maxnorm`` scaled down to it; others as they are.

    Raises ShapeError below 2 dimensions, ValueError for a p that is not positive or a negative maxnorm.

    >>> fw.renorm(fw.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    x: Any = tensor_arg(input, "renorm")
    floating(x, "renorm")
    if x.ndim < 2:
        raise ShapeError(f"renorm: input must have at least 2 dimensions, got shape {list(x.shape)}")
    if not p > 0 or not maxnorm >= 0:
        raise ValueError(f"renorm: p must be positive and maxnorm not negative, got p={p}, maxnorm={maxnorm}")
    at = one_dim(dim, x.ndim, "renorm")
    norm: Any = vector_norm(x, p, tuple(d for d in range(x.ndim) if d != at), True)
    # PyTorch's guard against 0, kept so that results agree
    factor = OPS_BY_NAME["where"].run(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return x * factor
