"""Draws from distributions whose parameters are tensors: normal, bernoulli, Poisson, gamma and more."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ... import _native
from ...autograd.mode import state
from ...backends import backend_of, device_flags, move
from ...device import CPU, Device
from ...dtypes import as_dtype, promote_types
from ...errors import ShapeError
from ...random import Generator, drawn, drawn_at_once, generator_of, normal_array, uniform_array
from ...tensor import Tensor, made
from ..language.program import native_kernel
from ..record.args import floating, real_arg, tensor_arg
from ..record.batched import by_element, innermost, known, looped, rowwise
from ..record.op import Meta, Op
from ..record.public import check_out, public, run_into
from ..record.rounded import widened
from . import cuda, variates
from .draw_kernels import dirichlet_slope, gamma_slope
from .formula import Formula, placed
from .numbers import RAND, _float_kind, _kind_and_target, _sizes

NORMAL = RAND._replace(name="normal")


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
        dtype, target = _kind_and_target(dtype, device, out)
        kind, shape = _float_kind(dtype, "normal"), _sizes((size,), "normal")
    else:
        if size is not None:
            raise TypeError("normal: size is for two numbers; the tensors give the shape here")
        kind, target = given[0].dtype, given[0].device
        kind = kind if len(given) == 1 else promote_types(kind, given[1].dtype)
        shape = _broadcast([v.shape for v in given])
    settings: dict[str, Any] = {"shape": shape, "kind": kind.numpy, "target": target, "generator": generator}
    if given and out is not None:
        return run_into(normal_op.run, (mean, std), settings, out, "normal", False, normal_op)
    result = normal_op.run(mean, std, **settings) if given else made(
        NORMAL, _normals(np, mean, std, **settings))
    return result.requires_grad_(requires_grad) if out is None else check_out(out, result, "normal")


def _normals(xp: Any, mean: Any, std: Any, *, shape: tuple[int, ...], kind: Any, target: Device,
             generator: Generator | None) -> Any:
    if target.type == "meta":
        return normal_array(shape, kind, target)
    wide = kind
    if kind.itemsize == 2:
        wide = _SINGLE
        mean, std = (widened(v) if type(v) is np.ndarray else v for v in (mean, std))
    if generator is None and target is CPU and wide.char in "fd" and _is_deviation(std, wide) \
            and (type(mean) in (int, float) or type(mean) is np.ndarray and mean.dtype is wide):
        drawn = drawn_at_once("philox_normal", shape, wide.char == "d")
        if drawn is not None:
            numbers = _spread.on_host(drawn, std, mean)
            return numbers if wide is kind else placed(numbers, kind, target)
    m, s = (move(v, target) if hasattr(v, "dtype") else v for v in (mean, std))
    if not hasattr(s, "dtype") or not device_flags.check_reals(
            s, 0.0, np.inf, "normal: std must not be negative, got {real}"):
        deviation = np.real(_host(s) if hasattr(s, "dtype") else s)
        if np.any(deviation < 0):
            raise ValueError(f"normal: std must not be negative, got {float(np.min(deviation))}")
    draw = normal_array(shape, wide, target, generator)
    return placed(_spread(draw, s, m), kind, target)


def _is_deviation(std: Any, kind: np.dtype) -> bool:
    """Whether it is known to be one: a number, or numbers of this dtype, none of them negative or nan."""
    if type(std) is np.ndarray:
        return std.dtype is kind and _fits(std, 0.0, np.inf)
    return type(std) in (int, float) and std >= 0


_SINGLE = np.dtype(np.float32)
_spread = Formula("draw * s + m", "draw, s, m", rounded=True)
_host_normals = partial(_normals, np)
normal_op = Op("normal", "mean std", kernel=_normals, cpu=_host_normals, rounded=_host_normals,
               device=partial(_normals, None),
               infer=lambda mean, std, *, shape, kind, **_: Meta(shape, as_dtype(kind)))


def _broadcast(shapes: list) -> tuple[int, ...]:
    if shapes[0] == shapes[-1]:
        return tuple(shapes[0])
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
    if out is None:
        return bernoulli_op.run(input, p, generator=generator)
    settings = {"generator": generator}
    return run_into(bernoulli_op.run, (input, p), settings, out, "bernoulli", False, bernoulli_op)


def _coin(x: Any, p: Any, generator: Generator | None, op: str) -> Any:
    if generator is None and type(x) is np.ndarray and not state.batches \
            and (out := _tossed_at_once(x, p)) is not None:
        return out
    target = backend_of(x).device_of(x)
    chance = p
    if isinstance(p, np.ndarray):
        host = widened(np.asarray(p))
        _check_chances(host, op)
        chance = host
    elif not hasattr(p, "dtype"):
        if type(p) is not float or not 0 <= p <= 1:
            _check_chances(np.asarray(p), op)
    elif not device_flags.check_reals(p, 0.0, 1.0, f"{op}: probabilities must be in [0, 1], found {{real}}",
                                      nan=False):
        _check_chances(widened(_host(p)), op)
    kind = np.dtype("f8" if hasattr(p, "dtype") and p.dtype == np.float64 else "f4")
    draw = uniform_array(x.shape, kind, target, generator)
    return placed(_below(draw, move(chance, target) if hasattr(p, "dtype") else p), x.dtype, target)


_below = Formula("draw < chance", "draw, chance", rounded=True)
_tossed = Formula("where(draw < chance, 1.0, 0.0)", "draw, chance", rounded=True)


def _tossed_at_once(x: np.ndarray, p: Any) -> Any:
    """The usual call's coins, in the dtype of ``x``, of good chances; None for others."""
    if p is x and (coins := drawn_at_once("philox_coins", x)) is not None:
        return coins
    alike = type(p) is np.ndarray and p.dtype is x.dtype and p.shape == x.shape and _fits(p, 0.0, 1.0)
    one = type(p) is float and 0 <= p <= 1 and x.dtype.char == "f"  # is compared with numbers of 32 bits
    if x.dtype.char not in "fd" or not x.size or not (alike or one):
        return None
    draw = drawn_at_once("philox_uniform", x.shape, x.dtype.char == "d")
    return None if draw is None else _tossed.on_host(draw, p, out=draw)


