"""Random operands for timings: sizes, strides and dtypes drawn by rules, the same ones for a seed."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ...dtypes import DType, float32
from ...from_data import tensor
from ...ops.random.numbers import rand, randint
from ...tensor import Tensor

_TRIES = 1000  # how often parameters are drawn anew that the constraints refuse


class FuzzedParameter:
    """A number (or anything else) that is drawn: "uniform" or "loguniform" between minval and maxval, both
    included.

    distribution: also {value: probability}. strict: whether `Fuzzer` raises instead of drawing again what
    does not fit. Raises ValueError for other distributions.
    """

    def __init__(
        self,
        name: str,
        minval: Any = None,
        maxval: Any = None,
        distribution: Any = None,
        strict: bool = False,
    ) -> None:
        self.name, self._min, self._max, self.strict = name, minval, maxval, strict
        if isinstance(distribution, dict):
            if not math.isclose(sum(distribution.values()), 1.0, abs_tol=1e-3):
                raise ValueError(
                    f"FuzzedParameter {name}: probabilities must sum up to 1, got {distribution}"
                )
        elif distribution not in ("uniform", "loguniform"):
            raise ValueError(
                f"FuzzedParameter {name}: distribution must be 'uniform', 'loguniform' or "
                f"{{value: probability}}, got {distribution!r}"
            )
        elif minval is None or maxval is None:
            raise ValueError(f"FuzzedParameter {name}: {distribution} needs minval and maxval")
        self._distribution = distribution

    def sample(self, state: np.random.RandomState) -> Any:
        """A value, drawn by NumPy's generator."""
        if isinstance(self._distribution, dict):
            values, chances = list(self._distribution), np.array(list(self._distribution.values()))
            return values[int(state.choice(len(values), p=chances / chances.sum()))]
        whole = isinstance(self._min, int) and isinstance(self._max, int)
        if self._distribution == "uniform":
            return (
                int(state.randint(self._min, self._max + 1)) if whole else state.uniform(self._min, self._max)
            )
        drawn = float(np.exp2(state.uniform(np.log2(self._min), np.log2(self._max))))
        return min(max(round(drawn), self._min), self._max) if whole else drawn


