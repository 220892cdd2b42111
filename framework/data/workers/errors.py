"""What can go wrong in a worker, and how it is told in the main process."""

import pickle
import signal as signals
import traceback
from typing import Any

from ...errors import FrameworkError, add_note

_SHOWN = 8


class WorkerDied(FrameworkError, RuntimeError):
    """A worker process ended on its own: killed, crashed or exited.

    pid, worker_id: which. signal: the number of the signal that ended it, or None. indices: the samples
    of the batches it owed (a list per batch). exitcode: as of ``multiprocessing.Process``.
    """

    def __init__(self, pid: int, signal: int | None, worker_id: int, indices: list,
                 exitcode: int | None = None, detail: str = "") -> None:
        super().__init__(pid, signal, worker_id, indices, exitcode, detail)
        self.pid, self.signal, self.worker_id, self.indices = pid, signal, worker_id, indices
        self.exitcode, self.detail = exitcode, detail

    def __str__(self) -> str:
        how = f"was killed by {_signal_name(self.signal)}" if self.signal else \
            f"exited with code {self.exitcode}"
        return f"DataLoader: worker {self.worker_id} (pid {self.pid}) {how}{self.detail}"


class WorkerError(FrameworkError, RuntimeError):
    """An exception of a worker that cannot be raised here as what it was.

    type_name, text: its class and message. remote_traceback: the worker's whole traceback. worker_id,
    index (the sample, or the samples of the batch), dataset (its class): where it was raised.
    """

    def __init__(self, type_name: str, text: str, remote_traceback: str, worker_id: int, index: Any,
                 dataset: str) -> None:
        super().__init__(type_name, text, remote_traceback, worker_id, index, dataset)
        self.type_name, self.text, self.remote_traceback = type_name, text, remote_traceback
        self.worker_id, self.index, self.dataset = worker_id, index, dataset

    def __str__(self) -> str:
        place = _place(self.worker_id, self.index, self.dataset)
        return f"DataLoader: {place}: {self.type_name}: {self.text}"


class WorkerTimeout(FrameworkError, TimeoutError, RuntimeError):
    """No batch came within ``timeout`` seconds; the workers were ended."""


class WorkerStallWarning(UserWarning):
    """A worker has been at one batch for long; the message shows where its Python code is."""


class RemoteTraceback(Exception):
    """The cause of an error that came from a worker: the traceback there, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def short(indices: Any) -> str:
    """Indices for a message: the first few, and how many there are."""
    if not isinstance(indices, (list, tuple)) or len(indices) <= _SHOWN:
        return str(indices)
    return f"[{', '.join(map(str, indices[:_SHOWN]))}, ... {len(indices)} in all]"


def report(error: BaseException, worker_id: int, index: Any, dataset: str) -> dict[str, Any]:
    """What the worker sends home: the exception itself if pickle keeps it whole, and its text."""
    return {"type_name": type(error).__qualname__, "text": _text(error),
            "remote_traceback": "".join(traceback.format_exception(error)), "worker_id": worker_id,
            "index": _sendable(index), "dataset": dataset, "whole": _whole(error)}


def rebuild(told: dict[str, Any]) -> BaseException:
    """The exception to raise here for a ``report``; its cause is the traceback there."""
    told = dict(told)
    whole, error = told.pop("whole"), None
    if whole is not None:
        try:
            error = pickle.loads(whole)
        except Exception:  # its class exists only in the worker
            error = None
    if isinstance(error, Exception):
        add_note(error, f"in DataLoader {_place(told['worker_id'], told['index'], told['dataset'])}")
    else:
        error = WorkerError(**told)
    error.__cause__ = RemoteTraceback(told["remote_traceback"])
    return error


def _place(worker_id: int, index: Any, dataset: str) -> str:
    at = "" if index is None else f", {index if isinstance(index, str) else f'sample {short(index)}'}"
    return f"worker {worker_id}{at} of {dataset}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"(its __str__ raised {type(broken).__name__})"


def _sendable(index: Any) -> Any:
    try:
        pickle.loads(pickle.dumps(index))
    except Exception:
        return repr(index)
    return index


def _whole(error: BaseException) -> bytes | None:
    """The pickled exception, if it comes back as what it was; one that would end the loop must not."""
    if not isinstance(error, Exception) or isinstance(error, (StopIteration, StopAsyncIteration)):
        return None
    try:
        data = pickle.dumps(error)
        again = pickle.loads(data)
        same = type(again) is type(error) and _text(again) == _text(error)
    except Exception:
        return None
    return data if same else None


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signals.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
