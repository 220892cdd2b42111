"""Tensors of random numbers: fresh ones, in the shape of others, and fills in place.

No gradient flows through a draw. Every function takes ``generator=`` (default: the generator of the
device), and the same seed gives the same numbers. Probabilities are compared and distributions
transformed on the host, where the numbers are drawn (see ``framework/random.py``).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends import backend_of, move
from ...device import CPU, Device, as_device
from ...dtypes import FLOATING, DType, as_dtype, finfo, float32, get_default_dtype, int64, promote_types
from ...errors import DTypeError, ShapeError
from ...layouts import MemoryFormat
from ...random import Generator, integers_array, normal_array, permutation_array, uniform_array
from ...tensor import Tensor, bump, made, wrap
from ..convert.memory_format import made_like
from ..pointwise.complex_numbers import view_as_real
from ..record.args import floating, number_arg, size_args, tensor_arg
from ..record.into import guard
from ..record.op import Meta, Op
from ..record.public import check_out, public
from ..write.inplace import write


def _sizes(size: tuple, op: str) -> tuple[int, ...]:
    shape = size_args(size, op)
    if any(s < 0 for s in shape):
        raise ShapeError(f"{op}: sizes must not be negative, got {list(shape)}")
    return shape


def _float_kind(dtype: Any, op: str) -> DType:
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    if kind.category < 2:
        raise DTypeError(f"{op}: dtype must be floating, got {kind}; use randint for integers")
    return kind


def _place(device: Any) -> Device:
    return device if isinstance(device, Device) else as_device(device)


def _finish(array: Any, op: str, out: Tensor | None, requires_grad: bool) -> Tensor:
    result = made(op, array)
    return result.requires_grad_(requires_grad) if out is None else check_out(out, result, op)


def _kind_and_place(dtype: Any, device: Any, out: Tensor | None) -> tuple[Any, Device]:
    """With ``out=`` and nothing else said, its dtype and device decide."""
    if out is not None:
        tensor_arg(out, "random", "out")
        return out.dtype if dtype is None else dtype, out.device if device is None else _place(device)
    return dtype, _place(device)


# -- fresh tensors ---------------------------------------------------------------------------------


@public()
def rand(*size: Any, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
         device: Any = None, requires_grad: bool = False) -> Tensor:
    """Numbers uniform in [0, 1); 1 never occurs.

    Raises DTypeError unless dtype is floating or complex.

    >>> fw.rand(2, 3).shape
    (2, 3)
    """
    dtype, place = _kind_and_place(dtype, device, out)
    array = uniform_array(_sizes(size, "rand"), _float_kind(dtype, "rand").numpy, place, generator)
    return _finish(array, "rand", out, requires_grad)


@public()
def randn(*size: Any, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
          device: Any = None, requires_grad: bool = False) -> Tensor:
    """Standard normal numbers.

    Raises DTypeError unless dtype is floating or complex.

    >>> fw.randn((2, 3), dtype=fw.float64).dtype
    framework.float64
    """
    dtype, place = _kind_and_place(dtype, device, out)
    array = normal_array(_sizes(size, "randn"), _float_kind(dtype, "randn").numpy, place, generator)
    return _finish(array, "randn", out, requires_grad)


@public()
def randint(low: int = 0, high: Any = None, size: Any = None, *, generator: Generator | None = None,
            out: Tensor | None = None, dtype: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:
    """Integers uniform in [low, high): ``randint(high, size)`` or ``randint(low, high, size)``.

    Raises ValueError for an empty range, or one that does not fit the dtype (int64 by default).

    >>> fw.randint(3, 4, (2,))
    tensor([3, 3])
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None:
        raise TypeError("randint: no size was given; write randint(high, size) or "
                        "randint(low, high, size)")
    dtype, place = _kind_and_place(dtype, device, out)
    kind = int64 if dtype is None else as_dtype(dtype)
    low, high = _range(low, high, kind, "randint")
    array = integers_array(low, high, _sizes((size,), "randint"), kind.numpy, place, generator)
    return _finish(array, "randint", out, requires_grad)


def _range(low: Any, high: Any, kind: DType, op: str) -> tuple[int, int]:
    low, high = (int(v.item() if isinstance(v, (Tensor, np.generic)) else v) for v in (low, high))
    if low >= high:
        raise ValueError(f"{op}: wanted low < high, got low={low}, high={high} (high is not included)")
    if kind.category == 0:
        first, last = 0, 1
    elif kind.category == 1:
        first, last = (int(v) for v in (np.iinfo(kind.numpy).min, np.iinfo(kind.numpy).max))
    elif kind.is_complex:
        raise DTypeError(f"{op}: integers cannot be drawn as {kind}")
    else:
        first, last = -(1 << 63), (1 << 63) - 1
    if low < first or high - 1 > last:
        raise ValueError(f"{op}: the range [{low}, {high}) does not fit {kind}, which holds "
                         f"{first} to {last}")
    return low, high


