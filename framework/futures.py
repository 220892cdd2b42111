"""Results that are yet to come: PyTorch's ``futures``, over threads of Python."""

import threading
from collections.abc import Callable
from typing import Any

from .config.listing import own as _own

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A result that somebody will set: ``wait`` blocks until then, ``then`` says what follows.

    devices: taken; results on a GPU are ordered by CuPy's current stream.

    >>> f = fw.futures.Future()
    >>> g = f.then(lambda done: done.value() + 1)
    >>> f.set_result(2)
    >>> g.wait()
    3
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._lock = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable] = []

    def done(self) -> bool:
        """Whether there is a result, or an exception."""
        return self._done

    def wait(self) -> Any:
        """The result, once it is there; the exception that was set is raised."""
        with self._lock:
            while not self._done:
                self._lock.wait()
        return self.value()

    def value(self) -> Any:
        """The result, which must be there: raises RuntimeError if it is not."""
        if not self._done:
            raise RuntimeError("Future.value: there is no result yet; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Any) -> None:
        """Give the result; a second one raises RuntimeError."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give what ``wait`` raises instead of a result."""
        if not isinstance(result, BaseException):
            raise TypeError(f"Future.set_exception: wanted an exception, got {type(result).__name__}")
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._done:
                raise RuntimeError("Future: the result is set already")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._lock.notify_all()
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[["Future"], Any]) -> None:
        """Call ``callback(self)`` when the result is there, in the thread that sets it; at once if it is.

        What it raises goes to whoever set the result.
        """
        with self._lock:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[["Future"], Any]) -> "Future":
        """The result of ``callback(self)``, which is called when this one's is there."""
        following = Future()

        def call(done: "Future") -> None:
            try:
                value = callback(done)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(value)

        self.add_done_callback(call)
        return following


def collect_all(futures: list[Future]) -> Future:
    """A future whose result is the list of these, when all of them are done.

    >>> a, b = fw.futures.Future(), fw.futures.Future()
    >>> both = fw.futures.collect_all([a, b])
    >>> a.set_result(1); b.set_result(2)
    >>> [f.value() for f in both.wait()]
    [1, 2]
    """
    futures, result, lock = list(futures), Future(), threading.Lock()
    left = [len(futures)]

    def one(done: Future) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            result.set_result(futures)

    for future in futures:
        future.add_done_callback(one)
    if not futures:
        result.set_result(futures)
    return result


def wait_all(futures: list[Future]) -> list:
    """The results of all of them; the first exception among them is raised.

    >>> f = fw.futures.Future(); f.set_result(1)
    >>> fw.futures.wait_all([f])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]


__dir__ = _own(globals())
