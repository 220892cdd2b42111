"""Which way a compiled function's calls go, found out by the clock.

All ways give the same bits, so the choice is free: putting operations off and going by plans, the plans
alone, or nothing of it. After some calls the ways take turns for a few rounds; whichever takes the least
time stays. So no function is slower for long because it was compiled.
"""

PUT_OFF, BY_PLANS, PLAIN = range(3)
BEGIN = 30  # calls before: plans are made, and a function that puts nothing off is known
ROUNDS = 12  # a multiple of 6: each order of the ways as often as the others
ORDERS = ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1), (1, 0, 2))


class Trial:
    """The times of one function's calls."""

    def __init__(self) -> None:
        self.rounds: list[dict[int, float]] = []
        self.now: dict[int, float] = {}

    def way(self, calls: int) -> int | None:
        """Which way the next call is timed, if one is."""
        if calls <= BEGIN:
            return None
        order = ORDERS[len(self.rounds) % len(ORDERS)]
        return order[len(self.now) % len(order)]  # of threads side by side, several may time one way

    def add(self, way: int, seconds: float) -> None:
        """A call took that long."""
        now = self.now
        now[way] = seconds
        if len(now) == len(ORDERS[0]):
            self.now = {}
            self.rounds.append(now)

    def ratios(self) -> list[float] | None:
        """Each way's time over that of a plain call, the least of all rounds, which others on the machine
        disturb least; None before their end.
        """
        if len(self.rounds) < ROUNDS:
            return None
        least = [min(one[way] for one in self.rounds) for way in (PUT_OFF, BY_PLANS, PLAIN)]
        return [seconds / max(least[PLAIN], 1e-9) for seconds in least]
