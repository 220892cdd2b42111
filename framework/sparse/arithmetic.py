"""Functions of elements on sparse tensors, each as its record says.

There is no list of them: a record is asked what it makes of 0. Where that is 0, the result has the places of
the operand (or of both operands), and the record runs on their values.
"""

from typing import Any

import numpy as np

from ..backends import array_module
from ..errors import LayoutError, ShapeError
from ..ops.language.elementwise import Elementwise
from ..ops.pointwise.arithmetic import add_op, div_op, mul_op, plus_times, sub_op
from ..ops.record.op import Op
from ..ops.shape.broadcast import broadcast_shape
from ..tensor import Tensor, wrap
from .convert import coalesce, coo, merged, to_dense
from .pattern import Compressed, Coordinates, count_of
from .products import put, take
from .tensor import SparseTensor, sparse, there


@there
def dispatch(op: Op, inputs: tuple, settings: dict) -> Any:
    """What ``op`` makes of inputs of which one is sparse."""
    own = getattr(op, "sparse", None)
    if own is not None:
        return own(*inputs, **settings)
    if isinstance(op, Elementwise):
        return elementwise(op, inputs, settings)
    at = next(i for i, x in enumerate(inputs) if isinstance(x, SparseTensor))
    name = op.arguments[0 if op.variadic else at]
    raise LayoutError(f"{op.name}: argument '{name}' is sparse (layout {inputs[at].layout}, shape "
                      f"{list(inputs[at].shape)}), and {op.name} has no sparse form; use {name}.to_dense()")


def elementwise(op: Any, inputs: tuple, settings: dict) -> Any:
    """A function of elements of which some operands are sparse."""
    operands = [x for x in inputs if isinstance(x, SparseTensor)]
    others = [x for x in inputs if isinstance(x, Tensor) and not isinstance(x, SparseTensor)]
    tensors = [x for x in others if x.ndim]
    if not tensors and len(operands) == 1:
        return _with_numbers(op, inputs, settings)
    if not tensors and len(operands) == len(inputs) == 2:
        return _of_two(op, *inputs, settings)
    if len(inputs) == 2 and len(operands) == 1 and op in (add_op, sub_op, plus_times):
        return op.run(*[to_dense(x) if isinstance(x, SparseTensor) else x for x in inputs], **settings)
    if len(inputs) == 2 and len(operands) == 1 and (
            op is mul_op or op is div_op and inputs[0] is operands[0]):
        return _by_dense(op, operands[0], tensors[0], inputs)
    raise LayoutError(f"{op.name}: sparse and dense operands do not go together here; use x.to_dense()")


def _with_numbers(op: Any, inputs: tuple, settings: dict) -> SparseTensor:
    (at,) = (i for i, x in enumerate(inputs) if isinstance(x, SparseTensor))
    x = inputs[at]
    if op.jvp != "linear" and op not in (mul_op, div_op):
        x = merged(x)
    here = list(inputs)
    here[at] = wrap(array_module(x._entries._array).zeros((1,), x.dtype.numpy))
    of_zero = op.run(*[y.detach() if isinstance(y, Tensor) else y for y in here], **settings)
    if bool((of_zero._array != 0).any()):
        raise LayoutError(f"{op.name}: of 0 it is {of_zero._array.ravel()[0]}, so the result of a sparse "
                          f"tensor would "
                          f"not be sparse; use x.to_dense(), or x.values() for the stored values alone")
    here[at] = x._entries
    return sparse(x._pattern, op.run(*here, **settings), x._size)


