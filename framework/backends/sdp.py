"""Which ways of computing attention may be taken: all, unless a program says otherwise."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

WAYS = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}
composite = False  # whether only the way of single operations is left, looked at by every call
none_left = False


def allow(**ways: bool) -> None:
    """Allow or forbid ways by name; "math" are single operations, "flash" and "mem_efficient" one kernel."""
    global composite, none_left
    WAYS.update(ways)
    one_kernel = WAYS["flash"] or WAYS["mem_efficient"]
    composite = not one_kernel
    none_left = not one_kernel and not WAYS["math"]


@contextmanager
def only(names: Iterable[str]) -> Iterator[None]:
    """A block in which only these ways are taken."""
    before, wanted = dict(WAYS), set(names)
    allow(**{name: name in wanted for name in WAYS})
    try:
        yield
    finally:
        allow(**before)