def _check_chances(chance: np.ndarray, op: str) -> None:
    if not chance.size or bool(np.minimum.reduce(chance, None) >= 0  # ``min()`` takes twice as long
                               and np.maximum.reduce(chance, None) <= 1):
        return
    bad = chance[~((chance >= 0) & (chance <= 1))].reshape(-1)[0]
    raise ValueError(f"{op}: probabilities must be in [0, 1], found {float(bad)}")


def _bernoulli(xp: Any, x: Any, p: Any, *, generator: Generator | None) -> Any:
    return _coin(x, x if p is None else p, generator, "bernoulli")


bernoulli_op = Op("bernoulli", "x p", kernel=_bernoulli, device=partial(_bernoulli, None),
                  infer=lambda x, p, *, generator: x)


@public(method=True)
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *,
                generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Indices drawn with probabilities in proportion to ``input``: (n) or (rows, n) -> int64 (rows, k).

    Without replacement no index comes twice. Raises ValueError for weights that are negative, not
    finite or all 0, and where fewer than ``num_samples`` are above 0 without replacement.

    Several without replacement are the k smallest of Exp(1) / input: P. Efraimidis and P. Spirakis,
    "Weighted random sampling with a reservoir", 2006.

    >>> fw.multinomial(fw.tensor([0.0, 3.0]), 4, replacement=True)
    tensor([1, 1, 1, 1])
    """
    own = tensor_arg(input, "multinomial")._array
    if own.dtype.char not in "fd":
        floating(input, "multinomial")
    if own.ndim not in (1, 2) or own.shape[-1] == 0:
        raise ShapeError(f"multinomial: wanted weights of shape (n) or (rows, n) with n > 0, got "
                         f"{list(input.shape)}")
    if num_samples <= 0:
        raise ValueError(f"multinomial: num_samples must be positive, got {num_samples}")
    if out is None:
        return multinomial_op.run(input, num_samples=num_samples, replacement=replacement,
                                  generator=generator)
    settings = {"num_samples": num_samples, "replacement": replacement, "generator": generator}
    return run_into(multinomial_op.run, (input,), settings, out, "multinomial", True, multinomial_op)


def _picks(xp: Any, x: Any, *, num_samples: int, replacement: bool, generator: Generator | None) -> Any:
    if generator is None and type(x) is np.ndarray:
        at_once = drawn_at_once("philox_picks", x, num_samples, replacement or num_samples == 1)
        if at_once is not None:
            return at_once
    target = backend_of(x).device_of(x)
    weights = np.atleast_2d(move(x, CPU)).astype(np.float64)
    _check_weights(weights, num_samples, replacement)
    if replacement or num_samples == 1:
        picked = _with_replacement(weights, num_samples, target, generator)
    else:
        picked = _without_replacement(weights, num_samples, target, generator)
    return move(picked.astype(np.int64).reshape(*x.shape[:-1], num_samples), target)


multinomial_op = Op("multinomial", "x", kernel=_picks, device=cuda.picks)


def _check_weights(weights: np.ndarray, k: int, replacement: bool) -> None:
    if not weights.size:
        return
    least, most = weights.min(), weights.max()
    if not (least >= 0 and most < np.inf):
        raise ValueError(f"multinomial: weights must be finite and not negative, found {least}")
    if replacement and (most if len(weights) == 1 else weights.max(axis=1).min()) > 0 \
            or least > 0 and k <= weights.shape[1]:
        return
    positive = (weights > 0).sum(axis=1)
    if positive.size and positive.min() == 0:
        raise ValueError(f"multinomial: the weights of row {int(positive.argmin())} are all 0")
    if not replacement and positive.size and positive.min() < k:
        raise ValueError(f"multinomial: {k} samples without replacement need as many weights above 0, "
                         f"row {int(positive.argmin())} has {int(positive.min())}; pass replacement=True")


def _with_replacement(weights: np.ndarray, k: int, device: Device,
                      generator: Generator | None) -> np.ndarray:
    most = weights.max(axis=1, keepdims=True, initial=0.0)
    if not (_SUMMED[0] < most.min(initial=1.0) and most.max(initial=1.0) < _SUMMED[1]):
        weights = weights / most
    heights = weights.cumsum(axis=1)
    whole = heights[:, -1:]
    draw = uniform_array((len(weights), k), np.dtype("f8"), device, generator, host=True) * whole
    draw = np.minimum(draw, np.nextafter(whole, 0.0))  # which rounding may reach
    if len(heights) == 1:
        return heights[0].searchsorted(draw[0], side="right")[None]
    rows = [h.searchsorted(u, side="right") for h, u in zip(heights, draw)]
    return np.stack(rows) if rows else np.zeros((0, k), np.int64)


_SUMMED = (1e-290, 1e290)  # weights whose sums neither vanish nor overflow
_key = native_kernel("where(weight == 0, 1e999, (0 - log1p(0 - draw)) / weight)", ("draw", "weight"),
                     lambda draw, weight: np.where(weight == 0, np.inf, -np.log1p(-draw) / weight))


def _without_replacement(weights: np.ndarray, k: int, device: Device,
                         generator: Generator | None) -> np.ndarray:
    keys = _key(uniform_array(weights.shape, np.dtype("f8"), device, generator, host=True), weights)
    if 4 * k > weights.shape[1]:
        return keys.argsort(axis=1, kind="stable")[:, :k]
    some = np.sort(keys.argpartition(k - 1, axis=1)[:, :k], axis=1)  # of equal keys the first one comes first
    order = np.take_along_axis(keys, some, 1).argsort(axis=1, kind="stable")
    return np.take_along_axis(some, order, 1)


def _same(x: Meta, *others: Meta, **_: Any) -> Meta:
    return x


def _host(x: Any) -> np.ndarray:
    return x if type(x) is np.ndarray else np.asarray(known(move(x, CPU)))


def _drawn(function: str, plain: Callable, generator: Generator | None, arrays: Sequence,
           *settings: Any) -> Any:
    """What a native function draws by a key of the generator, or ``plain``, which draws the same in NumPy."""
    like = arrays[0]
    device = CPU if type(like) is np.ndarray else backend_of(like).device_of(like)
    shape, dtype = like.shape, like.dtype
    wide = np.float64 if dtype.itemsize == 8 else np.float32
    given = [np.ascontiguousarray(_host(a), wide) for a in arrays]
    native = getattr(_native.module, function, None)

    def draw(key: int) -> Any:
        array = NotImplemented if native is None else native(*given, key, *settings)
        if array is NotImplemented:
            array = plain(key, *[a.astype(np.float64) for a in given], *settings).astype(wide)
        return array if array.shape == shape else array.reshape(shape)
    array = drawn(device, generator, draw) if given[0].size else np.empty(shape, wide)
    if array.dtype != dtype:
        array = np.asarray(array).astype(dtype)
    return array if device is CPU else move(array, device)


def _for_examples(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of draws: others for each example, or the same for all."""
    level = state.batches[-1]
    if level.randomness == "different":
        return level.outside(lambda: by_element(op, size, arrays, batched, settings))
    full = innermost(arrays[0])
    source = settings["generator"] or generator_of(backend_of(full).device_of(full))
    first = source.get_state()
    return level.outside(lambda: looped(op, size, arrays, batched, settings, warn=False,
                                        before=lambda: source.set_state(first)))