@public()
def randperm(n: int, *, generator: Generator | None = None, out: Tensor | None = None,
             dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The numbers 0 to n - 1 in random order, int64 by default.

    >>> sorted(fw.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"randperm: n must be an int, got {type(n).__name__}")
    n = n.__index__()
    if n < 0:
        raise ValueError(f"randperm: n must not be negative, got {n}")
    dtype, place = _kind_and_place(dtype, device, out)
    kind = int64 if dtype is None else as_dtype(dtype)
    array = permutation_array(n, place, generator).astype(kind.numpy)
    return _finish(array, "randperm", out, requires_grad)


def _like(x: Tensor, dtype: Any, device: Any, op: str) -> dict:
    tensor_arg(x, op)
    return {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}


@public()
def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
              requires_grad: bool = False, memory_format: MemoryFormat | None = None) -> Tensor:
    """Numbers uniform in [0, 1) in the shape, dtype and device of ``input``.

    >>> fw.rand_like(fw.ones(2, 3)).shape
    (2, 3)
    """
    settings = _like(input, dtype, device, "rand_like")
    return made_like(lambda shape: rand(shape, generator=generator, **settings), input, memory_format,
                     requires_grad, "rand_like")


@public()
def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: MemoryFormat | None = None) -> Tensor:
    """Standard normal numbers in the shape, dtype and device of ``input``.

    >>> fw.randn_like(fw.ones(2, 3)).shape
    (2, 3)
    """
    settings = _like(input, dtype, device, "randn_like")
    return made_like(lambda shape: randn(shape, generator=generator, **settings), input, memory_format,
                     requires_grad, "randn_like")


@public()
def randint_like(input: Tensor, low: int = 0, high: Any = None, *, generator: Generator | None = None,
                 dtype: Any = None, device: Any = None, requires_grad: bool = False,
                 memory_format: MemoryFormat | None = None) -> Tensor:
    """Integers uniform in [low, high) (or [0, low)) in the shape, dtype and device of ``input``.

    >>> fw.randint_like(fw.ones(2), 5, 6)
    tensor([5., 5.])
    """
    settings = _like(input, dtype, device, "randint_like")
    low, high = (0, low) if high is None else (low, high)
    return made_like(lambda shape: randint(low, high, shape, generator=generator, **settings), input,
                     memory_format, requires_grad, "randint_like")


# -- draws whose parameters are tensors ------------------------------------------------------------


@public()
def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None,
           out: Tensor | None = None, dtype: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
    """Normal numbers of the given mean and standard deviation: ``mean + std * randn``.

    Each is a tensor (the shapes broadcast) or a number; two numbers need ``size``.
    Raises ValueError for a negative std.

    >>> fw.normal(fw.tensor([1.0, 2.0]), 0.0)
    tensor([1., 2.])
    """
    given = [v for v in (mean, std) if isinstance(v, Tensor)]
    for v, name in ((mean, "mean"), (std, "std")):
        if isinstance(v, Tensor):
            floating(v, "normal", name)
    if not given:
        if size is None:
            raise TypeError("normal: two numbers need a size, e.g. normal(0.0, 1.0, (2, 3))")
        dtype, place = _kind_and_place(dtype, device, out)
        kind, shape = _float_kind(dtype, "normal"), _sizes((size,), "normal")
    else:
        if size is not None:
            raise TypeError("normal: size is for two numbers; the tensors give the shape here")
        kind, place = given[0].dtype, given[0].device
        kind = kind if len(given) == 1 else promote_types(kind, given[1].dtype)
        shape = _broadcast([v.shape for v in given])
    settings: dict[str, Any] = {"shape": shape, "kind": kind.numpy, "place": place, "generator": generator}
    result = normal_op.run(mean, std, **settings) if given else made(
        "normal", _normals(np, mean, std, **settings))
    return result.requires_grad_(requires_grad) if out is None else check_out(out, result, "normal")


