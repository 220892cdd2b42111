"""Counting the floating-point operations of products: forward and backward."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ..config.listing import own as _own
from ..seam import BACKWARD, OP, Event, intercept
from ..tensor import Tensor

FLOPS: dict[str, Callable[[Event, Any], int]] = {}  # what ``register_flop_formula`` was given


class FlopCounterMode:
    """In the block the floating-point operations of products are counted, two for a multiplication and sum.

    Counted are matmul, linear, convolution and attention; each gradient of an operand costs what forward did.
    ``mods`` and ``depth`` are taken and counts are for the whole block ("Global"), not for each module.
    display: print the table at the end. custom_mapping: {name of an op: function (event, shape of its
    result) -> number}.

    >>> with fw.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     _ = fw.ones(2, 3) @ fw.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True,
                 custom_mapping: dict[str, Callable] | None = None) -> None:
        self.display = display
        self.counts: dict[str, int] = {}
        self._rules = {**FLOPS, **(custom_mapping or {})}
        self._forward: dict[int, int] = {}  # what a node's call cost, by its number
        self._seam = intercept(self._see)

    def _see(self, event: Event, proceed: Callable) -> Any:
        result = proceed(*event.inputs, **event.settings)
        rule = event.kind == OP and (self._rules.get(event.name) or _of_record(event))
        if rule:
            out = result[0] if isinstance(result, tuple) else result
            flops = rule(event, out if getattr(rule, "raw", False) else out.shape)
            self._add(event.name, flops)
            if isinstance(out, Tensor) and out._node is not None:
                self._forward[out._node.seq] = flops  # type: ignore[union-attr]
        elif event.kind == BACKWARD and (flops := self._forward.get(event.node.seq, 0)):
            wanted = sum(edge is not None for edge in event.node.edges[:2])
            if getattr(event.op, "joint", None) is not None:
                wanted = 2  # one rule that computes them together, whichever are wanted
            self._add(f"{event.name}_backward", wanted * flops)
        return result

    def _add(self, name: str, flops: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + flops

    def get_total_flops(self) -> int:
        """All that were counted."""
        return sum(self.counts.values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """{"Global": {name of the op: operations}}."""
        return {"Global": dict(self.counts)}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, the largest first."""
        total = self.get_total_flops()
        rows = [f"{name:<40}{flops:>16,}{flops / max(total, 1):>8.1%}"
                for name, flops in sorted(self.counts.items(), key=lambda item: -item[1])]
        return "\n".join([f"{'op':<40}{'FLOP':>16}{'':>8}", *rows, f"{'total':<40}{total:>16,}"])

    def __enter__(self) -> "FlopCounterMode":
        self.counts.clear()
        self._forward.clear()
        self._seam.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._seam.__exit__(*error)
        if self.display:
            print(self.get_table())


def _of_record(event: Event) -> Callable | None:
    """The formula of the op's record (``Op(flops=...)``), for an event and the shape of its result."""
    formula = getattr(event.op, "flops", None)
    return None if formula is None else partial(_by_shapes, formula)


def _by_shapes(formula: Callable, event: Event, out: Any) -> int:
    return formula(*[x.shape if isinstance(x, Tensor) else x for x in event.inputs], out_shape=out)


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable:
    """A decorator: count the operations of ops by this function, in all blocks that begin later.

    targets: an operator of ``fw.ops.aten`` or a name of an op, or several. The function gets the shapes of
    the operands and ``out_shape=``; with ``get_raw`` the tensors and ``out_val=``.

    >>> @fw.utils.flop_counter.register_flop_formula(fw.ops.aten.cumsum)
    ... def adds(x_shape, out_shape=None):
    ...     return x_shape[0]
    >>> with fw.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     _ = fw.ones(3).cumsum(0)
    >>> counter.get_total_flops(), fw.utils.flop_counter.FLOPS.pop("cumsum") is not None
    (3, True)
    """
    def register(formula: Callable) -> Callable:
        def count(event: Event, out: Any) -> int:
            if get_raw:
                return formula(*event.inputs, **event.settings, out_val=out)
            return _by_shapes(formula, event, out)
        count.raw = get_raw  # type: ignore[attr-defined]
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            name: Any = getattr(target, "_qualified_op_name", getattr(target, "__name__", target))
            FLOPS[name.rpartition("::")[2].partition(".")[0]] = count
        return formula
    return register


__dir__ = _own(globals())
