"""The sample table on a real CuPy that computes nothing (README.md): python rows.py [--captured] [dtype ...]

Printed are errors that the CPU does not raise, by where they come from, and how many. Those that follow from
values (numbers out of range, singular matrices, sizes that no memory holds) say nothing.
"""

import re
import sys
import traceback
import warnings
from collections import defaultdict

import inert  # noqa: F401 - before the framework
import numpy as np
from device_dtypes import run
from table import ROWS, row_id
from test_cuda import On

import framework as fw
from framework.backends import cuda


def _said(error):
    return re.sub(r"cuda:\d|cpu", "device", re.sub(r" \(found on .*", "", repr(error)))


def _place(error):
    places = [f"{f.filename.rpartition('framework/')[2]}:{f.lineno}"
              for f in traceback.extract_tb(error.__traceback__) if "framework/" in f.filename]
    return places[-1] if places else ""


def compared(dtypes):
    """Errors of samples on the device that are not the CPU's."""
    for dtype in dtypes:
        for row in ROWS:
            for sample in row.samples:
                with np.errstate(all="ignore"):
                    want, got = (run(row, sample, dtype, device, On) for device in ("cpu", "cuda:0"))
                same = isinstance(want, Exception) and _said(want) == _said(got)
                if isinstance(got, Exception) and not same:
                    yield got, f"{row_id(row)} {sample.label!r} {dtype}"


def captured():
    """Errors of samples, forward and backward, recorded as a graph after two calls as usual."""
    for row in ROWS:
        for sample in row.samples[:2]:
            given = [fw.from_numpy(np.array(a)).to("cuda") if isinstance(a, (np.ndarray, np.generic)) else a
                     for a in sample.inputs]
            for x in given:
                if sample.grad and isinstance(x, fw.Tensor) and x.is_floating_point():
                    x.requires_grad_()

            def call(row=row, sample=sample, given=given):
                fresh = [x * 1 if isinstance(x, fw.Tensor) and row.name.endswith("_") else x for x in given]
                out = sample.call(On("cuda:0"), *fresh)
                ends = [y for y in (out if isinstance(out, (tuple, list)) else [out])
                        if isinstance(y, fw.Tensor) and y.requires_grad]
                if ends:
                    wanted = [x for x in given if isinstance(x, fw.Tensor) and x.requires_grad]
                    fw.autograd.grad([y.sum() for y in ends], wanted, allow_unused=True)
            try:
                call()
                call()
            except Exception:  # the other way tells of these
                continue
            try:
                with fw.cuda.graph(fw.cuda.CUDAGraph()):
                    call()
            except Exception as error:
                cuda.capture, fw.cuda.graph.default_capture_stream = None, None
                yield error, row_id(row)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = [a for a in sys.argv[1:] if not a.startswith("-")] or ["float32"]
    kinds = defaultdict(list)
    for error, name in captured() if "--captured" in sys.argv else compared(chosen):
        kinds[type(error).__name__, _place(error), str(error)[:160]].append(name)
    for kind, names in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(len(names), *kind, names[:3])
