"""What several distributions need: broadcast parameters, probabilities and logits, values made when asked."""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from numbers import Number
from typing import Any

import framework as fw

from ..backends import device_flags
from ..ops.record.batched import innermost
from ..tensor import Tensor, wrap

euler_constant = 0.57721566490153286060

__all__ = ["broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs",
           "probs_to_logits",
           "tril_matrix_to_vec", "vec_to_tril_matrix"]


def is_number(value: Any) -> bool:
    """Whether a parameter was given as a number and not as a tensor."""
    return isinstance(value, Number)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape from numbers and tensors; numbers take dtype and device of the first tensor.

    Raises ValueError for anything else. Without a tensor they get the default dtype.

    >>> from framework.distributions.utils import broadcast_all
    >>> broadcast_all(1.0, fw.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    for value in values:
        if not isinstance(value, Tensor) and not is_number(value):
            raise ValueError("broadcast_all: arguments must be numbers or Tensors, got "
                             f"{type(value).__name__}; "
                             f"make a tensor of it with framework.tensor(...)")
    first = next((v for v in values if isinstance(v, Tensor)), None)
    settings: dict[str, Any] = {"dtype": fw.get_default_dtype()} if first is None else {
        "dtype": first.dtype, "device": first.device}
    tensors = [v if isinstance(v, Tensor) else fw.tensor(v, **settings) for v in values]
    return tuple(fw.broadcast_tensors(*tensors))


def parameters(*values: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """The broadcast parameters of a distribution of single numbers, and its batch shape."""
    tensors = broadcast_all(*values)
    if all(is_number(v) for v in values):
        return tensors, ()
    return tensors, tensors[0].shape


def standard_normal(shape: Sequence[int], like: Tensor) -> Tensor:
    """Standard normal numbers in the dtype and place of ``like``."""
    return fw.randn(tuple(shape), dtype=like.dtype, device=like.device)


def uniform(shape: Sequence[int], like: Tensor) -> Tensor:
    """Numbers in the open interval (0, 1), of which logarithms may be taken."""
    info = fw.finfo(like.dtype)
    return fw.rand(tuple(shape), dtype=like.dtype, device=like.device).clamp(info.tiny, 1 - info.eps / 2)


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last ``dims`` dimensions."""
    return value if dims == 0 else value.sum(tuple(range(-dims, 0)))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities: sigmoid for two outcomes, softmax over the last dimension for several."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by one eps of their dtype."""
    eps = fw.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """``log(p)``, for two outcomes ``log(p / (1 - p))``, of clamped probabilities: finite always."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def one_of(op: str, **given: Any) -> tuple[str, Any]:
    """The one argument of several that was given, and its name; raises ValueError for none or more."""
    named = [(name, value) for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ValueError(f"{op}: give exactly one of {', '.join(given)}; got "
                         f"{' and '.join(name for name, _ in named) or 'none of them'}")
    return named[0]


# the names under which PyTorch's libraries look for them
_standard_normal = lambda shape, dtype, device: fw.randn(tuple(shape), dtype=dtype, device=device)
_sum_rightmost = sum_rightmost


class lazy_property:
    """A property computed when first read, and kept as an attribute of the instance.

    It is computed with recording on: a parameter first read under ``no_grad`` can still be differentiated.
    """

    def __init__(self, wrapped: Callable) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with fw.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries of square matrices on and below the diagonal ``diag``, row by row: (..., n, n) -> (..., k).

    >>> from framework.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(fw.tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: diag must be in [{-n}, {n}), got {diag}")
    rows, columns = fw.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices of their entries row by row, the inverse of `tril_matrix_to_vec`.

    >>> from framework.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(fw.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    k = vec.shape[-1]
    n = int(round((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * k + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2))
    rows, columns = fw.tril_indices(max(n, 0), max(n, 0), diag)
    if rows.shape[0] != k:
        raise ValueError(f"vec_to_tril_matrix: no lower triangle with diag={diag} has {k} entries")
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    matrix[..., rows, columns] = vec
    return matrix


class Coin:
    """For distributions of a probability of success: ``probs`` or ``logits`` is given, the other follows."""

    def _take(self, probs: Any, logits: Any, *others: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """Set the one that was given, broadcast with the other parameters; those, and the batch shape."""
        name, value = one_of(type(self).__name__, probs=probs, logits=logits)
        (given, *rest), batch_shape = parameters(value, *others)
        setattr(self, name, given)
        return tuple(rest), batch_shape

    @lazy_property
    def logits(self) -> Tensor:
        """``log(p / (1 - p))``."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of success."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of ``probs`` and ``logits``."""
        return self._param.shape


def all_hold(conditions: Tensor) -> bool:
    """Whether a condition holds everywhere; under ``vmap`` for all examples, of which all are known."""
    return bool(innermost(conditions._array).all())


def need_all(conditions: Tensor, later: str, text: Callable[[], str]) -> None:
    """Raise ValueError with a text unless a condition holds everywhere.

    later: what is told instead at the next wait for a GPU, where the values are.
    """
    array, words = innermost(conditions._array), later.replace("{", "{{").replace("}", "}}")
    if not device_flags.check(array, 1, 2, words, error=ValueError) and not bool(array.all()):
        raise ValueError(text())


def all_examples(x: Tensor) -> Tensor:
    """The values, for messages; under ``vmap`` those of all examples."""
    return wrap(innermost(x._array))


def indicators(classes: Tensor, count: int, like: Tensor) -> Tensor:
    """A further dimension with 1 at the class and 0 elsewhere, in the dtype of ``like``."""
    return (classes.unsqueeze(-1) == fw.arange(count, device=like.device)).to(like.dtype)