def _normals(xp: Any, mean: Any, std: Any, *, shape: tuple[int, ...], kind: Any, place: Device,
             generator: Generator | None) -> Any:
    m, s = (move(v, CPU) if hasattr(v, "dtype") else v for v in (mean, std))
    if place.type == "meta":
        return normal_array(shape, kind, place)
    if np.any(np.real(s) < 0):
        raise ValueError(f"normal: std must not be negative, got {float(np.min(np.real(s)))}")
    draw = normal_array(shape, kind, place, generator, host=True)
    return move(np.asarray(draw * s + m).astype(kind), place)


normal_op = Op("normal", "mean std", kernel=_normals,
               infer=lambda mean, std, *, shape, kind, **_: Meta(shape, as_dtype(kind)))


def _broadcast(shapes: list) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(f"normal: mean of shape {list(shapes[0])} and std of shape {list(shapes[1])} do "
                         f"not broadcast") from None


@public(method=True)
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None,
              out: Tensor | None = None) -> Tensor:
    """1 with the probability that stands in ``input`` (or ``p`` for all), else 0, in the dtype of ``input``.

    Raises ValueError for a probability outside [0, 1].

    >>> fw.bernoulli(fw.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    if p is None:
        floating(tensor_arg(input, "bernoulli"), "bernoulli")
    result = bernoulli_op.run(input, p, generator=generator)
    return result if out is None else check_out(out, result, "bernoulli")


def _coin(x: Any, p: Any, generator: Generator | None, op: str) -> Any:
    chance = np.asarray(p if isinstance(p, (int, float)) else move(p, CPU))
    if not np.all((chance >= 0) & (chance <= 1)):
        bad = chance[~((chance >= 0) & (chance <= 1))].reshape(-1)[0]
        raise ValueError(f"{op}: probabilities must be in [0, 1], found {float(bad)}")
    kind = chance.dtype if hasattr(p, "dtype") and chance.dtype == np.float64 else np.dtype("f4")
    place = backend_of(x).device_of(x)
    draw = uniform_array(x.shape, kind, place, generator, host=True)
    return move(np.asarray(draw < chance).astype(x.dtype), place)


bernoulli_op = Op("bernoulli", "x p", kernel=lambda xp, x, p, *, generator: _coin(
    x, x if p is None else p, generator, "bernoulli"),
    infer=lambda x, p, *, generator: x)


@public(method=True)
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *,
                generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Indices drawn with probabilities in proportion to ``input``: (n) or (rows, n) -> int64 (rows, k).

    Without replacement no index comes twice. Raises ValueError for weights that are negative, not
    finite or all 0, and where fewer than ``num_samples`` are above 0 without replacement.

    Without replacement, the k smallest of Exp(1) / input are taken: P. Efraimidis and P. Spirakis,
    "Weighted random sampling with a reservoir", 2006.

    >>> fw.multinomial(fw.tensor([0.0, 3.0]), 4, replacement=True)
    tensor([1, 1, 1, 1])
    """
    floating(tensor_arg(input, "multinomial"), "multinomial")
    if input.ndim not in (1, 2) or input.shape[-1] == 0:
        raise ShapeError(f"multinomial: wanted weights of shape (n) or (rows, n) with n > 0, got "
                         f"{list(input.shape)}")
    if num_samples <= 0:
        raise ValueError(f"multinomial: num_samples must be positive, got {num_samples}")
    result = multinomial_op.run(input, num_samples=num_samples, replacement=replacement, generator=generator)
    return result if out is None else check_out(out, result, "multinomial", exact=True)


def _picks(xp: Any, x: Any, *, num_samples: int, replacement: bool, generator: Generator | None) -> Any:
    place = backend_of(x).device_of(x)
    weights = np.atleast_2d(move(x, CPU)).astype(np.float64)
    _check_weights(weights, num_samples, replacement)
    if replacement:
        picked = _with_replacement(weights, num_samples, place, generator)
    else:
        draw = uniform_array(weights.shape, np.dtype("f8"), place, generator, host=True)
        keys = -np.log1p(-draw) / weights
        keys[weights == 0] = np.inf
        picked = np.argsort(keys, axis=1, kind="stable")[:, :num_samples]
    return move(picked.astype(np.int64).reshape(*x.shape[:-1], num_samples), place)


multinomial_op = Op("multinomial", "x", kernel=_picks)


def _check_weights(weights: np.ndarray, k: int, replacement: bool) -> None:
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(f"multinomial: weights must be finite and not negative, found {weights.min()}")
    positive = (weights > 0).sum(axis=1)
    if positive.size and positive.min() == 0:
        raise ValueError(f"multinomial: the weights of row {int(positive.argmin())} are all 0")
    if not replacement and positive.size and positive.min() < k:
        raise ValueError(f"multinomial: {k} samples without replacement need as many weights above 0, "
                         f"row {int(positive.argmin())} has {int(positive.min())}; pass replacement=True")


