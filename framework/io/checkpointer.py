"""Checkpointer: the checkpoints of a run, saved in one call and resumed in one call."""

import threading
import warnings
import weakref
from typing import Any

from ..errors import CheckpointError, add_note
from .checkpoint import load, write_plan
from .runstate import collect, restore
from .shelf import Save, Shelf, best_of
from .structure import Plan, encode


class Checkpointer:
    """Saves the state of a whole run under ``directory`` and resumes it exactly.

    keep: how many of the newest checkpoints stay (None: all); the latest and the best always do.
    best: "min" or "max": which ``metric`` is best. background: write on a thread, from a copy made
    before ``save`` returns, so that no tensor is torn; an error of that thread is raised by the next
    call, or by ``close()``.

    Parts are given by name: anything with ``state_dict`` and ``load_state_dict`` (model, optimizer,
    scheduler, loader), generators of this package, of Python and of NumPy, and plain values. The shared
    random generators of all three go with every checkpoint. Several processes may use one directory; one
    Checkpointer is for one thread.

    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> model = fw.nn.Linear(2, 1)
    >>> with fw.io.Checkpointer(directory.name, keep=2, best="min") as checkpoints:
    ...     for step, loss in enumerate([0.5, 0.25, 0.75, 1.0]):
    ...         path = checkpoints.save(step, model=model, epoch=step // 2, metric=loss)
    ...     checkpoints.steps, checkpoints.resume(model=model)
    ([1, 2, 3], {'step': 3, 'metric': 1.0, 'epoch': 1})
    >>> directory.cleanup()
    """

    def __init__(self, directory: Any, *, keep: int | None = 3, best: str | None = None,
                 background: bool = False) -> None:
        if keep is not None and (type(keep) is not int or keep < 1):
            raise ValueError(f"Checkpointer: keep must be an int from 1 or None, got {keep!r}")
        if best not in (None, "min", "max"):
            raise ValueError(f"Checkpointer: best must be 'min', 'max' or None, got {best!r}")
        self.keep, self._order, self.background = keep, best, background
        self._shelf = Shelf(directory)
        self._thread: threading.Thread | None = None
        self._errors: list[BaseException] = []
        weakref.finalize(self, _report, self._errors, self._shelf.directory)

    # -- what is there ---------------------------------------------------------------------------

    @property
    def steps(self) -> list[int]:
        """The steps that can be resumed, in the order they were saved."""
        return [save.step for save in self._saves()]

    @property
    def latest(self) -> str | None:
        """The path of the checkpoint saved last, or None."""
        saves = self._saves()
        return self._shelf.path(saves[-1].file) if saves else None

    @property
    def best(self) -> str | None:
        """The path of the checkpoint with the best metric, or None."""
        top = best_of(self._saves(), self._order)
        return None if top is None else self._shelf.path(top.file)

    def _saves(self) -> list[Save]:
        self.wait()
        return self._shelf.saves()

    # -- saving ----------------------------------------------------------------------------------

    def save(self, step: int, *, metric: float | None = None, **parts: Any) -> str:
        """Save the parts as the checkpoint of ``step``; returns its path.

        metric: a number by which this checkpoint is judged. Raises ValueError for a step that is no
        int from 0, TypeError naming what cannot be saved, OSError where writing fails (the checkpoints
        before are untouched), and whatever stopped the background save before this one.
        """
        if type(step) is not int or not 0 <= step < 1 << 63:
            raise ValueError(f"Checkpointer.save: step must be an int from 0, got {step!r}")
        if {"random", "which"} & set(parts):
            raise ValueError("Checkpointer.save: no part can be called 'random' or 'which': resume() has "
                             "arguments of these names")
        if metric is not None:
            metric = float(metric)
        self.wait()
        path = self._shelf.path(self._shelf.name_of(step))
        plan = encode({"step": step, "metric": metric, **collect(parts)})
        if self.background:
            self._thread = threading.Thread(target=self._behind, args=(plan.frozen(), path, step, metric),
                                            name="checkpointer")
            self._thread.start()
        else:
            self._write(plan, path, step, metric)
        return path

    def _write(self, plan: Plan, path: str, step: int, metric: float | None) -> None:
        write_plan(plan, path)
        self._shelf.add(step, metric, self.keep, self._order)

    def _behind(self, *args: Any) -> None:
        try:
            self._write(*args)
        except BaseException as error:
            add_note(error, f"while the Checkpointer saved {args[1]!r} in the background")
            self._errors.append(error)

    def wait(self) -> None:
        """Wait for the background save; raises what stopped it."""
        thread = self._thread
        if thread is not None:
            thread.join()
            self._thread = None
        if self._errors:
            raise self._errors.pop()

    def close(self) -> None:
        """Wait for the background save; raises what stopped it. The Checkpointer can be used again."""
        self.wait()

    def __enter__(self) -> "Checkpointer":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.close()
        except BaseException as late:
            if error is None:
                raise
            add_note(error, f"and the background save failed: {late!r}")

    # -- resuming --------------------------------------------------------------------------------

    def resume(self, which: int | str = "latest", *, random: bool = True, **parts: Any
               ) -> dict[str, Any] | None:
        """Give the parts the states of a checkpoint: all of them, or on any failure none.

        which: "latest", "best", or a step. random: restore the shared random generators too. A latest
        checkpoint that is damaged is passed over with a RuntimeWarning, for the one before it.

        Returns a dict: "step", "metric" and what no part took (plain values, states of parts that
        were not given), or None if there is no checkpoint yet. Raises CheckpointError if all are
        damaged, if the one asked for is not there, or does not fit the parts.
        """
        found = self._read(which)
        if found is None:
            return None
        state, what = found
        rest = restore(state, parts, random, what)
        return {"step": state["step"], "metric": state["metric"], **rest}

    def _read(self, which: int | str) -> tuple[dict[str, Any], str] | None:
        saves = self._saves()
        if which == "latest":
            return self._newest(saves)
        if which == "best":
            if self._order is None:
                raise ValueError("Checkpointer.resume: 'best' needs Checkpointer(best='min' or 'max')")
            top = best_of(saves, self._order)
            if top is None:
                raise CheckpointError("Checkpointer.resume: no checkpoint was saved with a metric")
            return self._open(top)
        if type(which) is not int:
            raise ValueError(f"Checkpointer.resume: which must be 'latest', 'best' or a step, got {which!r}")
        chosen = [save for save in saves if save.step == which]
        if not chosen:
            raise CheckpointError(f"Checkpointer.resume: there is no checkpoint of step {which}; there are "
                                  f"{[save.step for save in saves]}")
        return self._open(chosen[-1])

    def _newest(self, saves: list[Save]) -> tuple[dict[str, Any], str] | None:
        problems = []
        for save in reversed(saves):
            try:
                found = self._open(save)
            except (CheckpointError, FileNotFoundError, IsADirectoryError) as error:
                if isinstance(error, FileNotFoundError) and (now := self._saves()) != saves:
                    return self._newest(now)  # another process has saved since, and taken this one away
                problems.append(str(error))
                continue
            if problems:
                warnings.warn("Checkpointer.resume: going back to step " + str(save.step) + ", because "
                              + "; ".join(problems), RuntimeWarning, stacklevel=4)
            return found
        if problems:
            raise CheckpointError("Checkpointer.resume: no checkpoint can be read: " + "; ".join(problems))
        return None

    def _open(self, save: Save) -> tuple[dict[str, Any], str]:
        what = f"the checkpoint {self._shelf.path(save.file)!r}"
        state = load(self._shelf.path(save.file), map_location="cpu")
        if not isinstance(state, dict) or set(state) != {"step", "metric", "parts", "random"} \
                or not isinstance(state["parts"], dict):
            raise CheckpointError(f"{what} was not saved by a Checkpointer; read it with framework.load")
        return state, what

    def __repr__(self) -> str:
        return f"Checkpointer({self._shelf.directory!r}, keep={self.keep}, best={self._order!r})"


def _report(errors: list[BaseException], directory: str) -> None:
    """At the end of the Checkpointer: an error that nobody was told."""
    for error in errors:
        warnings.warn(f"a background save to {directory!r} failed, and neither wait() nor close() was "
                      f"called: {error!r}", RuntimeWarning, stacklevel=2)
