"""Running a model only to look at it: it is left as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

from ...autograd.mode import no_grad
from ...random import default_states
from ..module import Module
from ..parameter import is_lazy


@contextmanager
def as_it_was(model: Module) -> Iterator[None]:
    """A block in which ``model`` may be called: in evaluation mode and not recorded.

    Afterwards modes, buffers (also those in which the user's ``forward`` counts) and random generators are
    what they were.
    """
    modes = [(module, module.training) for module in model.modules()]
    states = default_states()
    buffers = [(module, name, b, b._version, b.detach().clone()) for module in model.modules()
               for name, b in module._buffers.items() if b is not None and not is_lazy(b)]
    try:
        model.eval()
        with no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
        for generator, state in states:
            generator.set_state(state)
        with no_grad():
            for module, name, buffer, version, copy in buffers:
                module._buffers[name] = buffer
                if buffer._version != version:
                    buffer.copy_(copy)