def _with_replacement(weights: np.ndarray, k: int, device: Device,
                      generator: Generator | None) -> np.ndarray:
    heights = np.cumsum(weights / weights.max(axis=1, keepdims=True), axis=1)
    heights /= heights[:, -1:]
    draw = uniform_array((len(weights), k), np.dtype("f8"), device, generator, host=True)
    rows = [np.searchsorted(h, u, side="right") for h, u in zip(heights, draw)]
    return np.stack(rows) if rows else np.zeros((0, k), np.int64)


# -- fills in place --------------------------------------------------------------------------------


def _fill(x: Tensor, name: str, draw: Callable[[], Any]) -> Tensor:
    """Draw only when the write will be allowed, so a rejected call moves no generator."""
    guard(x, name)
    if type(x._array) is not np.ndarray and x.device.type == "meta":  # there is nowhere to put numbers
        bump(x, name)
        return x
    return write(x, wrap(draw()), name)


_NARROWEST = float(np.finfo(np.float16).max)  # what every floating dtype holds


def _real(x: Tensor, op: str) -> None:
    if x._array.dtype.kind not in FLOATING:
        raise DTypeError(f"{op}: wanted a real floating tensor, this one is {x.dtype}")


def _wide(x: Tensor) -> Any:
    """The dtype to compute in: float16 loses too much on the way."""
    return float32.numpy if x.itemsize == 2 else x.dtype.numpy


@public("", method=True)
def uniform_(input: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None,
             **bounds: float) -> Tensor:
    """Fill with numbers uniform in [low, high); PyTorch's names ``from`` and ``to`` work as well.

    Of a complex tensor each part.

    >>> fw.zeros(2).uniform_(3.0, 3.0)
    tensor([3., 3.])
    """
    low, high = _bounds(low, high, bounds, "uniform_")
    if tensor_arg(input, "uniform_").is_complex():
        uniform_(view_as_real(input), low, high, generator=generator)
        return input
    _real(input, "uniform_")
    if not low <= high:
        raise ValueError(f"uniform_: wanted from <= to, got from={low}, to={high}")
    if high - low > _NARROWEST and not high - low <= finfo(input.dtype).max:
        raise ValueError(f"uniform_: the range from {low} to {high} is wider than {input.dtype} holds")

    def draw() -> Any:
        u = uniform_array(input.shape, input.dtype.numpy, input.device, generator, host=True)
        if u.dtype.kind == "f" and (low, high) == (0, 1):  # bfloat16 might round up
            return _moved(u, input)
        array = u * (high - low) + low
        if low < high:  # rounding may reach the upper end, which is excluded
            kind = input.dtype.numpy.type
            array = np.minimum(array, np.nextafter(kind(high), kind(low)))
        return _moved(array, input)
    return _fill(input, "uniform_", draw)


def _bounds(low: Any, high: Any, named: dict, op: str) -> tuple[Any, Any]:
    unknown = set(named) - {"from", "to"}
    if unknown:
        raise TypeError(f"{op}: unexpected argument {sorted(unknown)[0]!r}; it takes from, to, generator")
    return named.get("from", low), named.get("to", high)


@public("", method=True)
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *,
            generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers. Raises ValueError for a negative std.

    >>> fw.zeros(2).normal_(3.0, 0.0)
    tensor([3., 3.])
    """
    floating(input, "normal_")
    if not std >= 0:
        raise ValueError(f"normal_: std must not be negative, got {std}")

    def draw() -> Any:
        standard = normal_array(input.shape, input.dtype.numpy, input.device, generator, host=True)
        return _moved(standard * float(std) + float(mean), input)
    return _fill(input, "normal_", draw)


def _moved(array: Any, x: Tensor) -> Any:
    """A host array (or NumPy scalar) in the dtype and on the device of ``x``."""
    return move(np.asarray(array).astype(x.dtype.numpy, copy=False), x.device)


@public("", method=True)
def random_(input: Tensor, low: Any = None, high: Any = None, *, generator: Generator | None = None,
            **bounds: int) -> Tensor:
    """Fill with integers: ``random_(from, to)`` in [from, to), ``random_(to)`` in [0, to).

    Without bounds, all non-negative integers of the dtype that it holds exactly.

    >>> fw.zeros(2).random_(3, 4)
    tensor([3., 3.])
    """
    low, high = _bounds(low, high, bounds, "random_")
    kind = input.dtype
    if low is None and high is None:
        low, high = 0, _exact_integers(kind)
    elif high is None:
        low, high = (0, low) if "from" not in bounds else (low, _exact_integers(kind))
    low, high = _range(0 if low is None else low, high, kind, "random_")
    return _fill(input, "random_", lambda: integers_array(low, high, input.shape, kind.numpy, input.device,
                                                          generator))


def _exact_integers(kind: DType) -> int:
    if kind.category == 0:
        return 2
    if kind.category == 1:
        return int(np.iinfo(kind.numpy).max) + 1
    return 1 << round(1 - math.log2(finfo(kind).eps))


@public("", method=True)
def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of density ``lambd * exp(-lambd * t)``; 0 never occurs in float32 and float64.

    Raises ValueError unless lambd > 0.

    >>> bool((fw.zeros(100).exponential_() > 0).all())
    True
    """
    _real(input, "exponential_")
    if not lambd > 0:
        raise ValueError(f"exponential_: lambd must be positive, got {lambd}")
    kind = _wide(input)

    def draw() -> Any:
        u = uniform_array(input.shape, kind, input.device, generator, host=True)
        u = np.maximum(u, np.finfo(kind).epsneg / 2)  # u = 0 would give 0, whose log users then take
        return _moved(-np.log1p(-u) / float(lambd), input)
    return _fill(input, "exponential_", draw)


