"""Products named by indices: einsum, and bilinear maps by it."""

from typing import Any

import numpy as np

from ...dtypes import int64, promote_types
from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import tensor_arg
from ..record.autocast import by_place
from ..record.batched import call, on_tensors
from ..record.constants import like
from ..record.op import Meta, Op
from ..record.planned import Step, have_kernels, planned
from ..record.public import public
from ..record.road import NEVER
from ..shape.broadcast import expand, sum_to
from ..shape.view import reshape_op, take_shape
from .contract import LETTERS, einsum_kernel, index_sizes, parse
from .matmul import linear_op, of_ndim, promoted, same_dtype


def _einsum_infer(*xs: Meta, equation: str) -> Meta:
    sizes = index_sizes(equation, [x.shape for x in xs])
    return Meta(tuple(sizes[c] for c in equation.partition("->")[2]), xs[0].dtype)


def _einsum_vjp(g: Any, xs: tuple, equation: str, needs: tuple) -> list:
    left, _, out = equation.partition("->")
    terms = left.split(",")
    sizes = index_sizes(equation, [x.shape for x in xs])
    return [_einsum_part(g, out, terms, xs, i, sizes) if needs[i] else None for i in range(len(xs))]


def _einsum_part(g: Any, out: str, terms: list[str], xs: tuple, i: int, sizes: dict) -> Any:
    """The gradient of operand i: contract g with the other operands, to the operand's indices.

    An index that nobody else has was summed: its gradient is spread. An index that stands twice took
    a diagonal: its gradient goes back onto it, by a product with the identity.
    """
    others = [t for k, t in enumerate(terms) if k != i]
    unique = "".join(dict.fromkeys(terms[i]))
    known = "".join(c for c in unique if c in out or any(c in t for t in others))
    # a size-1 index of an operand that broadcasts: let g and the others lead
    part = einsum_op(g, *[x for k, x in enumerate(xs) if k != i],
                     equation=",".join([out, *others]) + "->" + known)
    full = tuple(sizes[c] for c in unique)
    shape = tuple(s if c in known else 1 for c, s in zip(unique, _shape_of(part, known, unique)))
    part = expand(reshape_op(part, shape=shape), size=full)
    own = dict(zip(terms[i], xs[i].shape))
    mine = tuple(own[c] for c in unique)
    if mine != full:
        part = sum_to(part, size=mine)
    if len(unique) == len(terms[i]):
        return part
    return _onto_diagonal(part, unique, terms[i], own)


def _shape_of(part: Any, known: str, unique: str) -> list[int]:
    sizes = dict(zip(known, part.shape))
    return [sizes.get(c, 1) for c in unique]


def _onto_diagonal(part: Any, unique: str, term: str, own: dict[str, int]) -> Any:
    spare = (c for c in LETTERS if c not in term)
    names, eyes, target = [unique], [], []
    for k, c in enumerate(term):
        if c in term[:k]:
            new = next(spare)
            eyes.append(like(part, lambda xp, dtype, n=own[c]: xp.eye(n, dtype=dtype)))
            names.append(c + new)
            c = new
        target.append(c)
    return einsum_op(part, *eyes, equation=",".join(names) + "->" + "".join(target))


