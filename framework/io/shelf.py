"""A directory of checkpoints: which are there, in what order they were saved, which may go.

``index.json`` lists the saves, oldest first: ``{"format", "version", "saves": [{"file", "step", "metric"},
...]}``. A checkpoint is written before it is listed, and deleted before it is taken off the list, so a
file that the list does not know is the newest, and a listed one may be gone. Where the list is damaged
the files themselves are asked.
"""

import json
import math
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from ..errors import CheckpointError
from .atomic import locked, remove_abandoned, write_atomically
from .checkpoint import load
from .stream import write_all

_FORMAT, _VERSION = "framework.checkpoints", 1
_NAME = re.compile(r"step-(\d{1,30})\.ckpt")


class Save(NamedTuple):
    """One checkpoint of the directory."""

    file: str
    step: int
    metric: float | None


class Shelf:
    """The checkpoints in a directory, which several processes may use at once."""

    def __init__(self, directory: Any) -> None:
        self.directory = os.path.abspath(os.fsdecode(os.fspath(directory)))
        os.makedirs(self.directory, exist_ok=True)
        remove_abandoned(self.directory, _NAME.pattern)  # of steps that no run may come to again

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def name_of(self, step: int) -> str:
        """The file name of a step."""
        return f"step-{step:010d}.ckpt"

    def saves(self) -> list[Save]:
        """The checkpoints that are there, in the order they were saved."""
        there = {name for name in os.listdir(self.directory) if _NAME.fullmatch(name)}
        listed = [save for save in self._index() if save.file in there]
        known = {save.file for save in listed}
        return listed + [self._ask(name) for name in sorted(there - known, key=self._age)]

    def _age(self, name: str) -> tuple[int, str]:
        try:
            return os.stat(self.path(name)).st_mtime_ns, name
        except OSError:
            return 0, name

    def _index(self) -> list[Save]:
        try:
            with open(self.path("index.json"), "rb") as file:
                data = json.loads(file.read(1 << 26))
            if data["format"] != _FORMAT or data["version"] != _VERSION:
                raise ValueError(f"format {data['format']!r} {data['version']!r}")
            return [_checked(save) for save in data["saves"]]
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            warnings.warn(f"{self.path('index.json')} is damaged ({type(error).__name__}: {error}); the "
                          f"checkpoints are taken in the order of their times", RuntimeWarning, stacklevel=4)
            return []

    def _ask(self, name: str) -> Save:
        """What a file that is not listed says of itself."""
        step = int(_NAME.fullmatch(name)[1])  # type: ignore[index]
        metric = None
        with suppress(CheckpointError, OSError):  # a damaged one is met when it is loaded
            state = load(self.path(name), map_location="cpu", mmap=True)
            metric = _metric(state.get("metric")) if isinstance(state, dict) else None
        return Save(name, step, metric)

    def add(self, step: int, metric: float | None, keep: int | None, best: str | None) -> None:
        """List the checkpoint of ``step`` as the newest, and delete those that need not be kept."""
        new = Save(self.name_of(step), step, _metric(metric))
        with self._lock():
            saves = [save for save in self.saves() if save.file != new.file] + [new]
            top = best_of(saves, best)
            kept = saves if keep is None else [
                save for i, save in enumerate(saves) if i >= len(saves) - keep or save is top]
            for save in saves:
                if save not in kept:
                    with suppress(FileNotFoundError):
                        os.unlink(self.path(save.file))
            text = json.dumps({"format": _FORMAT, "version": _VERSION,
                               "saves": [save._asdict() for save in kept]}, indent=1).encode()
            write_atomically(self.path("index.json"), lambda file: write_all(file, text))

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One process (and thread) at a time; the system frees it when its owner dies."""
        with open(self.path(".lock"), "ab") as file:
            locked(file, wait=True)  # where the file system has no locks there is none
            yield


def _checked(save: Any) -> Save:
    name, step, metric = save["file"], save["step"], save["metric"]
    match = _NAME.fullmatch(name)  # nothing outside the directory is ever named
    if match is None or type(step) is not int or int(match[1]) != step or not isinstance(
            metric, float | int | None):
        raise ValueError(f"the entry {save!r}")
    return Save(name, step, metric)


def _metric(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def best_of(saves: list[Save], best: str | None) -> Save | None:
    """The save with the best metric, the earliest of equals; None if there is none."""
    judged = [save for save in saves if save.metric is not None]
    if best is None or not judged:
        return None
    sign = 1 if best == "min" else -1
    return min(judged, key=lambda save: sign * save.metric)  # type: ignore[operator]
