"""What a compiled function remembers, and what it says of it."""

from collections.abc import Callable
from typing import Any

from .. import _native
from ..errors import CompileError
from ..ops.record import arming
from ..quiet import quiet
from .backward import BackwardPlans
from .deferral import Deferral
from .trial import BY_PLANS, PLAIN, PUT_OFF, Trial


def possible() -> bool:
    """Whether operations may be put off: with the kernels, until classes are asked first."""
    return _native.module is not None and not arming.armed and hasattr(_native.module, "open_doors")


PLAIN_CALLS = 1  # before a call's operations are noted, which takes a few times as long as to run them
WORTH = 1.02  # what is quicker by less than that is no quicker
USUAL = ("a new structure",)


class Plain:
    """In the place of plans, where these do not pay: the engine, and the steps, which always do."""

    direct = plain_backward = True

    def __init__(self, plans: "Plans") -> None:
        self.calls = 0
        self.step = plans.step


class Plans:
    """The plans of one compiled function, and what became of them.

    strict: raise where a backward cannot go by a plan, but for the first of its structure.
    """

    plain_backward = False

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.calls = 0
        self.own = BackwardPlans()
        self.deferral: Any = None
        self.steps = self.other_steps = 0
        self.plain = Plain(self)
        self.now: Plans | Plain = self  # what serves the next call
        self.trial = None if strict else Trial()
        self.chosen: str | None = None
        self.direct = False  # whether calls go without putting off

    def settle_way(self) -> None:
        """Go on in the way that takes the least time, once that is known."""
        found = self.trial.ratios() if self.trial is not None else None
        if found is None:
            return
        self.trial = None
        best = min((PLAIN, BY_PLANS, PUT_OFF), key=lambda way: found[way] * (1 if way == PLAIN else WORTH))
        self.direct = best != PUT_OFF
        if best == PLAIN:
            self.now = self.plain
        names = "put off and by plans", "by plans alone", "plain"
        self.chosen = (f"calls go {names[best]}: of a plain call's time, putting off takes "
                       f"{found[PUT_OFF]:.2f}, plans alone {found[BY_PLANS]:.2f}")

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
        done = optimizer.step_at_once()
        if done:
            self.steps += 1
        else:
            self.other_steps += 1
        return done

    def explain(self, more: int = 0) -> str:
        """What was planned, in words; more: calls that were not counted here."""
        own = self.own
        lines = [f"  {self.calls + self.plain.calls + more} calls; {own.served} backward passes by plans, "
                 f"{own.by_engine} by the engine"]
        if self.steps or self.other_steps:
            lines.append(f"  {self.steps} optimizer steps as one instruction, {self.other_steps} by the "
                         f"optimizer")
        if self.deferral:
            lines += self.deferral.explain()
        lines += [f"  plan: {plan.words}, served {plan.served} times" for plan in own.plans]
        if self.chosen is not None:
            lines.append(f"  {self.chosen}")
        lines += [f"  by the engine, {times} times: {why}" for why, times in own.reasons.items()]
        return "\n".join(lines)
