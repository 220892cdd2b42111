"""Which modules and functions become model files: ``python -m benchmarks.runtime_sweep [WHAT ...]``.

WHAT: models, examples, layers, functions.

The package's models, modules of the examples, a layer of each row of ``tests/layer_rows.py`` and a sample of
each row of ``tests/samples`` are exported by ``runtime.export``, which compares them with the model, bit by
bit, at batches of 1, 2 and 5 where there is a batch. Prints the counts, and what is refused by reason.
"""

import importlib
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import framework as fw
from benchmarks import onnx_models

TESTS = Path(__file__).resolve().parent.parent / "tests"


def models() -> Iterator[tuple]:
    for name, (make, batch, axes) in onnx_models.MODELS.items():
        yield name, make(fw.models, fw.nn), (fw.from_numpy(batch(2)),), {"x": axes}, ["x"]


def examples() -> Iterator[tuple]:
    for name, module, args, axes in onnx_models.example_modules():
        yield name, module, args, axes, None


def layers() -> Iterator[tuple]:
    from test_onnx_export import ONE_SIZE
    for row in importlib.import_module("layer_rows").ROWS:
        tensors = [fw.tensor(a) for a in row.inputs]
        names = [f"x{i}" for i in range(len(tensors))]
        same = [n for n, t in zip(names, tensors) if t.ndim and len(t) == len(tensors[0])]
        axes = None if row.id in ONE_SIZE else {n: {0: "batch"} for n in same}
        yield row.id, row.make(fw), tensors, axes, names


def functions() -> Iterator[tuple]:
    for row in importlib.import_module("table").ROWS:
        sample = row.samples[0] if row.samples else None
        arrays = [] if sample is None else [np.asarray(a) for a in sample.inputs]
        tensors = [fw.tensor(a.astype(np.float32) if a.dtype.kind == "f" else a) for a in arrays]
        if tensors and not any(t.is_complex() for t in tensors) and not row.name.startswith("_"):
            names = [f"x{i}" for i in range(len(tensors))]
            yield row.name, lambda *xs, s=sample: s.call(fw, *xs), tensors, None, names


def tried(module: Any, args: Any, axes: Any, names: Any) -> list[str]:
    """Why it is refused: nothing if it is not."""
    try:
        fw.runtime.export(module, args, dynamic_axes=axes, input_names=names)
    except Exception as error:  # samples call anything
        first, *lines = str(error).split("\n  ")
        return [re.sub(r" in line .*: ", ": ", line, count=1, flags=re.S) for line in lines] or [first[:120]]
    return []


def main() -> None:
    sys.path.insert(0, str(TESTS))
    warnings.simplefilter("ignore")
    reasons = defaultdict(list)
    for what in sys.argv[1:] or ["models", "examples", "layers"]:
        good = count = 0
        fw.manual_seed(0)
        for name, module, args, axes, names in globals()[what]():
            why = tried(module.eval() if hasattr(module, "eval") else module, args, axes, names)
            good, count = good + (not why), count + 1
            for line in why:
                reasons[line].append(name)
        print(f"{what}: {good} of {count}", flush=True)
    for line, names in sorted(reasons.items(), key=lambda one: -len(one[1])):
        print(f"{len(names)}  {line}  ({', '.join(names[:4])})")


if __name__ == "__main__":
    main()
