"""What a compiled function remembers, and what it says of it."""

from collections.abc import Callable
from typing import Any

from .. import _native
from ..errors import CompileError
from ..ops.record import arming
from ..quiet import quiet
from .backward import BackwardPlans
from .deferral import Deferral
from .steps import step


def possible() -> bool:
    """Whether operations may be put off: with the kernels, until classes are asked first."""
    return _native.module is not None and not arming.armed and hasattr(_native.module, "open_doors")


PLAIN_CALLS = 1  # before a call's operations are noted, which takes a few times as long as to run them
USUAL = ("a new structure",)


class Plans:
    """The plans of one compiled function, and what became of them.

    strict: raise where a backward cannot go by a plan, but for the first of its structure.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.calls = 0
        self.own = BackwardPlans()
        self.deferral: Any = None
        self.steps = self.other_steps = 0

    def session(self) -> Any:
        """What puts operations off during a call in this thread, or None; nothing does in the first call."""
        if self.calls <= PLAIN_CALLS:
            return None
        if self.deferral is None:
            self.deferral = Deferral() if possible() else False
        return self.deferral.session() if self.deferral else None

    def backward(self, engine: Callable, *args: Any) -> None:
        """In place of the engine's walk; see ``BackwardPlans.backward``."""
        if quiet.settle is not None:
            quiet.settle()
        before = dict(self.own.reasons) if self.strict else None
        if before is None:
            self.own.backward(engine, *args)
            return

        def refuse(*args: Any) -> None:
            new = [why for why, times in self.own.reasons.items() if times != before.get(why, 0)]
            if not all(why.startswith(USUAL) for why in new):
                raise CompileError(f"compile: strict=True, and this backward cannot go by a plan: {new[0]}; "
                                   f"leave strict=False to have the engine do it")
            engine(*args)
        self.own.backward(refuse, *args)

    def step(self, optimizer: Any) -> bool:
        """In place of an optimizer's step: whether it was made as one instruction."""
        if quiet.settle is not None:
            quiet.settle()
        done = step(optimizer)
        if done:
            self.steps += 1
        else:
            self.other_steps += 1
        return done

    def explain(self) -> str:
        """What was planned, in words."""
        own = self.own
        lines = [f"  {self.calls} calls; {own.served} backward passes by plans, "
                 f"{own.by_engine} by the engine"]
        if self.steps or self.other_steps:
            lines.append(f"  {self.steps} optimizer steps as one instruction, {self.other_steps} by the "
                         f"optimizer")
        if self.deferral:
            lines += self.deferral.explain()
        lines += [f"  plan: {plan.words}, served {plan.served} times" for plan in own.plans]
        lines += [f"  by the engine, {times} times: {why}" for why, times in own.reasons.items()]
        return "\n".join(lines)
