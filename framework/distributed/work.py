"""Calls that run beside the caller: a Work, its Future, and the threads on which they run in order."""

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any


class Future:
    """A value that comes later; ``then`` makes one of another."""

    def __init__(self) -> None:
        self._there = threading.Event()
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable] = []
        self._lock = threading.Lock()

    def done(self) -> bool:
        """Whether the value is there."""
        return self._there.is_set()

    def wait(self, timeout: float | None = None) -> Any:
        """The value, when it is there; raises what went wrong, or TimeoutError."""
        if not self._there.wait(timeout):
            raise TimeoutError("Future.wait: the value has not come in time")
        return self.value()

    def value(self) -> Any:
        """The value, which must be there."""
        if not self._there.is_set():
            raise RuntimeError("Future.value: the value is not there yet; use wait()")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Any) -> None:
        """Give the value."""
        self._end(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Say what went wrong."""
        self._end(None, result)

    def _end(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            self._value, self._error = value, error
            self._there.set()
            callbacks, self._callbacks = self._callbacks, []
        for call in callbacks:
            call(self)

    def add_done_callback(self, callback: Callable) -> None:
        """Call ``callback(future)`` when the value is there."""
        with self._lock:
            if not self._there.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable) -> "Future":
        """The future of ``callback(self)``."""
        after = Future()

        def run(done: "Future") -> None:
            try:
                after.set_result(callback(done))
            except Exception as error:
                after.set_exception(error)
        self.add_done_callback(run)
        return after


class Work:
    """A call under way. ``wait()`` returns when it is done, and raises its error."""

    def __init__(self, result: Any = None) -> None:
        self._future = Future()
        self._result = result
        self.source: int | None = None

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the call is done; True. Raises its error, or TimeoutError after ``timeout``."""
        seconds = getattr(timeout, "total_seconds", lambda: timeout)()
        self._future.wait(seconds)
        return True

    def is_completed(self) -> bool:
        """Whether the call is done."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether the call is done and nothing went wrong."""
        return self._future.done() and self._future._error is None

    def exception(self) -> BaseException | None:
        """What went wrong, if the call is done."""
        return self._future._error

    def result(self) -> Any:
        """The tensors that the call has filled."""
        return self._result

    def source_rank(self) -> int | None:
        """From whom a message came."""
        return self.source

    def get_future(self) -> Future:
        """A future of the list of tensors that the call fills."""
        return self._future.then(lambda f: (f.value(), self._result)[1])

    def run(self, call: Callable) -> None:
        """Make the call, in this thread."""
        try:
            self.source = call()
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(True)


class Lane:
    """A thread that makes calls one after another; it starts with the first and ends with the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: Work | None = None

    def put(self, work: Work, call: Callable) -> Work:
        """Make ``call`` after those before it."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._last = work
        self._queue.put((work, call))
        return work

    def drain(self) -> None:
        """Wait for the calls put so far; their errors are those of their Work."""
        last = self._last
        if last is not None:
            if not last.is_completed() and threading.current_thread() is not self._thread:
                with contextlib.suppress(BaseException):
                    last.wait()
            self._last = None

    def close(self) -> None:
        """End the thread after the calls put so far."""
        if self._thread is not None:
            self._queue.put(None)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, call = item
            work.run(call)
            del item, work, call
