"""Random numbers written into a tensor: the methods whose names end in ``_``."""

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ... import _native
from ...backends import on_device
from ...backends.native import converted
from ...dtypes import FLOATING, DType, finfo, float32
from ...errors import DTypeError, ShapeError, kind_of
from ...quiet import quiet
from ...random import (
    Generator,
    drawn_at_once,
    integers_array,
    integers_at_once,
    normal_array,
    uniform_array,
)
from ...tensor import Tensor, bump, wrap
from ..pointwise.complex_numbers import view_as_real
from ..record.args import floating, number_arg, tensor_arg
from ..record.entries import entered
from ..record.into import guard, native_into
from ..record.public import public
from ..record.rounded import widened
from ..write.inplace import store, write
from .draws import _coin, _spread
from .formula import Formula, placed
from .numbers import _range

_put_into = native_into("put")


def _fill(x: Tensor, name: str, draw: Callable[[], Any]) -> Tensor:
    """Draw only when the write will be allowed, so a rejected call moves no generator."""
    guard(x, name)
    if type(x._array) is not np.ndarray and x.device.type == "meta":  # there is nowhere to put numbers
        bump(x, name)
        return x
    if type(x._array) is np.ndarray:
        array = draw()
    else:
        with on_device(x._array):
            array = draw()
    if _put_into(x, array, name) is x:
        return x
    if quiet.run is None or x._node is not None or x._more is not None or type(x._array) is not np.ndarray:
        return write(x, wrap(array), name)
    store(x, Ellipsis, array, name)  # no interceptor, and no graph
    return x


_NUMBERS = (int, float)


@lru_cache(64)
def _last_before(kind: type, high: float, low: float) -> np.floating:
    """The number of this type that stands before ``high``, seen from ``low``."""
    before: np.floating = np.nextafter(kind(high), kind(low))
    return before


def _filled_at_once(x: Any, name: str, function: str, low: float, factor: float,
                    high: float = math.inf) -> bool:
    """Whether ``x``, a plain tensor in no graph, was filled with ``low + factor * draw`` the shortest way.

    high: what no number reaches, though rounding may.
    """
    if type(x) is not Tensor or x._node is not None:
        return False
    array = x._array
    if type(array) is not np.ndarray or array.dtype.char not in "fd":
        return False
    if not array.size or quiet.run is None or not array.flags.writeable or x._more is not None:
        return False
    drawn = drawn_at_once(function, array.shape, array.dtype.char == "d")
    if drawn is None:
        return False
    if high != math.inf:
        _between.on_host(drawn, factor, low, float(_last_before(array.dtype.type, high, low)), out=drawn)
    elif factor != 1 or low != 0:
        _spread.on_host(drawn, float(factor), float(low), out=drawn)
    return _put_into(x, drawn, name) is x or write(x, wrap(drawn), name) is x


_NARROWEST = float(np.finfo(np.float16).max)  # what every floating dtype holds


def _real(x: Tensor, op: str) -> None:
    if x._array.dtype.kind not in FLOATING:
        raise DTypeError(f"{op}: wanted a real floating tensor, this one is {x.dtype}")


def _number(value: Any, op: str, name: str) -> Any:
    value = number_arg(value, op, name)
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{op}: {name} must be a number, got {kind_of(value)}")
    return value


def _positive(value: Any, op: str, name: str) -> Any:
    value = _number(value, op, name)
    if not value > 0:
        raise ValueError(f"{op}: {name} must be positive, got {value}")
    return value


def _wide(x: Tensor) -> Any:
    """The dtype to compute in: float16 loses too much on the way."""
    return float32.numpy if x.itemsize == 2 else x.dtype.numpy


def _drawn(function: str, **numbers: Any) -> Callable:
    """A decorator: a call with numbers alone is answered by that native function of the generator's state,
    the tensor, the numbers and the method's name. numbers: of a call without, ``...`` where one is needed.
    """
    def mark(method: Callable) -> Callable:
        if not hasattr(_native.module, "drawn_into"):
            return method
        return entered(method, _native.module.drawn_into(function, tuple(numbers), tuple(numbers.values()),
                                                         method.__name__, method))
    return mark


