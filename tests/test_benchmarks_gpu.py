"""``python -m benchmarks.gpu`` on the stand-in: what is measured, and that it goes on from its file."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
