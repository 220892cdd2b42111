"""``python -m benchmarks.gpu`` on the stand-in: what is measured, and that it goes on from its file."""

import gc
import json
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw

ROOT = Path(__file__).resolve().parent.parent


def run(*options):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", "--standin", "tests/standin", "--vs", "", "--tiny",
         "--rounds", "1", "--piece", "0.001", *options], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="kernels need a compiler")
def test_it_goes_on_from_its_file(tmp_path):
    file = str(tmp_path / "gpu.json")
    done = run("--json", file, "--only", "mlp-step", "gelu", "softmax", "beam")
    assert not done.returncode, done.stderr
    found = json.loads(Path(file).read_text())
    assert {"device", "host/gelu", "memory/softmax", "workloads/beam-search"} <= set(found)
    step = found["workloads/mlp-step"]
    assert {"framework cpu", "framework", "framework captured"} == set(step)
    assert all(isinstance(t, float) for t in step.values()), step
    again = run("--json", file, "--only", "gelu")
    assert not again.returncode and again.stdout == ""  # all is there
    late = run("--json", file, "--only", "tanh", "--seconds", "1")
    assert not late.returncode and "1 left for another 1 seconds" in late.stdout


def test_a_recorded_run_keeps_what_it_works_on(raw, cupy):  # noqa: F811
    """A graph reads and writes the memory of parameters, but does not keep it."""
    from cupy import streams

    from benchmarks.gpu import captured

    w = fw.ones(4, device="cuda")
    gone = weakref.ref(w)
    try:
        run = captured(fw, lambda own=w: own.add_(1))
        start = w.tolist()
        run()
        assert w.tolist() == [x + 1 for x in start]
        del w
        gc.collect()
        assert gone() is not None
        del run
        gc.collect()
        assert gone() is None
    finally:
        fw.cuda.graph.default_capture_stream = None
        streams.clear()