@public("", method=True)
def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *,
            generator: Generator | None = None) -> Tensor:
    """Fill with numbers of density ``sigma / (pi * (sigma**2 + (t - median)**2))``.

    Raises DTypeError for a dtype that is not floating, ValueError unless sigma > 0.

    >>> fw.zeros(3).cauchy_().shape
    (3,)
    """
    _real(input, "cauchy_")
    median, sigma = number_arg(median, "cauchy_", "median"), number_arg(sigma, "cauchy_", "sigma")
    if not sigma > 0:
        raise ValueError(f"cauchy_: sigma must be positive, got {sigma}")

    def draw() -> Any:
        u = uniform_array(input.shape, _wide(input), input.device, generator, host=True)
        return _moved(float(median) + float(sigma) * np.tan(math.pi * (u - 0.5)), input)
    return _fill(input, "cauchy_", draw)


@public("", method=True)
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *,
                generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithms are normal, of that mean and that standard deviation.

    Raises DTypeError for a dtype that is not floating, ValueError unless std > 0.

    >>> bool((fw.zeros(100).log_normal_() > 0).all())
    True
    """
    _real(input, "log_normal_")
    mean, std = number_arg(mean, "log_normal_", "mean"), number_arg(std, "log_normal_", "std")
    if not std > 0:
        raise ValueError(f"log_normal_: std must be positive, got {std}")

    def draw() -> Any:
        standard = normal_array(input.shape, _wide(input), input.device, generator, host=True)
        return _moved(np.exp(standard * float(std) + float(mean)), input)
    return _fill(input, "log_normal_", draw)


@public("", method=True)
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of the first success, 1, 2, ..., in trials of probability ``p``.

    Probability of k: ``(1 - p)**(k - 1) * p``. Takes integers, too. Raises ValueError unless 0 < p < 1.

    >>> bool((fw.zeros(100).geometric_(0.5) >= 1).all())
    True
    """
    p = number_arg(p, "geometric_", "p")
    if not 0 < p < 1:
        raise ValueError(f"geometric_: p must be between 0 and 1, got {p}")
    if tensor_arg(input, "geometric_").dtype.category == 0 or input.is_complex():
        raise DTypeError(f"geometric_: wanted a real tensor of numbers, this one is {input.dtype}")

    def draw() -> Any:
        u = uniform_array(input.shape, np.dtype("f8"), input.device, generator, host=True)
        return _moved(np.maximum(np.ceil(np.log1p(-u) / math.log1p(-p)), 1.0), input)
    return _fill(input, "geometric_", draw)


@public("", method=True)
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 at probability ``p`` (a number, or a tensor that broadcasts), else 0.

    Raises ValueError for a probability outside [0, 1].

    >>> fw.zeros(2).bernoulli_(1.0)
    tensor([1., 1.])
    """
    if isinstance(p, Tensor):
        floating(p, "bernoulli_", "p")
        if p.ndim > input.ndim or any(a not in (1, b) for a, b in zip(p.shape[::-1], input.shape[::-1])):
            raise ShapeError(f"bernoulli_: p of shape {list(p.shape)} does not broadcast to "
                             f"{list(input.shape)}")
    return _fill(input, "bernoulli_", lambda: _coin(
        input._array, p._array if isinstance(p, Tensor) else p, generator, "bernoulli_"))
