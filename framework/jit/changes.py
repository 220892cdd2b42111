"""Changes in place that are noted as the functions that they are the forms of."""

from sys import getrefcount
from typing import Any

from numpy import ndarray

from ..autograd.mode import state
from ..node import Leaf, Node
from ..tensor import Tensor, bump, wrap
from .gradients import order_of
from .kernels import Book, Unknown, listened, owner_of


def noted(call: Any, args: tuple, settings: dict, tape: Any, book: Book,
          known: bool = False) -> tuple[Any, list, Any]:
    """What the call gives, the kernels that ran, and what they made: that, or what a tensor took over.

    Raises Unknown for a change in place that cannot be put off (known: it can), and has changed nothing
    then.
    """
    door = call.door
    if door.kind != "i":
        result, log = listened(door.original, *args, **settings)
        return result, log, result
    if not args or type(args[0]) is not Tensor:
        raise Unknown("no tensor to be changed in place")
    x: Tensor = args[0]
    kind, inside = call.specs[0]
    node, home = x._node, kind == "e" or tape.is_taken(x)
    if x._more is not None or node is not None and (
            state.enabled is not True or home or node.hooks is not None or type(node) is Leaf):
        raise Unknown("a tensor that is not changed in place alone")
    if not known and (not tape.alone(x) if home else _is_shared(inside, x, tape, book)):
        raise Unknown("memory that others see")
    source = wrap(x._array, node=node)  # what backward keeps of it, which does not change
    given = [source if a is x else a for a in args]
    named = {k: source if a is x else a for k, a in settings.items()}
    made, log = listened(door.functional, *given, **named)
    if type(made) is not Tensor or made._array is x._array or made._array.shape != x._array.shape \
            or made._array.dtype != x._array.dtype or made._node is not None and home \
            or not home and made._array.strides != x._array.strides:
        raise Unknown("a result that does not fit")
    if home:
        x._array[...] = made._array
    else:
        kept: dict = getattr(made._node, "kept", None) or {}
        own = all(v is not made._array for v in kept.values())  # else backward reads it as it is now
        x._array = made._array if own else made._array.copy(order="K")
        x._node = made._node
    bump(x, door.name)
    return x, log, made


def _is_shared(inside: int, x: Tensor, tape: Any, book: Book) -> bool:
    """Whether a value has its memory from outside, or another one of the path has it, or had, or a tensor
    that is not of the path (``detach()``), or NumPy.
    """
    array = x._array
    if id(owner_of(array)) in book.outside or array.base is not None and (
            array.base.base is not None or getrefcount(array.base) > 2):
        return True
    mine = book.label(array)
    if any(label == mine for i, label in book.values.items() if i != inside):
        return True
    others = getrefcount(array) - 3  # without the tensor, this name and the one of ``getrefcount``
    return others > 0 and others > _times_kept(array, tape)


def _times_kept(array: ndarray, tape: Any) -> int:
    """How often nodes of the path keep an array for their backward."""
    tensors = [tape.tensor(i) for i in tape.alive()]
    nodes = {node for t in tensors if t._node is not None for node in order_of(t._node)}
    kept = [value for node in nodes if type(node) is Node for value in (node.kept or {}).values()]
    return sum(x is array for value in kept for x in (value if type(value) is tuple else (value,)))
