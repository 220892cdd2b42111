"""What every distribution is: shapes, checked parameters, samples and their probabilities."""

import copy
import warnings
from functools import partial
from typing import Any, ClassVar

import framework as fw

from ..errors import kind_of
from ..tensor import Tensor
from . import constraints
from .utils import all_examples, lazy_property, need_all

__all__ = ["Distribution"]


def _outside(kind: str, name: str, region: Any, value: Tensor) -> str:
    return (f"{kind}: expected parameter {name} (Tensor of shape {tuple(value.shape)}) to satisfy the "
            f"constraint {region!r}, but found invalid values:\n{all_examples(value)}")


class Distribution:
    """A batch of independent distributions: ``batch_shape`` of them, each over events of ``event_shape``.

    ``sample(S)`` has shape S + batch_shape + event_shape, ``log_prob`` of it S + batch_shape. A subclass
    calls ``super().__init__(batch_shape, event_shape, validate_args)`` after it has set its parameters, names
    the region of each in ``arg_constraints``, and in ``_parameters`` how many of its last dimensions belong
    to an event.

    >>> d = fw.distributions.Normal(fw.zeros(3), 1.0)
    >>> d.batch_shape, d.sample((2,)).shape
    ((3,), (2, 3))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: Any
    support: Any
    _validate_args = __debug__
    _parameters: ClassVar[dict[str, int]] = {}

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked where ``validate_args`` is not given."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: wanted True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (),
                 validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = _size(batch_shape), _size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            regions = self.arg_constraints
        except (AttributeError, NotImplementedError):
            warnings.warn(f"{type(self).__name__} does not define arg_constraints; set it, or pass "
                          f"validate_args=False", stacklevel=4)
            return
        for name, region in regions.items():
            derived = name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(region) or derived:
                continue
            value = getattr(self, name)
            kind, what = type(self).__name__, type(region).__name__.lstrip("_")
            need_all(region.check(value),
                     f"{kind}: expected parameter {name} to satisfy the constraint {what}, but found invalid "
                     f"values", partial(_outside, kind, name, region, value))

    # -- shapes ----------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> fw.Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> fw.Size:
        """The shape of one sample of one of them."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> tuple[int, ...]:
        return fw.Size((*_size(sample_shape), *self._batch_shape, *self._event_shape))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its batch broadcast to ``batch_shape``; parameters are views.

        >>> fw.distributions.Normal(0.0, 1.0).expand((2, 3)).batch_shape
        (2, 3)
        """
        shape = _size(batch_shape)
        return self._expanded(self._get_checked_instance(_owner(type(self), "_parameters"), _instance), shape)

    def _expanded(self, new: Any, batch_shape: tuple[int, ...]) -> Any:
        """``new`` as a copy of this one of another batch shape, but for what it has already."""
        for name, dims in self._parameters.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                new.__dict__[name] = value.expand((*batch_shape, *value.shape[value.ndim - dims:]))
        for name, value in self.__dict__.items():
            if name not in new.__dict__ and not isinstance(getattr(type(self), name, None), lazy_property):
                new.__dict__[name] = copy.copy(value) if isinstance(value, (list, dict)) else value
        new._batch_shape, new._event_shape = batch_shape, self._event_shape
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(f"{type(self).__name__}: a subclass with its own __init__ must define "
                                      f"expand(), or say in _parameters which parameters it has")
        return self.__new__(type(self)) if _instance is None else _instance

    # -- numbers about it ------------------------------------------------------------------------

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__}: {what} is not known for this distribution")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """The value of highest density."""
        raise self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def entropy(self) -> Tensor:
        """The expectation of ``-log_prob``, shape batch_shape."""
        raise self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """``exp(entropy)``."""
        return self.entropy().exp()

    # -- samples ---------------------------------------------------------------------------------

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """A sample of shape sample_shape + batch_shape + event_shape, without gradient."""
        with fw.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """A sample through which gradients flow to the parameters."""
        raise self._lacks("rsample (a sample with a gradient)")

    def sample_n(self, n: int) -> Tensor:
        """``sample((n,))``, PyTorch's old name."""
        warnings.warn("sample_n will be removed; use .sample((n,))", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density (or probability) at ``value``."""
        raise self._lacks("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample at most ``value``."""
        raise self._lacks("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of ``cdf``: the quantiles."""
        raise self._lacks("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values there are, along a new first dimension, for a distribution over finitely many."""
        raise self._lacks("enumerate_support")

    def _validate_sample(self, value: Any) -> None:
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ValueError(f"{name}: the value argument must be a Tensor, got {kind_of(value)}; "
                             f"make one with framework.tensor(...)")
        events = len(self._event_shape)
        if value.ndim < events or tuple(value.shape[value.ndim - events:]) != self._event_shape:
            raise ValueError(f"{name}: the last {events} dimensions of the value must be event_shape "
                             f"{list(self._event_shape)}, got shape {list(value.shape)}")
        whole = (*self._batch_shape, *self._event_shape)
        for have, want in zip(reversed(tuple(value.shape)), reversed(whole)):
            if have != want and 1 not in (have, want):
                raise ValueError(f"{name}: the value of shape {list(value.shape)} does not broadcast with "
                                 f"batch_shape + event_shape, which is {list(whole)}")
        try:
            region = self.support
        except (AttributeError, NotImplementedError):
            warnings.warn(f"{name} does not define its support; define it, or pass validate_args=False",
                          stacklevel=3)
            return
        need_all(region.check(value), f"{name}: expected value argument to be within the support "
                 f"({type(region).__name__.lstrip('_')}), but found invalid values", lambda: (
                     f"{name}: expected value argument (Tensor of shape {tuple(value.shape)}) to be within "
                     f"the support ({region!r}), but found invalid values:\n{all_examples(value)}"))

    def __repr__(self) -> str:
        names = [n for n in getattr(self, "arg_constraints", {}) if n in self.__dict__]
        shown = [f"{n}: {v.item() if v.numel() == 1 else tuple(v.shape)}"
                 for n, v in ((n, self.__dict__[n]) for n in names) if isinstance(v, Tensor)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _size(shape: Any) -> fw.Size:
    if isinstance(shape, int):
        raise TypeError(f"a shape must be a tuple of ints, got {shape}; write ({shape},)")
    return fw.Size(shape)


def _owner(cls: type, name: str) -> type:
    """The class that defines ``name``."""
    return next(c for c in cls.__mro__ if name in c.__dict__)


def all_pairs(values: Tensor, batch_shape: tuple[int, ...], event_dims: int, expand: bool) -> Tensor:
    """(n, events) as (n, 1 for each batch dimension, events), or broadcast over the batch."""
    values = values.reshape((values.shape[0], *[1] * len(batch_shape), *values.shape[1:]))
    return values.expand((values.shape[0], *batch_shape, *values.shape[values.ndim - event_dims:])) \
        if expand else values


