"""Whether a compiled function (``framework/jit``) may put a call off: what a public function says of itself.

``public(deferred=True)``: the result depends on nothing but the kinds of the arguments and the numbers in
them; the function changes nothing, and does not fail for numbers of theirs. Elementwise functions are like
that without saying so. Or a function of the arguments, asked when a call is met for the first time. It
answers None where all that is true of this call; why it is not, in words; or `Positions`, where it is true
while the positions are inside. Or `InSteps`: what a compiled function calls in place of a function that does
more than that.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Positions(NamedTuple):
    """The argument (by number) that holds positions, each of which must be in ``range(size)``; place: where
    in the argument, if that is a tuple.
    """

    argument: int
    size: int
    place: int | None = None


class InSteps(NamedTuple):
    """A function of the same arguments which does the same by calls that may be put off each by itself, and
    reads no array; or gives NotImplemented. ``question``: of calls that it does not take, as above; without
    one they run when they are called. ``keyword``: of an argument without which it takes none.
    """

    steps: Callable[..., Any]
    question: Callable[..., Any] | None = None
    keyword: str = ""


Deferred = bool | Callable[..., Any] | InSteps


def fails_for_numbers(*args: Any, **settings: Any) -> str:
    """What an elementwise function says that raises for some numbers."""
    return "numbers for which it fails"