def _gamma_kernel(xp: Any, x: Any, *, generator: Generator | None) -> Any:
    return _drawn("gamma_numbers", variates.gamma, generator, (x,), cuda.lowest(x))


def _dirichlet_kernel(xp: Any, x: Any, *, generator: Generator | None) -> Any:
    return _drawn("dirichlet_rows", variates.dirichlet, generator, (x,), cuda.lowest(x))


def _angles_kernel(xp: Any, x: Any, *, generator: Generator | None) -> Any:
    _within(x, 0.0, np.inf, f"von_mises: {cuda.SPREADS}")
    return _drawn("angles", variates.angles, generator, (x,))


# around 0, of concentrations x
angles_op = Op("von_mises", "x", kernel=_angles_kernel, infer=_same, batch=_for_examples,
               device=cuda.angles)
slope_of_gamma = Op("_standard_gamma_grad", "x y", kernel=gamma_slope, native="gamma_slopes", infer=_same,
                    batch=by_element, vjp="undefined", device=cuda.gamma_slope)
_dirichlet_slope = Op("_dirichlet_grad", "x y w", kernel=dirichlet_slope, native="dirichlet_slopes",
                      infer=_same, batch=rowwise, vjp="undefined", device=cuda.dirichlet_slope)
# the kernels know the smallest number of float16
_gamma = Op("_standard_gamma", "x", kernel=_gamma_kernel, cpu=partial(_gamma_kernel, np), infer=_same,
            batch=_for_examples, jvp="symmetric", device=cuda.gamma,
            vjp={"x": lambda g, x, out: g * slope_of_gamma(x, out)})
