"""What a compiled function remembers, and what it says of it."""

from collections.abc import Callable
from typing import Any

from ..errors import CompileError
from .backward import BackwardPlans

USUAL = ("a new structure",)


class Plans:
    """The plans of one compiled function, and what became of them.

    strict: raise where a backward cannot go by a plan, but for the first of its structure.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.calls = 0
        self.own = BackwardPlans()

    def backward(self, engine: Callable, *args: Any) -> None:
        """In place of the engine's walk; see ``BackwardPlans.backward``."""
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

    def explain(self) -> str:
        """What was planned, in words."""
        own = self.own
        lines = [f"  {self.calls} calls; {own.served} backward passes by plans, "
                 f"{own.by_engine} by the engine"]
        lines += [f"  plan: {plan.words}, served {plan.served} times" for plan in own.plans]
        lines += [f"  by the engine, {times} times: {why}" for why, times in own.reasons.items()]
        return "\n".join(lines)
