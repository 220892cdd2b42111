"""Forward mode for users: ``framework.autograd.forward_ad``.

Inside a dual level, a tensor made by ``make_dual(primal, tangent)`` carries its tangent through every op:
of ``y = f(x)`` the tangent is the Jacobian of f at x times the tangent of x. One pass gives the value and
one column of derivatives, and keeps nothing for backward.
"""

from typing import Any, NamedTuple

from ..config.listing import own as _own
from ..errors import DTypeError
from ..node import Dual
from ..tensor import Tensor, check_fits, set_node
from .forward import Level, close_level, hang, is_recorded, only_outside, open_level, plain, tangent_at
from .mode import state


class UnpackedDualTensor(NamedTuple):
    """A dual tensor's two parts; the tangent is None where it is zero."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a dual level in this thread and give its number; see ``dual_level``, which also closes it.

    Raises RuntimeError if one is open: levels nest in ``framework.func.jvp``, not here.
    """
    if state.levels:
        raise RuntimeError("enter_dual_level: a level is open already; nested forward mode is "
                           "framework.func.jvp of a function that calls framework.func.jvp")
    open_level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the dual level: tangents are dropped. Raises RuntimeError if none is open."""
    close_level(_open("exit_dual_level", level))


class dual_level:
    """A block in which tensors can carry tangents.

    >>> import framework.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(fw.tensor([1.0, 2.0]), fw.tensor([1.0, 0.0]))
    ...     y = fwAD.unpack_dual(x * x)
    >>> y.tangent
    tensor([2., 0.])
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor over the same memory that carries ``tangent``, of its shape and dtype.

    It requires grad if ``tensor`` does. Raises RuntimeError if no level is open or the tensor carries a
    tangent already, and ShapeError, DTypeError or DeviceError for a tangent that does not fit.
    """
    one = _open("make_dual", level)
    if not isinstance(tensor, Tensor) or not isinstance(tangent, Tensor):
        bad = tangent if isinstance(tensor, Tensor) else tensor
        raise TypeError(f"make_dual: tensor and tangent must be Tensors, got {type(bad).__name__}")
    if not tensor.is_floating_point() and not tensor.is_complex():
        raise DTypeError(f"make_dual: only floating and complex tensors have tangents, this one is "
                         f"{tensor.dtype}; convert it first, e.g. x.float()")
    if tangent_at(tensor._node, one) is not None:
        raise RuntimeError("make_dual: the tensor has a tangent already; unpack_dual(tensor).primal has none")
    return attach(tensor, tangent, one, "make_dual")


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value without its tangent, and the tangent (None for zero, or where no level is open)."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual: wanted a Tensor, got {type(tensor).__name__}")
    if not state.levels:
        return UnpackedDualTensor(tensor, None)
    one = _open("unpack_dual", level)
    return UnpackedDualTensor(primal_of(tensor, one), tangent_at(tensor._node, one))


def attach(tensor: Tensor, tangent: Tensor, level: Level, op: str) -> Tensor:
    """A tensor over the same memory, with the tangent at this level and those it has at others."""
    check_fits(tangent, tensor, f"{op}: a tangent")
    if is_recorded(tensor._node) and state.recording:
        dual = tensor.view(tensor.shape)  # type: ignore[attr-defined]
    else:
        dual = plain(tensor, state.levels)
        if dual._node is None:
            set_node(dual, Dual())
    hang(dual._node, level, (tangent,))
    return dual


def primal_of(tensor: Tensor, level: Level) -> Tensor:
    """The tensor without its tangent at this level, at its place in the graph."""
    if tangent_at(tensor._node, level) is None:
        return tensor
    with only_outside(level):
        if is_recorded(tensor._node) and state.recording:
            return tensor.view(tensor.shape)  # type: ignore[attr-defined]
        return plain(tensor, state.levels)


def _open(op: str, level: int | None) -> Level:
    if not state.levels:
        raise RuntimeError(f"{op}: no dual level is open; call it inside forward_ad.dual_level()")
    if level is not None and level != 0:
        raise ValueError(f"{op}: level must be None or 0, the only one, got {level!r}")
    return state.levels[-1]


__dir__ = _own(globals())
