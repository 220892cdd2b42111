"""The collector of garbage while the package is imported, which makes fifty thousand objects that stay."""

import gc


class Patience:
    """From here to ``end()`` young objects are looked through when there are NUMBER new ones, not 700.

    A hundred times less often: that takes a fifth of the import otherwise, where it finds nothing.
    """

    NUMBER = 20_000

    def __init__(self) -> None:
        self.before = gc.get_threshold()
        if 0 < self.before[0] < self.NUMBER:  # 0: somebody has switched it off
            gc.set_threshold(self.NUMBER, 1000, self.before[2])

    def end(self) -> None:
        """As it was before."""
        if gc.get_threshold()[0] == self.NUMBER:
            gc.set_threshold(*self.before)


patience = Patience()