class ParameterAlias:
    """In a distribution: the value of another parameter, so that two are the same now and then."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A tensor of random numbers, whose sizes and steps are numbers or names of parameters.

    size, steps: per dimension. probability_contiguous: else its dimensions lie in memory in a random order.
    min_elements, max_elements, max_allocation_bytes: drawn again outside. dim_parameter: the parameter that
    says how many of the dimensions there are. roll_parameter: the one by which sizes and steps are rolled
    round. tensor_constructor: ``(size, dtype, **parameters) -> Tensor``.
    """

    def __init__(
        self,
        name: str,
        size: tuple,
        steps: tuple | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: DType = float32,
        cuda: bool = False,
        tensor_constructor: Callable | None = None,
    ) -> None:
        if steps is not None and len(steps) != len(size):
            raise ValueError(f"FuzzedTensor {name}: {len(size)} sizes and {len(steps)} steps")
        self.name, self._size, self._steps = name, size, steps or (1,) * len(size)
        self._contiguous = probability_contiguous
        self._min, self._max, self._bytes = min_elements, max_elements, max_allocation_bytes
        self._dim, self._roll, self._dtype, self._cuda = dim_parameter, roll_parameter, dtype, cuda
        self._make = tensor_constructor or self.default_tensor_constructor

    @staticmethod
    def default_tensor_constructor(size: tuple, dtype: DType, **kwargs: Any) -> Tensor:
        """Uniform numbers; integers below 127; for bool both."""
        if dtype.is_floating_point or dtype.is_complex:
            return rand(*size, dtype=dtype)
        drawn: Any = randint(0, 2 if dtype.numpy.kind == "b" else 127, size)
        return drawn.to(dtype)

    def sizes(self, params: dict[str, Any]) -> tuple[tuple, tuple]:
        """Size and steps for these parameters."""
        dims = params[self._dim] if self._dim else len(self._size)

        def values(names: tuple) -> tuple:
            found = tuple(params[n] if isinstance(n, str) else n for n in names[:dims])
            by = params[self._roll] % max(dims, 1) if self._roll else 0
            return found[-by:] + found[:-by] if by else found

        return values(self._size), values(self._steps)

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether there are neither too few elements nor too many."""
        size, steps = self.sizes(params)
        count = math.prod(size)
        memory = math.prod(n * step for n, step in zip(size, steps)) * self._dtype.itemsize
        return not (
            self._max is not None
            and count > self._max
            or self._min is not None
            and count < self._min
            or self._bytes is not None
            and memory > self._bytes
        )

    def _make_tensor(
        self, params: dict[str, Any], state: np.random.RandomState
    ) -> tuple[Tensor, dict[str, Any]]:
        size, steps = self.sizes(params)
        whole = tuple(n * step for n, step in zip(size, steps))
        order = np.arange(len(size))
        if len(size) > 1 and state.rand() > self._contiguous:
            order = state.permutation(len(size))
        x: Any = self._make(tuple(whole[i] for i in order), self._dtype, **params)
        if self._cuda:
            x = x.cuda()
        x = x.permute(*np.argsort(order).tolist()) if len(size) else x
        x = x[tuple(slice(None, None, step) for step in steps)] if len(size) else x
        return x, {
            "numel": x.numel(),
            "order": order.tolist(),
            "steps": steps,
            "is_contiguous": x.is_contiguous(),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Sets of tensors by rules: ``take(n)`` gives n of (tensors by name, what is known of them, parameters).

    constraints: functions of the parameters by name; sets are drawn again until all are true. Raises
    RuntimeError after a thousand tries in a row.

    >>> from framework.utils.benchmark import Fuzzer, FuzzedParameter, FuzzedTensor
    >>> fuzzer = Fuzzer([FuzzedParameter("n", 4, 8, "uniform")], [FuzzedTensor("x", ("n", 2))], seed=0)
    >>> [4 <= tensors["x"].shape[0] <= 8 for tensors, _, params in fuzzer.take(3)]
    [True, True, True]
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        tensors: Iterable[Any],
        constraints: Iterable[Callable] = (),
        seed: int | None = None,
    ) -> None:
        self._parameters: list[FuzzedParameter] = _flat(parameters)
        self._tensors: list[FuzzedTensor] = _flat(tensors)
        self._constraints = tuple(constraints or ())
        self._seed = int(tensor(np.random.randint(1 << 31)).item()) if seed is None else seed
        names = [p.name for p in self._parameters] + [t.name for t in self._tensors]
        if len(set(names)) < len(names):
            raise ValueError(f"Fuzzer: each name may stand for one thing, got {names}")
        self._drawn = self._refused = 0

    @property
    def rejection_rate(self) -> float:
        """How many of the sets that were drawn did not fit."""
        return self._refused / self._drawn if self._drawn else 0.0

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, Any], dict[str, Any]]]:
        """``n`` sets; for the same seed the same sizes."""
        state = np.random.RandomState(self._seed)
        for _ in range(n):
            params = self._draw(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield (
                {name: x for name, (x, _) in made.items()},
                {name: about for name, (_, about) in made.items()},
                params,
            )

    def _draw(self, state: np.random.RandomState) -> dict[str, Any]:
        strict = any(p.strict for p in self._parameters)
        for _ in range(1 if strict else _TRIES):
            self._drawn += 1
            params = {p.name: p.sample(state) for p in self._parameters}
            for name, value in params.items():
                while isinstance(value, ParameterAlias):
                    value = params[value.alias_to]
                params[name] = value
            if all(f(**params) for f in self._constraints) and all(
                t.satisfies_constraints(params) for t in self._tensors
            ):
                return params
            self._refused += 1
        raise RuntimeError(
            f"Fuzzer: none of {1 if strict else _TRIES} draws fits the constraints; widen them or the "
            f"parameters"
        )


def _flat(items: Iterable[Any]) -> list:
    return list(itertools.chain.from_iterable(x if isinstance(x, (list, tuple)) else (x,) for x in items))


@functools.cache
def dims_of(most: int) -> dict[int, float]:
    """Each number of dimensions up to ``most`` with the same probability."""
    return dict.fromkeys(range(1, most + 1), 1 / most)