@public("", method=True)
@_drawn("into_uniform", low=0.0, high=1.0)
def uniform_(input: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None,
             **bounds: float) -> Tensor:
    """Fill with numbers uniform in [low, high); PyTorch's names ``from`` and ``to`` work as well.

    Of a complex tensor each part.

    >>> fw.zeros(2).uniform_(3.0, 3.0)
    tensor([3., 3.])
    """
    if generator is None and not bounds and type(low) in _NUMBERS and type(high) in _NUMBERS:
        if low == 0 and high == 1:
            if _filled_at_once(input, "uniform_", "philox_uniform", 0, 1):
                return input
        elif -1e30 < low <= high < 1e30 and _filled_at_once(
                input, "uniform_", "philox_uniform", low, high - low, high):
            return input
    low, high = [_number(v, "uniform_", name)
                 for v, name in zip(_bounds(low, high, bounds, "uniform_"), ("from", "to"))]
    if tensor_arg(input, "uniform_").is_complex():
        uniform_(view_as_real(input), low, high, generator=generator)
        return input
    _real(input, "uniform_")
    if not low <= high:
        raise ValueError(f"uniform_: wanted from <= to, got from={low}, to={high}")
    if high - low > _NARROWEST and not high - low <= finfo(input.dtype).max:
        raise ValueError(f"uniform_: the range from {low} to {high} is wider than {input.dtype} holds")

    def draw() -> Any:
        u = uniform_array(input.shape, input.dtype.numpy, input.device, generator)
        if u.dtype.kind == "f" and (low, high) == (0, 1):  # bfloat16 might round up
            return _moved(u, input)
        top = math.inf
        if low < high:  # rounding may reach the upper end, which is excluded
            kind = input.dtype.numpy.type
            top = float(np.nextafter(kind(high), kind(low)))
        return _moved(_between(widened(u) if isinstance(u, np.ndarray) else u, high - low, low, top), input)
    return _fill(input, "uniform_", draw)


_between = Formula("minimum(u * span + low, top)", "u, span, low, top", rounded=True)


def _bounds(low: Any, high: Any, named: dict, op: str) -> tuple[Any, Any]:
    if not named:
        return low, high
    unknown = set(named) - {"from", "to"}
    if unknown:
        raise TypeError(f"{op}: unexpected argument {sorted(unknown)[0]!r}; it takes from, to, generator")
    return named.get("from", low), named.get("to", high)