_dirichlet = Op("_sample_dirichlet", "x", kernel=_dirichlet_kernel, cpu=partial(_dirichlet_kernel, np),
                infer=_same, batch=_for_examples, device=cuda.dirichlet, vjp={
    "x": lambda g, x, out: (g - (g * out).sum(-1, keepdims=True)) * _dirichlet_slope(
        out, x, x.sum(-1, keepdims=True))})


@public(op=_gamma)
def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma numbers of shape ``input`` > 0 and rate 1, in the dtype of ``input``.

    Density: ``z**(input - 1) * exp(-z) / gamma(input)``. The gradient is that of the sample held at its
    quantile: M. Figurnov et al., "Implicit reparameterization gradients", 2018; it has none in turn. Raises
    ValueError where input is not above 0.

    >>> bool((fw._standard_gamma(fw.tensor([2.0, 3.0])) > 0).all())
    True
    """
    _positive(_real(input, "_standard_gamma"), "_standard_gamma", "input")
    return _gamma.run(input, generator=generator)


@public(op=_dirichlet)
def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Rows that sum to 1 of the Dirichlet distribution of concentrations ``input`` > 0: (..., n) -> (..., n).

    Density: proportional to the product of ``x_i ** (input_i - 1)``. The gradient is a pathwise one: M.
    Jankowiak and F. Obermeyer, "Pathwise derivatives beyond the reparameterization trick", 2018.
    Raises ShapeError for 0 dimensions, ValueError where input is not above 0.

    >>> round(fw._sample_dirichlet(fw.tensor([2.0, 3.0])).sum().item(), 3)
    1.0
    """
    if _real(input, "_sample_dirichlet").ndim == 0:
        raise ShapeError("_sample_dirichlet: input must have at least 1 dimension, that of the parts")
    _positive(input, "_sample_dirichlet", "input")
    return _dirichlet.run(input, generator=generator)


