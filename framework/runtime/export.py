"""``export``: a model as a file that runs without Python, written only after it gave eager's bits.

The model is run at several sizes of its dynamic axes, and the runs are made one, as for ONNX
(``onnx/points.py``); here layers and what follows them stay the joint kernels that Python runs, so that
the bits are the same. Each step is lowered to a call of the library (``lowering/``). The finished file
then runs in libframework beside the model.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import FrameworkError
from ..onnx.calls import Call, symbols_of
from ..onnx.points import Points, shown
from ..onnx.trace import INPUT, OnnxError, Trace
from ..seam import intercept
from ..tensor import Tensor
from .library import CompiledModel, RuntimeModelError
from .lowering.traces import lowered


class ExportError(FrameworkError, RuntimeError):
    """A model that cannot be written for the runtime, or that gave other numbers there."""


class _Kernels(Trace):
    """The kernels that Python runs: joint ones stay together."""

    def look(self) -> intercept:
        return intercept(self, shortcuts=True, wholes="runtime")


class _Model(Call):
    traces = _Kernels


class ExportedModel:
    """What ``export`` gives: the file's bytes, and the sizes at which it gave the model's bits
    (``checked``)."""

    def __init__(self, data: bytes, steps: int, checked: list[dict[str, int]]) -> None:
        self.data, self.steps, self.checked = data, steps, checked

    def save(self, f: Any) -> None:
        """Write it to a path, as a whole or not at all, or to a binary file."""
        if hasattr(f, "write"):
            f.write(self.data)
            return
        folder, name = os.path.split(os.path.abspath(f))
        handle, temporary = tempfile.mkstemp(prefix=name, dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, f)
        except BaseException:
            os.unlink(temporary)
            raise

    def __repr__(self) -> str:
        return (
            f"<ExportedModel of {self.steps} steps, {len(self.data)} bytes, the model's bits at "
            f"{len(self.checked)} sizes>"
        )


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: dict | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Any = None,
    dynamic_shapes: Any = None,
) -> ExportedModel:
    """Write a model, or any function of tensors, as a file that libframework runs without Python.

    The arguments are those of ``onnx.export``. args, kwargs: an example of its arguments, whose tensors are
    the model's inputs. f: a path (written as a whole or not at all) or a binary file; None only gives the
    model. dynamic_axes, dynamic_shapes: which sizes each run may choose, by name. The model is put in
    evaluation mode meanwhile.

    The file is written only if libframework gives the model's own bits with it, at batches of 1, 2 and 5
    and at two lengths of each further axis. Raises ExportError for operations that the library does not have
    (all of them, with their lines), for results that differ, and for what no trace can follow.

    >>> model = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.ReLU())
    >>> fw.runtime.export(model, fw.randn(2, 3), dynamic_axes={"input": {0: "batch"}})  # doctest: +SKIP
    <ExportedModel of 1 steps, 640 bytes, the model's bits at 3 sizes>
    """
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    with _traced():
        call = _Model(model, args, kwargs or {}, input_names, output_names, None)
        symbols = symbols_of(call, dynamic_axes, dynamic_shapes)
    with _traced(), call:
        points = Points(call, symbols)
        trace = points.unified()
        model_file, lacking = lowered(trace, points)
        if lacking:
            raise ExportError(
                f"runtime.export: {len(lacking)} operations are not in the library:\n  "
                + "\n  ".join(lacking)
            )
        model_file.name_outputs(call.output_names(len(trace.outputs)))
        data = model_file.writer.bytes()
        checked = _checked(call, points, data, [v.name for v in trace.values if v.kind == INPUT])
    exported = ExportedModel(data, len(model_file.writer.steps), checked)
    if f is not None:
        exported.save(f)
    return exported


@contextmanager
def _traced() -> Iterator[None]:
    """What tracing refuses, under the name of the function that was called."""
    try:
        yield
    except OnnxError as error:
        raise ExportError(str(error).replace("export: ", "runtime.export: ", 1)) from None
    except ValueError as error:
        if not str(error).startswith("export: "):
            raise
        raise ValueError(f"runtime.{error}") from None


def _checked(call: Call, points: Points, data: bytes, names: list[str]) -> list[dict[str, int]]:
    """Compare with eager, bit by bit; raise where a number differs."""
    compiled = CompiledModel(data)
    found = []
    for sizes in points.checks():
        inputs = points.inputs(sizes)
        try:
            given = compiled.run(*[inputs[n]._array for n in names])
        except RuntimeModelError as error:
            raise ExportError(f"runtime.export: at {shown(sizes)} the library refuses the model "
                              f"({error}); nothing was written") from None
        expected = call.run(inputs)  # afterwards, as it may write into them
        for (name, _, _), a, b in zip(compiled.outputs, expected, given):
            if a.shape != b.shape or a.dtype != b.dtype:
                raise ExportError(
                    f"runtime.export: {name} is {b.dtype}{list(b.shape)} at {shown(sizes)}, the model "
                    f"gives {a.dtype}{list(a.shape)}; nothing was written"
                )
            if a.tobytes() != b.tobytes():
                worst = np.nanmax(np.abs(a.astype(np.float64) - b.astype(np.float64)))
                raise ExportError(
                    f"runtime.export: {name} differs from the model by up to {worst:.3g} at "
                    f"{shown(sizes)}; nothing was written"
                )
        found.append(sizes)
    return found