@on_tensors()
def batch_einsum(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: one more index."""
    left, _, out = settings["equation"].partition("->")
    letter = next(c for c in LETTERS if c not in settings["equation"])
    terms = [letter * own + term for term, own in zip(left.split(","), batched)]
    return call(op, *arrays, equation=",".join(terms) + "->" + letter + out)


einsum_op = Op("einsum", "*xs", onnx="Einsum(*xs, equation=equation)",
               kernel=einsum_kernel, infer=_einsum_infer, vjp=_einsum_vjp,
               batch=batch_einsum,
               jvp="multilinear", arguments="operands", loose_from=NEVER)


def _einsum_policy(equation: Any, *operands: Any) -> str:
    """Whether it is a product of matrices, or several: an index of two operands is summed."""
    if not isinstance(equation, str):
        return "lower"
    left, arrow, right = equation.replace(" ", "").partition("->")
    letters = [c for term in left.split(",") for c in set(term) if c.isalpha()]
    return "lower" if any(letters.count(c) > 1 and c not in right for c in letters) else "widest"


@public(op=einsum_op, autocast=_einsum_policy, deferred=True)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products by index names: ``einsum("bij,bjk->bik", x, y)`` is ``bmm``.

    Without "->" the output has the indices that occur once, in alphabetical order; "..." stands for any
    further dimensions, which broadcast. An index twice in one operand takes its diagonal. Also
    ``einsum(x, [0, 1], y, [1, 2], [0, 2])``. Two dtypes promote where no products are summed, as in
    ``"i,j->ij"``. Raises ShapeError where sizes disagree, DTypeError where products of two dtypes would be
    summed, ValueError for a wrong equation. The result may lie as the product does, its dimensions in another
    order: ``view`` may need ``contiguous()`` first.

    >>> fw.einsum("ij,j->i", fw.tensor([[1.0, 2.0], [3.0, 4.0]]), fw.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if isinstance(equation, Tensor):
        equation, operands = _from_sublists((equation, *operands))
    elif not isinstance(equation, str):
        raise TypeError(f"einsum: the equation must be a string, got {type(equation).__name__}")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise ValueError("einsum: wanted at least one operand")
    own = None
    for x in operands:
        if type(x) is not Tensor or own is not None and x._array.dtype is not own:
            operands = _of_one_dtype(equation, operands)
            break
        own = x._array.dtype
    return einsum_op.run(*operands, equation=parse(equation, tuple([x.ndim for x in operands])))


def _of_one_dtype(equation: str, operands: tuple) -> tuple:
    """The operands in one dtype, as products number by number promote, and sums of products do not.

    Two operands at a time, from the left; a product is summed if an index stands in both of them and is
    needed nowhere else. Where one of them has a single number along it, nothing is summed over.
    """
    names = {f"operands[{i}]": x for i, x in enumerate(operands)}
    xs = [tensor_arg(x, "einsum", name) for name, x in names.items()]
    if all(x.dtype is xs[0].dtype for x in xs):
        return tuple(xs)
    left, _, out = parse(equation, tuple([x.ndim for x in xs])).partition("->")
    terms = left.split(",")
    sizes = [dict(zip(term, x.shape)) for term, x in zip(terms, xs)]
    got, dtype = sizes[0], xs[0].dtype
    for i in range(1, len(xs)):
        later = out + "".join(terms[i + 1:])
        if xs[i].dtype is not dtype:
            if any(c not in later and n > 1 and sizes[i].get(c, 1) > 1 for c, n in got.items()):
                same_dtype("einsum", **names)
            dtype = promote_types(dtype, xs[i].dtype)
        both = {**got, **{c: max(n, got.get(c, 1)) for c, n in sizes[i].items()}}
        got = {c: n for c, n in both.items() if c in later}
    return tuple(promoted("einsum", **names))


def _from_sublists(args: tuple) -> tuple[str, tuple]:
    def letters(indices: Any) -> str:
        return "".join("..." if i is Ellipsis else LETTERS[i] for i in indices)
    pairs = len(args) // 2
    equation = ",".join(letters(s) for s in args[1:2 * pairs:2])
    if len(args) % 2:
        equation += "->" + letters(args[-1])
    return equation, args[:2 * pairs:2]


def _of_pairs(input1: Any, input2: Any, weight: Any, bias: Any) -> Tensor:
    """By the products of all pairs of numbers, as a linear map."""
    lead, (o, i, j) = input1.shape[:-1], weight.shape
    pairs = input1.unsqueeze(-1) * input2.unsqueeze(-2)
    out = linear_op.run(take_shape(pairs, (*lead, i * j)), take_shape(weight, (o, i * j)), None)
    return out if bias is None else out + bias


def _by_einsum(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out = einsum("...i,oij,...j->...o", input1, weight, input2)
    return out if bias is None else out + bias  # type: ignore[operator]


@planned
def _bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> list[Step]:
    of_ndim("bilinear", weight=(weight, 3))
    tensor_arg(input1, "bilinear", "input1"), tensor_arg(input2, "bilinear", "input2")
    if not input1.ndim or not input2.ndim or (input1.shape[-1], input2.shape[-1]) != weight.shape[1:]:
        raise ShapeError(f"bilinear: input1 of shape {list(input1.shape)} and input2 of shape "
                         f"{list(input2.shape)} do not fit a weight of shape {list(weight.shape)}; "
                         f"wanted (*, i), (*, j), (o, i, j)")
    if bias is not None:
        tensor_arg(bias, "bilinear", "bias")
    few = weight.shape[1] <= weight.shape[0]  # the pairs are no more numbers than what einsum makes first
    given = [x for x in (input1, input2, weight, bias) if x is not None]
    whole = all(type(x._array) is np.ndarray and x.dtype is int64 for x in given)
    alike = input1.shape[:-1] == input2.shape[:-1] and (whole or have_kernels(input1, input2, weight, bias))
    return [(_of_pairs if few and alike else _by_einsum, 4, {})]


@public("nn.functional", autocast=by_place("widest"), deferred=True)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``y[o] = input1 . weight[o] . input2 + bias[o]``: x1 (*, i), x2 (*, j), weight (o, i, j) -> (*, o).

    >>> fw.nn.functional.bilinear(fw.ones(1, 2), fw.ones(1, 3), fw.ones(1, 2, 3))
    tensor([[6.]])
    """
    return _bilinear(input1, input2, weight, bias)
