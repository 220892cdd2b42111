"""What a compiled function remembers: the plans of its backward passes and of its optimizers' steps."""


class Plans:
    """The plans of one compiled function, and what became of them."""

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.calls = 0

    def explain(self) -> str:
        """What was planned, in words."""
        return f"{self.calls} calls"
