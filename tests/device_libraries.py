"""Libraries of NVIDIA's that the stand-in has in C (standin/cupy/device), in place of the real ones."""

import gc
from contextlib import contextmanager


@contextmanager
def in_place(module, found, monkeypatch, **begins):
    """A block in which a module of backends starts anew, with a library that looks at what it is told.

    found: the library; begins: what it is set to. Behind the block nothing wrong was said to it, and all that
    it gave has come back.
    """
    monkeypatch.setattr(module, "_started", (None, None))
    found.set(**begins)
    yield found
    assert not found.wrong
    module._plans.clear()
    gc.collect()
    assert found.alive == 0  # descriptors go with their plans
    monkeypatch.undo()
    module._started = None, None