@public("", method=True)
@_drawn("into_normal", mean=0.0, std=1.0)
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *,
            generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers. Raises ValueError for a negative std.

    >>> fw.zeros(2).normal_(3.0, 0.0)
    tensor([3., 3.])
    """
    if generator is None and type(mean) in _NUMBERS and type(std) in _NUMBERS and 0 <= std < 1e30 \
            and -1e30 < mean < 1e30 and _filled_at_once(
                input, "normal_", "philox_normal", mean, std):
        return input
    floating(input, "normal_")
    mean, std = _number(mean, "normal_", "mean"), _number(std, "normal_", "std")
    if not std >= 0:
        raise ValueError(f"normal_: std must not be negative, got {std}")

    def draw() -> Any:
        kind = input.dtype.numpy if input.is_complex() else _wide(input)
        standard = normal_array(input.shape, kind, input.device, generator)
        return _moved(_spread(standard, float(std), float(mean)), input)
    return _fill(input, "normal_", draw)


def _moved(array: Any, x: Tensor) -> Any:
    """Numbers (an array, or NumPy's scalar) in the dtype and on the device of ``x``."""
    if type(array) is np.ndarray is type(x._array) and array.dtype is x._array.dtype:
        return array
    return placed(array, x.dtype.numpy, x.device)


@public("", method=True)
@_drawn("into_random", low=None, high=None)
def random_(input: Tensor, low: Any = None, high: Any = None, *, generator: Generator | None = None,
            **bounds: int) -> Tensor:
    """Fill with integers: ``random_(from, to)`` in [from, to), ``random_(to)`` in [0, to).

    Without bounds, all non-negative integers of the dtype that it holds exactly.

    >>> fw.zeros(2).random_(3, 4)
    tensor([3., 3.])
    """
    if bounds:
        low, high = _bounds(low, high, bounds, "random_")
    kind = input.dtype
    if low is None and high is None:
        low, high = 0, _exact_integers(kind)
    elif high is None:
        low, high = (0, low) if "from" not in bounds else (low, _exact_integers(kind))
    low, high = _range(0 if low is None else low, high, kind, "random_")
    if generator is None and drawn_at_once("into_integers", input, low, high - low, "random_") is input:
        return input

    def draw() -> Any:
        if generator is None and type(input._array) is np.ndarray:
            array = integers_at_once(low, high, input._array.shape)
            if array is not None:
                return array if array.dtype is kind.numpy else converted(array, kind.numpy)
        return integers_array(low, high, input.shape, kind.numpy, input.device, generator)
    return _fill(input, "random_", draw)


@cache
def _exact_integers(kind: DType) -> int:
    if kind.category == 0:
        return 2
    if kind.category == 1:
        return int(np.iinfo(kind.numpy).max) + 1
    return 1 << round(1 - math.log2(finfo(kind).eps))


@public("", method=True)
@_drawn("into_exponential", lambd=1.0)
def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of density ``lambd * exp(-lambd * t)``; 0 never occurs in float32 and float64.

    Raises ValueError unless lambd > 0.

    >>> bool((fw.zeros(100).exponential_() > 0).all())
    True
    """
    _real(input, "exponential_")
    lambd = _positive(lambd, "exponential_", "lambd")
    kind = _wide(input)

    def draw() -> Any:
        u = uniform_array(input.shape, kind, input.device, generator)
        least = _LEAST[kind.char]  # u = 0 would give 0, whose log users then take
        return _moved(_waiting_time(u, least, float(lambd)), input)
    return _fill(input, "exponential_", draw)


_LEAST = {char: float(np.finfo(char).epsneg / 2) for char in "fd"}
_waiting_time = Formula("-log1p(-maximum(u, least)) / rate", "u, least, rate")


@public("", method=True)
@_drawn("into_cauchy", median=0.0, sigma=1.0)
def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *,
            generator: Generator | None = None) -> Tensor:
    """Fill with numbers of density ``sigma / (pi * (sigma**2 + (t - median)**2))``.

    Raises DTypeError for a dtype that is not floating, ValueError unless sigma > 0.

    >>> fw.zeros(3).cauchy_().shape
    (3,)
    """
    _real(input, "cauchy_")
    median, sigma = _number(median, "cauchy_", "median"), _positive(sigma, "cauchy_", "sigma")

    def draw() -> Any:
        u = uniform_array(input.shape, _wide(input), input.device, generator)
        return _moved(_ratio(u, float(median), float(sigma)), input)
    return _fill(input, "cauchy_", draw)


_ratio = Formula("middle + spread * tan(3.141592653589793 * (u - 0.5))", "u, middle, spread")


@public("", method=True)
@_drawn("into_log_normal", mean=1.0, std=2.0)
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *,
                generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithms are normal, of that mean and that standard deviation.

    Raises DTypeError for a dtype that is not floating, ValueError unless std > 0.

    >>> bool((fw.zeros(100).log_normal_() > 0).all())
    True
    """
    _real(input, "log_normal_")
    mean, std = _number(mean, "log_normal_", "mean"), _positive(std, "log_normal_", "std")

    def draw() -> Any:
        standard = normal_array(input.shape, _wide(input), input.device, generator)
        return _moved(_exp_spread(standard, float(std), float(mean)), input)
    return _fill(input, "log_normal_", draw)


_exp_spread = Formula("exp(z * s + m)", "z, s, m")


@public("", method=True)
@_drawn("into_geometric", p=...)
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of the first success, 1, 2, ..., in trials of probability ``p``.

    Probability of k: ``(1 - p)**(k - 1) * p``. Takes integers, too. Raises ValueError unless 0 < p < 1.

    >>> bool((fw.zeros(100).geometric_(0.5) >= 1).all())
    True
    """
    p = _number(p, "geometric_", "p")
    if not 0 < p < 1:
        raise ValueError(f"geometric_: p must be between 0 and 1, got {p}")
    if tensor_arg(input, "geometric_").dtype.category == 0 or input.is_complex():
        raise DTypeError(f"geometric_: wanted a real tensor of numbers, this one is {input.dtype}")

    def draw() -> Any:
        u = uniform_array(input.shape, np.dtype("f8"), input.device, generator)
        return _moved(_first_success(u, math.log1p(-p)), input)
    return _fill(input, "geometric_", draw)


_first_success = Formula("maximum(ceil(log1p(-u) / rest), 1.0)", "u, rest")


@public("", method=True)
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 at probability ``p`` (a number, or a tensor that broadcasts), else 0.

    Raises ValueError for a probability outside [0, 1].

    >>> fw.zeros(2).bernoulli_(1.0)
    tensor([1., 1.])
    """
    if type(p) in _NUMBERS and generator is None \
            and drawn_at_once("into_coins", input, float(p), "bernoulli_") is input:
        return input
    if isinstance(p, Tensor):
        if generator is None and drawn_at_once("into_chances", input, p, "bernoulli_") is input:
            return input
        floating(p, "bernoulli_", "p")
        if p.ndim > input.ndim or any(a not in (1, b) for a, b in zip(p.shape[::-1], input.shape[::-1])):
            raise ShapeError(f"bernoulli_: p of shape {list(p.shape)} does not broadcast to "
                             f"{list(input.shape)}")
    return _fill(input, "bernoulli_", lambda: _coin(
        input._array, p._array if isinstance(p, Tensor) else p, generator, "bernoulli_"))
