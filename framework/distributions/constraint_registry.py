"""From unconstrained numbers into a region: ``biject_to`` and ``transform_to``.

``biject_to(region)`` is one to one with a Jacobian, for samples; ``transform_to(region)`` may be
over-parameterised and is meant for optimisation. Both take more regions by
``registry.register(kind, factory)``.
"""

from collections.abc import Callable
from typing import Any

from . import constraints
from .transforms.base import ComposeTransform, IndependentTransform, Transform, identity_transform
from .transforms.joined import CatTransform, StackTransform
from .transforms.matrices import CorrCholeskyTransform, LowerCholeskyTransform, PositiveDefiniteTransform
from .transforms.numbers import AffineTransform, ExpTransform, SigmoidTransform
from .transforms.simplex import SoftmaxTransform, StickBreakingTransform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Which transform leads into which kind of region.

    >>> fw.distributions.transform_to(fw.distributions.constraints.positive)(fw.tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable] = {}

    def register(self, constraint: Any, factory: Callable | None = None) -> Callable:
        """Use ``factory(region)`` for regions of this class; without factory, a decorator."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError("register: constraint must be a Constraint or a subclass of it, got "
                            f"{constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> Transform:
        """The transform into the region; raises NotImplementedError where none is known."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform into {type(constraint).__name__.lstrip('_')} "
                                      f"constraints is registered; register(kind, factory) adds one")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(constraint: Any, factory: Callable) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _above(region: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(region.lower_bound, 1)])


def _below(region: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(region.upper_bound, -1)])


def _between(region: Any) -> Transform:
    low, high = region.lower_bound, region.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


def _cat(registry: ConstraintRegistry) -> Callable:
    return lambda region: CatTransform([registry(c) for c in region.cseq], region.dim, region.lengths)


def _stack(registry: ConstraintRegistry) -> Callable:
    return lambda region: StackTransform([registry(c) for c in region.cseq], region.dim)


def _independent(registry: ConstraintRegistry) -> Callable:
    return lambda region: IndependentTransform(registry(region.base_constraint),
                                                          region.reinterpreted_batch_ndims)


_both(constraints.real, lambda region: identity_transform)
_both(constraints.greater_than, _above)
_both(constraints.greater_than_eq, _above)
_both(constraints.less_than, _below)
_both(constraints.interval, _between)
_both(constraints.half_open_interval, _between)
_both(constraints.lower_cholesky, lambda region: LowerCholeskyTransform())
_both(constraints.corr_cholesky, lambda region: CorrCholeskyTransform())
_both(constraints.positive_definite, lambda region: PositiveDefiniteTransform())
_both(constraints.positive_semidefinite, lambda region: PositiveDefiniteTransform())
biject_to.register(constraints.simplex, lambda region: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda region: SoftmaxTransform())
for _registry in (biject_to, transform_to):
    _registry.register(constraints.cat, _cat(_registry))
    _registry.register(constraints.stack, _stack(_registry))
    _registry.register(constraints.independent, _independent(_registry))