def _real(x: Any, op: str, name: str = "input") -> Tensor:
    floating(real_arg(x, op, name), op, name)
    return x


def _positive(x: Tensor, op: str, name: str) -> None:
    if device_flags.check_reals(x._array, 5e-324, np.inf, f"{op}: {name} must be above 0 everywhere, found "
                                                          "{real}", nan=False):
        return
    if x.device.type != "meta":
        _within(x._array, 5e-324, np.inf, f"{op}: {name} must be above 0 everywhere")


@public()
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers of rate ``input`` >= 0, in the dtype of ``input``. No gradient flows through.

    Probability of k: ``input**k * exp(-input) / k!``. Raises ValueError for a rate below 0 or nan.

    >>> fw.poisson(fw.tensor([0.0, 0.0]))
    tensor([0., 0.])
    """
    return poisson_op.run(_real(input, "poisson"), generator=generator)


def _poisson(xp: Any, x: Any, *, generator: Generator | None) -> Any:
    if generator is None and type(x) is np.ndarray \
            and (at_once := drawn_at_once("philox_poisson", x, cuda.MOST_RATE)) is not None:
        return at_once
    if not _fits(x, 0.0, cuda.MOST_RATE):
        for most, text in zip((np.inf, cuda.MOST_RATE), cuda.RATES):
            _within(x, 0.0, most, f"poisson: {text}")
    return _drawn("poisson_numbers", lambda key, rates, most: variates.poisson(key, rates), generator, (x,),
                  cuda.MOST_RATE)


def _fits(x: Any, low: float, high: float, whole: bool = False) -> bool:
    """Whether a native function found all numbers in [low, high], and whole."""
    within = getattr(_native.module, "within", None)
    return within is not None and type(x) is np.ndarray and within(x, low, high, whole) is True


def _within(x: Any, low: float, high: float, text: str, whole: bool = False) -> None:
    """ValueError with the first number that is not in [low, high], or is not whole."""
    if _fits(x, low, high, whole):
        return
    wide = _host(x).astype(np.float64)
    fits = (wide >= low) & (wide <= high)
    if whole:
        fits &= wide == np.floor(wide)
    if not np.all(fits):
        raise ValueError(f"{text}, found {float(wide[~fits][0]):g}")


poisson_op = Op("poisson", "x", kernel=_poisson, infer=_same, batch=_for_examples, device=cuda.poisson)


@public()
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """The number of successes in ``count`` trials of probability ``prob``; they broadcast. No gradient.

    Probability of k: ``(count over k) * prob**k * (1 - prob)**(count - k)``. Raises ValueError
    for a count that is not a whole number >= 0, or a probability outside [0, 1].

    >>> fw.binomial(fw.tensor([3.0, 5.0]), fw.tensor([1.0, 0.0]))
    tensor([3., 0.])
    """
    both = _real(count, "binomial", "count"), _real(prob, "binomial", "prob")
    kind = count.dtype if count.dtype is prob.dtype else promote_types(count.dtype, prob.dtype)
    return binomial_op.run(*both, dtype=kind.numpy, generator=generator)


_LARGEST = float(np.finfo(np.float64).max)


def _binomial(xp: Any, count: Any, prob: Any, *, dtype: Any, generator: Generator | None) -> Any:
    if generator is None and type(count) is np.ndarray is type(prob) \
            and (at_once := drawn_at_once("philox_binomial", count, prob)) is not None:
        return at_once
    for x, high, text in zip((count, prob), (_LARGEST, 1.0), cuda.TRIALS):
        _within(x, 0.0, high, f"binomial: {text}", whole=x is count)
    both = [count, prob]
    if count.shape != prob.shape:
        both = list(xp.broadcast_arrays(count, prob))
    both = [a if a.dtype == dtype else a.astype(dtype) for a in both]
    return _drawn("binomial_numbers", lambda key, n, p: variates.binomial(key, n, p), generator, both)


binomial_op = Op("binomial", "count prob", kernel=_binomial, batch=_for_examples, device=cuda.binomial)
