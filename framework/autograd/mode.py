"""Whether operations are recorded: a switch of each thread, used as context manager or decorator."""

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction, isgeneratorfunction
from types import TracebackType, coroutine
from typing import Any

from .._native import Local


class _State(Local):
    """recording: whether ops are recorded for backward. levels: the dual levels that tangents are pushed
    at, outermost first. enabled: what ops ask first - True and False are ``recording``, FORWARD says that
    a dual level is open, where an op with a node must look at both."""

    enabled: Any = True
    recording = True
    inference = False
    levels: tuple = ()
    opened: tuple = ()
    batches: tuple = ()  # the levels of vmap at work, outermost first
    anomaly: Any = None  # what looks at every backward of this thread for NaN and Inf
    walk: Any = None  # the backward that runs in this thread
    saved_hooks: tuple = ()  # (pack, unpack) of the blocks around, the innermost last
    hooks_forbidden: str | None = None
    compiled: Any = None  # the plans of the compiled function that runs in this thread, see ``framework.jit``


FORWARD = "forward"
state = _State()
masked_walks: set = set()  # the backwards, in any thread, that came by an op with ``masks``


def set_recording(value: bool) -> None:
    """Switch recording in this thread."""
    state.recording = value
    state.enabled = FORWARD if state.opened else value


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread.

    >>> fw.is_grad_enabled()
    True
    """
    return state.recording


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside ``inference_mode``."""
    return state.inference


class _Mode:
    """Enter: remember and switch. Exit: switch back. Around a function: on every call of it."""

    enabled: bool | None
    inference: bool | None = None

    def __init__(self) -> None:
        self._before: list[tuple[bool, bool]] = []

    def _switch(self) -> None:
        self._before.append((state.recording, state.inference))
        if self.enabled is not None:
            set_recording(self.enabled)
        if self.inference is not None:
            state.inference = self.inference

    def __enter__(self) -> None:
        self._switch()

    def __exit__(self, kind: type | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        recording, state.inference = self._before.pop()
        set_recording(recording)

    def _fresh(self) -> "_Mode":
        return type(self)()

    @coroutine
    def _stepped(self, source: Any) -> Any:
        """Run a generator or coroutine in this mode, and its consumer, between the steps, in its own."""
        step, value = source.send, None
        while True:
            try:
                with self._fresh():
                    item = step(value)
            except StopIteration as stop:
                return stop.value
            try:
                step, value = source.send, (yield item)
            except GeneratorExit:
                with self._fresh():
                    source.close()
                raise
            except BaseException as error:
                step, value = source.throw, error

    def __call__(self, function: Callable) -> Callable:
        if isgeneratorfunction(function):
            @wraps(function)
            def generate(*args: Any, **kwargs: Any) -> Any:
                return (yield from self._stepped(function(*args, **kwargs)))
            return generate
        if iscoroutinefunction(function):
            @wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                return await self._stepped(function(*args, **kwargs))
            return awaited

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return function(*args, **kwargs)
        return run


class no_grad(_Mode):
    """Do not record inside: results need no gradient. Context manager and decorator.

    >>> x = fw.ones(2, requires_grad=True)
    >>> with fw.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    enabled = False

    def __new__(cls, function: Callable | None = None) -> Any:
        self = super().__new__(cls)
        if function is None:
            return self
        _Mode.__init__(self)
        return self(function)

    def __init__(self, function: Callable | None = None) -> None:
        super().__init__()


class enable_grad(no_grad):
    """Record inside, also within ``no_grad``. Context manager and decorator."""

    enabled = True


class set_grad_enabled(_Mode):
    """Record or not from here on; as a context manager, until the end of the block.

    >>> with fw.set_grad_enabled(False):
    ...     fw.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.enabled = bool(mode)
        self._switch()

    def __enter__(self) -> None:
        if not self._before:  # not the first block with it
            self._switch()

    def __call__(self, function: Callable) -> Callable:
        if self._before:  # it was made to decorate, not to switch
            self.__exit__(None, None, None)
        return super().__call__(function)

    def _fresh(self) -> "_Mode":
        return set_grad_enabled(bool(self.enabled))


class inference_mode(_Mode):
    """Like ``no_grad``, for code that never needs gradients. Context manager and decorator."""

    def __new__(cls, mode: Any = True) -> Any:
        return cls(True)(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.inference = bool(mode)
        self.enabled = False if mode else None

    def _fresh(self) -> "_Mode":
        return inference_mode(bool(self.inference))