def _of_two(op: Any, x: SparseTensor, y: SparseTensor, settings: dict) -> SparseTensor:
    if x._size != y._size:
        raise ShapeError(f"{op.name}: sparse operands must have equal shapes, got {list(x._size)} and "
                         f"{list(y._size)}; they do not broadcast, to_dense() does")
    x, y = merged(x), merged(y)
    if x._pattern is y._pattern:
        return sparse(x._pattern, _checked(op, x._entries, y._entries, settings), x._size)
    layout, block = x.layout, getattr(x._pattern, "block", None)
    x, y = coalesce(coo(x)), coalesce(coo(y))
    if x.dense_dim() != y.dense_dim():
        raise LayoutError(f"{op.name}: the operands have {x.dense_dim()} and {y.dense_dim()} dense "
                          f"dimensions, which must be equally many; use x.to_dense()")
    both: Any
    if op is mul_op:
        a, b = x._pattern.linear, y._pattern.linear  # type: ignore[union-attr]
        _, mine, theirs = np.intersect1d(a, b, assume_unique=True, return_indices=True)
        both = Coordinates(x._pattern.indices[:, mine], x._pattern.sizes, True)  # type: ignore[union-attr]
        values = op.run(take(x._entries, mine), take(y._entries, theirs), **settings)
    else:
        indices = np.concatenate([x._pattern.indices, y._pattern.indices], 1)  # type: ignore[union-attr]
        both, inverse = Coordinates(indices, x._pattern.sizes).merged
        if inverse is None:
            inverse = np.arange(len(both))
        n = len(x._pattern)
        values = _checked(op, put(x._entries, inverse[:n], len(both)), put(y._entries, inverse[n:],
                                                                           len(both)),
                          settings)
    made: Any = sparse(both, values, x._size)
    if made.layout is layout:
        return made
    return made.to_sparse(layout=layout, blocksize=block if "bs" in layout.name else None)


def _checked(op: Any, a: Tensor, b: Tensor, settings: dict) -> Tensor:
    """The op on the values of two tensors, if it makes 0 of two 0s."""
    zeros = [wrap(np.zeros(1, v.dtype.numpy)) for v in (a, b)]
    of_zeros = op.run(*zeros, **settings)
    if bool((of_zeros._array != 0).any()):
        raise LayoutError(f"{op.name}: of two 0s it is {of_zeros._array.ravel()[0]}, so the result of sparse "
                          f"tensors would not be sparse; use x.to_dense()")
    return op.run(a, b, **settings)


def _by_dense(op: Any, x: SparseTensor, y: Any, inputs: tuple) -> SparseTensor:
    """A sparse tensor times, or by, a dense one that broadcasts to its shape."""
    if broadcast_shape((x._size, y.shape), op.name) != tuple(x._size):
        raise ShapeError(f"{op.name}: a dense operand of shape {list(y.shape)} would broadcast the sparse "
                         f"one of shape {list(x._size)}; use x.to_dense()")
    if op is div_op and bool((y._array == 0).any()):
        raise LayoutError("div: the dense divisor has zeros, and 0 / 0 is nan where nothing is stored; use "
                          "x.to_dense()")
    places = coo(x)
    p = places._pattern
    assert isinstance(p, Coordinates)
    here = y.expand(x._size).reshape((count_of(p.sizes),
                                      *x._size[len(p.sizes):])) if y.ndim == len(x._size) and (
        tuple(y.shape) == tuple(x._size)) else None
    if here is not None:
        factor = take(here, p.linear)
    else:  # a row or column of factors: only what is there is read
        aligned = y.reshape((1,) * (len(x._size) - y.ndim) + tuple(y.shape))
        k = len(p.sizes)
        linear: Any = 0
        for row, size in zip(p.indices, aligned.shape[:k]):
            linear = linear * size + (row if size > 1 else 0)
        linear = linear + np.zeros(len(p), np.int64)
        factor = take(aligned.reshape((-1, *aligned.shape[k:])), linear)
    pair = [places._entries, factor] if inputs[0] is x else [factor, places._entries]
    values: Any = op.run(*pair)
    if isinstance(x._pattern, Compressed):
        values = values.reshape(x._entries.shape)
    return sparse(x._pattern, values, x._size)
